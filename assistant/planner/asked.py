"""What a sentence asks to see: facts, and probes by the names that people have for them.

"run nvidia-smi", "check nvlink", "show me the kernel log", "the temperature of gpu 3".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assistant.find.tokens import tokens
from knowledge.facts import vocabulary
from probes.live import ProbeSpec

if TYPE_CHECKING:
    from assistant.intent.query import Query

_LONGEST = 2000  # characters of a sentence that are looked at
_WORD = re.compile(r"[a-z0-9][a-z0-9_.-]*")


def asked_facts(query: Query) -> tuple[str, ...]:
    """Names of the facts that `query` asks to see, in the order in which they were understood."""
    known = vocabulary()
    names = (*query.facts, *(t.name for t in query.topics if t.kind == "fact" and not query.facts))
    return tuple(dict.fromkeys(n for n in names if n in known))


def wanted(query: Query) -> frozenset[str]:
    """The facts to collect for it: also those that name what it is about ("gpu 3" is an index)."""
    asked = asked_facts(query)
    if not asked:
        return frozenset()
    naming = {"gpu.index"} if any(isinstance(g, int) for g in query.slots.gpu) else set[str]()
    naming |= {"process.comm", "process.command"} if query.slots.process else set()
    return frozenset(asked) | naming


def named_probes(text: str, available: Sequence[ProbeSpec], *, tools_only: bool = False) -> tuple[str, ...]:
    """Names of the probes that a sentence names: by their own name, by the tool that they run, or by a word of their
    title that no other has. `tools_only`: only a name or a tool that is no plain word (nvidia-smi, dcgmi).
    """
    low = text[:_LONGEST].casefold()
    words = [w.strip(".-_") for w in _WORD.findall(low)]
    whole = [s for s in available if _says(_stems(s.name.split("-")), _parts(words))]
    if tools_only:
        whole = [s for s in whole if "-" in s.name and s.name in low]
    tools = [s for s in available if any(b in words for b in s.needs.binaries)]
    if whole:
        most = {s.name for s in whole if not any(s.name != o.name and o.name.startswith(s.name) for o in whole)}
        return tuple(s.name for s in whole if s.name in most)
    if tools:  # "dcgmi diag" is more than "dcgmi"
        said = set(_parts(words))
        fits = {s.name: said.intersection(s.name.split("-")[1:]) for s in tools}
        # "dcgmi diag -r 3" is dcgm-diag-3, "dcgmi diag" dcgm-diag
        best = max((len(f), len(f) - s.name.count("-")) for s in tools for f in (fits[s.name],))
        closer = [
            s for s in tools if fits[s.name] and (len(fits[s.name]), len(fits[s.name]) - s.name.count("-")) == best
        ]
        usual = [s for s in tools if s.default]
        return tuple(s.name for s in closer or usual or tools)
    return () if tools_only else _by_title(low, available)


def _parts(words: Iterable[str]) -> list[str]:
    parts = _stems(part for word in words for part in word.split("-"))
    return ["diag" if p == "diagnostic" else p for p in parts if p != "level"]  # "DCGM diagnostic level 3": dcgm-diag-3


def _stems(words: Iterable[str]) -> list[str]:
    """Words without the endings of the plural: processes, process; logs, log."""
    return [re.sub(r"(?<=ss)es$|(?<=[^s])s$", "", word) for word in words]


def _says(name: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the words of a probe's name stand in a sentence one after another."""
    n = len(name)
    return any(list(words[i : i + n]) == list(name) for i in range(len(words) - n + 1))


# Words of titles that everybody uses for anything.
_SMALL = frozenset(
    {"between", "by", "from", "in", "inside", "on", "only", "or", "outside", "seconds", "started", "that", "time", "two", "之间",
     "时间"}
)  # fmt: skip


def _by_title(low: str, available: Sequence[ProbeSpec]) -> tuple[str, ...]:
    """Probes with a word in their title, in either language, that only they have."""
    titles = {s.name: {*tokens(s.title.en), *tokens(s.title.zh)} for s in available}
    common = Counter(word for words in titles.values() for word in words)
    said = {word for word in tokens(low) if len(word) > 1} - _SMALL
    return tuple(name for name, words in sorted(titles.items()) if any(common[w] == 1 for w in words & said))


def givers(facts: Iterable[str], available: Sequence[ProbeSpec]) -> tuple[str, ...]:
    """For each fact the cheapest probe that tells it, or what it follows from; one that stands in for another last."""
    vocab = vocabulary()
    out: dict[str, None] = {}
    for fact in sorted(facts):
        spec = vocab.get(fact)
        wanted = {fact, *(spec.derived_from if spec else ())}
        ways = [s for s in available if not wanted.isdisjoint(s.provides)]
        direct = [s for s in ways if fact in s.provides]
        best = min(direct, key=_dear, default=None)
        if best is not None:
            out.setdefault(best.name)
        else:  # each of what it follows from has to be told
            for part in sorted(wanted):
                giver = min((s for s in ways if part in s.provides), key=_dear, default=None)
                if giver is not None:
                    out.setdefault(giver.name)
    return tuple(out)


def _dear(spec: ProbeSpec) -> tuple[bool, bool, int, int, str]:
    return not spec.default, bool(spec.instead_of), int(spec.cost), -len(spec.provides), spec.name
