"""A command in a process of its own: its answer, its words when it has none, and its end when nobody wants it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Thread

import pytest

from assistant.trace import child
from knowledge.errors import InputError
from tests.cases import each
from tests.conftest import ROOT
from tests.trace_files import data_bound

STARVED = str(ROOT / "assistant" / "demos" / "data-starved" / "rank0.json.gz")


class _GivenUp(BaseException):
    pass


@pytest.mark.process
def test_it_answers_as_the_command_does() -> None:
    told = child.run(("--format", "json", "trace", "summary", STARVED), lambda: None)
    assert told.code == 1
    data = told.data()
    assert data["schema"] == "gpudiag/trace-summary/1"
    assert data["headline"]["label"] == "DEGRADED"
    assert "Data-bound: " in data["headline"]["text"]
    assert "69.4 %" in data["headline"]["text"]


@pytest.mark.process
def test_an_error_is_told_in_the_commands_own_words(tmp_path: Path) -> None:
    bad = tmp_path / "notes.json"
    bad.write_text("hello")
    with pytest.raises(InputError, match=r"is no trace") as caught:
        child.run(("trace", "summary", str(bad)), lambda: None)
    assert "torch.profiler" in str(caught.value)
    assert not str(caught.value).startswith("gpudiag:")


def test_what_is_no_json_is_told() -> None:
    with pytest.raises(InputError):
        child.Told(0, "half an ans", ("cut",)).data()


@pytest.mark.process
def test_giving_up_ends_the_process_and_leaves_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "never.json"
    os.mkfifo(pipe)  # nobody writes: it would wait for ever
    calls: list[int] = []

    def check() -> None:
        calls.append(1)
        if len(calls) > 3:
            raise _GivenUp

    before = _children()
    with pytest.raises(_GivenUp):
        child.run(("trace", "summary", str(pipe)), check)
    assert _children() <= before


def _children() -> set[str]:
    mine = str(os.getpid())
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if stat[1] == mine:
                found.add(entry.name)
    return found


@each(
    ("piece", "said"),
    [
        (b"\r\x1b[Kreading rank0.json 4 %\r\x1b[Kreading rank0.json 43 %", "reading rank0.json 43 %"),
        (b"\r\x1b[Ktraces 3/8", "traces 3/8"),
        (b"gpudiag: something else\r\n", ""),
        (b"\r\x1b[K", ""),
    ],
)
def test_progress_is_the_last_that_was_said(piece: bytes, said: str) -> None:
    assert child._progress(piece) == said


@pytest.mark.process
def test_a_long_reading_tells_how_far_it_is(tmp_path: Path) -> None:
    """Progress is told on a terminal only: it is there that the command believes to be."""
    text = Path(data_bound(0.5, steps=20).save(tmp_path / "whole.json")).read_bytes()
    pipe = tmp_path / "rank0.json"
    os.mkfifo(pipe)

    def dribble() -> None:
        with pipe.open("wb") as out:
            for n in range(10):
                out.write(text[n * len(text) // 10 : (n + 1) * len(text) // 10])
                out.flush()
                time.sleep(0.15)

    writer = Thread(target=dribble, daemon=True)
    writer.start()
    said: list[str] = []
    told = child.run(("--format", "json", "trace", "kernels", str(pipe)), lambda: None, said.append)
    writer.join(10)
    assert told.data()["ranks"][0]["kernels"]
    assert any(line.startswith("reading rank0.json") for line in said)


@pytest.mark.process
@pytest.mark.parametrize(("steps", "kind"), [(2, "trace"), (3, "iterations")])
def test_the_window_is_that_of_the_steps_where_there_are_enough(tmp_path: Path, steps: int, kind: str) -> None:
    path = data_bound(0.5, steps=steps).save(tmp_path / "rank0.json")
    for action in ("summary", "kernels"):
        told = child.run(("--format", "json", "trace", action, "--window", "auto", path), lambda: None)
        assert told.data()["ranks"][0]["window"]["kind"] == kind
