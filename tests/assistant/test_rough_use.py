"""What a new user does to it: signals, options that contradict, disks and limits that are in the way."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import ROOT, Gpudiag

HANGS = "#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1; done\n"


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_check_and_all_that_it_started(
    clean_environment: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name in ("dmesg", "journalctl", "lspci"):
        (binaries / name).write_text(HANGS)
        (binaries / name).chmod(0o755)
    env = clean_environment | {"PATH": f"{binaries}:{os.environ['PATH']}"}
    argv = [sys.executable, "-m", "assistant", "check", "--no-history"]
    child = subprocess.Popen(argv, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 30
    while not running(binaries) and time.monotonic() < until:
        time.sleep(0.05)
    assert running(binaries)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, "", "")
    until = time.monotonic() + 30
    while running(binaries) and time.monotonic() < until:
        time.sleep(0.05)
    assert not running(binaries)


def running(folder: Path) -> list[str]:
    """The programs of `folder` that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


def test_a_recording_that_cannot_be_kept_costs_no_answer(gpudiag: Gpudiag, tmp_path: Path) -> None:
    history = tmp_path / "history.db"
    env = {"GPUDIAG_HISTORY_URL": f"sqlite:///{history}"}
    nowhere = str(tmp_path / "none" / "b.tar.gz")
    plain = gpudiag("check", "--probe", "pci", "--record", nowhere, env=env)
    assert plain.code == 2, "what was asked for is not there"
    assert plain.out.startswith(("OK  ", "UNKNOWN  "))  # this machine may have no GPU
    assert "cannot be written" in plain.err
    assert history.exists(), "the check is remembered all the same"
    watched = gpudiag("check", "--probe", "pci", "--nagios", "--record", nowhere, env=env)
    assert watched.code in (0, 3)
    assert len(watched.out.splitlines()) == 1
    assert "cannot be written" in watched.err


def test_what_changed_cannot_be_told_without_the_history(gpudiag: Gpudiag) -> None:
    answer = gpudiag("check", "--since-last", "--no-history")
    assert (answer.code, answer.out) == (2, "")
    assert "--no-history" in answer.err


@pytest.mark.parametrize(
    ("target", "said"), [("-", "standard output"), ("", "standard output"), ("none/b.tar.gz", "there is no folder")]
)
def test_a_bundle_without_a_place_is_refused_at_once(gpudiag: Gpudiag, tmp_path: Path, target: str, said: str) -> None:
    answer = gpudiag("collect", "-o", target if target in ("", "-") else str(tmp_path / target))
    assert answer.code == 2
    assert said in answer.err
    assert "outputs of" not in answer.err


def test_a_probe_that_says_nothing_says_why(gpudiag: Gpudiag) -> None:
    answer = gpudiag("check", "--probe", "nvidia-smi", "--no-history", env={"PATH": "/nonexistent"})
    if "OK" in answer.out.split()[:1]:
        pytest.skip("this machine has nvidia-smi where it is always looked for")
    assert answer.code == 3
    assert "nvidia-smi is not installed" in answer.out


def test_an_inventory_that_was_asked_for_and_lost_is_not_fine(gpudiag: Gpudiag) -> None:
    """Nothing had the time to answer: whoever leaves one source out still asks for the other."""
    answer = gpudiag("check", "--budget", "0.1", "--without", "kernel-log", "--no-history")
    assert "does not answer" not in answer.out, "a tenth of a second shows nothing of a driver"
    assert "The NVIDIA driver" not in answer.out.splitlines()[0]
    if "the GPU inventory could not be read" not in " ".join(answer.out.split()):
        assert "node.pci.gpu_count" not in answer.out or answer.code == 0
    else:
        assert answer.code == 3


@pytest.mark.process
def test_few_threads_are_enough(clean_environment: dict[str, str]) -> None:
    """A machine without memory for sixteen threads has an answer all the same."""
    argv = [
        sys.executable,
        "-m",
        "assistant",
        "check",
        "--no-history",
        "--probe",
        "system",
        "--probe",
        "pci",
        "--probe",
        "rdma",
    ]
    for mib in (90, 130, 200, 400):
        done = subprocess.run(
            argv, env=clean_environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_AS, (mib << 20, mib << 20)),
        )  # fmt: skip
        assert "can't start new thread" not in done.stderr


def test_a_wrong_value_is_named_before_its_kind(gpudiag: Gpudiag) -> None:
    answer = gpudiag("check", "--budget", "0")
    assert "argument --budget: '0' is no valid number of seconds" in answer.err
