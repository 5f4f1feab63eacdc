"""A small world for laws about rules: its own vocabulary, three GPUs, and strategies that draw from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from knowledge.facts import FactSpec, Kind, Type, Vocabulary
from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Origin, Scalar, Scope, Source, Status, Subject, Value, node
from rules.builder import Builder
from rules.condition import Condition, Path
from rules.evaluate import evaluate
from rules.factbase import FactBase
from rules.model import ActionSpec, Bucket, Explains, Rule, RuleStatus, Severity
from rules.proof import Proof, Truth

SECOND = 10**9
MINUTE = 60 * SECOND
NOW = 1_700_000_000 * SECOND

HERE = node("n1")
GPUS = tuple(Subject(Scope.GPU, f"0000:0{i}:00.0", HERE) for i in (1, 2, 3))
GPU = GPUS[0]
LINKS = tuple(Subject(Scope.LINK, str(i), GPU) for i in (0, 1))
PROCESS = Subject(Scope.PROCESS, "42", HERE)

UNANSWERED = tuple(s for s in Status if not s.answered)


def fact(name: str, scope: Scope, type_: Type, kind: Kind = Kind.STATE, **more: Any) -> FactSpec:
    """A fact of the small vocabulary."""
    return FactSpec(name, scope, type_, kind, Text(name), Text(f"{name} is {{value}}"), **more)


VOCABULARY = Vocabulary(
    {
        spec.name: spec
        for spec in (
            fact("level", Scope.GPU, Type.INT, Kind.GAUGE, unit="C"),
            fact("limit", Scope.GPU, Type.INT, unit="C"),
            fact("watts", Scope.GPU, Type.FLOAT, Kind.GAUGE, unit="W"),
            fact("good", Scope.GPU, Type.BOOL),
            fact("errors", Scope.GPU, Type.INT, Kind.COUNTER, unit="count"),
            fact("mode", Scope.GPU, Type.ENUM, values=("red", "green", "blue")),
            fact("word", Scope.GPU, Type.STR),
            fact("release", Scope.GPU, Type.STR),
            fact("flags", Scope.GPU, Type.SET, values=("hot", "cold")),
            fact("crc", Scope.LINK, Type.INT, Kind.COUNTER),
            fact("busy", Scope.NODE, Type.BOOL),
            fact("aged", Scope.GPU, Type.INT, Kind.GAUGE, max_age=MINUTE),
            fact("uses", Scope.PROCESS, Type.SUBJECT, Kind.RELATION),
            fact("is_rank", Scope.PROCESS, Type.SUBJECT, Kind.RELATION),
            fact("bang", Scope.GPU, Type.EVENT, Kind.EVENT, fields={"place": "int", "slot": "int", "text": "str"}),
            fact("knock", Scope.NODE, Type.EVENT, Kind.EVENT, fields={"place": "int"}),
            fact("gone", Scope.GPU, Type.INT, replaced_by="level"),
            # what knowledge.derive and the resolvers look for in every batch
            fact("gpu.uuid", Scope.GPU, Type.STR),
            fact("gpu.index", Scope.GPU, Type.INT),
            fact("xid", Scope.GPU, Type.EVENT, Kind.EVENT, fields={"place": "int", "text": "str", "pid": "int"}),
        )
    }
)


# --- building -----------------------------------------------------------------------------


def faults_of(plain: Any, params: Mapping[str, Any] | None = None) -> list[tuple[Path, str, str]]:
    """What the builder says against a condition."""
    found: list[tuple[Path, str, str]] = []
    Builder(VOCABULARY, params or {}, lambda *fault: found.append(fault), set()).build(plain, ("when",))
    return found


def condition(plain: Any, params: Mapping[str, Any] | None = None) -> Condition:
    """The tree of a plain condition that has no fault."""
    found: list[tuple[Path, str, str]] = []
    built = Builder(VOCABULARY, params or {}, lambda *fault: found.append(fault), set()).build(plain, ("when",))
    assert built is not None, found
    assert not found, found
    return built


def rule(
    name: str,
    when: Any,
    *,
    confirms: Sequence[Any] = (),
    excludes: Sequence[Any] = (),
    explains: Sequence[Explains] = (),
    severity: Severity = Severity.WARNING,
    bucket: Bucket = Bucket.MONITOR,
    scope: Scope = Scope.GPU,
    **more: Any,
) -> Rule:
    """A rule over the small vocabulary."""
    return Rule(
        id=name, revision=1, title=Text(name), status=RuleStatus.STABLE, severity=severity, scope=scope,
        when=condition(when), why=Text("because"), confirms=tuple(map(condition, confirms)),
        excludes=tuple(map(condition, excludes)), explains=tuple(explains), action=ActionSpec(bucket), **more,
    )  # fmt: skip


def base(observations: Iterable[Observation], as_of: int | None = NOW) -> FactBase:
    """A fact base over the small vocabulary."""
    return FactBase(observations, VOCABULARY, as_of)


def proof(plain: Any, observations: Iterable[Observation], subject: Subject = GPU, as_of: int | None = NOW) -> Proof:
    """The proof of a plain condition about `subject`."""
    return evaluate(condition(plain), subject, base(observations, as_of))


def truth(plain: Any, observations: Iterable[Observation], subject: Subject = GPU, as_of: int | None = NOW) -> Truth:
    """The truth of a plain condition about `subject`."""
    return proof(plain, observations, subject, as_of).truth


# --- observations -------------------------------------------------------------------------


def seen(
    name: str,
    value: Value = None,
    on: Subject = GPU,
    *,
    status: Status = Status.OK,
    at: int | None = None,
    probe: str = "p",
    line: int | None = None,
    origin: Origin = Origin.MEASURED,
    clock: Clock = Clock.REALTIME,
    window: tuple[int, int] | None = None,
    call: str = "",
) -> Observation:
    """An observation; `at` is ns before (negative) or after NOW."""
    return Observation(
        name, on, value, status, Source(probe, call or f"{probe}.txt", line),
        NOW + at if at is not None else None, clock if at is not None or window else Clock.NONE,
        window=(NOW + window[0], NOW + window[1]) if window else None, origin=origin,
    )  # fmt: skip


def silent(name: str, status: Status = Status.DENIED, on: Subject = GPU, **more: Any) -> Observation:
    """An observation without an answer."""
    return seen(name, None, on, status=status, **more)


def bang(at: int | None = None, on: Subject = GPU, *, name: str = "bang", code: int = 1, **more: Any) -> Observation:
    """An event of the small vocabulary; other keywords than those of `seen` are its fields."""
    named = {k: more.pop(k) for k in ("line", "probe", "clock", "origin", "call") if k in more}
    fields: dict[str, Scalar] = more
    return seen(name, Event(code, fields), on, at=at, **named)


def quiet(name: str = "bang", on: Subject = HERE, **more: Any) -> Observation:
    """Somebody looked for such events everywhere on `on`; what is not listed did not happen."""
    return seen(name, None, on, status=Status.NONE_SEEN, **more)


# --- strategies ---------------------------------------------------------------------------

_VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "level": st.integers(0, 9),
    "limit": st.integers(0, 9),
    "good": st.booleans(),
    "mode": st.sampled_from(("red", "green", "blue")),
    "word": st.sampled_from(("one", "two", "")),
    "flags": st.sampled_from(((), ("hot",), ("cold",), ("hot", "cold"))),
    "crc": st.integers(0, 9),
    "busy": st.booleans(),
}
PLACES: Mapping[str, tuple[Subject, ...]] = dict.fromkeys(_VALUES, GPUS) | {"crc": LINKS, "busy": (HERE,)}


@st.composite
def values(draw: st.DrawFn, name: str, on: Subject, probe: str = "p") -> Observation:
    """One answered observation of a fact that holds a value."""
    status = draw(st.sampled_from((Status.OK, Status.OK, Status.OK, Status.NONE_SEEN, Status.NOT_APPLICABLE)))
    value = draw(_VALUES[name]) if status is Status.OK else None
    return seen(name, value, on, status=status, probe=probe)


@st.composite
def events(draw: st.DrawFn, name: str = "") -> Observation:
    """One event about what its fact is about, with time, line and fields as often missing as not."""
    name = name or draw(st.sampled_from(("bang", "knock")))
    at = draw(st.none() | st.integers(-5, 0).map(lambda m: m * MINUTE))
    fields = {k: v for k in ("place", "slot") if (v := draw(st.none() | st.integers(0, 1))) is not None}
    return bang(
        at,
        draw(st.sampled_from(GPUS)) if name == "bang" else HERE,
        name=name,
        code=draw(st.integers(1, 2)),
        line=draw(st.none() | st.integers(1, 9)),
        **{k: v for k, v in fields.items() if k == "place" or name == "bang"},
    )


@st.composite
def worlds(draw: st.DrawFn) -> list[Observation]:
    """Observations of everything: some answered, some not, some contradicting each other, events and coverage."""
    out: list[Observation] = []
    for name, places in PLACES.items():
        for on in places:
            match draw(st.integers(0, 4)):
                case 0:
                    out.append(silent(name, draw(st.sampled_from(UNANSWERED)), on))
                case 1 | 2:
                    out.append(draw(values(name, on)))
                case 3:
                    out += [draw(values(name, on)), draw(values(name, on, probe="q"))]
    out += draw(st.lists(events(), max_size=6))
    for name in ("bang", "knock"):
        if draw(st.booleans()):
            status = draw(st.sampled_from((Status.NONE_SEEN, Status.NONE_SEEN, *UNANSWERED)))
            out.append(seen(name, None, HERE, status=status, probe="log"))
    return out


_WHERE = st.sampled_from(({}, {"code": 1}, {"place": 0}, {"code": [1, 2], "place": {"at_least": 1}}))


@st.composite
def event_leaves(draw: st.DrawFn) -> dict[str, Any]:
    """A plain event condition without `gap`."""
    plain: dict[str, Any] = {"event": draw(st.sampled_from(("bang", "knock"))), "where": draw(_WHERE)}
    if draw(st.booleans()):
        plain["same"] = ["place"]
    if draw(st.booleans()):
        plain["within"] = draw(st.sampled_from(("1m", "3m", "1h")))
    plain["on"] = draw(st.sampled_from(("self", "node", "others")))
    low = draw(st.integers(1, 3))
    count = draw(
        st.sampled_from(({"at_least": low}, {"at_most": low - 1}, {"at_least": low, "at_most": low + 1}, None))
    )
    if count:
        plain["count"] = count
    if draw(st.integers(0, 3)) == 0:
        plain["after"] = {"event": draw(st.sampled_from(("bang", "knock"))), "where": draw(_WHERE), "within": "2m"}
    return plain


_EACH = st.sampled_from(("any", "all", "none", {"at_least": 2}, {"share": 0.5}))
_NUMBERS = st.sampled_from(("at_least", "at_most", "above", "below", "is", "is_not"))
_BOUND = st.integers(0, 9) | st.just({"fact": "limit"}) | st.just({"fact": "limit", "times": 2, "plus": -3})
_SIMPLE = st.one_of(
    st.fixed_dictionaries({"fact": st.just("level"), "op": _NUMBERS, "value": _BOUND}),
    st.fixed_dictionaries({"fact": st.just("good"), "op": st.sampled_from(("is", "is_not")), "value": st.booleans()}),
    st.fixed_dictionaries(
        {"fact": st.just("mode"), "op": st.sampled_from(("is", "is_not")), "value": st.sampled_from(("red", "blue"))}
    ),
    st.just({"fact": "mode", "op": "not_in", "value": ["red", "green"]}),
    st.just({"fact": "word", "op": "matches", "value": "^t"}),
    st.just({"fact": "flags", "op": "contains", "value": "hot"}),
    st.just({"fact": "busy", "op": "is", "value": True}),
)
_MANY = st.one_of(
    st.fixed_dictionaries(
        {"fact": st.just("level"), "op": _NUMBERS, "value": st.integers(0, 9), "each": _EACH,
         "on": st.sampled_from(("node", "others"))}
    ),
    st.fixed_dictionaries({"fact": st.just("crc"), "op": _NUMBERS, "value": st.integers(0, 9), "each": _EACH}),
    st.fixed_dictionaries(
        {"fact": st.just("level"), "peers": st.just("ratio"), "min_peers": st.just(1),
         "op": st.sampled_from(("below", "at_least")), "value": st.sampled_from((0.5, 1, 1.5))}
    ),
)  # fmt: skip
_KNOWN = st.sampled_from(("level", "good", "busy")).map(lambda name: {"known": name})
LEAVES: st.SearchStrategy[dict[str, Any]] = st.one_of(_SIMPLE, _MANY, event_leaves(), _KNOWN)


def _groups(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        several.map(lambda items: {"all": items}),
        several.map(lambda items: {"any": items}),
        inner.map(lambda item: {"not": item}),
    )


CONDITIONS: st.SearchStrategy[dict[str, Any]] = st.recursive(LEAVES, _groups, max_leaves=5)
