"""``gpudiag test`` as people call it: plan, consent, runs, answer, history, recordings; with stand-in tools."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assistant.journal import Journal
from tests import nvml_lab
from tests.active_lab import Lab
from tests.command_server import CommandServer
from tests.conftest import Answer, Gpudiag

# A machine of its own has other findings: of its disks, its clock, its kernel log. What is judged here is what tests tell.
AREAS = ("active.", "benchmark.", "gpu.active.", "node.dcgm.", "dcgm")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab(tmp_path, 8)
    made.prints("nvbandwidth", "nvbandwidth.healthy8.txt")
    made.prints("all_reduce_perf", "nccl-tests.healthy8.txt")
    return made


@pytest.fixture
def nvml(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder whose NVML tells of the same eight GPUs."""
    return str(nvml_lab.folder(tmp_path_factory.getbasetemp(), "healthy8"))


Run = Callable[..., Answer]


@pytest.fixture
def run(lab: Lab, nvml: str, tmp_path: Path, gpudiag: Gpudiag) -> Run:
    env = {
        "PATH": lab.environ["PATH"],
        "LD_LIBRARY_PATH": nvml,
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    return lambda *words: gpudiag("test", *words, env=env)


def ours(diagnosis: dict[str, Any]) -> list[dict[str, Any]]:
    """Findings that follow from what tests told."""
    return [
        f for f in diagnosis["findings"]
        if any(b["observation"] and b["observation"]["fact"].startswith(AREAS) for b in f["because"])
    ]  # fmt: skip


def test_the_list_names_every_test_and_starts_nothing(run: Run, lab: Lab) -> None:
    said = json.loads(run("list", "--format", "json").out)
    assert said["schema"] == "gpudiag/test-list/1"
    assert {t["name"]: t["installed"] for t in said["tests"]}["nvbandwidth"] is True
    assert {t["name"]: t["installed"] for t in said["tests"]}["gpu-burn"] is False
    assert "dcgm-diag-3" in run("list").out
    assert "15 分钟" in run("list", "--lang", "zh").out
    assert not lab.called()


def test_without_anybody_to_ask_nothing_is_started(run: Run, lab: Lab) -> None:
    got = run("nvbandwidth")
    assert got.code == 2
    assert "--yes" in got.err
    assert not lab.called()


def test_a_dry_run_tells_the_cost_and_starts_nothing(run: Run, lab: Lab) -> None:
    got = run("--level", "3", "--dry-run")
    assert got.code == 0
    assert "nvbandwidth -t host_to_device_memcpy_ce" in got.out
    assert "all_reduce_perf -b 8 -e 8G -f 2 -g 8" in got.out
    assert "gpu-burn: gpu_burn / gpu-burn is not installed" in got.out
    assert "drain the node first" in got.out
    said = json.loads(run("--level", "3", "--dry-run", "--format", "json").out)
    names = [t["name"] for t in said["tests"]]
    assert names == [
        "nvbandwidth",
        "ib-write-bw",
        "nccl-tests",
        "gpu-burn",
        "dcgm-diag-3",
    ]  # of the diagnostic the highest
    assert said["seconds"] == 90
    assert not lab.called()


def test_what_hardware_reaches_is_judged_kept_compared_and_recorded(
    run: Run, lab: Lab, tmp_path: Path, gpudiag: Gpudiag
) -> None:
    got = run("nvbandwidth", "nccl-tests", "--yes", "--format", "json")
    said = json.loads(got.out)
    assert [t["outcomes"] for t in said["tests"]] == [["ended"], ["ended"]]
    assert [f["rule"] for f in ours(said["diagnosis"]) if f["severity"] != "info"] == []
    busbw = next(m for m in said["measured"] if m["fact"].startswith("benchmark.collective"))
    assert (busbw["typical"], busbw["value"] > 470) == (480, True)
    assert {m["typical"] for m in said["measured"] if m["fact"] == "benchmark.h2d"} == {55}

    # what was begun, and how it ended
    intent, result, *others = Journal(f"sqlite:///{tmp_path}/data/gpudiag/history.db").records()
    assert (intent.kind, intent.data["what"], intent.data["consent"]) == ("intent", "test:nvbandwidth", "--yes")
    assert "nvbandwidth" in str(intent.data["argv"])
    assert (result.kind, result.subject, result.data["outcome"]) == ("result", intent.subject, "ended")
    assert [(r.kind, r.subject == intent.subject) for r in others] == [("intent", False), ("result", False)]

    lab.prints("nvbandwidth", "nvbandwidth.sick8.txt")
    bundle = tmp_path / "test.tar.gz"
    got = run("nvbandwidth", "--yes", "--format", "json", "--record", str(bundle))
    assert got.code == 1
    said = json.loads(got.out)
    found = {(f["rule"], f["subject"]["id"], f["role"]) for f in ours(said["diagnosis"])}
    assert ("host-copy-below-link", "0000:9a:00.0", "root") in found
    assert ("host-copy-slower-than-peers", "0000:9a:00.0", "symptom") in found
    assert ("peer-copy-below-nvlink", "0000:ca:00.0", "root") in found
    assert len({f for f in found if f[0] == "peer-copy-below-nvlink"}) == 1
    changed = {m["subject"]["id"]: m["change_percent"] for m in said["measured"] if m["fact"] == "benchmark.h2d"}
    assert changed["0000:9a:00.0"] == pytest.approx(-56.4, abs=0.1)
    assert changed["0000:1a:00.0"] == 0
    rules = {(rule, gpu) for rule, gpu, _ in found}
    assert {("host-copy-slower-than-before", "0000:9a:00.0"), ("peer-copy-slower-than-before", "0000:ca:00.0")} <= rules

    again = json.loads(gpudiag("check", "--bundle", str(bundle), "--format", "json").out)
    assert again["findings"] == said["diagnosis"]["findings"]
    assert again["as_of"] == said["diagnosis"]["as_of"]


def test_gpus_in_use_are_left_alone_and_the_idle_ones_named(run: Run, lab: Lab) -> None:
    lab.rows[3]["util"] = "88"
    lab.write()
    got = run("nvbandwidth", "--yes")
    assert got.code == 3
    assert "GPU 3 is in use" in got.out
    assert "--gpu 0,1,2,4,5,6,7 tests the idle ones" in got.out
    assert not lab.called()


def test_who_cannot_look_is_told_so(run: Run, lab: Lab) -> None:
    lab.flag("broken")
    got = run("nvbandwidth", "--yes")
    assert got.code == 3
    assert "Unable to determine the device handle" in got.out
    assert not lab.called()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("nvbandwith", "--yes"), "nvbandwidth"), (("nvbandwidth", "--gpu", "x"), "names no GPUs"),
        (("nvbandwidth", "--level", "9"), "level (1 to 4)"), (("nvbandwidth", "--yes", "--record", "/nowhere/x.zip"), "no folder"),
    ],
)  # fmt: skip
def test_asked_wrongly(run: Run, lab: Lab, words: tuple[str, ...], hint: str) -> None:
    got = run(*words)
    assert got.code == 2
    assert hint in got.err
    assert not lab.called()


