"""Events: where, same, count, within, gap, after, and what has to have been looked at to say that there were none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import ANY_TIME, Clock, Event, Observation, Status, Subject
from rules._precedence import Earlier
from rules.events import bursts, densest
from rules.proof import LeafProof, Truth, disjunction
from tests.cases import each
from tests.rules.lab import GPU, GPUS, HERE, LINKS, MINUTE, NOW, SECOND, bang, base, proof, quiet, seen, silent, truth

T, F, U = Truth.TRUE, Truth.FALSE, Truth.UNKNOWN
TIMES = st.lists(st.integers(-20, 0), max_size=12)


def leaf(**more: Any) -> dict[str, Any]:
    """A plain event condition on "bang"."""
    return {"event": "bang"} | more


# --- none seen ----------------------------------------------------------------------------


def test_nothing_is_absent_unless_somebody_looked() -> None:
    assert truth(leaf(), []) is U
    assert truth(leaf(), [silent("bang", on=HERE)]) is U
    assert truth(leaf(), [quiet()]) is F
    assert truth({"not": leaf()}, [quiet()]) is T
    assert truth(leaf(), [bang(0), silent("bang", on=HERE)]) is T


@each(
    ("name", "op", "value", "expected"),
    [
        ("level", "at_most", 0, T), ("level", "above", 0, F), ("watts", "below", 0.5, T), ("good", "is", False, T),
        ("good", "is", True, F), ("word", "is", "", T), ("word", "matches", "x", F), ("flags", "contains", "hot", F),
        ("mode", "is", "red", F), ("mode", "is_not", "red", T), ("release", "version_below", "9", F),
    ],
)  # fmt: skip
def test_none_seen_is_the_empty_value(name: str, op: str, value: Any, expected: Truth) -> None:
    plain = {"fact": name, "op": op, "value": value}
    world = [seen(name, None, status=Status.NONE_SEEN)]
    assert truth(plain, world) is expected
    assert truth({"not": plain}, world) is ~expected


def test_coverage_of_one_gpu_says_nothing_of_the_node() -> None:
    here = [quiet("bang", GPU)]
    assert truth(leaf(), here) is F
    assert truth(leaf(on="node"), here) is U
    assert truth(leaf(on="others"), here) is U
    assert truth(leaf(), here, subject=HERE) is U
    assert truth(leaf(on="node"), [quiet()]) is F


def test_coverage_of_the_node_covers_its_parts() -> None:
    assert truth(leaf(), [quiet()], subject=LINKS[0]) is F


def test_a_window_that_begins_later_than_asked_proves_nothing() -> None:
    short = quiet(at=0, window=(-10 * MINUTE, 0))
    assert truth(leaf(within="5m"), [short]) is F
    assert truth(leaf(within="1h"), [short]) is U
    assert truth(leaf(), [short]) is F, "asked without a window: what was looked at counts"
    got = proof(leaf(within="1h"), [short])
    assert isinstance(got, LeafProof)
    assert "only part" in got.missing[0].reason
    assert truth(leaf(within="1h"), [short], as_of=None) is F, "nobody knows when it is"
    old = quiet(at=-600 * MINUTE, window=(-900 * MINUTE, -600 * MINUTE))
    assert truth(leaf(within="1h"), [old]) is U, "a log that ended before the hour that is asked about"
    boot = quiet(at=0, clock=Clock.BOOT, window=(-10 * MINUTE, 0))
    assert truth(leaf(within="1h"), [boot]) is F, "times of another clock are not compared"


@given(
    start=st.integers(-20, 5),
    length=st.integers(0, 20),
    at=st.integers(0, 20),
    looked=st.booleans(),
    known=st.booleans(),
)
def test_an_entry_without_a_date_is_concluded_from_only_what_every_date_of_it_gives(
    start: int, length: int, at: int, looked: bool, known: bool
) -> None:
    window = (start * MINUTE, (start + length) * MINUTE)
    rest = [quiet()] if looked else []
    undated = replace(bang(None), window=(NOW + window[0], NOW + window[1]), clock=Clock.REALTIME)
    got = truth(leaf(within="5m"), [undated, *rest], as_of=NOW if known else None)
    if not known:
        assert got is U, "nobody knows when it is"
        return
    dated = truth(leaf(within="5m"), [bang((start + min(at, length)) * MINUTE), *rest])
    assert got in (dated, U)
    ends = {truth(leaf(within="5m"), [bang(end), *rest]) for end in window}
    assert (got is U) == (U in ends or len(ends) > 1)


def test_what_an_entry_without_a_date_lacks_is_its_date() -> None:
    undated = replace(bang(None), window=ANY_TIME, clock=Clock.REALTIME)
    got = proof(leaf(within="5m"), [undated, quiet()])
    assert isinstance(got, LeafProof)
    assert (got.truth, got.missing[0].reason) == (U, "date not known")
    assert truth(leaf(), [undated, quiet()]) is T, "it happened, whenever it was"
    assert truth({"not": leaf(within="5m")}, [undated, quiet()]) is U
    assert truth(leaf(within="5m"), [bang(None), quiet()]) is T, "a line that somebody just showed"
    assert truth(leaf(within="5m"), [undated, bang(0), quiet()]) is T


def test_within_looks_back_from_the_time_of_judging() -> None:
    assert truth(leaf(within="5m"), [bang(-4 * MINUTE), quiet()]) is T
    assert truth(leaf(within="5m"), [bang(-6 * MINUTE), quiet()]) is F
    assert truth(leaf(within="5m"), [bang(-6 * MINUTE), quiet()], as_of=None) is T
    assert truth(leaf(within="5m"), [bang(None), quiet()]) is T, "an event without a time is taken as one of now"


# --- where --------------------------------------------------------------------------------


def test_a_field_that_the_line_does_not_tell_decides_nothing() -> None:
    asked = leaf(where={"place": 1})
    assert truth(asked, [bang(0, place=1), quiet()]) is T
    assert truth(asked, [bang(0, place=2), quiet()]) is F
    assert truth(asked, [bang(0), quiet()]) is U
    assert truth({"not": asked}, [bang(0), quiet()]) is U
    assert truth(leaf(where={"place": 1, "code": 7}), [bang(0, code=2), quiet()]) is F, (
        "what it tells speaks against it"
    )
    assert truth(leaf(where={"place": 1}, count={"at_most": 0}), [bang(0), quiet()]) is U
    got = proof(asked, [bang(0), quiet()])
    assert isinstance(got, LeafProof)
    assert got.missing[0].reason == "the line does not tell place"


def test_where_takes_lists_and_comparisons() -> None:
    world = [bang(0, place=3, text="went off"), quiet()]
    fitting: list[dict[str, Any]] = [
        {"place": [2, 3]}, {"place": {"at_least": 3, "below": 4}}, {"text": {"matches": "^went"}},
        {"text": {"contains": "OFF"}}, {"code": {"is_not": 2}},
    ]  # fmt: skip
    for where in fitting:
        assert truth(leaf(where=where), world) is T, where
    others: list[dict[str, Any]] = [
        {"place": [1]},
        {"place": {"at_least": 3, "below": 3}},
        {"text": {"not_in": ["went off"]}},
    ]
    for where in others:
        assert truth(leaf(where=where), world) is F, where


def test_on_says_where_to_look() -> None:
    world = [bang(0, GPUS[1]), quiet()]
    assert [truth(leaf(on=on), world) for on in ("self", "node", "others")] == [F, T, T]
    assert [truth(leaf(on=on), world, GPUS[1]) for on in ("self", "node", "others")] == [T, T, F]
    assert truth(leaf(), world, HERE) is T, "a part's event is the node's"
    assert truth({"event": "knock"}, [bang(0, HERE, name="knock")]) is T, "and the node's is that of its parts"


# --- counting -----------------------------------------------------------------------------


def _brute(times: list[int], within: int) -> int:
    """The most events in any span: every event may begin one."""
    return max((sum(start <= t <= start + within for t in times) for start in times), default=0)


@given(TIMES, st.integers(0, 20))
def test_the_densest_span_is_what_trying_all_finds(times: list[int], within: int) -> None:
    found = densest([bang(t) for t in times], within)
    assert len(found) == _brute(times, within)
    ends = [o.at for o in found if o.at is not None]
    assert not ends or max(ends) - min(ends) <= within


@given(TIMES, st.integers(2, 4), st.integers(1, 10))
def test_a_count_within_a_span(times: list[int], count: int, minutes: int) -> None:
    world = [*(bang(t * MINUTE, line=i) for i, t in enumerate(times, 1)), quiet()]
    most = _brute(times, minutes)
    within = f"{minutes}m"
    assert truth(leaf(count={"at_least": count}, within=within), world) is (T if most >= count else F)
    assert truth(leaf(count={"at_least": count, "at_most": count}, within=within), world) is (T if most == count else F)


@given(
    st.lists(st.lists(st.integers(-20, 0), min_size=1, max_size=6).map(sorted), max_size=4),
    st.integers(1, 6),
    st.integers(1, 10),
    st.booleans(),
)
def test_events_that_stand_for_several_decide_as_each_of_them(
    runs: list[list[int]], count: int, minutes: int, gap: bool
) -> None:
    """Of a run the first and the last are told with their times; what is concluded holds wherever the others lie."""
    told = []
    for line, times in enumerate(runs):
        first, last = bang(times[0] * MINUTE, line=2 * line + 1), bang(times[-1] * MINUTE, line=2 * line + 2)
        told += [first] if len(times) == 1 else [first, last]
        if len(times) > 2:
            told[-1] = replace(last, times=len(times) - 1, window=(first.at or 0, last.at or 0))
    every = [bang(t * MINUTE, line=line) for line, t in enumerate((t for times in runs for t in times), 1)]
    asked = leaf(count={"at_least": count}, within=f"{minutes}m") | ({"gap": "3m"} if gap else {})
    found, true = truth(asked, [*told, quiet()]), truth(asked, [*every, quiet()])
    assert found in (true, U)
    assert found is true or len(told) < len(every)
    assert truth(leaf(count={"at_least": count}), [*told, quiet()]) is truth(
        leaf(count={"at_least": count}), [*every, quiet()]
    )


def test_spans_never_reach_over_two_clocks() -> None:
    world = [bang(0), bang(0, clock=Clock.BOOT)]
    assert len(densest(world, 100)) == 1
    asked = leaf(count={"at_least": 2}, within="1m")
    assert truth(asked, [*world, quiet()]) is U, "whether the two lie together, nobody knows"
    assert truth(leaf(count={"at_least": 3}, within="1m"), [*world, quiet()]) is F


def test_events_without_a_time_may_lie_together_or_not() -> None:
    world = [bang(None, line=1), bang(None, line=2), quiet()]
    assert truth(leaf(count={"at_least": 2}), world) is T, "two are two"
    assert truth(leaf(count={"at_least": 2}, within="1m"), world) is U
    assert truth(leaf(count={"at_least": 3}, within="1m"), world) is F


def test_the_same_place_means_the_same_values() -> None:
    twice = leaf(same=["place", "slot"], count={"at_least": 2})
    assert truth(twice, [bang(-1, place=1, slot=1), bang(0, place=1, slot=1), quiet()]) is T
    assert truth(twice, [bang(-1, place=1, slot=1), bang(0, place=1, slot=2), quiet()]) is F
    assert truth(twice, [bang(None, line=1, place=1, slot=1), bang(None, line=2, place=2, slot=1), quiet()]) is F
    assert truth(twice, [bang(-1, place=1, slot=1), bang(0, place=1), quiet()]) is U, "where the second was is not told"
    got = proof(twice, [bang(-2, place=1, slot=1), bang(-1, place=2, slot=1), bang(0, place=1, slot=1), quiet()])
    assert isinstance(got, LeafProof)
    assert {o.at for o in got.observations} == {bang(-2).at, bang(0).at}, "the evidence is the group, not the rest"


def test_bounds_of_a_count() -> None:
    def world(n: int) -> list[Observation]:
        return [*(bang(-i * SECOND) for i in range(n)), quiet()]

    assert [truth(leaf(count={"at_least": 2}), world(n)) for n in (1, 2, 3)] == [F, T, T]
    assert [truth(leaf(count={"at_most": 1}), world(n)) for n in (0, 1, 2)] == [T, T, F]
    assert [truth(leaf(count={"at_least": 1, "at_most": 2}), world(n)) for n in (0, 1, 2, 3)] == [F, T, T, F]
    assert truth(leaf(count={"at_most": 1}), world(2)[:-1]) is F, "two are too many, whoever looked"
    assert truth(leaf(count={"at_most": 1}), world(1)[:-1]) is U


# --- bursts -------------------------------------------------------------------------------


def _brute_bursts(times: list[int], gap: int) -> list[int]:
    """Times that nothing precedes by at most `gap`."""
    distinct = sorted(set(times))
    return [t for t in distinct if not any(0 < t - other <= gap for other in distinct)]


@given(TIMES, st.integers(0, 10))
def test_a_burst_ends_with_silence(times: list[int], gap: int) -> None:
    found = bursts([bang(t) for t in times], gap)
    assert [o.at for o in found] == [bang(t).at for t in _brute_bursts(times, gap)]


def test_bursts_are_counted_not_their_events() -> None:
    twice = leaf(gap="3m", count={"at_least": 2}, within="24h")
    storm = [bang(-i * SECOND) for i in range(20)]
    assert truth(twice, [*storm, quiet()]) is F
    assert truth(twice, [*storm, bang(-10 * MINUTE), quiet()]) is T
    assert truth(twice, [*storm, bang(-25 * 60 * MINUTE), quiet()]) is F, "not within a day"


def test_bursts_of_two_clocks_may_be_the_same() -> None:
    world = [bang(0), bang(-MINUTE, clock=Clock.BOOT), quiet()]
    assert len(bursts(world[:2], SECOND)) == 1
    assert truth(leaf(gap="3m", count={"at_least": 2}), world) is U
    assert truth(leaf(gap="3m", count={"at_least": 2}), [bang(None), quiet()]) is F


def test_an_event_of_unknown_kind_may_join_two_bursts() -> None:
    twice = leaf(gap="3m", count={"at_least": 2}, where={"place": 1})
    apart = [bang(-10 * MINUTE, place=1), bang(0, place=1), quiet()]
    assert truth(twice, apart) is T
    assert truth(twice, [*apart, bang(-5 * MINUTE)]) is T, "five minutes from both: it joins neither"
    assert truth(twice, [*apart, *(bang(-m * MINUTE) for m in (2, 4, 6, 8))]) is U


# --- after --------------------------------------------------------------------------------


def after(within: str = "60s", **more: Any) -> dict[str, Any]:
    """A bang after a knock."""
    return leaf(after={"event": "knock", "within": within} | more)


def _knock(at: int | None, **more: Any) -> Observation:
    return bang(at, HERE, name="knock", **more)


def test_after_means_not_before_and_not_much_later() -> None:
    looked = [quiet(), quiet("knock")]
    for apart, expected in ((0, T), (30 * SECOND, T), (60 * SECOND, T), (61 * SECOND, F), (-SECOND, F)):
        assert truth(after(), [_knock(-MINUTE), bang(-MINUTE + apart), *looked]) is expected, apart
    assert truth(after(), [bang(0), *looked]) is F
    assert truth(after(), [_knock(0), *looked]) is F


def test_after_something_that_nobody_looked_for_is_unknown() -> None:
    assert truth(after(), [bang(0), quiet()]) is U
    assert truth(after(), [quiet()]) is F, "no bang, so none after a knock"
    got = proof(after(), [bang(0), quiet(), silent("knock", on=HERE)])
    assert isinstance(got, LeafProof)
    assert [(gap.fact, gap.reason) for gap in got.missing] == [("knock", Status.DENIED)]


def test_an_event_is_not_after_itself() -> None:
    again = leaf(after={"event": "bang", "within": "60s"})
    assert truth(again, [bang(0), quiet()]) is F
    assert truth(again, [bang(-1), bang(0), quiet()]) is T


def test_lines_of_one_file_have_an_order_and_those_of_two_have_none() -> None:
    looked = [quiet(), quiet("knock")]
    assert truth(after(), [_knock(None, line=3, call="k"), bang(None, line=4, call="k"), *looked]) is T
    assert truth(after(), [_knock(None, line=4, call="k"), bang(None, line=3, call="k"), *looked]) is F
    assert truth(after(), [_knock(0, line=4, call="k"), bang(0, line=3, call="k"), *looked]) is F, (
        "one second, two lines"
    )
    assert truth(after(), [_knock(None, line=3, call="a"), bang(None, line=4, call="b"), *looked]) is U
    assert truth(after(), [_knock(0, clock=Clock.BOOT, call="a"), bang(0, call="b"), *looked]) is U


def _follows(later: Observation, earlier: Observation, within: int) -> Truth:
    """Whether one event came at most `within` before another, of two alone."""
    if later is earlier:
        return F
    lines = (earlier.source.line, later.source.line) if later.source.call == earlier.source.call else (None, None)
    by_line = None if lines[0] is None or lines[1] is None else lines[0] < lines[1]
    if later.at is not None and earlier.at is not None and later.clock is earlier.clock:
        apart = later.at - earlier.at
        return T if (by_line if apart == 0 and by_line is not None else 0 <= apart <= within) else F
    return U if by_line is None else T if by_line else F


_EVENTS = st.builds(
    _knock,
    st.sampled_from((None, -3, -2, -1, 0)),
    line=st.sampled_from((None, 1, 2, 3)),
    call=st.sampled_from("ab"),
    clock=st.sampled_from((Clock.REALTIME, Clock.BOOT)),
)


@given(st.lists(_EVENTS, max_size=6), st.lists(_EVENTS, min_size=1, max_size=3), st.integers(0, 3))
def test_what_came_before_is_what_each_pair_says(
    first: list[Observation], more: list[Observation], within: int
) -> None:
    earlier = Earlier(first)
    for o in (*first, *more):
        assert earlier.before(o, within) is disjunction([_follows(o, e, within) for e in first])


def test_after_minds_where_it_looks() -> None:
    looked = [quiet(), quiet("knock")]
    assert truth(after(where={"place": 1}), [_knock(-1, place=1), bang(0), *looked]) is T
    assert truth(after(where={"place": 1}), [_knock(-1, place=2), bang(0), *looked]) is F
    assert truth(after(where={"place": 1}), [_knock(-1), bang(0), *looked]) is U, "which place is not told"


@given(
    st.lists(
        st.tuples(st.sampled_from((1, 2, 3, None)), st.sampled_from((*GPUS, HERE)), st.integers(0, 9)), max_size=20
    ),
    st.frozensets(st.integers(1, 4)),
    st.sampled_from((*GPUS, HERE)),
)
def test_the_index_by_code_leaves_out_only_other_codes(
    told: list[tuple[int | None, Subject, int]], codes: frozenset[int], subject: Subject
) -> None:
    facts = base([Observation("bang", on, Event(code), at=at, clock=Clock.REALTIME) for code, on, at in told])
    everything = facts.events_within("bang", subject)
    wanted = [o for o in everything if isinstance(o.value, Event) and (o.value.code in codes or o.value.code is None)]
    assert list(facts.events_coded("bang", subject, codes)) == wanted


def test_all_conditions_on_the_code_hold() -> None:
    where = {"code": {"in": [1, 2], "not_in": [2]}}
    assert truth(leaf(where=where), [bang(0, code=1), quiet()]) is T
    assert truth(leaf(where=where), [bang(0, code=2), quiet()]) is F
    assert truth(leaf(where={"code": {"in": [1, 2], "is": 3}}), [bang(0, code=1), bang(0, code=3), quiet()]) is F
    untold = Observation("bang", GPU, Event(None), at=0, clock=Clock.REALTIME)
    assert truth(leaf(where={"code": 1}), [untold, quiet()]) is U, "the line does not tell"
