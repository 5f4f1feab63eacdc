"""Health of drives as nvme-cli and smartctl print it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.base import Context, DocumentFormat, best
from probes.parse import nvme_smart_log, smartctl
from probes.parse._drive_facts import WARNINGS
from probes.registry import document_formats
from tests.cases import each
from tests.probes.parse.smi_case import CONTEXT, all_of, capture, parse, status, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

NVME, SMART = nvme_smart_log.FORMAT, smartctl.FORMAT
FILES = {
    NVME: ("nvme-healthy.json", "nvme-sick.json", "nvme-text.txt"),
    SMART: ("smartctl-sata-healthy.json", "smartctl-sata-sick.json", "smartctl-nvme-healthy.json", "smartctl-sas.json", "smartctl-denied.json"),
}  # fmt: skip


@each(("form", "name"), [(form, name) for form, names in FILES.items() for name in names])
def test_each_capture_is_recognised_as_what_it_is(form: DocumentFormat, name: str) -> None:
    assert best(document_formats(), capture(f"drives/{name}")[:65536]) is form
    assert parse(form, f"drives/{name}")


@pytest.mark.parametrize("form", FILES)
def test_other_texts_are_not_taken(form: DocumentFormat) -> None:
    for text in (
        "",
        "{}",
        "[]",
        '{"critical_warning": 0}',
        "Additional Smart Log for NVME device:nvme0 namespace-id:1\n",
        "null",
    ):
        assert form.sniff(text) == 0
        assert form.parse(text, CONTEXT) == []


def test_a_healthy_drive_in_kelvin_and_a_sick_one() -> None:
    well, ill = parse(NVME, "drives/nvme-healthy.json"), parse(NVME, "drives/nvme-sick.json")
    assert value(well, "drive.temperature") == 38.0
    assert [value(well, f"drive.warning.{name}") for name in WARNINGS] == [False] * 5
    assert [value(ill, f"drive.warning.{name}") for name in WARNINGS] == [True, True, True, False, False]
    assert (value(ill, "drive.wear"), value(ill, "drive.media_errors")) == (104.0, 12)
    assert (value(ill, "drive.throttled.heat"), value(ill, "drive.time_critical")) == (42, 21)


def test_the_drive_is_known_from_the_command_or_the_title() -> None:
    text = capture("drives/nvme-healthy.json")
    named = NVME.parse(text, Context("nvme smart-log /dev/nvme3n1 -o json", "n"))
    assert {o.subject.id for o in named} == {"nvme3"}, "a namespace is of its controller"
    got = parse(NVME, "drives/nvme-text.txt")
    assert {o.subject.id for o in got} == {"nvme1"}
    assert (value(got, "drive.temperature"), value(got, "drive.power_on")) == (36.0, 11022.0)
    assert (value(got, "drive.time_hot"), value(got, "drive.throttled.heat"), value(got, "drive.spare")) == (
        5,
        2,
        100.0,
    )


def test_the_human_readable_json_and_counters_of_128_bits() -> None:
    log = json.loads(capture("drives/nvme-healthy.json"))
    text = json.dumps(
        log | {"critical_warning": {"value": 8, "ro": 1}, "media_errors": "2", "num_err_log_entries": "9" * 38}
    )
    got = NVME.parse(text, CONTEXT)
    assert value(got, "drive.warning.read_only") is True
    assert value(got, "drive.media_errors") == 2
    assert all_of(got, "drive.errors.logged") == [], "no counter is that large"


def test_a_sata_disk() -> None:
    well, ill = parse(SMART, "drives/smartctl-sata-healthy.json"), parse(SMART, "drives/smartctl-sata-sick.json")
    assert (value(well, "drive.healthy"), value(well, "drive.attributes.failing")) == (True, ())
    assert (value(ill, "drive.healthy"), value(ill, "drive.attributes.failing")) == (False, ("Reallocated Sector Ct",))
    assert [value(ill, f"drive.{name}") for name in ("sectors.pending", "sectors.uncorrectable", "cable_errors")] == [
        16,
        16,
        300,
    ]
    assert value(well, "drive.temperature") == 30.0, "not the raw bytes of attribute 194"


def test_nvme_and_sas_through_smartctl() -> None:
    nvme, sas = parse(SMART, "drives/smartctl-nvme-healthy.json"), parse(SMART, "drives/smartctl-sas.json")
    assert {o.subject.id for o in nvme} == {"nvme0"}
    assert (value(nvme, "drive.temperature"), value(nvme, "drive.spare"), value(nvme, "drive.wear")) == (
        38.0,
        100.0,
        4.0,
    )
    assert (value(sas, "drive.sectors.reallocated"), value(sas, "drive.media_errors")) == (4, 2)


def test_a_denied_drive_has_no_verdict() -> None:
    assert status(parse(SMART, "drives/smartctl-denied.json"), "drive.healthy") is Status.DENIED


@pytest.mark.parametrize("form", FILES)
def test_a_cut_document_says_so(form: DocumentFormat) -> None:
    text = capture(f"drives/{FILES[form][0]}")
    got = form.parse(text[: len(text) - 20], CONTEXT)
    assert [o.status for o in got] == [Status.FAILED]


@given(
    st.sampled_from([name for names in FILES.values() for name in names]), st.integers(0, 5000), st.binary(max_size=8)
)
def test_no_damage_makes_a_parser_raise(name: str, at: int, junk: bytes) -> None:
    data = capture(f"drives/{name}").encode()
    text = (data[: at % len(data)] + junk + data[at % len(data) + len(junk) :]).decode("utf-8", "replace")
    for form in FILES:
        assert_in_vocabulary(form.parse(text, CONTEXT), form)


@given(st.dictionaries(
    st.sampled_from(["device", "smart_status", "temperature", "ata_smart_attributes", "nvme_smart_health_information_log",
                     "power_on_time", "scsi_error_counter_log", "smartctl", "model_name"]),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
                 | st.dictionaries(st.sampled_from(["name", "passed", "current", "table", "id", "raw", "value", "messages", "read"]),
                                   inner, max_size=4), max_leaves=12)))  # fmt: skip
def test_no_document_makes_the_parser_raise(fields: dict[str, object]) -> None:
    text = json.dumps({"json_format_version": [1, 0], "smartctl": {}, "device": {"name": "/dev/sda"}} | fields)
    assert_in_vocabulary(SMART.parse(text, CONTEXT), SMART)


def _attribute(number: int, name: str, raw: int, shown: str = "", *, failed: str = "", early: bool = False) -> object:
    return {"id": number, "name": name, "when_failed": failed, "flags": {"prefailure": early}, "raw": {"value": raw, "string": shown or str(raw)}}  # fmt: skip


def test_numbers_that_mean_something_else_on_a_drive_and_a_warm_one_are_no_failure() -> None:
    rows = [
        _attribute(5, "Reallocated_Sector_Ct", 8 + (3 << 16), "8 (3 0)", early=True),
        _attribute(190, "Airflow_Temperature_Cel", 60, failed="now"),
        _attribute(197, "Read_Failure_Blk_Ct", 123),
        _attribute(198, "Read_Sectors_Tot_Ct", 112312312),
        _attribute(199, "Unknown_SSD_Attribute", 5000000),
    ]
    document = {
        "json_format_version": [1, 0], "smartctl": {"exit_status": 0, "messages": True}, "device": {"name": "/dev/sda"},
        "ata_smart_attributes": {"table": rows},
    }  # fmt: skip
    got = SMART.parse(json.dumps(document), CONTEXT)
    assert (value(got, "drive.sectors.reallocated"), value(got, "drive.attributes.failing")) == (8, ())
    for fact in ("drive.sectors.pending", "drive.sectors.uncorrectable", "drive.cable_errors"):
        assert not all_of(got, fact), fact
    rows[0] = _attribute(5, "Reallocated_Sector_Ct", 8, failed="now", early=True)
    got = SMART.parse(json.dumps(document), CONTEXT)
    assert value(got, "drive.attributes.failing") == ("Reallocated Sector Ct",)
