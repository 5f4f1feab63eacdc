"""What a code, a word, a number means: a page of knowledge with the answer in its first sentence. Nothing is looked at.

What no page knows is said to be unknown, with the closest topics: a meaning is never made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.dialogue._pages import (
    CHOICES,
    bare_numbers,
    choose,
    closest,
    codes,
    data_of,
    follow_ups,
    meant,
    outright,
    page,
    read,
    spoken,
    text_in,
    topics_of,
    unknown,
)
from assistant.find import search, topic
from assistant.intent import ranked, sums
from assistant.intent.capped import capped
from assistant.intent.models import compared, parameters, specified, work
from assistant.intent.needed import needed
from assistant.intent.query import Topic
from assistant.intent.supported import supported
from assistant.render.labels import listed
from assistant.render.sheet import Items, Paragraph
from assistant.reply import Reply
from knowledge.lazy import lazy

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.intent.query import Query

_LONG = 2000  # characters in which a symbol is looked for
_SYMBOL = lazy(r"(?<![\w.])[A-Za-z][A-Za-z0-9]{1,40}(?:[_.][A-Za-z0-9]{1,40}){1,8}(?![\w])")
_CLEAR = 1.15  # times the second-best score, below which two topics are as likely


def answer(turn: Turn) -> Reply:
    """The page, the table, or the band that answers the query."""
    query, lang = turn.query, turn.lang
    if query.slots.kernel or query.slots.operator:
        from assistant.dialogue._traced import bottleneck

        if (of_trace := bottleneck(turn)) is not None:
            return of_trace
    if sums.asked(query.text) is not None:
        from assistant.dialogue import _sums

        if (result := _sums.answer(query, lang)) is not None:
            return result
    if models := compared(query.text):
        from assistant.dialogue import _models

        return _models.answer(models, work(query.text), lang, parameters=parameters(query.text))
    if (feature := supported(query.text)) is not None:
        from assistant.dialogue import _supported

        return _supported.answer(feature, shown(f"gpu {feature.of[0].id}", lang))
    if (of_sheet := specified(query.text)) is not None:
        from assistant.dialogue import _models

        return _models.figure(of_sheet, shown(f"gpu {of_sheet.of[0].id}", lang))
    if (limit := capped(query.text)) is not None:
        from assistant.dialogue import _capped

        return _capped.answer(limit, lang)
    if (term := needed(query.text)) is not None:
        from assistant.dialogue._traced import bottleneck

        if (of_trace := bottleneck(turn)) is not None:
            return of_trace  # what it would gain there, and not in general
        page_ = shown(f"term {term.id}", lang)
        return replace(page_, headline=term.needed.in_(lang), parts=(Paragraph(page_.headline), *page_.parts))
    if name := query.page or outright(query) or _symbol(query):
        return shown(name, lang)
    if query.general:
        return unknown(query, (), lang, "explain")
    if len(said := codes(query)) == 1:
        return _grave(said[0], lang) if ranked.asks_how(query.text) else _code(said[0], True, lang)
    from assistant.dialogue import _amounts, _figures

    if (figures := _amounts.answer(query, turn) or _figures.answer(query, turn)) is not None:
        return figures
    if (judged := _usual(turn)) is not None:
        return judged
    from assistant.dialogue import (
        _compare,
        _counters,
        _measure,
    )  # half of what this module costs to load, for other questions

    if not query.unread and (usual := _counters.quiet(turn, query.observations)) is not None:
        return Reply(lang, usual.in_(lang), settled=False, data=data_of("explain", [], unread=[]))
    if measured := _measure.answer(query, lang):
        return _with_unread(turn, measured)
    named = said or tuple(f"xid {n}" for n in (_compare.numbers(query) or bare_numbers(query)))
    if len(named) > 1:
        return _compare.codes(named, lang, rank=ranked.asks_which(query.text))
    if named:
        return _code(named[0], False, lang)
    if (beside := _compare.words(query, lang)) is not None:
        return beside
    if not query.topics and (pasted := _pasted(query.text, lang)):
        return pasted
    found = topics_of(query)
    if not found:
        return unknown(query, (), lang, "explain")
    if query.unsure and len(found) > 1:
        return choose(query, found, lang, "explain")
    return _one(turn, found)


def _usual(turn: Turn) -> Reply | None:
    """Whether the values that the sentence states are usual, as rules and scales have it; None where that is not asked."""
    if not turn.query.observations:
        return None
    from assistant.dialogue import _normal

    if not _normal.judges(turn):
        return None
    from assistant.diagnosis import diagnose
    from assistant.dialogue import verdict

    return verdict.answer(replace(turn, diagnosis=diagnose(turn.query.observations, turn.ruleset)))


def _with_unread(turn: Turn, measured: Reply) -> Reply:
    """A value that was judged beside something that was not understood: that comes first, and nobody calls the whole good."""
    if not turn.query.unread:
        return measured
    from assistant.dialogue._told import unread_line

    said = listed((f'"{c}"' for c in turn.query.unread[:2]), turn.lang)
    head = text_in(turn.lang, f"Cannot say: {said} was not understood.", f"无法判断：没有听懂 {said}。")
    data = {**measured.data, "rating": "open", "not_taken_as_fact": list(turn.query.unread)}
    parts = (*unread_line(turn), Paragraph(measured.headline), *measured.parts)
    return replace(measured, headline=head, parts=parts, settled=False, data=data)


def _one(turn: Turn, found: tuple[Topic, ...]) -> Reply:
    query, lang = turn.query, turn.lang
    best = next((t for t in found if meant(t, query)), None)
    if best is None:
        return unknown(query, found, lang, "explain")
    if page(best.id, lang) is None:  # understood from an older name: what is near is still known
        return unknown(query, search(read(query), CHOICES), lang, "explain")
    return shown(best.id, lang, [t.id for t in found[:CHOICES] if t.id != best.id and t.score * _CLEAR >= best.score])


def shown(name: str, lang: str, near: Sequence[str] = ()) -> Reply:
    """The page `name` as an answer."""
    sheet = page(name, lang)
    assert sheet is not None  # the caller looked
    headline, parts = spoken(sheet, lang)
    data = data_of("explain", [name], near=list(near), entry=sheet.data)
    return Reply(lang, headline, parts, suggestions=follow_ups(name, lang), data=data)


def _symbol(query: Query) -> str:
    """A metric, fact or status that the sentence names as it is written: it is meant, whatever else shares its words."""
    for word in _SYMBOL.findall(query.text[:_LONG])[:4]:
        for kind in ("dcgm", "fact", "cuda", "clock"):
            if ("." in word) == (kind == "fact") and page(f"{kind} {word}", query.lang) is not None:
                return f"{kind} {word}"
    return ""


def _pasted(text: str, lang: str) -> Reply | None:
    """A line that a library printed, with its meaning."""
    from assistant.topics._common import signature_page
    from knowledge.catalog.lookup import find_signature

    found = [m.signature for m in find_signature(text)]
    if not found:
        return None
    if found[0].kind == "status":  # a CUDA code, which has a page of its own
        return shown(f"cuda {found[0].symbol}", lang)
    sheet = signature_page(found[0], str(found[0].family), lang, found[1:CHOICES])
    headline, parts = spoken(sheet, lang)
    name = f"{found[0].family} {found[0].id}"
    data = data_of("explain", [name], entry=sheet.data)
    return Reply(lang, headline, parts, suggestions=follow_ups(name, lang), data=data)


def _grave(name: str, lang: str) -> Reply:
    """How grave one code is, and what it means."""
    from assistant.dialogue import _compare

    told, grave = _code(name, True, lang), _compare.grave(name, lang)
    return replace(told, headline=grave, parts=(Paragraph(told.headline), *told.parts)) if grave else told


def _code(name: str, said_kind: bool, lang: str) -> Reply:
    """One code; a bare number that is no XID may be another catalogue's."""
    sheet = page(name, lang)
    if sheet is None and not said_kind:
        number = name.partition(" ")[2]
        other = search(number, 1)
        if other and (sheet := page(other[0].id, lang)) is not None:
            name = other[0].id
    if sheet is None:
        return _no_code(name, lang)
    return shown(name, lang)


