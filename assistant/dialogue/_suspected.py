"""Why not a suspicion in plain words: the possibilities it stands for, each with what was seen of it, or what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.dialogue._words import Words, causes_of, suggest
from assistant.render.labels import aside, colon, label, led
from assistant.render.sheet import Items, Paragraph, Part
from assistant.reply import Reply
from rules.model import Severity

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.dialogue._meant import Meant
    from assistant.differential import Row
    from rules.engine import Finding

SHOWN = 5  # possibilities, one line each


def answer(turn: Turn, w: Words, what: Meant) -> Reply:
    """Whether it was looked at, what speaks for and against it, and what would have to be known."""
    from assistant.differential import Stand, weighed

    assert turn.diagnosis is not None
    rows = weighed(what.hypotheses, (), turn.diagnosis, turn.plan, turn.lang, turn.ruleset)
    by_id = {f.id: f for f in turn.diagnosis.findings}
    held = [by_id[i] for r in rows if r.state is Stand.FOR for i in r.findings if i in by_id]
    follows = [by_id[i] for r in rows if r.causes for i in r.findings if i in by_id]
    focus = next((f.id for f in (*held, *follows)), "")
    parts: list[Part] = [Items(tuple(_line(w, r) for r in rows[:SHOWN]))]
    if len(rows) > SHOWN:
        parts.append(Paragraph(label("more_lines", w.lang).format(n=len(rows) - SHOWN)))
    if not held and not follows and (instead := _instead(w)):
        parts.append(Paragraph(instead))
    return Reply(
        turn.lang,
        _head(w, what, rows, held, follows),
        tuple(parts),
        focus=focus,
        suggestions=suggest(turn.lang, "alternatives", "why", "evidence"),
        data={"answer": "whynot", "said": what.said,
              "hypotheses": [{"id": r.id, "state": str(r.state), "findings": list(r.findings)} for r in rows]},
    )  # fmt: skip


def _head(w: Words, what: Meant, rows: Sequence[Row], held: Sequence[Finding], follows: Sequence[Finding]) -> str:
    from assistant.differential import Stand

    name, n = what.title, len(rows)
    if held:
        return w.t(f"{led('It is among the findings', w.title(held[0]), 'en')} ({w.grade(held[0])}).",
                   f"它就在结论之中：{w.quoted(w.title(held[0]))}（{w.grade(held[0])}）。")  # fmt: skip
    if follows:
        cause = next(iter(causes_of(follows[0], w.d)), follows[0])
        return w.t(f"No: what was seen of {name.en} follows from something else. {w.title(cause)}.",
                   f"不是：与{_inner(name.zh, True)}有关的现象由{w.quoted(w.title(cause))}引起。")  # fmt: skip
    shut = sum(r.state is Stand.AGAINST for r in rows)
    some = [r for r in rows if r.state is Stand.POSSIBLE]
    if shut == n:
        return w.t(f"Nothing points to {name.en}: it was looked at, and no fault of the kind was found.",
                   f"没有迹象指向{_inner(name.zh)}：已检查，未发现此类问题。")  # fmt: skip
    if some:
        return w.t(f"It cannot be excluded: some of what was seen would fit {name.en}.",
                   f"不能排除：部分观测与{_inner(name.zh, True)}相符。")  # fmt: skip
    if shut:
        return w.t(f"Nothing points to {name.en} so far: {shut} of {n} possibilities {'is' if shut == 1 else 'are'} ruled out, the rest is not known.",
                   f"目前没有迹象指向{_inner(name.zh)}：{n} 种可能中已排除 {shut} 种，其余尚不清楚。")  # fmt: skip
    return w.t(f"Nothing points to {name.en}, but what was read is not enough to exclude it.",
               f"没有迹象指向{_inner(name.zh)}，但已读到的信息不足以排除。")  # fmt: skip


def _line(w: Words, row: Row) -> str:
    """``A PCIe link damages packets: ruled out. AER counters of GPU ... are 0``."""
    from assistant.differential import Stand, brief, state_word

    word = state_word(row, w.lang)
    if row.causes:
        return f"{row.title}{aside(f'{word}{w.mark}{row.next}', w.lang)}"
    evidence = row.for_ or (row.against if row.state is Stand.AGAINST else ())
    said = evidence[0] if evidence else (brief(row.next) or next(iter(row.unknown), ""))
    shown = aside(word, w.lang)
    return f"{row.title}{shown}{colon(w.lang)}{said}" if said else f"{row.title}{shown}"


def _instead(w: Words) -> str:
    """What was found, where the suspicion is not it."""
    root = next((f for f in w.d.roots if f.severity is not Severity.INFO), None)
    if root is None:
        return ""
    return w.t(
        f"{led('Something else was found', w.title(root), 'en')} ({w.grade(root)}).",
        f"实际发现的是{w.quoted(w.title(root))}（{w.grade(root)}）。",
    )


def _inner(name: str, on: bool = False) -> str:
    """A name within a Chinese sentence; `on`: words follow it, no mark."""
    return f"{' ' if name[:1].isascii() else ''}{name}{' ' if on and name[-1:].isascii() else ''}"
