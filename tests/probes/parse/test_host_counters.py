"""What people paste of a host's counters: EDAC, rasdaemon, numactl, sysstat."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Event, Status
from probes.base import DocumentFormat, best
from probes.parse import memory_errors, numactl, sysstat
from probes.registry import document_formats, sniff
from tests.cases import each
from tests.probes.parse.smi_case import CONTEXT, capture, check_cut

FORMS = {
    "other/edac-util.txt": memory_errors.FORMAT,
    "other/ras-mc-ctl.txt": memory_errors.FORMAT,
    "other/numactl.txt": numactl.FORMAT,
    "other/mpstat.txt": sysstat.FORMAT,
    "other/sar.txt": sysstat.FORMAT,
    "other/pidstat.txt": sysstat.FORMAT,
}


def values(name: str, fact: str) -> dict[str, object]:
    found = FORMS[name].parse(capture(name), CONTEXT)
    return {o.subject.id: o.value for o in found if o.fact == fact and o.status is Status.OK}


def test_errors_stand_with_their_module() -> None:
    assert values("other/edac-util.txt", "dimm.errors.corrected") == {
        "mc0": 0, "CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (mc0 csrow0)": 1201, "CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (mc0 csrow0)": 0,
    }  # fmt: skip
    assert values("other/edac-util.txt", "dimm.errors.uncorrected") == {"mc0": 0, "mc0 csrow0": 1}
    assert values("other/ras-mc-ctl.txt", "dimm.errors.corrected") == {"DIMM_A1 (0:1:1:-1)": 2}
    assert values("other/ras-mc-ctl.txt", "dimm.errors.uncorrected") == {"DIMM_B2 (1:0:1:-1)": 1}


@each(
    ("text", "corrected"),
    [
        ("No Memory errors.\n\nNo PCIe AER errors.", [0]), ("edac-util: No errors to report.", [0]),
        ("Label                 CE      UE\nmc#0csrow#2channel#0  7   0\nDIMM_B1  1  0", [8]),
        ("mc0/ce_count:7\nmc0/dimm1/dimm_ce_count:7\nmc1/csrow0/ce_count:2", [9]),  # a controller counts its modules too
        ("\tCorrected on DIMM Label(s): 'DIMM_B1' location: 0:2:0:-1 errors: 5", [5]), ("edac-util: Fatal: Unable to get EDAC data", []),
    ],
)  # fmt: skip
def test_the_sum_of_all_modules(text: str, corrected: list[int]) -> None:
    found = memory_errors.FORMAT.parse(text, CONTEXT)
    assert [o.value for o in found if o.fact == "node.memory.errors.corrected"] == corrected


def test_what_else_rasdaemon_kept_is_read_or_counted_as_not_understood() -> None:
    text = """No Memory errors.

PCIe AER events:
1 2026-09-30 03:11:44 +0100 0000:5a:01.0 Corrected error: Bad TLP, Replay Timer Timeout
2 2026-09-30 03:12:31 +0100 0000:5a:01.0 Uncorrected (Fatal) error: Surprise Link Down

Disk errors summary:
\t0:2048 has 3 errors

MCE records summary:
\t4 Instruction CACHE Level-0 Instruction-Fetch Error errors
"""
    assert best(document_formats(), text.partition("\n")[2]) is memory_errors.FORMAT
    found = memory_errors.FORMAT.parse(text, CONTEXT)
    told = [
        (o.subject.id, o.value.get("severity"), o.value.get("bits"), o.at, o.times)
        for o in found if isinstance(o.value, Event)
    ]  # fmt: skip
    assert told == [
        ("0000:5a:01.0", "corrected", "BadTLP,Timeout", 1790734304 * 10**9, 1),
        ("0000:5a:01.0", "fatal", "SDES", 1790734351 * 10**9, 1),
        (CONTEXT.host, "untold", None, None, 4),
    ]
    assert [(o.value, o.excerpt) for o in found if o.fact == "log.driver.errors_not_read"] == [
        (1, "0:2048 has 3 errors")
    ]


def test_numa_nodes_are_told_only_where_all_are_listed() -> None:
    text = capture("other/numactl.txt")
    assert values("other/numactl.txt", "node.numa.free.min") == {CONTEXT.host: 0.06}
    assert values("other/numactl.txt", "node.numa.without_memory") == {CONTEXT.host: ()}
    half = numactl.FORMAT.parse(text.partition("node 1 size")[0], CONTEXT)
    assert [o.fact for o in half] == ["node.numa.nodes"]


def test_the_averages_count() -> None:
    assert values("other/mpstat.txt", "node.cpu.core.softirq.max") == {CONTEXT.host: 99.0}
    assert values("other/mpstat.txt", "node.cpu.core.softirq.cpu") == {CONTEXT.host: 0}
    assert values("other/mpstat.txt", "node.cpu.core.system.max") == {CONTEXT.host: 1.0}
    assert values("other/sar.txt", "nic.rx.errors.rate") == {"lo": 0.0, "ens1": 112.4}
    assert values("other/sar.txt", "node.memory.available.share") == {CONTEXT.host: 0.4}
    assert values("other/pidstat.txt", "process.cpu") == {"4242": 0.5, "1": 0.01}
    assert values("other/pidstat.txt", "process.runqueue.wait") == {"4242": 50.0, "1": 0.0}
    assert values("other/sar.txt", "node.cpu.iowait") == {CONTEXT.host: 61.0}


@each("name", sorted(FORMS))
def test_recognition(name: str) -> None:
    assert best(document_formats(), capture(name)) is FORMS[name]
    for other in ("", "Linux 5.15 (x)\n", "Label CE\n", "node 0 size: 1 MB\n", "mc0: no errors\n"):
        assert FORMS[name].sniff(other) == 0


@given(st.sampled_from(sorted(FORMS)), st.integers(0, 3000))
def test_cut_anywhere(name: str, at: int) -> None:
    check_cut(FORMS[name], name, at)


def test_a_time_ahead_of_each_reading_of_a_port_is_its_time() -> None:
    place = "/sys/class/infiniband/mlx5_2/ports/1/counters/link_downed"
    head = [f"2026-11-29T01:{m}:01 {place}:{n}" for m, n in (("00", 3), ("10", 9), ("20", 38))]
    for text in ("\n".join(head), "\n".join(["watch log of gpu-n12:", *head, *head[-1:]])):
        found = sniff(text)
        assert isinstance(found, DocumentFormat)
        told = [o for o in found.parse(text, CONTEXT) if o.fact == "port.counters.link_downed"]
        assert {o.value for o in told} == {3, 9, 38}
        assert len({o.at for o in told}) == 3
