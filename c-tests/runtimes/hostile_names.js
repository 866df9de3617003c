const names = [
  "h0_\nevil 1/2 3.4: 5 cpu-clock:\n\t00 pwned+0x0 (x)",
  "h1_</script><script>alert(1)</script>",
  "h2_" + "x".repeat(10000),
  "h3_\u202eturned\u2066\u2028",
  "h4_;pwned;b 12",
  "h5_\udcff\ud800",
  "h6_\" onmouseover=\"alert(1)'",
  "h7_]]><svg onload=alert(1)>",
  "h8_\0\x1b[31m->(x)",
];
function spin() { for (let x = 0; ; x++); }
const named = name => eval(`({ ${JSON.stringify(name)}: function (next, ...rest) { const done = next(...rest); return done; } })`)[name];
console.log("ready");
const [first, ...rest] = names.map(named);
first(...rest, spin);