def test_on_idle_gpus_beside_one_in_use_a_tool_that_fails_is_no_result(run: Run, lab: Lab) -> None:
    lab.rows[3]["util"] = "88"
    lab.write()
    fails = "echo 'CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected' >&2; exit 1"
    lab.tool("nvbandwidth", f"echo nvbandwidth >> {lab.state}/called; {fails}")
    got = run("nvbandwidth", "--yes", "--gpu", "0,1", "--gpu", "2", "--format", "json")
    assert got.code in (0, 1, 3)
    assert len(lab.called()) == 1
    said = json.loads(got.out)
    assert "active-test-tool-failed" in {f["rule"] for f in ours(said["diagnosis"])}
    assert "CUDA_ERROR_NO_DEVICE" in said["tests"][0]["why"]
    assert not said["measured"]


@pytest.mark.parametrize("words", [("check", "--probe"), ("check", "--with"), ("collect", "-o", "x.zip", "--with")])
def test_no_other_command_starts_one(gpudiag: Gpudiag, lab: Lab, words: tuple[str, ...]) -> None:
    got = gpudiag(*words, "nvbandwidth", env={"PATH": lab.environ["PATH"]})
    assert got.code == 2
    assert "gpudiag test nvbandwidth asks first" in got.err
    assert not lab.called()


