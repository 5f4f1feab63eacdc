"""Numbers, plots, pages and options of `gpudiag trace`: what they print, and laws that hold for all of them."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.config import Output
from assistant.render.cells import width
from assistant.render.sheet import Items
from assistant.render.trace_page import Bar, Bars, Column, Grid, Head, Page, Part, Plot, as_json, show, squeezed
from assistant.render.trace_plots import bar, binned, spark, stacked
from assistant.render.trace_units import digits, duration, durations, number, share, signed, size
from assistant.trace import options
from assistant.trace.inputs import kind_of
from tests.cases import each


@each(
    ("ns", "said"),
    [
        (None, "-"), (0, "0"), (1, "1 ns"), (999, "999 ns"), (1000, "1.00 µs"), (12_345, "12.3 µs"), (999_499, "999 µs"), (999_999, "1.00 ms"),
        (1_234_567_890, "1.23 s"), (125 * 10**9, "125 s"), (3_000 * 10**9, "50.0 min"), (-12_345, "-12.3 µs"), (0.4, "0.400 ns"),
    ],
)  # fmt: skip
def test_times(ns: float | None, said: str) -> None:
    assert duration(ns) == said


def test_what_is_there_is_no_zero() -> None:
    assert share(0) == "0 %"
    assert share(1e-9) == "<0.1 %"
    assert share(-1e-9) == "<0.1 %"
    assert share(0.4567) == "45.7 %"
    assert share(1) == "100 %"
    assert share(None) == share(float("nan")) == "-"
    assert durations([10**9, 10, 0, None]) == ["1.00 s", "<0.01 s", "0", "-"]
    assert (size(1 << 30), size(1000), size(None)) == ("1.00 GiB", "1000 B", "-")
    assert (number(1234567), number(None)) == ("1,234,567", "-")
    assert (signed(1500), signed(-1500), signed(0)) == ("+1.50 µs", "\u22121.50 µs", "0")


@given(st.floats(min_value=1e-3, max_value=1e15))
def test_three_digits_are_within_a_percent(value: float) -> None:
    assert float(digits(value)) == pytest.approx(value, rel=0.01, abs=5e-4)


@given(st.integers(min_value=0, max_value=10**18))
def test_a_time_says_what_it_is(ns: int) -> None:
    text = duration(ns)
    if text != "0":
        value, unit = text.split()
        size_ns = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}[unit]
        assert float(value) * size_ns == pytest.approx(ns, rel=0.006, abs=1)
    else:
        assert ns == 0


@given(st.floats(min_value=0, max_value=1), st.integers(min_value=1, max_value=80))
def test_a_bar_is_as_long_as_its_share(fraction: float, columns: int) -> None:
    drawn = bar(fraction, columns)
    assert len(drawn) <= columns
    assert bool(drawn) is (fraction > 0)
    assert len(drawn) >= int(fraction * columns) - 1


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=6), st.integers(min_value=1, max_value=60))
def test_parts_of_a_whole_fill_the_line(parts: list[float], columns: int) -> None:
    total = sum(parts)
    marks = "abcdef"
    line = stacked([(p / total, m) for p, m in zip(parts, marks, strict=False)] if total > 1e-9 else [], columns)
    assert len(line) == (columns if total > 1e-9 else 0)
    assert line == "".join(sorted(line))


@given(
    st.lists(st.floats(min_value=0, max_value=1e9), min_size=1, max_size=300), st.integers(min_value=1, max_value=90)
)
def test_a_curve_has_one_character_a_bin(values: list[float], columns: int) -> None:
    bins = binned(values, columns)
    assert len(bins) == min(len(values), columns)
    assert min(values) - 1e-6 <= min(bins) <= max(bins) <= max(values) * (1 + 1e-9) + 1e-6
    assert len(spark([*bins, None])) == len(bins) + 1
    assert set(spark(bins, fine=False)) <= set("_.:-=+*#")


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc", "Cf", "Mn", "Me")), max_size=80), st.integers(min_value=4, max_value=60),
       st.sampled_from([0.0, 1 / 3, 1.0]))  # fmt: skip
def test_a_name_fits_and_keeps_its_ends(name: str, columns: int, ending: float) -> None:
    cut = squeezed(name, columns, ending)
    assert width(cut) <= max(columns, 0) + 1
    assert cut == name or width(name) > columns


def page() -> Page:
    parts: list[Part] = [
        Head("warning", "SLOW", "it <is> `slow` | so"),
        Items(("a [title](x)", "line <b>")),
        Bars((Bar("computing", "3 ms", 0.75), Bar("部分", "1 ms", 0.25, 1))),
        Grid((Column("share"), Column("mean", 3), Column("name")), (("75 %", "1 ms", "void kernel<float>(x)" * 9), ("25 %", "2 ms", "b"))),
        Plot(partial(lambda columns, fine: ["#" * columns if not fine else "█" * columns])),
    ]  # fmt: skip
    return Page("gpudiag/trace-test/1", {"x": float("nan"), "name": "a\u009bb\u202e", "rows": [1, 2.5]}, lambda: parts)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_page_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = show(page(), Output(color="never")).splitlines()
    assert max(map(width, lines)) <= columns
    assert any("75.0 %" in line and "█" in line for line in lines) or columns == 40
    assert "mean" in "\n".join(lines) or columns == 40
    assert "\x1b[" in show(page(), Output(color="always"))


def test_a_page_in_other_formats_is_literal() -> None:
    markdown = show(page(), Output(format="markdown"))
    assert "\\<is\\>" in markdown
    assert "[title](x)" not in markdown.replace("\\", "~")
    assert "| `b` | 25 % | 2 ms |" in markdown
    html = show(page(), Output(format="html"))
    assert "<is>" not in html
    assert "&lt;b&gt;" in html
    data = json.loads(text := show(page(), Output(format="json")))
    assert data["schema"] == "gpudiag/trace-test/1"
    assert data["x"] is None
    assert data["name"] == "a\u009bb\u202e"
    assert "\u009b" not in text


def test_json_of_half_a_character_can_be_written() -> None:
    as_json({"name": "\ud800"}).encode("utf-8")


@each(
    ("text", "value"),
    [
        ("1GiB", 1 << 30),
        ("1gb", 10**9),
        ("500MB", 500 * 10**6),
        ("512M", 512 << 20),
        ("64 MiB", 64 << 20),
        ("1.5G", 3 << 29),
        ("33554432", 1 << 25),
    ],
)
def test_sizes(text: str, value: int) -> None:
    assert options.size(text) == value


@each(
    ("kind", "text"),
    [
        (options.size, "1"), (options.size, "GiB"), (options.size, "-1GiB"), (options.size, "9999999999G"), (options.count, "0"), (options.count, "x"),
        (options.amount, "0"), (options.amount, "7e"), (options.amount, "nan"), (options.pair, "3"), (options.pair, "3:"), (options.pair, "-1:2"),
        (options.moment, "5"), (options.moment, "5m"), (options.moment, "-5ms"), (options.fraction, "1"), (options.fraction, "-1%"), (options.fraction, "x"),
        (options.seconds, "0"), (options.seconds, "1e9"), (options.rank, "-1"),
    ],
)  # fmt: skip
def test_values_that_are_refused(kind: type, text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        kind(text)


def test_values_that_are_understood() -> None:
    assert options.amount("7e9") == options.amount("7B") == 7e9
    assert options.amount("350M") == 350e6
    assert options.pair("3:7") == (3, 7)
    assert [options.moment(t) for t in ("120ms", "1.5s", "300us", "300µs", "7ns")] == [
        120_000_000,
        1_500_000_000,
        300_000,
        300_000,
        7,
    ]
    assert options.fraction("1%") == options.fraction("0.01") == 0.01


@each(
    ("start", "kind"),
    [
        (b'{"traceEvents": [', "trace"), (b"  [{", "trace"), (b"\xef\xbb\xbf{", "trace"), (b"SQLite format 3\0", "nsys"), (b"NVR\0...", "ncu-rep"),
        (b"\x80\x04\x95", "snapshot"), (b'{"segments": [], "device_traces": []}', "snapshot"), (b'{"$schema": "https://www.speedscope.app/x"', "speedscope"),
        (b"main;train;step 12\n", "folded"), (b'"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Metric Name"\n', "ncu"), (b"==PROF== Connected\n", "ncu"),
        (b"Time (%),Total Time (ns),Instances,Avg (ns),Name\n", "nsys-sum"), (b"hello world\n", ""), (b"\x7fELF", ""), (b"", ""),
    ],
)  # fmt: skip
def test_files_are_recognised_by_their_first_bytes(start: bytes, kind: str) -> None:
    assert kind_of(start) == kind
