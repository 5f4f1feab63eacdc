"""Continuous profiles: folding, growth, heat maps and windows as laws; and a real process whose function grows."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.cli import main
from assistant.profiles import windows
from assistant.profiles.fold import OTHER, folded, limited, thread_name
from assistant.profiles.growth import LEAST, compared
from assistant.profiles.heat import cells, heat
from assistant.store.location import parse
from assistant.store.profiles import RAW, S, Slice, Stack, slices, targets
from assistant.store.read import open_reader
from assistant.watch.stacks import Sampler
from knowledge.errors import UsageError
from tests.probes.capture.real_processes import started

NOW = 1_790_000_000 * S
names = st.sampled_from(["main", "load", "step", "tokenize", "compute"])
stacks = st.dictionaries(st.lists(names, min_size=1, max_size=5).map(lambda f: ("MainThread", *f)), st.integers(1, 500), max_size=8)  # fmt: skip


def document(samples: list[list[int]], rate: int = 1, **other: list[list[int]]) -> dict[str, Any]:
    threads: dict[str, Any] = {"7": {"name": "MainThread", "samples": samples}}
    threads |= {tid: {"name": f"Thread-{tid} (pool)", "samples": rows} for tid, rows in other.items()}
    return {
        "rate": rate, "frames": [["main", "/app/train.py", 9], ["step", "/v/lib/python3.11/site-packages/lib/m.py", 4]],
        "stacks": [[0], [0, 1]], "threads": threads, "error": "",
    }  # fmt: skip


# --- folding ------------------------------------------------------------------------------


def test_samples_by_ten_seconds() -> None:
    rows = folded(document([[0, 8 * S, 0], [8 * S, 4 * S, 1]]), "boot", 7, 1, "python train.py", 20 * S)
    main_, step = ("MainThread", "main (/app/train.py)"), ("MainThread", "main (/app/train.py)", "step (lib/m.py)")
    assert [(r.at, dict(r.stacks)) for r in rows] == [(20 * S, {main_: 8, step: 2}), (30 * S, {step: 2})]


def test_a_pool_that_waits_is_no_work() -> None:
    rows = folded(document([[0, 3 * S, 0]], t9=[[0, 3 * S, 1]]), "boot", 7, 1, "", 0)
    assert {stack[0] for r in rows for stack in r.stacks} == {"MainThread"}
    moving = folded(document([[0, 3 * S, 0]], t9=[[0, S, 1], [S, 2 * S, 0]]), "boot", 7, 1, "", 0)
    assert {stack[0] for r in moving for stack in r.stacks} == {"MainThread", "Thread-t9 (pool)"}


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 40), st.integers(0, 1)), max_size=20), st.integers(1, 20))
def test_every_sampling_counts_once(rows: list[tuple[int, int, int]], rate: int) -> None:
    samples = [[at * S, n * S // rate, stack] for at, n, stack in rows]
    found = folded(document(samples, rate), "boot", 7, 1, "", 0)
    assert sum(sum(r.stacks.values()) for r in found) == sum(n for _, n, _ in rows)
    assert all(r.at % (RAW * S) == 0 for r in found)


@given(stacks, st.integers(2, 6))
def test_what_is_beyond_the_limit_still_counts(found: dict[Stack, int], most: int) -> None:
    kept = limited(found, most)
    assert sum(kept.values()) == sum(found.values())
    assert len(kept) <= most
    assert (len(found) > most) == ((OTHER,) in kept)


def test_threads_of_one_kind_are_one_place() -> None:
    assert thread_name("Thread-12 (work)") == thread_name("Thread-3 (work)")
    assert thread_name("") == "thread"


# --- growth -------------------------------------------------------------------------------


@given(stacks)
def test_nothing_grows_against_itself(found: dict[Stack, int]) -> None:
    same = compared(found, {k: 3 * n for k, n in found.items()})
    assert same.culprit is None
    assert all(abs(c.grown) < 1e-9 for c in same.changes)


@given(stacks, stacks)
def test_growth_turns_round(a: dict[Stack, int], b: dict[Stack, int]) -> None:
    there = {c.name: c.grown for c in compared(a, b).changes}
    back = {c.name: -c.grown for c in compared(b, a).changes}
    assert there == pytest.approx(back)


def test_the_function_that_grew_is_named_and_not_its_callers() -> None:
    base: dict[Stack, int] = {
        ("MainThread", "main", "step", "compute"): 800,
        ("MainThread", "main", "step", "tokenize"): 200,
    }
    after: dict[Stack, int] = {
        ("MainThread", "main", "step", "compute"): 800,
        ("MainThread", "main", "step", "tokenize", "regex"): 600,
    }
    found = compared(base, after)
    assert found.culprit is not None
    assert found.culprit.name == "regex"
    flat = compared(
        base, {("MainThread", "main", "step", "compute"): 790, ("MainThread", "main", "step", "tokenize"): 210}
    )
    assert flat.culprit is None


def test_few_samples_tell_nothing() -> None:
    found = compared({("t", "a"): LEAST - 1}, {("t", "b"): 1000})
    assert not found.enough
    assert found.culprit is None


# --- heat ---------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 59), stacks.filter(bool)), max_size=10), st.integers(1, 80), st.booleans())
def test_a_map_holds_every_sample(rows: list[tuple[int, dict[Stack, int]]], columns: int, own: bool) -> None:
    found = [Slice(1, 7, "", at * RAW * S, RAW, table) for at, table in rows]
    drawn = heat(found, 0, 600 * S, columns, 50, own)
    assert sum(drawn.samples) == sum(sum(t.values()) for _, t in rows)
    assert len(drawn.samples) <= columns
    for _, row in drawn.rows:
        assert all((v is None) == (n == 0) for v, n in zip(row, drawn.samples, strict=True))
        assert all(v is None or 0 <= v <= 1 for v in row)
        assert len(cells(row)) == len(cells(row, fine=False)) == len(drawn.samples)


def test_shades_tell_sampled_from_not() -> None:
    assert cells([None, 0.0, 0.2, 0.5, 1.0]) == "· ░▒█"


# --- windows ------------------------------------------------------------------------------


def test_times_as_people_write_them() -> None:
    assert windows.window("2h", NOW) == (NOW - 7200 * S, NOW)
    assert windows.window("2h..1h", NOW) == (NOW - 7200 * S, NOW - 3600 * S)
    assert windows.moment("2026-09-21T14:00", NOW) == 1_790_000_000 // 86_400 * 86_400 * S + 14 * 3600 * S
    assert windows.moment("2026-09-21T16:00+02:00", NOW) == windows.moment("2026-09-21T14:00Z", NOW)
    clock = windows.moment("23:59", NOW)
    assert NOW - 86_400 * S <= clock <= NOW
    assert windows.ahead(*windows.window("2h..1h", NOW)) == windows.window("3h..2h", NOW)


@pytest.mark.parametrize("text", ["", "soon", "1h..2h", "now", "25:00", "2h..", ".."])
def test_what_is_no_window_is_said(text: str) -> None:
    with pytest.raises(UsageError):
        windows.window(text, NOW)


# --- a real process -----------------------------------------------------------------------

# Each function rests so many times: on a busy machine both take longer alike, and their shares stay. They differ so much that a
# hundred samples at random always tell it.
PROGRAM = """
import sys, time
def tokenize(times):
    for _ in range(times): time.sleep(0.002)
