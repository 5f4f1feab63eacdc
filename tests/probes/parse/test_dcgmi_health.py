from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Event, Status
from probes.parse.dcgmi_health import FORMAT
from tests.probes.parse.smi_case import (
    CONTEXT,
    all_of,
    capture,
    check_any,
    check_cut,
    events,
    one,
    parse,
    shuffled_lines,
    status,
    value,
)  # fmt: skip
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

NAMES = ("dcgm/health-v4.txt", "dcgm/health-v4.json", "dcgm/health-v1.txt")
HEALTHY = (
    "+---------------------------+------------------------------------------------------------+\n"
    "| Health Monitor Report                                                                  |\n"
    "+===========================+============================================================+\n"
    "| Overall Health            | Healthy                                                    |\n"
    "+---------------------------+------------------------------------------------------------+\n"
)


def test_the_tree_of_dcgm_4() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "node.dcgm.health") == "failure"
    assert events(got, "dcgm_health", "index:0") == [
        Event(None, {"system": "memory", "status": "fail",
                     "message": "A row remap failed on GPU 0. Run a field diagnostic on the GPU."}),
        Event(None, {"system": "pcie", "status": "warn", "message": "Detected 40 replays"}),
    ]  # fmt: skip
    assert [e.get("system") for e in events(got, "dcgm_health_node")] == ["driver"]


def test_its_json() -> None:
    got = parse(FORMAT, NAMES[1])
    assert value(got, "node.dcgm.health") == "warning"
    assert events(got, "dcgm_health", "index:3") == [
        Event(None, {"system": "thermal", "status": "warn", "message": "GPU 3 was held back by heat for 12 s"})]  # fmt: skip


def test_the_table_of_dcgm_1() -> None:
    got = parse(FORMAT, NAMES[2])
    assert value(got, "node.dcgm.health") == "warning"
    assert [e.get("message") for e in events(got, "dcgm_health")] == [
        "Detected more than 8 PCIe replays per minute for GPU 0: 13", "A corrupt InfoROM has been detected in GPU 1."]  # fmt: skip
    assert [o.subject.id for o in all_of(got, "dcgm_health")] == ["index:0", "index:1"]


def test_a_healthy_node() -> None:
    got = FORMAT.parse(HEALTHY, CONTEXT)
    assert_in_vocabulary(got, FORMAT)
    assert value(got, "node.dcgm.health") == "healthy"
    assert not events(got, "dcgm_health")
    assert status(got, "dcgm_health_node") is Status.NONE_SEEN


def test_no_watch_and_no_answer_are_not_healthy() -> None:
    nobody = FORMAT.parse("Error: Health watches not enabled. Please enable watches. \n", CONTEXT)
    assert status(nobody, "node.dcgm.health") is Status.NOT_ASKED
    failed = FORMAT.parse("Error: Unable to check health watches. Return: The Group is not found\n", CONTEXT)
    assert status(failed, "node.dcgm.health") is Status.FAILED
    internal = FORMAT.parse(HEALTHY.replace("Healthy       ", "Internal error"), CONTEXT)
    assert one(internal, "node.dcgm.health").status is Status.FAILED


def test_recognition() -> None:
    assert [FORMAT.sniff(capture(name)) for name in NAMES] == [100, 100, 100]
    assert FORMAT.sniff("Error: Health watches not enabled. Please enable watches. \n") == 90
    for other in ("dcgm/diag-v4.json", "dcgm/diag-table.txt", "dcgm/nvlink-e.txt", "dcgm/exporter-k8s.prom"):
        assert FORMAT.sniff(capture(other)) == 0, other


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
def test_any_cut_is_answered(name: str, at: int) -> None:
    check_cut(FORMAT, name, at)


@given(shuffled_lines(NAMES))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)
