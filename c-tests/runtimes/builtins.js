// Calls of V8's builtins that call back, and of such that work for a while.
const compare = (a, b) => a - b;
const tripled = x => x * 3 + 1;
const numbers = Array.from({ length: 2000 }, (_, i) => (i * 7919) % 2003);

function outer() {
  let text = '';
  for (const number of [...numbers].sort(compare).map(tripled)) text += number.toString(36);
  for (let i = 0; i < 300; i++) text += /([a-z]+)(\d+)/.exec('hello' + i)[2];
  return text.replace(/a/g, 'b').split('c').length;
}

function turn() {
  for (let i = 0; i < 20; i++) outer();
  if (asked) { console.log('ok'); process.stdin.destroy(); } else setImmediate(turn);
}

let asked = false;
process.stdin.once('data', () => { asked = true; });
turn();
console.log('ready');
