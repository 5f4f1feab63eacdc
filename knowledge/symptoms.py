"""Symptoms: what people say is wrong, and the hypotheses that a differential diagnosis walks over.

A hypothesis names rules: the evidence for and against it is what these rules say. It may be behind several
symptoms and stands once in the data (``data/hypotheses``); a symptom (``data/symptoms``) names the ones it can have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from knowledge.errors import UnknownNameError
from knowledge.language import NO_TEXT, Text
from knowledge.priors import CauseClass
from knowledge.record import dataclass


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One possible cause, as a person would name it."""

    id: str
    title: Text
    rules: tuple[str, ...]  # ids; one that holds speaks for it
    signs: tuple[str, ...]  # ids of rules that fit it, and fit others as well: they decide nothing
    decides: tuple[str, ...]  # of `rules` those that rule it out when none of them can hold; empty: nothing does
    needs: str  # a set of a node: empty on every node, the hypothesis cannot be; empty: it needs none
    facts: tuple[str, ...]  # names worth showing
    ask: str  # fact to ask a person for; empty: none
    find_out: Text  # what a person does when no probe can tell; empty when one can
    cause: CauseClass  # orders what the evidence leaves equal
    sources: tuple[str, ...] = ()

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Hypothesis:
        """From checked YAML."""
        find_out, rules = data.get("find_out"), data.get("rules", ())
        return cls(
            id=data["id"], title=Text.of(data["title"]), rules=tuple(rules), signs=tuple(data.get("signs", ())),
            # Where a person has to look, the rules do not see everything: their silence rules nothing out.
            decides=tuple(data.get("decides", () if find_out else rules)), needs=data.get("needs") or "",
            facts=tuple(data.get("facts", ())), ask=data.get("ask") or "",
            find_out=Text.of(find_out) if find_out else NO_TEXT, cause=CauseClass(data["cause"]),
            sources=tuple(data.get("sources", ())),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Symptom:
    """One complaint."""

    id: str
    title: Text
    text: Text
    said: Mapping[str, tuple[str, ...]]  # language -> phrases
    tags: tuple[str, ...]  # `symptoms:` of the rules that belong to it
    hypotheses: tuple[Hypothesis, ...]
    running: tuple[Hypothesis, ...]  # instead of them for a job that is looked into while it runs; empty: the same
    sources: tuple[str, ...]
    state: str = (
        ""  # of a state of the hardware the hypothesis that is the state itself: "is it so" is answered by that
    )

    @property
    def rules(self) -> frozenset[str]:
        """Ids of all rules that its hypotheses name."""
        return frozenset(rule for h in self.hypotheses for rule in (*h.rules, *h.signs))


@cache
def hypotheses() -> Mapping[str, Hypothesis]:
    """All hypotheses by id."""
    from knowledge.compiled import shard

    return {data["id"]: Hypothesis.from_plain(data) for data in shard("hypotheses")}


@cache
def symptoms() -> Mapping[str, Symptom]:
    """All symptoms by id. UnknownNameError when one names a hypothesis that does not exist."""
    from knowledge.compiled import shard

    known = hypotheses()
    out = {}
    for data in shard("symptoms"):
        for name in (*data["hypotheses"], *data.get("running", ()), *filter(None, [data.get("state")])):
            if name not in known:
                raise UnknownNameError("hypothesis", name, known)
        out[data["id"]] = Symptom(
            id=data["id"], title=Text.of(data["title"]), text=Text.of(data["text"]),
            said={lang: tuple(phrases) for lang, phrases in data["said"].items()},
            tags=tuple(data.get("tags", ())), hypotheses=tuple(known[name] for name in data["hypotheses"]),
            running=tuple(known[name] for name in data.get("running", ())),
            sources=tuple(data["sources"]), state=data.get("state") or "",
        )  # fmt: skip
    return out


def hypotheses_of(symptom_ids: Iterable[str], *, running: bool = False) -> tuple[Hypothesis, ...]:
    """The hypotheses of several symptoms, each once, in the order of the data. Unknown ids are left out.

    `running`: those about a job that is looked into while it runs, where a symptom has them.
    """
    known = symptoms()
    said = [known[name] for name in symptom_ids if name in known]
    found = {h.id: h for s in said for h in ((s.running if running else ()) or s.hypotheses)}
    return tuple(found.values())


def rules_of(symptom_ids: Iterable[str]) -> frozenset[str]:
    """Ids of all rules that speak about some hypothesis of these symptoms, its signs among them."""
    return frozenset(rule for h in hypotheses_of(symptom_ids) for rule in (*h.rules, *h.signs))
