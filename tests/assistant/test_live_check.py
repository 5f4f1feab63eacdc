"""`gpudiag check` on the machine that runs the tests, and `collect`: what was concluded is concluded again from the bundle."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import nvml_lab
from tests.cases import timeless
from tests.conftest import ROOT, Gpudiag


def test_the_machine_is_looked_at(gpudiag: Gpudiag) -> None:
    answer = gpudiag("check", "--format", "json", "--timing")
    found = json.loads(answer.out)
    assert answer.code in (0, 1, 3)
    assert found["coverage"]["answered"] > 20
    assert found["timing"]["total_s"] > 0
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    "options", [("--format", "json"), (), ("--lang", "zh", "--verbose"), ("--format", "markdown"), ("--nagios",)]
)
def test_a_bundle_gives_the_answer_of_the_run_that_wrote_it(
    gpudiag: Gpudiag, tmp_path: Path, options: tuple[str, ...]
) -> None:
    bundle = str(tmp_path / "node.tar.gz")
    live = gpudiag("check", "--record", bundle, *options)
    again = gpudiag("check", "--bundle", bundle, *options)
    assert timeless(again.out) == timeless(live.out)
    assert again.code == live.code
    assert live.out


def test_a_subset_is_replayed_as_that_subset(gpudiag: Gpudiag, tmp_path: Path) -> None:
    bundle = str(tmp_path / "node.zip")
    live = gpudiag("check", "--record", bundle, "--probe", "system", "--format", "json")
    again = gpudiag("check", "--bundle", bundle, "--format", "json")
    assert timeless(again.out) == timeless(live.out)
    assert json.loads(live.out)["coverage"]["answered"] > 20


def test_no_time_at_all_is_said_and_replayed(gpudiag: Gpudiag, tmp_path: Path) -> None:
    bundle = str(tmp_path / "node.tar.gz")
    live = gpudiag("check", "--record", bundle, "--budget", "0.1", "--format", "json")
    again = gpudiag("check", "--bundle", bundle, "--format", "json")
    assert timeless(again.out) == timeless(live.out)


def test_collect_writes_files_that_people_can_read(gpudiag: Gpudiag, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    answer = gpudiag("collect", "-o", str(folder))
    assert answer.code == 0
    assert answer.out == ""
    assert f"gpudiag check --bundle {folder}" in answer.err
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {"nvml", "kernel-log", "system"} <= set(manifest["probes"])
    rows = [json.loads(line) for line in (folder / "observations.jsonl").read_text().splitlines()]
    assert {"fact", "subject", "status", "source"} <= set(rows[0])
    assert any(r["fact"] == "node.memory.total" or r["fact"].startswith("node.") for r in rows)
    assert folder.stat().st_mode & 0o077 == 0, "logs name users and machines"


def test_a_redacted_bundle_names_nobody(gpudiag: Gpudiag, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("a key that is long enough, for a test")
    name = Path("/proc/sys/kernel/hostname").read_text().strip()
    named = "gpu-room-17.example.org"
    env = {"GPUDIAG_HOST_NAME": named}
    for number in (1, 2):
        answer = gpudiag("collect", "-o", str(tmp_path / f"b{number}"), "--redact-key", str(key), env=env)
        assert answer.code == 0, answer.err
    host = json.loads((tmp_path / "b1/manifest.json").read_text())["host"]
    assert host == json.loads((tmp_path / "b2/manifest.json").read_text())["host"], "one key, one pseudonym"
    assert host.startswith("node-")
    everything = "".join(p.read_text(errors="replace") for p in (tmp_path / "b1").rglob("*") if p.is_file())
    assert named not in everything
    if len(name) >= 6:
        assert name not in everything
    assert gpudiag("check", "--bundle", str(tmp_path / "b1")).code in (0, 1, 3)


def test_a_key_that_is_too_short_or_not_there(gpudiag: Gpudiag, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("x")
    short = gpudiag("collect", "-o", str(tmp_path / "b"), "--redact-key", str(tmp_path / "key"))
    gone = gpudiag("collect", "-o", str(tmp_path / "b"), "--redact-key", str(tmp_path / "none"))
    assert (short.code, gone.code) == (2, 2)
    assert "at least 16" in short.err
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--probe", "nvmll"), "nvml"),
        (("--budget", "0"), "number of seconds"),
        (("--host", "gpu-12"), "no machine named 'gpu-12'"),
        (("--with", "dcgm-diag", "--log", "/dev/null"), "--with is about reading this machine"),
    ],
)
def test_bad_wishes_are_one_sentence(gpudiag: Gpudiag, words: tuple[str, ...], said: str) -> None:
    answer = gpudiag("check", *words)
    assert answer.code == 2
    assert said in answer.err
    assert answer.out == ""


@pytest.mark.process
def test_without_any_privilege_it_says_what_is_denied(clean_environment: dict[str, str]) -> None:
    """Root without capabilities may not read the kernel's ring buffer when the machine restricts it."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    argv = [
        "setpriv",
        "--inh-caps=-all",
        "--ambient-caps=-all",
        "--bounding-set=-all",
        sys.executable,
        "-m",
        "assistant",
        "check",
    ]
    done = subprocess.run(
        [*argv, "--format", "json"],
        env=clean_environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    found = json.loads(done.stdout)
    assert done.returncode in (0, 1, 3), done.stderr
    assert found["coverage"]["answered"] > 20
    assert "Traceback" not in done.stderr


def test_a_tool_that_hangs_costs_its_deadline_and_no_more(gpudiag: Gpudiag, tmp_path: Path) -> None:
    """A driver that never answers: the verdict comes within the budget and a second. A run that other work kept from the CPU is made again."""
    (tmp_path / "bin").mkdir()
    for name in ("nvidia-smi", "dmesg", "journalctl", "lspci", "systemctl"):
        path = tmp_path / "bin" / name
        path.write_text("#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1; done\n")
        path.chmod(0o755)
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "GPUDIAG_STATE_DIR": str(tmp_path / "state")}
    gpudiag("--version", env=env)
    for _ in range(5):
        found = json.loads(gpudiag("check", "--budget", "3", "--format", "json", "--timing", env=env).out)
        if found["timing"]["read_s"] < 3 + 1.0:
            break
    assert found["timing"]["read_s"] < 3 + 1.0
    assert found["coverage"]["answered"] > 20, "the other probes answer"
    left = subprocess.run(["pgrep", "-f", f"{tmp_path}/bin"], capture_output=True, text=True, check=False).stdout
    assert left == ""


