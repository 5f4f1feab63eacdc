from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Event, Status
from probes.parse.dcgmi_diag import FORMAT
from tests.cases import each
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

NAMES = ("dcgm/diag-v2.json", "dcgm/diag-v4.json", "dcgm/diag-table.txt")


def result(status: str, **more: object) -> str:
    tests = [{"name": "memory", "results": [{"status": status, **more}]}]
    return json.dumps({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]}})


def test_json_of_dcgm_2_names_gpus_in_lists() -> None:
    got = parse(FORMAT, NAMES[0])
    assert events(got, "dcgm_diag", "index:2") == [
        Event(None, {"test": "GPU Memory", "status": "fail", "message": "GPU 2 reported a double bit error"}),
        Event(None, {"test": "SM Stress", "status": "skip"}),
    ]
    assert events(got, "dcgm_diag", "index:1")[0] == Event(
        None, {"test": "GPU Memory", "status": "pass", "message": "Allocated 98 %"})  # fmt: skip
    assert Event(None, {"test": "Persistence Mode", "status": "fail", "message": "Persistence mode for GPU 1 is off.",
                        "error_id": 29}) in events(got, "dcgm_diag_node")  # fmt: skip
    assert value(got, "node.dcgm.diag.result") == "fail"
    assert [value(got, f"node.dcgm.diag.tests_{w}") for w in ("failed", "warned", "passed", "skipped")] == [2, 0, 1, 1]
    assert value(got, "node.dcgm.version") == "2.4.7"


def test_json_of_dcgm_4_names_entities_and_error_numbers() -> None:
    got = parse(FORMAT, NAMES[1])
    assert events(got, "dcgm_diag", "index:1") == [
        Event(None, {"test": "software", "status": "fail", "message": "Persistence Mode: off for GPU 1", "error_id": 29,
                     "error_category": 8, "error_severity": 5}),
        Event(None, {"test": "software", "status": "fail", "message": "row remap failure", "error_id": 83,
                     "error_category": 2, "error_severity": 3}),
    ]  # fmt: skip
    assert events(got, "dcgm_diag", "index:0")[1].get("status") == "skip"
    assert events(got, "dcgm_diag_node") == [Event(None, {"test": "cpu_eud", "status": "not_run"})]
    assert value(got, "gpu.serial", "index:1") == "165002"
    assert value(got, "node.driver.version") == "590.10.01"
    assert value(got, "node.dcgm.version") == "4.2.3"


def test_the_table() -> None:
    got = parse(FORMAT, NAMES[2])
    assert events(got, "dcgm_diag", "index:1") == [
        Event(None, {"test": "GPU Memory", "status": "fail", "message": "GPU 1 had uncorrectable errors"})]  # fmt: skip
    persistence = next(e for e in events(got, "dcgm_diag_node") if e.get("test") == "Persistence Mode")
    assert persistence.get("message") == "Persistence mode for GPU 0 is disabled. Enable it with nvidia-smi."
    assert [value(got, f"node.dcgm.diag.tests_{w}") for w in ("failed", "warned", "passed", "skipped")] == [2, 0, 1, 1]


def test_the_table_of_dcgm_4_has_a_row_for_each_gpu() -> None:
    text = (
        "| Diagnostic                | Result                                         |\n"
        "| memory                    | Fail                                           |\n"
        "|                           | GPU0: Pass                                     |\n"
        "|                           | GPU1: Fail                                     |\n"
        "| Warning: GPU1             | GPU 1: a row could not be remapped             |\n"
    )
    got = FORMAT.parse(text, CONTEXT)
    assert_in_vocabulary(got, FORMAT)
    assert [e.get("status") for e in events(got, "dcgm_diag")] == ["pass", "fail"]
    assert events(got, "dcgm_diag", "index:1")[0].get("message") == "GPU 1: a row could not be remapped"
    assert value(got, "node.dcgm.diag.tests_failed") == 1


