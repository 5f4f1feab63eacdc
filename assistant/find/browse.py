"""Walking through what is known: the kinds of pages, the links that stand in a page, and what else is about its topic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.find import topic, topics
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.intent.query import Topic
    from assistant.render.sheet import Part, Sheet
    from rules.loader import RuleSet

GLUE = "\u00a0"  # stands for a blank within a link, so that no line ends there
_CODE = re.compile(r"\b(s?xid) (\d{1,5})\b", re.IGNORECASE)
# gpu-fell-off-bus    gpu.temperature.core    CUDA_ERROR_ILLEGAL_ADDRESS
_NAME = re.compile(r"(?<![\w./:-])[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)+(?![\w/-])")
_BY_NAME = ("rule", "runbook", "fact", "cuda", "dcgm", "clock", "status", "action", "nccl", "pytorch", "symptom", "howto", "range", "advice")  # fmt: skip


class Kind(NamedTuple):
    """One kind of page."""

    name: str  # "xid"
    title: Text
    about: Text


KINDS = (
    Kind("xid", Text("XID codes", "XID 代码"), Text("what the NVIDIA driver reports of a GPU", "NVIDIA 驱动报告的 GPU 事件")),
    Kind("sxid", Text("SXid codes", "SXid 代码"), Text("what an NVSwitch reports", "NVSwitch 报告的事件")),
    Kind("rule", Text("Rules", "规则"), Text("what is concluded, from what, and what it is mistaken for", "结论、依据与易混淆的情况")),
    Kind("runbook", Text("Runbooks", "处置手册"), Text("what to do, step by step", "逐步处置")),
    Kind("howto", Text("How to", "操作方法"), Text("tasks on a GPU machine, with the commands", "GPU 机器上的操作与命令")),
    Kind("advice", Text("Advice", "建议"), Text("which of two, what may be done beside running jobs, what to set", "二选一、有任务时能做什么、要不要设置")),
    Kind("symptom", Text("Symptoms", "症状"), Text("what people say is wrong, and what can be behind it", "人们描述的问题及其可能原因")),
    Kind("range", Text("Normal values", "正常范围"), Text("what is a good value, and what is not", "数值多少算正常")),
    Kind("term", Text("Glossary", "术语"), Text("words of the field", "领域术语")),
    Kind("fact", Text("Facts", "事实"), Text("what can be known of a machine, and who tells it", "可获知的信息及其来源")),
    Kind("cuda", Text("CUDA errors", "CUDA 错误"), Text("what a program is told", "程序得到的错误码")),
    Kind("nccl", Text("NCCL messages", "NCCL 消息"), Text("what the library prints", "NCCL 库打印的消息")),
    Kind("pytorch", Text("PyTorch messages", "PyTorch 消息"), Text("what the framework prints", "框架打印的消息")),
    Kind("dcgm", Text("DCGM fields", "DCGM 字段"), Text("metrics and errors of NVIDIA's data center manager", "NVIDIA DCGM 的指标与错误")),
    Kind("clock", Text("Clock events", "时钟事件"), Text("why a GPU runs slower than it could", "GPU 降频的原因")),
    Kind("status", Text("Driver status", "驱动状态码"), Text("why NVIDIA's driver refused or failed", "NVIDIA 驱动拒绝或失败的原因")),
    Kind("gpu", Text("GPU models", "GPU 型号"), Text("memory, bandwidth, peak rates, power", "显存、带宽、峰值算力、功耗")),
    Kind("action", Text("Actions", "动作"), Text("the vendor's words for what to do", "厂商对处置动作的用语")),
)  # fmt: skip


def kind_of(name: str) -> Kind:
    """The kind called `name`; one that is not listed is called by its name."""
    return next((k for k in KINDS if k.name == name), Kind(name, Text(name, name), Text("")))


def called(t: Topic, lang: str) -> tuple[str, str]:
    """A topic's name and title as a list shows them: ``XID 79``, ``GPU has fallen off the bus``; titles alone where
    nobody knows the names."""
    title = t.title.in_(lang)
    title = "" if "{" in title or title.casefold() == t.name.casefold() else title  # of rules that fill it in
    if t.kind in ("xid", "sxid"):
        return f"{'XID' if t.kind == 'xid' else 'SXid'} {t.name}", title
    if t.kind in ("rule", "runbook", "howto", "advice", "symptom", "range", "term", "gpu", "clock"):
        return title or t.name, ""
    return t.name, title


def question(t: Topic, lang: str) -> str:
    """The sentence that the page of `t` answers, and no other."""
    if t.kind in ("xid", "sxid"):
        return f"{t.id} 是什么？" if lang == "zh" else f"what is {t.id}?"
    return f"解释 {t.id}" if lang == "zh" else f"explain {t.id}"


# --- links --------------------------------------------------------------------------------


class Linked(NamedTuple):
    """A page whose links are known."""

    name: str  # "xid 79"
    title: str
    parts: Sequence[Part]  # in links `GLUE` stands for a blank
    links: Mapping[str, str]  # what stands in the text, with `GLUE` -> the topic it leads to

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and topic of every link in a line of the page."""
        if self.links:
            for found in self._pattern().finditer(text):
                yield found.start(), found.end(), self.links[found[0]]

    def _pattern(self) -> re.Pattern[str]:
        words = sorted(self.links, key=lambda w: (-len(w), w))
        return _compiled("|".join(map(re.escape, words)))