def chat(lab: Lab, nvml: str, tmp_path: Path, gpudiag: Gpudiag, *said: str) -> Answer:
    env = {
        "PATH": lab.environ["PATH"],
        "LD_LIBRARY_PATH": nvml,
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    return gpudiag("chat", stdin="".join(f"{x}\n" for x in said), env=env)


def test_in_a_conversation_it_asks_with_the_cost_and_no_starts_nothing(
    lab: Lab, nvml: str, tmp_path: Path, gpudiag: Gpudiag
) -> None:
    got = chat(lab, nvml, tmp_path, gpudiag, "run nvbandwidth", "no")
    text = " ".join(got.out.split())
    assert "gpudiag test nvbandwidth" in text
    assert "Run nvbandwidth" in text
    assert "takes about 30 seconds" in text
    assert "runs on idle GPUs only, and is ended when a job appears" in text
    assert not lab.called()


def test_in_a_conversation_a_yes_runs_it_and_its_findings_are_there(
    lab: Lab, nvml: str, tmp_path: Path, gpudiag: Gpudiag
) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.sick8.txt")
    got = chat(lab, nvml, tmp_path, gpudiag, "run nvbandwidth", "yes", "why is GPU 0000:ca:00.0 slow?")
    assert len(lab.called()) == 1
    assert "Copies to other GPUs are slower than NVLink allows" in " ".join(got.out.split())
    kept = gpudiag("journal", "--format", "json", env={"XDG_DATA_HOME": str(tmp_path / "data"),
                                                       "XDG_STATE_HOME": str(tmp_path / "state")})  # fmt: skip
    records = json.loads(kept.out)["records"]
    assert [r["kind"] for r in records] == ["intent", "result"]
    assert {r["surface"] for r in records} == {"talk"}


# --- somebody at the keyboard ----------------------------------------------------------------


class Keyboard:
    """The command on a terminal."""

    def __init__(self, server: CommandServer, env: dict[str, str], *words: str) -> None:
        self.fd, theirs = pty.openpty()
        self.child = server.begin(["test", *words], [theirs] * 3, env=env, session=True)
        os.close(theirs)
        self.seen = ""

    def until(self, text: str, seconds: float = 40.0) -> None:
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 4096).decode(errors="replace")
                except OSError:  # it has ended
                    raise AssertionError(self.seen) from None

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def end(self) -> int:
        try:
            while part := os.read(self.fd, 4096):
                self.seen += part.decode(errors="replace")
        except OSError:  # the terminal has gone
            pass
        os.close(self.fd)
        return self.child.wait()


@pytest.fixture
def env(lab: Lab, nvml: str, tmp_path: Path, clean_environment: dict[str, str]) -> dict[str, str]:
    return clean_environment | {"PATH": lab.environ["PATH"], "LD_LIBRARY_PATH": nvml, "XDG_DATA_HOME": str(tmp_path / "d"),
                                "XDG_STATE_HOME": str(tmp_path / "s"), "TERM": "xterm"}  # fmt: skip


@pytest.mark.process
def test_on_a_terminal_it_asks_and_no_is_the_default(
    lab: Lab, env: dict[str, str], command_server: CommandServer
) -> None:
    keys = Keyboard(command_server, env, "nvbandwidth")
    keys.until("Go on? [y/N]")
    assert "about 30 seconds" in keys.seen
    keys.type("\n")
    assert keys.end() == 3
    assert "nothing was started" in keys.seen
    assert not lab.called()


