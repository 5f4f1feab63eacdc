"""The remedy of a topic, from the catalogues alone: whose word it is, what it says, what it costs, which runbook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assistant.dialogue._pages import SENTENCE, text_in, title_of
from assistant.find import topic
from assistant.render.cells import cut
from assistant.render.labels import colon, label
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Part
from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass

if TYPE_CHECKING:
    from knowledge.runbook import Step
    from rules.loader import RuleSet
    from rules.resolve import BucketInfo

STEPS = 3  # of the runbook that are shown; the runbook itself has all


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do about one topic."""

    about: str  # "xid 79: GPU has fallen off the bus"
    source: Text  # whose word it is
    bucket: str = ""  # the action word as the source prints it
    said: Text = NO_TEXT  # the action in a sentence
    command: str = ""
    risk: str = ""  # safe, disruptive, destructive
    check: Text = NO_TEXT  # what to look at next
    steps: tuple[Text, ...] = ()  # the vendor's own steps, where it gives some
    confirm: tuple[Text, ...] = ()  # what is seen when it is this and nothing else
    causes: tuple[Text, ...] = ()  # of a symptom: what can be behind it
    runbook: str = ""


_NVIDIA = Text("NVIDIA's Xid catalogue", "NVIDIA Xid 目录")
_OURS = Text("gpudiag", "gpudiag")


def of(name: str, ruleset: RuleSet | None, lang: str) -> Remedy | None:
    """The remedy for the topic `name` (``xid 79``); None when its kind has none, or nothing has this name."""
    kind, _, rest = name.partition(" ")
    read = _READ.get(kind)
    if read is None:
        return None
    found = topic(name)
    about = title_of(found, lang) if found is not None else name
    return read(rest, about, ruleset)


def _bucket(word: str) -> BucketInfo | None:
    from rules.model import Bucket
    from rules.resolve import buckets

    return buckets()[Bucket(word)] if word in Bucket.__members__ else None


def _from_bucket(about: str, source: Text, word: str, **more: Any) -> Remedy:
    """A remedy whose action is one of the closed list of words."""
    info = _bucket("XID_154_EVAL" if word == "XID_154" else word)
    if info is None:
        return Remedy(about, source, word, **more)
    book = more.pop("runbook", "") or info.runbook
    return Remedy(about, source, word, info.text, info.command, str(info.risk), runbook=book, **more)


def _runbook_about(name: str) -> str:
    """The runbook of a code ("xid 79"): of those that list it, the one that most rules about the code lead to.

    Among equals the one where the code stands first: there stand the codes that a runbook was written for.
    """
    from knowledge.runbook import about
    from rules.loader import shipped

    books = about(name)
    if len(books) < 2:
        return books[0].id if books else ""
    kind, _, code = name.partition(" ")
    rules = [data for _, data in shipped().values() if kind == "xid" and str(data.get("xid")) == code]
    used = [data["action"].get("runbook") for data in rules]
    return min(books, key=lambda b: (-used.count(b.id), b.applies.index(name), b.id)).id


def _xid(rest: str, about: str, _: RuleSet | None) -> Remedy | None:
    from knowledge.catalog.xid import xid

    entry = xid(int(rest)) if rest.isdecimal() else None
    if entry is None:
        return None
    book = _runbook_about(f"xid {entry.code}")
    source = _NVIDIA if entry.immediate else Text("NVIDIA names no action", "NVIDIA 未给出动作")
    return _from_bucket(about, source, str(entry.immediate), steps=entry.workflow, confirm=entry.confirm, runbook=book)


def _sxid(rest: str, about: str, _: RuleSet | None) -> Remedy | None:
    from knowledge.catalog.sxid import advise, sxid

    if not rest.isdecimal() or sxid(int(rest)) is None:
        return None
    advice = advise(int(rest))
    source = Text(advice.source, advice.source)
    return _from_bucket(about, source, advice.bucket, check=advice.text, runbook=_runbook_about(f"sxid {rest}"))


