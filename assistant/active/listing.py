"""``gpudiag test list``: every test, what it runs, how long it takes, and whether its tool is here."""

from __future__ import annotations

import argparse

from assistant.exits import Exit
from assistant.output import write
from assistant.render.sheet import Paragraph, Part, Table
from assistant.render.trace_page import Page, show
from knowledge.language import Text
from probes.active import duration, tests

_HEADER = (
    Text("name", "名称"),
    Text("level", "级别"),
    Text("time", "时间"),
    Text("installed", "已安装"),
    Text("what", "内容"),
)
_CONSENT = Text(
    "Nothing of this runs without consent, and only on idle GPUs: gpudiag test [NAME...] [--level N], --dry-run shows the cost.",
    "未经同意不会运行，且仅在空闲 GPU 上运行：gpudiag test [NAME...] [--level N]，--dry-run 可查看代价。",
)


def _installed(args: argparse.Namespace) -> frozenset[str]:
    """The tools of tests that are on the machine that the options name."""
    from assistant.active import there

    binaries = sorted({b for t in tests() for b in t.binaries})
    other = there.node_of(args)
    if other is None:
        return there.tools(None, binaries)
    with there.line(args.settings, other) as far:
        return there.tools(far, binaries)


def run(args: argparse.Namespace) -> int:
    """The list."""
    lang = args.settings.output.lang
    have = _installed(args)
    rows = [
        {
            "name": t.name, "level": t.level, "seconds": t.seconds, "installed": bool(have & set(t.binaries)),
            "title": t.title.in_(lang), "cost": t.cost.in_(lang), "binaries": list(t.binaries), "root": t.root,
        }
        for t in tests()
    ]  # fmt: skip

    def parts() -> list[Part]:
        yes, no = Text("yes", "是").in_(lang), Text("no", "否").in_(lang)
        cells = tuple(
            (str(r["name"]), str(r["level"]), duration(t.seconds, lang), yes if r["installed"] else no, str(r["title"]))
            for r, t in zip(rows, tests(), strict=True)
        )
        return [Table(tuple(h.in_(lang) for h in _HEADER), cells), Paragraph(_CONSENT.in_(lang))]

    write(show(Page("gpudiag/test-list/1", {"tests": rows}, parts), args.settings.output))
    return Exit.OK
