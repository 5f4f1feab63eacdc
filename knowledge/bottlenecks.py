"""What people ask of a trace or a capture by name ("is it memory bound?", "would CUDA graphs help?", "which kernel?"), and what tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from knowledge.compiled import shard
from knowledge.language import Text
from knowledge.record import dataclass

_READ = 2000  # characters of a sentence that are looked at
_WORD = re.compile(r"[a-z0-9/]+(?:'[a-z0-9]+)*")  # hyphens, dots and underscores part words: "torch.compile"
_HAN = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """One name and what tells about it.

    `kind`: a cause is so or not; a remedy gains at most what its rules' impact says; of a "which" the facts are the answer.
    """

    id: str
    title: Text  # a noun phrase within a sentence
    kind: str  # cause, remedy, which
    rules: tuple[str, ...]  # ids; one that holds means yes, the first that fits is named
    facts: tuple[str, ...]  # names, the most telling first
    names: tuple[str, ...]  # facts whose value is the rank that it is; empty: it names none
    same: tuple[str, ...]  # facts of the whole job that say what the first of `facts` says of one rank
    over: tuple[str, ...]  # ids of others that are not meant where this one is named
    whole: tuple[str, ...]  # shares that the first of `facts` is a part of


@cache
def bottlenecks() -> Mapping[str, Bottleneck]:
    """All of them by id."""
    return {
        e["id"]: Bottleneck(
            e["id"], Text.of(e["title"]), e["kind"], tuple(e["rules"]), tuple(e["facts"]),
            *(tuple(e.get(key) or ()) for key in ("names", "same", "over", "whole")),
        )
        for e in shard("bottlenecks")
    }  # fmt: skip


def measures(fact: str) -> Bottleneck | None:
    """What a trace's `fact` is the first measure of, where other facts go with it; None for most."""
    return next((b for b in bottlenecks().values() if b.facts[0] == fact and (b.same or b.whole)), None)


@cache
def _words() -> tuple[tuple[str, str], ...]:
    """Phrase and id, the longest phrase first."""
    said = ((_plain(p), e["id"]) for e in shard("bottlenecks") for lang in ("en", "zh") for p in e["said"][lang])
    return tuple(sorted(said, key=lambda pair: (-len(pair[0]), pair[0])))


def _plain(text: str) -> str:
    """Latin words apart by one blank, Han characters without blanks between them."""
    folded = text.casefold()
    return "".join(folded.split()) if _HAN.search(folded) else f" {' '.join(_WORD.findall(folded))} "


def asked_about(text: str) -> tuple[Bottleneck, ...]:
    """What a sentence names, in the order in which it does; of phrases within one another the longest. Pure and bounded."""
    folded = text[:_READ].casefold()
    sides = {True: f" {' '.join(_WORD.findall(folded))} ", False: "".join(folded.split())}
    found: list[tuple[int, str]] = []
    for phrase, name in _words():
        latin = phrase[0] == " "
        at = sides[latin].find(phrase)
        if at < 0:
            continue
        end = at + len(phrase)
        found.append((folded.find(phrase.split()[0]), name))
        keep = 1 if latin else 0  # the blanks on both sides belong to the neighbours as well
        sides[latin] = sides[latin][: at + keep] + "\0" * (end - at - 2 * keep) + sides[latin][end - keep :]
    every = bottlenecks()
    named = [every[name] for name in dict.fromkeys(name for _, name in sorted(found))]
    return tuple(b for b in named if not any(b.id in other.over for other in named))
