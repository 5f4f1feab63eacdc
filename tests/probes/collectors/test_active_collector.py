"""The collector that runs active tests, as a process of its own, with stand-in tools that answer, hang, flood and fork."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probes.active import spoken
from tests.active_lab import Lab, uuid
from tests.conftest import ROOT

pytestmark = pytest.mark.process

COLLECTOR = ROOT / "probes" / "collectors" / "active.py"
RUN = ("--test", "nvbandwidth", "--every", "0.1", "--", "nvbandwidth", "-t", "all")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab(tmp_path)
    made.prints("nvbandwidth", "nvbandwidth.two.txt")
    return made


def start(lab: Lab, *words: str, deadline: float = 30.0) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-I", "-S", "-B", str(COLLECTOR), "--deadline", str(deadline), *words]
    return subprocess.Popen(
        argv, env=lab.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


def run(lab: Lab, *words: str, deadline: float = 30.0) -> dict[str, Any]:
    out, err = start(lab, *words, deadline=deadline).communicate(timeout=60)
    assert b"Traceback" not in err, err.decode()
    said: dict[str, Any] = json.loads(out)
    return said


def alive(lab: Lab, name: str = "pids") -> list[int]:
    """Of the processes that noted themselves, those that live."""
    path = lab.state / name
    pids = [int(x) for x in path.read_text().split()] if path.exists() else []
    return [
        p
        for p in pids
        if Path(f"/proc/{p}").exists() and "Z" not in Path(f"/proc/{p}/stat").read_text().rpartition(")")[2].split()[0]
    ]


def until(done: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process that is nobody's test."""
    other = subprocess.Popen(["sleep", "60"])
    yield other.pid
    other.kill()
    other.wait()


def test_it_is_one_file_of_old_python() -> None:
    assert ast.parse(COLLECTOR.read_text(), feature_version=(3, 8))


def test_on_idle_gpus_the_tool_runs_to_its_end(lab: Lab) -> None:
    said = run(lab, "--gpus", "1", *RUN)
    assert (said["outcome"], said["exit_code"], said["left"]) == ("ended", 0, [])
    assert "Running host_to_device_memcpy_ce." in said["stdout"]
    assert [g["index"] for g in said["before"]["gpus"]] == ["1"]
    seen = (lab.state / "env").read_text()
    assert f"CUDA_VISIBLE_DEVICES={uuid(1)}\n" in seen
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID\n" in seen
    assert [c.split(" ", 1)[1] for c in lab.called()] == ["-t all"]


def test_without_a_choice_the_tool_sees_all(lab: Lab) -> None:
    assert run(lab, *RUN)["outcome"] == "ended"
    assert "CUDA_VISIBLE_DEVICES" not in (lab.state / "env").read_text()


def test_an_older_driver_has_another_name_for_the_reasons(lab: Lab) -> None:
    lab.flag("old")
    said = run(lab, *RUN)
    assert said["outcome"] == "ended"
    assert "clocks_throttle_reasons.active" in said["before"]["gpus"][0]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"util": "37"}, "utilization.gpu is 37 %"), ({"used": "40100"}, "memory.used is 40100 MiB"),
        ({"util": "[N/A]"}, "not known to be idle"), ({"used": "[Unknown Error]"}, "not known to be idle"),
        ({"mig": "Enabled", "util": "[N/A]"}, "MIG mode"),
    ],
)  # fmt: skip
def test_what_is_in_use_or_not_known_to_be_idle_is_left_alone(lab: Lab, change: dict[str, str], why: str) -> None:
    lab.rows[1] = lab.row(1, **change)
    lab.write()
    said = run(lab, *RUN)
    assert said["outcome"] == "busy"
    assert spoken(said["reason"]).en.startswith("GPU 1 is")
    assert why in spoken(said["reason"]).en
    assert not lab.called()
    assert run(lab, "--gpus", "0", *RUN)["outcome"] == "ended"


def test_a_process_makes_a_gpu_busy(lab: Lab, stranger: int) -> None:
    lab.apps((0, stranger, "/usr/bin/python3, of somebody"))
    said = run(lab, *RUN)
    assert (said["outcome"], spoken(said["reason"]).en) == (
        "busy",
        f"GPU 0 is in use by process {stranger} (/usr/bin/python3, of somebody)",
    )
    assert not lab.called()


