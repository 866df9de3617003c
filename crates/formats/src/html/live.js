// The live page: reads lines of /live and draws; records and saves through the socket's other routes.
const token = new URLSearchParams(location.search).get("token"), FIREFOX = "https://profiler.firefox.com";
const KEEP = 600000;
let stop = null;
const ask = path => path + (token ? (path.includes("?") ? "&" : "?") + "token=" + encodeURIComponent(token) : "");
const news = text => { $("news").textContent = text; };
async function run() {
  const mine = stop = new AbortController();
  Object.assign(M, { info: {}, names: [], frames: [], parent: [0], frame: [-1], threads: [], states: [], spans: [], base: [], end: 0, start: 0 });
  Object.assign(V, { threads: new Set(), from: null, to: null, path: [], tree: null });
  running(true); news(""); $("compare").setAttribute("aria-pressed", false);
  try {
    const answer = await fetch(ask(`/live?seconds=86400&hz=${$("hz").value}&mode=${$("mode").value}`), { signal: mine.signal });
    if (!answer.ok) throw new Error((await answer.text()).split("\n")[0]);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = "", seconds = 0; ;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) { take(JSON.parse(line)); seconds++; }
      if (!lines.length || !M.frames.length) { head(); continue; }
      forget(); M.info.samples = M.spans.reduce((sum, s) => sum + s.count, 0);
      head(); root.dataset.updates = seconds;
      if (!V.tree) addressed(); else build();
    }
    news("The recording has ended.");
  } catch (error) { if (stop === mine && error.name !== "AbortError") news(`No more samples: ${error.message}`); }
  if (stop === mine) { stop = null; running(false); }
}
function forget() {
  if (M.end - M.start < KEEP * 1.1) return;
  M.start = M.end - KEEP;
  M.spans = M.spans.filter(s => s.t >= M.start);
}
function running(is) { $("run").textContent = is ? "Stop" : "Start"; $("run").setAttribute("aria-pressed", is); }
function halt() { const s = stop; stop = null; if (s) s.abort(); running(false); }
function restart() { halt(); run(); }
function base(spans, text) { M.base = spans; M.info.labels = text; $("compare").setAttribute("aria-pressed", spans.length > 0); head(); build(); }
function compare() {
  if (M.base.length) return base([], "");
  base(M.spans.map(s => ({ ...s, w: s.w * within(s) })).filter(s => s.w), "compared with " + new Date().toLocaleTimeString());
  M.spans = []; M.start = M.end; V.from = V.to = null; build();
}
// An earlier recording's stacks, by their names. It is of all threads.
function earlier(stacks, name) {
  const known = new Map(), kids = new Map(), spans = [];
  M.frames.forEach((f, i) => { if (!known.has(f.name)) known.set(f.name, i); });
  for (let i = 1; i < M.parent.length; i++) kids.set(M.parent[i] + " " + M.frames[M.frame[i]].name, i);
  for (const [names, w] of stacks) {
    let at = 0;
    for (const text of names) {
      const key = at + " " + text;
      if (!kids.has(key)) {
        if (!known.has(text)) { known.set(text, M.frames.length); M.frames.push({ name: text, kind: 0, module: "", file: "", line: 0, hue: 30, tone: hash(text) }); }
        M.parent.push(at); M.frame.push(known.get(text)); kids.set(key, M.parent.length - 1);
      }
      at = kids.get(key);
    }
    spans.push({ node: at, w });
  }
  if (spans.length) { halt(); base(spans, "compared with " + name); } else news(`${name} has no stacks that are known here.`);
}
async function opened(file) {
  const text = await file.text(), page = /<script type="application\/json" id="data">([^]*?)<\/script>/.exec(text);
  if (!page) {
    const stacks = text.split("\n").map(line => /^(.+) (\d+)$/.exec(line)).filter(Boolean).map(m => [m[1].split(";"), +m[2]]);
    // Where threads come first, what else is first here comes second.
    const first = new Set(M.frame.filter((_, i) => i && !M.parent[i]).map(f => M.frames[f].name)), known = at => stacks.filter(([names]) => first.has(names[at])).length;
    if (known(1) > known(0)) for (const [names] of stacks) names.shift();
    return earlier(stacks, file.name);
  }
  const d = JSON.parse(page[1]), paths = [[]];
  if (d.info.pid && d.info.mode !== M.info.mode) return news(`${file.name} is of ${d.info.mode === "cpu" ? "CPU" : "wall-clock"} time: choose that mode here to compare with it.`);
  each(d.nodes, 2, (n, i) => paths.push([...paths[n[i]], d.names[d.frames[n[i + 1] * 5]]]));
  const stacks = [];
  each(d.spans, d.info.stride, (s, i) => stacks.push([paths[s[i + 2]], d.info.stride > 5 ? s[i + 5] : s[i + 4]]));
  earlier(stacks, file.name);
}
function save(what) {
  const link = document.createElement("a");
  if (what === "view") {
    const lines = new Map();
    for (const s of M.spans) { const w = Math.round((M.info.mode === "cpu" ? s.w : s.count) * share(s)); if (w) { const names = []; for (let i = s.node; i; i = M.parent[i]) names.unshift(M.frames[M.frame[i]].name); const line = [M.threads[s.thread].name.replace(/[; ]/g, "_"), ...names].join(";"); lines.set(line, (lines.get(line) || 0) + w); } }
    link.href = URL.createObjectURL(new Blob([[...lines].map(([line, n]) => `${line} ${n}\n`).join("")], { type: "text/plain" }));
    link.download = "profile.folded";
  } else {
    link.href = ask(`${what}${what.includes("?") ? "&" : "?"}seconds=10&hz=${$("hz").value}&mode=${$("mode").value}`);
    link.download = ""; news("Recording 10 s…"); setTimeout(() => news(""), 11000);
  }
  link.click();
}
async function firefox() {
  // Opened at once: later, browsers would take it for an advertisement.
  const tab = open(FIREFOX + "/from-post-message/");
  if (!tab) return news("The browser did not let a new tab open.");
  news("Recording 5 s for the Firefox Profiler…");
  try {
    const answer = await fetch(ask(`/profile.json?seconds=5&hz=${$("hz").value}&mode=${$("mode").value}`));
    if (!answer.ok) throw new Error((await answer.text()).split("\n")[0]);
    const profile = await answer.json();
    const poll = setInterval(() => tab.postMessage({ name: "ready:request" }, FIREFOX), 200);
    const heard = e => {
      if (e.origin !== FIREFOX || e.source !== tab || !e.data || e.data.name !== "ready:response") return;
      clearInterval(poll); removeEventListener("message", heard); tab.postMessage({ name: "inject-profile", profile }, FIREFOX); news("");
    };
    addEventListener("message", heard);
    setTimeout(() => { clearInterval(poll); removeEventListener("message", heard); }, 60000);
  } catch (error) { news(error.message); }
}
$("run").onclick = () => stop ? halt() : run();
$("hz").onchange = $("mode").onchange = restart;
$("compare").onclick = compare;
$("earlier").onchange = e => { if (e.target.files[0]) opened(e.target.files[0]); e.target.value = ""; };
$("save").onchange = e => { const what = e.target.value; e.target.value = ""; if (what) save(what); };
$("firefox").onclick = firefox;
addEventListener("keydown", e => { if (e.key === " " && e.target === document.body) { e.preventDefault(); $("run").click(); } });
run();
