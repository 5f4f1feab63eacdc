"""What a "what if" assumes: facts, events and thresholds by name, as suppositions about subjects that are known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.dialogue._scope import Scoped
from assistant.dialogue._suppose import SUPPOSED, Supposition, no_events, value_of
from assistant.dialogue._thresholds import Threshold, meant_limit, threshold
from assistant.render.labels import scope_name, sentence
from assistant.render.meanings import meaning
from assistant.values import Problem, parse
from knowledge.errors import nearest_hint
from knowledge.facts import FactSpec, Kind, vocabulary
from knowledge.identity import is_pci
from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Status, Subject, Value
from knowledge.record import dataclass
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from assistant.intent.query import Assumed
    from rules.factbase import FactBase

SUBJECTS, ASSUMED = 512, 8
_CODED = re.compile(r"(s?xid)[\s._:#-]*([0-9]{1,9})", re.IGNORECASE)
_NONE = frozenset({"none", "no", "never", "not seen", "absent", "没有", "无", "未出现", "false"})


@dataclass(frozen=True, slots=True)
class Assumption:
    """One thing that is assumed."""

    said: Text  # a clause that stands for itself
    facts: frozenset[str]  # what it is about
    suppositions: tuple[Supposition, ...] = ()
    threshold: Threshold | None = None
    subjects: tuple[Subject, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it is so already."""
        return self.threshold is None and not any(s.instead or s.changes for s in self.suppositions)


def assumptions(turn: Turn, where: Scoped) -> list[Assumption | Text]:
    """Each assumption of the query; a sentence instead of one that cannot be made."""
    d = turn.diagnosis
    assert d is not None
    return [_one(a, turn, d, where) for a in turn.query.assumed[:ASSUMED]]


def _one(a: Assumed, turn: Turn, d: Diagnosis, where: Scoped) -> Assumption | Text:
    found = _CODED.fullmatch(a.name.strip())
    name, value = (found[1].lower(), found[2]) if found else (a.name.strip(), a.value)
    spec = vocabulary().get(name)
    if spec is not None and spec.replaced_by:
        spec = vocabulary().get(spec.replaced_by)
    if spec is not None and spec.kind is Kind.EVENT:
        gone = a.op == "none" or (a.value.strip().casefold() in _NONE and (found is not None or not value.isdigit()))
        return _no_event(spec, value, d, where, a) if gone else _event(spec, value, turn, d, where, a)
    if spec is not None:
        return _fact(spec, a, turn, d, where)
    focus = turn.finding
    found_rules = [f.rule for f in d.findings]
    made = threshold(
        meant_limit(a, turn.query.text, found_rules), turn.ruleset, focus.rule if focus else None, found_rules
    )
    if isinstance(made, Text):
        return made
    if made is not None:
        return Assumption(made.said, frozenset(), threshold=made)
    return _unknown(name)


def _unknown(name: str) -> Text:
    said = excerpt(name, 60)
    hint = nearest_hint(said, (s.name for s in vocabulary())) or nearest_hint(said.rpartition(".")[2], _tails())
    near = hint.removeprefix("did you mean ").rstrip("?") if hint.startswith("did you mean") else ""
    tail_en, tail_zh = (f" Near to it: {near}.", f"相近的有：{near}。") if near else ("", "")
    return Text(
        f"There is no fact or threshold called {said!r}.{tail_en}", f"没有名为 {said!r} 的事实或阈值。{tail_zh}"
    )


def _tails() -> Iterable[str]:
    return (s.name for s in vocabulary() if s.name.count(".") <= 2)


# --- facts --------------------------------------------------------------------------------


