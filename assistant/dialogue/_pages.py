"""What the answers from knowledge share: which topics are meant, their pages, choices, and the next questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from assistant.find import named, search, topic, weights
from assistant.find.index import ASKING, wanted
from assistant.find.tokens import terms
from assistant.intent.general import only_reminded
from assistant.intent.query import Topic
from assistant.render.cells import cut
from assistant.render.labels import aside, colon
from assistant.render.sheet import Heading, Items, Paragraph, Part
from assistant.reply import Reply
from knowledge.errors import UnknownNameError, UsageError
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.intent.query import Query
    from assistant.render.sheet import Sheet

CHOICES = 3
OUTRIGHT = 1e5  # score of a topic that was named outright (`assistant.intent.topics.EXACT`); a search stays below some hundreds
SENTENCE = 320  # columns of a headline
QUOTED = 60  # columns of what a person said, when it is repeated
_HEAD = 2000  # characters in which names are looked for
_LIKE = 0.3  # share of a question from which an entry is near it
NEAR = 0.5  # of the question that must be the topic's name: below, the topic is only the closest
# A sentence ends at a full stop before a capital, never within 3.5, e.g. or gpu.ecc.
_END = lazy(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[A-Z0-9\"])|(?<=[。！？])")


def text_in(lang: str, en: str, zh: str) -> str:
    """The sentence in the language of the answer."""
    return Text(en, zh).in_(lang)


def quoted(query: Query) -> str:
    """What was said, short enough to repeat."""
    return excerpt(query.text, QUOTED)


def codes(query: Query) -> tuple[str, ...]:
    """Topic ids of the codes that a query names, known or not: ``xid 94``, ``sxid 12028``."""
    named = (*(f"xid {n}" for n in query.slots.xid), *(f"sxid {n}" for n in query.slots.sxid))
    return tuple(dict.fromkeys(named))


def bare_numbers(query: Query) -> tuple[int, ...]:
    """The numbers of a query that holds nothing else but words of asking: "79?", "difference between 94 and 95"."""
    asked = wanted(read(query))
    plain = asked and len(asked) <= 2 * CHOICES and all(t.isdecimal() and len(t) <= 5 for t in asked)
    return tuple(dict.fromkeys(int(t) for t in asked)) if plain and not any(query.slots) else ()


def outright(query: Query) -> str:
    """The topic that a sentence gives as `gpudiag explain` takes it: "rule gpu-fell-off-bus"; empty without one."""
    from assistant.topics import kinds

    by_name = set(kinds()) - {"xid", "sxid"}  # codes are slots: a sentence may hold several
    words = [w.strip("?.,;:!？。，；：！\"'`()") for w in query.text[:_HEAD].split()]
    for kind, name in pairwise(words):
        if kind.casefold() in by_name and (found := topic(f"{kind.casefold()} {name}")) is not None:
            return found.id
    return ""


def topics_of(query: Query, kinds: Collection[str] | None = None, limit: int = 8) -> tuple[Topic, ...]:
    """The topics that a query is about, best first: those that were understood, else those that the search finds."""
    understood = tuple(t for t in query.topics if kinds is None or t.kind in kinds)
    return understood or tuple(search(read(query), limit, kinds))


def read(query: Query) -> str:
    """The sentence with its typos repaired, as it was understood."""
    text = query.text
    for written, repaired in query.fixed:
        text = text.replace(written, repaired)
    return text


def meant(topic: Topic, query: Query) -> bool:
    """Whether a topic is what a query asks about, not merely the closest that the search found.

    It is when the understanding saw it named outright (a code, a symbol, a pasted line, a phrase for a symptom), or
    when one of its names, or words of its title, are at least half of what the question says; rare words say more.
    """
    if any(t.id == topic.id and t.score >= OUTRIGHT for t in query.topics):
        return True
    text = read(query)
    if ASKING.issuperset(terms(text)):
        return False  # "how do I fix it" names nothing
    if topic.kind == "howto" and only_reminded(topic.id, text):
        return False
    if named(text).get(topic.id, 0.0) >= NEAR:
        return True
    asked = weights(text)
    words = {t for s in (topic.id.replace("-", " "), topic.title.en, topic.title.zh) for t in terms(s)}
    return sum(w for t, w in asked.items() if t in words) > NEAR * sum(asked.values())


def tasks_first(found: Iterable[Topic], query: Query) -> list[Topic]:
    """`found` with the tasks ahead that the sentence calls by name: "drain the node" is one, and sounds like a complaint."""
    called = named(read(query))
    return sorted(found, key=lambda t: t.kind != "howto" or called.get(t.id, 0.0) < NEAR)


def page(name: str, lang: str) -> Sheet | None:
    """The page behind a topic id; None when nothing has this name."""
    from assistant import topics

    kind, _, rest = name.partition(" ")
    if kind not in topics.kinds() or not rest:
        return None
    try:
        return topics.topic(kind).sheet([rest], lang)
    except (UnknownNameError, UsageError):
        return None


def first_sentence(text: str) -> tuple[str, str]:
    """A text's first sentence, and the rest."""
    parts = _END.split(text.strip(), maxsplit=1)
    return parts[0].strip(), (parts[1].strip() if len(parts) > 1 else "")


