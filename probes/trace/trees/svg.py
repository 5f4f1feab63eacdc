"""A flame graph as one SVG file (icicle: callers on top), with zoom and search, without anything from outside.

Without scripts it is a picture with a title for each box. Colours tell kinds and have a contrast of at least 4.5
against the text (WCAG 2, 1.4.3); in a difference they tell growth (red) and shrinking (blue).
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

import numpy as np

from knowledge.language import Text
from knowledge.text import clean
from probes.trace.columns import I64
from probes.trace.names.naming import short
from probes.trace.trees.align import Aligned
from probes.trace.trees.calltree import CallTree, Kind, Time
from probes.trace.trees.flame import KINDS, SMALLEST, Layout, duration, layout

_WIDTH, _ROW, _TOP, _CHAR = 1200, 18, 58, 6.6  # pixels; the width of a character of 11 px monospace
_COLOURS: Final[dict[Kind, str]] = {
    Kind.ROOT: "#dcdcdc", Kind.PYTHON: "#a6cbf0", Kind.MODULE: "#8fd6c6", Kind.MARK: "#dcc8f2", Kind.OP: "#ffd27f",
    Kind.RUNTIME: "#f5b0a8", Kind.KERNEL: "#b5dd8c", Kind.COPY: "#d8d3a6", Kind.FRAME: "#ffd27f",
}  # fmt: skip
_TITLES: Final[dict[Time, Text]] = {
    "gpu": Text("GPU time by call stack", "按调用栈划分的 GPU 时间"),
    "cpu": Text("CPU time by call stack", "按调用栈划分的 CPU 时间"),
}
_STYLE: Final = (
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#111}.h{font-weight:600;font-size:14px}"
    ".b{cursor:pointer;text-decoration:underline;fill:#0b4f9e}.f rect{stroke:#fff;stroke-width:.6}.f{cursor:pointer}"
    ".f:hover rect{stroke:#111}.m rect{fill:#ff5fd2}.p{opacity:.55}@media print{.b{display:none}}"
)
# Boxes carry their place (data-x, data-w, in shares of the whole, data-d) and name; zooming recomputes x and width.
_SCRIPT: Final = """
(function(){var me=document.currentScript,svg=me?me.closest('svg'):document.documentElement;
var boxes=[].slice.call(svg.querySelectorAll('.f')),W=%(width)d,C=%(char)s;
function n(g,k){return parseFloat(g.getAttribute('data-'+k))}
function zoom(x,w,d){boxes.forEach(function(g){var gx=n(g,'x'),gw=n(g,'w'),up=n(g,'d')<d&&gx<=x+1e-12&&gx+gw>=x+w-1e-12;
var on=up||(gx>=x-1e-12&&gx+gw<=x+w+1e-12&&n(g,'d')>=d);g.style.display=on?'':'none';if(!on)return;
var px=up?0:(gx-x)/w*W,pw=up?W:gw/w*W,r=g.querySelector('rect'),t=g.querySelector('text');
r.setAttribute('x',px);r.setAttribute('width',Math.max(pw,.3));g.classList.toggle('p',up);
if(t){t.setAttribute('x',px+3);var s=g.getAttribute('data-n'),k=Math.floor((pw-6)/C);
t.textContent=k<3?'':s.length<=k?s:s.slice(0,k-1)+'\\u2026'}})}
boxes.forEach(function(g){g.addEventListener('click',function(){zoom(n(g,'x'),n(g,'w'),n(g,'d'))})});
function press(id,f){var b=svg.querySelector('.'+id);b.addEventListener('click',f);
b.addEventListener('keydown',function(e){if(e.key==='Enter'||e.key===' '){e.preventDefault();f()}})}
press('reset',function(){zoom(0,1,-1)});
press('search',function(){var q=window.prompt(svg.querySelector('.search').textContent,'');if(q===null)return;
var spans=[];q=q.toLowerCase();boxes.forEach(function(g){
var hit=q!==''&&g.querySelector('title').textContent.toLowerCase().split('\\n')[0].indexOf(q)>=0;
g.classList.toggle('m',hit);if(hit)spans.push([n(g,'x'),n(g,'x')+n(g,'w')])});
spans.sort(function(a,b){return a[0]-b[0]});var sum=0,end=0;
spans.forEach(function(s){if(s[1]>end){sum+=s[1]-Math.max(s[0],end);end=s[1]}});
svg.querySelector('.found').textContent=q===''?'':(sum*100).toFixed(1)+' %%'});
})();
"""


def svg(tree: CallTree | Aligned, time: Time = "gpu", *, title: str = "", min_share: float = SMALLEST, lang: str = "en",
        script: bool = True) -> str:  # fmt: skip
    """The flame graph as SVG text. Of two aligned trees: as wide as both together, coloured by their difference."""
    both = tree.both if isinstance(tree, Aligned) else tree
    boxes = layout(both, time, min_share)
    rows = int(boxes.depth.max()) + 1 if len(boxes.depth) else 0
    height = _TOP + rows * _ROW + 30
    head = title or _TITLES[time].in_(lang)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="100%" preserveAspectRatio="xMidYMin meet" role="group" '
        f'lang="{"zh-CN" if lang == "zh" else "en"}" style="background:#fff">',
        f"<title>{_xml(head)}</title><desc>{_xml(_described(both, boxes, lang))}</desc><style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/><text class="h" x="6" y="20">{_xml(head)}</text>',
        *(_buttons(lang) if script else ()),
        f'<text x="6" y="40">{_xml(_described(both, boxes, lang))}</text>',
        *_boxes(tree, both, boxes, time, lang),
        _legend(both, boxes, height - 12, lang) if both is tree else _scale(height - 12, lang),
    ]
    if script:
        parts.append(f"<script>//<![CDATA[{_SCRIPT % {'width': _WIDTH, 'char': _CHAR}}//]]></script>")
    return "\n".join(parts) + "\n</svg>\n"


def _xml(text: str) -> str:
    return escape("".join(c if c >= " " else " " for c in clean(text)))


def _described(tree: CallTree, boxes: Layout, lang: str) -> str:
    total = duration(boxes.total, tree.unit)
    if tree.unit != "nanoseconds":
        said = Text(f"{total} samples in all", f"共 {total} 个样本")
    else:
        said = Text(f"{total} in all", f"共 {total}")
    cut = boxes.cut / boxes.total if boxes.total else 0.0
    if not boxes.cut:
        return said.in_(lang)
    return Text(f"{said.en}; {cut:.1%} is in boxes too narrow to be shown",
                f"{said.zh}；其中 {cut:.1%} 因过窄未显示").in_(lang)  # fmt: skip


def _buttons(lang: str) -> Iterator[str]:
    reset, search = Text("whole", "全部").in_(lang), Text("search", "搜索").in_(lang)
    yield f'<text class="b reset" tabindex="0" role="button" x="1040" y="20">{reset}</text>'
    yield f'<text class="b search" tabindex="0" role="button" x="1090" y="20">{search}</text>'
    yield '<text class="found" x="1146" y="20"> </text>'


def _boxes(tree: CallTree | Aligned, both: CallTree, boxes: Layout, time: Time, lang: str) -> Iterator[str]:
    total = max(boxes.total, 1)
    hues = _growth(tree, time) if isinstance(tree, Aligned) else None
    sides = tuple(t.total(time) for t in (tree.a, tree.b)) if isinstance(tree, Aligned) else ()
    columns = (boxes.depth, boxes.x0, boxes.width, boxes.node)
    for depth, x0, width, node in zip(*(c.tolist() for c in columns), strict=True):
        x, w, y = x0 / total * _WIDTH, width / total * _WIDTH, _TOP + depth * _ROW
        name, kind = both.name(node), Kind(both.kind[node])
        colour = _COLOURS[kind] if hues is None else hues[node]
        about = _changed(both, sides, node, lang) if sides else _about(both, node, width, total, time, lang)
        label = _fit(name, w)
        shown = f'<text x="{x + 3:.2f}" y="{y + 13}">{_xml(label)}</text>'
        yield (
            f'<g class="f" data-x="{x0 / total:.9f}" data-w="{width / total:.9f}" data-d="{depth}" data-n="{_xml(short(name, 160))}">'
            f"<title>{_xml(name[:2000])}\n{_xml(about)}</title>"
            f'<rect x="{x:.2f}" y="{y}" width="{max(w, 0.3):.2f}" height="{_ROW - 1}" fill="{colour}"/>{shown}</g>'
        )


def _fit(name: str, width: float) -> str:
    room = int((width - 6) / _CHAR)
    return short(name, room) if room >= 3 else ""


def _changed(both: CallTree, sides: tuple[I64, ...], node: int, lang: str) -> str:
    a, b = (int(side[node]) for side in sides)
    what, sign = KINDS[Kind(both.kind[node])].in_(lang), "+" if b >= a else "-"
    return f"{what}: {duration(a, both.unit)} -> {duration(b, both.unit)} ({sign}{duration(abs(b - a), both.unit)})"


def _about(tree: CallTree, node: int, width: int, total: int, time: Time, lang: str) -> str:
    what, inside = KINDS[Kind(tree.kind[node])].in_(lang), duration(width, tree.unit)
    own, calls = duration(int(tree.own(time)[node]), tree.unit), int(tree.count[node])
    count = Text(f", {calls} calls", f"，{calls} 次调用").in_(lang) if calls else ""
    return Text(f"{what}: {inside} ({width / total:.1%}), {own} of its own{count}",
                f"{what}：{inside}（{width / total:.1%}），自身 {own}{count}").in_(lang)  # fmt: skip


def _growth(pair: Aligned, time: Time) -> list[str]:
    """White where nothing changed, to red where b took longer, to blue where shorter; by the share of the largest."""
    change = pair.b.total(time) - pair.a.total(time)
    most = max(int(np.abs(change).max(initial=0)), 1)
    fade = [round(255 - 105 * (abs(c) / most) ** 0.5) for c in change.tolist()]
    return [f"#ff{f:02x}{f:02x}" if c > 0 else f"#{f:02x}{(f + 255) // 2:02x}ff" if c < 0 else "#f2f2f2"
            for f, c in zip(fade, change.tolist(), strict=True)]  # fmt: skip


def _legend(tree: CallTree, boxes: Layout, y: int, lang: str) -> str:
    kinds = sorted({Kind(k) for k in np.unique(tree.kind[boxes.node]).tolist()})
    parts = []
    for place, kind in enumerate(kinds):
        x = 6 + place * 130
        parts.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{_COLOURS[kind]}"/>'
                     f'<text x="{x + 16}" y="{y}">{KINDS[kind].in_(lang)}</text>')  # fmt: skip
    return "".join(parts)


def _scale(y: int, lang: str) -> str:
    said = Text(
        "red: b takes longer; blue: b takes less; width: a and b together",
        "红色：b 更长；蓝色：b 更短；宽度：a 与 b 之和",
    )
    return f'<text x="6" y="{y}">{said.in_(lang)}</text>'
