function hot(rounds) {
  let sum = 0;
  for (let n = 0; n < rounds; n++) {
    sum = (sum * 31 + n) | 0;
  }
  return sum;
}
function work(milliseconds) {
  const end = Date.now() + milliseconds;
  while (Date.now() < end) hot(1000000);
}
work(500);
console.log("ready");
work(60000);
