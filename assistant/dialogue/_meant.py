"""What somebody means by a hypothesis: the rules of a code, a name or plain words, or the hypotheses of a suspicion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass
from rules.condition import All, Any_, Condition, EventLeaf, FactLeaf, FieldTest, KnownLeaf, Leaf, Op, leaves

if TYPE_CHECKING:
    from assistant.intent.query import Query, Topic
    from knowledge.symptoms import Hypothesis
    from rules.model import Rule

MOST = 12  # rules that one hypothesis may mean
SENTENCE = 2000  # characters of a sentence that are looked at
_NEAR = 0.6  # of the best score: what is worse is another matter
_TELLING = 5.0  # a score that one rare word of a page gives; a common word of an unrelated page gives about 3
_ASKING = re.compile(
    r"\b(?:why|isn't|is|was|were|not|it|that|this|did|do|you|rule[ds]?|out|exclud\w{1,3}|a|an|the|problem|issue)\b"
    r"|为什么|为何|怎么|不是|没有|排除|问题|是|吗|呢",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Meant:
    """A hypothesis in words and the rules that decide it."""

    said: str  # "xid 79", "cooling"; empty when nothing was named
    rules: tuple[Rule, ...]
    code: int | None = None  # the one code that was named
    outright: bool = True  # named by code, rule, fact, suspicion or complaint; else found by its words
    hypotheses: tuple[Hypothesis, ...] = ()  # that a suspicion in plain words stands for; then no rules
    title: Text = NO_TEXT  # of the suspicion, within a sentence


def meant(query: Query, rules: Sequence[Rule]) -> Meant:
    """The rules that the query's hypothesis is about; none when no rule is, or when it names nothing."""
    said, found, code = _coded(query, rules)
    if not said:
        said, found = _named(query, rules)
    if not said and (plain := _suspicion(query)) is not None:
        return plain
    outright = bool(said)
    if not said:
        said, found = _searched(query, rules)
    return Meant(said, tuple({r.id: r for r in found}.values())[:MOST], code, outright)


def _suspicion(query: Query) -> Meant | None:
    """What is suspected in everyday words, or the complaint that is named."""
    from knowledge.suspects import suspected
    from knowledge.symptoms import hypotheses_of, symptoms

    known = symptoms()
    if (found := suspected(query.text[:SENTENCE])) is not None:
        return Meant(found.id, (), hypotheses=found.hypotheses, title=found.title)
    for name in query.symptoms:
        if name in known:
            title = Text(f'"{known[name].title.en}"', f"“{known[name].title.zh}”")
            return Meant(name, (), hypotheses=tuple(hypotheses_of([name]))[:MOST], title=title)
    return None


def _coded(query: Query, rules: Sequence[Rule]) -> tuple[str, list[Rule], int | None]:
    for kind, named in (("xid", query.slots.xid), ("sxid", query.slots.sxid)):
        more = (int(t.name) for t in query.topics if t.kind == kind and t.name.isdigit() and literal(query, t))
        codes = list(dict.fromkeys((*named, *more)))[:MOST]
        if codes:
            found = [r for code in codes for r in coded(kind, code, rules)]
            return (
                f"{kind} {', '.join(map(str, codes))}",
                found,
                codes[0] if len(codes) == 1 and kind == "xid" else None,
            )
    return "", [], None


def literal(query: Query, topic: Topic) -> bool:
    """Whether a topic's name stands in the sentence: what the search found by other words does not.

    A number that names a GPU, a process, a rank or a job is no code.
    """
    taken = {str(v) for slot in (query.slots.gpu, query.slots.pid, query.slots.rank, query.slots.job) for v in slot}
    if topic.name in taken:
        return False
    if topic.name.isdigit():
        return topic.name in re.findall(r"[0-9]+", query.text[:SENTENCE])
    return topic.name.casefold() in query.text[:SENTENCE].casefold()


