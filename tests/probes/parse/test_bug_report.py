"""Stories of files that hold several outputs."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Event, Status, node
from probes.base import Context, lines_of
from probes.parse import bug_report
from tests.cases import each

CAPTURES = Path(__file__).parents[2] / "captures"
REPORT = (CAPTURES / "app" / "nvidia-bug-report.log").read_text()
IBSTAT = (CAPTURES / "network" / "ibstat.rails-down.txt").read_text()
LSPCI = (CAPTURES / "network" / "lspci.gpu-gone.txt").read_text()


def test_the_sections_of_a_bug_report() -> None:
    names = [section.name for section in bug_report.split(REPORT)]
    assert names == [
        "Start of NVIDIA bug report log file.  Please include this file, along",
        "/etc/issue",
        "/usr/bin/dmesg",
        "/var/log/kern.log",
        "/usr/bin/lspci -vvv",
    ]


def test_lines_are_those_of_the_whole_file() -> None:
    lines = {line.number: line.text for line in lines_of(REPORT)}
    found = bug_report.parse(REPORT, Context("report.log"))
    [bus] = [o for o in found if o.fact == "gpu.on_bus"]
    assert bus.source.line is not None
    assert lines[bus.source.line].startswith("17:00.0 3D controller")
    [xid] = [o for o in found if o.fact == "xid" and isinstance(o.value, Event)]
    assert xid.source.line is not None
    assert "Xid" in lines[xid.source.line]


def test_an_event_that_two_logs_tell_counts_once_and_the_host_is_known() -> None:
    xids = [
        o for o in bug_report.parse(REPORT, Context("report.log")) if o.fact == "xid" and isinstance(o.value, Event)
    ]
    assert [o.subject.host for o in xids] == ["node-d-04"]


@each(
    "head",
    [
        "===== {} =====",
        "==> {} <==",
        "### {}",
        "--- {} ---",
        "$ {}",
        "# {}",
        "root@gpu-9:~# {}",
        "[root@gpu-9 tmp]# sudo {}",
        "+ {}",
        "####################\n# {}\n####################",
        "====================\n{}\n====================",
    ],
)
def test_headings_of_many_hands(head: str) -> None:
    text = f"{head.format('ibstat')}\n{IBSTAT}\n{head.format('lspci -vvv')}\n{LSPCI}"
    assert bug_report.sniff(text[:65536]) == 100
    found = bug_report.parse(text, Context("bundle.txt"))
    assert {"node.ib.rails_down", "node.pci.gpu_count"} <= {o.fact for o in found}
    lines = {line.number: line.text for line in lines_of(text)}
    [gone] = [o for o in found if o.fact == "node.pci.gone"]
    assert gone.source.line is not None
    assert "rev ff" in lines[gone.source.line]


def test_a_prompt_names_the_host() -> None:
    text = f"root@gpu-9:~# ibstat\n{IBSTAT}root@gpu-9:~# lspci\n{LSPCI}"
    hosts = {o.subject.host for o in bug_report.parse(text, Context("x"))}
    assert hosts == {"gpu-9"}
    told = {o.subject.host for o in bug_report.parse(text, Context("x", "other"))}
    assert told == {"other"}


@each(
    "text",
    [
        IBSTAT,
        LSPCI,
        "$ python train.py\nTraceback (most recent call last):\n",
        "============\ntrain.py FAILED\n------------\nFailures:\n============\n",
        "--- a sentence ---\n--- another one ---\n",
        "==============NVSMI LOG==============\n==============NVSMI LOG==============\n",
        "# nThread 1 nGpus 8\n# Avg bus bandwidth : 1\n",
    ],
)
def test_one_output_is_no_bundle(text: str) -> None:
    assert bug_report.sniff(text) == 0


def test_a_page_with_one_such_line_is_no_log_in_which_nothing_else_was_seen() -> None:
    header = "\n".join(["kernel:         5.15.0-185-generic", *(f"note {i}" for i in range(30))])
    text = f"===== uname -a =====\n{header}\n===== ibstat =====\n{IBSTAT}"
    assert "xid" not in {o.fact for o in bug_report.parse(text, Context("x"))}


def test_unknown_sections_are_left_alone() -> None:
    text = f"===== ibstat =====\n{IBSTAT}\n===== ls -l =====\ntotal 0\n"
    assert {o.source.probe for o in bug_report.parse(text, Context("x"))} == {"ibstat"}


@given(
    st.lists(
        st.sampled_from(["a", "", "===== ibstat =====", "_" * 44, "*** /x/y", "$ lspci", "#" * 30, "# dmesg"]),
        max_size=25,
    )
)
def test_sections_keep_their_lines_and_their_order(lines: list[str]) -> None:
    text = "\n".join(lines)
    sections = bug_report.split(text)
    starts = [section.start_line for section in sections]
    assert starts == sorted(starts)
    for section in sections:
        body = section.text.split("\n")
        assert lines[section.start_line - 1 : section.start_line - 1 + len(body)] == body


def test_the_host_of_a_report_without_prompts_is_that_of_uname() -> None:
    assert node("node-d-04") in {o.subject for o in bug_report.parse(REPORT, Context("x"))}


PICKED = """root@n7:~# ibstat
CA 'mlx5_0'
\tCA type: MT4129
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tLink layer: InfiniBand
root@n7:~# date
Sat Nov 28 03:11:42 UTC 2026
"""
ROWS = """root@n7:~# ethtool -S ens1f1np1 | egrep 'err|link_down'
     rx_crc_errors_phy: 88213
     link_down_events_phy: 37
"""
WIDTH = """root@n7:~# lspci -vvs d1:00.0 | grep LnkSta:
\t\tLnkSta:\tSpeed 32GT/s, Width x4 (downgraded)
"""


def test_what_a_command_at_a_prompt_printed_is_read_or_told_as_unread() -> None:
    """Rows that were picked out of an output are known by their command; ``date`` tells of no health."""
    assert bug_report.sniff(PICKED + ROWS) == bug_report.sniff(PICKED + WIDTH) == 100
    found = bug_report.parse(PICKED + ROWS, Context("f"))
    assert any(o.source.line == 12 and o.status is Status.OK for o in found)
    assert bug_report.unread(PICKED + ROWS) == []
    assert bug_report.unread(f"{PICKED}root@n7:~# systemctl is-active nvidia-fabricmanager\nactive\n") == []
    assert bug_report.unread(f"{PICKED}root@n7:~# systemctl is-active nvidia-fabricmanager\ninactive\n") != []
    [(line, why)] = bug_report.unread(PICKED + WIDTH)
    assert line == 12
    assert "x4 (downgraded), and whether 0000:d1:00.0 is a GPU is not shown" in str(why)
