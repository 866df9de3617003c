// JSON, hashing, compression, timers and hot compiled code, until ended.
const crypto = require('crypto');
const zlib = require('zlib');
const data = JSON.stringify(Array.from({ length: 500 }, (_, i) => ({ i, name: 'n' + i, list: [i, i * 2, i * 3] })));
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
function parse() { return JSON.parse(data).map((item) => item.list.reduce((a, b) => a + b, 0)).sort((a, b) => b - a); }
function digest() { return crypto.createHash('sha256').update(data.repeat(20)).digest('hex'); }
function squeeze() { return zlib.deflateSync(data).length; }
function match() { return data.match(/"name":"(n\d+7)"/g).length; }
function turn() {
  fibonacci(22); parse(); digest(); squeeze(); match();
  zlib.deflate(data, () => {});
  crypto.pbkdf2('secret', 'salt', 2000, 32, 'sha512', () => {});
  setImmediate(turn);
}
setInterval(() => {}, 5);
turn();
