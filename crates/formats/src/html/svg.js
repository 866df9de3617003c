"use strict";
// Zoom and search in an SVG flame graph. What is drawn is there without this.
const all = [...document.querySelectorAll("#frames g")], note = document.getElementById("note"), W = 1180, X = 10;
for (const g of all) { const r = g.firstElementChild.nextElementSibling; g.r = r; g.t = r.nextElementSibling; g.x = +r.getAttribute("x"); g.w = +r.getAttribute("width"); g.y = +r.getAttribute("y"); g.n = g.dataset.n || g.t.textContent; }
let at = all[0], query = null;
function zoom(to) {
  at = to;
  const scale = W / to.w;
  for (const g of all) {
    const over = g.y <= to.y && g.x <= to.x + .01 && g.x + g.w >= to.x + to.w - .01, x = over ? X : X + (g.x - to.x) * scale, w = over ? W : g.w * scale;
    const off = !over && (g.y < to.y || g.x < to.x - .01 || g.x + g.w > to.x + to.w + .01 || w < .3);
    g.style.display = off ? "none" : "";
    if (off) continue;
    g.r.setAttribute("x", x); g.r.setAttribute("width", w); g.r.style.opacity = over && g !== to ? .5 : "";
    const room = Math.floor((w - 6) / 7);
    g.t.setAttribute("x", x + 4); g.t.textContent = room < 3 ? "" : g.n.length > room ? g.n.slice(0, room - 1) + "…" : g.n;
  }
}
function search(text) {
  let sum = 0, end = -1;
  try { query = text ? new RegExp(text, "i") : null; } catch { query = { test: name => name.includes(text) }; }
  const hits = all.filter(g => { const hit = query && query.test(g.n); g.classList.toggle("hit", !!hit); return hit; });
  hits.sort((a, b) => a.x - b.x || a.y - b.y);
  for (const g of hits) if (g.x >= end - .001) { sum += g.w; end = g.x + g.w; }
  note.textContent = query ? `${(100 * sum / all[0].w).toFixed(1)}% matched` : "";
  return hits;
}
function ask() { const text = prompt("Search (a regular expression)", ""); if (text !== null) search(text); }
document.getElementById("frames").addEventListener("click", e => { const g = e.target.closest("g"); if (g && g.r) zoom(g); });
document.getElementById("find").addEventListener("click", ask);
document.getElementById("all").addEventListener("click", () => { zoom(all[0]); search(""); });
addEventListener("keydown", e => { if (e.key === "/") { e.preventDefault(); ask(); } if (e.key === "Escape") { zoom(all[0]); search(""); } });
const asked = new URLSearchParams(location.hash.slice(1));
if (asked.get("q")) search(asked.get("q"));
if (asked.get("zoom")) { const hit = all.find(g => g.n === asked.get("zoom")); if (hit) zoom(hit); }
