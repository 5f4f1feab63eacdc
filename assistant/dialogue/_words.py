"""What the answers about a diagnosis share: its wording in one language, clauses of a proof, and common replies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from assistant.dialogue import _clauses
from assistant.render.cells import cut
from assistant.render.labels import aside, colon, grade_word, headline, label, listed, titled
from assistant.render.meanings import meaning, plain
from assistant.render.sheet import Heading, Items, Part
from assistant.render.view import Builder
from assistant.render.words import our_words
from assistant.reply import Reply
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Origin, Subject
from knowledge.record import dataclass
from knowledge.text import clean, excerpt, opened
from rules.condition import Condition, EventLeaf, FactLeaf, KnownLeaf, Take
from rules.proof import LeafProof, Missing, Proof, Truth, deciding, leaf_proofs

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from rules.engine import Finding
    from rules.model import Rule

LINE, PLACE = 200, 70  # columns of a raw line and of a place within an answer
CLAUSES = 4  # of one condition, at most
_ASK = Text("to ask: ", "需询问：")
_NAMES = lazy(r" ?\[[^\]]*\]$")  # names of facts behind what tells them: for machines


@dataclass(frozen=True, slots=True)
class Words:
    """The wording of one diagnosis in one language: that of the full answer (`assistant.render.view`)."""

    d: Diagnosis
    lang: str
    view: Builder

    def t(self, en: str, zh: str) -> str:
        """The sentence in the language of the answer."""
        return Text(en, zh).in_(self.lang)

    def title(self, f: Finding) -> str:
        """A finding as a clause with its subject: ``GPU 0000:3b:00.0 has fallen off the bus``."""
        return clean(
            headline(titled([f]), [f.subject], self.lang, named=not self.view.one_host, called=self.view.called)
        )

    def quoted(self, title: str) -> str:
        """A title that stands as a name within a sentence."""
        return f"“{title}”" if self.lang == "zh" else f'"{title}"'

    @property
    def ask(self) -> str:
        """What leads to a question that only a person can answer."""
        return _ASK.in_(self.lang)

    def mistaken(self, f: Finding) -> str:
        """What a finding is mistaken for; empty where nobody knows of anything."""
        return clean(f.rule.mistaken.in_(self.lang))

    def rule_title(self, title: Text, subjects: Sequence[Subject]) -> str:
        """What a rule would say of `subjects`."""
        return clean(headline(title, subjects, self.lang, named=not self.view.one_host, called=self.view.called))

    def rule_name(self, rule: Rule, code: int | None = None) -> str:
        """What a rule is called while it has no subject."""
        return clean(filled(rule, code).in_(self.lang))

    def grade(self, f: Finding) -> str:
        """The grade in a word."""
        return grade_word(f, self.lang)

    def said_by(self, f: Finding) -> str:
        """Who decided the action."""
        return label("rule_speaks" if f.advice.resolver == "rule" else f.advice.resolver, self.lang)

    def action(self, f: Finding) -> str:
        """The action word and its sentence."""
        return f"{f.advice.bucket}{colon(self.lang)}{f.advice.text.in_(self.lang)}"

    def seen(self, o: Observation, *, places: bool = True) -> str:
        """One observation: its sentence or its line, and where it stands."""
        e = self.view.evidence(o)
        said = e.text or e.raw
        raw = e.raw if e.text and e.raw and e.raw not in e.text and len(e.raw) <= LINE // 2 else ""
        raw = our_words(raw, self.lang) if raw and not _clauses.machine_made(raw) else ""
        place = self.t("supposed", "假设") if o.origin is Origin.HYPOTHETICAL else self.place(e.place)
        if not places:
            return cut(said, LINE)
        said = cut(said, LINE) + (f" [{raw}]" if raw else "")
        return said + aside(place, self.lang) if place else said

    def place(self, place: str) -> str:
        """Where something stands, short: of a long command its name."""
        if len(place) <= PLACE:
            return place
        return excerpt("; ".join(part.split(" -", 1)[0] for part in place.split("; ")), PLACE)

    def all_seen(self, observations: Sequence[Observation], *, places: bool = True) -> str:
        """The first of several observations, and how many more."""
        if not observations:
            return ""
        more = len(observations) - 1
        rest = f" {label('more_lines', self.lang).format(n=more)}" if more else ""
        return self.seen(observations[0], places=places) + (f"{self.mark}{rest.strip()}" if rest else "")

    @property
    def mark(self) -> str:
        """What stands between two clauses."""
        return self.t("; ", "；")

    def clause(self, p: LeafProof, *, places: bool = True) -> str:
        """A clause of a condition as a sentence: what was seen and, where it is compared, with what; or what is missing."""
        known = self.d.facts.vocabulary
        if p.truth is Truth.UNKNOWN:
            lacks = self.gaps(p.missing) or self.t("not known", "未知")
            if lacks.startswith(_ASK.in_(self.lang)):
                return lacks
            return f"{meaning(fact_of(p.leaf), known, self.lang)}{colon(self.lang)}{lacks}"
        if isinstance(p.leaf, EventLeaf) and not any(isinstance(o.value, Event) for o in p.observations):
            place = self.place(self.view.evidence(p.observations[0]).place) if p.observations and places else ""
            return _clauses.unseen(p.leaf, known, self.lang) + (aside(place, self.lang) if place else "")
        shown = self.all_seen(p.observations, places=places)
        if not shown:
            return f"{_clauses.asked(p.leaf, known, self.lang)}{colon(self.lang)}{label('none_seen', self.lang)}"
        return self.mark.join(filter(None, (shown, self._against(p))))

    def _against(self, p: LeafProof) -> str:
        """What the value of a clause is compared with; of yes and no only nothing, the sentence says it."""
        if not isinstance(p.leaf, FactLeaf) or not _clauses.compared(p.leaf):
            return ""
        if not _clauses.ordered(p.leaf) and p.truth is Truth.TRUE and not _counted(p):
            return ""
        told = _clauses.note(p.seen, self.lang) if _counted(p) and not p.leaf.each and p.seen != "none seen" else ""
        value = _clauses.wanted(p.leaf, self.d.facts.vocabulary, self.lang)
        if _clauses.ordered(p.leaf):
            limit = self.t("threshold: ", "阈值：") + value if value else ""
        else:
            limit = self.t("it would have to be: ", "须为：") + value if value and p.truth is Truth.FALSE else ""
        return self.mark.join(filter(None, (told, limit)))

    def gaps(self, missing: Iterable[Missing]) -> str:
        """What is missing and what would tell it, in words."""
        gaps = list(missing)
        needs = [_NAMES.sub("", n) for n in self.view.gaps.needs(gaps)]
        asks = [n for n in needs if n.endswith(("?", "？"))]  # nothing but a person tells it
        if needs:
            got = [n for n in needs if n not in asks]
            said = self.view.gaps.needed(got, gaps)
            return listed([*said, *(_ASK.in_(self.lang) + n for n in asks)], self.lang, ";")
        from assistant.render.labels import reason_name

        lost = dict.fromkeys(_clauses.note(reason_name(m.reason, self.lang), self.lang) for m in gaps)
        return listed(list(lost)[:CLAUSES], self.lang)

    def unseen(self, most: int) -> list[str]:
        """What could not be seen and why, the facts by what they are."""
        return [plain(line, self.d.facts.vocabulary, self.lang) for line in self.view.gaps.unseen()[:most]]

    def undecided(self, most: int) -> list[str]:
        """What is still open and what it lacks, the facts by what they are."""
        return [plain(line, self.d.facts.vocabulary, self.lang) for line in self.view.gaps.undecided()[:most]]

    def clauses(self, proof: Proof, most: int = CLAUSES) -> tuple[str, ...]:
        """The clauses that decided a proof; of an undecided one those that are unknown."""
        leaves = list(deciding(proof)) or list(leaf_proofs(proof))
        said = list(dict.fromkeys(self.clause(p) for p in leaves))
        rest = len(said) - most
        return tuple(said) if rest <= 0 else (*said[:most], label("more_lines", self.lang).format(n=rest))

    def section(self, en: str, zh: str, items: Iterable[str]) -> tuple[Part, ...]:
        """A heading and its list; nothing when the list is empty."""
        kept = tuple(opened(item) for item in items if item)
        return (Heading(self.t(en, zh)), Items(kept)) if kept else ()


def _counted(p: LeafProof) -> bool:
    """Whether what was compared is none of the values that were seen: a share of them, a ratio, a rate."""
    leaf = p.leaf
    return isinstance(leaf, FactLeaf) and (leaf.each is not None or leaf.peer_ratio or leaf.take is not Take.LAST)


def filled(rule: Rule, code: int | None = None) -> Text:
    """A rule's title; of one about many codes that of `code`, else its id in words."""
    if code is not None:
        from knowledge.catalog.xid import xid

        entry = xid(code)
        title = entry.title if entry is not None else Text("", "")
        made = Text(*(
            rule.title.in_(lang).replace("{code}", str(code)).replace("{title}", title.in_(lang)).replace("{title_zh}", title.in_("zh")) for lang in ("en", "zh")
        ))  # fmt: skip
        if "{" not in made.en + made.zh:
            return made
    return rule.name


