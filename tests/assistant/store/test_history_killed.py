"""Four writers that are killed again and again lose no row that they acknowledged."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.assistant.store.history_lab import T0, reader
from tests.command_server import Command, CommandServer

pytestmark = pytest.mark.machine
ROUNDS = 4
# Each writer is a node of its own; two of them share one, as `watch` and a check by hand do. A line is printed
# once `remember` has returned: that is the acknowledgement.
WRITER = """
import sys
from dataclasses import replace
from assistant import store
from assistant.store import patience
from tests.assistant.store import history_lab as lab
url, host, start, step = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
recorder = store.Recorder(url, rules=lab.rules().rules)
device = lab.gpu("0000:3b:00.0", host)
first = lab.plain([lab.seen("gpu.pcie.replay", 0, lab.T0, subject=device)], lab.T0)
if sys.argv[5] == "soon":
    print("ready", flush=True)
for number in range(start, start + 100_000, step):
    at = lab.T0 + number * lab.SECOND
    batch = [lab.seen("gpu.pcie.replay", number, at, subject=device), *[
        lab.seen(f"gpu.ecc.volatile.uncorrected.{part}", number, at, subject=device) for part in ("total", "dram", "sram")]]
    seen = lab.plain(batch, at)
    while (said := recorder.remember(host, seen, (), "watch", boot_id="b")) and "does not answer within" in said:
        patience.answered(url)  # a machine that is busy: it is asked again
    print(f"failed {said}" if said else f"kept {number}", flush=True)
    if number == start and sys.argv[5] == "late":
        print("ready", flush=True)
"""


def start(server: CommandServer, url: str, host: str, first: int, step: int, ready: str = "soon") -> Command:
    return server.start([url, host, str(first), str(step), ready], env=os.environ, program=WRITER)


def test_no_acknowledged_row_is_lost(command_server: CommandServer, url: str) -> None:
    rng = random.Random(7)
    hosts = ("n1", "n2", "shared", "shared")
    acknowledged: dict[str, set[int]] = {h: set() for h in hosts}
    for turn in range(ROUNDS):
        # the two on one node write odd and even seconds, and each round goes on where none has written
        writers = [start(command_server, url, h, turn * 10_000 + i % 2, 2, "late") for i, h in enumerate(hosts)]
        for writer, host in zip(writers, hosts, strict=True):
            acknowledged[host].add(int(writer.stdout.readline().removeprefix("kept ")))
            assert writer.stdout.readline() == "ready\n"
            acknowledged[host].add(int(writer.stdout.readline().removeprefix("kept ")))
        time.sleep(rng.uniform(0, 0.25))
        for writer in rng.sample(writers, len(writers)):
            time.sleep(rng.uniform(0, 0.02))
            writer.send_signal(signal.SIGKILL)
        for writer, host in zip(writers, hosts, strict=True):
            out, err = writer.communicate(timeout=30)
            lines = out.splitlines()
            assert not [x for x in lines if x.startswith("failed")], (lines[-1], err)
            whole = lines if out.endswith("\n") else lines[:-1]
            acknowledged[host] |= {int(x.split()[1]) for x in whole if x.startswith("kept")}
    assert all(len(numbers) > ROUNDS for numbers in acknowledged.values()), acknowledged
    with reader(url) as r:
        for host, numbers in acknowledged.items():
            runs = {(run.as_of - T0) // 10**9 for run in r.runs(host, limit=1_000_000)}
            assert numbers <= runs, sorted(numbers - runs)[:5]
            for line in (
                *r.lines(host, "gpu.pcie.replay"),
                *(
                    x
                    for part in ("total", "dram", "sram")
                    for x in r.lines(host, f"gpu.ecc.volatile.uncorrected.{part}")
                ),
            ):
                kept = {int(s.cell.num or 0) for s in line.samples}
                assert numbers <= kept, (host, line.key, sorted(numbers - kept)[:5])
                assert kept == runs, "and no run is there without its samples"
                assert all((s.at - T0) // 10**9 == s.cell.num for s in line.samples)


def test_the_file_is_sound_after_each_kill(command_server: CommandServer, path: Path) -> None:
    import sqlite3

    url = f"sqlite:///{path}"
    for turn in range(4):
        writer = start(command_server, url, "n1", turn * 1000, 1)
        assert writer.stdout.readline() == "ready\n"
        time.sleep(0.05 * turn)  # the first ones die while the tables are made
        writer.kill()
        writer.communicate()
        if path.exists():
            connection = sqlite3.connect(path)
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            connection.close()


@pytest.mark.parametrize("count", [6])
def test_many_processes_begin_one_history(command_server: CommandServer, empty_url: str, count: int) -> None:
    writers = [start(command_server, empty_url, f"h{i}", 0, 1) for i in range(count)]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdout.readline() == "kept 0\n"
        writer.kill()
        writer.communicate()
    with reader(empty_url) as r:
        assert len(r.hosts()) == count
