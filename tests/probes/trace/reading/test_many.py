"""Many files in worker processes: results in order, failures as results, deadlines, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from knowledge.errors import InputError
from probes.many import Outcome, cores
from probes.trace.columns import wanted
from probes.trace.reading.many import read_many
from probes.trace.reading.reader import Trace

pytestmark = pytest.mark.process

ASKED = wanted(gpu="")


def count(trace: Trace) -> int:
    return len(trace.gpu)


def die_of_seven(trace: Trace) -> int:
    """Seven kernels kill the process, as the kernel does when memory runs out; nine are refused."""
    if len(trace.gpu) == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    if len(trace.gpu) == 9:
        raise InputError("nine is too many")
    return len(trace.gpu)


def sleep_on_three(trace: Trace) -> int:
    if len(trace.gpu) == 3:
        time.sleep(600)
    return len(trace.gpu)


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """rank0 .. rank9, with as many kernels as their number says."""
    for n in range(10):
        events = [{"ph": "X", "cat": "kernel", "name": "k", "ts": i, "dur": 1} for i in range(n)]
        (tmp_path / f"rank{n}.json").write_text(json.dumps({"traceEvents": events}))
    return [str(tmp_path / f"rank{n}.json") for n in range(10)]


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_in_order_and_progress(paths: list[str], jobs: int) -> None:
    said: list[str] = []
    found = read_many(paths, count, ASKED, jobs=jobs, progress=lambda path, *_: said.append(path))
    assert [o.value for o in found] == list(range(10))
    assert said
    assert set(said) <= set(paths)


def test_one_failure_stops_no_other(paths: list[str]) -> None:
    before = children()
    found = read_many([*paths, "/no/such.json"], die_of_seven, ASKED, jobs=2)
    assert [o.value for o in found if o.ok] == [0, 1, 2, 3, 4, 5, 6, 8]
    assert "signal 9" in found[7].error
    assert found[9].error == "nine is too many"
    assert "No such file" in found[10].error
    assert children() == before or len(children() - before) <= 1  # Python's resource tracker stays


def test_a_deadline_gives_what_is_there(paths: list[str]) -> None:
    for seconds in (2, 8, 60):  # workers begin slowly on a machine that is busy
        found = read_many(paths[2:5], sleep_on_three, ASKED, jobs=2, deadline_s=seconds)
        if found[0].ok and found[2].ok:
            break
    late = f"not ready within {seconds} s"
    assert found == [Outcome(paths[2], 2), Outcome(paths[3], None, late), Outcome(paths[4], 4)]


def test_nothing_to_do() -> None:
    assert read_many([], count, ASKED) == []
    assert cores() >= 1


def test_an_interrupt_leaves_no_process(paths: list[str], tmp_path: Path) -> None:
    """Ctrl-C to the parent alone: the worker that sleeps is ended as well."""
    script = tmp_path / "run.py"
    script.write_text(
        "import os, sys, time\n"
        "from probes.trace.columns import wanted\n"
        "from probes.trace.reading.many import read_many\n"
        "def stay(trace):\n"
        "    os.write(1, f'{os.getpid()}\\n'.encode())\n"  # whole: two workers write at once
        "    time.sleep(60)\n"
        "if __name__ == '__main__':\n"
        "    read_many(sys.argv[1:], stay, wanted(gpu=''), jobs=2)\n"
    )
    run = subprocess.Popen(
        [sys.executable, str(script), *paths[:2]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True, env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert run.stdout is not None
    workers = [int(run.stdout.readline()) for _ in range(2)]
    run.send_signal(signal.SIGINT)
    assert run.wait(30) != 0
    for worker in workers:
        assert not Path(f"/proc/{worker}").exists()
