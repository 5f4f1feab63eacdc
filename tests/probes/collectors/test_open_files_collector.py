"""The `open_files` collector as a process: trees of /proc that write, stall and hide, and real writers on this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from knowledge.observation import Scope, Status, Subject, node
from probes.parse.open_files_snapshot import FORMAT
from tests.live_jobs import python
from tests.probes.collectors.collecting import FOLDER, collect, document, read, told
from tests.probes.collectors.sysfs_tree import answers, put
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

pytestmark = pytest.mark.process

HERE = node("gpu-1")
GIB = 1 << 30
MOUNTS = """27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
43 27 0:52 / /mnt/lustre rw,relatime - lustre mds@tcp:/scratch rw
44 27 0:30 / /dev/shm rw - tmpfs tmpfs rw"""
INSIDE = MOUNTS.replace("43 27 0:52 / /mnt/lustre", "93 27 0:52 / /checkpoints")  # as the job's container sees it


class Process:
    """One process below `root`: what it has open, and the state of its main thread."""

    def __init__(self, root: Path, pid: int, state: str = "R") -> None:
        self.folder, self.pid = root / f"proc/{pid}", pid
        put(self.folder / "mountinfo", INSIDE)
        put(self.folder / f"task/{pid}/stat", f"{pid} (python (main)) {state} 1 1")
        self.next = 3
        self.open("/dev/nvidia0", mount=27)

    def open(self, path: str, pos: int = 0, flags: str = "0100002", mount: int = 93) -> Path:
        """Another open file; its fdinfo."""
        fd, self.next = self.next, self.next + 1
        (self.folder / "fd").mkdir(parents=True, exist_ok=True)
        (self.folder / f"fd/{fd}").symlink_to(path)
        info = self.folder / f"fdinfo/{fd}"
        put(info, f"pos:\t{pos}\nflags:\t{flags}\nmnt_id:\t{mount}\nino:\t77")
        return info


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path / "proc/1/mountinfo", MOUNTS)
    put(tmp_path / "proc/sys/kernel/hostname", "gpu-1")
    return tmp_path


def look(root: Path | None, *args: str) -> dict[tuple[str, Subject], Any]:
    found = read(FORMAT, collect("open_files", root, *(args or ("--window", "0.1"))))
    assert_in_vocabulary(found, FORMAT)
    return told(found)


def process(pid: int) -> Subject:
    return Subject(Scope.PROCESS, str(pid), HERE)


def place(point: str) -> Subject:
    return Subject(Scope.OBJECT, point, HERE)


def test_a_job_that_writes_a_checkpoint(root: Path) -> None:
    job = Process(root, 4242)
    info = job.open("/checkpoints/run-7/step-900/rank0.distcp", pos=40 * GIB)
    job.open("/data/train.bin", pos=9 * GIB, flags="0100000")  # only read
    job.open("/var/log/train.log", pos=300, flags="0102001", mount=27)
    job.open("/dev/shm/nccl-Ab3dE", pos=5 * GIB, mount=44)
    job.open("/tmp/gone (deleted)", pos=5 * GIB, mount=27)
    text = info.read_text()
    answers(info, text, text.replace(str(40 * GIB), str(41 * GIB)))
    facts = look(root)
    here = process(4242)
    assert facts["process.writes_to", here] == "object:/mnt/lustre"  # as the node knows the mount
    assert (facts["process.writing.folder", here], facts["process.writing.files", here]) == (
        "/checkpoints/run-7/step-900",
        1,
    )
    assert facts["process.writing.largest", here] == 41 << 10
    assert facts["process.writing.rate", here] > 1
    assert facts["process.writing.stalled", here] is False
    assert facts["node.gpu_writers", HERE] == facts["fs.gpu_writers", place("/mnt/lustre")] == 1
    assert facts["fs.gpu_writers.largest", place("/mnt/lustre")] == 41 << 10


def test_names_of_files_stay_on_the_machine(root: Path) -> None:
    Process(root, 7).open("/checkpoints/secret-name.safetensors", pos=GIB)
    text = collect("open_files", root, "--window", "0")
    assert "secret" not in text
    assert document(text)["processes"]["7"]["files"][0]["ending"] == "safetensors"


def test_a_writer_that_is_blocked(root: Path) -> None:
    Process(root, 4242, state="D").open("/checkpoints/a.pt", pos=2 * GIB)
    moving = Process(root, 4243, state="D")
    moving.open("/checkpoints/b.pt", pos=2 * GIB)
    put(root / "proc/4243/task/4243/stat", "4243 (python) S 1 1")
    facts = look(root)
    assert facts["process.writing.stalled", process(4242)] is True
    assert facts["process.writing.stalled", process(4243)] is False
    assert facts["fs.gpu_writers", place("/mnt/lustre")] == 2


def test_who_holds_no_gpu_is_not_looked_at(root: Path) -> None:
    other = Process(root, 5)
    (other.folder / "fd/3").unlink()
    other.open("/checkpoints/a.pt", pos=GIB)
    Process(root, 6)  # holds one and writes nothing
    facts = look(root)
    assert facts == {("node.gpu_writers", HERE): 0}


def test_machines_without_processes(tmp_path: Path) -> None:
    assert look(tmp_path / "nothing")["node.gpu_writers", HERE] is Status.UNSUPPORTED
    (tmp_path / "proc").mkdir()
    assert look(tmp_path)["node.gpu_writers", HERE] == 0


def test_a_process_that_ends_while_we_look(root: Path) -> None:
    job = Process(root, 4242)
    job.open("/checkpoints/a.pt", pos=GIB)
    for path in (job.folder / "mountinfo", job.folder / "task/4242/stat"):
        path.unlink()
    assert look(root)["node.gpu_writers", HERE] is Status.DENIED


def test_this_machine_and_without_rights() -> None:
    assert ("node.gpu_writers", HERE) in look(None)
    if os.geteuid() == 0:
        found = read(FORMAT, collect("open_files", None, "--window", "0", uid=65534))
        assert told(found)["node.gpu_writers", HERE] in (0, Status.DENIED)


@pytest.mark.parametrize("name", ["interfaces", "open_files", "filesystems"])
def test_the_oldest_python_that_is_promised(name: str) -> None:
    argv = [python(3, 8), "-I", "-B", str(FOLDER / f"{name}.py"), "--deadline", "3"]
    done = subprocess.run(argv, capture_output=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    assert document(done.stdout.decode())["schema"].startswith("gpudiag/")
