"use strict";
// A flame graph with its threads over time. Data comes in batches of columns (columns.rs); nothing is fetched.
const $ = id => document.getElementById(id), root = document.documentElement;
const GROUPS = ["running", "waiting for a CPU", "blocked"], TINTS = ["--hot", "--wait", "--idle"];
// Kinds of code (category.rs), each with its hue, saturation and lightness. The first two have hues around that of their module.
const CLASSES = [["native", 0, 88, 67], ["inlined", 4, 72, 79], ["JIT", 146, 45, 62], ["interpreter", 268, 58, 74], ["waiting", 208, 26, 74], ["remark", 30, 5, 80],
  ["Python", 232, 62, 76], ["Perl", 186, 48, 70], ["PHP", 318, 44, 76], ["Ruby", 352, 62, 76], ["JavaScript", 66, 62, 62], ["Java", 104, 48, 66]];
const ROW = 19, GAP = 1, LABEL = 150, LANE = 15, SUM = 40;
// What is recorded. Nodes are numbered so that a parent comes before its children; 0 is the root.
const M = { info: {}, names: [], frames: [], parent: [0], frame: [-1], threads: [], states: [], spans: [], base: [], start: 0, end: 0 };
// What is looked at.
const V = { invert: false, top: false, by: "self", query: null, hits: null, threads: new Set(), off: new Set(), from: null, to: null,
  zoom: null, path: [], focus: null, hover: null, a: 0, b: 1, tree: null, lane: -1 };

function each(list, stride, use) { for (let i = 0; list && i + stride <= list.length; i += stride) use(list, i); }
function take(batch) {
  Object.assign(M.info, batch.info);
  for (const name of batch.names || []) M.names.push(name);
  each(batch.frames, 5, (f, i) => M.frames.push({ name: M.names[f[i]], kind: f[i + 1], module: M.names[f[i + 2]], file: M.names[f[i + 3]], line: f[i + 4], hue: hue(M.names[f[i + 2]]), tone: hash(M.names[f[i]]) }));
  each(batch.nodes, 2, (n, i) => { M.parent.push(n[i]); M.frame.push(n[i + 1]); });
  each(batch.threads, 2, (t, i) => M.threads.push({ tid: t[i], name: t[i + 1] }));
  each(batch.states, 2, (s, i) => M.states.push({ group: s[i], text: s[i + 1] }));
  spans(batch.spans, M.spans);
  spans(batch.base, M.base);
}
// A span: when (ms), thread, node, state, samples, and its nanoseconds unless they are those of its samples.
function spans(list, into) {
  const own = M.info.stride > 5, ms = M.info.interval_ns / 1e6;
  each(list, M.info.stride, (s, i) => {
    const span = { t: s[i], thread: s[i + 1], node: s[i + 2], group: M.states[s[i + 3]].group, count: s[i + 4], w: own ? s[i + 5] : s[i + 4] * M.info.interval_ns };
    span.u = span.t + (M.info.period || (M.info.mode === "cpu" ? 1 : span.count) * ms);
    if (span.u > M.end) M.end = span.u;
    into.push(span);
  });
}
function hash(text) { let h = 7; for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) >>> 0; return (h % 997) / 997; }
function hue(module) { return 14 + hash(module.slice(module.lastIndexOf("/") + 1)) * 34; }

