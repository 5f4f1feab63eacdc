"""Every sentence that we ship for people stands in both languages: in code as in data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import each

ROOT = Path(__file__).parent.parent
PACKAGES = ("assistant", "knowledge", "probes", "rules", "tui")
HAN = re.compile("[\u4e00-\u9fff]")
# A word that a Chinese reader would want translated: two small letters or more that are no name, unit or code.
WORD = re.compile(r"(?<![\w./{-])[a-z]{3,}(?![\w./}-])")


def _constant(node: ast.expr) -> str | None:
    """The fixed words of a string or an f-string; None when it is put together elsewhere."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return " ".join(v.value for v in node.values if isinstance(v, ast.Constant) and isinstance(v.value, str))
    return None


def _texts(path: Path) -> Iterator[tuple[int, str, str | None]]:
    """Line, English and Chinese of every ``Text(...)`` whose English is written there."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Text" and node.args:
            english = _constant(node.args[0])
            if english is None or any(isinstance(a, ast.Starred) for a in node.args):
                continue
            chinese = _constant(node.args[1]) if len(node.args) > 1 else ""
            yield node.lineno, english, chinese


def _lacks(english: str, chinese: str) -> bool:
    """Whether a translation is missing. A name or a command that stands there twice is meant to stay as it is."""
    english = re.sub(r"\bthe\b", "", english)
    named = english.strip().casefold() == chinese.strip().casefold() or english.startswith(
        ("gpudiag ", "sudo gpudiag ")
    )
    return not HAN.search(chinese) and bool(WORD.search(english)) and not named


def _faults(path: Path) -> list[str]:
    where = path.relative_to(ROOT)
    return [
        f"{where}:{line}: {english!r} has no Chinese"
        for line, english, chinese in _texts(path)
        if chinese is not None and _lacks(english, chinese)
    ]


def _pairs(data: Any, place: str) -> Iterator[tuple[str, str, str]]:
    """Place, English and Chinese of every bilingual sentence of a data file."""
    if isinstance(data, dict):
        if "en" in data and set(data) <= {"en", "zh"} and isinstance(data["en"], str):
            yield place, data["en"], data.get("zh") or ""
            return
        for key, value in data.items():
            yield from _pairs(value, f"{place}.{key}")
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _pairs(value, f"{place}.{number}")


DATA = [*(ROOT / "knowledge" / "data").rglob("*.yaml"), *(ROOT / "rules" / "catalog").rglob("*.yaml"),
        *(ROOT / "assistant" / "demos").glob("*/story.yaml")]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("package", ["knowledge", "rules", "assistant"])
def test_every_sentence_in_data_is_translated(package: str) -> None:
    files = sorted(p for p in DATA if p.relative_to(ROOT).parts[0] == package)
    assert files
    faults = [
        f"{path.relative_to(ROOT)}{place}: {en!r} has no Chinese"
        for path in files
        for place, en, zh in _pairs(yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader), "")
        if _lacks(en, zh)
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.slow
@each("package", PACKAGES)
def test_every_sentence_in_code_is_translated(package: str) -> None:
    faults = [fault for path in sorted((ROOT / package).rglob("*.py")) for fault in _faults(path)]
    assert not faults, "\n".join(faults)


def test_the_check_sees_what_is_missing(tmp_path: Path) -> None:
    source = 'Text("no answer yet")\nText("no answer", "")\nText("GPU {n}", "GPU {n}")\nText("fan", "风扇")\n'
    (tmp_path / "x.py").write_text(source, encoding="utf-8")
    lines = [line for line, en, zh in _texts(tmp_path / "x.py") if zh is not None and _lacks(en, zh)]
    assert lines == [1, 2]
