"""Two captures of one thing, taken one after the other: the later one tells how it is now.

Values of both together would make up a state that never was: the memory of a GPU while a job ran beside the idle GPU after it.
Counters stay as samples, for what grew in between; so do states that come and go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from assistant.render.times import readable, when
from knowledge.derive.sequence import COUNTS, STATES
from knowledge.facts import Kind, vocabulary
from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Scope, Subject
from probes.moments import Moments
from probes.scan import Note

ONE_MOMENT = frozenset(
    {"nvidia-smi-q", "nvidia-smi-xml", "nvidia-smi"}
)  # formats whose one time is that of all they print
APART = 60 * 10**9  # ns: what was printed within a minute was taken together (as `rules.factbase` has it)
_SAME = (
    0.6  # of what a capture tells of a GPU a later one must tell, to stand for it: `-q -d ECC` does not replace `-q`
)


class Capture(NamedTuple):
    """One moment of one machine, as one tool printed it."""

    probe: str
    host: str
    clock: Clock
    at: int


def latest_captures(
    observations: Sequence[Observation],
) -> tuple[list[Observation], list[Observation], list[Note]]:
    """What holds now; what the capture before it told, where there is one; and the notes that say so."""
    captures: dict[Capture, list[Observation]] = defaultdict(list)
    for o in observations:
        if (capture := _capture(o)) is not None:
            captures[capture].append(o)
    later = {c: after for c in captures if (after := _replaced_by(c, captures)) is not None}
    if not later:
        return list(observations), [], []
    told_later = {c: {(o.fact, o.subject) for o in captures[after]} for c, after in later.items()}
    now = [o for o in observations if (c := _capture(o)) is None or c not in later or _is_sample(o, told_later[c])]
    before = max(later)
    return now, captures[before], [_note(captures[before], captures[later[before]])]


def _capture(o: Observation) -> Capture | None:
    if o.source.probe not in ONE_MOMENT or o.at is None:
        return None
    return Capture(o.source.probe, o.subject.host, o.clock, o.at)


def _replaced_by(capture: Capture, captures: dict[Capture, list[Observation]]) -> Capture | None:
    """The last capture that tells of the same things a good while later; None where there is none."""
    own = _told_of_gpus(captures[capture])
    for other in sorted(captures, reverse=True):
        if other[:3] == capture[:3] and other.at - capture.at >= APART:
            common = own & _told_of_gpus(captures[other])
            if own and len(common) >= _SAME * len(own) and _same_boards(captures[capture], captures[other]):
                return other
    return None


def _told_of_gpus(told: Sequence[Observation]) -> set[tuple[str, Subject]]:
    return {(o.fact, o.subject) for o in told if o.subject.scope is Scope.GPU and not isinstance(o.value, Event)}


def _same_boards(a: Sequence[Observation], b: Sequence[Observation]) -> bool:
    """False where a slot holds another board: the two may be of two machines."""
    first, second = ({o.subject: o.value for o in told if o.fact == "gpu.uuid"} for told in (a, b))
    return all(second.get(subject, uuid) == uuid for subject, uuid in first.items())


def _is_sample(o: Observation, told_later: set[tuple[str, Subject]]) -> bool:
    """Whether an earlier value is of a counter that the later capture tells too, or of a state that comes and goes: what changed in between."""
    followed = vocabulary()[o.fact].kind is Kind.COUNTER or o.fact in STATES or o.fact in COUNTS
    return (o.fact, o.subject) in told_later and followed


def _note(before: Sequence[Observation], now: Sequence[Observation]) -> Note:
    then, last = before[0], now[0]
    return Note(
        last.source.call,
        Text(
            f"is read as the state of now ({_when(last)}); the earlier capture ({then.source.call}, {_when(then)}) only tells what changed",
            f"作为当前状态读取（{_when(last)}）；较早的一份（{then.source.call}，{_when(then)}）只用于说明变化",
        ),
        problem=False,
    )


def _when(o: Observation) -> str:
    return readable(when(o))


def still_told(told: Sequence[Observation], looks: Moments) -> list[Observation]:
    """Of looks in one text, each below its time, what the later ones leave standing: a state or a reason that the same tool no longer
    tells of the same thing is past. Slurm's reason of 03:00 is none of a node that is idle, without one, at 05:00."""
    if len(looks.times) < 2:
        return list(told)
    from probes import registry  # loads every parser; whoever has read a text has done so

    documents = {
        f.name for f in registry.document_formats()
    }  # a line of a log has happened, whatever a later log shows
    by_thing: dict[tuple[str, Subject], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for o in told:
        by_thing[o.source.probe, o.subject][looks.place(o.source.line)].add(o.fact)

    def is_past(o: Observation) -> bool:
        looked = by_thing[o.source.probe, o.subject]
        here, last = looks.place(o.source.line), max(looked)
        passing = vocabulary()[o.fact].kind in (Kind.STATE, Kind.EVENT) and o.source.line is not None
        gone = passing and o.source.probe in documents and 0 <= here < last and o.fact not in looked[last]
        return gone and 2 * len(looked[here] & looked[last]) >= len(looked[here])

    return [o for o in told if not is_past(o)]
