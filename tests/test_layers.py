"""The direction of the packages, checked where it counts: in the modules that a fresh process has loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {"assistant", "rules", "probes", "knowledge", "tui"}


def modules_of(package: str) -> list[str]:
    """Every module of a package, helpers included."""
    files = sorted((ROOT / package).rglob("*.py"))
    names = [".".join(f.relative_to(ROOT).with_suffix("").parts) for f in files]
    return [n.removesuffix(".__init__") for n in names if not n.endswith("__main__")]


def loaded_by(names: list[str]) -> set[str]:
    """Top-level packages of ours that are loaded after importing `names` in a fresh process."""
    program = f"import importlib, sys\nfor n in {names!r}: importlib.import_module(n)\nprint(*{{m.split('.')[0] for m in sys.modules}})"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(out.stdout.split()) & PACKAGES


@pytest.mark.process
@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("knowledge", {"knowledge"}),
        ("rules", {"rules", "knowledge"}),
        ("probes", {"probes", "knowledge"}),
        ("assistant", {"assistant", "rules", "probes", "knowledge"}),
    ],
)
def test_a_package_loads_nothing_above_or_beside_it(package: str, allowed: set[str]) -> None:
    names = modules_of(package)
    assert len(names) > 5
    assert loaded_by(names) == allowed


@pytest.mark.process
def test_the_contract_is_kept() -> None:
    tool = Path(sys.executable).parent / "lint-imports"
    if not tool.exists():
        pytest.fail("import-linter is a development dependency and is missing")
    done = subprocess.run([tool, "--no-cache"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    assert "1 kept, 0 broken" in done.stdout
