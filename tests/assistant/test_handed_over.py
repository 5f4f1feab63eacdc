"""Text around a tool's output changes nothing of what it says: prompts, quotes, line numbers, fences, marks, colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnosis import diagnose
from assistant.dialogue import events
from assistant.intent.parse import understand
from assistant.sources import read
from knowledge.derive import derive
from knowledge.observation import Scope, Status
from probes import labels, registry
from probes.around import bare
from probes.base import DocumentFormat
from tests.assistant.dialogue.talk import rules, turn
from tests.cases import each, in_turns

CAPTURES = Path(__file__).parent.parent / "captures"
TEXTS = [
    p
    for p in sorted(CAPTURES.rglob("*"))
    if p.is_file() and p.suffix in (".txt", ".csv") and p.stat().st_size < 200_000
]
Wrap = Callable[[str], str]


def _lines(text: str, each_line: Callable[[int, str], str]) -> str:
    return "\n".join(each_line(i, line) for i, line in enumerate(text.split("\n"), 1))


WRAPS: dict[str, Wrap] = {
    "prompts": lambda t: f"ana@n1:~$ tool --all\n{t}\nana@n1:~$ ",
    "root": lambda t: f"[root@n1 ~]# tool\n{t}\n[root@n1 ~]# exit",
    "mail": lambda t: _lines(t, lambda _, line: f"> {line}" if line.strip() else ">"),
    "fence": lambda t: f"```text\n{t}\n```\n",
    "numbers": lambda t: _lines(t, lambda i, line: f"{i:6}\t{line}"),
    "pager": lambda t: f"{t}\n(END)\n",
    "clock": lambda t: _lines(t, lambda i, line: f"2026-03-0{1 + i % 9}T10:00:00.{i:06}Z {line}"),
    "task": lambda t: _lines(t, lambda _, line: f"3: {line}".rstrip()),
    "pod": lambda t: _lines(t, lambda _, line: f"[pod/smi-x8k2/main] {line}"),
    "pod and clock": lambda t: _lines(t, lambda i, line: f"[pod/smi-x8k2/main] 2026-03-01T10:00:00.{i:06}Z {line}"),
    "compose": lambda t: _lines(t, lambda _, line: f"smi-1  | {line}"),
    "mpirun": lambda t: _lines(t, lambda _, line: f"[1,3]<stdout>:{line}"),
    "colours": lambda t: _lines(t, lambda i, line: f"\x1b[1m{line}\x1b[0m" if i % 3 == 0 else line),
}


def told(folder: Path, name: str, text: str) -> list[tuple[str, str, str]]:
    path = folder / name
    path.write_text(text)
    return sorted((str(o.subject), o.fact, f"{o.status} {o.value}") for o in read([], [str(path)]).observations)


def handed_on(text: str) -> set[str]:
    """What is left for the readers of a text, of which they get the one that a format recognises."""
    plain = bare(text, commands=False).text
    parts, *_ = labels.apart(plain)
    given = parts[0].text if len(parts) == 1 else plain
    texts = (bare(given, commands).text for commands in (False, True))
    return {"\n".join(line.rstrip() for line in t.split("\n")).strip("\n") for t in texts}


@pytest.mark.slow
@each(("path", "wraps"), lambda: in_turns(TEXTS, tuple(WRAPS), lambda _: (), 4), ids=lambda p: getattr(p, "name", ""))
def test_what_stands_around_a_document_changes_nothing(
    path: Path, wraps: Sequence[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The readers are handed the same text whatever stands around it; that is read in each fourth of them, and where it is not the same."""
    folder, text = tmp_path_factory.mktemp("around"), path.read_text(errors="replace")
    if bare(text).found["prompt"] > 1:
        return  # a whole session at a shell: its prompts tell what was asked
    if not text.startswith("$ "):
        assert not bare(text).found or "\x1b[" in text, "nothing stands around it, and something was taken"
    found = registry.sniff(text[:65_536])
    if not isinstance(found, DocumentFormat) or found.files is not None:
        return  # a log, or what is read by its path
    plain, given = told(folder, path.name, text), handed_on(text)
    few = len(text.strip().splitlines()) < 3  # one or two numbers ahead of lines are no numbering
    for name, wrap in WRAPS.items():
        if name == "numbers" and few:
            continue
        if name in wraps or not given & handed_on(wrap(text)):
            assert told(folder, path.name, wrap(text)) == plain, name


