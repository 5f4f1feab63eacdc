"""The wheel: what is in it, and that it works alone in a fresh place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

from knowledge import compiled

ROOT = Path(__file__).parent.parent
PACKAGES = {"assistant", "rules", "probes", "knowledge", "tui"}
COMPILED = ("probes/trace/reading/_scanner.so", "probes/_fold.so")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built with what is installed."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files in an empty folder."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_names(wheel: Path) -> None:
    from assistant import __version__
    from hatch_build import platform_tag

    with zipfile.ZipFile(wheel) as archive:
        tag = platform_tag() if COMPILED[0] in archive.namelist() else "any"
    assert wheel.name == f"gpudiag-{__version__}-py3-none-{tag}.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(n for n in names if n.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(info).decode())
        entry = archive.read(info.replace("METADATA", "entry_points.txt")).decode()
    assert {n.split("/")[0] for n in names if ".dist-info" not in n} == PACKAGES
    assert "gpudiag = assistant.cli:main" in entry
    assert metadata["Name"] == "gpudiag"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert any(n.endswith("licenses/LICENSE") for n in names)
    assert not [n for n in names if "__pycache__" in n or n.startswith(("tests", "bench")) or n == "hatch_build.py"]


def test_data_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    wanted = [
        p for package in PACKAGES for p in (ROOT / package).rglob("*") if p.is_file() and "__pycache__" not in p.parts
    ]
    missing = {
        str(p.relative_to(ROOT))
        for p in wanted
        if "_compiled" not in p.parts and not p.name.startswith(("_scanner.so", "_fold.so"))
    } - names
    assert missing == set()
    for kind in (".yaml", ".md", ".log", ".txt"):
        assert any(n.endswith(kind) for n in names), kind


@pytest.mark.slow
def test_shards(wheel: Path) -> None:
    """Each data file, the rules, the runbooks and the formats, compiled; the same as a checkout builds."""
    from assistant import find, formats
    from assistant.find import asked
    from assistant.intent import tables
    from knowledge import lazy, parts
    from rules import loader

    with zipfile.ZipFile(wheel) as archive:
        assert f"knowledge/_compiled/{lazy.FORMS}" in archive.namelist()
        rules, topics = (parts.Parts(archive.read(f"knowledge/_compiled/{n}.parts")) for n in ("rules", "topics"))
        shards = {
            Path(n).stem: json.loads(archive.read(n))
            for n in archive.namelist()
            if n.startswith("knowledge/_compiled/") and n.endswith(".json")
        }
    assert set(shards) == {*compiled.shard_names(), "runbooks", "formats", asked.SHARD, tables.SHARD}
    assert len(shards["facts"]) == len(compiled.shard("facts"))
    assert rules == loader._compiled()
    assert shards["formats"] == formats.build()
    assert topics == find.build()
    assert shards[asked.SHARD] == json.loads(json.dumps(asked.build()))
    assert shards[tables.SHARD] == json.loads(json.dumps(tables.build()))


def test_what_is_in_c_is_compiled_where_a_compiler_is(require: Callable[[str], str], unpacked: Path) -> None:
    from probes import _scan_fold
    from probes.trace.reading import scanner

    require("cc")
    assert scanner.library(unpacked / COMPILED[0]) is not None
    assert _scan_fold.library(unpacked / COMPILED[1]) is not None
    assert (unpacked / "probes/trace/reading/scanner.c").read_bytes() == scanner.SOURCE.read_bytes()


@pytest.mark.process
def test_without_a_compiler_the_wheel_is_pure_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installing never fails for want of a compiler; one that fails is as good as none."""
    from hatch_build import add_libraries

    for name in ("cc", "gcc", "clang"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    wheel: dict[str, Any] = {"pure_python": True, "force_include": {}}
    add_libraries(ROOT, tmp_path, wheel)
    assert wheel == {"pure_python": True, "force_include": {}}, "hatchling calls it py3-none-any"
    assert not list(tmp_path.glob("*.so*"))


def run(unpacked: Path, tmp_path: Path, *words: str, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUDIAG_", "PYTHONPATH", "LANG", "LC_"))}
    env = kept | {
        "PYTHONPATH": str(unpacked),
        "HOME": str(tmp_path),
        "GPUDIAG_CACHE_DIR": str(cache or tmp_path / "cache"),
    }
    program = "import sys; from assistant.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, env=env, cwd=tmp_path
    )


@pytest.mark.process
def test_the_wheel_works_alone(unpacked: Path, tmp_path: Path) -> None:
    origin = run(unpacked, tmp_path, "explain", "xid", "79")
    assert origin.returncode == 0, origin.stderr
    assert origin.stdout.startswith("XID 79: ")
    demo = run(unpacked, tmp_path, "demo", "--format", "json")
    assert demo.returncode == 0, demo.stderr
    assert json.loads(demo.stdout)["verdict"]["state"] == "unhealthy"
    assert run(unpacked, tmp_path, "rules", "lint").returncode == 0
    assert run(unpacked, tmp_path, "runbook", "list").returncode == 0
    assert not (tmp_path / "cache").exists()  # nothing had to be compiled


@pytest.mark.process
def test_the_wheel_and_the_checkout_say_the_same(unpacked: Path, tmp_path: Path) -> None:
    for name in ("off-the-bus", "power-brake"):
        packed = json.loads(run(unpacked, tmp_path, "demo", name, "--format", "json").stdout)
        here = json.loads(run(ROOT, tmp_path, "demo", name, "--format", "json", cache=compiled.cache_dir()).stdout)
        assert packed == here


def test_the_lock_names_no_registry_and_pins_everything() -> None:
    for name in ("requirements.txt", "requirements-run.txt", "requirements-llm.txt"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "://" not in text
        assert "--index" not in text
        pinned = [line for line in text.splitlines() if line[:1].isalnum()]
        assert pinned
        assert all("==" in line and line.endswith("\\") for line in pinned)
        assert text.count("--hash=sha256:") >= len(pinned)


def test_the_lock_covers_what_is_declared() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    def names(requirements: list[str]) -> set[str]:
        return {r.split(">")[0].split("=")[0].split("[")[0].strip().lower() for r in requirements}

    def locked(file: str) -> set[str]:
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        return {line.split("==")[0].lower() for line in lines if "==" in line and line[:1].isalnum()}

    assert names(project["project"]["optional-dependencies"]["llm"]) <= locked("requirements-llm.txt")
    assert "litellm" not in locked("requirements.txt") | locked("requirements-run.txt")  # it lives apart
    runtime = names(project["project"]["dependencies"])
    assert runtime <= locked("requirements-run.txt")
    assert runtime | names(project["dependency-groups"]["dev"]) | names(project["build-system"]["requires"]) <= locked(
        "requirements.txt"
    )
