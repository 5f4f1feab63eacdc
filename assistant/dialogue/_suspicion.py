"""Is it the power supply, the driver, my code: one suspected thing, or which of two, from what speaks for and against them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.diagnosis import bad_roots, only_said
from assistant.dialogue._scope import scoped
from assistant.dialogue._words import Words, causes_of, suggest, words
from assistant.intent.grammar import words_of
from assistant.intent.suspicion import either_of, suspect_of
from assistant.intent.symptoms import pointed
from assistant.render.labels import aside, colon, led
from assistant.render.sheet import Items, Part
from assistant.reply import Reply
from knowledge.language import Text
from knowledge.observation import Event, Status

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.differential import Row
    from knowledge.suspects import Suspect
    from knowledge.symptoms import Hypothesis
    from rules.engine import Finding

SHOWN = 4  # possibilities, one line each
_OF_LINKS = frozenset({"cables", "network", "nvlink", "pcie", "riser"})
_SWAP = Text(
    "Swap one part at a time with its neighbour that works (cable, module, port, slot, card): the fault follows the part that is bad.",
    "每次只与正常的邻位互换一个部件（线缆、光模块、端口、插槽、卡）：故障跟着哪个部件走，坏的就是哪个。",
)
_BY_KIND = ("program", "hardware")  # of these the kind of what was found decides (`cause`)


def answer(turn: Turn) -> Reply | None:
    """Yes, no, or no sign of it, with what was read; None where no one thing is suspected, or its kind of thing decides."""
    from assistant.dialogue.cause import NOT_KNOWN, kind_of
    from assistant.differential import Stand, weighed

    d, suspect = turn.diagnosis, suspect_of(turn.query.text)
    if d is None or suspect is None or suspect.id in _BY_KIND or only_said(d.facts):
        return None
    roots = bad_roots(scoped(d, turn.query.slots).about)
    if suspect.id == "network" and roots and kind_of(roots[0]) != NOT_KNOWN:
        return None
    w = words(turn)
    narrower = set(pointed(words_of(turn.query.text), turn.query.text))
    meant = tuple(h for h in suspect.hypotheses if h.id in narrower) or suspect.hypotheses
    rows = weighed(meant, (), d, turn.plan, turn.lang, turn.ruleset)
    known = {f.id: f for f in d.findings}
    held = [known[i] for r in rows if r.state is Stand.FOR and not r.causes for i in r.findings if i in known]
    follows = [known[i] for r in rows if r.causes for i in r.findings if i in known]
    first = (*held, *roots, *follows)[:1]
    lines = tuple(_line(w, r) for r in rows if r.for_ or r.against)[:SHOWN]
    parts: list[Part] = [Items(lines)] if lines else []
    parts += w.section("Read of it", "相关读数", _readings(w, meant, first))
    if not roots:
        parts += w.section("Not known", "尚不清楚", [w.gaps(m) for u in d.undecided[:2] if (m := u.missing)])
    return Reply(
        turn.lang, _head(w, suspect, rows, held, follows, roots, meant[0].id), tuple(parts), focus=first[0].id if first else "",
        settled=bool(held or roots), suggestions=suggest(turn.lang, "why", "alternatives", "next"),
        data={"answer": "suspicion", "suspect": suspect.id, "held": [f.rule.id for f in held],
              "hypotheses": [{"id": r.id, "state": str(r.state)} for r in rows]},
    )  # fmt: skip


def either(turn: Turn) -> Reply | None:
    """Which of two things it is, as far as what was read shows; None where a sentence asks no such thing."""
    from assistant.dialogue.cause import settling
    from assistant.differential import Stand, weighed

    d, two = turn.diagnosis, either_of(turn.query.text)
    if d is None or two is None or only_said(d.facts):
        return None
    w, known = words(turn), {f.id: f for f in d.findings}
    roots = bad_roots(scoped(d, turn.query.slots).about)
    rows = [weighed(s.hypotheses, (), d, turn.plan, turn.lang, turn.ruleset) for s in two]
    held = [
        [known[i] for r in own if r.state is Stand.FOR and not r.causes for i in r.findings if i in known]
        for own in rows
    ]
    only = [(s, h[0]) for s, h, other in zip(two, held, reversed(held), strict=True) if h and h[0] not in other]
    names = [s.title for s in two]
    if len(only) == 1:
        s, first = only[0]
        none = names[1] if s is two[0] else names[0]
        said = w.t(
            f"Signs of {s.title.en}, none of {none.en}", f"有{_inner(s.title.zh)}的迹象，没有{_inner(none.zh)}的迹象"
        )
        head = led(said, w.title(first), w.lang)
    else:
        found = [f for _, f in only] or roots[:1]
        said = w.t(
            f"What was read does not tell {names[0].en} from {names[1].en}",
            f"所读内容无法区分{_inner(names[0].zh)}与{_inner(names[1].zh)}",
        )
        if not found:
            said = w.t(
                f"No sign of either in what was read: {names[0].en}, {names[1].en}",
                f"所读内容中两者都没有迹象：{_inner(names[0].zh)}、{_inner(names[1].zh)}",
            )
        more = w.t("; ", "；").join(w.title(f) for f in found)
        head = said + (w.t(f". Found was: {more}", f"。已发现的是：{more}") if more else "")
    first_of = only[0][1] if only else roots[0] if roots else None
    lines = dict.fromkeys(_line(w, r) for own in rows for r in own if r.for_ or r.against)
    parts: list[Part] = [Items(tuple(lines)[:SHOWN])] if lines else []
    if first_of is not None:
        swap = [_SWAP.in_(w.lang)] if {s.id for s in two} & _OF_LINKS else []
        parts += w.section("What would tell it", "如何确认", [*swap, *settling(w, first_of)])
    return Reply(
        turn.lang, head + w.t(".", "。"), tuple(parts), focus=first_of.id if first_of is not None else "",
        settled=len(only) == 1, suggestions=suggest(turn.lang, "why", "alternatives", "next"),
        data={"answer": "either", "suspects": [s.id for s in two], "held": [f.rule.id for _, f in only]},
    )  # fmt: skip


def _readings(w: Words, meant: Sequence[Hypothesis], first: Sequence[Finding]) -> list[str]:
    """What was read of the suspect where the trouble is: its limits and its bits, whatever they say."""
    place = first[0].subject if first else None
    names = dict.fromkeys(name for h in meant for name in h.facts)
    read = [o for name in names if place is not None and (o := w.d.facts.current(name, place)) is not None]
    return [w.seen(o, places=False) for o in read if o.status is Status.OK and not isinstance(o.value, Event)][:SHOWN]


def _head(
    w: Words, s: Suspect, rows: Sequence[Row], held: Sequence[Finding], follows: Sequence[Finding], roots: Sequence[Finding],
    first: str,
) -> str:  # fmt: skip
    """`first`: the hypothesis that the suspect is named for, or that the words name."""
    from assistant.dialogue.cause import NOT_KNOWN, kind_of
    from assistant.differential import Stand

    name, end = s.title, w.t(".", "。")
    found = f"{w.t(' Found was: ', '已发现的是：')}{w.title(roots[0])}{end}" if roots else ""
    if held:
        return led(w.t("Yes, as far as it shows", "目前看是"), w.title(held[0]), w.lang) + end
    if follows and (by := next(iter(causes_of(follows[0], w.d)), None)) is not None:
        lead = w.t(
            f"No, as far as it shows: what was seen of {name.en} follows from something else",
            f"目前看不是：与{_inner(name.zh)}有关的现象由其他问题引起",
        )
        return led(lead, w.title(by), w.lang) + end
    if all(r.state is Stand.AGAINST for r in rows):
        return (
            w.t(
                f"No: {name.en} was looked at, and no fault of the kind was found.",
                f"不是：已检查{_inner(name.zh)}，未发现此类问题。",
            )
            + found
        )
    main = next((r for r in rows if r.id == first), None)
    if (
        main is not None
        and main.state is Stand.AGAINST
        and main.against
        and all(r.state is not Stand.POSSIBLE for r in rows)
    ):
        return led(w.t("No, as far as it was read", "就已读内容看不是"), main.against[0], w.lang) + end + found
    if any(r.state is Stand.POSSIBLE for r in rows):
        return (
            w.t(
                f"It cannot be excluded: some of what was read would fit {name.en}.",
                f"不能排除：部分已读内容与{_inner(name.zh)}相符。",
            )
            + found
        )
    if not roots:
        return w.t(f"No sign in what was read that it is {name.en}, and nothing else wrong.",
                   f"所读内容中没有迹象表明是{_inner(name.zh)}的问题，也未发现其他问题。")  # fmt: skip
    if kind_of(roots[0]) == NOT_KNOWN:  # nothing read tells why: no word against any suspect
        return (
            w.t(
                f"What was read does not tell whether it is {name.en}.",
                f"所读内容无法说明是否是{_inner(name.zh)}的问题。",
            )
            + found
        )
    return (
        w.t(f"No sign in what was read that it is {name.en}.", f"所读内容中没有迹象表明是{_inner(name.zh)}的问题。")
        + found
    )


def _line(w: Words, row: Row) -> str:
    """One possibility, where it stands and the evidence: ``A power limit: ruled out. The SW power cap is not active``."""
    from assistant.differential import Stand, state_word

    said = (row.for_ if row.state in (Stand.FOR, Stand.POSSIBLE) else row.against) or row.for_
    shown = f"{row.title}{aside(state_word(row, w.lang), w.lang)}"
    return f"{shown}{colon(w.lang)}{said[0]}" if said else shown


def _inner(name: str) -> str:
    """A name within a Chinese sentence."""
    return f"{' ' if name[:1].isascii() else ''}{name}{' ' if name[-1:].isascii() else ''}"