@pytest.mark.process
def test_a_typed_yes_starts_it_with_progress_of_its_own(
    lab: Lab, env: dict[str, str], command_server: CommandServer
) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.sick8.txt", before="echo 'Running device_to_host_memcpy_ce.'; sleep 1.5")
    keys = Keyboard(command_server, env, "nvbandwidth")
    keys.until("Go on? [y/N]")
    keys.type("yes\n")
    keys.until("nvbandwidth (1/1) 33 %")
    assert keys.end() == 1
    assert len(lab.called()) == 1
    said = " ".join(keys.seen.split())
    assert "24.1 (GPU 0000:9a:00.0) to 55.33 GB/s" in said
    assert "about 55 GB/s" in said


@pytest.mark.process
def test_ctrl_c_ends_all_of_it(lab: Lab, env: dict[str, str], command_server: CommandServer) -> None:
    lab.prints(
        "nvbandwidth",
        "nvbandwidth.healthy8.txt",
        before=f"echo $$ >> {lab.state}/pids; sleep 90 & echo $! >> {lab.state}/pids; wait",
    )
    keys = Keyboard(command_server, env, "nvbandwidth", "nccl-tests", "--yes")
    end = time.monotonic() + 40
    while not (lab.state / "pids").exists() or len((lab.state / "pids").read_text().split()) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    keys.type("\x03")
    assert keys.end() == 130
    assert "broken off" in keys.seen
    assert not [p for p in (lab.state / "pids").read_text().split() if Path(f"/proc/{p}").exists()]
    assert len(lab.called()) == 1  # no other test is begun


@pytest.mark.process
def test_a_job_that_comes_ends_it(lab: Lab, run: Run) -> None:
    other = subprocess.Popen(["sleep", "90"])
    try:
        lab.prints(
            "nvbandwidth",
            "nvbandwidth.healthy8.txt",
            before=f"echo 'GPU-00000002-1111-2222-3333-444444444444, {other.pid}, python3, 9' > {lab.state}/apps; sleep 90",
        )
        done = run("nvbandwidth", "--yes", "--format", "json")
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()
    said = json.loads(done.out)
    assert said["tests"][0]["outcomes"] == ["job"]
    assert f"process {other.pid} (python3)" in said["tests"][0]["why"]
    assert not said["measured"]
    assert done.code in (1, 3)


# What a tool does the first time: it ends gpudiag, the parent of its collector, as the machine's memory or a power button would.
KILLS = (
    "if mkdir {0}/killed 2>/dev/null; then echo $$ > {0}/pid; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 600; fi"
)


@pytest.mark.process
def test_killed_in_a_test_it_is_told_and_nothing_runs_again_unasked(run: Run, lab: Lab, tmp_path: Path) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.healthy8.txt", before=KILLS.format(lab.state))
    assert run("nvbandwidth", "--yes").code not in (0, 1, 2, 3)
    ended(int((lab.state / "pid").read_text()))  # the load has gone with it
    journal = Journal(f"sqlite:///{tmp_path}/data/gpudiag/history.db")
    assert [(r.kind, r.text("what")) for r in journal.records()] == [("intent", "test:nvbandwidth")]
    plan = json.loads(run("nvbandwidth", "--dry-run", "--format", "json").out)
    assert plan["before"].startswith("nvbandwidth may have run already: begun at ")
    assert "nvbandwidth 可能已运行过" in run("nvbandwidth", "--dry-run", "--lang", "zh").out
    assert len(lab.called()) == 1
    again = run("nvbandwidth", "--yes")
    assert "nvbandwidth may have run already" in again.err
    assert len(lab.called()) == 2
    assert json.loads(run("nvbandwidth", "--dry-run", "--format", "json").out)["before"] is None


def ended(pid: int) -> None:
    until = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.05)
