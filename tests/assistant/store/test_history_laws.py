"""Laws of what is kept: rows become the samples that were read, and nothing else."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.store.codec import (
    COUNTER_EVERY,
    GAUGE_EVERY,
    Cell,
    Key,
    Last,
    Seen,
    decode,
    encode,
    every,
    identity,
    plan,
    subject_of,
    subject_text,
)
from assistant.store.course import increase, rate, sparkline, trend
from assistant.store.file import FileStore
from assistant.store.location import NETWORK, Location, default_path, journal_mode, magic, parse
from assistant.store.read import Reader, Sample, open_reader
from assistant.store.write import Batch, Writer
from knowledge.errors import ConfigError
from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Scope, Series, Source, Status, Subject, Value, node
from tests.assistant.store.history_lab import MINUTE, SECOND, T0, xid

WORDS = vocabulary()

# --- subjects and values ------------------------------------------------------------------

IDS = st.text(st.characters(codec="utf-8"), max_size=12)
SUBJECTS = st.recursive(
    st.builds(Subject, st.sampled_from(Scope), IDS),
    lambda inner: st.builds(Subject, st.sampled_from(Scope), IDS, inner),
    max_leaves=4,
)


@given(SUBJECTS)
def test_a_subject_survives(subject: Subject) -> None:
    assert subject_of(subject_text(subject)) == subject


@given(SUBJECTS, SUBJECTS)
def test_two_subjects_have_two_names(a: Subject, b: Subject) -> None:
    assert (subject_text(a) == subject_text(b)) == (a == b)


TYPED: tuple[tuple[str, st.SearchStrategy[Value]], ...] = (
    ("gpu.ecc.mode", st.booleans()),
    ("gpu.memory.used", st.integers(-(2**63), 2**63)),
    ("gpu.power.draw", st.floats(allow_nan=False)),
    ("gpu.name", st.text(st.characters(codec="utf-8", exclude_characters="\0"))),
    ("node.pci.gone", st.lists(st.text(st.characters(codec="utf-8"))).map(tuple)),
)


@pytest.mark.parametrize(("fact", "strategy"), TYPED, ids=[f for f, _ in TYPED])
def test_a_value_survives(fact: str, strategy: st.SearchStrategy[Value]) -> None:
    @given(strategy)
    def law(value: Value) -> None:
        back = decode(encode(Observation(fact, node("n"), value)), WORDS[fact])
        assert back == value
        assert type(back) is type(value)

    law()


def test_what_holds_no_value() -> None:
    for status in Status:
        cell = encode(Observation("gpu.name", node("n"), None, status))
        assert (cell.status, decode(cell, WORDS["gpu.name"])) == (status, None)
    assert encode(Observation("gpu.power.draw", node(), Series((1, 2), (3.0, 4.0)))).num == 4.0
    nan = decode(encode(Observation("gpu.power.draw", node(), math.nan)), WORDS["gpu.power.draw"])
    assert isinstance(nan, float)
    assert math.isnan(nan)


def test_an_event_is_its_line() -> None:
    line = xid(79, 5)
    assert identity("a", "boot", line) == identity("a", "other", line), "UTC needs no boot"
    assert identity("a", "", line) != identity("b", "", line)
    assert identity("a", "", line) != identity("a", "", xid(79, 6))
    assert identity("a", "", line) != identity("a", "", xid(94, 5))
    since_boot = Observation("xid", line.subject, Event(79), source=Source("k"), at=5, clock=Clock.BOOT, excerpt="x")
    assert identity("a", "1", since_boot) != identity("a", "2", since_boot)


@pytest.mark.parametrize(
    "line", ["12,352,13454698950,-;NVRM: Xid", "[13454.698950] NVRM: Xid", "<4>[   54.698950] NVRM: Xid"]
)
def test_a_line_that_tells_its_time_since_the_boot_needs_no_other(line: str) -> None:
    one = replace(xid(79, 5 * SECOND), excerpt=line)
    assert identity("a", "1", one) == identity("a", "1", replace(one, at=6 * SECOND)), "the clock was set by a second"
    assert identity("a", "1", one) != identity("a", "2", one), "another boot"
    assert identity("a", "1", one) != identity("a", "1", replace(one, excerpt=line.replace("54", "55")))
    words = replace(one, excerpt="NVRM: Xid")
    assert identity("a", "1", words) != identity("a", "1", replace(words, at=6 * SECOND))


# --- what is written ----------------------------------------------------------------------

KEY = Key("gpu.temperature.core", "node:n/gpu:0", "nvml")
# What one run reads of one key: a value, a status without one, nothing although the probe was read, or no probe at all.
READINGS = st.one_of(st.integers(0, 3), st.sampled_from(["failed", "denied", "absent", "unread"]))


def cell_of(reading: int | str) -> Cell:
    return Cell("ok", float(reading)) if isinstance(reading, int) else Cell(reading)


def seen_by(reading: int | str, at: int, probe_read: bool = True) -> dict[Key, Seen]:
    other = {Key("gpu.uuid", KEY.subject, KEY.probe): Seen(Cell("ok", text="u"), at)} if probe_read else {}
    return other if reading in ("absent", "unread") else other | {KEY: Seen(cell_of(reading), at)}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(READINGS, min_size=1, max_size=25), st.sampled_from([0, 150, 600]))
def test_rows_follow_the_readings(readings: list[int | str], wait: int) -> None:
    last: dict[Key, Last] = {}
    written: list[tuple[int, Cell, int]] = []
    before = None
    for number, reading in enumerate(readings):
        at = T0 + number * MINUTE
        rows = plan(last, seen_by(reading, at, reading != "unread"), at, before, lambda _: wait * SECOND)
        before = at
        for row in rows:
            last[row.key] = Last(row.cell, row.at)
            if row.key == KEY:
                assert row.holds_from is not None
                written.append((row.at, row.cell, row.holds_from))
    assert all(a[1] != b[1] for a, b in pairwise(written)), "no row says what the one before says"
    for number, reading in enumerate(readings):
        if reading == "unread" or (reading == "absent" and not any(at <= T0 + number * MINUTE for at, _, _ in written)):
            continue
        at = T0 + number * MINUTE
        now = cell_of("not_asked" if reading == "absent" else reading)
        written_at, cell, vouches_from = max(w for w in written if w[0] <= at)
        if written_at == at or vouches_from <= at:
            assert cell == now, "what a row vouches for is what was read"
        assert cell.status == now.status, "a change of status is never passed over"


_FILES = count()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("laws") / "history.db"


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(READINGS, st.integers(1, 900)), min_size=1, max_size=12),
    st.sampled_from(["gpu.temperature.core", "gpu.pcie.replay", "gpu.vbios"]),
    st.booleans(),
    st.integers(0, 3000),
)
def test_what_is_read_back_was_read(
    file: Path, readings: list[tuple[int | str, int]], fact: str, watched: bool, back: int
) -> None:
    host = f"h{next(_FILES)}"
    key = Key(fact, f"node:{host}/gpu:0", "nvml")
    writer = Writer(Location(file), 30, WORDS)
    truth: dict[int, Cell] = {}
    at = T0
    for reading, seconds in readings:
        at += seconds * SECOND
        samples = {
            Key(k.fact.replace(KEY.fact, fact), key.subject, k.probe): s
            for k, s in seen_by(reading, at, reading != "unread").items()
        }
        writer.write(
            Batch(
                host,
                at,
                "live",
                "b",
                "r",
                "ok",
                "yes",
                Text("t"),
                0,
                {},
                samples,
                (),
                (),
                frozenset({fact}) if watched else frozenset(),
            )
        )
        if reading not in ("absent", "unread"):
            truth[at] = cell_of(reading)
    writer.close()
    with _reader(file) as r:
        lines = r.lines(host, fact)
        samples_ = lines[0].samples if lines else ()
        got = {s.at: s.cell for s in samples_ if s.cell.status != "not_asked"}
        assert got.items() <= truth.items(), "nothing is read that was not there"
        if watched or fact == "gpu.vbios":
            assert got == truth, "and of what is watched all of it"
        if truth:
            assert min(got) == min(truth)
        since = at - back * SECOND
        part = r.lines(host, fact, since=since)
        window = {s.at: s.cell for s in (part[0].samples if part else ()) if s.cell.status != "not_asked"}
        assert window == {t: c for t, c in got.items() if t >= since}, "a window is a part of the whole"


def _reader(path: Path) -> Reader:
    found = open_reader(Location(path))
    assert found is not None
    return found


def test_spacing_follows_the_vocabulary() -> None:
    assert every(WORDS["gpu.temperature.core"], False) == GAUGE_EVERY
    assert every(WORDS["gpu.temperature.core"], True) == 0
    assert every(WORDS["gpu.pcie.replay"], False) == COUNTER_EVERY
    assert every(WORDS["gpu.energy"], False) == GAUGE_EVERY
    assert every(WORDS["gpu.vbios"], False) == 0
    assert every(None, False) == 0


# --- courses ------------------------------------------------------------------------------


def course(numbers: list[float], boots: str = "", step: int = MINUTE) -> list[Sample]:
    boots = boots or "a" * len(numbers)
    return [Sample(T0 + i * step, Cell("ok", n), b) for i, (n, b) in enumerate(zip(numbers, boots, strict=True))]


def test_growth_across_reboots() -> None:
    assert increase(course([5, 7, 3, 4])) == 2 + 3 + 1
    assert increase(course([5, 7, 9], "aab"), per_boot=True) == 2 + 9, "another boot began at zero"
    assert increase(course([5, 7, 9], "aab"), per_boot=False) == 4
    assert increase(course([5, 9], "a" + "b"), per_boot=True) == 9
    assert increase([*course([5]), Sample(T0 + 1, Cell("ok", 9.0), "")], per_boot=True) == 4, (
        "an unknown boot tells nothing"
    )
    assert increase(course([])) == 0
    assert rate(course([0, 30]), 3600 * SECOND) == 1800
    assert rate(course([0]), SECOND) is None


@given(st.lists(st.integers(0, 1000).map(float), min_size=3, max_size=30), st.floats(-5, 5))
def test_a_straight_line_has_its_slope(noise: list[float], slope: float) -> None:
    line = course([slope * i for i in range(len(noise))])
    got = trend(line, MINUTE)
    assert got is not None
    assert math.isclose(got, slope, abs_tol=1e-9)
    level = trend(course([noise[0]] * len(noise)), MINUTE)
    assert level is not None
    assert math.isclose(level, 0, abs_tol=1e-9)
    mirrored = trend(course([-n for n in noise]), MINUTE)
    straight = trend(course(noise), MINUTE)
    assert mirrored is not None
    assert straight is not None
    assert math.isclose(mirrored, -straight, abs_tol=1e-6)


def test_two_points_are_no_trend() -> None:
    assert trend(course([1, 2]), MINUTE) is None
    assert trend([Sample(T0, Cell("ok", 1.0), "")] * 5, MINUTE) is None


def test_a_picture() -> None:
    assert sparkline(course([0, 7])) == "▁█"
    assert sparkline(course([3, 3, 3])) == "▁▁▁"
    assert sparkline([]) == ""
    assert sparkline(course([1.0])) == "▁"
    gap = [Sample(T0, Cell("ok", 0.0), ""), Sample(T0 + 1, Cell("ok", 1.0), ""), Sample(T0 + 100, Cell("ok", 2.0), "")]
    assert sparkline(gap) == "▁ █"
    assert len(sparkline(course([float(i) for i in range(1000)]))) == 40
    broken = [Sample(T0, Cell("failed"), ""), *course([1.0, 2.0])]
    assert sparkline(broken) == "▁█"


# --- places -------------------------------------------------------------------------------


def test_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert parse("") == Location(tmp_path / "gpudiag" / "history.db")
    assert parse("off") is None
    assert parse("sqlite:////var/lib/x.db") == Location(Path("/var/lib/x.db"))
    assert parse("sqlite:///~/x.db") == Location(Path.home() / "x.db")
    for scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        assert parse(f"{scheme}://u:secret@h/d") == Location(url="postgresql+psycopg://u:secret@h/d")
    location = parse("postgresql://u:secret@h/d")
    assert location is not None
    assert "secret" not in location.shown


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///relative.db", "mysql://root:secret@h/d", "/var/lib/x.db", "on", "postgresql://"]
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(url)
    assert "secret" not in str(caught.value)


def test_the_platforms_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from platformdirs import user_data_path

    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert default_path() == user_data_path("gpudiag") / "history.db"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == user_data_path("gpudiag") / "history.db"


def test_no_write_ahead_log_on_shared_file_systems() -> None:
    assert journal_mode(0x6969) == "delete"
    assert {journal_mode(n) for n in NETWORK} == {"delete"}
    assert journal_mode(None) == "delete", "where nobody knows, the careful one"
    assert {journal_mode(n) for n in (0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x794C7630)} == {"wal"}


def test_the_kernel_tells_the_file_system(tmp_path: Path) -> None:
    assert magic(Path("/proc")) == 0x9FA0
    assert magic(Path("/sys")) == 0x62656572
    assert magic(tmp_path / "absent") is None


def test_with_a_rollback_journal_everything_works(tmp_path: Path) -> None:
    # What a network file system gets, on a disk that is here: the decision above is tested by its numbers.
    path = tmp_path / "history.db"
    samples = {KEY: Seen(Cell("ok", 1.0), T0)}
    for number, journal in enumerate(("wal", "delete")):  # a file that was moved there
        writer = (
            Writer(Location(path), 30, WORDS, FileStore(path, journal)) if number else Writer(Location(path), 30, WORDS)
        )
        for step in range(3):
            writer.write(
                Batch("n", T0 + number * MINUTE + step, "live", "", "r", "ok", "yes", Text("t"), 0, {}, samples, (), ())
            )
        writer.close()
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA journal_mode").fetchone() == (journal,)
        connection.close()
    assert not list(tmp_path.glob("*-wal"))
    with _reader(path) as r:
        assert len(r.runs()) == 6
