"""Is it the power supply, the driver, my code: one suspected thing, answered from what speaks for and against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.diagnosis import bad_roots, only_said
from assistant.dialogue._scope import scoped
from assistant.dialogue._words import Words, causes_of, suggest, words
from assistant.intent.grammar import words_of
from assistant.intent.suspicion import suspect_of
from assistant.intent.symptoms import pointed
from assistant.render.labels import aside, colon, led
from assistant.render.sheet import Items, Part
from assistant.reply import Reply
from knowledge.observation import Event, Status

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.differential import Row
    from knowledge.suspects import Suspect
    from knowledge.symptoms import Hypothesis
    from rules.engine import Finding

SHOWN = 4  # possibilities, one line each
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
