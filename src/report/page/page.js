"use strict";
// What needs a script: sorting and filtering of tables, the map of pairs, and reading racks cell by cell.
(() => {
const D = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const make = (name, attributes, text) => {
  const e = document.createElement(name);
  for (const k in attributes || {}) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  return e;
};
const percent = share => (100 * share).toFixed(1) + " %";
const rate = Bps => Bps >= 1e9 ? (Bps / 1e9).toPrecision(3) + " GB/s" : (Bps / 1e6).toPrecision(3) + " MB/s";

// --- tables ---

const valueOf = (row, at) => {
  const cell = row.cells[at], v = cell && cell.dataset.v;
  return v !== undefined ? (v === "" || isNaN(v) ? -Infinity : +v) : cell ? cell.textContent.trim() : "";
};
const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", {numeric: true});
};
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
  heads.forEach((th, at) => {
    const button = make("button", {type: "button"}, th.textContent);
    th.textContent = "";
    th.append(button);
    button.addEventListener("click", () => {
      const down = th.getAttribute("aria-sort") === "ascending";
      const rows = [...body.rows].sort((a, b) => (down ? -1 : 1) * compare(valueOf(a, at), valueOf(b, at)));
      heads.forEach(h => h.removeAttribute("aria-sort"));
      th.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows);
    });
  });
  if (heads.length && body.rows.length >= 12) {
    const label = make("label", {class: "filter"}, "only rows with "), input = make("input", {type: "search"});
    label.append(input);
    table.parentElement.before(label);
    input.addEventListener("input", () => {
      const word = input.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(word);
    });
  }
}

// --- endpoints and pairs ---

const E = D.ends, N = E.endpoint.length;
const nameOf = e => D.hosts[E.host[e]] + ":" + E.local[e];
const deviceOf = e => (D.machine.kind === "gpu" ? "GPU " + E.local[e] : "endpoint " + E.endpoint[e]) + (E.nic[e] >= 0 ? ", " + D.nics[E.nic[e]] : "");
const blockOf = new Int32Array(N);
D.blocks.forEach((b, k) => blockOf.fill(k, b.first, b.first + b.count));

const P = D.pairs, bytes = Uint8Array.from(atob(P.rows), c => c.charCodeAt(0)), view = new DataView(bytes.buffer);
const width = 2 * P.id_bytes + 6, idAt = at => P.id_bytes === 4 ? view.getUint32(at, true) : view.getUint16(at, true);
const pair = k => {
  const at = k * width, code = view.getUint16(at + 2 * P.id_bytes, true), share = code & 0x7fff;
  return {src: idAt(at), dst: idAt(at + P.id_bytes), alone: code >> 15, wrong: share === 0x7fff,
          share: share >= 0x7ffe ? NaN : share * P.unit,
          low: (view.getUint16(at + 2 * P.id_bytes + 2, true) & 0x7fff) * P.unit, nics: view.getUint8(at + 2 * P.id_bytes + 3) >> 7, high: view.getUint16(at + 2 * P.id_bytes + 4, true) * P.unit};
};

// The tier of two endpoints; of those that cross NICs where that is asked for.
const tierOf = (a, b, nics) => {
  const at = D.tiers.findIndex(t => !(nics && t.same.some(l => l === "host" || l === "domain")) && t.same.every(l => E[l][a] >= 0 && E[l][a] === E[l][b]));
  return at < 0 ? D.tiers.length - 1 : at;
};
const levelOf = {endpoint: "endpoint", pair: "endpoint", host: "host", leaf: "leaf", rack: "rack", rack_pair: "rack", rack_uplinks: "rack"};
const passes = (e, a, b) => {
  const at = E[levelOf[e.part]], x = at[a], y = at[b], tx = e.side !== "rx", rx = e.side !== "tx";
  if (e.b >= 0) return (tx && x === e.a && y === e.b) || (rx && x === e.b && y === e.a);
  if (e.part === "rack_uplinks" && (x < 0 || y < 0 || x === y)) return false;
  return (tx && x === e.a) || (rx && y === e.a);
};
const M = {from: -1, to: -1, x: -1, y: -1, nics: P.by_nic === P.measured};
// What the matrix says of a pair that was not measured; -1: its data would be wrong.
const inferred = (a, b) => {
  const tier = D.exceptions.length ? tierOf(a, b, M.nics) : 0;
  let share = 1;
  for (const e of D.exceptions)
    if ((e.tier >= 0 ? e.tier === tier : D.tiers[tier].nic || e.factor === 0) && passes(e, a, b)) share = Math.min(share, e.wrong ? -1 : e.factor);
  return share;
};

