""" "Why is pid 4242 slow on gpu-12?": a real job behind a real ssh server, looked into by the gpudiag that is installed there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.commands.collect import save
from assistant.config import load as load_settings
from assistant.machine import Wish
from assistant.render import reply as render
from assistant.session.driver import Answer as Turn
from assistant.session.driver import Conversation, Eyes
from assistant.session.far import absent
from assistant.session.talk import session_of
from assistant.sources import tells
from knowledge.observation import Observation, Status
from probes.host import CallKind, RecordingHost, ReplayHost
from probes.live import ProbeRequest, probes
from probes.live.job_stacks import MAIN, collect
from probes.remote import profiler
from probes.remote.remote_host import RemoteHost
from rules.loader import RuleSet
from rules.loader import load as load_rules
from tests.conftest import ROOT, Gpudiag
from tests.live_jobs import Job
from tests.probes.remote.sshd_lab import Sshd

pytestmark = pytest.mark.machine
BUSY = """
import signal
import time
pauses = [0.0, 0.2]
signal.signal(signal.SIGUSR1, lambda *_: pauses.pop())
def tokenize_slowly(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total
print("ready", flush=True)
while True:
    tokenize_slowly(20000)
    if pauses[-1]:
        time.sleep(pauses[-1])
"""
REAL = f'cd {ROOT} && exec {sys.executable} -m assistant "$@"'


class There:
    """The far side: a folder of its PATH, in which gpudiag is, or something that is called so."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.server = Sshd(folder / "sshd", f"SetEnv PATH={self.bin}:/usr/bin:/bin")

    def install(self, script: str) -> None:
        """A `gpudiag` that does this; an empty one is none."""
        place = self.bin / "gpudiag"
        place.unlink(missing_ok=True)
        if script:
            place.write_text(f"#!/bin/sh\n{script}\n")
            place.chmod(0o755)

    def host(self) -> RemoteHost:
        """A line to it."""
        return RemoteHost(self.server.reach("gpu-12"), budget=60)

    def looked(self, deadline: float = 20.0, pids: str = "1") -> list[Observation]:
        """What the probe tells of a process there."""
        with self.host() as host:
            return collect(ProbeRequest(deadline, {"pids": pids}), host)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    if any(os.access(f"{folder}/gpudiag", os.X_OK) for folder in ("/opt/gpudiag/bin", "/usr/local/bin", "/usr/bin")):
        pytest.skip("gpudiag is installed on this machine: it cannot stand for one without")
    lab = There(tmp_path_factory.mktemp("there"))
    lab.server.start()
    yield lab
    lab.server.stop()


@pytest.fixture
def env(there: There, tmp_path: Path) -> dict[str, str]:
    """Of the machine from which is asked."""
    inventory = tmp_path / "inventory.toml"
    inventory.write_text(f"[defaults]\nssh_config = '{there.server.folder}/ssh_config'\n[hosts.gpu-12]\n")
    return {
        "GPUDIAG_INVENTORY": str(inventory), "GPUDIAG_STATE_DIR": str(tmp_path / "state"), "GPUDIAG_HISTORY_URL": "off",
        "COLUMNS": "100",
    }  # fmt: skip


def busy(folder: Path) -> Job:
    """A loop in a session of its own that spends its time in one function from SIGUSR1 on; before that it mostly rests."""
    script = folder / "train.py"
    script.write_text(BUSY)
    return Job(str(script))


def reasons(found: list[Observation]) -> set[str]:
    """Why there is nothing; every main fact says so, about the machine that was asked."""
    assert {o.fact for o in found} == set(MAIN)
    assert {str(o.subject.host) for o in found} == {"gpu-12"}
    assert all(o.status is not Status.OK for o in found)
    return {o.detail for o in found}


def talk(ruleset: RuleSet, env: dict[str, str], bundles: list[str] | None = None) -> Conversation:
    """A conversation, with the machine or with what was recorded of it."""
    wish = Wish(without=tuple(s.name for s in probes() if s.default and s.name not in ("processes", "system")))
    eyes = Eyes(load_settings({}, env, ()), ruleset, wish, history=False)
    eyes.replay = list(bundles or ())
    return Conversation(session_of(eyes), eyes)


def text(answer: Turn) -> str:
    """What is shown of an answer, in one line."""
    output = load_settings({"color": "never"}, {}, ()).output
    shown = render.show(answer.reply, output, tells, question=answer.question, query=answer.query)
    return " ".join(shown.split())


def test_after_a_yes_the_function_is_named_and_the_recording_says_the_same(
    there: There, env: dict[str, str], tmp_path: Path
) -> None:
    there.install(REAL)
    ruleset = load_rules()
    live = talk(ruleset, env)
    with busy(tmp_path) as job:
        sentence = f"why is pid {job.pid} slow on gpu-12?"
        asked = live.say(sentence)
        assert f"Run job-stacks on process {job.pid} (train.py)" in asked.question
        assert "the job is not stopped" in asked.question
        assert "tokenize_slowly" not in text(asked)
        os.kill(job.pid, signal.SIGUSR1)
        found = live.say("yes")
    assert "tokenize_slowly (train.py" in text(found)
    assert "own machine" not in text(asked) + text(found)
    seen = live.eyes.looks[-1].observations
    hot = {str(o.value) for o in seen if o.fact == "stack.hot.function" and o.status is Status.OK}
    assert any("tokenize_slowly" in name for name in hot), hot
    assert {o.subject.host for o in seen} == {"gpu-12"}
    bundles = [str(tmp_path / f"{n}.tar.gz") for n in range(len(live.eyes.looks))]
    for look, name in zip(live.eyes.looks, bundles, strict=True):
        save(look, name)
    again = talk(ruleset, env, bundles)
    assert text(again.say(sentence)) == text(asked)
    assert text(again.say("yes")) == text(found)


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        ("why is pid {} slow on gpu-12?", "on gpu-12. From here it takes a gpudiag that is installed there"),
        ("gpu-12 上的进程 {} 为什么慢？", "需先在该机器上安装 gpudiag"),
    ],
    ids=["en", "zh"],
)
def test_without_gpudiag_there_it_says_where_to_run_it(
    there: There, env: dict[str, str], sentence: str, says: str
) -> None:
    there.install("")
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as job:
        answer = talk(load_rules(), env).say(sentence.format(job.pid))
        job.kill()
    assert says in text(answer)
    assert "job-stacks" not in answer.question, "nobody is asked to agree to what cannot be done"
    assert not answer.reply.settled


