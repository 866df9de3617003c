'use strict';
// Express in two processes of node's cluster: a page, a sort, a recursion, an exception, a hash.
const cluster = require('cluster'), crypto = require('crypto'), express = require('express');

function total(depth, n) { return depth ? n % 7 + total(depth - 1, n + 1) : n; }

function rows(n) {
  const all = Array.from({ length: 60 }, (_, i) => ({ name: 'row' + i * n % 89, total: total(i % 30, n) }));
  return all.sort((a, b) => a.total - b.total || (a.name < b.name ? -1 : 1));
}

function share(n) {
  if (n % 5 === 0) throw new RangeError('zero');
  return Math.floor(n / (n % 5));
}

function serve() {
  const app = express();
  app.get('/page/:n', (request, response) => response.send('<ul>' + rows(+request.params.n).map(row => `<li>${row.name.toUpperCase()} ${row.total}</li>`).join('') + '</ul>'));
  app.get('/json/:n', async (request, response) => response.json({ rows: rows(+request.params.n).slice(0, 10), share: share(+request.params.n) }));
  app.post('/hash', express.raw({ type: '*/*' }), (request, response, next) =>
    crypto.pbkdf2(request.body, 'salt', 500, 32, 'sha256', (error, key) => error ? next(error) : response.send(key.toString('hex'))));
  app.use((error, request, response, next) => response.status(422).json({ why: error.message }));
  const server = app.listen(+process.argv[2], '127.0.0.1');
  process.once('SIGTERM', () => { server.close(() => process.exit(0)); server.closeAllConnections(); });
}

if (cluster.isPrimary) {
  const workers = [1, 2].map(() => cluster.fork());
  let left = workers.length, status = 0;
  process.once('SIGTERM', () => workers.forEach(worker => worker.process.kill('SIGTERM')));
  cluster.on('exit', (_, code, signal) => { status ||= signal ? 1 : code; if (--left === 0) process.exit(status); });
} else {
  serve();
}