def _named(query: Query, rules: Sequence[Rule]) -> tuple[str, list[Rule]]:
    """By rule or by fact: what the query names outright."""
    by_id = {r.id: r for r in rules}
    direct = [by_id[t.name] for t in query.topics if t.kind == "rule" and t.name in by_id and literal(query, t)]
    if direct:
        return direct[0].id, direct
    text = query.text[:SENTENCE].casefold()
    said = [
        *(f for f in query.facts if f.casefold() in text),
        *(t.name for t in query.topics if t.kind == "fact" and literal(query, t)),
    ]
    if facts := list(dict.fromkeys(said)):
        return facts[0], [r for fact in facts for r in rules if fact in _asked(r)]
    return "", []


def coded(kind: str, code: int, rules: Sequence[Rule]) -> list[Rule]:
    """The rules about a code: those that name it; where all of those ask for more than the code, those that take every code of
    the kind, as if they were about this one only (`xid` is the code then)."""
    named = [r for r in rules if (kind == "xid" and r.xid == code) or any(_names(x, kind, code) for x in _own(r))]
    plain = [r for r in named if r.xid == code or any(_names(x, kind, code) and _only_code(x) for x in _own(r))]
    every = [r for r in rules if r.split_by == "code" and any(_takes_all(x, kind, code) for x in _own(r))]
    if plain or not every:
        return named
    return [replace(r, xid=code, when=_only(r.when, kind, code)) for r in every]


def _only(tree: Condition, kind: str, code: int) -> Condition:
    """A condition about many codes, of one of them."""
    if isinstance(tree, All | Any_):
        return replace(tree, children=tuple(_only(c, kind, code) for c in tree.children))
    if not isinstance(tree, EventLeaf) or tree.event != kind:
        return tree
    kept = tuple(t for t in tree.where if t.field not in ("code", "catalogued"))
    return replace(tree, where=(FieldTest("code", Op.IS, code), *kept))


def _own(rule: Rule) -> Iterator[Leaf]:
    return leaves(rule.when)


def _names(leaf: Leaf, kind: str, code: int) -> bool:
    if not isinstance(leaf, EventLeaf) or leaf.negated or leaf.event not in (kind, f"{kind}_implied"):
        return False
    return any(
        t.field == "code" and ((t.op is Op.IS and t.value == code) or (t.op is Op.IN and isinstance(t.value, tuple) and code in t.value))
        for t in leaf.where
    )  # fmt: skip


def _only_code(leaf: Leaf) -> bool:
    return isinstance(leaf, EventLeaf) and all(t.field == "code" for t in leaf.where)


def _takes_all(leaf: Leaf, kind: str, code: int) -> bool:
    if not isinstance(leaf, EventLeaf) or leaf.negated or leaf.event != kind:
        return False
    if any(t.field == "catalogued" and t.op is Op.IS and t.value is not _catalogued(kind, code) for t in leaf.where):
        return False
    return all(
        not (t.field == "code" and t.op is Op.NOT_IN and isinstance(t.value, tuple) and code in t.value)
        for t in leaf.where
    )


def _catalogued(kind: str, code: int) -> bool:
    from knowledge.catalog.sxid import sxid
    from knowledge.catalog.xid import xid

    return (xid(code) if kind == "xid" else sxid(code)) is not None


def _asked(rule: Rule) -> set[str]:
    out = set()
    for leaf in leaves(rule.when):
        out.add(leaf.fact if isinstance(leaf, FactLeaf | KnownLeaf) else leaf.event)
    return out


# --- plain words --------------------------------------------------------------------------


def _searched(query: Query, rules: Sequence[Rule]) -> tuple[str, list[Rule]]:
    """By the search over all pages: what it says of the rules."""
    from assistant.find import known_words, search
    from assistant.find.tokens import is_han, tokens

    text = _ASKING.sub(" ", query.text[:SENTENCE])
    found = search(text, limit=MOST, kinds={"rule"})
    by_id = {r.id: r for r in rules if r.split_by != "code"}  # a rule about every code is about none
    # Beside a word that no page knows, one rare word of a page is a chance: it is asked about something else.
    strange = any(t.isalpha() and not is_han(t) and t not in known_words() for t in tokens(text))
    bar = _TELLING * (2 if strange else 1)
    near = [t for t in found if t.score >= max(_NEAR * found[0].score, bar) and t.name in by_id]
    return (near[0].title.in_(query.lang) or near[0].name if near else ""), [by_id[t.name] for t in near]
