"""What changed since the last check, as text, Markdown, HTML and JSON (schema ``gpudiag/changes/1``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from assistant.changes import Changes, CounterChange, FactChange, Shift, Unseen
from assistant.render.cells import Paint, wrap
from assistant.render.labels import aside, colon, label, subject_name
from assistant.render.times import iso, readable
from assistant.store.read import PastFinding
from knowledge.language import Text
from knowledge.observation import Subject, Value
from knowledge.text import clean
from rules.engine import Finding

SCHEMA = "gpudiag/changes/1"
SHOWN = 12  # of each list in text and Markdown, without `verbose`

_WORDS = {
    "title": Text("Since the last check", "自上次检查以来"),
    "title_good": Text("Since the last good check", "自上次正常的检查以来"),
    "head": Text("{ago} ago, {time} ({origin})", "{ago}前，{time}（{origin}）"),
    "live": Text("on the node", "在节点上"),
    "bundle": Text("from a recording", "来自录制包"),
    "watch": Text("by watch", "由 watch 执行"),
    "talk": Text("in this conversation", "在本次对话中"),
    "same": Text("Nothing changed.", "没有变化。"),
    "verdict": Text("verdict: {before} -> {after}", "结论：{before} -> {after}"),
    "rebooted": Text("the node was rebooted in between", "期间节点重启过"),
    "rules": Text("the rules changed in between ({before} -> {after})", "期间规则有变化（{before} -> {after}）"),
    "new": Text("New", "新出现"),
    "worse": Text("Worse", "加重"),
    "eased": Text("Eased", "减轻"),
    "cleared": Text("Cleared", "已消除"),
    "unseen": Text("Not looked at this time", "本次未能查看"),
    "still": Text("Still there", "仍然存在"),
    "facts": Text("Changed", "已变更"),
    "counters": Text("Counted up", "计数增加"),
    "since": Text("since {time}", "自 {time} 起"),
    "lasted": Text("was there from {first} to {last}", "从 {first} 持续到 {last}"),
    "missing": Text("needs {facts}", "需要 {facts}"),
    "grown": Text("{before} -> {after} (+{n})", "{before} -> {after}（+{n}）"),
    "restarted": Text(
        "{before} -> {after} (began anew: at least +{n})", "{before} -> {after}（已重新计数：至少 +{n}）"
    ),
    "severity": Text("severity", "级别"),
    "grade": Text("certainty", "把握"),
    "count": Text("times seen", "次数"),
    "action": Text("action", "动作"),
    "more": Text("{n} more", "另有 {n} 项"),
    "updates": Text(
        "changed since the last good check ({when}): {what}; all of it: gpudiag check --since-good",
        "自上次正常的检查（{when}）以来有变更：{what}；全部：gpudiag check --since-good",
    ),
    "none": Text("none", "无"),
    "yes": Text("yes", "是"),
    "no": Text("no", "否"),
}


class Section(NamedTuple):
    """A heading and its lines."""

    key: str
    title: str
    items: tuple[str, ...]


class Page(NamedTuple):
    """The changes arranged for reading."""

    title: str
    head: str
    sections: tuple[Section, ...]


def page(changes: Changes, lang: str, verbose: bool = False) -> Page:
    """`changes` in sentences of `lang`; empty sections are left out."""
    writer = _Writer(changes, lang)
    sections = []
    for key, items in writer.sections():
        cut = items if verbose or len(items) <= SHOWN + 1 else items[:SHOWN]
        more = [_t("more", lang, n=len(items) - len(cut))] if len(cut) < len(items) else []
        if items:
            title = _WORDS[key].in_(lang) if key != "general" else ""
            sections.append(Section(key, title, tuple(clean(x) for x in (*cut, *more))))
    return Page(_WORDS["title_good" if changes.good else "title"].in_(lang), writer.head(), tuple(sections))


def text(
    changes: Changes,
    lang: str,
    columns: int = 100,
    paint: Paint | None = None,
    verbose: bool = False,
) -> str:
    """The block that stands under an answer on a terminal."""

    shown = page(changes, lang, verbose)
    bold = paint or Paint(on=False)
    out = [bold(line, "bold") for line in wrap(f"{shown.title} ({shown.head})", columns)]
    for section in shown.sections:
        out += [f"  {section.title}"] if section.title else []
        out += [
            line for item in section.items for line in wrap(item, columns, "    " if section.title else "  ", "      ")
        ]
    return "\n".join(out) + "\n"


def markdown(changes: Changes, lang: str, verbose: bool = False) -> str:
    """The block as Markdown, a section of the second level."""
    from assistant.render.markdown import escape

    shown = page(changes, lang, verbose)
    out = [f"## {escape(shown.title)}", "", escape(shown.head), ""]
    for section in shown.sections:
        if section.title:
            out += [f"**{escape(section.title)}**", ""]
        out += [*(f"- {escape(item)}" for item in section.items), ""]
    return "\n".join(out).rstrip() + "\n"


def html(changes: Changes, lang: str, verbose: bool = False) -> str:
    """The block as a fragment of HTML."""
    from html import escape

    shown = page(changes, lang, verbose)
    out = [f"<h2>{escape(shown.title)}</h2>", f"<p>{escape(shown.head)}</p>"]
    for section in shown.sections:
        if section.title:
            out.append(f"<h3>{escape(section.title)}</h3>")
        out.append(f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in section.items)}</ul>")
    return "\n".join(out) + "\n"


def plain(changes: Changes, lang: str = "en") -> dict[str, Any]:
    """The object that JSON carries."""
    c = changes
    return {
        "schema": SCHEMA,
        "host": c.host,
        "since": iso(c.since),
        "until": iso(c.until) if c.until is not None else None,
        "origin": c.origin,
        "against": "last_good" if c.good else "last",
        "changed": bool(c),
        "rebooted": c.rebooted,
        "state": {"before": c.state[0], "after": c.state[1]},
        "usable": {"before": c.usable[0], "after": c.usable[1]},
        "ruleset": {"before": c.ruleset[0], "after": c.ruleset[1]},
        "new": [f.id for f in c.new],
        "cleared": [_past(p, lang) for p in c.cleared],
        "unseen": [{**_past(u.finding, lang), "missing": list(u.missing)} for u in c.unseen],
        "worse": [_shift(s) for s in c.worse],
        "eased": [_shift(s) for s in c.eased],
        "still": [{"id": f.id, "since": iso(at)} for f, at in c.still],
        "facts": [
            {"fact": f.fact, "subject": _subject(f.subject), "before": _json(f.before), "after": _json(f.after)}
            for f in c.facts
        ],
        "counters": [
            {"fact": n.fact, "subject": _subject(n.subject), "before": n.before, "after": n.after, "increase": n.increase,
             "restarted": n.restarted}
            for n in c.counters
        ],
    }  # fmt: skip


class _Writer:
    def __init__(self, changes: Changes, lang: str) -> None:
        self.c, self.lang = changes, lang

    def head(self) -> str:
        """When the last check was."""
        origin = _WORDS[self.c.origin].in_(self.lang) if self.c.origin in _WORDS else self.c.origin
        time = readable(iso(self.c.since - self.c.since % 10**9))
        if self.c.until is None:
            return f"{time} ({origin})"
        return _t("head", self.lang, ago=span(self.c.until - self.c.since, self.lang), time=time, origin=origin)

    def sections(self) -> list[tuple[str, list[str]]]:
        """Key and lines of each section, the gravest first."""
        c = self.c
        general = [] if c else [_WORDS["same"].in_(self.lang)]
        if c.state[0] != c.state[1]:
            before, after = (label(s, self.lang) for s in c.state)
            general.append(_t("verdict", self.lang, before=before, after=after))
        if c.rebooted:
            general.append(_WORDS["rebooted"].in_(self.lang))
        if c.ruleset[0] != c.ruleset[1]:
            general.append(_t("rules", self.lang, before=c.ruleset[0], after=c.ruleset[1]))
        return [
            ("general", general),
            ("new", [self._finding(f) for f in c.new]),
            ("worse", [self._shift(s) for s in c.worse]),
            ("eased", [self._shift(s) for s in c.eased]),
            ("cleared", [self._past(p) for p in c.cleared]),
            ("unseen", [self._unseen(u) for u in c.unseen]),
            (
                "still",
                [f"{self._finding(f)}{self._comma}{_t('since', self.lang, time=_when(at))}" for f, at in c.still],
            ),
            ("facts", [self._fact(f) for f in c.facts]),
            ("counters", [self._counter(n) for n in c.counters]),
        ]

    @property
    def _colon(self) -> str:
        return colon(self.lang)

    @property
    def _comma(self) -> str:
        return "，" if self.lang == "zh" else ", "

    def _name(self, subject: Subject) -> str:
        return subject_name(subject, self.lang)

    def _finding(self, f: Finding) -> str:
        return f"{label(str(f.severity), self.lang)} {f.title.in_(self.lang)}{self._colon}{self._name(f.subject)}"

    def _past(self, p: PastFinding) -> str:
        lasted = _t("lasted", self.lang, first=_when(p.opened_at), last=_when(p.last_at))
        return f"{label(p.severity, self.lang)} {p.title.in_(self.lang)}{self._colon}{self._name(p.subject)}{self._comma}{lasted}"

    def _unseen(self, u: Unseen) -> str:
        needs = _t("missing", self.lang, facts=", ".join(u.missing[:4]))
        p = u.finding
        return f"{label(p.severity, self.lang)} {p.title.in_(self.lang)}{self._colon}{self._name(p.subject)}{aside(needs, self.lang)}"

    def _shift(self, s: Shift) -> str:
        what = ", ".join(f"{_WORDS[n].in_(self.lang)} {self._word(n, a)} -> {self._word(n, b)}" for n, a, b in s.what)
        return f"{s.finding.title.in_(self.lang)}{self._colon}{self._name(s.finding.subject)}{self._colon}{what}"

    def _word(self, name: str, value: str) -> str:
        return label(value, self.lang) if name in ("severity", "grade") else value

    def _fact(self, f: FactChange) -> str:
        return (
            f"{self._name(f.subject)}{self._colon}{f.fact} {shown(f.before, self.lang)} -> {shown(f.after, self.lang)}"
        )

    def _counter(self, n: CounterChange) -> str:
        key = "restarted" if n.restarted else "grown"
        numbers = {"before": f"{n.before:.6g}", "after": f"{n.after:.6g}", "n": f"{n.increase:.6g}"}
        return f"{self._name(n.subject)}{self._colon}{n.fact} {_t(key, self.lang, **numbers)}"


def updates(changes: Changes, lang: str) -> str:
    """One line: which software is another one than at the last good check, and how to see the rest."""
    found = changes.software
    said = [f"{c.fact} {shown(c.before, lang)} -> {shown(c.after, lang)}" for c in found[:3]]
    if len(found) > len(said):
        said.append(_t("more", lang, n=len(found) - len(said)))
    return _t(
        "updates", lang, when=_when(changes.since), what=("，" if lang == "zh" else ", ").join(clean(s) for s in said)
    )


def shown(value: Value, lang: str) -> str:
    """A value for people."""
    if value is None or value == ():
        return _WORDS["none"].in_(lang)
    if isinstance(value, bool):
        return _WORDS["yes" if value else "no"].in_(lang)
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def span(ns: int, lang: str) -> str:
    """A length of time in its largest unit: ``3 d``, ``2 h``, ``5 min``, ``10 s``."""
    seconds = max(0, ns) // 10**9
    for size, unit in ((86_400, Text("d", "天")), (3600, Text("h", "小时")), (60, Text("min", "分钟"))):
        if seconds >= size:
            return f"{seconds // size} {unit.in_(lang)}"
    return f"{seconds} {Text('s', '秒').in_(lang)}"


def _when(ns: int) -> str:
    return readable(iso(ns - ns % 10**9))


def _t(key: str, lang: str, **words: object) -> str:
    return _WORDS[key].in_(lang).format(**words)


def _subject(s: Subject) -> dict[str, str | None]:
    return {"scope": str(s.scope), "id": s.id, "host": s.host or None}


def _past(p: PastFinding, lang: str) -> dict[str, Any]:
    return {
        "id": p.key, "rule": p.rule, "title": p.title.in_(lang), "subject": _subject(p.subject), "severity": p.severity,
        "first_seen": iso(p.opened_at), "last_seen": iso(p.last_at),
    }  # fmt: skip


def _shift(s: Shift) -> dict[str, Any]:
    return {"id": s.finding.id, "what": [{"name": n, "before": a, "after": b} for n, a, b in s.what]}


def _json(value: Value) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
