"""What is known of one node, as a page: for the screen, and for every format that a sheet can have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.nodes import Found, Look, Node
from assistant.render.labels import headline, label
from assistant.render.sheet import Fields, Heading, Items, Paragraph, Part, Sheet, Table
from assistant.render.times import iso, readable
from assistant.store.codec import subject_of
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.store.read import Run

S = 10**9
MARKS = {"ok": "✔", "degraded": "▲", "unhealthy": "✖", "unknown": "?"}
_HOW = {
    "live": Text("gpudiag check", "gpudiag check"), "watch": Text("gpudiag watch", "gpudiag watch"),
    "bundle": Text("a recording", "录制"),
}  # fmt: skip


def state_word(state: str, lang: str) -> str:
    """How a list calls a state; empty is that of a node that nobody looked at, "old" of one that was fine long ago."""
    if state == "old":
        return Text("long ago", "已过时").in_(lang)
    return label(state, lang).lower() if state else Text("not looked at", "未检查").in_(lang)


def ago(ns: int | None, now: int) -> str:
    """How long before `now` a time was, as short as it can be read: 40s, 3m, 2h, 4d; a dash where there is none."""
    if ns is None:
        return "–"
    seconds = max(0, now - ns) // S
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds // 5 * 5}s"


def named(found: Found, lang: str) -> str:
    """A finding in one clause, with what it is about."""
    try:
        return headline(found.title, [subject_of(found.about)], lang)
    except ValueError:  # of a newer gpudiag: a scope that this one has no word for
        return found.title.in_(lang)


def course(runs: Sequence[Run], most: int = 48) -> str:
    """The states of checks, oldest first, a mark each."""
    return "".join(MARKS.get(r.state, "?") for r in reversed(runs[:most]))


def sheet(node: Node, runs: Sequence[Run], now: int, lang: str) -> Sheet:
    """Everything there is about a node: its last check, the last one that told, findings, the checks before.

    `now` is ns UTC; `runs` are its checks in the history, the newest first.
    """

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    parts: list[Part] = []
    if node.trouble:
        parts.append(Paragraph(node.trouble.in_(lang)))
    if node.last is None and not node.trouble:
        parts.append(Paragraph(t(
            "Nobody has looked at it yet: no check of it is in the history, and there is no recording of it here. "
            f"On {node.host}: gpudiag check, or gpudiag collect -o {node.host}.tar.gz to read it here.",
            f"尚未检查过：历史中没有它的检查，这里也没有它的录制。请在 {node.host} 上运行 gpudiag check，"
            f"或运行 gpudiag collect -o {node.host}.tar.gz 后在此读取。",
        )))  # fmt: skip
    if node.last is not None:
        parts += _known(node, node.last, runs, now, lang)
    return Sheet(node.host, tuple(parts), plain(node, runs, lang))


def _known(node: Node, last: Look, runs: Sequence[Run], now: int, lang: str) -> list[Part]:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    parts: list[Part] = [Paragraph(spoken(last.text, node.host, lang))]
    rows = [(t("looked at", "检查时间"), _when(last, now, lang))]
    if node.told is not None and node.told is not last:
        said = f"{state_word(node.told.state, lang)}: {spoken(node.told.text, node.host, lang)} ({_when(node.told, now, lang)})"
        rows.append((t("last known", "最近已知"), said))
    rows.append((t("checks", "历次检查"), course(runs)))
    parts.append(Fields(tuple(rows)))
    if last.findings:
        since = t("since", "起始")
        items = tuple(
            f"{label(f.severity, lang)}  {named(f, lang)}" + (f" ({since} {_time(f.since)})" if f.since else "")
            for f in last.findings
        )
        parts += [Heading(t("Findings", "发现")), Items(items)]
    if runs:
        head = (t("since", "起始"), t("checks", "次数"), t("state", "状态"), t("verdict", "结论"))
        table = tuple(
            (_time(first.as_of), str(count), label(first.state, lang), spoken(first.text, node.host, lang))
            for first, count in stretches(runs)
        )
        parts += [Heading(t("Checks", "历次检查")), Table(head, table)]
    return parts


def stretches(runs: Sequence[Run]) -> list[tuple[Run, int]]:
    """Checks that said the same one after the other: the first of them, and how many; the newest first, as `runs`."""
    out: list[tuple[Run, int]] = []
    for run in runs:
        if out and (out[-1][0].state, out[-1][0].text) == (run.state, run.text):
            out[-1] = (run, out[-1][1] + 1)
        else:
            out.append((run, 1))
    return out


def spoken(text: Text, host: str, lang: str) -> str:
    """A verdict beside the name of its node: that need not be said twice."""
    return text.in_(lang).removeprefix(f"{host} ")


def _when(look: Look, now: int, lang: str) -> str:
    how = _HOW.get(look.place if look.source == "history" else look.source)
    place = look.place if look.source == "bundle" else how.in_(lang) if how is not None else look.place
    if look.at is None:
        return place
    return Text(
        f"{ago(look.at, now)} ago, {_time(look.at)}, {place}", f"{ago(look.at, now)} 前，{_time(look.at)}，{place}"
    ).in_(lang)


def _time(ns: int) -> str:
    return readable(iso(ns - ns % S))


def plain(node: Node, runs: Sequence[Run], lang: str) -> dict[str, object]:
    """As plain data, for JSON."""

    def of(look: Look | None) -> dict[str, object] | None:
        if look is None:
            return None
        return {
            "state": look.state, "text": look.text.in_(lang), "at": None if look.at is None else iso(look.at),
            "source": look.source, "place": look.place, "run": look.run,
            "findings": [{"id": f.id, "title": f.title.in_(lang), "severity": f.severity, "about": f.about,
                          "since": None if f.since is None else iso(f.since)} for f in look.findings],
        }  # fmt: skip

    return {
        "host": node.host, "state": node.state or None, "trouble": node.trouble.in_(lang) or None, "last": of(node.last),
        "told": of(node.told), "checks": [{"run": r.id, "at": iso(r.as_of), "state": r.state} for r in runs],
    }  # fmt: skip
