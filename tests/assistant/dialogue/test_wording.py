"""How answers read: every follow-up over every recorded incident, in both languages, without seams of templates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

import pytest

from assistant.commands import demo
from assistant.dialogue.diagnose import answer as diagnosed
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.render import lines
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Table
from assistant.reply import Reply
from knowledge.facts import vocabulary
from knowledge.observation import Event
from tests.assistant.dialogue.talk import answered, turn, understood
from tests.cases import each
from tests.diagnoses import incident

ASKED = {
    "en": (
        "why?", "how do you know?", "how sure are you?", "what else could it be?", "what next?", "can I keep using it?",
        "is gpu 3 ok?", "is gpu 0 ok?", "should I reboot the node?", "do I need to replace it?", "why not xid 79?",
        "why not xid 48?", "why not a cable problem?", "why isn't it NCCL?", "why not the power supply?", "why not thermal?",
        "why did you rule out the driver?", "why not storage?", "what if ECC is off?", "what if there had been no xid 79?",
        "what if the power limit is 300?", "runbook", "how do I fix it?",
    ),
    "zh": (
        "为什么？", "依据是什么？", "有多确定？", "还可能是什么原因？", "下一步做什么？", "还能继续使用吗？", "gpu 3 正常吗？",
        "gpu 0 正常吗？", "需要重启节点吗？", "需要更换吗？", "为什么不是 xid 79？", "为什么不是 xid 48？", "为什么不是线缆问题？",
        "为什么不是 NCCL？", "为什么不是电源问题？", "为什么不是散热问题？", "为什么不是驱动问题？", "为什么不是存储问题？",
        "如果 ECC 关闭呢？", "如果没有 xid 79 呢？", "如果功率上限是 300 呢？", "处置手册",
    ),
}  # fmt: skip
BASES = {
    "en": ("check this node", "why is training slow?", "is gpu 3 ok?"),
    "zh": ("检查本节点", "训练为什么慢？", "gpu 3 正常吗？"),
}
_PROOF = frozenset({Intent.WHY, Intent.EVIDENCE, Intent.CONFIDENCE, Intent.WHYNOT, Intent.WHATIF, Intent.ALTERNATIVES, Intent.NEXT, Intent.VERDICT})  # fmt: skip
_SEAMS = (
    r"\{[a-z_]+\}", r"(?:[:=(,，：（] ?|^)None\b(?! known)", r"(?<=\S)  +(?=\S)", r": :", r"(?<!\.)\.\.(?!\.)", r"：：", r"：:", r"。。", r"；；", r"、、", r"，，", r"。；",
    r"；。", r"\(\)", r"（）", r"“”", r";;", r", ,", r"\. \.(?!\.)", r"; ?\.", r"says the rule", r"\[\[", r"not yet, not", r"(?i)hypothetical.*hypothetical",
)  # fmt: skip
_COMMANDS = frozenset({"command", "runbook", "check with", "命令", "处置手册", "核对命令"})
_HAN = re.compile("[\u4e00-\u9fff]")
_NAME = re.compile(r"\b[a-z]+[a-z0-9_]*(?:\.[a-z0-9_]+)+\b")


def spoken(reply: Reply) -> list[str]:
    """What a reply says in sentences: without commands."""
    out = [reply.headline]
    for part in reply.parts:
        match part:
            case Paragraph(text) | Heading(text):
                out.append(text)
            case Items(items):
                out += items
            case Fields(rows):
                out += [value for name, value in rows if value and name not in _COMMANDS]
            case Table(header, rows):
                out += [*header, *(cell for row in rows for cell in row if cell)]
            case Code():
                pass
    return [*out, *reply.suggestions]


class Lines:
    """Lines that may be quoted, by their first letters: whether a text holds one of thousands is asked often."""

    SHORTEST = 9

    def __init__(self, lines: Iterable[str]) -> None:
        self.by_beginning: dict[str, list[str]] = {}
        for line in lines:
            self.by_beginning.setdefault(line[: self.SHORTEST], []).append(line)

    def within(self, text: str) -> bool:
        return any(
            text.startswith(line, at)
            for at in range(len(text) - self.SHORTEST + 1)
            for line in self.by_beginning.get(text[at : at + self.SHORTEST], ())
        )


@cache
def quoted(name: str) -> tuple[Lines, Lines]:
    """The beginnings and the ends of the raw lines of an incident."""
    return Lines(raw_lines(name)), Lines(line[-24:] for line in raw_lines(name))


@cache
def raw_lines(name: str) -> tuple[str, ...]:
    """Log lines and raw values of an incident: they stand as they were printed."""
    seen = (k.inner for k in incident(name).facts.observations)
    said = set()
    for o in seen:
        said |= {lines.message(o), str(o.value.get("text") or "")} if isinstance(o.value, Event) else {o.excerpt}
    return tuple(line[:40] for line in said if len(line) > 8)


@cache
def replies(name: str, lang: str, base: str) -> list[tuple[str, Reply]]:
    """Everything that can be asked after `base`; after the second and third base what depends on it. What is supposed, and so
    concluded anew, in one language, in turns: which, changes from one incident and question to the next.
    """
    first, turns = understood(base, lang), demo.names().index(name) + list(ASKED).index(lang)
    out = []
    if first.intent is Intent.DIAGNOSE and first.symptoms:
        out.append((base, diagnosed(turn(incident(name), first))))
    for n, text in enumerate(ASKED[lang] if base == BASES[lang][0] else ASKED[lang][:6], turns):
        q = understood(text, lang)
        if not q.assumed or n % 2:
            out.append((text, answered(name, q, base=first)))
    return out


def own_words(text: str, name: str) -> str:
    """`text` without raw lines, code, paths, calls and numbers."""
    if any(lines.within(text) for lines in quoted(name)):
        return ""
    if text.endswith(" ...") and any(text[-24:-4] in line for line in raw_lines(name)):  # a cell that quotes a line
        return ""
    text = re.sub(r"`[^`]*`|\[[^\]]*\]|\((?:/|nvml|journalctl|NVML|statvfs)[^()]*(?:\([^()]*\)[^()]*)?\)", " ", text)
    return re.sub(r"\S*[/_=<>{}()0-9]\S*", " ", text)


@pytest.mark.slow
@each("lang", ["en", "zh"])
@each("name", demo.names())
def test_no_seams(name: str, lang: str) -> None:
    for base in BASES[lang]:
        for text, reply in replies(name, lang, base):
            for said in spoken(reply):
                if not quoted(name)[0].within(said):
                    assert not [seam for seam in _SEAMS if re.search(seam, said)], (base, text, said)


@pytest.mark.slow
@each("name", demo.names())
def test_chinese_answers_are_chinese(name: str) -> None:
    """Codes, commands, metric and product names stay; four English words in a row without a Chinese one do not."""
    for base in BASES["zh"]:
        for text, reply in replies(name, "zh", base):
            for said in spoken(reply):
                words = own_words(said, name)
                run = re.search(r"(?:\b[a-z]{2,}\b[ ,;]+){5,}", words)
                assert run is None, (base, text, said)
                if not _HAN.search(said):
                    assert len(re.findall(r"\b[a-z]{3,}\b", words)) < 4, (base, text, said)


@pytest.mark.slow
@each("lang", ["en", "zh"])
@each("name", demo.names())
def test_facts_are_sentences(name: str, lang: str) -> None:
    """The proof is told in the facts' sentences: their names stand only where a person is to type one."""
    known = {s.name for s in vocabulary()}
    for base in BASES[lang]:
        for text, reply in replies(name, lang, base):
            if understood(text, lang).intent not in _PROOF:
                continue
            for said in spoken(reply)[: -len(reply.suggestions) or None]:
                if "gpudiag check" in said or "node.maintenance." in said:
                    continue  # names that somebody is to type
                assert not known & set(_NAME.findall(own_words_keep(said))), (base, text, said)