// --- the map ---

const canvas = $("heat"), tip = $("tip");
const steps = [0.5, 0.6, 0.7, 0.8, 0.9, 1.05, 1.15], WRONG = 8, DEAD = 9;
const guessed = share => share < 0 ? "wrong data" : percent(share) + " of expected";
const stepOf = share => { let k = 0; while (k < steps.length && share >= steps[k]) k++; return k; };


// Endpoints first..last as units: themselves, hosts or blocks.
const unitsOf = (first, last, grain) => {
  const list = [], key = grain === "end" ? (e => e) : grain === "host" ? (e => E.host[e]) : (e => blockOf[e]);
  for (let e = first; e < last; e++) {
    const u = list[list.length - 1];
    if (u && u.key === key(e)) u.last = e + 1;
    else list.push({key: key(e), first: e, last: e + 1});
  }
  for (const u of list) {
    u.name = grain === "end" ? nameOf(u.first) : grain === "host" ? D.hosts[u.key] : D.blocks[u.key].name;
    u.mark = 0;
    u.some = [u.first];
    for (let e = u.first; e < u.last; e++) {
      u.mark = Math.max(u.mark, E.mark[e]);
      if (e > u.first && (u.last - u.first <= 8 || (E.mark[e] && u.some.length < 8))) u.some.push(e);
    }
  }
  return list;
};
const hostsCount = new Set(E.host).size;
const grain = () => M.from >= 0 || M.to >= 0 ? (M.from >= 0 && M.to >= 0 ? "end" : "host") : N <= 160 ? "end" : hostsCount <= 320 ? "host" : "block";
const span = k => k < 0 ? [0, N] : [D.blocks[k].first, D.blocks[k].first + D.blocks[k].count];

const layout = () => {
  const g = grain(), rows = unitsOf(...span(M.from), g), cols = unitsOf(...span(M.to), g);
  const rowOf = new Int32Array(N).fill(-1), colOf = new Int32Array(N).fill(-1), C = cols.length;
  rows.forEach((u, k) => rowOf.fill(k, u.first, u.last));
  cols.forEach((u, k) => colOf.fill(k, u.first, u.last));
  const best = new Int32Array(rows.length * C).fill(-1), badness = new Float64Array(rows.length * C).fill(Infinity), count = new Int32Array(rows.length * C);
  for (let k = 0; k < P.kept; k++) {
    const p = pair(k), r = rowOf[p.src], c = colOf[p.dst];
    if (r < 0 || c < 0 || !p.nics !== !M.nics) continue;
    const at = r * C + c, bad = p.wrong ? -2 : isNaN(p.share) ? -1 : p.share;
    count[at]++;
    if (bad < badness[at]) { badness[at] = bad; best[at] = k; }
  }
  Object.assign(M, {grain: g, rows, cols, best, count});
};

// What was measured between two blocks whose pairs are not among those that the page keeps; undefined: nothing.
const kept = (r, c) => {
  const v = M.grain === "block" ? D.worst[M.rows[r].key * D.blocks.length + M.cols[c].key] : -1;
  return v === -2 ? -1 : v >= 0 ? v / 1000 : undefined;
};
const guess = (r, c) => {
  let least = NaN;
  for (const a of M.rows[r].some)
    for (const b of M.cols[c].some)
      if (a !== b) { const v = inferred(a, b); if (!(v >= least)) least = v; }
  return least;
};