// Which share of a span is looked at.
const share = s => shown(s) ? within(s) : 0, shown = s => !V.off.has(s.group) && (!V.threads.size || V.threads.has(s.thread));
function within(s) {
  if (V.from === null) return 1;
  return Math.max(0, Math.min(s.u, V.to) - Math.max(s.t, V.from)) / (s.u - s.t || 1);
}
function build() {
  const n = M.parent.length, self = new Float64Array(n), base = new Float64Array(n);
  let count = 0, sum = 0, before = 0;
  for (const s of M.spans) { const part = share(s); if (part) { self[s.node] += s.w * part; sum += s.w * part; count += s.count * part; } }
  for (const s of M.base) if (shown(s)) { base[s.node] += s.w; before += s.w; }
  // The earlier recording counts as much as the later one, however long it was.
  if (before) for (let i = 0; i < n; i++) base[i] *= (sum || 1) / before;
  const diff = before > 0, top = { f: -1, w: sum, s: 0, b: diff ? sum : 0, p: null, kids: [], d: 0, x: 0 };
  if (V.invert) inverted(top, self, base); else straight(top, self, base);
  V.tree = top; V.count = count;
  if (M.diff !== diff) { M.diff = diff; head(); }
  top.w = sum || (diff ? top.b : 0);
  place(top);
  // The zoom stays where it was, by its names.
  let at = top;
  for (const f of V.path) { const kid = at.kids.find(k => k.f === f); if (!kid) break; at = kid; }
  V.zoom = at; V.focus = V.hover = null;
  show();
}
function straight(top, self, base) {
  const n = self.length, w = self.slice(), b = base.slice(), nodes = new Array(n);
  for (let i = n - 1; i > 0; i--) { w[M.parent[i]] += w[i]; b[M.parent[i]] += b[i]; }
  nodes[0] = top;
  for (let i = 1; i < n; i++) {
    if (!w[i] && !b[i]) continue;
    const p = nodes[M.parent[i]], node = { f: M.frame[i], w: w[i], s: self[i], b: b[i], p, kids: [], d: p.d + 1, x: 0 };
    nodes[i] = node; p.kids.push(node);
  }
  for (const node of nodes) if (node) node.kids.sort((a, b) => M.frames[a.f].name < M.frames[b.f].name ? -1 : 1);
}
function inverted(top, self, base) {
  const all = [top];
  top.map = new Map();
  for (let i = 1; i < self.length; i++) {
    if (!self[i] && !base[i]) continue;
    let at = top;
    for (let j = i; j; j = M.parent[j]) {
      let kid = at.map.get(M.frame[j]);
      if (!kid) { kid = { f: M.frame[j], w: 0, s: 0, b: 0, p: at, kids: [], d: at.d + 1, x: 0, map: new Map() }; at.map.set(M.frame[j], kid); at.kids.push(kid); all.push(kid); }
      kid.w += self[i]; kid.b += base[i];
      if (at === top) kid.s += self[i];
      at = kid;
    }
  }
  for (const node of all) node.kids.sort((a, b) => b.w - a.w);
}
function place(top) {
  const todo = [top];
  for (let node; node = todo.pop();) { let x = node.x; for (const kid of node.kids) { kid.x = x; x += kid.w; todo.push(kid); } }
}

