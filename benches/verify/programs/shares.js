'use strict';
const cpu = () => { const { user, system } = process.cpuUsage(); return user + system; };
function work(n) { let t = 0; for (let i = 0; i < n; i++) t = (t * 31 + i) % 65521; return t; }
function a() { return work(200000); }
function b() { return work(400000); }
function c() { return work(1000000); }
const used = { a: 0, b: 0, c: 0 }, end = Date.now() + 1000 * process.argv[2];
let rounds = 0;
for (; Date.now() < end; rounds++) {
  for (const f of [a, b, c]) { const t = cpu(); f(); used[f.name] += cpu() - t; }
}
console.log(JSON.stringify([used, rounds, cpu() / 1e6]));
