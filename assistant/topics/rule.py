"""Rules: the page that lives with each rule, its condition in words, its action."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assistant.render import describe
from assistant.render.labels import label, scope_name
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Part, Sheet
from knowledge.errors import UsageError
from knowledge.language import Text
from knowledge.units import format_duration

if TYPE_CHECKING:
    from rules.loader import RuleSet
    from rules.model import Rule

KIND = "rule"
HELP = "a rule: what it says, how it is recognised, what it is mistaken for"


def names() -> Iterable[str]:
    """Ids of the shipped rules."""
    from rules.loader import shipped

    return shipped()


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one shipped rule."""
    from rules.loader import load

    if len(words) != 1:
        raise UsageError("rule takes one id", hint="gpudiag rules list shows them")
    return page(load(), words[0], lang)


def page(ruleset: RuleSet, rule_id: str, lang: str) -> Sheet:
    """The page of a rule of `ruleset`."""
    r = ruleset[rule_id]

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    parts: list[Part] = [
        Fields((
            (t("rule", "规则"), f"{r.id} ({t('revision', '修订')} {r.revision}, {_STATUS[str(r.status)].in_(lang)})"),
            (t("severity", "级别"), label(str(r.severity), lang)),
            (t("about", "对象"), scope_name(r.scope, lang)),
            (t("applies to", "适用范围"), ", ".join(f"{k}: {_plain(v)}" for k, v in r.applies.items())),
            (t("action", "动作"), _action(r, lang)),
            (t("runbook", "处置手册"), r.action.runbook),
            (t("file", "文件"), r.file),
        )),
        Heading(t("Why", "说明")),
        Paragraph(r.why.in_(lang)),
        Heading(t("Mistaken for it", "容易误判的情况")),
        Paragraph(r.false_positives.in_(lang)),
        Heading(t("Holds when", "成立条件")),
        Code(tuple(describe.lines(r.when, lang))),
    ]  # fmt: skip
    for heading, conditions in (
        (t("Confirmed by", "可据此确认"), r.confirms),
        (t("Ruled out by", "可据此排除"), r.excludes),
    ):
        if conditions:
            parts += [Heading(heading), Code(tuple(x for c in conditions for x in describe.lines(c, lang)))]
    explains = [
        e.rule or t("what NVIDIA's catalogue lists as its fallout", "NVIDIA 目录列出的后果") for e in r.explains
    ]
    if explains:
        parts += [Heading(t("Explains", "可解释")), Items(tuple(explains))]
    if r.impact is not None:
        said = t(f"{r.impact.share}, of {r.impact.of.en}", f"{r.impact.share}，占{r.impact.of.zh}")
        parts += [Heading(t("Time it explains", "可解释的时间")), Items((said,))]
    if r.params:
        rows = tuple((p.name, f"{p.default} ({p.min} .. {p.max})") for p in r.params)
        parts += [Heading(t("A site may set", "站点可设参数")), Fields(rows)]
    parts += [Heading(t("Sources", "来源")), Items(r.references)]
    return Sheet(r.name.in_(lang), tuple(parts), {"kind": KIND, **plain(r, lang)})


def plain(r: Rule, lang: str) -> dict[str, object]:
    """A rule as plain data."""
    return {
        "id": r.id, "revision": r.revision, "title": r.name.in_(lang), "area": r.area, "status": str(r.status),
        "severity": str(r.severity), "scope": str(r.scope), "xid": r.xid, "why": r.why.in_(lang),
        "false_positives": r.false_positives.in_(lang), "references": list(r.references), "file": r.file,
        "when": describe.lines(r.when, "en"), "confirms": [describe.lines(c, "en") for c in r.confirms],
        "excludes": [describe.lines(c, "en") for c in r.excludes],
        "explains": [{"rule": e.rule or None, "by": e.by or None, "within": format_duration(e.within)} for e in r.explains],
        "impact": {"share": r.impact.share, "window": r.impact.window or None} if r.impact else None, "shows": list(r.shows),
        "names": r.names.in_(lang) or None,
        "action": {"bucket": str(r.action.bucket) if r.action.bucket else None, "resolve": list(r.action.resolve),
                   "runbook": r.action.runbook or None},
        "params": {p.name: {"default": p.default, "min": p.min, "max": p.max} for p in r.params},
        "tests": [c.name for c in r.tests],
    }  # fmt: skip


def _action(r: Rule, lang: str) -> str:
    from rules.resolve import buckets

    a = r.action
    asked = [label(name, lang) for name in a.resolve]
    words = ""
    if a.bucket:
        words = f"{a.bucket}: {(a.text or buckets()[a.bucket].text).in_(lang)}"
    if not asked:
        return words
    before = Text("first ", "先看 ").in_(lang) + ", ".join(asked)
    return f"{before}; {Text('otherwise ', '否则 ').in_(lang)}{words}" if words else before


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


_STATUS = {"draft": Text("draft", "草案"), "stable": Text("stable", "稳定"), "retired": Text("retired", "已停用")}
