// Children, workers, timers, HTTP and files in node: every line must be the same whoever looks.
const { spawn, spawnSync, execFile, fork } = require('child_process');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const http = require('http'), crypto = require('crypto'), fs = require('fs'), os = require('os'), path = require('path'), zlib = require('zlib');
const hash = text => crypto.createHash('sha256').update(text).digest('hex').slice(0, 16);
if (!isMainThread) {
  let value = workerData;
  for (let i = 0; i < 3e6; i++) value = (Math.imul(value, 1103515245) + 12345) >>> 0;
  parentPort.postMessage(value);
} else if (process.argv[2] === 'child') {
  process.on('message', m => { process.send(m * 2); if (m === 19) process.disconnect(); });
} else main();
async function main() {
  const worker = n => new Promise((yes, no) => new Worker(__filename, { workerData: n }).on('message', yes).on('error', no));
  for (let turn = 0; turn < 3; turn++) console.log(`workers ${turn}: ${await Promise.all([1, 2, 3, 4].map(worker))}`);
  const run = n => new Promise((yes, no) => execFile('/bin/sh', ['-c', `echo ${n}; exit ${n % 3}`], (e, out) => yes(out.trim() + '/' + (e ? e.code : 0))));
  const outputs = [];
  for (let turn = 0; turn < 15; turn++) outputs.push(...await Promise.all([...Array(10).keys()].map(n => run(turn * 10 + n))));
  console.log(`children: ${hash(outputs.join())}`);
  console.log(`spawnSync: ${[...Array(20).keys()].map(n => spawnSync('/bin/sh', ['-c', `exit ${n}`]).status)}`);
  const killed = await new Promise(yes => { const c = spawn('sleep', ['30']); c.on('exit', (code, signal) => yes(`${code} ${signal}`)); setTimeout(() => c.kill('SIGTERM'), 50); });
  console.log(`killed: ${killed}`);
  const talk = await new Promise(yes => { const c = fork(__filename, ['child']); let sum = 0; c.on('message', m => sum += m); c.on('exit', code => yes(`${sum} ${code}`)); for (let i = 0; i < 20; i++) c.send(i); });
  console.log(`talked to: ${talk}`);
  let fired = 0, early = 0;
  await Promise.all([...Array(400).keys()].map(n => new Promise(yes => { const due = 5 + n % 50, began = performance.now(); setTimeout(() => { fired++; if (performance.now() - began < due - 1.5) early++; yes(); }, due); })));
  let ticks = 0; await new Promise(yes => { const t = setInterval(() => { if (++ticks === 200) { clearInterval(t); yes(); } }, 2); });
  console.log(`timers: ${fired} ${early} ${ticks}`);
  let signals = 0; process.on('SIGUSR2', () => signals++); const urgent = []; process.on('SIGWINCH', () => urgent.push(1));
  for (let i = 0; i < 50; i++) { const before = signals; process.kill(process.pid, 'SIGUSR2'); while (signals === before) await new Promise(setImmediate); }
  console.log(`signals: ${signals}`);
  const server = http.createServer((request, answer) => { let size = 0; request.on('data', d => size += d.length).on('end', () => answer.end(`${request.url} ${size} ` + 'y'.repeat(20000))); });
  await new Promise(yes => server.listen(0, '127.0.0.1', yes));
  const get = n => new Promise((yes, no) => { const r = http.request({ port: server.address().port, path: `/${n}`, method: 'POST' }, a => { let t = ''; a.on('data', d => t += d).on('end', () => yes(t)); }); r.on('error', no); r.end('z'.repeat(n * 10)); });
  let all = ''; for (let turn = 0; turn < 40; turn++) all += (await Promise.all([...Array(10).keys()].map(n => get(turn * 10 + n)))).join();
  server.close(); server.closeAllConnections();
  console.log(`HTTP: ${all.length} ${hash(all)}`);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'swipr-loops-'));
  await Promise.all([...Array(100).keys()].map(n => fs.promises.writeFile(path.join(folder, `${n}`), 'w'.repeat(n * 100))));
  const sizes = await Promise.all([...Array(100).keys()].map(async n => (await fs.promises.stat(path.join(folder, `${n}`))).size));
  fs.rmSync(folder, { recursive: true });
  console.log(`files: ${sizes.reduce((a, b) => a + b)}`);
  const packed = await Promise.all([...Array(30).keys()].map(n => new Promise((yes, no) => zlib.gzip('abc'.repeat(50000 + n), (e, b) => e ? no(e) : zlib.gunzip(b, (e, t) => e ? no(e) : yes(t.length))))));
  console.log(`zlib: ${packed.reduce((a, b) => a + b)}`);
}
