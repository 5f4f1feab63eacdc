"""Several things side by side: what each code means, how bad it is, what to do, who causes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from assistant.dialogue._pages import data_of, first_sentence, meant, page, spoken, text_in
from assistant.find import search
from assistant.intent.query import Query
from assistant.render.labels import aside, colon, listed
from assistant.render.sheet import Fields, Heading, Items, Paragraph, Part, Table
from assistant.reply import Reply
from knowledge.language import Text
from knowledge.lazy import lazy
from rules.model import Severity

if TYPE_CHECKING:
    from assistant.intent.query import Topic
    from assistant.render.sheet import Sheet

MOST = 6  # columns of one table
_ASKED = lazy(r"\b(?:differ\w*|versus|vs|compare\w*|distinguish)\b|区别|差别|不同|不一样|对比|比较", re.IGNORECASE)
_BETWEEN = lazy(r"\s+(?:and|vs\.?|versus|or|from|with|to)\s+|\s*[,、/]\s*|\s*(?:和|与|跟|还是|以及)\s*", re.IGNORECASE)
_LEAD = lazy(
    r"^.*?\b(?:between|compare|distinguish)\b|^.*?(?:比较|对比)|(?:的|有什么|有啥|有何|哪里|哪儿|怎么)*(?:区别|差别|不同|不一样)(?:是什么|在哪里?)?.*$",
    re.IGNORECASE,
)
_LONG = 300  # characters of a question that compares: what is longer was pasted


@cache
def known(kind: str) -> tuple[int, ...]:
    """The codes of a catalogue, in order: ``xid`` or ``sxid``."""
    if kind == "sxid":
        from knowledge.catalog.sxid import all_sxids

        return tuple(sorted(e.code for e in all_sxids()))
    from knowledge.catalog.xid import all_xids

    return tuple(sorted(e.code for e in all_xids()))


def codes(names: Sequence[str], lang: str, *, rank: bool = False) -> Reply:
    """A table over codes; those that no catalogue holds are said to be unknown. `rank`: the gravest first."""
    few = list(names)[:MOST]
    missing = [n for n in few if not _holds(n)]
    found = [n for n in few if n not in missing]
    found = sorted(found, key=_gravity, reverse=True) if rank else found
    columns = [_column(n, lang) for n in found]
    parts: list[Part] = []
    if columns:
        header = ("", *(_upper(n) for n in found))
        rows = tuple((label.in_(lang), *(c[i] for c in columns)) for i, label in enumerate(_ROWS))
        parts.append(Table(header, tuple(row for row in rows if any(row[1:]))))
    if missing:
        said = listed([_upper(n) for n in missing], lang)
        parts.append(Paragraph(text_in(lang, f"Not in NVIDIA's catalogue: {said}.", f"NVIDIA 目录中没有：{said}。")))
    return Reply(
        lang, _ranking(found, lang) if rank and len(found) > 1 else _codes_headline(found, columns, missing, lang), tuple(parts), settled=bool(found),
        suggestions=tuple(text_in(lang, f"how do I fix {n}?", f"如何处理 {n}？") for n in found[:3]),
        data=data_of("explain", found, unknown=missing),
    )  # fmt: skip


_ROWS = (
    Text("meaning", "含义"),
    Text("severity", "级别"),
    Text("action", "动作"),
    Text("about", "涉及"),
    Text("who causes it", "由谁引起"),
    Text("leads to", "会引发"),
)


def _codes_headline(found: Sequence[str], columns: Sequence[Sequence[str]], missing: Sequence[str], lang: str) -> str:
    if not found:
        said = listed([_upper(n) for n in missing], lang)
        return text_in(lang, f"NVIDIA's catalogue lacks {said}.", f"NVIDIA 目录中没有 {said}。")
    mark = "；" if lang == "zh" else "; "
    sentences = mark.join(f"{_upper(n)} {_title(n, lang)}" for n in found)
    same = len({c[2] for c in columns}) == 1 and len(columns) > 1
    tail = text_in(lang, "; the action is the same.", "；处置动作相同。") if same else text_in(lang, ".", "。")
    return f"{sentences}{tail}"


# How far what has to be done reaches: of two codes as severe, the one that takes more down is the graver.
_REACH = {"IGNORE": 0, "MONITOR": 0, "RESTART_APP": 1, "RESET_GPU": 2, "RESTART_VM": 3, "RESTART_BM": 4}


def _gravity(name: str) -> tuple[int, int]:
    severity, action = _severity(name)
    return severity.rank if severity is not None else -1, _REACH.get(action, 2)


def _severity(name: str) -> tuple[Severity | None, str]:
    """How severe a code is, and NVIDIA's word of what to do at once."""
    kind, _, number = name.partition(" ")
    if kind == "sxid":
        from knowledge.catalog.sxid import advise

        advice = advise(int(number))
        return (Severity(advice.severity) if advice.severity is not None else None), advice.bucket
    from knowledge.catalog.xid import xid

    entry = xid(int(number))
    return (Severity(entry.severity), str(entry.immediate)) if entry is not None else (None, "")


