"""The state of a conversation: plain data, versioned, that survives a restart and moves between surfaces.

It holds what was said, what was seen and what is waited for, and nothing that was concluded: conclusions
follow from the observations, and are drawn again when they are needed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from assistant.intent.query import Assumed, Compared, Intent, Query, Slots, Topic
from knowledge.language import LANGUAGES, NO_TEXT, Text
from knowledge.observation import Observation, Scope, Subject
from knowledge.observation_json import plain as plain_observation
from knowledge.observation_json import restored as restored_observation
from knowledge.record import dataclass

VERSION = 1
FRAMES = 12  # turns that can be undone
SEEN = 8  # rounds of looking that are kept


class Origin(NamedTuple):
    """What a conversation is about: this machine when all is empty, another one when only its name stands here, else what was
    recorded of one."""

    bundle: str = ""
    logs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    host: str = ""  # the node that logs and inputs come from; without any, the one that is looked at from here
    folder: str = ""  # that relative names count from: a talk goes on wherever somebody stands

    @property
    def live(self) -> bool:
        """Whether a machine is asked, rather than what was recorded."""
        return not (self.bundle or self.logs or self.inputs)

    @property
    def here(self) -> bool:
        """Whether that is the machine that this runs on."""
        return self.live and not self.host


def folder() -> str:
    """The folder of this process; empty when it has been removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one round of looking gave."""

    host: str
    observations: tuple[Observation, ...]
    probes: tuple[str, ...] = ()  # those that were run, whatever they answered
    offers: tuple[str, ...] = ()  # probes that the same source can still be asked for
    as_of: int | None = None  # ns UTC
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    whole: bool = False  # see `assistant.machine.Look.whole`
    boot_id: str = ""
    seconds: float = 0.0
    absent: tuple[str, ...] = ()  # of another machine: probes that cannot run there
    lost: Text = NO_TEXT  # of another machine: why it could not be reached, or the connection ended too early
    how: str = ""  # "live" or "recorded", of a machine; see `assistant.diagnosis.Diagnosis.seen`
    earlier: tuple[Observation, ...] = ()  # see `assistant.sources.Reading.earlier`; not kept: files are read again


@dataclass(frozen=True, slots=True)
class Pending:
    """What is waited for: a fact that a person was asked (`fact`), or consent to probes."""

    fact: str = ""
    subject: Subject | None = None
    probes: tuple[str, ...] = ()
    reason: Text = field(default_factory=lambda: Text(""))
    text: Text = field(default_factory=lambda: Text(""))
    kind: str = ""  # of the fact's value, for the answer's parser
    node: str = ""  # which node was meant: the sentence to say again
    path: str = ""  # a file that would be overwritten
    before: Text = field(default_factory=lambda: Text(""))  # that it may have run already; of an answer, never kept


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the talk stands after a turn."""

    query: Query | None = None  # the question that it is about
    origin: Origin = field(default_factory=Origin)
    seen: tuple[int, ...] = ()  # numbers of the rounds of looking that count
    before: tuple[int, ...] = ()  # those of the look before, after "again"
    told: tuple[Observation, ...] = ()
    focus: str = ""
    pending: Pending | None = None
    declined: tuple[str, ...] = ()  # probes that were refused, and facts that the person does not know
    headline: str = ""  # of the answer
    last: Query | None = None  # the sentence of this turn, when it was a follow-up


@dataclass(frozen=True, slots=True)
class State:
    """One conversation."""

    frames: tuple[Frame, ...] = ()
    seen: Mapping[int, Seen] = field(default_factory=dict)
    next: int = 0  # number of the next round of looking
    lang: str = ""
    said: Query | None = None  # the last sentence, as it was understood; not kept

    @property
    def frame(self) -> Frame:
        """Where the talk stands now."""
        return self.frames[-1] if self.frames else Frame()

    def pushed(self, frame: Frame) -> State:
        """With `frame` on top; the oldest ones, and what only they looked at, are let go."""
        return replace(self, frames=(*self.frames, frame)[-FRAMES:])._kept()

    def put(self, frame: Frame) -> State:
        """With `frame` in place of the top one."""
        return replace(self, frames=(*self.frames[:-1], frame))._kept()

    def popped(self) -> State:
        """Without the last turn."""
        return replace(self, frames=self.frames[:-1])._kept()

    def looked(self, seen: Seen) -> tuple[State, int]:
        """With one more round of looking, and its number."""
        number = self.next
        return replace(self, seen={**self.seen, number: seen}, next=number + 1), number

    def _kept(self) -> State:
        used = sorted({n for f in self.frames for n in (*f.seen, *f.before)})
        here = {*self.frame.seen, *self.frame.before}
        old = [n for n in used if n not in here]
        kept = {*here, *old[max(0, len(old) + len(here) - SEEN) :]}
        if kept == set(self.seen):
            return self
        frames = tuple(f for f in self.frames if kept.issuperset((*f.seen, *f.before)))
        return replace(self, frames=frames, seen={n: s for n, s in self.seen.items() if n in kept})


# --- JSON ---------------------------------------------------------------------------------


def plain(state: State) -> dict[str, Any]:
    """`state` for `json.dumps`."""
    data = {
        "version": VERSION,
        "lang": state.lang,
        "next": state.next,
        "seen": {str(n): _plain_of(s) for n, s in state.seen.items()},
        "frames": [_plain_of(f) for f in state.frames],
    }
    return {**data, "sum": _sum(data)}


def _sum(data: Mapping[str, Any]) -> int:
    """A checksum of everything else: what was damaged on disk is refused as a whole, whatever was hit."""
    rest = {name: value for name, value in data.items() if name != "sum"}
    return zlib.crc32(json.dumps(rest, sort_keys=True, default=str).encode("utf-8", "surrogatepass"))


