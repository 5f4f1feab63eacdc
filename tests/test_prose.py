"""Laws of what gpudiag says: every answer about the recorded incidents, in both languages, and every sentence of a fact.

Raw lines of logs and tools are quoted as they are: they are taken out before the text is looked at.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from assistant.diagnosis import Diagnosis
from assistant.intent.parse import understand
from assistant.intent.query import Assumed, Intent
from assistant.narrate.wording import sentences
from assistant.render import lines
from assistant.render.sheet import Heading
from assistant.reply import Reply
from knowledge.facts import Type, vocabulary
from knowledge.language import LANGUAGES
from knowledge.observation import Event
from tests.assistant.dialogue.talk import ask, query, rules, texts
from tests.cases import each
from tests.diagnoses import incident

# One with several findings, one that is a node's, one of two GPUs, one about a process, one with nothing wrong, ...
STORIES = (
    "cpu-limit",
    "double-bit-error",
    "healthy",
    "left-behind",
    "nfs-hung",
    "off-the-bus",
    "power-brake",
    "rail-down",
)
INTENTS = (
    Intent.VERDICT,
    Intent.WHY,
    Intent.EVIDENCE,
    Intent.CONFIDENCE,
    Intent.ALTERNATIVES,
    Intent.NEXT,
    Intent.WHATIF,
)
HAN = "\u4e00-\u9fff"
_NO_PLURAL = "is|was|has|us|ms|ns|does|process|bus|less|class|as|its|this|needs|SMs"
_FUNCTION = r"(?<!-)\b(?:the|of|and|is|are|was|were|not|with|from|for|that|which|needs|could|this|it)\b(?!-)"
_CODE = re.compile(r"`[^`]*`|\[[^\]]*\]|\([^()]*[/=_.][^()]*\)|（[^（）]*[/=_.][^（）]*）|\"[^\"]*\"")


@cache
def answers(name: str, lang: str) -> tuple[Reply, ...]:
    """What is said of an incident to the usual follow-ups."""
    d = incident(name)
    warm = (Assumed("gpu.temperature.core", "50 C"),)
    return tuple(ask(d, query(i, lang=lang, assumed=warm if i is Intent.WHATIF else ())) for i in INTENTS)


def quoted(d: Diagnosis) -> set[str]:
    """Raw lines that an answer may quote."""
    return {lines.message(k.inner) for k in d.facts.observations if isinstance(k.inner.value, Event)}


def ours(name: str, reply: Reply) -> list[str]:
    """The texts of a reply without what is quoted: raw lines, commands, places."""
    raw = sorted((r for r in quoted(incident(name)) if len(r) > 8), key=len, reverse=True)
    out = []
    for text in texts(reply):
        for line in raw:
            text = text.replace(line, "...")
        text = re.sub(
            r"^(?:信息|提示|警告|错误|严重) ", "", text
        )  # the severity is a label, not a word of the sentence
        if not text.startswith("$ ") and "NVRM" not in text:
            out.append(_CODE.sub("...", text))
    return out


def faults(text: str, lang: str) -> list[str]:
    """What a reader would stumble over."""
    laws = {
        "a word twice": r"\b([A-Za-z]{2,}) \1\b",
        "two marks": r"[,;:：，；。][ ]?[,;:：，；。]|(?<!\.)\.\.(?!\.)|[^.] [,;:](?: |$)",
        "a number on its unit": r"\b\d+(?:\.\d+)?(?:W|C|GB|MB|ms|us|MHz|GiB|MiB|GT/s|Gb/s)\b|\d%",
        "a time to the nanosecond": r"\d\d:\d\d:\d\d\.\d{4,}",
        "figures without end": r"(?<![\d.:-])\d+\.\d{4,}",
    }
    if lang == "en":
        laws["one of many"] = rf"(?<![\w.:/-])1 (?!(?:{_NO_PLURAL})\b)[a-z]+s\b"
        laws["a link in a chain of colons"] = r"^(?:Yes|No|Confirmed|Probable|Possible|Found|Supposed)[^.:]*: [^.:]+: "
        laws["no word for the lack"] = r"needs (?:not among|no answer)"
    else:
        laws["no blank"] = rf"[{HAN}][A-Za-z0-9]|[A-Za-z0-9%][{HAN}]"
        laws["a blank too many"] = rf"[{HAN}] +[{HAN}]"
        laws["a mark of the other language"] = rf"[{HAN}][,;!?](?: |$|[{HAN}])"
        laws["English"] = _FUNCTION
    return [f"{law}: {text!r}" for law, pattern in laws.items() if re.search(pattern, text)]


@pytest.mark.slow
@each("lang", LANGUAGES)
@each("name", STORIES)
def test_nobody_stumbles(name: str, lang: str) -> None:
    found = [fault for reply in answers(name, lang) for text in ours(name, reply) for fault in faults(text, lang)]
    assert not found


@pytest.mark.slow
@each("lang", LANGUAGES)
@each("name", STORIES)
def test_an_answer_begins_with_a_sentence_in_plain_words(name: str, lang: str) -> None:
    for reply in answers(name, lang):
        head = reply.headline
        assert head[-1] in (".?!。？！:：" if reply.parts else ".?!。？！"), head  # a list may follow
        assert not head[0].islower(), head
        assert not [word for word in re.findall(r"\b[a-z_]+(?:\.[a-z0-9_]+)+\b", head) if word in vocabulary()], head
        assert all(len(sentence.split()) <= 40 for sentence in re.split(r"(?<=[.?!]) ", head)), head


@pytest.mark.slow
@each("lang", LANGUAGES)
@each("name", STORIES)
def test_no_answer_says_a_thing_twice_or_nothing_below_a_heading(name: str, lang: str) -> None:
    for reply in answers(name, lang):
        said = [t for t in texts(reply) if len(t) > 30]
        assert len(said) == len(set(said)), sorted(t for t in said if said.count(t) > 1)
        for part, behind in zip(reply.parts, (*reply.parts, Heading(""))[1:], strict=True):
            assert not (isinstance(part, Heading) and isinstance(behind, Heading)), part


@pytest.mark.slow
@each("lang", LANGUAGES)
@each("name", STORIES)
def test_what_is_suggested_is_understood(name: str, lang: str) -> None:
    offered = {s for reply in answers(name, lang) for s in reply.suggestions}
    assert offered
    assert not [s for s in offered if understand(s, lang=lang).intent is Intent.UNKNOWN]


def test_a_fact_that_counts_knows_one_from_many() -> None:
    """``1 owners have work``: a whole number before a plural has a form for one."""
    wrong = [
        f"{s.name}: {s.says.en}" for s in vocabulary()
        if s.type is Type.INT and re.search(r"\{value\} (?!us |ms |ns |is )[a-z]+s\b", s.says.en)
    ]  # fmt: skip
    assert not wrong


def test_a_fact_says_in_chinese_what_stands_apart_and_in_english_no_list() -> None:
    """``上Docker 引擎``; ``GPU 0, lanes of the PCIe link now: 8``; ``GPU 0: power draw is 70 W``."""
    close = [
        f"{s.name}: {s.says.zh}"
        for s in vocabulary()
        if re.search(rf"[{HAN}][A-Za-z0-9]|[A-Za-z0-9%][{HAN}]", s.says.zh)
    ]
    listed = [
        f"{s.name}: {s.says.en}" for s in vocabulary() if re.match(r"\{subject\}(?:, (?!\{)|: (?!\{))", s.says.en)
    ]
    assert not close
    assert not listed


def test_a_title_is_no_sentence_and_a_page_is_one() -> None:
    for rule in rules().rules:
        assert rule.title.en[-1] not in ".:;", rule.id
        assert rule.title.in_("zh")[-1] not in "。：；", rule.id
        for page in (rule.why, rule.false_positives):
            assert page.en[-1] in ".?!" and page.in_("zh")[-1] in "。？！", rule.id  # noqa: PT018
            assert not re.search(r"\b([A-Za-z]{2,}) \1\b", page.en), rule.id


def test_the_sentences_of_a_page_are_short() -> None:
    """What a finding means is read at night: no sentence of more than 34 words, in Chinese of more than 90 signs."""
    every = tuple(rules().rules)
    long = [(r.id, x) for r in every for x in sentences(r.why.en, "en") if len(x.split()) > 34]
    long += [(r.id, x) for r in every for x in sentences(r.why.zh, "zh") if len(x) > 90]
    assert not long