def grave(name: str, lang: str) -> str:
    """How grave one code is, in a sentence; empty where nothing says it."""
    return f"{_grade(name, lang)}{text_in(lang, '.', '。')}" if _holds(name) and _severity(name)[0] is not None else ""


def _grade(name: str, lang: str) -> str:
    """``XID 79 (critical): GPU has fallen off the bus -> RESTART_BM``."""
    from assistant.topics.xid import SEVERITY

    severity, action = _severity(name)
    word = (
        Text("fatal or not as its line says", "是否致命以日志行为准") if severity is None else SEVERITY[str(severity)]
    )
    said = f"{_upper(name)}{aside(word.in_(lang), lang)}{colon(lang)}{_title(name, lang)}"
    return f"{said} -> {action}" if action else said


def _ranking(found: Sequence[str], lang: str) -> str:
    """The codes, the gravest first, and what makes them so."""
    first, second = found[:2]
    grades = text_in(lang, "; ", "；").join(_grade(n, lang) for n in found)
    if any(_severity(n)[0] is None for n in found):  # an SXid that its line calls fatal or not
        head = text_in(lang, "Which is worse depends on the line", "孰轻孰重取决于日志行")
    elif _gravity(first) == _gravity(second):
        head = text_in(lang, "As severe as each other", "严重程度相同")
    else:
        others = _upper(second) if len(found) == 2 else text_in(lang, "the others", "其余")
        head = text_in(lang, f"{_upper(first)} is worse than {others}", f"{_upper(first)} 比{_spaced(others)}严重")
    return f"{head}{text_in(lang, '. ', '。')}{grades}{text_in(lang, '.', '。')}"


def _spaced(name: str) -> str:
    return f" {name} " if name[:1].isascii() else name


def _upper(name: str) -> str:
    kind, _, number = name.partition(" ")
    return f"{'SXid' if kind == 'sxid' else 'XID'} {number}"


def _holds(name: str) -> bool:
    kind, _, number = name.partition(" ")
    return int(number) in known(kind)


def _title(name: str, lang: str) -> str:
    kind, _, number = name.partition(" ")
    if kind == "sxid":
        from knowledge.catalog.sxid import sxid

        switch = sxid(int(number))
        return switch.title.in_(lang) if switch else ""
    from knowledge.catalog.xid import xid

    entry = xid(int(number))
    return entry.title.in_(lang) if entry else ""


def _column(name: str, lang: str) -> tuple[str, ...]:
    kind, _, number = name.partition(" ")
    return (_sxid_column if kind == "sxid" else _xid_column)(int(number), lang)


def _xid_column(code: int, lang: str) -> tuple[str, ...]:
    from assistant.topics._common import action_words
    from assistant.topics.xid import _AREA, _ROLE, SEVERITY
    from knowledge.catalog.xid import xid

    e = xid(code)
    assert e is not None  # `_holds`
    leads = listed((f"XID {c}" for c in e.explains if c is not None), lang)
    causes = listed((f"XID {c}" for c in e.explained_by if c is not None), lang)
    role = _ROLE[str(e.role)].in_(lang)
    word = "XID_154_EVAL" if str(e.immediate) == "XID_154" else str(e.immediate)
    return (
        first_sentence(e.description.in_(lang))[0],
        SEVERITY[str(e.severity)].in_(lang),
        action_words(word, lang) if word else text_in(lang, "NVIDIA names none", "NVIDIA 未给出"),
        _AREA[str(e.scope)].in_(lang),
        f"{role} ({causes})" if causes else role,
        leads,
    )


def _sxid_column(code: int, lang: str) -> tuple[str, ...]:
    from assistant.topics._common import action_words
    from knowledge.catalog.sxid import advise, sxid

    e, advice = sxid(code), advise(code)
    assert e is not None  # `_holds`
    fatal = {
        True: Text("fatal", "致命"),
        False: Text("not fatal", "非致命"),
        None: Text("the line says", "以日志行为准"),
    }
    return (
        e.title.in_(lang),
        fatal[e.fatal()].in_(lang),
        action_words(advice.bucket, lang) if advice.bucket else "",
        text_in(lang, "NVSwitch", "NVSwitch"),
        str(e.unit),
        "",
    )


# --- words ----------------------------------------------------------------------------------


