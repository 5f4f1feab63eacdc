"""Programs that hang in one way each, for the tests of the hang path: plain Python, and stand-ins for ranks of torch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from probes.capture.model import Process, Target
from tests.probes.capture.real_processes import state

LIBRARY = '''
import os
def all_reduce(pipe):
    """Waits in the kernel for what never comes, as ranks wait for each other."""
    os.read(pipe, 1)
def all_gather(pipe):
    os.read(pipe, 1)
'''
TRAIN = """
import os, sys, time, threading
sys.path.insert(0, os.environ["STANDIN"])
from torch.distributed.distributed_c10d import all_gather, all_reduce
end, _ = os.pipe()
def stuck_in_tokenizer():
    time.sleep(600)
def burn():
    while True:
        sum(range(1000))
def train():
    print("ready", flush=True)
    {body}
train()
"""
READY = "print('ready', flush=True)\n"
SCRIPTS = {
    "deadlock": "import threading, time\na, b = threading.Lock(), threading.Lock()\ngate = threading.Barrier(2)\n"
    "def write_checkpoint():\n    with b:\n        gate.wait()\n        with a:\n            pass\n"
    "def train():\n    with a:\n        gate.wait()\n        with b:\n            pass\n"
    "threading.Thread(target=write_checkpoint).start()\nprint('ready', flush=True)\ntrain()\n",
    "prompt": "def look_closer():\n    breakpoint()\n    print('over')\n" + READY + "look_closer()\n",
    "stdin": "import sys\ndef ask():\n    input('overwrite? ')\n" + READY + "ask()\n",
    "sleep": "import time\ndef nap():\n    time.sleep(600)\n" + READY + "nap()\n",
    "slow": "import time\ndef step():\n    time.sleep(0.7)\n" + READY + "while True:\n    step()\n",
    "busy": "def work():\n    while True:\n        sum(range(1000))\n" + READY + "work()\n",
    "server": "import asyncio\nasync def serve():\n    s = await asyncio.start_server(lambda r, w: None, '127.0.0.1', 0)\n"
    "    print('ready', flush=True)\n    await s.serve_forever()\nasyncio.run(serve())\n",
    # vfork: the parent sleeps in state D until the child ends; the child is in pause()
    "disk": "import ctypes\nlibc = ctypes.CDLL(None)\ndef save():\n    if libc.vfork() == 0:\n        libc.pause()\n" + READY + "save()\n",
}  # fmt: skip
RESTLESS = ("slow", "busy", "burn()")


@contextmanager
def program(name: str, folder: Path) -> Iterator[Target]:
    """One of `SCRIPTS`, once it is ready, and stands still if it ever does."""
    with programs(folder, name) as found:
        yield found[name]


@contextmanager
def programs(folder: Path, *names: str) -> Iterator[dict[str, Target]]:
    """Several of `SCRIPTS`, by name."""
    with _all() as started:
        for name in names:
            path = folder / f"{name}.py"
            path.write_text(SCRIPTS[name])
            started.append(_start([sys.executable, str(path)], {}))
        for child in started:
            _ready(child)
        settled(*(child.pid for child, name in zip(started, names, strict=True) if name not in RESTLESS))
        yield {name: Target(Process(child.pid, 0, name)) for name, child in zip(names, started, strict=True)}


@contextmanager
def ranks(folder: Path, *bodies: str, job: str = "standin") -> Iterator[list[Target]]:
    """A job of stand-ins, one a body of `train`: "all_reduce(end)"."""
    library = folder / "site-packages/torch/distributed"
    library.mkdir(parents=True, exist_ok=True)
    (library / "distributed_c10d.py").write_text(LIBRARY)
    port = str(50000 + os.getpid() % 10000)
    made: list[Target] = []
    with _all() as started:
        for rank, body in enumerate(bodies):
            path = folder / f"train{rank}.py"
            path.write_text(TRAIN.replace("{body}", body))
            env = {"STANDIN": str(folder / "site-packages"), "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(len(bodies)),
                   "LOCAL_WORLD_SIZE": str(len(bodies)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                   "TORCHELASTIC_RUN_ID": f"standin-{folder.name}"}  # fmt: skip
            child = _start([sys.executable, str(path)], env)
            started.append(child)
            made.append(Target(Process(child.pid, 0, "python"), rank, rank, len(bodies), job))
        for child in started:
            _ready(child)
        settled(*(child.pid for child, body in zip(started, bodies, strict=True) if body not in RESTLESS))
        yield made


@contextmanager
def _all() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    try:
        yield started
    finally:
        for child in started:
            _end(child)


def _start(argv: list[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, env=os.environ | env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            start_new_session=True)  # fmt: skip


def _ready(child: subprocess.Popen[bytes]) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"


def settled(*pids: int, seconds: float = 10.0) -> None:
    """Until no main thread of these has run, or wanted to, for a while; programs that never rest are left after `seconds`."""
    until, last, since = time.monotonic() + seconds, "", time.monotonic()
    while time.monotonic() < until and time.monotonic() - since < 0.4:
        now = "".join(Path(f"/proc/{pid}/schedstat").read_text() for pid in pids)
        if now != last or any(state(pid) == "R" for pid in pids):
            last, since = now, time.monotonic()
        time.sleep(0.05)


def _end(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait(20)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()
