'use strict';
// V8 inlines `burn` into the module's own function, which runs to the end. The garbage collector moves
// what describes that function meanwhile.
let sum = 0.5;

function burn(n) {
  let t = n;
  for (let i = 0; i < 300; i++) {
    t = (t * 3 + i) % 10007;
  }
  return t;
}

console.log('ready');
for (const until = Date.now() + 5000; Date.now() < until;) {
  for (let i = 0; i < 50; i++) {
    sum += burn(i);
  }
}
console.log('ok');