SMI = """Sat Nov 28 09:00:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    {} |
| N/A   31C    P0              74W / 700W |       1MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
{}"""
HOLDERS = """+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""
SSH = "ssh: connect to host gpu05 port 22: No route to host"


@each(
    ("label", "hosts"),
    [
        ("{}: ", ["gpu02", "gpu03"]),  # pdsh, clush
        ("[{}] out: ", ["gpu02.cluster.local", "10.0.0.3x"]),  # fabric
        ("{}\t", ["gpu02", "gpu03"]),  # parallel --tag
        ("[pod/{}/main] ", ["smi-a", "smi-b"]),
    ],
)  # fmt: skip
def test_gathered_outputs_are_documents_of_their_machines(label: str, hosts: list[str], tmp_path: Path) -> None:
    good, bad = (SMI.format(n, HOLDERS).splitlines() for n in (0, 3))
    mixed = [
        label.format(h) + line for pair in zip(good, bad, strict=True) for h, line in zip(hosts, pair, strict=True)
    ]
    path = tmp_path / "gathered.txt"
    path.write_text("\n".join([*mixed, label.format("gpu05") + SSH]))
    reading = read([], [str(path)])
    ecc = {
        o.subject.host: (o.value, o.source.line)
        for o in reading.observations
        if o.fact == "gpu.ecc.volatile.uncorrected.total"
    }
    assert ecc == {hosts[0]: (0, 9), hosts[1]: (3, 10)}, "each on its machine, at its line of the file"
    assert [n.text.en for n in reading.notes if n.problem] == [
        f"gpu05: was not reached, so nothing is known of it: {SSH}"
    ]


LISTED = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5f6a1c2e-0000-4000-8000-00000000000{})"
NONE = "No devices were found"
XID = "[12345.678] NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, name=python, GPU has fallen off the bus."


@each(
    "heading",
    [
        "{0} | CHANGED | rc=0 >>", "---------------\n{0}\n---------------", "=== {0} ===", "##### {0} #####", ">>> {0}", "{0}:", "{0}",
    ],
)  # fmt: skip
def test_below_the_heading_of_a_machine_stands_what_it_printed(heading: str, tmp_path: Path) -> None:
    printed = {"gpu07": [LISTED.format(1)], "gpu08": [NONE], "gpu09": ["[12.345] usb 1-1: new device", XID]}
    path = tmp_path / "gathered.txt"
    path.write_text("\n".join(line for name, lines in printed.items() for line in (heading.format(name), *lines)))
    assert {o.subject.host for o in read([str(path)], []).observations if o.fact == "xid"} == {"gpu09"}, "as a log, too"
    reading = read([], [str(path)])
    told = {(o.subject.host, o.fact): o.value for o in reading.observations if o.status is Status.OK}
    assert told["gpu07", "node.driver.state"] == "ok"
    assert told["gpu08", "node.driver.state"] == "no_devices"
    assert next(o.source.line for o in reading.observations if o.fact == "xid") == 7 + 3 * heading.count("\n")
    assert {host for host, fact in told if fact == "xid"} == {"gpu09"}
    assert not reading.cut


NODES = "gpu07\ngpu08\n"


@each("loop", ["$ for h in gh-01 gh-02; do {}; done", "for n in $(cat hosts); do {}; done"])
@each(
    ("asked", "rows"),
    [
        ("driver_version --format=csv,noheader", ("570.124.06", "565.57.01")),
        ("index,driver_version --format=csv", ("index, driver_version\n0, 570.124.06", "index, driver_version\n0, 565.57.01")),
    ],
)  # fmt: skip
def test_the_command_of_a_loop_tells_what_each_machine_was_asked(
    loop: str, asked: str, rows: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "paste.txt"
    command = loop.format(f'echo "== $h"; ssh $h nvidia-smi --query-gpu={asked} | sort -u')
    path.write_text("\n".join((command, "== gh-01", rows[0], "== gh-02", rows[1], "")))
    drivers = {(o.subject.id, o.value) for o in read([], [str(path)]).observations if o.fact == "node.driver.version"}
    assert drivers == {("gh-01", "570.124.06"), ("gh-02", "565.57.01")}


@each(
    "text",
    [f"{NODES}{XID}\n", f"job begins\n{NODES}{XID}\n", f"gpu07\n{XID}\n", f"starting on:\ngpu07\n{LISTED.format(1)}\ngpu08\n{XID}\n"],
    ids=["names alone", "below a line", "one", "not at the beginning"],
)  # fmt: skip
def test_names_that_a_job_prints_are_no_headings(text: str, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(text)
    for reading in (read([], [str(path)]), read([str(path)], [])):
        assert {o.subject.host for o in reading.observations if o.fact == "xid"} == {""}


def test_machines_that_printed_the_same_are_each_told(tmp_path: Path) -> None:
    path = tmp_path / "folded.txt"
    path.write_text(f"-------\ngpu[01-02,7] (3)\n-------\n{NONE}\n-------\ngpu3\n-------\n{LISTED.format(1)}\n")
    states = {o.subject.id: o.value for o in read([], [str(path)]).observations if o.fact == "node.driver.state"}
    assert states == {"gpu01": "no_devices", "gpu02": "no_devices", "gpu7": "no_devices", "gpu3": "ok"}


@each(
    ("text", "host"),
    [
        (f"gpu01: {LISTED.format(1)}\ngpu02: {NONE}\n", "gpu02"),  # a line each
        (f"gpu01 | CHANGED | rc=0 | (stdout) {LISTED.format(1)}\ngpu02 | FAILED | rc=6 | (stdout) {NONE}\n", "gpu02"),
        (f"0: {LISTED.format(1)}\n1: {LISTED.format(2)}\n2: {NONE}\nsrun: error: node-17: task 2: Exited with exit code 6\n", "node-17"),
    ],
    ids=["pdsh", "ansible -o", "srun -l"],
)  # fmt: skip
def test_a_line_of_each_machine_is_enough_where_only_numbers_differ(text: str, host: str, tmp_path: Path) -> None:
    path = tmp_path / "gathered.txt"
    path.write_text(text)
    told = read([], [str(path)]).observations
    assert [o.subject.id for o in told if o.value == "no_devices"] == [host]


@each("printed", [LISTED.format(1), XID], ids=["a document", "a log"])
@each("said", [SSH, "root@gpu02: Permission denied (publickey).", "ssh exited with exit code 255"])
def test_a_machine_that_ssh_did_not_get_to_is_told_as_such(said: str, printed: str, tmp_path: Path) -> None:
    path = tmp_path / "gathered.txt"
    path.write_text(f"gpu01: {printed}\ngpu02: {said}\n")
    reading = read([], [str(path)])
    assert [n.text.en for n in reading.notes if n.problem] == [
        f"gpu02: was not reached, so nothing is known of it: {said}"
    ]


@each(
    "text",
    [
        "mc0: csrow0: 1 Uncorrected Errors\nmc0: csrow0: 2 Corrected Errors\nmc0: csrow1: 0 Corrected Errors\n",
        "eth0: link up\neth0: 100 Gb/s\neth0: MTU 9000\n", "INFO: step 1\nINFO: step 2\nINFO: step 3\n",
        "State: Active\nRate: 400\nState: Down\nRate: 400\n", "GPU0\nNo devices were found\nGPU1\nNo devices were found\n", "10:00:01 CPU all 3\n10:00:02 CPU all 4\n10:00:03 CPU all 5\n",
    ],
)  # fmt: skip
def test_the_words_of_a_report_are_no_labels(text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text(text)
    reading = read([], [str(path)])
    assert not any("label" in n.text.en for n in reading.notes)
    assert {o.subject.host for o in reading.observations} <= {""}


@each(
    ("text", "whole"),
    [
        (SMI.format(0, HOLDERS), True), (SMI.format(0, ""), False), (SMI.format(0, HOLDERS[:180]), False),
        ("\n".join([*SMI.format(0, "").splitlines()[:4], "+---+", *HOLDERS.splitlines()]), False),  # no row of a GPU
    ],
    ids=["whole", "no list of processes", "cut in it", "no row"],
)  # fmt: skip
def test_a_table_that_misses_a_part_is_not_whole(text: str, whole: bool, tmp_path: Path) -> None:
    path = tmp_path / "smi.txt"
    path.write_text(text)
    assert bool(read([], [str(path)]).cut) is not whole


@each(
    "line",
    [
        "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).", "Reason=bad [root@2026-11-20T03:14:15]", "0, NVIDIA A100, 3, 41",
        "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |", "GPU0\t X \tNV18",
        "    HW Slowdown                       : Active", "<gpu id=\"00000000:1B:00.0\">", "a < b", "$value = 3",
    ],
)  # fmt: skip
def test_what_tools_print_is_left_alone(line: str) -> None:
    assert bare(f"{line}\n{line}\n").text == f"{line}\n{line}\n"


def test_a_mark_behind_a_value_is_no_part_of_it() -> None:
    assert bare("Pending : Yes   <=== look here\nother : No ← fine\n").text == "Pending : Yes\nother : No\n"


_SINFO = "REASON               USER      TIMESTAMP           NODELIST\nNot responding       slurm     2026-11-27T04:12:09 n7\n"
_SCONTROL = (
    "NodeName=n7 Arch=x86_64 CoresPerSocket=56\n   Gres=gpu:h100:8\n   State=IDLE+DRAIN ThreadsPerCore=2\n"
    "   Reason=gres/gpu count reported lower than configured (7 < 8) [slurm@2026-11-27T04:12:09]\n"
)
_PLUGIN = "I1128 05:32:17.118221       1 health.go:162] XidCriticalError: Xid=48 on Device=GPU-5a1c2be0-8c7e-6c0b-1f8b-9a7e30f41d22; marking device as unhealthy.\n"


_KERNEL = "[Tue Nov 24 09:14:02 2026] NVRM: Xid (PCI:0000:47:00): 63, pid=0, name=<unknown>, Row Remapper: New row marked for remapping\n"


@each(
    "text",
    [
        f"$ sinfo -R\n{_SINFO}\n$ scontrol show node n7\n{_SCONTROL}",
        f"ana@login:~$ sinfo -R\n{_SINFO}ana@login:~$ scontrol show node n7\n{_SCONTROL}ana@login:~$ ",
        f"{_SCONTROL}---\n$ kubectl logs -n gpu-operator plugin\n{_PLUGIN}",
        f"=== sinfo -R ===\n{_SINFO}=== kubectl logs plugin ===\n{_PLUGIN}",
        f"{_SCONTROL}$ dmesg -T | tail\n{_KERNEL}",  # a document without a prompt ahead of a log
    ],
)  # fmt: skip
@each("as_log", [False, True])
def test_each_output_of_a_paste_is_read(text: str, as_log: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("paste") / "paste.txt"
    path.write_text(text)
    reading = read([str(path)], []) if as_log else read([], [str(path)])
    said = " ".join(f"{o.fact} {o.excerpt} {o.value}" for o in reading.observations)
    for part, sign in (
        (_SINFO, "Not responding"),
        (_SCONTROL, "(7 < 8)"),
        (_PLUGIN, "Xid=48"),
        (_KERNEL, "Row Remapper"),
    ):
        assert (sign in said) == (part in text), sign


def _smi(at: str, used: int, busy: int, pending: str, uuid: str = "GPU-5a1c2be0-8c7e-6c0b-1f8b-9a7e30f41d22") -> str:
    return (
        f"\n==============NVSMI LOG==============\n\nTimestamp                                 : Mon Nov 23 {at} 2026\n"
        "Driver Version                            : 550.90.07\n\nAttached GPUs                             : 1\n"
        f"GPU 00000000:1B:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n    GPU UUID                              : {uuid}\n"
        f"    FB Memory Usage\n        Total                             : 81559 MiB\n        Used                              : {used} MiB\n"
        f"    Utilization\n        Gpu                               : {busy} %\n    Remapped Rows\n        Correctable Error                 : 0\n"
        f"        Pending                           : {pending}\n"
        + ("    Processes                             : None\n" if not busy else
           "    Processes\n        Process ID                        : 701\n            Type                          : C\n            Used GPU Memory               : 60000 MiB\n")
    )  # fmt: skip


_THEN, _NOW = _smi("08:10:00", 61022, 99, "Yes"), _smi("09:40:00", 3, 0, "No")


@each(
    "files",
    [[_THEN, _NOW], [_NOW, _THEN], [_THEN + _NOW], [_NOW + _THEN], [_THEN, _smi("08:50:00", 900, 5, "Yes"), _NOW]],
)
def test_of_two_captures_the_later_one_leads(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("captures")
    for i, text in enumerate(files):
        (folder / f"{i}.txt").write_text(text)
    reading = read([], [str(folder / f"{i}.txt") for i in range(len(files))])
    now = {o.fact: o.value for o in derive(reading.observations)}
    assert (now["gpu.memory.share"], now["gpu.row_remap.pending"], now["gpu.utilization.core"]) == (0.0, False, 0)
    assert not any(o.subject.scope is Scope.PROCESS for o in reading.observations), "a process of the earlier one"
    assert {o.value for o in reading.earlier if o.fact == "gpu.row_remap.pending"} == {True}


@each(
    ("said", "head"),
    [("what changed between the two?", "Gone: GPU 0000:1b:00.0"), ("前后有什么变化?", "已消失：GPU 0000:1b:00.0")],
)
def test_what_changed_between_two_captures_is_told(
    said: str, head: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("captures") / "both.txt"
    path.write_text(_THEN + _NOW)
    reading = read([], [str(path)])
    now, before = diagnose(reading.observations, rules()), diagnose(reading.earlier, rules())
    reply = events.answer(replace(turn(now, understand(said)), before=before))
    assert reply.headline.startswith(head)
    assert "2026-11-23 08:10:00 -> 2026-11-23 09:40:00" in reply.headline


@each(
    "files",
    [
        [_THEN], [_THEN, _smi("08:10:20", 61022, 99, "Yes")],  # within a minute: two parts of one look
        [_THEN, _smi("09:40:00", 3, 0, "No", "GPU-00000000-8c7e-6c0b-1f8b-9a7e30f41d22")],  # another machine's slot of the same address
        [_THEN, _NOW[: _NOW.index("    FB Memory")]],  # tells too little to stand for the first
    ],
)  # fmt: skip
def test_what_is_no_second_capture_takes_nothing_away(
    files: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("captures")
    for i, text in enumerate(files):
        (folder / f"{i}.txt").write_text(text)
    assert not read([], [str(folder / f"{i}.txt") for i in range(len(files))]).earlier


@given(st.text(max_size=300))
def test_the_number_of_lines_stays(text: str) -> None:
    assert bare(text).text.count("\n") == text.count("\n")