const draw = () => {
  const css = getComputedStyle(document.documentElement), colour = k => css.getPropertyValue(k).trim();
  const heat = Array.from({length: 10}, (_, k) => colour("--h" + k));
  const R = M.rows.length, C = M.cols.length, box = canvas.clientWidth || 600, dpr = window.devicePixelRatio || 1;
  const left = Math.min(110, Math.max(48, box * 0.12)), top = 26, side = Math.max(1, box - left - 4);
  const w = Math.min(side / C, 56), h = Math.min(w * Math.max(1, C / R > 3 ? 3 : 1), side / R), high = Math.ceil(top + h * R + 4);
  canvas.style.height = high + "px";
  canvas.width = Math.round(box * dpr);
  canvas.height = Math.round(high * dpr);
  Object.assign(M, {left, top, w, h});
  const g = canvas.getContext("2d"), only = $("only").checked;
  g.scale(dpr, dpr);
  g.fillStyle = colour("--card");
  g.fillRect(0, 0, box, high);
  if (!only) { g.globalAlpha = 0.4; g.fillStyle = heat[5]; g.fillRect(left, top, w * C, h * R); }
  const odd = D.exceptions.length > 0;
  for (let r = 0; r < R; r++)
    for (let c = 0; c < C; c++) {
      const k = M.best[r * C + c], left_out = k < 0 ? kept(r, c) : undefined;
      if (k < 0 && left_out === undefined && (only || !odd)) continue;
      let step, sure = k >= 0 || left_out !== undefined;
      if (left_out !== undefined) step = left_out < 0 ? WRONG : stepOf(left_out);
      else if (sure) { const p = pair(k); step = p.wrong ? WRONG : isNaN(p.share) ? DEAD : stepOf(p.share); }
      else { const v = guess(r, c); if (isNaN(v)) continue; step = v < 0 ? WRONG : v === 0 ? DEAD : stepOf(v); if (step === 5) continue; }
      g.globalAlpha = sure ? 1 : 0.4;
      g.fillStyle = heat[step];
      g.fillRect(left + c * w, top + r * h, Math.max(w, 0.8), Math.max(h, 0.8));
      if (sure && step === WRONG && w >= 9 && h >= 9) {
        g.fillStyle = colour("--onmark"); g.font = "9px sans-serif"; g.textAlign = "center"; g.textBaseline = "middle";
        g.fillText("\u2715", left + (c + 0.5) * w, top + (r + 0.5) * h);
      }
    }
  g.globalAlpha = 1;
  names(g, colour, box);
  if (M.x >= 0) { g.strokeStyle = colour("--link"); g.lineWidth = 2; g.strokeRect(left + M.x * w - 1, top + M.y * h - 1, Math.max(w, 3) + 2, Math.max(h, 3) + 2); }
};

// Names beside the cells: marked ones first, then where a block begins, as many as there is room for.
const names = (g, colour, box) => {
  const side = (units, at, size, write) => {
    const taken = [], wanted = [];
    units.forEach((u, k) => {
      const head = k === 0 || blockOf[u.first] !== blockOf[units[k - 1].first];
      if (u.mark > 1) wanted.push({k, text: u.name, mark: u.mark, rank: 0});
      if (head && D.blocks.length > 1 && units.length > D.blocks.length) {
        let end = k;
        while (end + 1 < units.length && blockOf[units[end + 1].first] === blockOf[u.first]) end++;
        wanted.push({k: (k + end) / 2, text: D.blocks[blockOf[u.first]].name, mark: 0, rank: size > 11 ? 3 : 1});
      }
      const tight = M.grain === "end" && size < write.gap;
      if (!tight) wanted.push({k, text: u.name, mark: 0, rank: 2});
      else if (k === 0 || E.host[u.first] !== E.host[units[k - 1].first]) wanted.push({k, text: D.hosts[E.host[u.first]], mark: 0, rank: 2, tight});
    });
    for (const n of wanted.sort((a, b) => a.rank - b.rank)) {
      if (n.rank === 2 && !n.tight && size < write.gap && units.length !== D.blocks.length) continue;
      const y = at + (n.k + 0.5) * size;
      if (taken.some(t => Math.abs(t - y) < write.gap)) continue;
      taken.push(y);
      write(n, y);
    }
  };
  g.font = "10.5px " + getComputedStyle(document.body).fontFamily;
  g.textBaseline = "middle";
  const short = (text, room) => { while (text.length > 3 && g.measureText(text).width > room) text = "\u2026" + text.slice(2); return text; };
  const tone = n => colour(n.mark === 5 ? "--wrong" : n.mark ? "--slow" : "--soft");
  const rows = (n, y) => { g.textAlign = "right"; g.fillStyle = tone(n); g.fillText(short(n.text, M.left - 8), M.left - 5, y); };
  rows.gap = 11;
  side(M.rows, M.top, M.h, rows);
  const cols = (n, x) => { g.textAlign = "center"; g.fillStyle = tone(n); g.fillText(short(n.text, 46), Math.min(x, box - 24), M.top - 10); };
  cols.gap = 50;
  side(M.cols, M.left, M.w, cols);
  g.strokeStyle = colour("--card");
  g.lineWidth = 1;
  const lines = (units, size, line) => units.forEach((u, k) => { if (k && size * units.length / D.blocks.length > 8 && blockOf[u.first] !== blockOf[units[k - 1].first]) line(k); });
  lines(M.rows, M.h, k => { g.beginPath(); g.moveTo(M.left, M.top + k * M.h); g.lineTo(M.left + M.cols.length * M.w, M.top + k * M.h); g.stroke(); });
  lines(M.cols, M.w, k => { g.beginPath(); g.moveTo(M.left + k * M.w, M.top); g.lineTo(M.left + k * M.w, M.top + M.rows.length * M.h); g.stroke(); });
};