def spoken(sheet: Sheet, lang: str) -> tuple[str, tuple[Part, ...]]:
    """A page as an answer: title and first sentence as the headline, and what is left of the page."""
    parts = list(sheet.parts)
    for at, part in enumerate(parts):
        if isinstance(part, Paragraph) and part.text:
            said, rest = first_sentence(part.text)
            parts[at : at + 1] = [Paragraph(rest)] if rest else []
            if not rest and at and isinstance(parts[at - 1], Heading):
                del parts[at - 1]  # a heading over nothing
            if sheet.data.get("kind") == "advice" and _ANSWERS.match(
                said
            ):  # a title ahead would read as the answer: 关闭 ECC 换显存：不要关
                return cut(said, SENTENCE), tuple(parts)
            return cut(f"{sheet.title}{colon(lang)}{said}", SENTENCE), tuple(parts)
    return cut(sheet.title, SENTENCE), tuple(parts)


_ANSWERS = lazy(
    r"(?:No|Not|Never|Right|Seldom)(?![a-z])|不[要行必能会正]|一般不|(?:是|会|要|能|可以|值得|正常)，|要先停|先复位|还要|任务已结束|卡本身"
)


def title_of(t: Topic, lang: str) -> str:
    """``row-remap-pending (rule): Row remap pending``, as one line of a list."""
    said = t.title.in_(lang)
    return f"{t.id}{colon(lang)}{cut(said, 100)}" if said and said.casefold() != t.name.casefold() else t.id


def closest(found: Iterable[Topic], lang: str) -> tuple[Part, ...]:
    """A list of the closest topics; nothing when there are none."""
    items = tuple(title_of(t, lang) for t in found)
    return (Heading(text_in(lang, "Closest", "最接近的主题")), Items(items)) if items else ()


def choose(query: Query, found: Sequence[Topic], lang: str, answer: str) -> Reply:
    """The first few topics as choices, with one question."""
    few = distinct(found)[:CHOICES]
    said = text_in(lang, f'Which do you mean by "{quoted(query)}"?', f"“{quoted(query)}”指的是哪一个？")
    return Reply(
        lang, said, (Items(tuple(title_of(t, lang) for t in few), numbered=True),), settled=False,
        suggestions=tuple(ask_for(t, lang) for t in few), data={"answer": answer, "choices": [t.id for t in few]},
    )  # fmt: skip


def distinct(found: Iterable[Topic]) -> list[Topic]:
    """Topics without those that have the same title as a better one."""
    seen: set[str] = set()
    out = []
    for t in found:
        key = t.title.en.casefold() or t.id
        if t.id not in seen and key not in seen:
            seen |= {t.id, key}
            out.append(t)
    return out