_PATTERNS: dict[str, re.Pattern[str]] = {}


def _compiled(words: str) -> re.Pattern[str]:
    if words not in _PATTERNS:
        _PATTERNS.clear()  # one page is looked at
        _PATTERNS[words] = re.compile(rf"(?<![\w./:-])(?:{words})(?![\w/-])")
    return _PATTERNS[words]


def linked(name: str, sheet: Sheet, also: Sequence[Topic] = (), lang: str = "en") -> Linked:
    """`sheet`, the page of the topic `name`, with its links; `also` stands below it."""
    from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Table

    links: dict[str, str] = {}

    def glued(text: str) -> str:
        return _glued(text, name, links)

    def listed(text: str) -> str:
        """A value that may be a list of titles."""
        pieces = text.split(", ")
        return ", ".join(_titled(p, name, links) or glued(p) for p in pieces)

    parts: list[Part] = []
    for part in sheet.parts:
        match part:
            case Paragraph(text):
                parts.append(Paragraph(glued(text)))
            case Fields(rows):
                parts.append(Fields(tuple((key, listed(value)) for key, value in rows)))
            case Items(items, numbered):
                parts.append(Items(tuple(map(glued, items)), numbered))
            case Table(header, rows):
                parts.append(Table(header, tuple(tuple(map(glued, row)) for row in rows)))
            case Code(lines):
                parts.append(Code(tuple(map(glued, lines))))
            case _:
                parts.append(part)
    below = [t for t in also if t.id not in links.values() and t.id != name]
    if below:
        parts.append(Heading(Text("See also", "另见").in_(lang)))
        parts.append(Items(tuple(_entry(t, links, lang) for t in below)))
    return Linked(name, sheet.title, tuple(parts), links)


def _entry(t: Topic, links: dict[str, str], lang: str) -> str:
    name, title = called(t, lang)
    shown = name.replace(" ", GLUE)
    if links.get(shown, t.id) != t.id:  # a rule and its runbook may have one title
        shown, title = t.name.replace(" ", GLUE), name
    links[shown] = t.id
    kind = kind_of(t.kind).title.in_(lang)
    return f"{kind}: {shown}" + (f" · {title}" if title else "")


def _glued(text: str, own: str, links: dict[str, str]) -> str:
    def code(found: re.Match[str]) -> str:
        there = topic(f"{found[1].casefold()} {found[2]}")
        return keep(found[0], there) if there is not None else found[0]

    def word(found: re.Match[str]) -> str:
        there = next((t for kind in _BY_NAME if (t := topic(f"{kind} {found[0]}")) is not None), None)
        return keep(found[0], there) if there is not None else found[0]

    def keep(shown: str, there: Topic) -> str:
        if there.id == own:
            return shown
        shown = shown.replace(" ", GLUE)
        links.setdefault(shown, there.id)
        return shown

    return _NAME.sub(word, _CODE.sub(code, text))


def _titled(piece: str, own: str, links: dict[str, str]) -> str:
    """A piece of a list that is the title of a term."""
    there = _terms().get(piece.casefold().strip())
    if there is None or there == own:
        return ""
    shown = piece.replace(" ", GLUE)
    links.setdefault(shown, there)
    return shown


def _terms() -> Mapping[str, str]:
    if not _TERMS:
        _TERMS.update({said.casefold(): t.id for t in topics("term") for said in (t.title.en, t.title.zh) if said})
    return _TERMS


_TERMS: dict[str, str] = {}


def related(name: str, ruleset: RuleSet) -> tuple[Topic, ...]:
    """What is about the same thing, though its page does not say so: rules and runbooks of a code, runbooks of a rule."""
    from knowledge.runbook import about

    kind, _, number = name.partition(" ")
    books = [f"runbook {b.id}" for b in (*about(name), *(about(number) if kind == "rule" else ()))]
    code = int(number) if kind in ("xid", "sxid") and number.isdecimal() else None
    rules = [f"rule {r}" for r in _rules_on(code, kind, ruleset)] if code is not None else []
    found = (topic(t) for t in dict.fromkeys((*rules, *books)))
    return tuple(t for t in found if t is not None)


def _rules_on(code: int, kind: str, ruleset: RuleSet) -> list[str]:
    from rules.condition import EventLeaf, leaves
    from rules.model import Rules

    rules = ruleset.rules.about(frozenset({kind})) if isinstance(ruleset.rules, Rules) else ruleset.rules
    out = []
    for rule in rules:
        mine = [leaf for leaf in leaves(rule.when) if isinstance(leaf, EventLeaf) and leaf.event == kind]
        tests = [test for leaf in mine for test in leaf.where]
        named = {v for t in tests if t.field == "code" for v in (t.value if isinstance(t.value, tuple) else (t.value,))}
        if code in named or (kind == "xid" and rule.xid == code):
            out.append(rule.id)
    return out
