"""Where the log of a source lies: bundles, files of any size, this machine as it writes."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant import config
from assistant.live.loglines import LogLine
from assistant.live.logmarks import judge_of
from assistant.live.logsource import KEPT, Log, Tail, logs
from assistant.session.state import Origin
from knowledge.observation import Clock
from rules.loader import load
from tests.conftest import ROOT

DEMOS = ROOT / "assistant" / "demos"
JUDGE = judge_of(load())
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus."


def settings(root: str = "") -> config.Settings:
    environ = {"GPUDIAG_HISTORY_URL": "off", "GPUDIAG_HOST_ROOT": root} if root else {"GPUDIAG_HISTORY_URL": "off"}
    return config.load({"format": None, "lang": "en", "color": None}, environ, ())


def read(log: Log) -> list[LogLine]:
    return [line for batch in log.lines(JUDGE) for line in batch]


def of(origin: Origin, root: str = "") -> list[Log]:
    return list(logs(origin, settings(root)))


@pytest.mark.parametrize("bundle", sorted(DEMOS.glob("*/bundle")), ids=lambda p: p.parent.name)
def test_a_bundle_shows_its_kernel_log(bundle: Path) -> None:
    found = of(Origin(bundle=str(bundle)))
    first = read(found[0])
    assert first
    assert all(line.at is not None for line in first)
    assert all(log.why for log in found if not log.data)


def test_what_the_diagnosis_saw_is_marked() -> None:
    found = of(Origin(bundle=str(DEMOS / "off-the-bus" / "bundle")))
    marked = [line.decoded.topic for line in read(found[0]) if line.decoded]
    assert "xid 79" in marked


def test_a_bundle_that_is_none_says_so(tmp_path: Path) -> None:
    (log,) = of(Origin(bundle=str(tmp_path)))
    assert "no bundle" in log.why.en


def test_files_are_logs_or_left_to_others() -> None:
    folder = DEMOS / "double-bit-error"
    origin = Origin(logs=("kern.log",), inputs=("nvidia-smi-q.txt",), folder=str(folder))
    (log,) = of(origin)
    assert log.title == "kern.log"
    assert [line.decoded.topic for line in read(log) if line.decoded][:2] == ["xid 48", "xid 63"]
    (same,) = of(Origin(inputs=("nvidia-smi-q.txt", "kern.log"), folder=str(folder)))  # known by its content
    assert read(same) == read(log)


@pytest.mark.slow
def test_of_a_log_that_is_too_long_the_end_is_held_and_every_event(tmp_path: Path) -> None:
    more, path = 4_000, tmp_path / "kern.log"
    with path.open("w") as out:
        out.write(f"[    1.000000] {XID}\n")
        out.writelines(
            f"[{n}.000000] a line of the kernel that means nothing at all, number {n}\n"
            for n in range(2, KEPT + more + 1)
        )
    (log,) = of(Origin(logs=(str(path),)))
    made = read(log)
    assert made[0].number == 1
    assert made[0].decoded is not None
    assert made[0].decoded.topic == "xid 79"
    assert made[-1].number == KEPT + more
    assert made[-1].message.endswith(f"number {KEPT + more}")
    assert KEPT <= len(made) <= KEPT + 2
    assert [line.number for line in made[1:]] == list(range(made[1].number, KEPT + more + 1))


@pytest.mark.process
def test_packed_and_strange_files(tmp_path: Path) -> None:
    packed, strange = tmp_path / "kern.log.1.gz", tmp_path / "journal"
    packed.write_bytes(gzip.compress(f"[ 1.0] {XID}\n".encode()))
    strange.write_bytes(b"LPKSHHRH" + bytes(200))
    one, other, gone = of(Origin(logs=(str(packed), str(strange), str(tmp_path / "none"))))
    assert read(one)[0].decoded is not None
    assert "journal" in other.why.en
    assert not read(other)
    assert "no such file" in gone.why.en


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A file system with a ring buffer."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "proc").mkdir()
    records = [f"6,{n},{n}000000,-;line {n} of the kernel\n" for n in range(20)]
    (tmp_path / "dev" / "kmsg").write_text("".join(records) + f"4,20,20000000,-;{XID}\n")
    (tmp_path / "proc" / "stat").write_text("cpu 1 2 3\nbtime 1790000000\n")
    return tmp_path


@pytest.mark.process
def test_this_machine_is_read_and_its_boot_clock_placed(machine: Path) -> None:
    found = of(Origin(), str(machine))
    ring = next(log for log in found if log.title == "/dev/kmsg")
    made = read(ring)
    assert [line.message for line in made][:2] == ["line 0 of the kernel", "line 1 of the kernel"]
    assert (made[-1].at, made[-1].clock) == ((1790000000 + 20) * 10**9, Clock.REALTIME)
    assert made[-1].decoded is not None


@pytest.mark.process
def test_nothing_that_can_be_read_says_why(tmp_path: Path) -> None:
    found = of(Origin(), str(tmp_path))
    assert not [log for log in found if log.data and not log.title.startswith("dmesg")]
    assert all(log.why for log in found if not log.data)


@pytest.mark.process
def test_what_is_written_is_heard_once(machine: Path) -> None:
    path = machine / "dev" / "kmsg"
    tail = Tail(JUDGE, str(machine))
    tail.start()
    try:
        _until(lambda: bool(tail.source))
        assert tail.source.endswith("/dev/kmsg")
        with path.open("a") as out:
            out.write("6,21,21000000,-;written while the log was read\n")
        ring = next(log for log in of(Origin(), str(machine)) if log.title == "/dev/kmsg")
        known = read(ring)
        time.sleep(0.3)
        tail.after(known, known[-1].number)
        assert tail.take(0.5) == []
        with path.open("a") as out:
            out.write(f"4,22,22000000,-;{XID}\n")
        new = _heard(tail)
        assert [line.number for line in new] == [known[-1].number + 1]
        assert new[0].decoded is not None
        assert new[0].decoded.topic == "xid 79"
        assert abs((new[0].at or 0) - time.time_ns()) < 60 * 10**9
    finally:
        tail.close()


def _heard(tail: Tail) -> list[LogLine]:
    found: list[LogLine] = []
    end = time.monotonic() + 20.0
    while not found:
        assert time.monotonic() < end
        found += tail.take(0.5)
    return found


def _until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
