"""What was looked at, and what was not: for the answers that no finding carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue._words import Words, suggest
from assistant.render.labels import colon, label, listed, reason_name
from assistant.render.sheet import Items
from assistant.reply import Reply
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.dialogue._named import Named


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
        suggestions=suggest(turn.lang, w.t(f"why not {first}", f"为什么不是 {first}"), "why", "alternatives"),
        data={"answer": "why", "finding": None, "named": list(found.what)},
    )


def looked_at(w: Words) -> list[str]:
    """What the answer that nothing is wrong stands on: the parts of the base set, the sources, how much answered."""
    from assistant.diagnosis import BASE

    d = w.d
    out = []
    for name, facts in BASE:
        seen = [k.inner for k in d.facts.observations if k.fact in facts]
        told = [o for o in seen if o.status.answered]
        if told:
            out.append(f"{name.in_(w.lang)}{colon(w.lang)}{w.seen(told[0])}")
        elif seen:
            out.append(f"{name.in_(w.lang)}{colon(w.lang)}{reason_name(str(seen[0].status), w.lang)}")
    c = d.coverage
    out.append(w.t(f"{c.answered} of {c.asked} facts answered", f"{c.asked} 项事实中有 {c.answered} 项得到答案"))
    if d.sources:
        shown = [clean(s) for s in d.sources[:4]]
        rest = len(d.sources) - len(shown)
        more = [label("more_lines", w.lang).format(n=rest)] if rest > 0 else []
        out.append(w.t("read: ", "读取：") + listed([*shown, *more], w.lang))
    return out
