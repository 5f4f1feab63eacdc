"""Ranges: bands without holes, sourced, shown in both languages."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.topics import topic
from assistant.topics.range import RATINGS, bounds
from knowledge.errors import UnknownNameError
from knowledge.facts import vocabulary
from knowledge.ranges import ranges
from rules.loader import shipped
from tests.cases import each

RANGES = ranges()
BANDED = [r for r in RANGES.values() if r.bands]


def test_enough() -> None:
    assert len(RANGES) >= 25


@given(st.sampled_from(BANDED), st.floats(allow_nan=False))
def test_every_value_lies_in_one_band(r: object, value: float) -> None:
    bands = r.bands  # type: ignore[attr-defined]
    assert sum(b.holds(value) for b in bands) == 1
    assert r.band(value) in bands  # type: ignore[attr-defined]


def test_what_is_no_number_lies_in_none() -> None:
    assert all(r.band(math.nan) is None for r in BANDED)


@each("name", sorted(RANGES))
def test_a_range(name: str) -> None:
    r = RANGES[name]
    assert r.sources
    for source in r.sources:  # a rule that is named as the source of a threshold exists
        if source.startswith("gpudiag rule "):
            assert source.split()[2] in shipped(), source
    for fact in r.shown_by:
        if fact.startswith(("gpu.", "node.", "job.", "benchmark.")):
            assert vocabulary().get(fact) is not None, fact
    for lang in ("en", "zh"):
        sheet = topic("range").sheet([name], lang)
        assert sheet.title == r.title.in_(lang)
        for band in r.bands:
            assert bounds(band, r.unit, lang)
            assert RATINGS[band.rating].in_(lang)


def test_thresholds_that_follow_a_rule_agree_with_it() -> None:
    """A range that cites a rule's limit changes with it."""
    for name, rule, param in (
        ("data-loader-wait", "input-bound-job", "share"),
        ("exposed-communication", "communication-bound-job", "share"),
        ("gpu-idle-share", "gpu-idle-in-steps", "share"),
        ("shared-memory", "shared-memory-full", "share"),
    ):
        limit = shipped()[rule][1]["params"][param]["default"]
        assert RANGES[name].bands[-1].low == limit, name


def test_known_points() -> None:
    for name, value, rating in (
        ("mfu", 43, "good"), ("mfu", 5, "poor"), ("sm-active", 85, "good"), ("retired-pages", 63, "bad"),
        ("nvlink-crc-rate", 0, "good"), ("ecc-uncorrectable", 1, "poor"), ("remapped-rows", 3, "good"),
    ):  # fmt: skip
        band = RANGES[name].band(value)
        assert band is not None
        assert band.rating == rating, name


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as error:
        topic("range").sheet(["goodputt"], "en")
    assert "goodput" in str(error.value)
