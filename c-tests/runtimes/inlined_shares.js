'use strict';
// V8 inlines all of these functions into `outer`. `three` does three times what `one` does, on other
// lines. V8's own profiler runs at the same time; at the end the program says how many of its samples
// were on the lines of each function.
const { Session } = require('inspector');

function three(n) {
  let t = n;
  for (let i = 0; i < 3000; i++) {
    t = (t * 31 + i) & 0xffff;
  }
  return t;
}

function one(n) {
  let t = n;
  for (let i = 0; i < 1000; i++) {
    t = (t * 31 + i) & 0xffff;
  }
  return t;
}

function middle(n) {
  return three(n) + one(n);
}

function outer(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) {
    sum = (sum + middle(i)) & 0xffff;
  }
  return sum;
}

const lines = { three: [7, 13], one: [15, 21], middle: [23, 25], outer: [27, 33] };
const profiler = new Session();
let asked = false, total = 0;
process.stdin.once('data', () => { asked = true; });

function work() {
  for (const until = Date.now() + 20; Date.now() < until;) total += outer(100);
  if (!asked) return setImmediate(work);
  profiler.post('Profiler.stop', (why, { profile }) => {
    const ticks = { three: 0, one: 0, middle: 0, outer: 0 };
    const of = profile.nodes.filter(node => node.callFrame.url.endsWith('inlined_shares.js'));
    for (const { line, ticks: count } of of.flatMap(node => node.positionTicks || [])) {
      const name = Object.keys(lines).find(name => lines[name][0] <= line && line <= lines[name][1]);
      if (name) ticks[name] += count;
    }
    console.log('ticks ' + Object.values(ticks).join(' '));
    console.log(total >= 0 ? 'ok' : 'wrong');
    process.stdin.destroy();
  });
}

profiler.connect();
profiler.post('Profiler.enable');
profiler.post('Profiler.setSamplingInterval', { interval: 1000 });
for (let i = 0; i < 300; i++) total += outer(30);
profiler.post('Profiler.start', () => { console.log('ready'); setImmediate(work); });