def close_page(query: Query) -> str:
    """The page that answers a sentence of which nothing else was understood: a message that stands in it, or the entry whose own
    questions share much of it and rare words. Empty where none is that near: a list of the closest is then all there is."""
    from assistant.find import asked

    best = query.topics[0] if query.topics else None
    if best is not None and best.kind in _MESSAGES and best.score >= _MESSAGE and page(best.id, query.lang):
        return best.id
    near = next((n for n in asked.nearest(read(query)) if n.id.startswith(("advice ", "howto "))), None)
    if near is None:
        return ""
    close = any(near.score >= share and near.held >= held for share, held in _CLOSE)
    return near.id if close and _speaks_of(near.id, query) else ""


def _speaks_of(name: str, query: Query) -> bool:
    """Whether a page has one of the Latin names of a Chinese question: "nvidia-smi 里 Pwr 显示 N/A" is about Pwr, and A100 about A100."""
    said = read(query).casefold()
    names = {w for w in _NAME.findall(said) if w not in _ANYWHERE} if not said.isascii() else set()
    sheet = page(name, query.lang)
    return not names or sheet is None or any(n in str(sheet.data).casefold() for n in names)


_NAME = lazy(r"[a-z][a-z0-9]+")
_ANYWHERE = frozenset(("nvidia", "smi", "gpu", "gpus"))


_MESSAGES = frozenset({"pytorch", "cuda", "nccl", "rule"})  # what programs and drivers print
_MESSAGE = 28.0  # score of a search that has all of a message's words; a sentence that shares some stays near 20
# share of the question, and the weight that three rare words have, or two where they are more of it
_CLOSE = ((0.45, 12.0), (0.47, 8.0))


def unknown(query: Query, found: Sequence[Topic], lang: str, answer: str) -> Reply:
    """Nothing is known about what was named: said so, with the closest topics."""
    said = text_in(lang, f'Nothing is known here about "{quoted(query)}".', f"这里没有关于“{quoted(query)}”的知识。")
    few = distinct((*_near(query), *found))[:CHOICES]
    if few and (nearest := _nearest(query, few[0])):
        said = (
            f"{said}{' ' if lang != 'zh' else ''}{text_in(lang, f'Nearest: {nearest.en}', f'最接近的：{nearest.zh}')}"
        )
    asks = tuple(ask_for(t, lang) for t in few) or (text_in(lang, "help", "帮助"),)
    data = {"answer": answer, "topics": [], "closest": [t.id for t in few]}
    return Reply(lang, said, closest(few, lang), settled=False, suggestions=asks, data=data)


def _nearest(query: Query, first: Topic) -> Text | None:
    """What the entry of advice says whose own questions are nearest, where half of the question is its own."""
    from assistant.find import asked
    from knowledge.advice import advice

    kind, _, name = first.id.partition(" ")
    if kind != "advice" or asked.share(read(query), first.id) < NEAR:
        return None
    said, title = advice()[name].says, first.title
    return Text(f"{title.en}: {first_sentence(said.en)[0]}", f"{title.zh}：{first_sentence(said.in_('zh'))[0]}")


def _near(query: Query) -> list[Topic]:
    """The entries whose own questions are like the one that was asked, though not enough to answer it."""
    from assistant.find import asked

    near = (topic(n.id) for n in asked.nearest(read(query)) if n.score >= _LIKE)
    return [t for t in near if t is not None]


# --- questions that would be understood next ------------------------------------------------


def ask_for(t: Topic, lang: str) -> str:
    """The question that this topic answers."""
    name = t.title.in_(lang)
    match t.kind:
        case "xid" | "sxid":
            return text_in(lang, f"what is {t.id}?", f"{t.id} 是什么？")
        case "howto":
            return text_in(lang, f"how do I {_lower(name)}?", f"如何{_spaced(name)}？")
        case "runbook":
            return text_in(lang, f"show runbook {t.name}", f"查看处置手册 {t.name}")
        case "range":
            return text_in(lang, f"what is a good value of {name}?", f"{_then(name)}多少正常？")
        case "term" | "clock" | "gpu":
            return text_in(lang, f"what is {name}?", f"{_then(name)}是什么？")
        case _:
            return text_in(lang, f"explain {t.id}", f"解释 {t.id}")