def test_a_table_of_chosen_tests_has_no_part_for_deployment() -> None:
    rule = "-----  {}  ----------+-------------------"
    text = "\n".join(
        (
            "+---+---+",
            "| Diagnostic | Result |",
            "+===+===+",
            f"|{rule.format('Metadata')}|",
            "| DCGM Version | 3.3.8 |",
            f"+{rule.format('Integration')}+",
            "| PCIe | Fail - GPU: 2 |",
            "| Warning | GPU 2 Host to GPU bandwidth 3.10 below minimum |",
            "| | allowed 20.00. |",
            "+---+---+",
        )
    )
    found = FORMAT.parse(text, CONTEXT)
    assert [(e.get("test"), e.get("status")) for e in events(found, "dcgm_diag", "index:2")] == [("PCIe", "fail")]


def test_a_diagnostic_in_which_nothing_ran_did_not_pass() -> None:
    assert value(FORMAT.parse(result("Skip"), CONTEXT), "node.dcgm.diag.result") == "not_run"
    assert value(FORMAT.parse(result("Pass"), CONTEXT), "node.dcgm.diag.result") == "pass"
    assert value(FORMAT.parse(result("Warn"), CONTEXT), "node.dcgm.diag.result") == "warn"


def test_a_status_that_is_not_known_is_no_result() -> None:
    got = FORMAT.parse(result("Perhaps", entity_id=3, entity_group="GPU"), CONTEXT)
    assert status(got, "dcgm_diag", "index:3") is Status.FAILED
    assert status(got, "node.dcgm.diag.result") is Status.FAILED


def test_a_diagnostic_that_failed_to_run_or_was_cut_has_no_result() -> None:
    for text in (
        '{"DCGM Diagnostic": {"runtime_error": "Unable to reach the host engine"}}',
        "Error: unable to establish a connection to the specified host: localhost\n",
        capture(NAMES[1])[:300],
    ):
        found = one(FORMAT.parse(text, CONTEXT), "node.dcgm.diag.result")
        assert found.status is Status.FAILED
        assert found.detail


def test_recognition() -> None:
    assert [FORMAT.sniff(capture(name)) for name in NAMES] == [100, 100, 100]
    for other in ("dcgm/health-v4.json", "dcgm/nvlink-e.json", "smi/table-590-mig.txt", "dcgm/health-v1.txt"):
        assert FORMAT.sniff(capture(other)) == 0, other


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["Pass", "FAIL", "GPU", "x", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["DCGM Diagnostic", "test_categories", "tests", "results", "name", "status", "warnings", "warning",
                         "info", "entity_id", "entity_group", "gpu_ids", "error_id", "metadata", "version",
                         "entity_groups", "entities", "serial_num", "runtime_error", "test_summary"]), inner, max_size=4),
    max_leaves=25,
)  # fmt: skip


@given(JSON)
def test_any_json_is_answered(value: object) -> None:
    check_any(FORMAT, json.dumps({"DCGM Diagnostic": value}))


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
def test_any_cut_is_answered(name: str, at: int) -> None:
    check_cut(FORMAT, name, at)


@given(shuffled_lines(NAMES))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)


def test_every_event_is_about_one_thing() -> None:
    got = parse(FORMAT, NAMES[0])
    assert len(all_of(got, "dcgm_diag", "index:0")) == 2


@each("fits, cut", [(46, 45), (46, 46), (41, 41)])
def test_a_word_that_the_cell_has_cut_is_one_word(fits: int, cut: int) -> None:
    """dcgmi cuts a message at so many characters, wherever that is."""
    said = (
        "Detected 3 Uncorrectable errors in device memory of GPU 1, run a field diagnostic on it, and drain the node."
    )
    rows = [said[i : i + cut] for i in range(0, len(said), cut)]
    table = f"""\
| Diagnostic                | {"Result":{fits}} |
| GPU Memory                | {"Fail - GPU: 1":{fits}} |
""" + "".join(f"| {'' if i else 'Warning':25} | {row:{fits}} |\n" for i, row in enumerate(rows))
    (told,) = [
        o.value for o in FORMAT.parse(table, CONTEXT) if isinstance(o.value, Event) and o.value.get("status") == "fail"
    ]
    assert told.get("message") == said