def restored(data: Mapping[str, Any]) -> State:
    """The opposite of `plain`. ValueError when `data` is no state of this version."""
    if data.get("version") != VERSION:
        raise ValueError(f"a conversation of version {data.get('version')!r:.20}")
    if data.get("sum") != _sum(data):
        raise ValueError("no conversation: it is not what was written")
    try:
        state = State(
            tuple(_frame(f) for f in data["frames"]),
            {int(n): _seen(s) for n, s in data["seen"].items()},
            int(data["next"]),
            str(data["lang"]),
        )
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"no conversation: {error!r:.100}") from None
    if state.lang not in ("", *LANGUAGES) or not _whole(state):
        raise ValueError("no conversation: something that it refers to is not there")
    return state


def _whole(state: State) -> bool:
    """Whether all that is referred to is there."""
    numbers = {n for f in state.frames for n in (*f.seen, *f.before)}
    facts = {f.pending.fact for f in state.frames if f.pending is not None} - {""}
    return all(map(_is_fact, facts)) and numbers <= state.seen.keys() and state.next > max(state.seen, default=-1)


def _is_fact(name: str) -> bool:
    from knowledge.facts import vocabulary

    return name in vocabulary()


def _plain(value: Any) -> Any:
    if isinstance(value, Observation):
        return plain_observation(value)
    if isinstance(value, Text):
        return [value.en, value.zh]
    if isinstance(value, Subject):
        return [[str(part.scope), part.id] for part in reversed(list(value.ancestors()))]
    if isinstance(value, Query | Frame | Seen | Pending):
        return _plain_of(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(v) for name, v in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value


def _plain_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that are not as they are by default."""
    return {f.name: _plain(v) for f in fields(value) if not _nothing(v := getattr(value, f.name))}


def _nothing(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, str | tuple | Text) and not value)


def _text(data: Sequence[str] | None) -> Text:
    if isinstance(data, str):  # of a conversation that was kept when there was one language for it
        return Text(data)
    return Text(str(data[0]), str(data[1])) if data else Text("")


def _observations(rows: Sequence[Any]) -> tuple[Observation, ...]:
    return tuple(restored_observation(row) for row in rows)


def _words(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(str(word) for word in data.get(name, ()))


def _numbers(data: Mapping[str, Any], name: str) -> tuple[int, ...]:
    return tuple(int(n) for n in data.get(name, ()))


def _frame(data: Mapping[str, Any]) -> Frame:
    origin = data.get("origin", {})
    return Frame(
        query=_query(data["query"]) if "query" in data else None,
        origin=Origin(
            str(origin.get("bundle", "")),
            _words(origin, "logs"),
            _words(origin, "inputs"),
            str(origin.get("host", "")),
            str(origin.get("folder", "")),
        ),
        seen=_numbers(data, "seen"),
        before=_numbers(data, "before"),
        told=_observations(data.get("told", ())),
        focus=str(data.get("focus", "")),
        pending=_pending(data["pending"]) if "pending" in data else None,
        declined=_words(data, "declined"),
        headline=str(data.get("headline", "")),
        last=_query(data["last"]) if "last" in data else None,
    )


def _pending(data: Mapping[str, Any]) -> Pending:
    made: Subject | None = None
    for scope, name in data.get("subject", ()):
        made = Subject(Scope(scope), str(name), made)
    return Pending(
        str(data.get("fact", "")), made, _words(data, "probes"), _text(data.get("reason")), _text(data.get("text")),
        str(data.get("kind", "")), str(data.get("node", "")), str(data.get("path", "")),
    )  # fmt: skip


def _seen(data: Mapping[str, Any]) -> Seen:
    as_of = data.get("as_of")
    return Seen(
        str(data.get("host", "")), _observations(data.get("observations", ())), _words(data, "probes"),
        _words(data, "offers"), None if as_of is None else int(as_of), _words(data, "notes"), _words(data, "sources"),
        _words(data, "cut"), bool(data.get("whole")), str(data.get("boot_id", "")), float(data.get("seconds", 0.0)),
        _words(data, "absent"), _text(data.get("lost")), str(data.get("how", "")),
    )  # fmt: skip


def _compared(data: Mapping[str, Any]) -> Compared:
    kind, name = data.get("of", ("", ""))
    return Compared(
        str(data["quantity"]), float(data["value"]), float(data["other"]), str(data["kind"]), (str(kind), str(name)),
        tuple(map(str, data.get("others", ()))), tuple(map(float, data.get("written", ()))),
    )  # fmt: skip


def _query(data: Mapping[str, Any]) -> Query:
    slots = data.get("slots", {})
    return Query(
        text=str(data.get("text", "")),
        lang=str(data.get("lang", "en")),
        intent=Intent(data["intent"]),
        slots=Slots(**{name: tuple(slots.get(name, ())) for name in Slots._fields}),
        topics=tuple(Topic(str(t["id"]), float(t["score"]), _text(t.get("title"))) for t in data.get("topics", ())),
        symptoms=_words(data, "symptoms"),
        facts=_words(data, "facts"),
        assumed=tuple(
            Assumed(str(a["name"]), str(a["value"]), str(a["op"]), str(a.get("of", "")))
            for a in data.get("assumed", ())
        ),
        observations=_observations(data.get("observations", ())),
        asks=str(data.get("asks", "")),
        unread=_words(data, "unread"),
        compared=tuple(map(_compared, data.get("compared", ()))),
        fine=_words(data, "fine"),
        pasted=bool(data.get("pasted")),
        fixed=tuple((str(a), str(b)) for a, b in data.get("fixed", ())),
        echo=_text(data.get("echo")),
        unsure=bool(data.get("unsure")),
        also=tuple(map(_query, data.get("also", ()))),
    )