const pairWords = (a, b, p) => {
  const tier = D.tiers[tierOf(a, b, M.nics)], bytes = tier.expected_Bps;
  const head = nameOf(a) + " (" + deviceOf(a) + ") sends to " + nameOf(b) + " (" + deviceOf(b) + "), " + tier.name + "\n";
  if (!p) return head + "inferred, not measured: " + guessed(inferred(a, b));
  if (p.wrong) return head + "wrong data";
  if (isNaN(p.share)) return head + "measured, and no data came";
  return head + percent(p.share) + " of expected, 95 % interval " + percent(p.low) + " to " + percent(p.high) +
         (bytes ? "\n" + rate(p.share * bytes) : "") + (p.alone ? ", measured alone" : ", measured beside others");
};
const words = (r, c) => {
  const R = M.rows[r], C = M.cols[c], k = M.best[r * M.cols.length + c], n = M.count[r * M.cols.length + c];
  if (M.grain === "end") return R.first === C.first ? nameOf(R.first) + ": itself" : pairWords(R.first, C.first, k >= 0 ? pair(k) : null);
  const head = R.name + " sends to " + C.name + ": ";
  if (k < 0 && kept(r, c) !== undefined) return head + "measured, the slowest " + guessed(kept(r, c)) + "; not in the sample";
  if (k < 0) { const v = guess(r, c); return head + (isNaN(v) ? "nothing" : "not measured, inferred " + guessed(v)); }
  const p = pair(k);
  return head + n + (n === 1 ? " pair" : " pairs") + (P.kept < P.measured ? " kept" : " measured") + (n > 1 ? ", the slowest:" : ":") + "\n" + pairWords(p.src, p.dst, p);
};