// Drawing.
const style = name => getComputedStyle(root).getPropertyValue(name).trim();
const wish = matchMedia("(prefers-color-scheme:dark)"), isDark = () => root.classList.contains("dark"), dress = dark => { root.classList.toggle("dark", dark); lanes(); draw(); };
const FONT = "px system-ui,sans-serif";
function color(node, dark) {
  if (node.f < 0) return dark ? "#3a3633" : "#e4ded7";
  const f = M.frames[node.f];
  if (M.diff) {
    const grown = (node.w - node.b) / Math.max(node.w, node.b, 1), amount = Math.min(1, Math.abs(grown) * 1.2);
    if (amount < .04) return dark ? "#3d3a37" : "#e9e5e0";
    return `hsl(${grown > 0 ? 8 : 214} ${40 + 45 * amount}% ${dark ? 30 + 22 * amount : 90 - 28 * amount}%)`;
  }
  return tint(f.kind, f.hue, f.tone, dark);
}
function tint(kind, hue, tone, dark) {
  const [, own, s, l] = CLASSES[kind];
  return `hsl(${kind < 2 ? hue + own : own} ${dark ? s * .68 : s}% ${(dark ? l * .62 : l) + (tone - .5) * 8}%)`;
}
function fit(canvas, height) {
  const width = canvas.parentElement.clientWidth - (canvas.id === "flame" ? parseFloat(getComputedStyle(canvas.parentElement).paddingLeft) * 2 : 0), ratio = devicePixelRatio || 1;
  canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = height + "px";
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  return [g, width];
}
function deepest(width) {
  let most = 0; const least = V.tree.w * (V.b - V.a) / width * .5, todo = [V.zoom];
  for (let n; n = todo.pop();) { most = Math.max(most, n.d); for (const kid of n.kids) if (kid.w > least) todo.push(kid); }
  return most;
}
function draw() {
  if (!V.tree) return;
  const canvas = $("flame"), wide = canvas.parentElement.clientWidth || 1000;
  const [g, width] = fit(canvas, (deepest(wide) + 1) * ROW + 6), dark = isDark(), total = V.tree.w || 1, scale = width / (V.b - V.a);
  const ink = dark ? "#fdf8f2" : "#2a1d12", shade = style("--shade"), hit = style("--hit"), accent = style("--ink");
  g.font = 12 + FONT; g.textBaseline = "middle";
  const todo = [V.tree];
  let boxes = 0;
  for (let node; node = todo.pop();) {
    const x = (node.x / total - V.a) * scale, w = node.w / total * scale;
    if (w < .4 || x + w < 0 || x > width) continue;
    const left = Math.max(0, x), right = Math.min(width, x + w), y = node.d * ROW, box = Math.max(right - left - (w > 2 ? GAP : 0), .4);
    const match = V.hits && node.f >= 0 && V.hits[node.f];
    g.fillStyle = match ? hit : color(node, dark);
    g.fillRect(left, y, box, ROW - GAP);
    boxes++;
    if (node.f >= 0 && M.frames[node.f].kind === 1 && box > 4) { g.fillStyle = dark ? "rgba(255,255,255,.35)" : "rgba(150,60,0,.4)"; g.fillRect(left, y, 2, ROW - GAP); }
    if (node.d < V.zoom.d || V.hits && !match) { g.fillStyle = shade; g.fillRect(left, y, box, ROW - GAP); }
    if (node === V.focus || node === V.hover) { g.strokeStyle = accent; g.lineWidth = 1.5; g.strokeRect(left + .75, y + .75, Math.max(box - 1.5, 1), ROW - GAP - 1.5); }
    if (box > 26) {
      const text = cut(g, node.f < 0 ? whole() : M.frames[node.f].name, box - 8);
      g.fillStyle = match ? "#fff" : ink; g.fillText(text, left + 5, y + ROW / 2);
    }
    for (const kid of node.kids) todo.push(kid);
  }
  canvas.dataset.boxes = boxes;
}
function cut(g, text, room) {
  const letters = Math.floor(room / 6);
  if (g.measureText(text).width <= room) return text;
  let n = Math.min(text.length, letters);
  while (n > 0 && g.measureText(text.slice(0, n) + "…").width > room) n--;
  return n > 1 ? text.slice(0, n) + "…" : "";
}
let moving = 0;
function zoom(node) {
  V.zoom = node; V.path = [];
  for (let n = node; n.p; n = n.p) V.path.unshift(n.f);
  remember();
  const total = V.tree.w || 1, from = [V.a, V.b], to = [node.x / total, (node.x + node.w) / total || 1], began = performance.now(), me = ++moving;
  const step = now => {
    if (me !== moving) return;
    const t = matchMedia("(prefers-reduced-motion:reduce)").matches || document.hidden ? 1 : Math.min(1, (now - began) / 160), e = 1 - (1 - t) ** 3;
    V.a = from[0] + (to[0] - from[0]) * e; V.b = from[1] + (to[1] - from[1]) * e;
    draw();
    if (t < 1) requestAnimationFrame(step);
  };
  step(began + (to[1] > to[0] ? 0 : 999));
  crumbs();
}
// Texts.
const whole = () => M.diff ? "all, after" : V.threads.size === 1 ? M.threads[[...V.threads][0]].name : "all";
const percent = x => (100 * x).toFixed(x < .0995 ? 2 : 1) + "%";
function time(ns) { return ns >= 1e9 ? (ns / 1e9).toFixed(2) + " s" : ns >= 1e6 ? (ns / 1e6).toFixed(1) + " ms" : (ns / 1e3).toFixed(0) + " µs"; }
const place_of = f => [f.kind > 5 ? "" : f.module, f.file && f.file + (f.line ? ":" + f.line : "")].filter(Boolean).join(" · ");
function told(node) {
  const total = V.tree.w || 1, now = percent(node.w / total) + (M.info.whole ? "" : " · " + time(node.w)) + (node.s ? ` · self ${percent(node.s / total)}` : "");
  return M.diff ? `${now} · before ${percent(node.b / total)} (${node.w >= node.b ? "+" : "−"}${percent(Math.abs(node.w - node.b) / total)})` : now;
}
function detail(node) {
  const text = $("detail");
  if (!node) { text.textContent = M.info.whole || `${Math.round(V.count).toLocaleString()} samples · ${time(V.tree ? V.tree.w : 0)}`; return; }
  text.textContent = node.f < 0 ? `${whole()} · ${told(node)}` : [M.frames[node.f].name, told(node), CLASSES[M.frames[node.f].kind][0], place_of(M.frames[node.f])].filter(Boolean).join(" · ");
}
function crumbs() {
  const bar = $("crumbs"), line = [];
  for (let n = V.zoom; n; n = n.p) line.unshift(n);
  bar.textContent = "";
  const shown = line.length > 7 ? [line[0], null, ...line.slice(-5)] : line;
  for (const n of shown) {
    if (!n) { bar.append(" … "); continue; }
    const item = document.createElement(n === V.zoom ? "b" : "button");
    item.textContent = n.f < 0 ? whole() : M.frames[n.f].name;
    if (n !== V.zoom) item.onclick = () => zoom(n);
    if (n.p) bar.append(" › ");
    bar.append(item);
  }
}
function search(text) {
  let regex = null;
  if (text) try { regex = new RegExp(text, "i"); } catch { regex = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i"); }
  V.query = regex;
  V.hits = regex && M.frames.map(f => regex.test(f.name));
  matched();
}
function matched() {
  if (V.query && V.hits.length < M.frames.length) V.hits = M.frames.map(f => V.query.test(f.name));
  let sum = 0;
  const todo = V.hits && V.tree ? [V.tree] : [];
  for (let n; n = todo.pop();) if (n.f >= 0 && V.hits[n.f]) sum += n.w; else todo.push(...n.kids);
  $("matched").textContent = V.hits && V.tree ? percent(sum / (V.tree.w || 1)) : "";
}
function table() {
  const by = new Map(), open = new Map(), todo = [[V.zoom, 0]];
  // Depth first with an end for each node: a function inside itself counts once.
  for (let item; item = todo.pop();) {
    const [node, end] = item, f = node.f;
    if (end) { open.set(f, open.get(f) - 1); continue; }
    if (f >= 0) {
      const row = by.get(f) || { f, self: 0, total: 0 }; by.set(f, row);
      row.self += node.s;
      if (!open.get(f)) row.total += node.w;
      open.set(f, (open.get(f) || 0) + 1); todo.push([node, 1]);
    }
    for (const kid of node.kids) todo.push([kid, 0]);
  }
  let rows = [...by.values()].sort((a, b) => b[V.by] - a[V.by]);
  if (V.hits) rows = rows.filter(r => V.hits[r.f]);
  const body = $("table").tBodies[0], total = V.tree.w || 1;
  body.textContent = "";
  for (const r of rows.slice(0, 200)) {
    const line = body.insertRow(), f = M.frames[r.f];
    for (const x of [r.self, r.total]) { const cell = line.insertCell(); cell.textContent = percent(x / total); cell.style.backgroundSize = 86 * x / total + "% 3px"; }
    const name = line.insertCell(); name.textContent = f.name; name.onclick = () => { $("search").value = "^" + f.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$"; toggle("top", false); changed(); };
    line.insertCell().textContent = f.module.slice(f.module.lastIndexOf("/") + 1);
  }
  for (const b of document.querySelectorAll("[data-by]")) b.dataset.by === V.by ? b.parentElement.setAttribute("aria-sort", "descending") : b.parentElement.removeAttribute("aria-sort");
}

// Threads over time: the sum of all, and a lane of heat each.
let order = [];
function lanes() {
  const canvas = $("lanes"), from = M.start, span = M.end - from || 1, used = new Map();
  for (const s of M.spans) { const u = used.get(s.thread) || [0, 0]; u[s.group ? 1 : 0] += s.w; used.set(s.thread, u); }
  order = [...used.keys()].sort((a, b) => used.get(b)[0] - used.get(a)[0] || used.get(b)[1] - used.get(a)[1]).slice(0, 300);
  const place = new Map(order.map((t, i) => [t, i]));
  const [g, width] = fit(canvas, SUM + order.length * LANE + 4), room = Math.max(width - LABEL - 8, 50), bins = Math.max(20, Math.floor(room / 3)), step = span / bins;
  const sum = GROUPS.map(() => new Float64Array(bins)), heat = order.map(() => [new Float64Array(bins), new Float64Array(bins), new Float64Array(bins)]);
  for (const s of M.spans) {
    if (V.off.has(s.group)) continue;
    const first = Math.max(0, Math.floor((s.t - from) / step)), last = Math.min(bins - 1, Math.floor((s.u - from - 1e-9) / step)), row = heat[place.get(s.thread)], rate = s.w / (s.u - s.t || 1);
    for (let i = first; i <= last; i++) {
      const part = rate * Math.max(0, Math.min(s.u - from, (i + 1) * step) - Math.max(s.t - from, i * step));
      sum[s.group][i] += part; if (row) row[s.group][i] += part;
    }
  }
  const tints = TINTS.map(style), ink = style("--ink"), soft = style("--soft"), line = style("--line");
  let most = 1; for (let i = 0; i < bins; i++) most = Math.max(most, sum[0][i] + sum[1][i] + sum[2][i]);
  const bin = room / bins, x0 = LABEL;
  g.font = 11 + FONT; g.textBaseline = "middle";
  for (let i = 0; i < bins; i++) {
    let y = SUM - 2;
    for (let k = 0; k < 3; k++) { const h = sum[k][i] / most * (SUM - 8); g.fillStyle = tints[k]; g.globalAlpha = k === 2 ? .55 : 1; g.fillRect(x0 + i * bin, y - h, bin + .3, h); y -= h; }
  }
  g.globalAlpha = 1; g.fillStyle = soft; g.fillText(`${order.length} thread${order.length === 1 ? "" : "s"}`, 10, SUM / 2);
  // How much a thread can do in a bin.
  const can = step * 1e6;
  order.forEach((t, r) => {
    const y = SUM + r * LANE, on = !V.threads.size || V.threads.has(t);
    if (r === V.lane) { g.fillStyle = line; g.fillRect(0, y, width, LANE); }
    g.globalAlpha = on ? 1 : .35; g.fillStyle = V.threads.has(t) ? style("--accent") : ink;
    g.fillText(cut(g, M.threads[t].name, LABEL - 22), 10, y + LANE / 2);
    for (let i = 0; i < bins; i++) {
      let left = LANE - 3;
      for (let k = 0; k < 3; k++) {
        const part = Math.min(1, heat[r][k][i] / can);
        if (part < .004) continue;
        g.fillStyle = tints[k];
        g.globalAlpha = (on ? 1 : .3) * (k === 2 ? .28 : .3 + .7 * part);
        const h = k === 2 ? left : Math.max(2, (LANE - 3) * part);
        g.fillRect(x0 + i * bin, y + 1 + left - h, bin + .3, h); left = Math.max(0, left - h);
      }
    }
    g.globalAlpha = 1;
  });
  if (V.from !== null) {
    const a = x0 + (V.from - from) / span * room, b = x0 + (V.to - from) / span * room, h = SUM + order.length * LANE;
    g.fillStyle = style("--shade"); g.fillRect(x0, 0, a - x0, h); g.fillRect(b, 0, x0 + room - b, h);
    g.fillStyle = style("--accent"); g.fillRect(a - 1, 0, 2, h); g.fillRect(b - 1, 0, 2, h);
  }
  lanes.at = x => from + Math.max(0, Math.min(1, (x - x0) / room)) * span;
  $("range").textContent = V.from === null ? `${(from / 1000).toFixed(0)} – ${(M.end / 1000).toFixed(1)} s` : `${(V.from / 1000).toFixed(2)} – ${(V.to / 1000).toFixed(2)} s`;
  $("clear").hidden = V.from === null && !V.threads.size && !V.off.size;
}
function states() {
  const sums = [0, 0, 0], bar = $("states");
  for (const s of M.spans) sums[s.group] += s.w;
  const all = sums[0] + sums[1] + sums[2] || 1;
  bar.textContent = "";
  GROUPS.forEach((text, group) => {
    if (!sums[group] && group) return;
    const button = document.createElement("button"), dot = document.createElement("i");
    dot.style.background = `var(${TINTS[group]})`; button.append(dot, `${text} ${percent(sums[group] / all)}`);
    button.dataset.group = group;
    button.setAttribute("aria-pressed", !V.off.has(group));
    button.onclick = () => { V.off.has(group) ? V.off.delete(group) : V.off.add(group); changed(); bar.querySelector(`[data-group="${group}"]`).focus(); };
    bar.append(button);
  });
}
function show() {
  const total = V.tree.w || 1, empty = !V.tree.kids.length;
  moving++; V.a = V.zoom.x / total; V.b = (V.zoom.x + V.zoom.w) / total || 1;
  if (V.b <= V.a) { V.a = 0; V.b = 1; }
  $("empty").hidden = !empty;
  $("empty").textContent = M.info.empty || (M.spans.length ? "Nothing is left: show all threads, states and times again." : "No samples yet.");
  $("flame").hidden = V.top || empty; $("table").hidden = !V.top || empty;
  for (const id of ["invert", "top"]) $(id).setAttribute("aria-pressed", V[id]);
  states(); lanes(); matched(); crumbs(); detail(null);
  if (V.top) table(); else draw();
}
// Something that is looked at has changed: draw it, and remember it in the address.
function changed() { search($("search").value); remember(); build(); }
function remember() {
  const p = new URLSearchParams();
  if (V.query) p.set("q", $("search").value);
  if (V.threads.size) p.set("t", [...V.threads].map(t => M.threads[t].tid).join());
  if (V.off.size) p.set("off", [...V.off].join());
  if (V.invert) p.set("i", 1);
  if (V.top) p.set("top", V.by);
  if (V.from !== null) p.set("at", `${Math.round(V.from)}-${Math.round(V.to)}`);
  if (V.path.length) p.set("zoom", M.frames[V.path.at(-1)].name);
  try { history.replaceState(null, "", "#" + p); } catch { /* a page without an address */ }
}
function addressed() {
  const p = new URLSearchParams(location.hash.slice(1)), tids = (p.get("t") || "").split(",").filter(Boolean).map(Number);
  $("search").value = p.get("q") || "";
  M.threads.forEach((t, i) => { if (tids.includes(t.tid)) V.threads.add(i); });
  for (const g of (p.get("off") || "").split(",").filter(Boolean)) V.off.add(+g);
  V.invert = p.has("i"); V.top = p.has("top"); V.by = p.get("top") === "total" ? "total" : "self";
  const at = /^(\d+)-(\d+)$/.exec(p.get("at") || ""); if (at) { V.from = +at[1]; V.to = +at[2]; }
  search($("search").value); build();
  const wanted = p.get("zoom"), todo = wanted ? [V.tree] : [];
  let best = null;
  for (let n; n = todo.pop();) { if (n.f >= 0 && M.frames[n.f].name === wanted && (!best || n.w > best.w)) best = n; todo.push(...n.kids); }
  if (best) zoom(best);
}
function toggle(what, on = !V[what]) { V[what] = on; if (what === "invert") V.path = []; changed(); }
const theme = () => dress(!isDark());
function everything() { V.threads.clear(); V.off.clear(); V.from = V.to = null; changed(); }

// Hands.
function under(event) {
  const box = $("flame").getBoundingClientRect(), depth = Math.floor((event.clientY - box.top) / ROW);
  const x = (V.a + (event.clientX - box.left) / box.width * (V.b - V.a)) * V.tree.w;
  let at = V.tree;
  while (at && at.d < depth) at = at.kids.find(kid => x >= kid.x && x < kid.x + kid.w);
  return at;
}
function tip(event, node) {
  const box = $("tip");
  box.hidden = !node;
  if (!node) return;
  const f = node.f < 0 ? null : M.frames[node.f], b = document.createElement("b"), more = document.createElement("span");
  b.textContent = f ? f.name : whole(); more.textContent = f ? [CLASSES[f.kind][0], place_of(f)].filter(Boolean).join(" · ") : "";
  box.replaceChildren(b, told(node), document.createElement("br"), more);
  box.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8)) + "px";
  box.style.top = (event.clientY + 24 + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 12 : event.clientY + 18) + "px";
}
function focus(node) { if (!node) return; V.focus = node; draw(); detail(node); }
function walk(key) {
  const at = V.focus || V.zoom, kids = at.p ? at.p.kids : [at], i = kids.indexOf(at), biggest = list => list.reduce((a, b) => b.w > a.w ? b : a, list[0]);
  focus(key === "ArrowDown" ? biggest(at.kids) : key === "ArrowUp" ? at.p : kids[i + (key === "ArrowLeft" ? -1 : 1)]);
}
function hands() {
  const flame = $("flame"), lane = $("lanes");
  flame.onmousemove = e => { const node = under(e); if (node !== V.hover) { V.hover = node; draw(); detail(node); } tip(e, node); };
  flame.onmouseleave = () => { V.hover = null; tip(null, null); draw(); detail(V.focus); };
  flame.onclick = e => { const node = under(e); if (node) { tip(null, null); zoom(node); } };
  flame.onkeydown = e => {
    if (/^Arrow/.test(e.key)) { e.preventDefault(); walk(e.key); }
    if (e.key === "Enter" && V.focus) zoom(V.focus);
  };
  let start = null;
  const x = e => e.clientX - lane.getBoundingClientRect().left, row = e => Math.floor((e.clientY - lane.getBoundingClientRect().top - SUM) / LANE);
  const only = (r, more) => {
    const t = order[r]; if (t === undefined) return;
    const had = V.threads.has(t);
    if (!more) V.threads.clear();
    had ? V.threads.delete(t) : V.threads.add(t);
    changed();
  };
  lane.onpointerdown = e => { start = { x: x(e), moved: false }; lane.setPointerCapture(e.pointerId); };
  lane.onpointermove = e => {
    if (!start) { const r = row(e); if (r !== V.lane) { V.lane = order[r] === undefined ? -1 : r; lanes(); lane.title = V.lane < 0 ? "" : `${M.threads[order[V.lane]].name} (${M.threads[order[V.lane]].tid})`; } return; }
    if (Math.abs(x(e) - start.x) > 4 && x(e) > LABEL - 8) start.moved = true;
    if (start.moved) { const a = lanes.at(start.x), b = lanes.at(x(e)); V.from = Math.min(a, b); V.to = Math.max(a, b); lanes(); }
  };
  lane.onpointerup = e => { const s = start; start = null; if (s && s.moved) changed(); else if (s) only(row(e), e.shiftKey); };
  lane.onpointerleave = () => { if (!start && V.lane >= 0) { V.lane = -1; lanes(); } };
  lane.onkeydown = e => {
    const step = M.end / 20;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { V.lane = Math.max(0, Math.min(order.length - 1, V.lane + (e.key === "ArrowDown" ? 1 : -1))); lanes(); if (order[V.lane] !== undefined) $("detail").textContent = M.threads[order[V.lane]].name; }
    else if (e.key === "Enter" || e.key === " ") only(V.lane, e.shiftKey);
    else if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
      const by = e.key === "ArrowRight" ? step : -step;
      if (V.from === null) { V.from = 0; V.to = step; } else { if (!e.shiftKey) V.from = Math.max(0, V.from + by); V.to = Math.min(M.end, Math.max(V.from + step / 2, V.to + by)); }
      changed();
    } else return;
    e.preventDefault();
  };
  $("search").oninput = () => changed();
  $("invert").onclick = () => toggle("invert"); $("top").onclick = () => toggle("top"); $("theme").onclick = theme; $("clear").onclick = everything;
  $("help").onclick = () => $("keys").showModal();
  for (const b of document.querySelectorAll("[data-by]")) b.onclick = () => { V.by = b.dataset.by; changed(); };
  addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || $("keys").open) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
    if (e.key === "Escape") {
      if (typing && $("search").value) { $("search").value = ""; changed(); } else if (typing) e.target.blur();
      else if (V.zoom && V.zoom.p) zoom(V.zoom.p); else if (V.query) { $("search").value = ""; changed(); } else everything();
    }
    if (typing) return;
    if (e.key === "/") { e.preventDefault(); $("search").focus(); $("search").select(); }
    const press = { i: () => toggle("invert"), t: () => toggle("top"), d: theme, "?": () => $("keys").showModal() }[e.key];
    if (press) press();
  });
  let last = 0;
  addEventListener("resize", () => { if (V.tree && innerWidth !== last) { last = innerWidth; lanes(); draw(); } });
  wish.onchange = () => dress(wish.matches);
  if (wish.matches) root.classList.add("dark");
}
function head() {
  const i = M.info;
  const process = i.pid ? `${i.process} (${i.pid})` : i.process;
  document.title = $("title").textContent = i.title || process;
  $("about").textContent = [i.title && i.process && process, i.whole || (i.mode === "cpu" ? "CPU time" : "wall clock"), i.when, i.seconds && i.seconds + " s", i.samples && `${i.samples.toLocaleString()} samples`, i.labels].filter(Boolean).join(" · ");
  $("stats").textContent = i.stats || "";
  document.querySelector(".time").hidden = !!i.still;
  const legend = $("legend"); legend.textContent = "";
  (M.diff ? [["#e5533d", "more than before"], ["#5a8fd8", "less"]] : CLASSES.map(([text], kind) => [tint(kind, 26, .5, isDark()), text]).filter((_, kind) => M.frames.some(f => f.kind === kind))).forEach(([c, text]) => { const item = document.createElement("span"), dot = document.createElement("i"); dot.style.background = c; item.append(dot, text); legend.append(item); });
}
hands();
