"""Start-up is part of the design: what each command loads, and what it costs next to an empty Python."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.assistant.stories import DBE

ROOT = Path(__file__).parent.parent
HEAVY = {
    "numpy",
    "sqlmodel",
    "sqlalchemy",
    "pydantic",
    "textual",
    "litellm",
    "slack_bolt",
    "slack_sdk",
    "rich",
    "yaml",
    "platformdirs",
    "shtab",
}


def loaded(environment: dict[str, str], *words: str) -> set[str]:
    """Every module that a command line leaves loaded, by its full name."""
    program = (
        "import sys\nfrom assistant.cli import main\ncode = main(sys.argv[1:])\n"
        "print(*sorted(sys.modules), file=sys.stderr)\nsys.exit(code > 1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, env=environment, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def heavy(modules: set[str]) -> set[str]:
    return {m.split(".")[0] for m in modules} & HEAVY


@pytest.mark.process
def test_version_loads_nothing(clean_environment: dict[str, str]) -> None:
    empty = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        env=clean_environment,
    )
    assert loaded(clean_environment, "--version") - set(empty.stdout.split()) <= {
        "__future__",
        "assistant",
        "assistant.cli",
    }


@pytest.mark.process
@pytest.mark.parametrize(
    "words",
    [
        ("explain", "xid", "79"),
        ("explain", "sxid", "12028"),
        ("explain", "gpu", "h100"),
        ("explain", "cuda", "719"),
        ("config", "show"),
    ],
    ids="-".join,
)
def test_explaining_loads_nothing_heavy(clean_environment: dict[str, str], words: tuple[str, ...]) -> None:
    loaded(clean_environment, *words)  # once, so that the compiled data is there
    modules = loaded(clean_environment, *words)
    assert heavy(modules) == set()
    assert not {m for m in modules if m.startswith(("probes.parse", "rules"))}


@pytest.mark.process
def test_a_check_loads_no_schema_and_no_document_parser(clean_environment: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text(DBE, encoding="utf-8")
    loaded(clean_environment, "check", "--log", str(log))
    modules = loaded(clean_environment, "check", "--log", str(log))
    assert heavy(modules) == set()
    assert "probes.parse.kernel_log" in modules
    assert "probes.parse.nvidia_smi_q" not in modules


@pytest.mark.process
def test_only_the_chosen_command_is_loaded(clean_environment: dict[str, str]) -> None:
    modules = loaded(clean_environment, "config", "show")
    assert {m for m in modules if m.startswith("assistant.commands.")} == {"assistant.commands.config"}


@pytest.mark.process
def test_the_budgets_hold(tmp_path: Path) -> None:
    """Measured up to eight times: the machine may be busy with the other tests, and an empty Python is short to measure."""
    startup = import_module("bench.startup")
    log = tmp_path / "kern.log"
    log.write_text(startup.LOG, encoding="utf-8")
    promised = [b for b in startup.budgets(log) if b.tested]
    environment = startup.environment(tmp_path)
    late: list[str] = []
    for _ in range(8):
        result = startup.measure(promised, environment, rounds=7)
        late = [
            f"{b.name}: {result[b.name] * 1e3:.1f} ms, {result[b.name] / result['pass']:.2f} times an empty Python"
            for b in promised
            if startup.over(b, result[b.name], result["pass"])
        ]
        if not late:
            break
    assert late == []