const redraw = () => { layout(); draw(); };
const open = (from, to) => {
  M.from = from; M.to = to; M.x = M.y = -1;
  $("from").value = from; $("to").value = to;
  redraw();
};
const showTip = (event, text) => {
  tip.textContent = text;
  tip.hidden = false;
  const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 6), y = event.clientY + 18;
  tip.style.left = Math.max(4, x) + "px";
  tip.style.top = (y + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : y) + "px";
};
const cellAt = event => {
  const box = canvas.getBoundingClientRect();
  const c = Math.floor((event.clientX - box.x - M.left) / M.w), r = Math.floor((event.clientY - box.y - M.top) / M.h);
  return c >= 0 && r >= 0 && c < M.cols.length && r < M.rows.length ? [r, c] : null;
};
const zoom = (r, c) => {
  const from = blockOf[M.rows[r].first], to = blockOf[M.cols[c].first];
  if (M.grain !== "end") open(from, to);
};
if (canvas) {
  $("still").setAttribute("hidden", "");
  canvas.hidden = false;
  document.querySelector(".controls").hidden = false;
  const read = $("mapread");
  read.hidden = false;
  read.textContent = "Point at a cell, or focus the map and use the arrow keys.";
  for (const id of ["from", "to"]) {
    const select = $(id);
    select.append(make("option", {value: -1}, "all"), ...D.blocks.map((b, k) => make("option", {value: k}, b.name)));
    select.addEventListener("change", () => open(+$("from").value, +$("to").value));
  }
  $("only").addEventListener("change", draw);
  $("bynic").hidden = !(P.by_nic > 0 && P.by_nic < P.measured);
  $("nics").addEventListener("change", () => { M.nics = $("nics").checked; redraw(); });
  $("whole").addEventListener("click", () => open(-1, -1));
  canvas.addEventListener("mousemove", event => {
    const cell = cellAt(event);
    if (cell) showTip(event, words(...cell)); else tip.hidden = true;
  });
  canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", event => {
    const cell = cellAt(event);
    if (!cell) return;
    [M.y, M.x] = cell;
    read.textContent = words(...cell);
    if (M.grain !== "end") { tip.hidden = true; zoom(...cell); } else draw();
  });
  canvas.addEventListener("keydown", event => {
    const move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    if (move) {
      M.y = Math.min(M.rows.length - 1, Math.max(0, M.y < 0 ? 0 : M.y + move[0]));
      M.x = Math.min(M.cols.length - 1, Math.max(0, M.x < 0 ? 0 : M.x + move[1]));
      read.textContent = words(M.y, M.x);
      draw();
    } else if (event.key === "Enter" && M.x >= 0) zoom(M.y, M.x);
    else if (event.key === "Escape") open(-1, -1);
    else return;
    event.preventDefault();
  });
  for (const button of document.querySelectorAll("button.plain[data-block]")) {
    button.hidden = false;
    button.addEventListener("click", () => { open(+button.dataset.block, -1); $("map").scrollIntoView(); canvas.focus(); });
  }
  redraw();
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

// --- racks ---

const ways = [["inside_tx", "inside, sends"], ["inside_rx", "inside, receives"], ["network_tx", "network, sends"], ["network_rx", "network, receives"]];
const marks = ["within limits", "behind a slow part", "late", "slow", "dead", "wrong data"];
const endWords = e => nameOf(e) + " (" + deviceOf(e) + "), " + marks[E.mark[e]] + "\n" +
  ways.filter(([k]) => E[k][e] >= 0).map(([k, name]) => name + " " + percent(E[k][e] / 1000)).join("\n");
const rackRead = $("rackread");
for (const svg of document.querySelectorAll(".rack svg")) {
  const block = D.blocks[+svg.dataset.block], rows = new Map(), cols = +svg.dataset.cols;
  for (let e = block.first; e < block.first + block.count; e++) {
    if (!rows.has(E.host[e])) rows.set(E.host[e], []);
    rows.get(E.host[e]).push(e);
  }
  const list = block.rows.map(host => rows.get(host) || []).reverse(), box = svg.viewBox.baseVal, left = +svg.dataset.left, cell = (box.width - 1 - left) / cols, row = (box.height - 1) / list.length;
  const at = (x, y) => (list[Math.floor(y / row)] || [])[Math.floor((x - left) / cell)];
  svg.addEventListener("mousemove", event => {
    const r = svg.getBoundingClientRect(), e = at((event.clientX - r.x) * box.width / r.width, (event.clientY - r.y) * box.height / r.height);
    if (e !== undefined) showTip(event, endWords(e)); else tip.hidden = true;
  });
  svg.addEventListener("mouseleave", () => { tip.hidden = true; });
  let x = -1, y = 0, pick = null;
  svg.addEventListener("keydown", event => {
    const move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
    if (!move) return;
    event.preventDefault();
    if (x < 0) x = 0;
    else { x = Math.min(cols - 1, Math.max(0, x + move[0])); y = Math.min(list.length - 1, Math.max(0, y + move[1])); }
    if (!pick) {
      pick = document.createElementNS(svg.namespaceURI, "rect");
      pick.setAttribute("class", "pick");
      svg.append(pick);
    }
    pick.setAttribute("x", left + x * cell); pick.setAttribute("y", y * row);
    pick.setAttribute("width", cell); pick.setAttribute("height", row);
    const e = (list[y] || [])[x];
    rackRead.hidden = false;
    rackRead.textContent = e === undefined ? "no endpoint" : endWords(e);
  });
}
})();