def _fact(spec: FactSpec, a: Assumed, turn: Turn, d: Diagnosis, where: Scoped) -> Assumption | Text:
    subjects = _own(a, subjects_of(spec.scope, turn, d, where))
    if not subjects:
        what = Text(*(meaning(spec.name, vocabulary(), lang) for lang in ("en", "zh")))
        return Text(f"No {scope_name(spec.scope, 'en')} is known here that this could be supposed of: {what.en}.",
                    f"这里没有可作此假设的对象（{scope_name(spec.scope, 'zh')}）：{what.zh}。")  # fmt: skip
    status, value = Status.OK, None
    if a.op == "none":
        status = Status.NONE_SEEN
    else:
        parsed = parse(spec, a.value, a.op)
        if isinstance(parsed, Problem):
            return parsed.text
        value = parsed
    made = tuple(value_of(spec, s, value, d.facts, status) for s in subjects)
    if not where.named:
        made = (*made, *_alike(spec, value, status, d))
    return Assumption(_sentence(spec, subjects, value), frozenset({spec.name}), made, subjects=tuple(subjects))


def _alike(spec: FactSpec, value: Value, status: Status, d: Diagnosis) -> Iterator[Supposition]:
    """What cannot stay as it is when a trace's share is another: the same share of the whole job, and the shares that it is a part of."""
    from knowledge.bottlenecks import measures

    found = measures(spec.name)
    if found is None or status is not Status.OK or not isinstance(value, int | float):
        return
    if all(old == value for old in _told(spec.name, d).values()):
        return  # it is so already
    for name in found.same:
        yield from (value_of(vocabulary()[name], s, value, d.facts) for s in _told(name, d))
    parts = {s: old for name in (spec.name, *found.same) for s, old in _told(name, d).items()}
    for name in found.whole:
        for s, old in _told(name, d).items():
            if s in parts:
                less = round(max(0.0, min(100.0, old - parts[s] + value)), 2)
                yield value_of(vocabulary()[name], s, less, d.facts)


def _told(name: str, d: Diagnosis) -> dict[Subject, float]:
    """The numbers of a fact by subject."""
    seen = ((s, d.facts.current(name, s)) for s in d.facts.subjects(vocabulary()[name].scope))
    return {
        s: o.value
        for s, o in seen
        if o is not None and isinstance(o.value, int | float) and not isinstance(o.value, bool)
    }


def _sentence(spec: FactSpec, subjects: Sequence[Subject], value: Value) -> Text:
    """The fact's own sentence about the subjects; of no value that none was seen."""
    if value is None:
        what = Text(*(meaning(spec.name, vocabulary(), lang) for lang in ("en", "zh")))
        return Text(f"{what.en}, of {_of(subjects, 'en')}: none seen", f"{_of(subjects, 'zh')}，{what.zh}：未见")
    one = Observation(spec.name, subjects[0], value, source=SUPPOSED)
    if len(subjects) == 1:
        return Text(*(clean(sentence(spec, one, lang)) for lang in ("en", "zh")))
    return Text(
        *(clean(spec.sentence(one, lang).replace(str(subjects[0]), _of(subjects, lang))) for lang in ("en", "zh"))
    )


def _of(subjects: Sequence[Subject], lang: str) -> str:
    from assistant.render.labels import many, subject_name

    return subject_name(subjects[0], lang) if len(subjects) == 1 else many(subjects, lang)


def subjects_of(scope: Scope, turn: Turn, d: Diagnosis, where: Scoped) -> list[Subject]:
    """What an assumption is about: what was named, else everything of the kind, else what the talk is about."""
    found = reached(scope, d.facts, where)
    if found or where.subjects:
        return found
    here = turn.finding
    up = here.subject.up(scope) if here is not None else None
    return [up] if up is not None else []


def reached(scope: Scope, facts: FactBase, where: Scoped) -> list[Subject]:
    """The subjects of a kind that a question reaches: those of what it names, else all that are known."""
    if not where.subjects:
        return list(facts.subjects(scope))[:SUBJECTS]
    out: dict[Subject, None] = {}
    for s in where.subjects:
        up = s.up(scope)
        out.update(dict.fromkeys([up] if up is not None else facts.below(s, scope) or facts.related(s, scope)))
    return list(out)[:SUBJECTS]