def _lower(title: str) -> str:
    """``Enable ECC`` -> ``enable ECC``; ``NCCL's log`` stays."""
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


def _spaced(title: str) -> str:
    return f" {title}" if title[:1].isascii() else title


def _then(title: str) -> str:
    """A title in front of a Chinese clause."""
    return f"{title} " if title[-1:].isascii() else title


def follow_ups(name: str, lang: str) -> tuple[str, ...]:
    """What to ask after the page `name`."""
    kind, _, rest = name.partition(" ")
    out: list[str] = []
    match kind:
        case "xid" | "sxid":
            out = [text_in(lang, f"how do I fix {name}?", f"如何处理 {name}？"), *_runbook_asks(name, lang)]
            out.append(text_in(lang, f"has {name} happened before?", f"以前出现过 {name} 吗？"))
        case "term":
            out = [ask_for(t, lang) for t in _linked(rest)]
        case "range":
            out = [text_in(lang, "check this node", "检查本节点"), text_in(lang, "help", "帮助")]
        case "howto":
            from knowledge.howto import howtos

            book = howtos()[rest].runbook if rest in howtos() else ""
            out = [text_in(lang, f"show runbook {book}", f"查看处置手册 {book}")] if book else []
            out.append(text_in(lang, "check this node", "检查本节点"))
        case "symptom" | "runbook" | "fact" | "dcgm" | "gpu" | "action":
            out = [text_in(lang, "check this node", "检查本节点")]
        case "rule" | "nccl" | "pytorch" | "cuda" | "clock":
            out = [
                text_in(lang, f"how do I fix {name}?", f"如何处理 {name}？"),
                text_in(lang, "check this node", "检查本节点"),
            ]
    return tuple(out)[:CHOICES]


def _linked(term: str) -> list[Topic]:
    from knowledge.catalog.lookup import glossary

    linked = glossary()[term].see_also if term in glossary() else ()
    return [t for name in linked if (t := topic(f"term {name}")) is not None]


def _runbook_asks(name: str, lang: str) -> list[str]:
    from knowledge.runbook import about

    return [text_in(lang, f"runbook for {name}", f"{name} 的处置手册")] if about(name) else []


def slot_values(turn: Turn) -> dict[str, str | int]:
    """What the sentence, and the finding in focus, say for the placeholders of commands."""
    values: dict[str, str | int] = {}
    if turn.diagnosis is not None and turn.finding is not None:
        from assistant.dialogue._words import words
        from assistant.dialogue.next import filled

        values |= filled(words(turn), turn.finding)
    s = turn.query.slots
    for gpu in s.gpu[:1]:
        values.pop("gpu_pci", None)
        values.pop("gpu_index", None)
        if isinstance(gpu, int):
            values["gpu_index"] = gpu
        elif ":" in gpu:
            values["gpu_pci"] = gpu
    here = turn.host if "node" not in values and _about_here(turn) else ""
    values |= {"node": s.node[0]} if s.node else {"node": here} if here else {}
    values |= {"pid": s.pid[0]} if s.pid else {}
    values |= {"job": s.job[0]} if s.job else {}
    return values


def _about_here(turn: Turn) -> bool:
    """Whether the talk is about the machine that can be looked at from here: it was looked at, or is what is asked about."""
    from assistant.diagnosis import only_said
    from assistant.session.phrases import this_machine

    looked = turn.diagnosis is not None and not only_said(turn.diagnosis.facts)
    return looked or this_machine(turn.query.text)


def with_place(text: str, place: str, lang: str) -> str:
    """`text` with its place in brackets, when there is one."""
    return text + aside(place, lang) if place else text


def data_of(answer: str, names: Iterable[str], **more: Any) -> dict[str, Any]:
    """What JSON carries of an answer from knowledge."""
    return {"answer": answer, "topics": list(names), **more}
