"""``ethtool -m`` and ``mlxlink``: modules as they tell of themselves, and nothing from copper, dark lanes and cut texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Scope, Status
from probes.base import Context
from probes.parse import ethtool_module, mlxlink
from probes.registry import document_formats
from tests.cases import each
from tests.probes.parse.smi_case import CAPTURES, all_of, capture, one, parse, status, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

FORMATS = (ethtool_module.FORMAT, mlxlink.FORMAT)
LIGHT = ("optics.rx.power", "optics.rx.margin", "optics.tx.power", "optics.tx.margin")


def module(name: str) -> list[Observation]:
    return parse(ethtool_module.FORMAT, f"network/ethtool-m.{name}.txt")


def link(name: str) -> list[Observation]:
    return parse(mlxlink.FORMAT, f"network/mlxlink.{name}")


@each("path", sorted((CAPTURES / "network").glob("*")), ids=lambda p: p.name)
def test_each_is_known_by_its_own_parser_alone(path: object) -> None:
    text = path.read_text()  # type: ignore[attr-defined] # a path
    for form in FORMATS:
        wanted = {"ethtool-module": "ethtool-m.", "mlxlink": "mlxlink."}[form.name]
        assert (form.sniff(text) > 0) == path.name.startswith(wanted), (path, form.name)  # type: ignore[attr-defined]
        if form.sniff(text):
            assert max(document_formats(), key=lambda f: f.sniff(text)).name == form.name


def test_a_healthy_module() -> None:
    got = module("healthy")
    assert value(got, "optics.of_interface") == "nic:eth2"
    assert one(got, "optics.type").subject.id == "module of eth2"
    assert (value(got, "optics.type"), value(got, "optics.medium")) == ("QSFP28", "optical")
    assert (value(got, "optics.temperature"), value(got, "optics.temperature.margin")) == (47.11, 27.89)
    assert (value(got, "optics.rx.power"), value(got, "optics.rx.margin")) == (-0.8, 12.6)
    assert (value(got, "optics.tx.power"), value(got, "optics.tx.margin")) == (-0.42, 7.58)
    assert (value(got, "optics.dark"), value(got, "optics.alarms")) == (False, ())


def test_the_weakest_lane_counts() -> None:
    got = module("sick")
    assert [value(got, f) for f in ("optics.rx.power", "optics.rx.margin", "optics.tx.margin")] == [-15.2, -1.8, -1.1]
    assert value(got, "optics.temperature.margin") == -1.5
    assert value(got, "optics.alarms") == ("module temperature high alarm", "laser rx power low alarm (channel 2)")


def test_lanes_that_are_not_used_are_no_fault() -> None:
    got = module("half-used")
    assert (value(got, "optics.rx.power"), value(got, "optics.tx.power"), value(got, "optics.dark")) == (
        -0.6,
        -0.42,
        False,
    )


def test_without_any_light_there_is_no_margin() -> None:
    got = module("dark")
    assert value(got, "optics.dark") is True
    assert status(got, "optics.rx.margin") is Status.NOT_APPLICABLE
    assert value(got, "optics.tx.power") == -0.42


def test_copper_has_no_light_and_no_temperature() -> None:
    for got in (module("copper"), link("healthy-copper.txt")):
        assert value(got, "optics.medium") == "copper"
        assert {status(got, fact) for fact in LIGHT} == {Status.NOT_APPLICABLE}
        assert status(got, "optics.temperature.margin") is Status.UNSUPPORTED


def test_a_module_of_one_lane() -> None:
    got = module("sfp")
    assert [value(got, f) for f in ("optics.rx.margin", "optics.tx.margin", "optics.temperature.margin")] == [
        16.1,
        8.0,
        55.38,
    ]
    assert one(got, "optics.type").subject.id == "module of eno1"


@each(
    ("text", "expected"),
    [
        ("netlink error: Operation not supported\n", Status.UNSUPPORTED),
        ("Cannot get module EEPROM information: Operation not permitted\n", Status.DENIED),
        ("Offset\t\tValues\n------\t\t------\n0x0000:\t\t11 07\n", Status.FAILED),
        ("", Status.FAILED),
    ],
)
def test_without_a_module_the_reason_is_told(text: str, expected: Status) -> None:
    got = ethtool_module.FORMAT.parse(text, Context("ethtool -m eth9"))
    assert [(o.fact, o.subject.id, o.status) for o in got] == [("optics.alarms", "module of eth9", expected)]
    assert got[0].detail


def test_a_healthy_link() -> None:
    got = link("healthy-optical.txt")
    port = one(got, "port.link.up").subject
    assert (port.scope, port.id) == (Scope.PORT, "mlx5_3/1")
    assert [value(got, f"port.link.{n}") for n in ("up", "speed", "speed.best", "opcode")] == [True, 400.0, 400.0, 0]
    assert value(got, "port.link.advice") == "No issue was observed"
    assert value(got, "port.ber.effective") == value(got, "port.ber.symbol") == 15e-255
    assert (value(got, "port.ber.raw"), value(got, "port.ber.seconds")) == (2e-9, 2090070.0)
    assert (value(got, "optics.of_port"), value(got, "optics.rx.margin"), value(got, "optics.tx.margin")) == (
        "port:mlx5_3/1",
        6.75,
        4.43,
    )


def test_json_tells_what_the_text_tells() -> None:
    text = capture("network/mlxlink.healthy-optical.txt")
    sections, _ = mlxlink._sections(text)
    document = json.dumps({"result": {"output": sections}, "status": {"code": 0, "message": "success"}})
    context = Context("mlxlink -d mlx5_3 -m -c --json", "n")
    plain = [(o.fact, o.subject, o.value, o.status) for o in mlxlink.FORMAT.parse(text, context)]
    assert [(o.fact, o.subject, o.value, o.status) for o in mlxlink.FORMAT.parse(document, context)] == plain


def test_a_sick_link() -> None:
    got = link("sick.json")
    assert [value(got, f"port.link.{n}") for n in ("speed", "speed.best", "opcode", "advice")] == [
        200.0,
        400.0,
        15,
        "Bad signal integrity",
    ]
    assert value(got, "port.ber.effective") == 5e-10
    assert [value(got, f"optics.{n}.margin") for n in ("rx", "tx", "temperature")] == [-1.91, -0.54, -2.0]
    assert value(got, "optics.alarms") == ("transmit fault (lane 3)",)


def test_a_port_without_a_cable_has_no_errors() -> None:
    got = link("no-cable.json")
    assert (value(got, "port.link.up"), value(got, "port.link.opcode")) == (False, 1024)
    assert status(got, "port.ber.effective") is Status.NOT_APPLICABLE
    assert not all_of(got, "port.link.speed")


@each(
    ("text", "expected"),
    [
        ("\x1b[31m\n-E- Failed to send access register: ICMD error 0x4\n\x1b[0m", Status.FAILED),
        ("-E- Failed to open device: mlx5_0. Permission denied\n", Status.DENIED),
        ('{"result": {"output": {"Operational Info": {"State": "Act', Status.FAILED),
        ('{"status": {"code": 1, "message": "ICMD semaphore timeout"}, "result": {"output": {}}}', Status.FAILED),
    ],
)
def test_without_a_link_the_reason_is_told(text: str, expected: Status) -> None:
    got = mlxlink.FORMAT.parse(text, Context("mlxlink -d mlx5_0 -m -c --json"))
    assert [(o.fact, o.subject.id, o.status) for o in got] == [("port.link.up", "mlx5_0/1", expected)]


@pytest.mark.parametrize("name", ["mlxlink.healthy-optical.txt", "mlxlink.sick.json", "ethtool-m.sick.txt"])
@given(data=st.data())
def test_any_part_of_a_text_is_read_or_refused(name: str, data: st.DataObject) -> None:
    text = capture(f"network/{name}")
    at = data.draw(st.integers(0, len(text)))
    inserted = data.draw(st.sampled_from(["", "\x00", "\x1b[31m", "∞", "9" * 400, " : ", "[..]", "{"]))
    form = ethtool_module.FORMAT if name.startswith("ethtool") else mlxlink.FORMAT
    for part in (text[:at], text[at:], text[:at] + inserted + text[at:]):
        assert_in_vocabulary(form.parse(part, Context("x", "n")), form)


def test_a_laser_that_is_switched_off_and_a_limit_of_zero_are_no_fault() -> None:
    text = (
        "\tIdentifier                                : 0x03 (SFP)\n"
        "\tConnector                                 : 0x07 (LC)\n"
        "\tModule temperature                        : 41.00 degrees C / 105.80 degrees F\n"
        "\tLaser output power                        : 0.0000 mW / -inf dBm\n"
        "\tReceiver signal average optical power     : 0.5400 mW / -2.68 dBm\n"
        "\tLaser output power low alarm threshold    : 0.1000 mW / -10.00 dBm\n"
        "\tLaser rx power low alarm threshold        : 0.0100 mW / -20.00 dBm\n"
        "\tModule temperature high alarm threshold   : 0.00 degrees C / 32.00 degrees F\n"
    )
    got = ethtool_module.FORMAT.parse(text, Context("ethtool -m eth0", "n"))
    assert status(got, "optics.temperature.margin") is Status.UNSUPPORTED
    assert status(got, "optics.tx.margin") is Status.NOT_APPLICABLE
    assert value(got, "optics.rx.margin") == 17.32
