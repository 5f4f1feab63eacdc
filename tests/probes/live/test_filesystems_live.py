"""The filesystems collector and probe against real mounts: full, read-only, dead and hanging ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from knowledge.observation import Observation, Status
from probes.base import Context
from probes.host import CallKind, RecordingHost, ReplayHost, Reply
from probes.live import ProbeRequest
from probes.live.filesystems import MAIN, PROBE
from probes.live_host import LiveHost
from probes.parse.filesystems_snapshot import FORMAT
from tests.components import cannot
from tests.probes.live.machine import NOBODY, collect, collector, in_own_mounts, need_mounts, need_nobody, tree
from tests.probes.parse.smi_case import all_of, one, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

pytestmark = pytest.mark.process

ROOTFS = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw"

# Mounts a FUSE file system whose server holds the channel and never answers, one whose server has gone, and
# runs the words that follow. Both are mounted with mount(2): no helper of FUSE is needed.
FUSE = """
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def mount(where, source):
    channel = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={channel},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(source.encode(), where.encode(), b"fuse.test", 0, options):
        sys.exit("cannot mount: " + os.strerror(ctypes.get_errno()))
    return channel
hanging, dead = sys.argv[1:3]
held = [mount(hanging, "server-1:/x")]
os.close(mount(dead, "server-2:/y"))
for more in sys.argv[3].split():
    held.append(mount(more, "server-3:/z"))
done = subprocess.run(sys.argv[4:], capture_output=True, text=True, timeout=30)
for channel in held:
    os.close(channel)