# --- the history --------------------------------------------------------------------------


def rows(path: Path) -> int:
    import sqlite3

    with sqlite3.connect(path) as c:
        count: int = c.execute("select count(*) from run").fetchone()[0]
        return count


def test_a_check_is_remembered_and_compared(gpudiag: Gpudiag, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    env = {"GPUDIAG_HISTORY_URL": f"sqlite:///{path}"}
    first = gpudiag("check", "--since-last", env=env)
    assert "no earlier check" in first.err
    assert rows(path) == 1
    second = gpudiag("check", "--since-last", "--format", "json", env=env)
    assert json.loads(second.out)["changes"]["schema"] == "gpudiag/changes/1"
    third = gpudiag("check", "--since-last", env=env)
    assert "Since the last check" in third.out
    assert rows(path) == 3
    gpudiag("check", "--no-history", env=env)
    assert rows(path) == 3


def test_the_last_good_check_is_compared_with(gpudiag: Gpudiag, tmp_path: Path) -> None:
    env = {"GPUDIAG_HISTORY_URL": f"sqlite:///{tmp_path}/history.db"}
    none = gpudiag("check", "--since-good", "--probe", "system", env=env)
    assert "that found nothing wrong is in the history" in none.err
    both = gpudiag("check", "--since-good", "--since-last", env=env)
    assert both.code == 2
    assert gpudiag("check", "--since-good", "--no-history", env=env).code == 2


def test_a_history_that_cannot_be_written_costs_one_line(gpudiag: Gpudiag, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    env = {"GPUDIAG_HISTORY_URL": f"sqlite:///{tmp_path}/file/history.db"}
    bundle = str(tmp_path / "node.tar.gz")  # of this very look: another one may find another load
    answer = gpudiag("check", "--record", bundle, env=env)
    plain = gpudiag("check", "--bundle", bundle, env={"GPUDIAG_HISTORY_URL": "off"})
    assert answer.code == plain.code
    assert answer.out
    assert "Traceback" not in answer.err
    assert len(answer.err.splitlines()) >= 1


def test_a_bundle_holds_the_samples_that_its_answer_was_given_with(gpudiag: Gpudiag, tmp_path: Path) -> None:
    gpus = nvml_lab.folder(tmp_path, "ecc_climbing")
    env = {"GPUDIAG_HISTORY_URL": f"sqlite:///{tmp_path}/history.db", "LD_LIBRARY_PATH": str(gpus)}
    for _ in range(3):
        gpudiag("check", env=env)
    bundle = str(tmp_path / "b")
    live = gpudiag("check", "--record", bundle, "--format", "json", env=env)
    again = gpudiag("check", "--bundle", bundle, "--format", "json", env={"GPUDIAG_HISTORY_URL": "off"})
    assert timeless(again.out) == timeless(live.out)
    assert (tmp_path / "b/history.jsonl").exists()
