"""Captured tool outputs, sick and healthy, from the file to the findings. The files stand in tool_cases/."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from assistant.diagnosis import Diagnosis, diagnose
from assistant.exits import Exit
from assistant.sources import read
from rules.loader import load
from rules.model import Severity
from tests.cases import each

FOLDER = Path(__file__).with_name("tool_cases")


@dataclass(frozen=True)
class Capture:
    """One line of tool_cases/index.yaml."""

    file: str
    rules: tuple[str, ...] = ()
    quiet: bool = False


CAPTURES = [
    Capture(entry["file"], tuple(entry.get("rules", ())), entry.get("quiet", False))
    for entry in yaml.safe_load((FOLDER / "index.yaml").read_text(encoding="utf-8"))
]


def judge(name: str) -> Diagnosis:
    reading = read([], [str(FOLDER / name)])
    assert reading.kinds, f"{name} was not recognised"
    return diagnose(reading.observations, load())


def test_every_file_is_listed_once() -> None:
    listed = [c.file for c in CAPTURES]
    assert sorted(listed) == sorted({p.name for p in FOLDER.iterdir()} - {"index.yaml"})
    assert len(listed) >= 30
    assert len([c for c in CAPTURES if c.quiet]) >= 15


@pytest.mark.slow
@each("capture", [c for c in CAPTURES if c.quiet], ids=lambda c: c.file)
def test_a_healthy_machine_stays_at_info(capture: Capture) -> None:
    d = judge(capture.file)
    assert [(f.rule.id, f.severity) for f in d.findings if f.severity is not Severity.INFO] == []
    assert d.exit is Exit.OK
    assert d.verdict.state == "ok"


@pytest.mark.slow
@each("capture", [c for c in CAPTURES if not c.quiet], ids=lambda c: c.file)
def test_a_sick_machine_is_called_by_its_name(capture: Capture) -> None:
    d = judge(capture.file)
    said = {f.rule.id for f in d.findings if f.severity is not Severity.INFO}
    assert set(capture.rules) <= said
    assert d.roots[0].rule.id == capture.rules[0]
    assert d.exit is Exit.FINDING
