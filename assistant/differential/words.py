"""The words of a differential diagnosis: evidence as sentences, what is not known after what would tell it, next steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assistant import formats
from assistant.diagnosis import only_said
from assistant.differential.weigh import Stand
from assistant.render.cells import cut
from assistant.render.labels import aside, colon, label, listed, reason_name, sentence
from assistant.render.words import source_name
from knowledge.language import Text
from knowledge.observation import Observation, Status
from knowledge.text import clean
from rules.condition import FactLeaf, Op
from rules.proof import LeafProof

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.differential.weigh import Gap, Weighed
    from assistant.planner import Plan
    from probes.live import ProbeSpec

NEEDS = Text("needs ", "需要：")  # before the inputs that would tell it
SENTENCES = 3  # of one kind of evidence, at most
_FIRST_CLAUSE = re.compile(r"[;；。]|[.,(（](?: |$)| \(|，")  # what ends the first clause of a fact's meaning
LINE = 160  # columns of one sentence, at most
NAMES = 2  # facts of one teller, at most
LOOK = 2000  # observations among which a reading of the machine itself would be
_UNREAD = Text("not read", "未读取")
_YOURS = Text("your answer", "您的回答")
_COSTS = (
    Text("at next to no cost", "几乎无开销"), Text("about 1 s", "约 1 秒"), Text("takes seconds", "需数秒"),
    Text("takes minutes or loads the node: ask first", "耗时数分钟或有负载：先征得同意"),
)  # fmt: skip


class Wording:
    """Sentences about one diagnosis in one language."""

    def __init__(self, diagnosis: Diagnosis, plan: Plan | None, lang: str) -> None:
        self._d, self._plan, self._lang = diagnosis, plan, lang
        self._specs: dict[str, ProbeSpec] | None = None

    # --- evidence -------------------------------------------------------------------------

    def seen(self, observations: Sequence[Observation], facts: Sequence[str]) -> tuple[str, ...]:
        """Observations as sentences, one for each fact; those of `facts` first."""
        ranked = sorted(observations, key=lambda o: facts.index(o.fact) if o.fact in facts else len(facts))
        groups: dict[str, list[Observation]] = {}
        for o in ranked:
            groups.setdefault(o.fact, []).append(o)
        return self._counted([(group[0], len(group)) for group in groups.values()])

    def denied(self, leaves: Sequence[LeafProof], facts: Sequence[str]) -> tuple[str, ...]:
        """What makes rules impossible: for each fact the value that came closest to making them hold."""
        groups: dict[str, list[tuple[LeafProof, Observation]]] = {}
        told = [(leaf, o) for leaf in leaves for o in leaf.observations[:1]]
        for leaf, o in [t for t in told if t[1].status is not Status.NOT_APPLICABLE] or told:
            groups.setdefault(o.fact, []).append((leaf, o))
        ranked = sorted(groups, key=lambda name: facts.index(name) if name in facts else len(facts))
        closest = [(*_closest(groups[name]), len({o.subject for _, o in groups[name]})) for name in ranked]
        return self._counted([(o, n) for _, o, n in closest], [self._threshold(leaf) for leaf, _, _ in closest])

    def _threshold(self, proof: LeafProof) -> str:
        """What a value would have to reach; empty where nothing is ordered."""
        from assistant.dialogue._clauses import ordered, wanted

        leaf = proof.leaf
        if not isinstance(leaf, FactLeaf) or not ordered(leaf) or leaf.each is not None:
            return ""
        value = wanted(leaf, self._d.facts.vocabulary, self._lang)
        return Text(f"; threshold: {value}", f"；阈值：{value}").in_(self._lang) if value else ""

    def _counted(self, told: Sequence[tuple[Observation, int]], limits: Sequence[str] = ()) -> tuple[str, ...]:
        ends = [*limits, *[""] * (len(told) - len(limits))]
        said = [(self._sentence(o), self._others(n - 1), end) for (o, n), end in zip(told, ends, strict=True)]
        out = dict.fromkeys("".join(parts) for parts in said if parts[0])
        lines = [line for line in out if line]
        rest = len(lines) - SENTENCES
        return tuple(lines) if rest <= 0 else (*lines[:SENTENCES], self._more(rest))

    def _sentence(self, o: Observation) -> str:
        spec = self._d.facts.vocabulary.get(o.fact)
        if spec is None:
            return ""
        if o.status is Status.OK:
            return cut(clean(sentence(spec, o, self._lang)), LINE)
        told = label(str(o.status), self._lang)
        if o.status is Status.NONE_SEEN and (n := len(self._d.facts.events(o.fact))):
            told = {"zh": f"共 {n} 条，均不是此类"}.get(self._lang, f"{n} seen, none of this kind")
        return clean(f"{self._meaning(o.fact)}{colon(self._lang)}{told}")

    def _others(self, n: int) -> str:
        if n < 1:
            return ""
        return {"zh": f"（另有 {n} 处）"}.get(self._lang, f" (and {n} {'other' if n == 1 else 'others'})")

    def _more(self, n: int) -> str:
        return label("more_lines", self._lang).format(n=n)

    def _meaning(self, fact: str) -> str:
        spec = self._d.facts.vocabulary.get(fact)
        return _FIRST_CLAUSE.split(spec.meaning.in_(self._lang))[0] if spec else fact

    # --- what is not known ----------------------------------------------------------------

    def unknown(self, gaps: Sequence[Gap]) -> tuple[str, ...]:
        """``needs nvidia-smi topo -m: what lies between two GPUs``: what is missing, after what would tell it."""
        groups: dict[str, dict[str, None]] = {}
        for gap in gaps:
            groups.setdefault(self._teller(gap), {}).setdefault(gap.missing.fact)
        lines = [f"{teller}{colon(self._lang)}{self._names(facts)}" for teller, facts in groups.items()]
        rest = len(lines) - SENTENCES
        return tuple(lines) if rest <= 0 else (*lines[:SENTENCES], self._more(rest))

    def _names(self, facts: Iterable[str]) -> str:
        known = list(dict.fromkeys(self._meaning(fact) for fact in facts))
        more = [self._more(len(known) - NAMES)] if len(known) > NAMES else []
        return listed([*known[:NAMES], *more], self._lang, ";")

    def _teller(self, gap: Gap) -> str:
        """The planned probe that settles it, else what would have told it, else why nobody did."""
        status = gap.missing.reason.partition(": ")[0]
        if planned := self._planned([gap]):
            return planned
        if status != Status.NOT_ASKED:
            return clean(reason_name(gap.missing.reason, self._lang))
        told = self._probe(gap.missing.fact) or self._input(gap.missing.fact)
        if told == source_name("snapshot", self._lang) and self._here():
            return _UNREAD.in_(self._lang)
        return told or (_YOURS.in_(self._lang) if self._asks(gap.missing.fact) else label("not_asked", self._lang))

    def _planned(self, gaps: Iterable[Gap]) -> str:
        wanted = {(g.missing.fact, g.rule) for g in gaps}
        found = (c.probe for c in (self._plan.probes if self._plan else ()) if not wanted.isdisjoint(c.settles))
        return next(found, "")

    def _probe(self, fact: str) -> str:
        """A probe that runs by default and gives `fact`; without a plan, which would have named it."""
        if self._plan is not None or not self._looked():
            return ""
        wanted = self._sources(fact)
        found = (name for name, s in self._probes().items() if s.default and not wanted.isdisjoint(s.provides))
        return next(found, "")

    def _sources(self, fact: str) -> frozenset[str]:
        """The fact, or what it is computed from: somebody has to tell that."""
        out, stack = set[str](), [fact]
        while stack:
            spec = self._d.facts.vocabulary.get(name := stack.pop())
            if name not in out:
                out.add(name)
                stack += spec.derived_from if spec else ()
        return frozenset(out - self._d.facts.facts or out)

    def _probes(self) -> dict[str, ProbeSpec]:
        if self._specs is None:
            from probes.live import probes

            self._specs = {s.name: s for s in sorted(probes(), key=lambda s: (s.cost, bool(s.instead_of), s.name))}
        return self._specs

    def _input(self, fact: str) -> str:
        told = (title for name in (fact, *sorted(self._sources(fact))) for title in formats.tellers(name))
        return source_name(next(told, ""), self._lang)

    # --- what to do next ------------------------------------------------------------------

    def next(self, w: Weighed) -> str:
        """The action of what is supported; else the probe, the question or the step by hand that tells more."""
        h = w.hypothesis
        if w.stand is Stand.AGAINST:
            return ""
        if w.causes:
            return self._follows(w.causes)
        if w.stand is Stand.FOR:
            return clean(w.findings[0].advice.text.in_(self._lang))
        if not self._looked():  # no machine is here that a probe could be run on
            return clean(h.find_out.in_(self._lang)) or self._question(h.ask, w.gaps) or self._given(w.gaps)
        if (probe := self._planned(w.gaps)) or (probe := self._unasked(w.gaps)):
            return self._with_cost(probe)
        if question := self._question(h.ask, w.gaps):
            return question
        return clean(h.find_out.in_(self._lang)) or self._given(w.gaps)

    def _follows(self, causes: Sequence[str]) -> str:
        titles = {f.id: f.title.in_(self._lang) for f in self._d.findings}
        named = listed(dict.fromkeys(cut(clean(titles[c]), LINE) for c in causes[:2] if c in titles), self._lang, ";")
        return {"zh": f"由此引起：{named}"}.get(self._lang, f"follows from: {named}")

    def _unasked(self, gaps: Iterable[Gap]) -> str:
        asked = (g.missing.fact for g in gaps if g.missing.reason == Status.NOT_ASKED)
        return next((probe for fact in asked if (probe := self._probe(fact))), "")

    def _with_cost(self, probe: str) -> str:
        spec = self._probes().get(probe)
        said = Text(f"run the probe {probe}", f"运行探针 {probe}").in_(self._lang)
        return said + (aside(_COSTS[spec.cost].in_(self._lang), self._lang) if spec else "")

    def _question(self, fact: str, gaps: Sequence[Gap]) -> str:
        waited = {g.rule for g in gaps}
        for q in self._plan.questions if self._plan else ():
            if q.fact == fact or not waited.isdisjoint(q.rules):
                return clean(q.text.in_(self._lang))
        return "" if fact in self._d.facts.facts else self._asks(fact)

    def _asks(self, fact: str) -> str:
        """How a person is asked for `fact`; empty where nobody would know."""
        spec = self._d.facts.vocabulary.get(fact)
        return clean(spec.ask.in_(self._lang)) if spec and spec.ask else ""

    def _given(self, gaps: Sequence[Gap]) -> str:
        """The input that would tell what no probe does."""
        names = dict.fromkeys(self._input(g.missing.fact) for g in gaps if g.missing.reason == Status.NOT_ASKED)
        names.pop("", None)
        if self._here():  # it looked itself: looking once more tells no more
            names.pop(source_name("snapshot", self._lang), None)
        return NEEDS.in_(self._lang) + listed(list(names)[:2], self._lang) if names else ""

    def _looked(self) -> bool:
        """Whether anything was seen, and not only said."""
        return not only_said(self._d.facts)

    def _here(self) -> bool:
        """Whether a machine was looked at, live or recorded, not some outputs of it."""
        return any(k.inner.source.probe.endswith("-snapshot") for k in self._d.facts.observations[:LOOK])


def _closest(leaves: Sequence[tuple[LeafProof, Observation]]) -> tuple[LeafProof, Observation]:
    """The observation that came closest to the threshold; the first one where nothing is ordered."""
    leaf = leaves[0][0].leaf
    numbers = [
        pair for pair in leaves if isinstance(pair[1].value, int | float) and not isinstance(pair[1].value, bool)
    ]
    if isinstance(leaf, FactLeaf) and len(numbers) == len(leaves):
        if leaf.op in (Op.ABOVE, Op.AT_LEAST):
            return max(numbers, key=_level)
        if leaf.op in (Op.BELOW, Op.AT_MOST):
            return min(numbers, key=_level)
    return leaves[0]


def _level(pair: tuple[LeafProof, Observation]) -> float:
    value = pair[1].value
    return float(value) if isinstance(value, int | float) else 0.0