def words(query: Query, lang: str) -> Reply | None:
    """Two things that a sentence compares by name ("SM active vs occupancy"); None when it does not compare."""
    found: dict[str, Topic] = {}
    for side in _sides(query):
        best = next((t for t in search(side, 3) if _is_thing(t.id) and meant(t, Query(side, lang, query.intent))), None)
        if best is not None:
            found.setdefault(best.id, best)
    if len(found) < 2:
        return None
    pages = [(name, sheet) for name in found if (sheet := page(name, lang)) is not None]
    return of_models(pages, lang) if all(_figures(sheet) for _, sheet in pages) else _side_by_side(pages, lang)


def _is_thing(name: str) -> bool:
    """Whether a page is of something that can be compared, and not of a problem that is found or a way to do something."""
    return name.partition(" ")[0] not in ("rule", "symptom", "hypothesis", "runbook", "howto")


def numbers(query: Query) -> tuple[int, ...]:
    """The bare numbers that a sentence compares: "difference between 94 and 95"."""
    sides = _sides(query)
    return tuple(map(int, sides)) if sides and all(s.isdecimal() and len(s) <= 5 for s in sides) else ()


def _sides(query: Query) -> list[str]:
    """What stands on each side of a comparison; empty when the sentence does not compare."""
    text = query.text.strip(" ?？。.")
    if len(text) > _LONG or not _ASKED.search(text):
        return []
    return [s.strip() for s in _BETWEEN.split(_LEAD.sub("", text).strip()) if s.strip()][:MOST]


_PEAKS = ("BF16", "FP8")  # what training and serving ask of a model


def _figures(sheet: Sheet) -> dict[str, str]:
    """What a page tells as figures by name, where it has no sentence: that of a GPU model."""
    if _paragraph(sheet):
        return {}
    rows = [(name, value) for p in sheet.parts if isinstance(p, Fields) for name, value in p.rows if value]
    peaks = [row for p in sheet.parts if isinstance(p, Table) for row in p.rows if len(row) == 3 and row[0] in _PEAKS]
    return dict(rows) | {f"{row[0]} TFLOP/s": row[1] for row in peaks}


def of_models(pages: Sequence[tuple[str, Sheet]], lang: str) -> Reply:
    """Pages of figures side by side, a row each; the first line tells the first one that differs."""
    told = [_figures(sheet) for _, sheet in pages]
    names, titles = [name for name, _ in pages], [sheet.title for _, sheet in pages]
    lines = {name: tuple(one.get(name, "-") for one in told) for one in told for name in one}
    apart = [name for name, cells in lines.items() if len(set(cells)) > 1]
    said = "; ".join(f"{name} {' / '.join(lines[name])}" for name in apart[:4])
    headline = f"{' / '.join(titles)}{text_in(lang, ': ', '：')}{said or text_in(lang, 'the same figures', '数据相同')}{text_in(lang, '.', '。')}"
    rows = tuple((name, *cells) for name, cells in lines.items())
    parts: tuple[Part, ...] = (Table((text_in(lang, "figure", "指标"), *titles), rows), *_sources(pages, lang))
    suggestions = tuple(_ask(name, sheet, lang) for name, sheet in pages)[:3]
    return Reply(lang, headline, parts, suggestions=suggestions, data=data_of("explain", names, headline_of=headline))


def _side_by_side(pages: Sequence[tuple[str, Sheet]], lang: str) -> Reply:
    header = (text_in(lang, "topic", "主题"), text_in(lang, "meaning", "含义"))
    said: list[tuple[str, str]] = [(sheet.title, _paragraph(sheet)) for _, sheet in pages]
    names = [title for title, _ in said]
    headline = text_in(
        lang,
        f"{listed(names, lang)}: {len(names)} different things.",
        f"{listed(names, lang)}：{len(names)} 个不同的概念。",
    )
    sentence, _ = spoken(pages[0][1], lang)
    parts: tuple[Part, ...] = (Table(header, tuple(said)), *_sources(pages, lang))
    data = data_of("explain", [name for name, _ in pages], headline_of=sentence)
    return Reply(
        lang, headline, parts, suggestions=tuple(_ask(name, sheet, lang) for name, sheet in pages)[:3], data=data
    )


def _paragraph(sheet: Sheet) -> str:
    return next((p.text for p in sheet.parts if isinstance(p, Paragraph) and p.text), "")


def _sources(pages: Sequence[tuple[str, Sheet]], lang: str) -> tuple[Part, ...]:
    """The last list of each page is its sources."""
    lists: list[str] = [i for _, sheet in pages if isinstance(sheet.parts[-1], Items) for i in sheet.parts[-1].items]
    heading = Heading(text_in(lang, "Sources", "来源"))
    return (heading, Items(tuple(dict.fromkeys(lists)))) if lists else ()


def _ask(name: str, sheet: Sheet, lang: str) -> str:
    from assistant.dialogue._pages import ask_for
    from assistant.intent.query import Topic

    return ask_for(Topic(name, 0.0, Text(sheet.title, sheet.title)), lang)