def test_what_is_there_decides_what_can_be_asked_for_and_a_recording_remembers(there: There) -> None:
    there.install("")
    with there.host() as host:
        assert {"job-stacks", "job-trace"} <= set(absent(host))
        assert "installed there" in host.snapshot("capture", "--pid", "1", deadline=5).detail
    there.install(REAL)
    with there.host() as host:
        recording = RecordingHost(host)
        gone = absent(recording)
        assert "job-stacks" not in gone
        assert "job-trace" in gone, "it injects: that is agreed to where the job runs"
        inside = host.snapshot("capture", "--pid", "1", "--inject", deadline=5)
    assert (inside.status, inside.data) == (Status.UNSUPPORTED, b"")
    assert absent(ReplayHost("gpu-12", recording.replies)) == gone
    older = [r for r in recording.replies if r.kind is not CallKind.SNAPSHOT]
    assert {"job-stacks", "job-trace"} <= set(absent(ReplayHost("gpu-12", older))), "as it was when it was recorded"


@pytest.mark.parametrize(
    ("script", "deadline", "says"),
    [
        ("echo Welcome to gpu-12", 20.0, "cut or is no JSON: it begins with Welcome to gpu-12"),
        ("head -c 300000 /dev/urandom", 20.0, "cut or is no JSON"),
        ("echo '[1, 2]'", 20.0, "it is no document"),
        ('echo \'{"schema": "gpudiag/capture/9", "targets": []}\'', 20.0, "another version (gpudiag/capture/9)"),
        ("echo '{\"schema\": \"gpudiag/capture/1\", \"targets\": {\"a\": [[]]}}'", 20.0, ""),
        ("exec sleep 60", 0.7, "no end after 0.7 s"),
        ("printf '{\"schema\": '; exec sleep 60", 0.7, "no end after 0.7 s"),
        ("exit 3", 20.0, "gpudiag on gpu-12: it printed nothing"),
        ("echo 'gpudiag: error: unrecognized arguments: --outside --document' >&2; exit 2", 20.0, "update it there"),
        (REAL, 20.0, "there is no process 999999999"),
    ],
    ids=["text", "bytes", "list", "schema", "nonsense", "hangs", "half", "nothing", "old", "no-process"],
)  # fmt: skip
def test_whatever_is_called_gpudiag_there_gives_a_reason(there: There, script: str, deadline: float, says: str) -> None:
    there.install(script)
    (reason,) = reasons(there.looked(deadline, "999999999"))
    assert reason
    assert says in reason
    assert "\x1b" not in reason


