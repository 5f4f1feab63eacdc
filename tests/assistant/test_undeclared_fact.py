"""A parser with a typo in the name of a fact: gpudiag calls it its own bug, where it could have said that all is well."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Gpudiag
from tests.overlay import checkout

PARSER = '''
"""widget: no fault"""
from knowledge.observation import Observation, node
from probes.base import DocumentFormat


def parse(text, context):
    return [Observation("gpu.nvml.reachabel", node("n1"), True, source=context.at("widget", 1, 1), excerpt=text)]


FORMAT = DocumentFormat("widget", "widget status", 1, ("gpu.nvml.reachabel",), lambda head: 100 * head.startswith("widget:"), parse)
'''


@pytest.fixture
def faulty(tmp_path: Path) -> dict[str, str]:
    """A checkout with the parser; what it compiles stays out of the others' way."""
    (checkout(tmp_path / "checkout") / "probes/parse/widget.py").write_text(PARSER)
    return {"PYTHONPATH": str(tmp_path / "checkout"), "GPUDIAG_CACHE_DIR": str(tmp_path / "cache")}


def test_it_is_no_answer_and_the_lint_names_it(
    gpudiag_process: Gpudiag, faulty: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "widget.txt").write_text("widget: no fault\n")
    done = gpudiag_process("check", "--no-history", "--input", "widget.txt", env=faulty, cwd=tmp_path)
    assert (done.code, done.out) == (70, "")
    said = "widget tells 'gpu.nvml.reachabel', which is no fact; the nearest is 'gpu.nvml.reachable'"
    assert f"gpudiag: this is a bug in gpudiag (UndeclaredFactError: {said})" in done.err
    assert len(done.err.splitlines()) == 1
    lint = gpudiag_process("rules", "lint", env=faulty, cwd=tmp_path)
    assert lint.code == 2
    assert lint.out.splitlines()[0] == (
        "probes/parse/widget.py:8:1: provides 'gpu.nvml.reachabel', which is no fact (the nearest is 'gpu.nvml.reachable')"
    )
    assert " 1 faults, 0 warnings\n" in lint.out
