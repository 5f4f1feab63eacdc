"""Histograms, pages and servers of a metrics page: laws of the pure functions."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from probes.base import lines_of
from probes.parse._prometheus import Sample, exposition
from probes.parse._serving_read import MAX_SERVERS, Histogram, Key, pages, servers

BOUNDS = [0.01, 0.1, 0.5, 1.0, 2.5, 10.0]


def histogram(observed: list[float], bounds: list[float] = BOUNDS) -> Histogram:
    counts = {bound: float(sum(v <= bound for v in observed)) for bound in [*bounds, math.inf]}
    return Histogram(counts, float(len(observed)), sum(observed))


def samples(text: str) -> list[Sample]:
    return exposition(lines_of(text)).samples


values = st.lists(st.floats(0.0001, 50, allow_nan=False), max_size=60)
share = st.floats(0.01, 1.0)


@given(values, share)
def test_a_quantile_lies_in_the_bucket_that_holds_the_rank(observed: list[float], q: float) -> None:
    found = histogram(observed).quantile(q)
    if not observed:
        assert found is None
        return
    assert found is not None
    true = sorted(observed)[max(0, math.ceil(round(q * len(observed), 9)) - 1)]
    value, beyond = found
    if true > BOUNDS[-1]:
        assert (value, beyond) == (BOUNDS[-1], True)
        return
    above = next(b for b in BOUNDS if true <= b)
    below = max([b for b in BOUNDS if b < above], default=0.0)
    assert not beyond
    assert below <= value <= above


@given(values, share, share)
def test_quantiles_grow_with_the_share(observed: list[float], a: float, b: float) -> None:
    both = [histogram(observed).quantile(q) for q in sorted((a, b))]
    if both[0] is not None and both[1] is not None:
        assert both[0][0] <= both[1][0]


@given(values, values)
def test_what_happened_between_two_readings_is_what_was_observed_there(first: list[float], then: list[float]) -> None:
    between = histogram([*first, *then]).since(histogram(first))
    assert between is not None
    assert between.counts == histogram(then).counts
    assert between.total == len(then)
    assert between.sum is not None
    assert math.isclose(between.sum, sum(then), abs_tol=1e-6)


@given(values, values)
def test_a_restart_is_never_a_negative_count(first: list[float], after: list[float]) -> None:
    between = histogram(after).since(histogram(first))
    assert between is None or all(count >= 0 for count in between.counts.values())


def test_other_buckets_are_another_histogram() -> None:
    assert histogram([1.0, 2.0], [1.0, 5.0]).since(histogram([1.0])) is None


def test_prometheus_own_example() -> None:
    # 10 observations: 2 up to 0.1, 4 more up to 0.5, 4 more up to 1: the median is the rank 5, three quarters into 0.1 to 0.5
    h = Histogram({0.1: 2.0, 0.5: 6.0, 1.0: 10.0, math.inf: 10.0}, 10.0, 4.0)
    assert h.quantile(0.5) == (0.1 + 0.4 * 0.75, False)
    assert h.quantile(0.1) == (0.05, False)
    assert h.mean == 0.4


def test_a_histogram_needs_its_last_bucket_or_its_count() -> None:
    text = 'x_bucket{le="1",model_name="m"} 3\n'
    (server,) = servers(samples(text))
    assert server.histogram("x") is None
    (server,) = servers(samples(text + 'x_count{model_name="m"} 4\n'))
    found = server.histogram("x")
    assert found is not None
    assert (found.total, found.sum) == (4.0, None)
    (server,) = servers(samples(text + 'x_bucket{le="wide",model_name="m"} 4\n'))
    assert server.histogram("x") is None


def test_pages_begin_where_the_first_series_comes_again() -> None:
    page = 'a{m="1"} 1\na{m="2"} 1\nb 2\n'
    assert [len(p) for p in pages(samples(page))] == [3]
    assert [len(p) for p in pages(samples(page * 3))] == [3, 3, 3]
    assert pages([]) == []
    assert [len(p) for p in pages(samples(page + "b 3\n"))] == [4], "a line twice is no new page"


def test_servers_are_told_apart_by_model_rank_and_place() -> None:
    text = "\n".join(
        [
            'r{model_name="a",engine="0"} 1', 'r{model_name="a",engine="1"} 2', 'r{model_name="b",engine="0",pod="p"} 3',
            'r{model_name="a",engine="0",tp_rank="1"} 9', 'info{engine="1"} 1', "plain 5",
        ]
    )  # fmt: skip
    found = {s.key: s for s in servers(samples(text))}
    assert set(found) == {Key("a", "0"), Key("a", "1"), Key("b", "0", "p")}
    first, second = found[Key("a", "0")], found[Key("a", "1")]
    assert [s.value for s in first.samples("r")] == [1], "what a follower of tensor parallelism repeats is left out"
    assert (first.samples("info"), len(second.samples("info")), len(first.samples("plain"))) == ([], 1, 1)


def test_a_page_without_models_is_one_server() -> None:
    (server,) = servers(samples('tgi_queue_size 3\ntgi_request_failure{err="dropped"} 2\n'))
    assert server.key == Key("")
    assert server.total("tgi_request_failure", {"err": "dropped"}) is not None
    assert server.total("tgi_request_failure", {"err": "overloaded"}) is None


def test_a_page_of_a_fleet_is_bounded() -> None:
    text = "".join(f'r{{model_name="m{i}"}} {i}\n' for i in range(4 * MAX_SERVERS))
    assert len(servers(samples(text))) == MAX_SERVERS


def test_a_level_told_twice_is_the_larger_one_and_no_number_is_none() -> None:
    (server,) = servers(samples('g{model_name="m",pid="1"} NaN\ng{model_name="m",pid="2"} 4\n'))
    found = server.gauge("g")
    assert found is not None
    assert found.value == 4
    assert server.gauge("h") is None
