"""Tests replace nothing of what they test: a stand-in is handed over, or is a real file, process or environment variable."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MOCKS = ("mock", "unittest.mock", "pytest_mock")
REPLACING = {"setattr", "setitem", "delattr", "delitem", "__setattr__", "__delattr__", "patch", "mocker"}
SETTABLE = {"os.environ", "threading.excepthook"}  # made to be set
# Run as programs of their own, and tests of nothing: a machine that is played with other clocks and disks, jobs that are looked at.
PROGRAMS = {"demo_machine.py", "jobs"}
# To look into every file takes five seconds: only into those with a suspicious word, or with "x.y = ", where x is not `self`.
SUSPICIOUS = re.compile(
    r"(?:set|del)(?:attr|item)|mock|\bpatch\b|\bdel \w+\.|(?<!\bself)\.\w+(?:,[\w ,.]*|:[^=()]*)? [-+*/|&%]?=(?!=)"
)


def patches(source: str) -> Iterator[tuple[int, str]]:
    """Line and words of what replaces something that is not the test's own."""
    if not SUSPICIOUS.search(source):
        return
    tree = ast.parse(source)
    imported = {name for node in ast.walk(tree) for name in _imported(node)}
    for node in ast.walk(tree):
        if any(name in MOCKS for name in _modules(node)):
            yield node.lineno, ast.unparse(node)  # type: ignore[attr-defined]  # an import has a line
        if isinstance(node, ast.Call) and _last(node.func) in REPLACING:
            yield node.lineno, ast.unparse(node.func)
        for target in _targets(node):
            said = ast.unparse(target)
            if _first(target) in imported and said not in SETTABLE:
                yield target.lineno, said


def _modules(node: ast.AST) -> list[str]:
    """The modules that an import names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def _imported(node: ast.AST) -> list[str]:
    """The names that an import makes, but `sys`: its streams and its words are set by whoever starts a program."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return []
    names = [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    return [name for name in names if name != "sys"]


def _targets(node: ast.AST) -> list[ast.Attribute]:
    """The attributes that a statement sets or deletes."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        found = [part for target in node.targets for part in _parts(target)]
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        found = [node.target]
    return [target for target in found if isinstance(target, ast.Attribute)]


def _parts(target: ast.expr) -> list[ast.expr]:
    return [p for t in target.elts for p in _parts(t)] if isinstance(target, ast.Tuple | ast.List) else [target]


def _first(node: ast.expr) -> str:
    """The name that a chain of attributes begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.expr) -> str:
    """The name that is called."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@pytest.mark.slow
def test_nothing_is_patched() -> None:
    files = [f for f in sorted(HERE.rglob("*.py")) if f.relative_to(HERE).parts[0] not in PROGRAMS]
    assert len(files) > 500
    found = [f"{f.relative_to(HERE)}:{line}: {said}" for f in files for line, said in patches(f.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize("line", [
    "monkeypatch.setattr(os, 'mkdir', print)", "monkeypatch.setitem(sys.modules, 'a', None)", "patch.delattr('os.getcwd')",
    "setattr(machine, 'PATIENCE', 0)", "object.__setattr__(rule, 'action', None)", "machine.PATIENCE = 0",
    "machine.Node.reach, x = None, 1", "machine.PATIENCE += 1", "del machine.PATIENCE", "with mock.patch('os.mkdir'): pass",
    "from unittest import mock", "import unittest.mock", "from unittest.mock import MagicMock", "mocker.patch('os.mkdir')",
])  # fmt: skip
def test_each_way_of_patching_is_seen(line: str) -> None:
    assert list(patches(f"from assistant import machine\n{line}\n"))


def test_what_a_test_may_set_is_let_be() -> None:
    own = "import os, sys\nmonkeypatch.setenv('A', 'b')\nos.environ['A'] = 'b'\nsys.argv = []\nself.count = 1\nhost.name = ''\n"
    assert list(patches(own)) == []
