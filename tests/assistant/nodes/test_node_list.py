"""The list of nodes: order, what is kept of two checks, and names written as a set."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from assistant.nodes import GROUPS, OLD, ORDER, SEVERITIES, Found, Look, Node, by_state, folded, listed, natural, worst
from assistant.nodes.page import ago, course, sheet, stretches
from assistant.session.nodeset import expand
from assistant.store.read import Run
from knowledge.language import Text

NAMES = st.lists(
    st.one_of(
        st.builds("{}{:0{}d}{}".format, st.sampled_from(("gpu-", "r1n", "", "node")), st.integers(0, 130), st.integers(1, 3),
                  st.sampled_from(("", "-ib", ".rack"))),
        st.sampled_from(("login", "gpu-a", "r1n2-x9", "09", "9")),
    ),
    min_size=1, max_size=40,
)  # fmt: skip
STATES = st.sampled_from(("ok", "degraded", "unhealthy", "unknown"))


def look(state: str, at: int | None, run: int | None = None) -> Look:
    return Look(state, Text(f"said {state}"), at, "history", "live", run)


@given(NAMES)
def test_a_folded_set_names_the_same_nodes(names: list[str]) -> None:
    assert sorted(expand(folded(names))) == sorted(set(names))


def test_folding_is_what_a_person_would_write() -> None:
    assert folded([f"gpu-{n:03d}" for n in range(1, 65)] + ["login1"]) == "gpu-[001-064],login1"
    assert folded(["gpu-8", "gpu-9", "gpu-10", "gpu-12"]) == "gpu-[8-10,12]"
    assert folded(["gpu-09", "gpu-10", "gpu-010"]) == "gpu-[09-10],gpu-010"
    assert folded(["n2.a.example", "n1.a.example"]) == "n[1-2].a.example"


@given(NAMES, st.integers(1, 40))
def test_a_set_that_is_cut_counts_the_rest(names: list[str], most: int) -> None:
    shown = folded(names, most)
    assert len(shown) <= most + len(" +40")
    if shown:
        kept, _, rest = shown.partition(" +")
        assert len(expand(kept)) + int(rest or 0) == len(set(names)) if kept else rest


@given(NAMES)
def test_the_natural_order_counts_numbers(names: list[str]) -> None:
    ordered = sorted(names, key=natural)
    assert sorted(ordered) == sorted(names)
    assert sorted(["gpu-10", "gpu-9"], key=natural) == ["gpu-9", "gpu-10"]


@given(st.lists(st.tuples(STATES, st.integers(0, 10**18)), max_size=6))
def test_a_check_that_could_not_tell_hides_none_that_could(checks: list[tuple[str, int]]) -> None:
    looks = [look(state, at, n) for n, (state, at) in enumerate(checks)]
    (node,) = listed(["n1"], {"n1": looks})
    assert (node.last is None) == (not looks)
    if looks:
        assert node.last is not None
        assert node.last.at == max(at for _, at in checks)
    told = [at for state, at in checks if state != "unknown"]
    assert (node.told.at if node.told else None) == max(told, default=None)


@given(st.lists(STATES, max_size=20))
def test_the_worst_stand_first_and_every_node_is_counted_once(states: list[str]) -> None:
    nodes = listed(["never"], {f"n{i}": [look(s, i)] for i, s in enumerate(states)})
    assert [ORDER.index(n.state) for n in nodes] == sorted(ORDER.index(n.state) for n in nodes)
    counted = by_state(nodes, 100)
    assert sum(map(len, counted.values())) == len(states) + 1
    assert list(counted) == [s for s in GROUPS if s in counted]
    later = by_state(nodes, OLD + 100)
    assert "ok" not in later, "what was fine long ago is not counted as fine"
    assert later.get("unhealthy", []) == counted.get("unhealthy", [])


@given(st.lists(st.sampled_from((*SEVERITIES, "of a newer version")), max_size=8))
def test_of_the_findings_of_a_check_those_that_ask_for_something_are_told_the_worst_first(
    severities: list[str],
) -> None:
    told = [f.severity for f in worst(Found(f"f{n}", Text("x"), s, "", None) for n, s in enumerate(severities))]
    assert told == [s for s in ("critical", "error", "warning") for _ in range(severities.count(s))]


def test_what_nobody_could_read_is_not_fine() -> None:
    (node,) = listed([], {}, troubles={"broken.tar.gz": Text("it is no bundle")})
    assert node.state == "unknown"
    assert "it is no bundle" in str(sheet(node, (), 0, "en").parts[0].text)  # type: ignore[union-attr]


def test_an_old_check_is_stale_and_a_recording_is_of_its_time() -> None:
    at = 10**18
    assert Node("n", look("ok", at)).stale(at + OLD + 1)
    assert not Node("n", look("ok", at)).stale(at + OLD)
    assert not Node("n", Look("ok", Text(""), at, "bundle", "x")).stale(at + 9 * OLD)


@given(st.lists(STATES, max_size=20))
def test_stretches_hold_every_check(states: list[str]) -> None:
    runs = [Run(n, "n1", n, "live", False, "", "", "", s, "", Text(s), 0, {}) for n, s in enumerate(states)][::-1]
    made = stretches(runs)
    assert sum(count for _, count in made) == len(runs)
    assert all(a.state != b.state for (a, _), (b, _) in pairwise(made))
    assert len(course(runs)) == len(runs)


def test_ages_are_short() -> None:
    s = 10**9
    assert [ago(0, n * s) for n in (3, 59, 60, 3599, 3600, 86_400 * 3)] == ["0s", "55s", "1m", "59m", "1h", "3d"]
    assert ago(None, 0) == "–"
    assert ago(5, 0) == "0s"  # a clock that goes ahead of ours