def _rule(rest: str, about: str, ruleset: RuleSet | None) -> Remedy | None:
    from knowledge.errors import UnknownNameError
    from rules.loader import load

    try:
        rule = (ruleset or load())[rest]
    except UnknownNameError:
        return None
    a = rule.action
    if a.bucket is None and rule.xid is not None:
        found = _xid(str(rule.xid), about, ruleset)
        return found if not a.runbook or found is None else _with_runbook(found, a.runbook)
    if a.bucket is None:
        said = Text("The action is read from what was seen.", "动作取决于观测到的内容。")
        return Remedy(about, _OURS, said=said, runbook=a.runbook)
    found = _from_bucket(about, _OURS, str(a.bucket), runbook=a.runbook)
    return Remedy(about, _OURS, found.bucket, a.text or found.said, a.command or found.command,
                  str(a.risk) if a.risk else found.risk, steps=a.then, runbook=found.runbook)  # fmt: skip


def _with_runbook(r: Remedy, book: str) -> Remedy:
    return replace(r, runbook=book)


def _signature(rest: str, about: str, _: RuleSet | None) -> Remedy | None:
    from knowledge.catalog.lookup import signature

    s = signature(rest)
    if s is None:
        return None
    found = _from_bucket(about, _OURS, s.bucket)
    return replace(found, said=s.check or found.said)  # "change the setting" alone does not say which


def _cuda(rest: str, about: str, _: RuleSet | None) -> Remedy | None:
    from knowledge.catalog.cuda import find

    status = find(rest)
    return None if status is None else _from_bucket(about, _OURS, status.bucket, check=status.check)


def _clock(rest: str, about: str, _: RuleSet | None) -> Remedy | None:
    from knowledge.catalog.clock_events import find

    event = find(rest)
    return None if event is None else _from_bucket(about, _OURS, event.bucket, check=event.check)


def _dcgm(rest: str, about: str, _: RuleSet | None) -> Remedy | None:
    from knowledge.catalog.dcgm import error

    found = error(rest)
    return None if found is None else _from_bucket(about, _OURS, found.bucket, check=found.meaning)


def _action(rest: str, about: str, _: RuleSet | None) -> Remedy | None:
    return _from_bucket(about, _OURS, rest) if _bucket(rest) else None


def _runbook(rest: str, about: str, _: RuleSet | None) -> Remedy | None:
    from knowledge.errors import UnknownNameError
    from knowledge.runbook import runbook

    try:
        book = runbook(rest)
    except UnknownNameError:
        return None
    return Remedy(about, _OURS, said=book.summary, runbook=book.id)


def _symptom(rest: str, about: str, _: RuleSet | None) -> Remedy | None:
    from knowledge.symptoms import symptoms

    found = symptoms().get(rest)
    if found is None:
        return None
    causes = tuple(h.title for h in found.hypotheses[:6])
    first = Text(
        "Find the cause first: run gpudiag check where it happened.", "先查明原因：在出问题的机器上运行 gpudiag check。"
    )
    if len(causes) > 1:
        usual, other = causes[:2]
        first = Text(
            f"Find the cause first, with gpudiag check where it happened. Suspect: {usual.en}; then: {other.en}.",
            f"先在出问题的机器上运行 gpudiag check 查明原因。首先怀疑：{usual.in_('zh')}；其次：{other.in_('zh')}。",
        )
    return Remedy(about, _OURS, said=first, causes=causes, command="gpudiag check")


_READ: Mapping[str, Callable[[str, str, Any], Remedy | None]] = {
    "xid": _xid, "sxid": _sxid, "rule": _rule, "nccl": _signature, "pytorch": _signature, "cuda": _cuda, "clock": _clock,
    "dcgm": _dcgm, "action": _action, "runbook": _runbook, "symptom": _symptom,
}  # fmt: skip


# --- shown ----------------------------------------------------------------------------------


def headline(r: Remedy, lang: str) -> str:
    """``RESTART_BM: Drain and reboot the node.`` in one sentence, about what."""
    said = r.said.in_(lang) or r.check.in_(lang) or text_in(lang, " ", "").join(s.in_(lang) for s in r.steps[:2])
    word = f"{r.bucket}{colon(lang)}" if r.bucket else ""
    if not said and not word:
        said = text_in(lang, "No action is known for it.", "没有已知的处置动作。")
    return cut(f"{word}{said}" if said else r.bucket, SENTENCE)