def compute(times):
    for _ in range(times): time.sleep(0.002)
print("ready", flush=True)
while True:
    tokenize(int(sys.argv[1]))
    compute(10)
"""


def sampled(script: Path, times: int, url: str) -> None:
    """A process that is sampled until the history has enough of it."""
    complaints: list[str] = []
    settings: Any = SimpleNamespace(history=SimpleNamespace(url=url), machine=SimpleNamespace(name="n1"))
    begun = time.time_ns() // (RAW * S) * RAW * S
    with started([sys.executable, str(script), str(times)]):
        for seconds in (5, 10, 20, 40, 80):  # a sampler that others keep from the CPU takes fewer
            sampler = Sampler(settings, [script.name], complaints.append, rate=20)
            sampler.start()
            time.sleep(seconds)
            sampler.close(60, lambda: True)
            if kept(script, url, begun) >= 1.5 * LEAST:
                break
    assert complaints == []


def kept(script: Path, url: str, since: int) -> int:
    """How many samples the history has of a script."""
    location = parse(url)
    assert location is not None
    reader = open_reader(location)
    if reader is None:  # not one was written yet
        return 0
    with reader:
        found = [t for t in targets(reader.ask) if t.name == script.name]
        return sum(sum(s.stacks.values()) for t in found for s in slices(reader.ask, t, since, since + 600 * S))


def next_slice() -> float:
    """When the ten seconds end that now is in: what is sampled then lies in another slice. Waits for it."""
    begins = (time.time() // RAW + 1) * RAW
    while time.time() < begins:
        time.sleep(begins - time.time())
    return begins


def asked(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    code = main(["history", *argv])
    return code, capsys.readouterr().out


@pytest.mark.machine
def test_the_function_that_grew_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/history.db"
    monkeypatch.setenv("GPUDIAG_HISTORY_URL", url)
    script = tmp_path / f"job_{tmp_path.name.replace('-', '_')}.py"
    script.write_text(PROGRAM)
    begun = time.time() // RAW * RAW
    assert main(["history", "diff", script.name]) == 2
    assert "nothing was sampled yet: gpudiag watch --profile" in capsys.readouterr().err
    assert json.loads(asked(capsys, "profiles", "--format", "json")[1])["targets"] == []
    sampled(script, 1, url)
    half = next_slice()
    sampled(script, 40, url)
    first, second, third = (datetime.fromtimestamp(at, UTC).isoformat() for at in (begun, half, half + 600))
    before, after = f"{first}..{second}", f"{second}..{third}"
    code, text = asked(capsys, "diff", script.name, "--before", before, "--after", after, "--format", "json")
    found: Mapping[str, Any] = json.loads(text)
    assert code == 0
    assert str(found["culprit"]).startswith("tokenize"), found
    code, text = asked(capsys, "diff", script.name, "--before", before, "--after", after)
    assert text.startswith("GREW  tokenize")
    code, text = asked(capsys, "flame", script.name, "--window", "10m", "--export", "folded")
    assert any(line.split(" ")[0].endswith("compute") or "compute" in line for line in text.splitlines())
    code, text = asked(capsys, "heat", script.name, "--window", "10m", "--format", "json")
    assert {"tokenize", "compute"} <= {row["name"].split(" ")[0] for row in json.loads(text)["functions"]}
    code, text = asked(capsys, "profiles", "--format", "json")
    assert [(t["name"], t["processes"]) for t in json.loads(text)["targets"]] == [(script.name, 2)]
    assert main(["history", "flame", "no-such-job"]) == 2
    assert script.name in capsys.readouterr().err
