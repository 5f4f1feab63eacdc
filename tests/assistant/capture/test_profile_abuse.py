"""``gpudiag profile`` with nonsense on its command line, killed, and on a job that wants to be obeyed by our terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, Answer, Gpudiag
from tests.live_jobs import Job

pytestmark = pytest.mark.process

ME = "<this process>"  # its number would make ids that differ between workers
NONSENSE = [
    ["--pid", "self"], ["--pid", "0"], ["--pid", "-1"], ["--pid", "1;rm"], ["--pid", "\x1b[31m1"], ["--pid", "١٢"], ["--pid", "9" * 5000],
    ["--pid", ","], ["--name", ""], ["--name", "a" * 100_000], ["--job", "no-such-job"], ["--container", "no-such-container"],
    ["--pid", ME, "--duration", "0"], ["--pid", ME, "--duration", "nan"], ["--pid", ME, "--duration", "٣s"], ["--pid", ME, "--duration", "11s"],
    ["--pid", ME, "--iterations", "0"], ["--pid", ME, "--iterations", "1001"], ["--pid", ME, "--skip", "2"],
    ["--pid", ME, "--iterations", "5", "--duration", "1s"], ["--pid", ME, "--anchor", "os.system('x')"], ["--pid", ME, "--anchor", ":"],
    ["--pid", ME, "--with", "nope"], ["--pid", ME, "--with", ""], ["--pid", ME, "--with", ",,,"], ["--pid", ME, "--with", "loss=os.x"],
    ["--pid", ME, "--with", "torch=1"], ["--pid", ME, "--hang", "--with", "torch"], ["--pid", ME, "--rank", "-1"],
    ["--pid", ME, "--rank", "9" * 30], [], ["--all-ranks"], ["4242"], ["show"], ["show", ""], ["show", "../../etc"], ["show", "/etc/passwd"],
    ["show", "a" * 300], ["show", "a/" * 3000], ["show", "\x1b[31mx"], ["delete"], ["delete", "", "--yes"], ["delete", "../../..", "--yes"],
    ["delete", "/etc", "--yes"], ["delete", ".", "--yes"], ["delete", "last", "--yes"],
]  # fmt: skip
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
SECRETS = ("s3cretTOKEN", "hunter2SECRET", "sk-LIVEKEY123", "envS3CRET", "hf_ENVTOKEN")


@pytest.mark.parametrize("words", NONSENSE, ids=lambda words: " ".join(words)[:40].encode("unicode_escape").decode() or "nothing")  # fmt: skip
def test_nonsense_is_told_in_a_line_with_what_to_do(words: list[str], gpudiag: Gpudiag, tmp_path: Path) -> None:
    answer = gpudiag(
        "profile", *(str(os.getpid()) if word == ME else word for word in words), env={"XDG_DATA_HOME": str(tmp_path)}
    )
    assert answer.code == 2, answer.err
    assert "Traceback" not in answer.err
    assert "bug in gpudiag" not in answer.err
    assert answer.err.startswith("gpudiag: ")
    assert not CONTROL.search(answer.err)
    assert not answer.out


@pytest.fixture
def hostile() -> Iterator[Job]:
    """Control characters and markup wherever a job can put them, and secrets where jobs have them."""
    with Job("hostile.py", f"--token={SECRETS[0]}", "--password", SECRETS[1], f"--api-key={SECRETS[2]}", "\x1b[31m<script>alert(1)</script>\u202e.py",
             "A" * 100_000, env={"AWS_SECRET_ACCESS_KEY": SECRETS[3], "HF_TOKEN": SECRETS[4]}) as job:  # fmt: skip
        yield job


@pytest.mark.machine
def test_what_a_job_calls_its_things_is_obeyed_by_no_terminal_and_no_page(
    hostile: Job, gpudiag: Gpudiag, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    answers: dict[str, Answer] = {}
    answers["json"] = gpudiag(
        "profile",
        "--pid",
        str(hostile.pid),
        "--with",
        "stacks,cpu",
        "--duration",
        "500ms",
        "--format",
        "json",
        "-o",
        str(folder),
    )
    assert json.loads(answers["json"].out)["targets"], answers["json"].err
    for shape in ("text", "markdown", "html"):
        answers[shape] = gpudiag("profile", "show", str(folder), "--format", shape, "--verbose")
    for shape, answer in answers.items():
        assert not CONTROL.search(answer.out + answer.err), shape
    for shape in ("markdown", "html"):
        assert "<script>alert(1)" not in answers[shape].out
        assert "<img src=x" not in answers[shape].out
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path
        kept = path.read_bytes()
        if path.name.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                kept = b"".join(f.read() for m in archive if (f := archive.extractfile(m)) is not None)
        for secret in SECRETS:
            assert secret.encode() not in kept, path


def _of(pid: int) -> list[str]:
    """Processes of ours that look at process `pid`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(pid).encode() in words and any(b"py-spy" in w or b"job_samples" in w for w in words):
            found.append(words[0].decode())
    return found


def test_killed_in_the_middle_nothing_of_it_goes_on(tmp_path: Path, clean_environment: dict[str, str]) -> None:
    """In a fresh interpreter: what it leaves lies in its own TMPDIR."""
    environment = clean_environment | {"XDG_DATA_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    with Job("loop.py") as job:
        words = ("--pid", str(job.pid), "--with", "stacks,cpu", "--duration", "10s")
        argv = [sys.executable, "-m", "assistant", "profile", *words]
        nowhere = subprocess.DEVNULL
        with subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=nowhere, stderr=nowhere) as child:
            try:
                until = time.monotonic() + 60
                while len(_of(job.pid)) < 2:
                    assert child.poll() is None
                    assert time.monotonic() < until
                    time.sleep(0.05)
            finally:
                child.send_signal(signal.SIGKILL)
        until = time.monotonic() + 20
        while left := _of(job.pid):
            assert time.monotonic() < until, left
            time.sleep(0.1)
        job.advance(100)
