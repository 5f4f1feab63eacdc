"""Which rows of the history a question means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knowledge.observation import Scope
from knowledge.record import dataclass
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.intent.query import Query, Slots, Topic
    from assistant.session.recall import PastThing

_XID = ("xid", "xid_reported", "xid_exported", "xid_implied")
_PLACES = {"pid": Scope.PROCESS, "rank": Scope.RANK, "job": Scope.JOB}
NAMED = 3  # topics that count
SHARE = 0.6  # of the words of a topic's title that a sentence holds when it means the topic


@dataclass(frozen=True, slots=True)
class About:
    """What is meant. Empty: everything."""

    codes: frozenset[tuple[str, int]] = frozenset()  # ("xid", 63)
    rules: frozenset[str] = frozenset()
    places: frozenset[tuple[Scope, str]] = frozenset()  # index, address or UUID of a GPU; a pid, a rank, a job
    words: frozenset[str] = frozenset()  # names of processes
    keys: frozenset[str] = frozenset()  # findings by id: those that the talk is about
    names: tuple[str, ...] = ()  # all of it, for people
    soft: bool = False  # guessed from what was said, not named in it

    def __bool__(self) -> bool:
        return bool(self.what or self.places or self.words)

    @property
    def what(self) -> bool:
        """Whether something is named that can happen."""
        return bool(self.codes or self.rules or self.keys)

    @property
    def events(self) -> bool:
        """Whether only a log can tell."""
        return bool(self.codes)

    def covers(self, t: PastThing) -> bool:
        """Whether a row is meant."""
        return self._is(t) and self._there(t)

    def _is(self, t: PastThing) -> bool:
        if not self.what:
            return True
        if t.kind == "finding":
            return t.rule in self.rules or t.key in self.keys or (t.code is not None and ("xid", t.code) in self.codes)
        kind = "xid" if t.kind in _XID else t.kind
        return t.code is not None and (kind, t.code) in self.codes

    def _there(self, t: PastThing) -> bool:
        if not self.places and not self.words:
            return True
        ids = {(s.scope, name) for s in t.subject.ancestors() for name in (s.id, s.id.removeprefix("index:"))}
        ids |= {(Scope.GPU, name) for name in t.names}
        said = f"{t.line}\n{t.title.en}".casefold()
        return bool(ids & self.places) or any(word in said for word in self.words)

    def name(self, lang: str) -> str:
        """What is meant, in words."""
        return ("、" if lang == "zh" else ", ").join(self.names) or ("它" if lang == "zh" else "it")


def about(turn: Turn) -> About:
    """What the question names; else what its topics and symptoms suggest; else what the talk is about."""
    query = turn.query
    named = _named(query.slots)
    if named.what:
        return named
    guessed = _guessed(query, turn.lang)
    if guessed.what:
        return _both(guessed, named)
    if named or query.slots.since or query.facts or turn.base is None:
        return named
    return _talk(turn)


def _named(slots: Slots) -> About:
    codes = frozenset([*(("xid", c) for c in slots.xid), *(("sxid", c) for c in slots.sxid)])
    places = {(Scope.GPU, str(g)) for g in slots.gpu}
    for slot, scope in _PLACES.items():
        places |= {(scope, str(value)) for value in getattr(slots, slot)}
    names = [f"{kind.upper()} {code}" for kind, code in sorted(codes)]
    names += [f"{'GPU' if slot == 'gpu' else slot} {excerpt(str(v), 60)}"
              for slot in ("gpu", "pid", "rank", "job") for v in getattr(slots, slot)]  # fmt: skip
    names += [excerpt(p, 60) for p in slots.process]
    words = frozenset(p.casefold() for p in slots.process)
    return About(codes, frozenset(), frozenset(places), words, names=tuple(dict.fromkeys(names)))


def _guessed(query: Query, lang: str) -> About:
    codes, rules, names = set(), set(), []
    for topic in query.topics[:NAMED]:
        if not _said(topic, query.text):
            continue
        if topic.kind in ("xid", "sxid") and topic.name.isdigit():
            codes.add((topic.kind, int(topic.name)))
        elif topic.kind == "rule":
            rules.add(topic.name)
        else:
            continue
        names.append(_quoted(topic.title.in_(lang) or topic.id, lang))
    if query.symptoms:
        from knowledge.symptoms import symptoms

        known = symptoms()
        for name in query.symptoms[:1]:
            if name in known:
                rules |= {rule for h in known[name].hypotheses for rule in h.rules}
                names = [_quoted(known[name].title.in_(lang), lang)]
    return About(frozenset(codes), frozenset(rules), names=tuple(dict.fromkeys(names)), soft=True)


def _quoted(title: str, lang: str) -> str:
    """A title within a sentence."""
    return f"“{title}”" if lang == "zh" else f'"{title}"'


def _said(topic: Topic, text: str) -> bool:
    """Whether the sentence says what the topic is called, rather than a word of it: "what happened" names nothing."""
    from assistant.find.tokens import tokens

    said = set(tokens(text))
    for title in (topic.title.en, topic.title.zh, topic.name.replace("-", " ")):
        called = set(tokens(title))
        if len(called & said) >= max(2, len(called) * SHARE):
            return True
    return False


def _both(what: About, where: About) -> About:
    return About(what.codes, what.rules, where.places, where.words, names=(*what.names, *where.names), soft=True)


def _talk(turn: Turn) -> About:
    """ "When did this start?" is about the finding in focus, or what the question before named."""
    assert turn.base is not None
    before = _named(turn.base.slots)
    keys = frozenset([turn.focus]) if turn.focus else frozenset()
    title = _quoted(turn.base.echo.in_(turn.lang) or excerpt(turn.base.text, 80), turn.lang)
    if not keys and not before:
        return About()
    if keys:  # the finding says where it is
        return About(before.codes, keys=keys, names=(title,), soft=True)
    return About(before.codes, frozenset(), before.places, before.words, names=(title,), soft=True)