def words(turn: Turn) -> Words:
    """The wording of the turn's diagnosis; the turn has one."""
    assert turn.diagnosis is not None
    return words_of(turn.diagnosis, turn.lang)


def words_of(diagnosis: Diagnosis, lang: str) -> Words:
    """The wording of `diagnosis` in `lang`."""
    from assistant.sources import tells

    return Words(diagnosis, lang, Builder(diagnosis, lang, tells, verbose=False))


def nothing_yet(turn: Turn) -> Reply:
    """The answer to a follow-up when nothing was asked before."""
    said = Text(
        "Nothing was looked at yet, so there is nothing to say about it.", "还没有查看过任何东西，因此无从回答。"
    )
    return Reply(
        turn.lang,
        said.in_(turn.lang),
        settled=False,
        suggestions=tuple(
            t.in_(turn.lang)
            for t in (
                Text("check this node", "检查本节点"),
                Text("what is xid 79?", "xid 79 是什么？"),
                Text("help", "帮助"),
            )
        ),
        data={"answer": "nothing-yet"},
    )


_SUGGESTIONS = {
    "why": Text("why?", "为什么？"),
    "evidence": Text("how do you know?", "依据是什么？"),
    "confidence": Text("how sure are you?", "有多确定？"),
    "alternatives": Text("what else could it be?", "还可能是什么原因？"),
    "next": Text("what next?", "下一步做什么？"),
    "verdict": Text("can I keep using it?", "还能继续使用吗？"),
    "rerun": Text("check again", "再查一次"),
    "help": Text("help", "帮助"),
}


