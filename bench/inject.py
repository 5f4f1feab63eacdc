"""What an injection does to a process that is hard to stop well, counted and measured.

    python bench/inject.py [--version 3.11] [--count 500] [--kills 200] [--child] [--root FOLDER]

For each Python that is found: `--count` injections into the malloc/GC/import storm of tests/jobs/storm.py (three threads), then
`--kills` injectors that are killed (SIGKILL) at a random moment of their work. Counted: calls that ran (each must run
exactly once), refusals, and faults: the storm's death, or anything it prints. Measured: how long the one borrowed thread was
stopped. `--child`: each injection through `inject.run`, with its child process and checks (about 0.2 s each).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from probes.capture.inject import _injector, inject  # noqa: E402 - needs the path above
from probes.capture.model import Process, Rung  # noqa: E402
from tests import live_jobs  # noqa: E402

CODE = "import os; f = os.open(os.environ['TMPDIR'] + '/hits', os.O_WRONLY | os.O_APPEND | os.O_CREAT); os.write(f, b'.'); os.close(f)"
DEADLINE = 20.0
KILL_WITHIN = 0.02  # seconds: the work of an injector takes about 10 ms, 1 ms of it with a thread borrowed


@dataclass(slots=True)
class Tally:
    """What became of the injections into one storm."""

    ran: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    stopped: list[float] = field(default_factory=list)  # ms
    how: Counter[str] = field(default_factory=Counter)
    killed: int = 0
    hits: int = 0  # calls that the storm really ran
    fault: str = ""


def fork(pid: int, kill_after: float | None = None) -> dict[str, Any] | None:
    """One injection in a fork of this process; None when it was killed before it answered."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        with suppress(OSError):
            os.nice(-10)  # as the real one
        answer = _injector.perform(
            {"pid": pid, "code": CODE, "rung": Rung.PENDING_CALL, "until": time.monotonic() + DEADLINE}
        )
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reader, "rb") as file:
        said = file.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else None


def through_child(process: Process) -> dict[str, Any]:
    """One injection as gpudiag makes it."""
    try:
        done = inject.run(process, CODE, rungs=[Rung.PENDING_CALL], deadline=DEADLINE)
    except inject.InjectError as error:
        return {"refusal": {"code": error.refusal.code, "why": {"en": error.refusal.why.en}}}
    return {"seconds": done.seconds, "detail": done.detail, "stopped_ns": done.stopped_ns}


def storm(interpreter: str, count: int, kills: int, child: bool, prefix: Sequence[str] = ()) -> Tally:
    """Inject into one storm."""
    tally = Tally()
    with live_jobs.Job("storm.py", interpreter=interpreter, prefix=prefix) as job:
        process = Process(job.pid, 0, "storm")
        for turn in range(count + kills):
            if turn < count:
                answer = through_child(process) if child else fork(job.pid)
            else:
                answer = fork(job.pid, random.uniform(0, KILL_WITHIN))
                tally.killed += answer is None
            _count(tally, answer)
            if not job.alive:
                tally.fault = f"the storm ended at injection {turn + 1}"
                break
        with suppress(AssertionError):
            job.advance(3, 20.0)
        tally.fault = tally.fault or _faults(job)
        hits = job.folder / "hits"
        tally.hits = hits.stat().st_size if hits.exists() else 0
    return tally


def _count(tally: Tally, answer: dict[str, Any] | None) -> None:
    if answer is None:
        return
    if "refusal" in answer:
        tally.refused[answer["refusal"]["code"] + ": " + answer["refusal"]["why"]["en"]] += 1
        return
    tally.ran += 1
    tally.stopped.append(answer["stopped_ns"] / 1e6)
    tally.how["running" if " running" in answer["detail"] else "asleep"] += 1


def _faults(job: live_jobs.Job) -> str:
    """What is wrong with the storm; empty: nothing."""
    if not job.alive:
        return "ended"
    if job.output.strip() != "ready":
        return "printed: " + job.output.strip().splitlines()[-1]
    status = Path(f"/proc/{job.pid}/status").read_text()
    state = next(s for s in status.splitlines() if s.startswith("State:")).split()[1]
    if "TracerPid:\t0\n" not in status or state in "tT":
        return f"state {state}, traced"
    before, until = job.iterations, time.monotonic() + 20
    while job.iterations == before:
        if time.monotonic() > until:
            return "does not go on"
        time.sleep(0.05)
    return ""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="", help="only this one: 3.11")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--front", action="store_true", help="the storm at nice -10: measures as on an idle machine")
    parser.add_argument("--root", default=os.environ.get("GPUDIAG_PYTHON314_ROOT", ""), help="a root with Python 3.14")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # a storm must not be left behind
    if asked.root:
        os.environ["GPUDIAG_PYTHON314_ROOT"] = asked.root
    print("python  asked   ran  hits  killed  refused  stop: median   p99   longest ms  asleep/running  faults")
    for version, interpreter in live_jobs.pythons():
        name = ".".join(map(str, version))
        if asked.version not in ("", name):
            continue
        t = storm(interpreter, asked.count, asked.kills, asked.child, ("nice", "-n", "-10") if asked.front else ())
        stops = sorted(t.stopped) or [0.0]
        print(
            f"{name:6} {asked.count + asked.kills:6} {t.ran:5} {t.hits:5} {t.killed:7} {sum(t.refused.values()):8} "
            f"{statistics.median(stops):13.2f} {stops[int(len(stops) * 0.99) - 1 if len(stops) > 1 else 0]:5.1f} {stops[-1]:11.1f}  "
            f"{t.how['asleep']:6}/{t.how['running']:<7} {t.fault or 'none'}",
            flush=True,
        )
        for why, number in t.refused.most_common(3):
            print(f"        refused {number} times: {why}")


if __name__ == "__main__":
    main()
