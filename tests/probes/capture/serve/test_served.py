"""Traces that a server or a job writes itself: taken over as a stranger's, and nothing is left where it was written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from probes.capture.model import Item, Outcome, Process, Rung, Target, Window
from probes.capture.serve import served
from probes.capture.whom import identity

pytestmark = pytest.mark.process

# Asks as libkineto does: a datagram socket of its own, a header and a request; then it writes where it was told.
ASKS = """
import json, os, socket, struct, sys, time
os.environ.get("KINETO_USE_DAEMON")
mine = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
mine.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
mine.bind("\\0dynoconfigclient%d" % os.getpid())
mine.settimeout(0.2)
print("ready", flush=True)
while True:
    payload = struct.pack("<iiq", 2, 1, 0) + struct.pack("<i", os.getpid())
    try:
        mine.sendto(struct.pack("<Q32s", len(payload), b"req") + payload, "\\0dynolog\\0")
        text = mine.recv(65536)[40:].decode().rstrip("\\0")
        orders = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        if orders:
            path = orders["ACTIVITIES_LOG_FILE"].removesuffix(".json") + "_%d.json" % os.getpid()
            open(path, "w").write(json.dumps({"traceEvents": [], "orders": orders}))
    except OSError:
        pass
    time.sleep(0.2)
"""


@pytest.fixture
def asking() -> Iterator[Process]:
    """A process that was started to listen to a daemon."""
    child = subprocess.Popen(
        [sys.executable, "-c", ASKS], stdout=subprocess.PIPE, env={**os.environ, "KINETO_USE_DAEMON": "1"}
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield identity.read(child.pid)
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def test_a_job_that_asks_a_daemon_writes_its_trace_and_keeps_nothing(asking: Process, tmp_path: Path) -> None:
    target = Target(asking)
    assert served.ways(target, Window()) == (Rung.DYNOLOG,)
    assert served.ways(target, Window(iterations=3)) == ()
    own = f".gpudiag-{asking.pid}-*"  # other tests' jobs have theirs there meanwhile
    parts = served.capture(target, (Item.TORCH,), Rung.DYNOLOG, Window(200_000_000), tmp_path, stop=Event())
    assert [p.outcome for p in parts] == [Outcome.OK], parts
    orders = json.loads((tmp_path / parts[0].file).read_text())["orders"]
    assert orders["ACTIVITIES_DURATION_MSECS"] == "200"
    assert not list(Path("/tmp").glob(own))


def test_an_ordinary_process_has_no_such_way() -> None:
    assert served.ways(Target(identity.read(os.getpid())), Window()) == ()


@pytest.mark.parametrize("kind", ["link", "pipe", "twice", "folder", "none"])
def test_only_a_plain_file_is_taken(kind: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    path = tmp_path / "trace.json"
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "twice":
        os.link(secret, path)
    elif kind == "folder":
        path.mkdir()
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(OSError, match=r"\w"):
        served._taken(identity.read(os.getpid()), str(path), out)
    assert list(out.iterdir()) == []


def test_the_private_folder_is_gone_whatever_was_put_there() -> None:
    process = identity.read(os.getpid())
    with suppress(KeyError), served._private(process) as place:
        Path(place, "trace.json").write_text("{}")
        os.mkfifo(Path(place, "pipe"))
        assert Path(place).stat().st_mode & 0o077 == 0
        raise KeyError
    assert not Path(place).exists()
