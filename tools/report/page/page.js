"use strict";
(() => {
const NS = "http://www.w3.org/2000/svg", ALL = 1e6, LEAST = 20;
function secondsText(s) {
  if (s === 0) return "0 s";
  const [size, name] = s >= 0.9995 ? [1, " s"]
                     : s >= 0.9995e-3 ? [1e-3, " ms"] : [1e-6, " us"];
  const v = s / size;
  return (v >= 999.5 ? Math.round(v) : Number(v.toPrecision(4))) + name;
}
function roundStep(raw) {
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  for (const f of [1, 2, 5]) if (f * power >= raw * 0.75) return f * power;
  return 10 * power;
}
// Returns [start, width, word] of each box of a path; data-t has the words.
function boxesOf(path) {
  if (!path.boxes) {
    const words = path.dataset.t.split(" ");
    path.boxes = [];
    const shape = /M(\d+) [\d.]+h(\d+)/g, d = path.getAttribute("d");
    for (let m, i = 0; (m = shape.exec(d)); ++i)
      path.boxes.push([Number(m[1]), Number(m[2]), words[i]]);
  }
  return path.boxes;
}
function wordText(word) {
  const group = /^(\d+)\*(-|\d+)~(-|\d+)$/.exec(word);
  if (group)
    return group[1] + " tasks" + (group[2] === "-" ? "" :
      group[2] === group[3] ? " of micro-batch " + group[2] :
      " of micro-batches " + group[2] + " to " + group[3]);
  const names = ["micro-batch ", "chunk ", "segment "];
  return word.split(".").map((n, i) => n === "-" ? "" : names[i] + n)
             .filter(Boolean).join(", ");
}
for (const box of document.querySelectorAll(".timeline")) {
  const chart = box.querySelector(".chart"), plot = box.querySelector(".plot");
  const axis = box.querySelector(".axis"), tip = box.querySelector(".tip");
  const tools = box.parentNode.querySelector(".tools");
  const end = Number(box.dataset.end), near = Number(box.dataset.near);
  const left = Number(plot.getAttribute("x"));
  const wide = Number(plot.getAttribute("width"));
  const top = Number(plot.getAttribute("y"));
  const high = Number(plot.getAttribute("height"));
  const lanes = [...plot.querySelectorAll("g")];
  let from = 0, span = ALL, drag = null;
  tools.hidden = false;

  function drawAxis() {
    axis.replaceChildren();
    const step = roundStep(span / ALL * end / 6);
    const first = from / ALL * end, last = (from + span) / ALL * end;
    for (let i = Math.ceil(first / step - 1e-9); i * step <= last * (1 + 1e-9); ++i) {
      const x = left + (i * step / end * ALL - from) / span * wide;
      const line = document.createElementNS(NS, "path");
      line.setAttribute("class", "grid");
      line.setAttribute("d", "M" + x + " 16V" + (top + high));
      const text = document.createElementNS(NS, "text");
      text.setAttribute("class", "mid");
      text.setAttribute("x", x);
      text.setAttribute("y", 12);
      text.textContent = secondsText(Number((i * step).toPrecision(6)));
      axis.append(line, text);
    }
  }
  // Draws the edges of boxes in lanes whose visible boxes are all wide.
  function drawEdges() {
    for (const lane of lanes) {
      let least = span;
      for (const path of lane.querySelectorAll("path"))
        for (const [x, w] of boxesOf(path))
          if (x + w > from && from + span > x && least > w) least = w;
      lane.classList.toggle("near", least > 0.003 * span);
    }
  }
  function show(newFrom, newSpan) {
    span = Math.min(ALL, Math.max(LEAST, newSpan));
    from = Math.min(ALL - span, Math.max(0, newFrom));
    plot.setAttribute("viewBox", from + " 0 " + span + " " + high);
    drawEdges();
    drawAxis();
    tip.hidden = true;
  }
  function zoom(factor, at) {
    show(at - (at - from) * factor, span * factor);
  }
  function timeAt(event) {
    const r = chart.getBoundingClientRect();
    const x = (event.clientX - r.left) / r.width * chart.viewBox.baseVal.width;
    return from + (x - left) / wide * span;
  }
  const actions = {
    all: () => show(0, ALL), start: () => show(0, near),
    end: () => show(ALL - near, near),
    in: () => zoom(0.5, from + span / 2), out: () => zoom(2, from + span / 2),
    left: () => show(from - span / 4, span),
    right: () => show(from + span / 4, span),
  };
  tools.addEventListener("click", (event) => {
    const action = actions[event.target.dataset.do];
    if (action) action();
  });
  box.addEventListener("keydown", (event) => {
    const action = {"+": "in", "=": "in", "-": "out", "0": "all",
      ArrowLeft: "left", ArrowRight: "right", Home: "start",
      End: "end"}[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[action]();
  });
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== box) return;
    event.preventDefault();
    zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 300),
         timeAt(event));
  }, {passive: false});
  box.addEventListener("pointerdown", (event) => {
    drag = {x: timeAt(event), id: event.pointerId};
  });
  box.addEventListener("pointermove", (event) => {
    if (drag && event.buttons === 1) {
      if (span !== ALL) show(from + drag.x - timeAt(event), span);
      return;
    }
    drag = null;
    tell(event);
  });
  for (const name of ["pointerup", "pointercancel"])
    window.addEventListener(name, () => { drag = null; });
  box.addEventListener("pointerleave", () => { tip.hidden = true; });
  box.addEventListener("click", tell);

  function tell(event) {
    const path = event.target.closest ? event.target.closest("path[data-t]") : null;
    const at = timeAt(event);
    const found = path ? boxesOf(path).find(([x, w]) => at >= x && x + w >= at)
                       : null;
    tip.hidden = !found;
    if (!found) return;
    const [x, w, word] = found, scale = end / ALL, words = wordText(word);
    tip.textContent = path.parentNode.dataset.n + ": " + path.dataset.k +
      (words ? ", " + words : "") + "; " + secondsText(x * scale) + " to " +
      secondsText((x + w) * scale) + ", " + secondsText(w * scale);
    const r = box.getBoundingClientRect();
    const px = event.clientX - r.left + box.scrollLeft;
    const py = event.clientY - r.top;
    tip.style.left = Math.max(0, Math.min(px + 12,
      box.scrollLeft + r.width - tip.offsetWidth - 4)) + "px";
    tip.style.top = (py + 16 + tip.offsetHeight > r.height
      ? Math.max(0, py - tip.offsetHeight - 8) : py + 16) + "px";
  }
}
let folded = [];
window.addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open]):not(.long)")];
  for (const one of folded) one.open = true;
});
window.addEventListener("afterprint", () => {
  for (const one of folded) one.open = false;
});
})();
