//===- page_style.cpp - The style of the page -----------------------------===//
//
// Nine colours that stay apart with normal sight and with each kind of colour
// blindness: at least 18 in CIE Lab after the matrices of Machado et al. 2009,
// and a contrast with the page of at least 3 (WCAG 2.1, 1.4.11).
//
//===----------------------------------------------------------------------===//

#include "tools/page/page_assets.h"

namespace mtplan::tools {

const char *const kPageStyle = R"css(
:root{color-scheme:light dark;--bg:#ffffff;--fg:#1b1f24;--soft:#59626c;
--line:#d5dae0;--idle:#eceff2;--over:#b3261e;
--c0:#0072b2;--c1:#d55e00;--c2:#004d38;--c3:#9678ff;--c4:#2d0096;
--c5:#b48769;--c6:#5f6670;--c7:#872d0f;--c8:#9600ff}
@media (prefers-color-scheme:dark){:root{--bg:#12161c;--fg:#e6e9ed;
--soft:#a3adb8;--line:#39424d;--idle:#232a33;--over:#ff8a80;
--c0:#56b4e9;--c1:#e69f00;--c2:#2ff08f;--c3:#d2e1f0;--c4:#7a50ff;
--c5:#a58f7a;--c6:#6f7782;--c7:#bf4528;--c8:#4b6fd0}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1.5rem 1rem 3rem;background:var(--bg);
color:var(--fg);font:16px/1.5 system-ui,"Segoe UI","DejaVu Sans",sans-serif;
overflow-wrap:anywhere}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem}
h2{font-size:1.25rem;margin:2.4rem 0 .5rem;padding-top:.6rem;
border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{margin:.3rem 0}
.soft,figcaption,.tools span{color:var(--soft);font-size:.9rem}
.plan{font-size:1.1rem;margin:.8rem 0}
.figures{display:flex;flex-wrap:wrap;gap:.6rem;margin:1rem 0;padding:0}
.figures div{border:1px solid var(--line);border-radius:6px;
padding:.45rem .8rem;min-width:8rem}
.figures dt{color:var(--soft);font-size:.85rem}
.figures dd{margin:0;font-size:1.2rem;font-weight:600}
figure{margin:.6rem 0}
figcaption{margin-top:.2rem}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;
margin:.4rem 0;padding:0;font-size:.9rem}
.legend svg{width:.85em;height:.85em;margin-right:.4em}
.wide{overflow-x:auto;position:relative}
.chart{display:block;width:100%;min-width:44rem;height:auto}
.chart text{font-size:12px;fill:var(--fg)}
.chart text.small{font-size:9.5px}
.chart text.end{text-anchor:end}
.chart text.mid{text-anchor:middle;fill:var(--soft);font-size:11px}
.chart text.over{fill:var(--over);font-weight:700}
.grid{stroke:var(--line);fill:none}
.limit{stroke:var(--over);stroke-width:2;stroke-dasharray:6 4;fill:none}
.lane{fill:var(--idle)}
.point{fill:var(--c0);fill-opacity:.9;stroke:var(--bg)}
.chosen{fill:var(--c1);stroke:var(--fg)}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}
.c3{fill:var(--c3)}.c4{fill:var(--c4)}.c5{fill:var(--c5)}
.c6{fill:var(--c6)}.c7{fill:var(--c7)}.c8{fill:var(--c8)}
rect.c0,rect.c1,rect.c2,rect.c3,rect.c4,rect.c5,rect.c6,rect.c7,rect.c8{
stroke:var(--bg);stroke-width:.8}
.near path{stroke:var(--bg);stroke-width:1px;vector-effect:non-scaling-stroke}
.timeline:focus-visible{outline:3px solid var(--c0);outline-offset:2px}
.timeline .plot{cursor:grab;touch-action:pan-y}
.tools{display:flex;flex-wrap:wrap;gap:.4rem;align-items:center;margin:.5rem 0}
.tools[hidden]{display:none}
button{font:inherit;font-size:.9rem;color:var(--fg);background:var(--idle);
border:1px solid var(--soft);border-radius:5px;padding:.15rem .6rem;
cursor:pointer}
button:focus-visible,summary:focus-visible{outline:3px solid var(--c0)}
.tip{position:absolute;pointer-events:none;background:var(--fg);
color:var(--bg);font-size:.85rem;padding:.25rem .5rem;border-radius:4px;
max-width:22rem;z-index:1}
.tip[hidden]{display:none}
details{margin:.5rem 0}
summary{cursor:pointer;color:var(--soft);font-size:.9rem}
table{border-collapse:collapse;font-size:.85rem;margin:.4rem 0;
font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.2rem 0}
th,td{text-align:left;padding:.18rem .9rem .18rem 0;vertical-align:top;
border-bottom:1px solid var(--line);overflow-wrap:break-word}
tbody th{font-weight:400}
thead th{color:var(--soft)}
.s{white-space:nowrap}
.n{text-align:right;white-space:nowrap}
thead .n{white-space:normal}
.terms{font-size:.9rem;display:grid;grid-template-columns:max-content 1fr;
gap:.1rem 1rem}
.terms dt{font-weight:600}
.terms dd{margin:0;color:var(--soft)}
footer{margin-top:2.5rem;border-top:1px solid var(--line);padding-top:.6rem}
@media print{:root{color-scheme:light;--bg:#ffffff;--fg:#1b1f24;
--soft:#59626c;--line:#d5dae0;--idle:#eceff2;--over:#b3261e;
--c0:#0072b2;--c1:#d55e00;--c2:#004d38;--c3:#9678ff;--c4:#2d0096;
--c5:#b48769;--c6:#5f6670;--c7:#872d0f;--c8:#9600ff}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
html{font-size:11px}body{max-width:none;padding:0;font-size:11px}
table{font-size:8.5px}th,td{padding-right:.5rem}
.chart{min-width:0}.tools,.tip{display:none!important}
.wide{overflow:visible}
h2,h3{break-after:avoid}figure,tr{break-inside:avoid}}
)css";

} // namespace mtplan::tools