print(done.stdout)
"""


def read(text: str) -> list[Observation]:
    got = FORMAT.parse(text, Context("x"))
    assert_in_vocabulary(got, FORMAT)
    return got


def parse(document: dict[str, Any]) -> list[Observation]:
    return read(json.dumps(document))


def test_the_root_of_this_machine_is_told() -> None:
    got = parse(collect("filesystems"))
    assert value(got, "fs.state", "/") == "ok"
    figures = os.statvfs("/")
    share = value(got, "fs.used.share", "/")
    assert isinstance(share, float)
    used = figures.f_blocks - figures.f_bfree
    assert share == pytest.approx(100 * used / (used + figures.f_bavail), abs=1)


def test_the_probe_asks_one_thing_and_its_recording_says_the_same() -> None:
    with LiveHost() as live:
        host = RecordingHost(live)
        got = PROBE.collect(ProbeRequest(PROBE.deadline), host)
        again = PROBE.collect(ProbeRequest(PROBE.deadline), ReplayHost(host.name, host.replies, host.as_of))
    assert [r.title for r in host.replies] == ["snapshot filesystems"]
    assert got == again
    assert all_of(got, "fs.state", "/")


def test_an_ordinary_user_sees_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    python = need_nobody()
    text = Path(collector("filesystems")[3]).read_text()
    done = subprocess.run(
        [*NOBODY, python, "-I", "-B", "-", "--deadline", "5"],
        input=text,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert value(read(done.stdout), "fs.state", "/") == "ok"


@pytest.mark.parametrize(
    ("status", "detail"), [(Status.TIMEOUT, "no end after 5 s"), (Status.FAILED, "was ended by signal 9")]
)
def test_without_a_snapshot_the_main_facts_say_why(status: Status, detail: str) -> None:
    host = ReplayHost("n1", [Reply(CallKind.SNAPSHOT, ("filesystems",), status, detail=detail)])
    got = PROBE.collect(ProbeRequest(5.0), host)
    assert {(o.fact, o.status) for o in got} == {(fact, status) for fact in MAIN}
    assert all(detail in o.detail for o in got)


def test_a_full_and_a_read_only_one() -> None:
    need_mounts()
    need_nobody()
    done = in_own_mounts(
        """
        exec 9< "$4"  # the checkout may lie below what is covered
        mount -t tmpfs -o size=4m,nr_inodes=20 none /tmp
        head -c 5000000 /dev/zero > /tmp/big 2>/dev/null || true
        mount -t tmpfs -o size=4m,nr_inodes=8 none /home
        for i in 1 2 3 4 5 6 7 8 9; do touch /home/$i 2>/dev/null || true; done
        mount -t tmpfs -o size=4m none /var/tmp
        mount -o remount,ro /var/tmp
        exec /usr/bin/python3 -I -B /dev/fd/9
        """,
        *collector("filesystems"),
    )
    got = read(done.stdout)
    assert value(got, "fs.used.share", "/tmp") == 100.0
    assert value(got, "fs.available", "/tmp") == 0
    assert value(got, "fs.inodes.used.share", "/home") == 100.0
    assert value(got, "fs.read_only", "/var/tmp") is True
    assert value(got, "fs.turned_read_only", "/var/tmp") is False


def test_a_read_only_bind_mount_is_not_taken_for_the_file_system() -> None:
    need_mounts()
    need_nobody()
    done = in_own_mounts(
        """
        exec 9< "$4"
        mount -t tmpfs -o size=4m none /tmp
        mkdir /tmp/a
        mount --bind /tmp/a /home
        mount -o remount,bind,ro /home
        exec /usr/bin/python3 -I -B /dev/fd/9
        """,
        *collector("filesystems"),
    )
    got = read(done.stdout)
    assert value(got, "fs.read_only", "/tmp") is False
    assert not all_of(got, "fs.state", "/home")


def disk(folder: Path, script: str, *words: str) -> str:
    """A real ext4 file system on a loop device, mounted at ``$2``, and what is printed by `script`."""
    need_mounts()
    image, point = folder / "disk", folder / "point"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(8 << 20)
    made = subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        cannot("loop", f"no ext4 can be made here: {made.stderr.strip()}")
    before = 'mount -o loop,errors=remount-ro "$1" "$2" || exit 77\n'
    done = in_own_mounts(before + script, str(image), str(point), *words)
    if done.returncode == 77:
        cannot("loop", f"no loop device here: {done.stderr.strip()}")
    return done.stdout


def test_a_file_system_that_is_read_only_behind_a_writable_mount(tmp_path: Path) -> None:
    # The state that an error leaves, made by a second mount: an error would stand in this machine's kernel log.
    script = """
        mkdir -p "$2.other"
        mount --bind "$2" "$2.other"
        mount -o remount,ro "$2.other"
        shift 2
        exec "$@"
        """
    got = read(disk(tmp_path, script, *collector("filesystems")))
    assert value(got, "fs.turned_read_only", str(tmp_path / "point")) is True
    assert value(got, "fs.errors", str(tmp_path / "point")) == 0


def test_a_file_system_after_an_error(tmp_path: Path) -> None:
    if "ext4-errors" not in os.environ.get("GPUDIAG_REQUIRE", "").split(","):
        pytest.skip(
            "writes an ext4 error into the kernel log of this machine: only when GPUDIAG_REQUIRE names ext4-errors"
        )
    script = """
        device=$(findmnt -n -o SOURCE "$2")
        echo test > /sys/fs/ext4/${device##*/}/trigger_fs_error
        shift 2
        exec "$@"
        """
    got = read(disk(tmp_path, script, *collector("filesystems")))
    assert value(got, "fs.turned_read_only", str(tmp_path / "point")) is True
    assert value(got, "fs.errors", str(tmp_path / "point")) == 1


def fuse(tmp_path: Path, more: int, *words: str) -> tuple[list[Observation], float]:
    need_mounts()
    if not Path("/dev/fuse").exists():
        cannot("mounts", "the kernel has no FUSE")
    names = [tmp_path / name for name in ("hanging", "dead", *(f"more{i}" for i in range(more)))]
    for path in names:
        path.mkdir()
    script = [sys.executable, "-c", FUSE, str(names[0]), str(names[1]), " ".join(map(str, names[2:]))]
    begun = time.monotonic()
    done = in_own_mounts('exec "$@"', *script, *collector("filesystems", *words))
    if "cannot mount" in done.stderr:
        cannot("mounts", done.stderr.strip())
    return read(done.stdout), time.monotonic() - begun


def test_a_server_that_never_answers_costs_a_second_and_hides_nothing(tmp_path: Path) -> None:
    got, seconds = fuse(tmp_path, 0, "--deadline", "5.0625")
    assert value(got, "fs.state", str(tmp_path / "hanging")) == "hung"
    assert value(got, "fs.state", str(tmp_path / "dead")) == "disconnected"
    assert value(got, "fs.state", "/") == "ok"
    found = one(got, "fs.used.share", str(tmp_path / "hanging"))
    assert (found.status, "within 1.0 s" in found.detail) == (Status.TIMEOUT, True)
    assert seconds > 1.0
    left = subprocess.run(
        ["pgrep", "-f", "filesystems.py --deadline 5.0625"], capture_output=True, text=True, check=False
    )
    assert left.stdout == ""  # the child that hung was ended: a wait for FUSE can be killed


def test_many_hanging_mounts_of_one_server_end_at_the_deadline(tmp_path: Path) -> None:
    got, _ = fuse(tmp_path, 4, "--deadline", "4")
    assert value(got, "fs.state", "/") == "ok"
    states = [one(got, "fs.state", str(tmp_path / f"more{i}")) for i in range(4)]
    assert states[0].value == "hung"
    assert states[-1].status is Status.TIMEOUT
    assert "not reached" in states[-1].detail


def stanza(requests: int, sent: int) -> str:
    return (
        "device filer-1:/data mounted on /data with fstype nfs4 statvers=1.1\n\topts:\trw,clientaddr=10.0.0.9\n\tage:\t900\n"
        "\tper-op statistics\n"
        f"\t        READ: {requests} {sent} 0 100 200 1 2 3 0\n\t       WRITE: 0 0 0 0 0 0 0 0 0\n"
        "device proc mounted on /proc with fstype proc\n"
    )


def test_a_sick_machine_below_a_root(tmp_path: Path) -> None:
    root = tree(tmp_path, {
        "/proc/self/mountinfo": f"{ROOTFS}\n28 27 0:52 / /data rw - nfs4 filer-1:/data rw,hard,username=eve,secret=x\n"
        "29 27 0:53 / /with\\040blank rw - fuse.s3 https://eve:pw@bucket/ rw\n30 27 0:5 / /proc rw - proc proc rw\nnonsense\n",
        "/proc/self/mountstats": stanza(100, 160), "/proc/sys/kernel/hostname": "sick-1\n",
        "/sys/fs/ext4/vda/errors_count": "4\n", "/with blank/x": "",
        "/proc/fs/lustre/osc/scratch-OST0001-osc-ffff888112345678/import": "import:\n    state: EVICTED\n",
        "/proc/fs/lustre/lov/scratch-clilov/import": "never read",
    })  # fmt: skip
    document = collect("filesystems", "--root", str(root))
    text = json.dumps(document)
    for secret in ("eve", "secret", "pw@", "never read", "clientaddr"):
        assert secret not in text, secret
    got = parse(document)
    assert {o.subject.host for o in got} == {"sick-1"}
    assert value(got, "fs.errors", "/") == 4
    assert one(got, "fs.state", "/data").status is Status.UNSUPPORTED  # no such directory below the root
    assert value(got, "fs.state", "/with blank") == "ok"
    assert value(got, "fs.rpc.retransmissions", "/data") == 60
    assert value(got, "fs.rpc.retransmissions.recent", "/data") == 0
    assert value(got, "fs.target.state", "scratch-OST0001") == "evicted"
    assert document["left_out"] == {"proc": 1, "not understood": 1}


def test_thousands_of_mounts_are_bounded(tmp_path: Path) -> None:
    lines = [f"{i} 27 0:{i} / /srv/{i} rw - nfs4 filer-{i % 90}:/x rw" for i in range(100, 3000)]
    root = tree(tmp_path, {"/proc/self/mountinfo": "\n".join([ROOTFS, *lines]) + "\n"})
    document = collect("filesystems", "--root", str(root))
    assert len(document["mounts"]) == 256
    assert document["left_out"]["beyond the first 256"] == 2901 - 256


def test_no_table_is_a_reason(tmp_path: Path) -> None:
    found = one(parse(collect("filesystems", "--root", str(tmp_path))), "fs.state")
    assert (found.status, "ENOENT" in found.detail) == (Status.UNSUPPORTED, True)


def test_its_cost() -> None:
    before = os.times()
    for _ in range(5):
        collect("filesystems")
    after = os.times()
    spent = (after.children_user + after.children_system - before.children_user - before.children_system) / 5
    assert spent < 0.1