def suggest(lang: str, *keys: str) -> tuple[str, ...]:
    """Questions that would be understood next, by name; what is no name stands as it is."""
    return tuple(_SUGGESTIONS[k].in_(lang) if k in _SUGGESTIONS else k for k in keys)


def facts_in(condition: Condition) -> tuple[str, ...]:
    """Names of the facts and events of a condition, in the order in which they are written."""
    from rules.condition import leaves

    return tuple(dict.fromkeys(fact_of(leaf) for leaf in leaves(condition)))


def fact_of(leaf: EventLeaf | FactLeaf | KnownLeaf) -> str:
    """What a leaf asks about."""
    return leaf.event if isinstance(leaf, EventLeaf) else leaf.fact


def finding_data(f: Finding, lang: str) -> dict[str, Any]:
    """A finding in short, for JSON."""
    from assistant.render.json_ import subject

    return {
        "id": f.id, "rule": f.rule.id, "title": f.title.in_(lang), "subject": subject(f.subject),
        "severity": str(f.severity), "grade": str(f.grade), "role": str(f.role), "bucket": str(f.advice.bucket),
        "usable": str(f.advice.usable), "said_by": f.advice.resolver,
    }  # fmt: skip


def causes_of(f: Finding, d: Diagnosis) -> tuple[Finding, ...]:
    """The roots that explain a finding, over any number of steps."""
    by_id = {x.id: x for x in d.findings}
    seen, stack = {f.id}, [f.id]
    roots = []
    while stack:
        here = by_id.get(stack.pop())
        if here is None:
            continue
        if here.id != f.id and not here.explained_by:
            roots.append(here)
        for cause in here.explained_by:
            if cause not in seen:
                seen.add(cause)
                stack.append(cause)
    order = {x.id: i for i, x in enumerate(d.findings)}
    return tuple(sorted(roots, key=lambda x: order[x.id]))
