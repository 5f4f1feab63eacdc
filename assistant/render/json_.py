"""The JSON of a diagnosis, schema ``gpudiag/diagnosis/1`` (DESIGN section 3): fields may be added, never renamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain, islice
from json.encoder import encode_basestring
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.known import known
from assistant.render import describe, header
from assistant.render.gaps import remedy
from assistant.render.labels import known_as, localised, sentence
from assistant.render.times import iso, stamp, when
from knowledge.observation import Event, Observation, Scope, Series, Subject, how_many
from rules.condition import EventLeaf, KnownLeaf
from rules.proof import LeafProof, Missing, Proof

if TYPE_CHECKING:
    from assistant.changes import Changes
    from assistant.diagnosis import Diagnosis, Gap
    from rules.engine import Finding, Undecided

SCHEMA = "gpudiag/diagnosis/1"
Tells = Callable[[str], str]  # fact -> the input kinds that tell it, for people
QUOTED = 16  # events of a finding that are quoted under it; `events` has all, or all of a flood in few entries
SAMPLED = 32  # events of one kind and code of one thing, each of which stands in `events`: the first and the last; of more, see `told`
SORTS = 32  # of those in between, that words in their fields tell apart
_SLOTS = (Scope.GPU, Scope.NVSWITCH, Scope.PCI, Scope.NIC)


def render(
    diagnosis: Diagnosis, lang: str = "en", tells: Tells = lambda _: "", timing: Mapping[str, float] | None = None,
    changes: Changes | None = None, verbose: bool = False,
) -> str:  # fmt: skip
    """The object as text, one line end at the end."""
    data = plain(diagnosis, lang, tells, verbose, _Passing)
    if timing is not None:
        data["timing"] = dict(timing)
    if changes is not None:
        from assistant.render.changes import plain as changes_plain

        data["changes"] = changes_plain(changes, lang)
    text = StringIO()  # and not a list of all pieces: an answer about a thousand GPUs has a million of them
    _write(data, "\n", text.write)
    text.write("\n")
    return text.getvalue()


_WORDS = {None: "null", True: "true", False: "false"}


def _write(value: Any, line: str, write: Callable[[str], object]) -> None:
    """JSON as the standard library writes it with one blank a level, in half its time: there each piece passes through a
    generator for each level. `line` begins a line at the level of the value. ValueError for a number that JSON has not.
    """
    if isinstance(value, str):
        write(encode_basestring(value))
    elif value is None or value is True or value is False:
        write(_WORDS[value])
    elif isinstance(value, int):
        write(int.__repr__(value))
    elif isinstance(value, float):
        write(json.dumps(value, allow_nan=False))
    else:
        _write_parts(value, line, write)


def _write_parts(value: Any, line: str, write: Callable[[str], object]) -> None:
    begin, end = "{}" if isinstance(value, dict) else "[]"
    if not value:
        write(begin + end)
        return
    deeper = f"{line} "
    ahead = begin + deeper
    for part in value:
        if begin == "{":
            ahead = f"{ahead}{encode_basestring(part)}: "
            part = value[part]
        if type(part) is str:  # of four values three are: a call for each takes as long again
            write(ahead + encode_basestring(part))
        elif part is None:
            write(f"{ahead}null")
        else:
            write(ahead)
            _write(part, deeper, write)
        ahead = f",{deeper}"
    write(line + end)


class _Passing(list[Any]):
    """A list for the writer whose items are made one by one, and gone once they are written."""

    def __init__(self, items: Iterable[Any]) -> None:
        held = iter(items)
        super().__init__(islice(held, 1))  # an empty list is written in another way
        self._rest = held

    def __iter__(self) -> Iterator[Any]:
        return chain(super().__iter__(), self._rest)


def plain(
    diagnosis: Diagnosis,
    lang: str = "en",
    tells: Tells = lambda _: "",
    verbose: bool = False,
    several: Callable[[Iterable[Any]], list[Any]] = list,
) -> dict[str, Any]:
    """The object as plain data. `verbose` adds proofs, what the undecided stand on, each event of a flood, and a sentence for each.

    `several` makes a list of events, of findings and of the undecided.
    """
    writer = _Writer(diagnosis, lang, tells, verbose)
    v = diagnosis.verdict
    return {
        "schema": SCHEMA,
        "as_of": iso(diagnosis.as_of) if diagnosis.as_of is not None else None,
        "ruleset": diagnosis.ruleset,
        "subject": header.subject(diagnosis),
        "query": dict(diagnosis.query) if diagnosis.query is not None else None,
        "verdict": {
            "state": str(v.state),
            "usable": str(v.usable),
            "until": v.until.in_(lang) or None,
            "text": writer.words(v.text.in_(lang)),
        },
        "events": several(writer.event(t) for t in writer.events),
        "findings": several(writer.finding(f) for f in diagnosis.findings),
        "undecided": several(writer.undecided(u) for u in diagnosis.undecided),
        "ruled_out": several(writer.finding(f) for f in diagnosis.ruled_out),
        "coverage": {
            "asked": diagnosis.coverage.asked,
            "answered": diagnosis.coverage.answered,
            "denied": [_gap(g) for g in diagnosis.coverage.denied],
            "failed": [_gap(g) for g in diagnosis.coverage.failed],
        },
        "notes": list(diagnosis.notes),
        "sources": list(diagnosis.sources),
        "exit": int(diagnosis.exit),
    }


class Told(NamedTuple):
    """An entry of `events`: the last of the events that it stands for, how many, and when the first was; None where nobody knows."""

    event: Observation
    times: int
    since: int | None


def told(events: Sequence[Observation]) -> tuple[list[Told], dict[int, int]]:
    """The entries for `events`, in order, and the place of each event's own by the event's `id`.

    Of a flood (more than SAMPLED of one kind, code and thing) the first and the last have entries of their own; what lies between
    has one for each sort, that of the sort's last event.
    """
    crowds: dict[object, list[Observation]] = {}
    for o in events:
        crowds.setdefault((o.fact, o.subject, o.value.code if isinstance(o.value, Event) else None), []).append(o)
    lead = {id(o): last for crowd in crowds.values() for o, last in _sampled(crowd)}
    groups: dict[int, list[Observation]] = {}
    for o in events:
        groups.setdefault(id(lead[id(o)]), []).append(o)
    leads = [o for o in events if lead[id(o)] is o]
    place = {id(o): i for i, o in enumerate(leads)}
    return [_together(groups[id(o)]) for o in leads], {id(o): place[id(lead[id(o)])] for o in events}


def _sampled(crowd: Sequence[Observation]) -> Iterator[tuple[Observation, Observation]]:
    """Each event and the one whose entry stands for it."""
    if len(crowd) <= SAMPLED:
        yield from zip(crowd, crowd, strict=True)
        return
    half = SAMPLED // 2
    sorts: dict[tuple[object, ...], list[Observation]] = {}
    for o in crowd[half:-half]:
        fields = o.value.fields if isinstance(o.value, Event) else {}
        words = (o.clock, *((k, v) for k, v in sorted(fields.items()) if k != "text" and isinstance(v, str)))
        sorts.setdefault(words if words in sorts or len(sorts) < SORTS else (), []).append(o)
    yield from ((o, o) for o in (*crowd[:half], *crowd[-half:]))
    yield from ((o, sort[-1]) for sort in sorts.values() for o in sort)


def _together(events: Sequence[Observation]) -> Told:
    """One entry for `events`, which are in order."""
    begins = [o.window[0] if o.times > 1 and o.window is not None else o.at for o in events]
    known = [at for at in begins if at is not None]
    same = len(known) == len(events) and len({o.clock for o in events}) == 1
    return Told(events[-1], how_many(events), min(known) if same else None)


class _Writer:
    def __init__(self, diagnosis: Diagnosis, lang: str, tells: Tells, verbose: bool) -> None:
        self.lang, self.tells, self.verbose = lang, tells, verbose
        self.called = known_as(diagnosis.facts)
        self.facts, self.vocabulary = diagnosis.facts, diagnosis.facts.vocabulary
        every = [_together([o]) for o in diagnosis.events], {id(o): i for i, o in enumerate(diagnosis.events)}
        self.events, self.index = (
            every if verbose else told(diagnosis.events)
        )  # one object each, shared with the findings
        self.subjects = {f.subject for f in (*diagnosis.findings, *diagnosis.ruled_out)}

    def words(self, text: str) -> str:
        """Names of subjects within `text`, in the language of the answer."""
        for subject in sorted(self.subjects, key=lambda s: -len(str(s))):
            text = localised(text, subject, self.lang, self.called)
        return text

    def event(self, told: Told) -> dict[str, Any]:
        """One line of a log that means something, and how many equal ones it stands for since when."""
        o = told.event
        assert isinstance(o.value, Event)
        slot = next((s for s in o.subject.ancestors() if s.scope in _SLOTS), None)
        return {
            "kind": o.fact,
            "code": o.value.code,
            "pci": slot.id if slot else None,
            "subject": subject(o.subject),
            "time": stamp(o.at, o.clock),
            "line": o.source.line,
            "source": o.source.call or o.source.probe,
            "text": o.excerpt,
            **({"times": told.times, "since": stamp(told.since, o.clock)} if told.times > 1 else {}),
            "decoded": {k: v for k, v in o.value.fields.items() if k != "text" and v is not None},
        }

    def finding(self, f: Finding) -> dict[str, Any]:
        """One finding with its evidence and its whole proof."""
        times = [o for o in f.events if o.at is not None]
        first, last = f.times
        clock = times[0].clock if times else None
        a = f.advice
        return {
            "id": f.id,
            "rule": f.rule.id,
            "title": f.title.in_(self.lang),
            "subject": subject(f.subject),
            "severity": str(f.severity),
            "grade": str(f.grade),
            "told": f.told,
            "role": str(f.role),
            "xid": f.xid,
            "life": self.life(f),
            "first": stamp(first, clock) if clock else None,
            "last": stamp(last, clock) if clock else None,
            "count": f.count,
            "events": sorted({i for o in f.events if (i := self.index.get(id(o))) is not None}),
            "explains": list(f.explains),
            "explained_by": list(f.explained_by),
            "may_explain": list(f.may_explain),
            "impact": self.impact(f),
            "action": {
                "bucket": str(a.bucket),
                "text": a.text.in_(self.lang),
                "command": a.command if a.pasteable else None,
                "command_template": a.command if a.command and not a.pasteable else None,  # what {names} is not known
                "risk": str(a.risk),
                "usable": str(a.usable),
                "said_by": a.resolver,
                "runbook": a.runbook or None,
                "then": [t.in_(self.lang) for t in a.then],
            },
            "known_issues": [
                {
                    "id": k.issue.id,
                    "component": k.issue.component,
                    "version": k.version,
                    "fixed_in": list(k.issue.fixed_in),
                    "symptom": k.issue.symptom.in_(self.lang),
                    "workaround": k.issue.workaround.in_(self.lang) or None,
                    "source": k.issue.source,
                }
                for k in known(f, self.facts)
            ],
            "because": [self.because(o) for o in self.quoted(f.events, f.because)],
            "against": [self.because(o) for o in f.against],
            "missing": [self.missing(m) for m in f.missing],
            "proof": self.proof(f.proof) if self.verbose else None,
        }

    def life(self, f: Finding) -> dict[str, Any] | None:
        """What ended the fault, or what it came back after; null when nothing of the kind is known."""
        if f.life is None:
            return None
        cure, quiet = f.life.cure, f.life.quiet
        return {
            "state": "again" if f.life.again else "past", "by": str(f.life.kind) if f.life.kind else "look",
            "at": stamp(cure.at, cure.clock), "quiet_s": quiet // 10**9 if quiet is not None else None,
        }  # fmt: skip

    def impact(self, f: Finding) -> dict[str, Any] | None:
        """How much time the finding explains, and the GPU-hours that a day like this loses at most; null when nobody knows."""
        i = f.impact
        return (
            None
            if i is None
            else {
                "share": round(i.share, 6),
                "seconds": None if i.seconds is None else round(i.seconds, 9),
                "of": i.of.in_(self.lang),
                "gpu_hours_a_day": i.hours,
            }
        )

    def undecided(self, u: Undecided) -> dict[str, Any]:
        """A rule that lacks facts."""
        return {
            "rule": u.rule.id,
            "title": u.rule.name.in_(self.lang),
            "subject": subject(u.subject),
            "severity": str(u.rule.severity),
            "because": [self.because(o) for o in u.because] if self.verbose else [],
            "missing": [self.missing(m) for m in u.missing],
            "proof": self.proof(u.proof) if self.verbose else None,
        }

    def quoted(self, events: Sequence[Observation], states: Iterable[Observation]) -> Iterable[Observation]:
        """Events, of many the first and the last ones, and what else speaks for a finding; each once."""
        few = self.verbose or len(events) <= QUOTED
        shown = events if few else [*events[: QUOTED // 2], *events[-QUOTED // 2 :]]
        own = {id(o) for o in events}
        return [*shown, *(o for o in states if id(o) not in own)]

    def because(self, o: Observation) -> dict[str, Any]:
        """A sentence and the observation under it."""
        return {"text": self.sentence(o), "observation": self.observation(o)}

    def sentence(self, o: Observation) -> str:
        """What the observation says, in words."""
        spec = self.vocabulary.get(o.fact)
        return sentence(spec, o, self.lang, self.called) if spec else o.fact

    def observation(self, o: Observation) -> dict[str, Any]:
        """An observation with everything needed to look again."""
        spec = self.vocabulary.get(o.fact)
        return {
            "fact": o.fact,
            "subject": subject(o.subject),
            "status": str(o.status),
            "value": _value(o.value),
            "unit": (spec.unit if spec else "") or None,
            "at": when(o) or None,
            "source": str(o.source),
            "origin": str(o.origin),
            "excerpt": o.excerpt or None,
            "detail": o.detail or None,
        }

    def seen(self, o: Observation) -> dict[str, Any]:
        """An observation within a proof: an event is given by its place in `events`, once is enough."""
        index = self.index.get(id(o))
        return self.observation(o) if index is None else {"event": index}

    def missing(self, m: Missing) -> dict[str, Any]:
        """A fact that would tell more, and what would tell it."""
        return {"fact": m.fact, "subject": subject(m.subject), "reason": m.reason, "probe": self.tells(m.fact) or None}

    def proof(self, p: Proof) -> dict[str, Any]:
        """The tree of clauses."""
        if isinstance(p, LeafProof):
            head = "event" if isinstance(p.leaf, EventLeaf) else "known" if isinstance(p.leaf, KnownLeaf) else "fact"
            return {
                "op": head,
                head: p.leaf.event if isinstance(p.leaf, EventLeaf) else p.leaf.fact,
                "clause": describe.leaf(p.leaf, self.lang),
                "path": ".".join(map(str, p.leaf.path)),
                "truth": str(p.truth),
                "seen": p.seen or None,
                "observations": [self.seen(o) for o in p.observations],
                "missing": [self.missing(m) for m in p.missing],
            }
        return {"op": p.op, "truth": str(p.truth), "children": [self.proof(c) for c in p.children]}


def subject(s: Subject) -> dict[str, str | None]:
    """``{"scope", "id", "host"}``; the host is null when the source does not tell."""
    return {"scope": str(s.scope), "id": s.id, "host": s.host or None}


def _gap(g: Gap) -> dict[str, str | None]:
    return {"fact": g.fact, "subject": g.subject, "status": str(g.status), "detail": g.detail,
            "remedy": remedy(g.detail) or None}  # fmt: skip


def _value(value: object) -> Any:
    if isinstance(value, Event):
        return {"code": value.code, **value.fields}
    if isinstance(value, Series):
        return {"times": list(value.times), "values": [_finite(v) for v in value.values]}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    return _finite(value)


def _finite(value: object) -> object:
    """JSON has no infinities: such a number is given as its name."""
    if isinstance(value, float) and (not isfinite(value)):
        return str(value)
    return value
