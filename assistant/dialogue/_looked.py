"""What was looked at, and what was not: for the answers that no finding carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue._words import Words, suggest
from assistant.render.labels import aside, colon, label, listed, reason_name
from assistant.render.sheet import Items
from assistant.reply import Reply
from knowledge.text import clean, opened

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.dialogue._named import Named
    from knowledge.observation import Observation


def missed(turn: Turn, w: Words, found: Named) -> Reply:
    """Something was named that no finding is about."""
    what = listed(found.what, w.lang)
    lines = tuple(
        w.t(f"There is: {', '.join(u.known)}", f"已知的有：{'、'.join(u.known)}")
        for u in found.scope.unknown
        if u.known
    )
    head = w.t(f"There is no finding about {what}.", f"没有关于 {what} 的结论。")
    first = next(iter(found.what), "")
    return Reply(
        turn.lang,
        head,
        (Items(lines),) if lines else (),
        suggestions=suggest(turn.lang, w.t(f"why not {first}?", f"为什么不是 {first}？"), "why", "alternatives"),
        data={"answer": "why", "finding": None, "named": list(found.what)},
    )


def looked_at(w: Words) -> list[str]:
    """What the answer that nothing is wrong stands on: the parts of the base set, the sources, how much answered."""
    from assistant.diagnosis import BASE

    d = w.d
    out = []
    for name, facts in BASE:
        seen = [k.inner for k in d.facts.observations if k.fact in facts]
        told = sorted((o for o in seen if o.status.answered), key=lambda o: facts.index(o.fact))
        if told:
            out.append(opened(f"{name.in_(w.lang)}{colon(w.lang)}{_read(w, told[0])}"))
        elif seen:
            out.append(opened(f"{name.in_(w.lang)}{colon(w.lang)}{reason_name(str(seen[0].status), w.lang)}"))
    c = d.coverage
    out.append(w.t(f"{c.answered} of {c.asked} values could be read", f"{c.asked} 项数值中读到 {c.answered} 项"))
    if d.sources:
        shown = [clean(s) for s in d.sources[:4]]
        rest = len(d.sources) - len(shown)
        more = [label("more_lines", w.lang).format(n=rest)] if rest > 0 else []
        out.append(w.t("Read: ", "读取：") + listed([*shown, *more], w.lang))
    return out


def _read(w: Words, o: Observation) -> str:
    """That something was read, and where; what it says, when that is more than yes."""
    if o.value is not True:
        return w.seen(o)
    place = w.place(w.view.evidence(o).place)
    return w.t("read", "已读取") + (aside(place, w.lang) if place else "")