def parts(r: Remedy, values: Mapping[str, str | int], lang: str) -> tuple[Part, ...]:
    """Command, risk and source; the vendor's steps; the first steps of the runbook and how to see that it worked."""
    out: list[Part] = [Code((f"$ {ready(r.command, values)}",))] if r.command else []
    risk = "" if r.risk in ("", "safe") else label(r.risk, lang)
    out.append(Fields((
        (text_in(lang, "for", "针对"), r.about),
        (text_in(lang, "says", "依据"), r.source.in_(lang)),
        (text_in(lang, "risk", "风险"), risk),
        (text_in(lang, "look at next", "下一步查看"), r.check.in_(lang) if r.said else ""),
    )))  # fmt: skip
    for heading, texts in (
        (Text("In order", "依次"), r.steps),
        (Text("Check", "核对"), r.confirm),
        (Text("Can be behind it", "可能的原因"), r.causes),
    ):
        if texts:
            items = tuple(s.in_(lang) for s in texts)
            out += [Heading(heading.in_(lang)), Items(items, numbered=texts is r.steps)]
    return (*out, *runbook_parts(r.runbook, values, lang, STEPS))


def runbook_parts(name: str, values: Mapping[str, str | int], lang: str, most: int) -> list[Part]:
    """The first `most` steps of a runbook, and how many more there are; nothing without a runbook."""
    from knowledge.runbook import runbook

    if not name:
        return []
    book = runbook(name)
    rest = len(book.steps) - most
    out: list[Part] = [Heading(text_in(lang, f"Runbook {name}", f"处置手册 {name}"))]
    for n, step in enumerate(book.steps[:most], 1):
        out += step_parts(n, step, values, lang)
    if rest > 0:
        more = text_in(lang, f"{rest} more steps: runbook {name}", f"还有 {rest} 步：处置手册 {name}")
        out.append(Paragraph(more))
        last = next((s.verify for s in reversed(book.steps) if s.verify), NO_TEXT)
        out.append(Fields(((text_in(lang, "done when", "完成标志"), last.in_(lang)),)))
    return out


def ready(command: str, values: Mapping[str, str | int]) -> str:
    """A command with what is known filled in; what is not stands in capitals, as in a manual: ``ibstat IB_DEVICE``."""
    from knowledge import runbook

    return runbook.ready(command, values)


def step_parts(n: int, step: Step, values: Mapping[str, str | int], lang: str) -> list[Part]:
    """One numbered step: what to do, its command, when, risk, consent, and how to see that it is done."""
    consent = {"operator": text_in(lang, "the operator's", "运维人员"), "owner": text_in(lang, "the owner's", "所有者")}
    out: list[Part] = [Heading(f"{n}. {step.title.in_(lang)}"), Paragraph(step.do.in_(lang))]
    if step.command:
        out.append(Code((f"$ {ready(step.command, values)}",)))
    out.append(Fields((
        (text_in(lang, "when", "何时"), step.when.in_(lang)),
        (text_in(lang, "risk", "风险"), "" if step.risk == "safe" else label(str(step.risk), lang)),
        (text_in(lang, "consent", "需经同意"), consent.get(str(step.consent), "")),
        (text_in(lang, "done when", "完成标志"), step.verify.in_(lang)),
        (text_in(lang, "check with", "核对命令"), ready(step.verify_command, values)),
        (text_in(lang, "otherwise", "否则"), step.on_failure),
    )))  # fmt: skip
    return out


def plain(r: Remedy, lang: str) -> dict[str, Any]:
    """A remedy for JSON."""
    return {
        "about": r.about, "source": r.source.in_(lang), "bucket": r.bucket or None, "said": r.said.in_(lang) or None,
        "command": r.command or None, "risk": r.risk or None, "runbook": r.runbook or None,
        "steps": [s.in_(lang) for s in r.steps],
    }  # fmt: skip