def test_who_cannot_look_starts_nothing(lab: Lab) -> None:
    lab.flag("broken")
    assert run(lab, *RUN)["outcome"] == "blind"
    (lab.bin / "nvidia-smi").unlink()
    said = run(lab, *RUN)
    assert (said["outcome"], said["reason"]) == ("blind", {"code": "no-smi"})
    assert not lab.called()


def test_a_gpu_that_is_not_listed_is_not_idle(lab: Lab) -> None:
    said = run(lab, "--gpus", "0,7", *RUN)
    assert (said["outcome"], spoken(said["reason"]).zh) == ("blind", "nvidia-smi 未列出 GPU 7")


def test_only_looking_starts_nothing(lab: Lab, stranger: int) -> None:
    assert run(lab, "--look")["outcome"] == "idle"
    lab.apps((1, stranger, "python3"))
    said = run(lab, "--look")
    assert (said["outcome"], list(said["busy"])) == ("busy", ["1"])
    assert not lab.called()


def test_a_job_that_appears_ends_the_test(lab: Lab, stranger: int) -> None:
    lab.prints(
        "nvbandwidth",
        "nvbandwidth.two.txt",
        before=f"echo $$ >> {lab.state}/pids; sleep 60 & echo $! >> {lab.state}/pids; wait",
    )
    child = start(lab, *RUN)
    until(lambda: len(alive(lab)) == 2)
    lab.apps((1, stranger, "python3"))
    said = json.loads(child.communicate(timeout=30)[0])
    assert (said["outcome"], said["reason"]) == ("job", {"code": "job", "pid": str(stranger), "name": "python3"})
    assert not alive(lab)


def test_the_test_itself_is_no_job(lab: Lab) -> None:
    own = f'echo "{uuid(0)}, $$, nvbandwidth, 600" > {lab.state}/apps; sleep 0.6; : > {lab.state}/apps'
    lab.prints("nvbandwidth", "nvbandwidth.two.txt", before=own)
    said = run(lab, *RUN)
    assert said["outcome"] == "ended"
    assert any(look["apps"] for look in said["looks"])


def test_what_a_service_starts_for_the_test_is_no_job(lab: Lab, stranger: int) -> None:
    lab.prints(
        "dcgmi",
        "nvbandwidth.two.txt",
        before=f'echo "{uuid(0)}, {stranger}, /usr/libexec/datacenter-gpu-manager-4/nvvs, 600" > {lab.state}/apps; sleep 0.6',
    )
    words = ("--test", "dcgm-diag", "--every", "0.1", "--", "dcgmi", "diag", "-r", "1")
    assert run(lab, *words)["outcome"] == "job"
    lab.apps()
    assert run(lab, "--allow", "nvvs", *words)["outcome"] == "ended"


def test_a_process_of_another_name_space_may_be_the_test_and_two_are_not(lab: Lab) -> None:
    gone = 2**22 + 7  # above every pid of this machine
    lab.prints(
        "nvbandwidth",
        "nvbandwidth.two.txt",
        before=f'echo "{uuid(0)}, {gone}, [Not Found], 600" > {lab.state}/apps; sleep 0.5',
    )
    assert run(lab, *RUN)["outcome"] == "ended"
    lab.prints("nvbandwidth", "nvbandwidth.two.txt",
               before=f'printf "{uuid(0)}, {gone}, x, 6\\n{uuid(0)}, {gone + 1}, y, 6\\n" > {lab.state}/apps; sleep 5')  # fmt: skip
    lab.apps()
    assert run(lab, *RUN)["outcome"] == "job"


def test_who_goes_blind_ends_the_test(lab: Lab) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.two.txt", before=f"touch {lab.state}/broken; sleep 60")
    said = run(lab, *RUN)
    assert (said["outcome"], len(said["looks_failed"])) == ("blind", 3)
    assert said["reason"]["because"] == said["looks_failed"][-1]
    assert spoken(said["reason"]).zh.startswith("无法再查看 GPU：nvidia-smi 以 ")


