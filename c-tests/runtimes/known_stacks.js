'use strict';
// A program of which every possible stack is known: families f_K -> g_K -> h_K, 40 lines apart in a
// file that is written at the start. The first argument says how they call each other:
//
// plain      directly
// inlined    the same, and V8 may inline: then functions may be missing
// deep       f_K at the end of a recursion of 40 r_K
// deepest    of 1,000
// methods    as methods of a class, a getter, and static
// callbacks  through functions of V8 that call back: map(), sort(), JSON.parse(), replace()
// exceptions h_K throws, f_K catches
// generators g_K is a generator that f_K runs
// async      f_K goes on after an await
// collected  g_K makes garbage, and the collector runs all the time (--expose-gc)
// churn      functions that are compiled, used, and dropped again
// workers    plain, in two threads besides the first
const fs = require('fs'), os = require('os'), path = require('path'), v8 = require('v8'), vm = require('vm');
const { Worker, isMainThread, workerData } = require('worker_threads');
const how = isMainThread ? process.argv[2] : workerData;
const major = parseInt(process.versions.node), FAMILIES = 24, OF_FAMILY = 40;
if (how !== 'inlined' && isMainThread) {
  v8.setFlagsFromString('--no-turbo-inlining');
  if (major >= 22) v8.setFlagsFromString('--no-maglev-inlining');
}
const calls = {
  callbacks: ['return Math.max(...[n, 2].map(g_K));', 'switch (n % 3) { case 0: return [2, 1].sort(function c_K() { return h_K(2); })[0]; case 1: return JSON.parse("1", function c_K() { return h_K(2); }); default: return "x".replace(/x/, function c_K() { return h_K(2); }).length; }', 'return t;'],
  exceptions: ['try { return g_K(n); } catch (e) { return 0; }', 'try { return h_K(n) + 1; } finally { n++; }', 'throw new Error("é");'],
  generators: ['let s = 0; for (const one of g_K(n)) s += one; return s;', 'yield h_K(n); yield* [1];', 'return t;'],
  async: ['await null; return g_K(n) + 1;', 'return h_K(n) + 1;', 'return t;'],
  methods: ['return new T_K().g(n) + 1;', 'return this.x + T_K.h(n);', 'return t;'],
  collected: ['return g_K(n) + 1;', 'let a = []; for (let i = 0; i < 100; i++) a.push({ i, s: "é" + i }); return h_K(n) + a.length;', 'if (n % 64 === 0) gc({ type: n % 128 ? "minor" : "major" }); return t;'],
};
const source = `
function r_K(n) {
  return n ? r_K(n - 1) : f_K(3); }

function f_K(n) {
  n += 1;
  F
}
function g_K(n) { n *= 2;
  G
}

function h_K(n) { let t = 0; /* é */
  for (let i = 0; i < 40; i++) {
    t = (t * 31 + i) & 0xffff;
  }
  H }
`;
let asked = 0;

function family(k) {
  const [f, g, h] = calls[how] || ['return g_K(n) + 1;', 'return h_K(n) + 1;', 'return t;'];
  let text = source.replace('F\n', () => f + '\n').replace('G\n', () => g + '\n').replace('H }', () => h + ' }');
  if (how === 'generators') text = text.replace('function g', 'function* g');
  if (how === 'async') text = text.replace('function f', 'async function f');
  if (how === 'methods') {
    text = text.replace('f_K(3)', '0').replace('r_K(n - 1)', '0').replace('function h', 'static function h').replace(/function ([rfgh])_K/g, '$1');
    text = 'class T_K { get x() { return T_K.h(1); }' + text + '}';
  }
  const root = how === 'methods' ? 'new T_K().f.bind(new T_K())' : how.startsWith('deep') ? 'r_K' : 'f_K';
  return (text + '\nout.push(' + root + ');').replace(/_K/g, '_' + k);
}

/** The families' functions, from a file of their own. */
function load() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'known'));
  let text = '', lines = 0;
  for (let k = 0; k < FAMILIES; k++) {
    const next = '\n'.repeat(OF_FAMILY * k - lines) + family(k);
    lines += next.split('\n').length - 1;
    text += next;
  }
  const file = path.join(folder, how === 'plain' ? 'families.mjs' : 'families.js');
  if (how === 'plain') {
    fs.writeFileSync(file, 'export const out = [];' + text);
  } else {
    fs.writeFileSync(file, 'const out = module.exports = [];' + text);
  }
  process.on('exit', () => fs.rmSync(folder, { recursive: true }));
  return how === 'plain' ? import(file).then(module => module.out) : Promise.resolve(require(file));
}

function dropped(k) {
  const out = [];
  vm.runInThisContext('(function (out) {' + family(k) + '})', { filename: `family_${k}.js` })(out);
  return out[0];
}

async function run(known) {
  const depth = how === 'deep' ? 40 : how === 'deepest' ? 1000 : 0;
  for (let ended = false; !ended; ended = await new Promise(resolve => setImmediate(() => resolve(asked)))) {
    for (const until = Date.now() + 20; Date.now() < until;) {
      for (let k = 0; k < FAMILIES; k++) {
        const f = known ? known[k] : dropped(k);
        for (let n = 0; n < (depth > 40 ? 1 : 8); n++) {
          if (how === 'async') await f(n); else f(depth || n);
        }
      }
    }
  }
}

if (how === 'workers' && isMainThread) {
  const workers = [1, 2].map(() => new Worker(__filename, { workerData: 'exceptions' }));
  Promise.all(workers.map(worker => new Promise(resolve => worker.once('message', resolve)))).then(() => console.log('ready'));
  process.stdin.once('data', () => workers.forEach(worker => worker.postMessage('end')));
  Promise.all(workers.map(worker => new Promise(resolve => worker.once('exit', resolve)))).then(() => { console.log('ok'); process.stdin.destroy(); });
} else {
  const { parentPort } = require('worker_threads');
  (parentPort || process.stdin).once(parentPort ? 'message' : 'data', () => { asked = 1; });
  (how === 'churn' ? Promise.resolve(null) : load()).then(known => {
    if (parentPort) parentPort.postMessage('ready'); else console.log('ready');
    return run(known);
  }).then(() => {
    if (parentPort) parentPort.close(); else { console.log('ok'); process.stdin.destroy(); }
  });
}
