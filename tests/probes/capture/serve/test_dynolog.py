"""Orders to jobs that listen for dynolog: the protocol against clients of our own, and against a real libkineto."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.model import Item, Process, Window
from probes.capture.serve import dynolog
from tests.live_jobs import torch_python

pytestmark = pytest.mark.process

HEADER = struct.Struct("<Q32s")
CLIENT = """
import os, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(b"\\0dynoconfigclient-" + str(os.getpid()).encode() + b"\\0")
body = struct.pack("<iiqi", 3, 1, 0, os.getpid())
s.settimeout(10)
print("ready", flush=True)
while True:
    try:
        s.sendto(struct.pack("<Q32s", len(body), b"req") + body, b"\\0dynolog\\0")
        text = s.recv(65536)[40:]
    except OSError:
        import time
        time.sleep(0.05)
        continue
    if text:
        print(repr(text.decode()), flush=True)
        break
"""
# Its first question has no answer in time: it asks again, where somebody is there to be asked.
LATE = """\
        __import__("time").sleep(1)
        try:
            s.sendto(struct.pack("<Q32s", len(body), b"req") + body, b"\\0dynolog\\0")
        except OSError:
            print("nobody to ask", flush=True)
            break
        text = s.recv"""
JOB = """
import time, torch
torch.set_num_threads(1)
model = torch.nn.Linear(32, 32)
best = torch.optim.SGD(model.parameters(), 1e-3)
step = 0
while True:
    step += 1
    if step == 5:  # the first iterations import for seconds
        print("ready", flush=True)
    model(torch.randn(8, 32)).sum().backward()
    best.step()
    best.zero_grad()
    time.sleep(0.005)