@pytest.mark.parametrize(("number", "deaf"), [(signal.SIGTERM, "trap '' TERM;"), (signal.SIGINT, "")])
def test_broken_off_it_ends_all_that_the_test_started(lab: Lab, number: int, deaf: str) -> None:
    away = f"setsid sh -c 'echo $$ >> {lab.state}/pids; exec sleep 60' & sleep 60"
    lab.prints("nvbandwidth", "nvbandwidth.two.txt", before=f"{deaf} echo $$ >> {lab.state}/pids; {away}")
    child = start(lab, *RUN)
    until(lambda: len(alive(lab)) == 2)
    child.send_signal(number)
    said = json.loads(child.communicate(timeout=30)[0])
    assert (said["outcome"], said["left"]) == ("cancelled", [])
    assert not alive(lab)


def test_killed_with_its_group_it_takes_the_test_along(lab: Lab) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.two.txt", before=f"echo $$ >> {lab.state}/pids; sleep 60")
    child = start(lab, *RUN)
    until(lambda: len(alive(lab)) == 1)
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate(timeout=60)
    until(lambda: not alive(lab))


def test_it_does_not_outlive_who_asked_for_it(lab: Lab) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.two.txt", before=f"echo $$ >> {lab.state}/pids; sleep 60")
    words = [sys.executable, "-I", "-S", "-B", str(COLLECTOR), "--deadline", "60", *RUN]
    asks = f"import subprocess; subprocess.run({words!r}, start_new_session=True, stdout=subprocess.DEVNULL)"
    asker = subprocess.Popen([sys.executable, "-c", asks], env=lab.environ, stderr=subprocess.DEVNULL)
    until(lambda: len(alive(lab)) == 1)
    asker.kill()
    asker.wait()
    until(lambda: not alive(lab))


def test_it_ends_ahead_of_its_deadline(lab: Lab) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.two.txt", before="echo Running host_to_device_memcpy_ce.; sleep 60")
    said = run(lab, *RUN, deadline=4.0)
    assert (said["outcome"], said["exit_code"]) == ("timeout", None)
    assert "Running host_to_device_memcpy_ce." in said["stdout"]


def test_a_flood_is_cut_in_its_middle(lab: Lab) -> None:
    lab.tool("nvbandwidth", "head -c 24000000 /dev/zero | tr '\\0' x; echo; echo the end")
    said = run(lab, *RUN)
    assert said["outcome"] == "ended"
    assert said["lost"] > 10_000_000
    assert said["stdout"].rstrip().endswith("the end")


def test_an_error_is_told(lab: Lab) -> None:
    lab.tool("nvbandwidth", "echo 'CUDA_ERROR_NO_DEVICE' >&2; exit 3")
    said = run(lab, *RUN)
    assert (said["outcome"], said["exit_code"], said["stderr"]) == ("ended", 3, "CUDA_ERROR_NO_DEVICE\n")


def test_no_other_program_is_started(lab: Lab) -> None:
    lab.prints("rm", "nvbandwidth.two.txt")
    assert run(lab, "--test", "x", "--", "rm", "-rf", "x")["outcome"] == "refused"
    assert run(lab, "--test", "x", "--beside", '["rm"]', "--", "nvbandwidth")["outcome"] == "refused"
    assert run(lab, "--root", "/host", *RUN)["outcome"] == "refused"
    assert run(lab, "--test", "gpu-burn", "--", "gpu_burn", "1")["outcome"] == "absent"
    assert not lab.called()


def test_a_server_is_started_first_and_ended_last(lab: Lab) -> None:
    both = f'echo "$@" >> {lab.state}/called; case "$*" in *localhost) cat {ROOT}/tests/captures/active/ib-write-bw.healthy400.txt;; *) echo $$ >> {lab.state}/pids; sleep 60;; esac'
    lab.tool("ib_write_bw", both)
    said = run(
        lab,
        "--test",
        "ib-write-bw",
        "--beside",
        '["ib_write_bw", "-d", "mlx5_0"]',
        "--",
        "ib_write_bw",
        "-d",
        "mlx5_1",
        "localhost",
    )
    assert said["outcome"] == "ended"
    assert lab.called() == ["-d mlx5_0", "-d mlx5_1 localhost"]
    assert not alive(lab)