def called(subject: Subject) -> str:
    """The name of a thing that no slot names: ``port mlx5_0/1``."""
    return f"{subject.scope} {subject.id}"


def _own(a: Assumed, subjects: Sequence[Subject]) -> list[Subject]:
    """Of `subjects` the one whose name was said."""
    return [s for s in subjects if a.of.casefold() in ("", called(s).casefold())]


# --- events -------------------------------------------------------------------------------


def _no_event(spec: FactSpec, value: str, d: Diagnosis, where: Scoped, a: Assumed) -> Assumption:
    code = int(value) if value.strip().isdigit() else None
    subjects = list(where.subjects) or list(d.facts.subjects(Scope.NODE))
    if a.of:
        subjects = _own(a, [s for scope in Scope for s in reached(scope, d.facts, where)]) or subjects
    made = no_events(spec.name, subjects, code, d.facts)
    called = _called(spec, code)
    return Assumption(Text(f"no {called} was seen", f"未出现 {called}"), frozenset({spec.name}), (made,))


def _called(spec: FactSpec, code: int | None) -> str:
    name = spec.name.upper() if spec.name in ("xid", "sxid") else spec.name
    return f"{name} {code}" if code is not None else name


def _event(spec: FactSpec, value: str, turn: Turn, d: Diagnosis, where: Scoped, a: Assumed) -> Assumption | Text:
    subjects = _own(a, subjects_of(spec.scope, turn, d, where))
    here = turn.finding.subject.up(spec.scope) if turn.finding is not None else None
    if not where.subjects and not a.of and here is not None:
        subjects = [here]
    if not subjects:
        return Text(f"No {scope_name(spec.scope, 'en')} is known here that could report {spec.name}.",
                    f"这里没有可以报告 {spec.name} 的{scope_name(spec.scope, 'zh')}。")  # fmt: skip
    word = value.strip()
    code = int(word) if word.isdigit() and len(word) < 10 else None
    if code is None and spec.name in ("xid", "sxid"):
        return Text(f"Which {spec.name.upper()}? Say its number.", f"哪个 {spec.name.upper()}？请说明编号。")
    subject = subjects[0]
    made = _happened(spec, code, subject, d)
    said = Text(
        f"{_called(spec, code)} was seen on {_of([subject], 'en')}",
        f"{_of([subject], 'zh')} 出现 {_called(spec, code)}",
    )
    return Assumption(said, frozenset({spec.name}), (Supposition((made,)),), subjects=(subject,))


def _happened(spec: FactSpec, code: int | None, subject: Subject, d: Diagnosis) -> Observation:
    """An event of now: of an XID with what its line would tell, read by the parser that reads such lines."""
    event = Event(code)
    if spec.name == "xid" and code is not None:
        from assistant.sources import parse_text

        slot = subject.id if is_pci(subject.id) else "0000:00:00.0"
        line = f"[    1.000000] NVRM: Xid (PCI:{slot.rpartition('.')[0]}): {code}, \n"
        read = [o.value for o in parse_text("kmsg", line) if o.fact == "xid" and isinstance(o.value, Event)]
        event = read[0] if read else event
    at = d.as_of
    clock = Clock.REALTIME if at is not None else Clock.NONE
    return Observation(spec.name, subject, event, source=SUPPOSED, at=at, clock=clock, origin=Origin.HYPOTHETICAL)


def told(observations: Iterable[Observation]) -> Assumption | None:
    """The lines of a sentence as an assumption; None without any."""
    made = tuple(replace(o, origin=Origin.HYPOTHETICAL) for o in observations)
    if not made:
        return None
    facts = frozenset(o.fact for o in made)
    said = ", ".join(dict.fromkeys(_line(o) for o in made))
    return Assumption(Text(f"{said} was seen", f"出现 {said}"), facts, (Supposition(made),))


def _line(o: Observation) -> str:
    spec = vocabulary().get(o.fact)
    code = o.value.code if isinstance(o.value, Event) else None
    return _called(spec, code) if spec is not None else o.fact
