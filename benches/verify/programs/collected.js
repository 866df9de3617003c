'use strict';
// Garbage, weak references, compiled functions, generators and sorts, while the collector runs and moves objects, in two workers
// besides the first thread, until stdin ends. node --expose-gc --stress-compaction --max-semi-space-size=1 collected.js
const { Worker, isMainThread, parentPort } = require('worker_threads');
let ended = false, wrong = null;

function* numbers(n) { for (let i = 0; i < n; i++) yield i; }

function work(k) {
  let nodes = Array.from({ length: 20 }, (_, n) => { const node = { n, text: 'é' + n }; node.me = node; return node; });
  const weak = new WeakMap(nodes.map(node => [node, node.n])), sum = nodes.reduce((t, node) => t + weak.get(node.me), 0);
  const made = new Function('numbers', `return function made_${k}(n) { let t = 0; for (const i of numbers(n)) t += i; return t; }`)(numbers);
  if (k % 4 === 0) gc({ type: k % 64 ? 'minor' : 'major' });
  const list = nodes.concat(nodes).sort((a, b) => b.n - a.n).map(node => node.text.length);
  return [sum, made(50), list.length, 'x'.replace(/x/, () => JSON.stringify(nodes.map(node => node.n)).length)].join();
}

function descend(depth, k) { return depth ? descend(depth - 1, k) : work(k); }

async function run() {
  for (let k = 0; !ended; k++) {
    const is = descend(k % 30, k);
    if (is !== '190,1225,40,51' && !wrong) wrong = `wrong in ${k}: ${is}`;
    if (k % 50 === 0) await new Promise(setImmediate);
  }
  return wrong || 'ok';
}

if (isMainThread) {
  const workers = [1, 2].map(() => new Worker(__filename)), outcomes = workers.map(worker => new Promise(resolve => worker.once('message', resolve)));
  process.stdin.once('close', () => { ended = true; workers.forEach(worker => worker.postMessage('end')); }).resume();
  console.log('ready');
  Promise.all([...outcomes, run()]).then(all => console.log(all.find(one => one !== 'ok') || 'ok'));
} else {
  parentPort.once('message', () => { ended = true; });
  run().then(outcome => parentPort.postMessage(outcome));
}