def own_words_keep(text: str) -> str:
    """`text` without places, which may look like names."""
    return re.sub(r"\((?:/|nvml|journalctl)[^()]*\)|/\S+", " ", text)


@pytest.mark.slow
@each("lang", ["en", "zh"])
@each("name", demo.names())
def test_follow_ups_are_short(name: str, lang: str) -> None:
    """Half a screen: at most 24 lines, items and rows."""
    for base in BASES[lang]:
        for text, reply in replies(name, lang, base):
            if text in BASES[lang] or "runbook" in text or text == "处置手册":
                continue
            assert len(spoken(reply)) - len(reply.suggestions) <= 36, (base, text)
            rows = sum(len(p.rows) if isinstance(p, Table) else 1 for p in reply.parts)
            assert rows <= 24, (base, text)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_suggestions_have_one_style_and_are_understood(lang: str) -> None:
    """A question ends in its mark, in the mark of its language; each is understood as what it says."""
    for name in ("overheating", "off-the-bus", "healthy"):
        for base in BASES[lang]:
            for text, reply in replies(name, lang, base):
                for said in reply.suggestions:
                    assert understood(said, lang).intent is not Intent.UNKNOWN, (text, said)
                    wrong = "?" if lang == "zh" else "？"
                    assert not said.endswith(wrong), (text, said)
                    if re.match(r"(?:why|how|what|can|is)\b|为什么|怎么", said):
                        assert said.endswith(("?", "？")), (text, said)


@each(
    ("lang", "text", "said"),
    [
        ("en", "is gpu 3 ok?", "can it be used: gpu 3"),
        ("en", "what if there had been no xid 79?", "what if no XID 79"),
        ("en", "what if the power limit is 300?", "what if enforced power limit is 300 W"),
        ("en", "why not a cable problem?", "why not: cables or links"),
        ("zh", "gpu 3 正常吗？", "能否继续使用：gpu 3"),
        ("zh", "为什么不是散热问题？", "为什么不是：过热或散热"),
        ("zh", "如果没有 xid 79 呢？", "假设：没有 XID 79"),
    ],
)
def test_the_echo_reads_as_a_line(lang: str, text: str, said: str) -> None:
    assert understand(text, lang=lang).echo.in_(lang) == said
