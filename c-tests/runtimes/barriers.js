'use strict';
// Stops at points whose stacks it tells: for each line of standard input, the program goes down a
// random path of functions, prints it as errors see it, and waits there for another line.
const fs = require('fs'), vm = require('vm');
Error.stackTraceLimit = Infinity;

class Shape {
  constructor(path) { this.path = path; }
  method(path) { return step(path); }
  static ofClass(path) { return step(path); }
  #hidden(path) { return step(path); }
  open(path) { return this.#hidden(path); }
  get asked() { return step(this.path); }
  toString() { return '' + step(this.path); }
  [Symbol.iterator]() { step(this.path); return [][Symbol.iterator](); }
  ['com' + 'puted'](path) { return step(path); }
}
class Derived extends Shape {
  constructor(path) { super(path); step(path); }
}
const object = { assigned: null, 'two words'(path) { return step(path); } };
object.assigned = function (path) { return step(path); };
function* generated(path) { yield step(path); }
const arrow = path => step(path);
const proxy = new Proxy({}, { get(_, path) { return step(JSON.parse(path)); } });

const ways = [
  path => step(path),
  arrow,
  function named(path) { return step(path); },
  function жук(path) { return step(path); },
  path => [1].map(() => step(path))[0],
  path => [2, 1].sort(function compare() { step(path); return 0; })[0],
  path => JSON.parse('1', function revive() { step(path); return 0; }),
  path => 'x'.replace(/x/, () => step(path)).length,
  path => step.call(null, path),
  path => Reflect.apply(step, null, [path]),
  path => step.bind(null, path)(),
  path => new Shape().method(path),
  path => Shape.ofClass(path),
  path => new Shape().open(path),
  path => new Shape(path).asked,
  path => '' + new Shape(path),
  path => { for (const none of new Shape(path)); return 0; },
  path => new Shape().computed(path),
  path => { new Derived(path); return 0; },
  path => object.assigned(path),
  path => object['two words'](path),
  path => { for (const one of generated(path)) return one; },
  path => eval('step(path)'),
  path => new Function('step', 'path', 'return step(path)')(step, path),
  path => vm.runInThisContext('(function inside(step, path) { return step(path); })', { filename: 'inside.js' })(step, path),
  path => { try { throw new Error(); } catch (e) { return step(path); } finally { path = 0; } },
  path => proxy[JSON.stringify(path)],
  path => { let out; new Promise(() => { out = step(path); }); return out; },
];

/** The frames, leaf first: name and file. */
function told() {
  const prepare = Error.prepareStackTrace;
  Error.prepareStackTrace = (_, sites) => sites;
  const sites = new Error().stack.slice(1);
  Error.prepareStackTrace = prepare;
  const real = sites.filter(site => !site.isAsync() && (site.isEval() || site.getFileName()));
  // A name that is computed is a property of the function, which is not read.
  const none = ['eval', '[Symbol.iterator]', 'computed', null, ''];
  const name = site => none.includes(site.getFunctionName()) ? '<anonymous>' : site.getFunctionName();
  return real.map(site => name(site) + '|' + (site.getFileName() || '')).join('\t');
}

let reached, seed = 7;
function random(n) { seed = (seed * 48271) % 0x7fffffff; return seed % n; }
function line() {
  let text = '';
  for (const one = Buffer.alloc(1); fs.readSync(0, one) === 1;) {
    if (one[0] === 10) return text;
    text += String.fromCharCode(one[0]);
  }
  return null;
}

function step(path) {
  if (path && path.length) return ways[path[0]](path.slice(1));
  if (reached++) return 0;
  fs.writeSync(1, 'at ' + told() + '\n'); line();
  return 0;
}

fs.writeSync(1, 'ready\n');
while (line() !== null) {
  reached = 0;
  while (!reached) step(Array.from({ length: random(10) }, () => random(ways.length)));
  fs.writeSync(1, 'gone\n');
}
fs.writeSync(1, 'ok\n');