def _no_code(name: str, lang: str) -> Reply:
    """A code that the catalogue lacks, and the closest that it has."""
    from assistant.dialogue import _compare

    kind, _, number = name.partition(" ")
    known = _compare.known(kind)
    word = "SXid" if kind == "sxid" else "XID"
    near = sorted(sorted(known, key=lambda c: (_distance(c, int(number)), c))[:CHOICES])
    headline = text_in(
        lang,
        f"{word} {number} is not in NVIDIA's catalogue, which holds {len(known)} codes from {known[0]} to {known[-1]}.",
        f"NVIDIA 目录中没有 {word} {number}；目录共有 {len(known)} 个代码，从 {known[0]} 到 {known[-1]}。",
    )
    close = [t for c in near if (t := topic(f"{kind} {c}")) is not None]
    read = text_in(
        lang,
        "Paste the whole line of the log: its words say more than the number.",
        "请粘贴完整的日志行：其中的文字比代码更能说明问题。",
    )
    return Reply(
        lang, headline, (*closest(close, lang), Items((read,))), suggestions=tuple(f"{kind} {c}" for c in near),
        data=data_of("explain", [], unknown=name, closest=[f"{kind} {c}" for c in near]),
    )  # fmt: skip


def _distance(code: int, wanted: int) -> tuple[int, int]:
    """How near a code is: a digit too many, too few or swapped is nearer than the next number."""
    a, b = str(code), str(wanted)
    slip = sorted(a) == sorted(b) or any(a == b[:i] + b[i + 1 :] for i in range(len(b))) or (
        any(b == a[:i] + a[i + 1 :] for i in range(len(a)))
    )  # fmt: skip
    return (0 if slip else 1, abs(code - wanted))
