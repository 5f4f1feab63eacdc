"""nvidia-bug-report.log as a recorded machine: probes see in it what ``--input`` reads out of it."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from knowledge.errors import InputError
from knowledge.observation import Clock, Event, Observation, Status
from probes.base import Context
from probes.bug_report_host import BugReportHost, opened_bundle
from probes.bundle import BundleHost, write
from probes.host import CallKind, Reply
from probes.parse import bug_report
from probes.runner import run

CAPTURES = Path(__file__).parents[1] / "captures"
SMI = (CAPTURES / "smi" / "hopper-590-sick.txt").read_text()
LSPCI = (CAPTURES / "network" / "lspci.gpu-gone.txt").read_text()
REPORT = (CAPTURES / "app" / "nvidia-bug-report.log").read_text()
S = 10**9
NOON = 1_763_208_000 * S  # 2025-11-15 12:00:00 UTC
RULE = "_" * 44
XID79 = "NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus."
XID48 = "NVRM: Xid (PCI:0000:3b:00): 48, pid=2, DBE (double bit error)"


def report(*sections: tuple[str, str], date: str = "Sat Nov 15 12:00:00 UTC 2025") -> str:
    first = (
        f"Start of NVIDIA bug report log file.  Please include this file, along\nwith a description of your problem.\n\n"
        f"nvidia-bug-report.sh Version: 1\n\nDate: {date}\nuname: Linux node-7 5.15.0-100-generic #1 SMP x86_64 GNU/Linux\n"
    )
    parts = [f"{RULE}\n\n{first}"]
    for name, text in sections:
        ls = (
            f"*** ls: -rw-r--r-- 1 root root 9 2025-11-15 12:00:00 +0000 {name[4:]}\n"
            if name.startswith("*** ")
            else "\n"
        )
        parts.append(f"{RULE}\n\n{name}\n{ls}{text}\n")
    return "\n".join(parts)


def iso(at: int, text: str, zone: int = 0) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at // S + zone * 3600))
    return f"{stamp}+{zone:02d}00 node-7 kernel: {text}\n"


def bsd(at: int, text: str, zone: int = 0) -> str:
    return time.strftime("%b %e %H:%M:%S", time.gmtime(at // S + zone * 3600)) + f" node-7 kernel: {text}\n"


def host(tmp_path: Path, text: str, packed: bool = True) -> BugReportHost:
    path = tmp_path / "nvidia-bug-report.log.gz"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = opened_bundle(path)
    assert isinstance(found, BugReportHost)
    return found


def seen(machine: BugReportHost) -> list[Observation]:
    return [o for r in run(machine) for o in r.observations]


def told(found: list[Observation]) -> set[tuple[object, ...]]:
    """What is told, but for times and places."""
    return {
        (o.fact, o.subject, o.value.code, repr(sorted(o.value.fields.items()))) if isinstance(o.value, Event) else (o.fact, o.subject, repr(o.value))
        for o in found
        if o.status is Status.OK and not o.fact.startswith("log.kernel.")
    }  # fmt: skip


FULL = report(
    ("*** /etc/issue", "Example Linux 1"),
    ("/usr/bin/dmesg", f"[    0.000000] Linux version 5.15.0-100-generic\n[  900.123456] {XID79}"),
    ("*** /var/log/kern.log", bsd(NOON - 600 * S, "Linux version 5.15.0-100-generic") + bsd(NOON - S, XID79)),
    (
        "/usr/bin/journalctl -b -0 -k -o short-iso",
        iso(NOON - 600 * S, "Linux version 5.15.0-100-generic") + iso(NOON - S, XID79),
    ),
    ("/usr/bin/journalctl -b -1 -k -o short-iso", iso(NOON - 9000 * S, XID48)),
    ("/usr/bin/journalctl -b -0 _COMM=Xorg", iso(NOON - S, "hello")),
    ("/usr/bin/nvidia-smi --query", SMI),
    ("/usr/bin/nvidia-smi --query --unit", "Attached Units : 0"),
    ("/usr/bin/lspci -tv", "-[0000:00]-"),
    ("/usr/bin/lspci -vvv", LSPCI),
)


@pytest.mark.parametrize("packed", [True, False])
def test_the_probes_see_what_the_input_tells(tmp_path: Path, packed: bool) -> None:
    machine = host(tmp_path, FULL, packed)
    assert (machine.name, machine.as_of) == ("node-7", NOON)
    found = seen(machine)
    as_input = told(bug_report.parse(FULL, Context("report.log")))
    assert told(found) == as_input
    codes = [o.value.code for o in found if o.fact == "xid" and isinstance(o.value, Event)]
    assert sorted(c or 0 for c in codes) == [48, 79]


def test_the_journal_of_the_boot_before_is_read_with_its_times(tmp_path: Path) -> None:
    found = seen(host(tmp_path, FULL))
    times = {o.value.code: o.at for o in found if o.fact == "xid" and isinstance(o.value, Event)}
    assert times == {48: NOON - 9000 * S, 79: NOON - S}


# In the layout of nvidia-bug-report.sh of driver 470: a page of lines that grep picked, commands without a rule ahead.
REAL = report(
    ("*** /proc/driver/nvidia/./version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01"),
    ("/usr/bin/lspci -d \"10de:*\" -v -xxx", LSPCI),
    ("/usr/bin/lspci -t", "-[0000:00]-"),
    ("/usr/bin/lspci -nn", "00:00.0 Host bridge [0600]: Intel Corporation Device [8086:09a2]"),
    (
        "Scanning kernel log files for NVIDIA kernel messages:",
        "\n  /var/log/messages:\n" + bsd(NOON - 2 * S, XID79) + "\n  journalctl -b -0:\n" + bsd(NOON - 2 * S, XID79)
        + "\n  journalctl -b -1:\n" + bsd(NOON - 9000 * S, XID48),
    ),
    ("dmesg:", f"[    0.000000] Linux version 5.15.0-100-generic\n[  900.123456] {XID79}"),
    ("/usr/bin/nvidia-smi --query", SMI + "\n/usr/bin/nvidia-smi --query --unit\n\nAttached Units : 0\n"),
    ("*** /proc/pci does not exist", ""),
    date="Sat Nov 15 01:00:00 PM +01 2025",
)  # fmt: skip


def test_a_report_in_the_layout_of_nvidia_s_script(tmp_path: Path) -> None:
    text = REAL.replace("*** ls: -rw-r--r-- 1 root root 9 2025-11-15 12:00:00 +0000 /proc/pci does not exist\n", "\n")
    machine = host(tmp_path, text)
    assert (machine.name, machine.as_of) == ("node-7", NOON)
    assert machine.read("/proc/driver/nvidia/version").status is Status.OK
    assert machine.read("/proc/pci").status is Status.UNSUPPORTED
    found = seen(machine)
    xids = [o for o in found if o.fact == "xid" and isinstance(o.value, Event)]
    # the zone is an hour ahead of UTC: what was picked is of local time, and stands in dmesg, journal and file once more
    assert {o.value.code: o.at for o in xids if isinstance(o.value, Event)} == {
        48: NOON - 12_600 * S,
        79: NOON - 3602 * S,
    }
    assert len(xids) == 2
    assert told(found) == told(bug_report.parse(text, Context("x")))
    [none] = [o for o in found if o.fact == "oom_kill"]
    assert (none.status, none.clock) == (Status.NONE_SEEN, Clock.BOOT)


def test_lines_that_were_picked_out_of_a_log_reassure_nobody(tmp_path: Path) -> None:
    picked = (
        "Scanning kernel log files for NVIDIA kernel messages:",
        "\n  journalctl -b -0:\n" + bsd(NOON - 2 * S, XID79),
    )
    found = seen(host(tmp_path, report(picked)))
    assert [o.value.code for o in found if isinstance(o.value, Event)] == [79]
    assert {o.status for o in found if o.fact in ("oom_kill", "sxid")} == {Status.FAILED}
    as_input = bug_report.parse(report(picked), Context("x"))
    assert {o.status for o in as_input} == {Status.OK}


def test_a_report_that_holds_dmesg_only_is_read_on_the_clock_of_its_boot(tmp_path: Path) -> None:
    found = seen(host(tmp_path, report(("/bin/dmesg", f"[    0.000000] Linux version 5\n[  900.1] {XID79}"))))
    [xid] = [o for o in found if o.fact == "xid" and isinstance(o.value, Event)]
    assert xid.clock is Clock.BOOT
    assert any(o.fact == "sxid" for o in found)
    assert {r.status for r in run(host(tmp_path, report())) if r.probe == "kernel-log"} == {Status.NOT_ASKED}


@pytest.mark.parametrize(
    ("date", "journal"),
    [
        ("Sat Nov 15 13:00:00 CET 2025", ""),
        ("Sat 15 Nov 2025 01:00:00 PM CET", ""),
        ("Sat Nov 15 13:00:00 XYZ 2025", iso(NOON - 60 * S, "usb 1-1: reset", 1)),
        ("Sat Nov 15 13:00:00 +01 2025", ""),
    ],
)
def test_the_zone_of_the_report_places_its_logs(tmp_path: Path, date: str, journal: str) -> None:
    sections = [("*** /var/log/kern.log", bsd(NOON - 7200 * S, "Linux version 5", 1) + bsd(NOON - S, XID79, 1))]
    if journal:
        sections.append(("/usr/bin/journalctl -k -o short-iso", journal))
    machine = host(tmp_path, report(*sections, date=date))
    assert machine.as_of == NOON
    [xid] = [o for o in seen(machine) if o.fact == "xid" and isinstance(o.value, Event)]
    assert (xid.at, xid.clock) == (NOON - S, Clock.REALTIME)


def test_a_report_without_a_date_is_read_all_the_same(tmp_path: Path) -> None:
    machine = host(tmp_path, report(("/bin/dmesg", f"[  900.1] {XID79}"), date="heute"))
    assert machine.as_of is None
    assert [o.value.code for o in seen(machine) if isinstance(o.value, Event)] == [79]


def test_what_the_report_holds_is_a_recording(tmp_path: Path) -> None:
    machine = host(tmp_path, FULL)
    calls = {r.title for r in machine.replies}
    assert {"/etc/issue", "/var/log/kern.log", "nvidia-smi --query", "lspci -vvv", "dmesg"} <= calls
    assert machine.read("/etc/issue").text.strip() == "Example Linux 1"
    assert machine.read("/etc/passwd").status is Status.NOT_ASKED
    assert machine.run(("ibstat",), deadline=1.0).status is Status.NOT_ASKED
    assert machine.files("/var/log/kern.log*") == ["/var/log/kern.log"]


def test_a_bundle_is_still_a_bundle(tmp_path: Path) -> None:
    reply = Reply(CallKind.COMMAND, ("nvidia-smi", "-q"), data=SMI.encode(), exit_code=0)
    for name in ("n.tar.gz", "n.zip", "folder"):
        write(tmp_path / name, "n1", [reply], NOON, "0")
        assert isinstance(opened_bundle(tmp_path / name), BundleHost)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (SMI.encode(), "is no bundle"),
        (gzip.compress(SMI.encode(), mtime=0), "is no bundle"),
        (b"", "is no bundle"),
        (b"\x7fELF" + bytes(300), "is no bundle"),
        (gzip.compress(FULL.encode(), mtime=0)[:900], "cut off"),
    ],
)
def test_what_is_neither_is_said_in_one_sentence(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "given"
    path.write_bytes(data)
    with pytest.raises(InputError, match=words):
        opened_bundle(path)


def test_faults_of_the_file_and_bombs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        opened_bundle(tmp_path / "absent")
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(FULL.encode() + b"x" * (8 << 20)))
    with pytest.raises(InputError, match="holds more than"):
        opened_bundle(path, limit=4 << 20)
    assert REPORT.startswith(RULE)