def test_only_numbers_go_into_its_command_line(there: There, tmp_path: Path) -> None:
    there.install(f'printf "%s\\n" "$@" > {tmp_path}/words')
    with there.host() as host:
        for words in (("--pid", "1,--yes"), ("--pid", ""), ("--with", "torch"), ("--pid", "1", "--into", "/tmp")):
            assert host.snapshot("capture", *words, deadline=5).status is Status.UNSUPPORTED
        assert not (tmp_path / "words").exists()
        host.snapshot("capture", "--pid", "1,2", deadline=5)
    assert (tmp_path / "words").read_text().split() == ["profile", "--pid", "1,2", "--outside", "--document"]


def test_a_machine_behind_a_mount_is_not_looked_into(there: There) -> None:
    there.install(REAL)
    with RemoteHost(there.server.reach("gpu-12", root="/host"), budget=30) as host:
        reply = host.snapshot("capture", profiler.CAN, deadline=5)
        assert reply.status is Status.UNSUPPORTED
        assert "outside the container" in reply.detail
        assert not profiler.able(host)


def test_a_line_that_broke_is_the_reason(there: There) -> None:
    there.install(REAL)
    with there.host() as host:
        host.run(["sh", "-c", "kill -9 $PPID"], deadline=5)
        reply = host.snapshot("capture", "--pid", "1", deadline=5)
        assert reply.status is Status.FAILED
        assert "broke" in reply.detail
        assert not profiler.able(host)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--document",), "--outside --document"),
        (("--outside", "--document", "-o", "x"), "-o goes without it"),
        (("--outside", "--with", "torch"), "lets nothing run there"),
        (("--outside", "--iterations", "3"), "--iterations runs inside the job"),
    ],
)
def test_what_cannot_be_asked_for_together(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from assistant.cli import main

    assert main(["profile", "--pid", str(os.getpid()), *words]) == 2
    captured = capsys.readouterr()
    assert (captured.out, said in captured.err) == ("", True), captured.err


def test_the_document_is_all_that_is_printed_and_nothing_is_kept(gpudiag_process: Gpudiag, tmp_path: Path) -> None:
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    scratch.mkdir()
    env = {name: str(home) for name in ("GPUDIAG_STATE_DIR", "XDG_DATA_HOME", "HOME")} | {"TMPDIR": str(scratch)}
    with busy(tmp_path) as job:
        words = ("--pid", str(job.pid), "--outside", "--document", "--duration", "300ms")
        answer = gpudiag_process("profile", *words, env=env)
    assert (answer.code, answer.err) == (0, "")
    document = json.loads(answer.out)
    assert document["schema"] == "gpudiag/capture/1"
    assert {part["item"] for t in document["targets"] for part in t["parts"]} == {"stacks", "cpu"}
    assert not list(scratch.iterdir())
    assert not [p for p in home.rglob("*") if p.is_file() and ".cache" not in p.parts]
