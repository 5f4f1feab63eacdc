"""Every sentence of the data files: its intent, its slots, and a topic among the first three."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from assistant.intent.parse import understand
from assistant.intent.query import FOLLOW_UPS, Intent
from knowledge import yamlfile
from tests.cases import each

HERE = Path(__file__).parent


@cache
def sentences() -> tuple[dict[str, Any], ...]:
    """Every entry of the data files."""
    out: list[dict[str, Any]] = []
    for path in sorted(HERE.glob("sentences_*.yaml")):
        document = yamlfile.load(path)
        assert not document.faults
        out += document.data
    return tuple(out)


@pytest.mark.slow
@each("entry", sentences, ids=lambda entry: entry["say"])
def test_sentence(entry: dict[str, Any]) -> None:
    query = understand(entry["say"])
    assert str(query.intent) == entry["intent"]
    if entry["intent"] != "unknown":
        assert {name: list(values) for name, values in query.slots.named()} == entry.get("slots", {})
    if wanted := entry.get("topic"):
        assert [t.id for t in query.topics[:3] if wanted in t.id], [t.id for t in query.topics]


def test_there_are_enough_of_each_kind() -> None:
    entries = sentences()
    said = [e["say"] for e in entries]
    han = [s for s in said if any("\u4e00" <= c <= "\u9fff" for c in s)]
    assert len(set(said)) >= 260
    assert len(han) >= 70
    assert sum(Intent(e["intent"]) in FOLLOW_UPS for e in entries) >= 45
    assert sum(e["intent"] == "unknown" for e in entries) >= 35
    assert {e["intent"] for e in entries} == set(map(str, Intent))


def test_typos_are_told() -> None:
    query = understand("waht is xdi 79")
    assert dict(query.fixed) == {"waht": "what", "xdi": "xid"}
    assert understand("what is xid 79").fixed == ()


@each(
    ("said", "assumed"),
    [
        ("what if ECC is off and persistence mode is on",
         [("gpu.ecc.mode", "false", "is"), ("gpu.persistence_mode", "true", "is")]),
        ("what if the limit were 90", [("limit", "90", "is")]),
        ("assuming there was no xid 48", [("xid", "48", "none")]),
        ("what if the temperature was above 90", [("gpu.temperature.core", "90", "above")]),
        ("如果温度低于 60 度呢", [("gpu.temperature.core", "60", "below")]),
        ("what if thermal-margin-low.margin = 10", [("thermal-margin-low.margin", "10", "is")]),
        ("假如没有 xid 48 和 63 呢", [("xid", "48", "none"), ("xid", "63", "none")]),
    ],
)  # fmt: skip
def test_assumptions(said: str, assumed: list[tuple[str, str, str]]) -> None:
    query = understand(said)
    assert query.intent is Intent.WHATIF
    assert [tuple(a[:3]) for a in query.assumed] == assumed


def test_the_echo_names_what_was_understood() -> None:
    query = understand("why is training slow? pid 4242")
    assert "pid 4242" in query.echo.en
    assert query.echo.en.startswith("diagnose: ")
    assert "slow" in query.echo.en
    assert query.echo.zh.startswith("诊断：")