"""


class Child:
    """A process that polls, in namespaces of its own where `before` makes them."""

    def __init__(self, program: str, *before: str, python: str = sys.executable) -> None:
        self.child = subprocess.Popen(
            [*before, python, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "KINETO_USE_DAEMON": "1"}, start_new_session=True,
        )  # fmt: skip
        assert self.line() == "ready"
        pid = self.child.pid
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if before else []
        self.pid = int(below[0]) if below else pid
        spaces = next(x for x in Path(f"/proc/{self.pid}/status").read_text().splitlines() if x.startswith("NSpid"))
        self.process = Process(self.pid, 0, "python", inner_pid=int(spaces.split()[-1]))

    def line(self) -> str:
        assert self.child.stdout is not None
        return self.child.stdout.readline().strip()

    def end(self) -> None:
        for pid in {self.pid, self.child.pid}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        self.child.wait(60)
        assert self.child.stdout is not None
        self.child.stdout.close()


@pytest.fixture
def children() -> Iterator[list[Child]]:
    found: list[Child] = []
    yield found
    for child in found:
        child.end()


def test_each_job_gets_its_own_order_once(children: list[Child]) -> None:
    children += [Child(CLIENT), Child(CLIENT)]
    orders = [dynolog.Order(c.process, f"A={n}\n") for n, c in enumerate(children)]
    assert all(dynolog.listens(c.process) for c in children)
    with dynolog.handing_out(orders) as refusal:
        assert refusal is None
        assert all(o.taken for o in orders)
    assert [c.line() for c in children] == ["'A=0\\n'", "'A=1\\n'"]


@pytest.mark.machine
def test_a_job_in_namespaces_of_its_own(children: list[Child]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root makes a network namespace")
    children += [Child(CLIENT, "unshare", "--net", "--pid", "--fork", "--kill-child") for _ in range(2)]
    orders = [dynolog.Order(c.process, f"A={n}\n") for n, c in enumerate(children)]
    assert {c.process.inner_pid for c in children} == {1}  # the same pid inside: the kernel tells them apart
    with dynolog.handing_out(orders) as refusal:
        assert refusal is None
    assert [c.line() for c in children] == ["'A=0\\n'", "'A=1\\n'"]


def test_a_dynolog_that_runs_is_left_alone(children: list[Child]) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(dynolog.ADDRESS)
        children.append(Child(CLIENT))
        order = dynolog.Order(children[0].process, "A=0\n")
        with dynolog.handing_out([order], deadline=1) as refusal:
            assert refusal is not None
            assert refusal.code == "dynolog-runs"
            assert not order.taken


def test_nobody_asks(children: list[Child]) -> None:
    children.append(Child("import time\nprint('ready', flush=True)\ntime.sleep(60)"))
    order = dynolog.Order(children[0].process, "A=0\n")
    assert not dynolog.listens(children[0].process)
    with dynolog.handing_out([order], deadline=0.3) as refusal:
        assert refusal is None
        assert not order.taken


def test_a_job_that_gave_up_waiting_reads_the_order_when_it_asks_again(children: list[Child]) -> None:
    """libkineto waits 50 ms for an answer. A starved gpudiag is later than that; the next question still gets the order."""
    children.append(Child(CLIENT.replace("        text = s.recv", LATE)))
    order = dynolog.Order(children[0].process, "A=0\n")
    with dynolog.handing_out([order]) as refusal:
        assert refusal is None
        assert order.taken
        assert children[0].line() == "'A=0\\n'"


def test_a_strangers_claim_to_be_another_process(children: list[Child]) -> None:
    """The order goes by who the kernel says is asking."""
    children.append(Child("import time\nprint('ready', flush=True)\ntime.sleep(60)"))
    children.append(Child(CLIENT.replace("0, os.getpid())", f"0, {children[0].pid})")))
    order = dynolog.Order(children[0].process, "A=0\n")
    with dynolog.handing_out([order], deadline=0.5):
        assert not order.taken


@given(st.binary(max_size=200))
def test_no_message_is_too_odd(data: bytes) -> None:
    found = dynolog.asking(data)
    assert found is None or len(found) <= 40


@given(st.lists(st.integers(1, 2**31 - 1), min_size=1, max_size=20))
def test_pids_of_a_request(pids: list[int]) -> None:
    body = struct.pack(f"<iiq{len(pids)}i", 3, len(pids), 0, *pids)
    assert dynolog.asking(HEADER.pack(len(body), b"req") + body) == tuple(pids)
    assert dynolog.asking(HEADER.pack(len(body), b"ctxt") + body) is None
    assert dynolog.asking(HEADER.pack(len(body) + 1, b"req") + body) is None


def test_an_order_of_a_time_and_of_iterations() -> None:
    timed = dynolog.order(Window(500_000_000), frozenset({Item.TORCH}), "/tmp/a.json", 1_700_000_000_123)
    assert "ACTIVITIES_DURATION_MSECS=500\n" in timed
    assert "PROFILE_START_TIME=1700000000123\n" in timed
    assert "PROFILE_REPORT_INPUT_SHAPES=false\n" in timed
    counted = dynolog.order(Window(iterations=5, skip=3), frozenset({Item.SHAPES}), "/tmp/a.json")
    assert "ACTIVITIES_ITERATIONS=5\n" in counted
    assert "DURATION" not in counted
    with pytest.raises(ValueError, match="json"):
        dynolog.order(Window(), frozenset(), "/tmp/a.json\nX=1.json")


@pytest.mark.machine
def test_a_real_job_writes_its_trace_of_a_time_and_then_of_iterations(children: list[Child], tmp_path: Path) -> None:
    children.append(Child(JOB, python=torch_python()))
    process = children[0].process
    for window in (Window(300_000_000), Window(iterations=4)):
        log = str(tmp_path / f"{window.iterations}.json")
        order = dynolog.Order(process, dynolog.order(window, frozenset({Item.TORCH}), log))
        with dynolog.handing_out([order]) as refusal:
            assert refusal is None
            assert order.taken
            file = Path(dynolog.written(log, process))
            until = time.monotonic() + 60
            while not file.exists() and time.monotonic() < until:
                time.sleep(0.1)
        events = json.loads(file.read_text())["traceEvents"]
        steps = sum(str(e.get("name", "")).startswith("Optimizer.step") for e in events)
        assert any(e.get("name") == "aten::addmm" for e in events)
        assert not window.by_iterations or steps in (window.iterations, window.iterations + 1)
