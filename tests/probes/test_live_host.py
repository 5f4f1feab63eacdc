"""The real machine through `LiveHost`: nothing hangs it, nothing is lost, and what was denied is said."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from knowledge.observation import Observation, Source, Status, node
from probes import _children
from probes.hang_memory import HangMemory
from probes.host import Call, CallKind, RecordingHost
from probes.live._driver import unresponsive
from probes.live_host import LiveHost
from probes.parse import nvidia_smi_q
from tests.waiting import passing

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def host() -> Iterator[LiveHost]:
    with LiveHost("n1") as live:
        yield live


def tool(folder: Path, name: str, script: str) -> str:
    """A program of ours called `name` on a PATH of its own; returns that PATH."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def with_tool(tmp_path: Path, script: str, **more: object) -> LiveHost:
    path = tool(tmp_path / "bin", "nvidia-smi", script)
    return LiveHost("n1", environ={"PATH": path + os.pathsep + os.environ["PATH"]}, **more)  # type: ignore[arg-type]


# --- files --------------------------------------------------------------------------------


def test_the_machine_names_itself() -> None:
    with LiveHost() as live:
        assert live.name == Path("/proc/sys/kernel/hostname").read_text().strip()


def test_files_and_what_is_no_file(host: LiveHost, tmp_path: Path) -> None:
    assert host.read("/proc/meminfo").text.startswith("MemTotal:")
    gone = host.read(str(tmp_path / "nope"))
    assert (gone.status, gone.data) == (Status.UNSUPPORTED, b"")
    assert "no such file" in gone.detail
    folder = host.read(str(tmp_path))
    assert folder.status is Status.FAILED
    assert "directory" in folder.detail


def test_a_pipe_that_nobody_writes_to_does_not_hold_us(host: LiveHost, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert host.read(str(tmp_path / "pipe")).data == b""


def test_a_long_file_keeps_its_head_and_its_tail(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_bytes(b"".join(b"line %06d\n" % i for i in range(100_000)))
    with LiveHost("n1", cap=10_000) as host:
        reply = host.read(str(path))
    assert reply.cut
    assert len(reply.data) < 10_200
    lines = reply.data.splitlines()
    assert (lines[0], lines[-1]) == (b"line 000000", b"line 099999")
    assert all(line.startswith((b"line ", b"[gpudiag: ")) for line in lines)


def test_a_file_of_another_user_is_denied(tmp_path: Path) -> None:
    """Without any capability, root is a user like others: this Python need not be readable by them."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    os.chown(secret, 65534, 65534)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from probes.live_host import LiveHost\n"
        "r = LiveHost('n1').read(sys.argv[2]); print(r.status, '|', r.detail)"
    )
    argv = ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", sys.executable, "-c", code]
    done = subprocess.run([*argv, str(ROOT), str(secret)], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.startswith("denied | "), done.stderr
    assert "run as root" in done.stdout


def test_listings(host: LiveHost, tmp_path: Path) -> None:
    for name in ("b.log", "a.log", "c.txt"):
        (tmp_path / name).touch()
    assert host.files(f"{tmp_path}/*.log") == [f"{tmp_path}/a.log", f"{tmp_path}/b.log"]
    assert host.files(f"{tmp_path}/nothing*") == []


def test_another_root(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/x").write_text("inside")
    with LiveHost("n1", root=str(tmp_path)) as host:
        assert host.read("/etc/x").text == "inside"
        assert host.files("/etc/*") == ["/etc/x"]


def test_readers_are_used_again_and_threads_do_not_wait_for_each_other(host: LiveHost) -> None:
    threads = [threading.Thread(target=lambda: [host.read("/proc/self/stat") for _ in range(50)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert 1 <= len(host._idle) <= 4


def test_a_reader_that_dies_costs_one_answer(host: LiveHost) -> None:
    host.read("/proc/stat")
    host._idle[0]._child.kill()
    host._idle[0]._child.wait()
    assert host.read("/proc/stat").status is Status.FAILED
    assert host.read("/proc/stat").status is Status.OK


# --- commands -----------------------------------------------------------------------------


def test_a_command_and_its_end(host: LiveHost) -> None:
    reply = host.run(["sh", "-c", "echo out; echo err >&2; exit 3"], deadline=5)
    assert (reply.status, reply.data, reply.stderr, reply.exit_code) == (Status.OK, b"out\n", b"err\n", 3)
    assert host.run(["sh", "-c", "cat; echo $0"], deadline=5).data == b"sh\n", "standard input must be empty"


def test_what_is_not_installed_is_unsupported(host: LiveHost) -> None:
    reply = host.run(["no-such-tool", "-q"], deadline=5)
    assert (reply.status, reply.detail) == (Status.UNSUPPORTED, "no-such-tool is not installed")


def test_no_shell_reads_the_words(host: LiveHost) -> None:
    assert host.run(["echo", "$HOME; rm -rf *", "`id`"], deadline=5).data == b"$HOME; rm -rf * `id`\n"
    assert host.run(["echo", "a\0b"], deadline=5).status is Status.FAILED


def test_secrets_of_ours_do_not_reach_a_child() -> None:
    environ = {**os.environ, "OPENAI_API_KEY": "sk-secret", "LD_LIBRARY_PATH": "/opt/nvidia", "LC_ALL": "de_DE"}
    with LiveHost("n1", environ=environ) as host:
        seen = host.run(["env"], deadline=5).text
    assert "sk-secret" not in seen
    assert "LD_LIBRARY_PATH=/opt/nvidia" in seen
    assert "LC_ALL=C.UTF-8" in seen


@pytest.mark.parametrize(
    "script",
    ["sleep 600", "trap '' TERM; while :; do sleep 1; done", "sleep 600 & echo started; wait"],
)
def test_what_hangs_is_ended_with_all_that_it_started(tmp_path: Path, script: str) -> None:
    marker = f"gpudiag-{os.getpid()}-{abs(hash(script))}"
    with with_tool(tmp_path, f"echo half; exec 9<{tmp_path}; MARK={marker}; {script}") as host:
        reply = host.run(["nvidia-smi"], deadline=1.5)
    assert reply.status is Status.TIMEOUT
    assert reply.data.startswith(b"half\n"), "what had been printed is kept"
    assert "no end after 1.5 s" in reply.detail
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False).stdout
    assert left == ""


SPINS = "import os, time; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); os.nice(19)\nwhile True: pass"


@pytest.mark.parametrize(
    ("script", "busy"),
    [
        (f'exec {sys.executable} -c "{SPINS}"', "it was still running"),  # on a CPU, or waiting for one
        ("kill -STOP $$", "somebody had stopped it"),
        ("exec sleep 60", ""),  # asleep: this is what a hang looks like
    ],
)
def test_a_time_out_says_whether_the_child_was_awake(tmp_path: Path, script: str, busy: str) -> None:
    with with_tool(tmp_path, script) as host:
        reply = host.run(["nvidia-smi", "-q"], deadline=1.0)
    assert reply.status is Status.TIMEOUT
    assert reply.detail.startswith("no end after 1 s")
    assert busy in reply.detail
    assert bool(busy) is ("it was still running" in reply.detail)
    state = Observation("node.driver.state", node("n1"), "ok", source=Source("x", "y"))
    long_ago = replace(reply, detail=reply.detail.replace("no end after 1 s", "no end after 25 s"))
    (told,) = unresponsive([state], long_ago, host, nvidia_smi_q.FORMAT)
    assert told.value == ("ok" if busy else "unresponsive")


def test_time_spent_waiting_for_a_cpu_is_not_its_own(tmp_path: Path) -> None:
    """A child that its neighbours keep from the CPU gets longer than its deadline, and ends well."""
    here = min(os.sched_getaffinity(0))
    work = f"import os, time; os.sched_setaffinity(0, {{{here}}}); os.nice(10)\nwhile time.process_time() < 0.5: pass\nprint('done')"
    with busy_neighbours(here, 4), with_tool(tmp_path, f'exec {sys.executable} -c "{work}"') as host:
        reply = host.run(["nvidia-smi", "-q"], deadline=1.5)
    assert "done" in reply.text or "it was still running" in reply.detail


@contextmanager
def busy_neighbours(cpu: int, n: int) -> Iterator[None]:
    spin = f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    children = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(n)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_a_child_that_left_something_running_is_not_waited_for(tmp_path: Path) -> None:
    with with_tool(tmp_path, "echo done; sleep 60 &") as host:
        reply = host.run(["nvidia-smi"], deadline=30)
    assert (reply.status, reply.data) == (Status.OK, b"done\n")


def test_a_child_that_has_said_everything_is_not_waited_for(tmp_path: Path) -> None:
    """A thread that sleeps in the driver keeps a process from leaving; what it printed is whole."""
    with with_tool(tmp_path, "echo done; exec sleep 60 >&- 2>&-") as host:
        reply = host.run(["nvidia-smi"], deadline=30)
    assert (reply.status, reply.data, reply.exit_code) == (Status.OK, b"done\n", None)


def test_a_hundred_megabytes_are_not_held(tmp_path: Path) -> None:
    with with_tool(tmp_path, "yes | head -c 100000000", cap=1 << 20) as host:
        reply = host.run(["nvidia-smi"], deadline=60)
    assert reply.cut
    assert len(reply.data) < (1 << 20) + 200
    assert "bytes in the middle were left out" in reply.detail


def test_garbage_and_crashes(tmp_path: Path) -> None:
    with with_tool(tmp_path, "head -c 5000 /dev/urandom; kill -SEGV $$") as host:
        reply = host.run(["nvidia-smi"], deadline=10)
    assert (reply.status, reply.exit_code) == (Status.FAILED, -11)
    assert "signal 11" in reply.detail
    assert len(reply.data) == 5000


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    with with_tool(tmp_path, "true") as host:
        (tmp_path / "bin/nvidia-smi").write_bytes(b"\x7fELF rubbish")
        reply = host.run(["nvidia-smi"], deadline=5)
    assert reply.status is Status.FAILED
    assert "cannot be started" in reply.detail


# --- collectors ---------------------------------------------------------------------------


def test_a_collector_that_does_not_exist(host: LiveHost) -> None:
    for name in ("nothing", "../live_host"):
        with pytest.raises(ValueError, match="there is no collector"):
            host.snapshot(name, deadline=1)


def test_a_recording_keeps_listings_and_snapshots(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x")
    with LiveHost("n1") as live:
        host = RecordingHost(live)
        assert host.files(f"{tmp_path}/*.log") == [f"{tmp_path}/a.log"]
        (tmp_path / "b.log").write_text("x")
        assert host.files(f"{tmp_path}/*.log") == [f"{tmp_path}/a.log"]
    assert [r.kind for r in host.replies] == [CallKind.LISTING]


# --- memory of what hung ------------------------------------------------------------------


def test_a_driver_tool_that_still_hangs_is_not_started_again(tmp_path: Path) -> None:
    memory = HangMemory(tmp_path / "state/hangs.json", "boot-1")
    with subprocess.Popen(["sleep", "60"]) as stuck:
        call = (CallKind.COMMAND, ("nvidia-smi",))
        memory.end(
            call,
            "2026-03-03T12:00:00Z",
            _children.Stuck(stuck.pid, _children.start_time(stuck.pid), "state D in nv_ioctl"),
        )
        with with_tool(tmp_path, "echo ran", memory=memory) as host:
            reply = host.run(["nvidia-smi"], deadline=5)
            assert reply.status is Status.TIMEOUT
            assert f"process {stuck.pid} of an earlier run still hangs" in reply.detail
            assert "nv_ioctl" in reply.detail
            assert host.run(["echo", "other"], deadline=5).data == b"other\n"
            stuck.kill()
            stuck.wait()
            assert host.run(["nvidia-smi"], deadline=5).data == b"ran\n"


def test_a_tool_that_took_the_machine_down_is_not_run_again_unasked(tmp_path: Path) -> None:
    call = (CallKind.COMMAND, ("nvidia-smi",))
    HangMemory(tmp_path / "hangs.json", "boot-1").begin(call, "2026-03-03T12:00:00Z")
    memory = HangMemory(tmp_path / "hangs.json", "boot-2")
    with with_tool(tmp_path, "echo ran", memory=memory) as host:
        reply = host.run(["nvidia-smi"], deadline=5)
        assert reply.status is Status.FAILED
        assert "the machine went down while it ran" in reply.detail
        memory.forget()
        assert host.run(["nvidia-smi"], deadline=5).data == b"ran\n"


def test_a_tool_that_was_killed_with_us_in_this_boot_is_run_again(tmp_path: Path) -> None:
    memory = HangMemory(tmp_path / "hangs.json", "boot-1")
    memory.begin((CallKind.COMMAND, ("nvidia-smi",)), "2026-03-03T12:00:00Z")
    with with_tool(tmp_path, "echo ran", memory=memory) as host:
        assert host.run(["nvidia-smi"], deadline=5).data == b"ran\n"
    assert (tmp_path / "hangs.json").read_text() == "{}"


@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"[1]", b'{"a": 1}', b"[" * 100_000])
def test_a_broken_memory_is_no_memory(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "hangs.json"
    path.write_bytes(content)
    memory = HangMemory(path, "boot-1")
    call = (CallKind.COMMAND, ("nvidia-smi",))
    assert memory.refusal(call) is None
    memory.begin(call, "now")
    assert HangMemory(path, "boot-2").refusal(call) is not None


def test_a_memory_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    HangMemory(tmp_path / "file/hangs.json", "b").begin((CallKind.COMMAND, ("nvidia-smi",)), "now")


def test_calls_side_by_side_are_all_remembered_and_all_forgotten(tmp_path: Path) -> None:
    """Two driver tools run at once in every check, and two checks may."""
    memory = HangMemory(tmp_path / "hangs.json", "boot-1")
    calls = [(CallKind.COMMAND, ("nvidia-smi", str(i))) for i in range(8)]

    def together(what: Callable[[Call], None]) -> None:
        threads = [threading.Thread(target=what, args=(call,)) for call in calls]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)

    together(lambda call: memory.begin(call, "now"))
    later = HangMemory(tmp_path / "hangs.json", "boot-2")
    assert all(later.refusal(call) for call in calls)
    together(lambda call: memory.end(call, "now", None))
    assert (tmp_path / "hangs.json").read_text() == "{}"


def test_a_call_that_we_broke_off_did_not_take_the_machine_down(tmp_path: Path) -> None:
    memory = HangMemory(tmp_path / "hangs.json", "boot-1")
    host = with_tool(tmp_path, "sleep 60", memory=memory)
    thread = threading.Thread(target=lambda: host.run(["nvidia-smi"], deadline=30), daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while "begun" not in (tmp_path / "hangs.json").read_text() if (tmp_path / "hangs.json").exists() else True:
        assert time.monotonic() < until
        time.sleep(0.02)
    host.close()  # Ctrl-C: nobody waits for the thread
    assert HangMemory(tmp_path / "hangs.json", "boot-2").refusal((CallKind.COMMAND, ("nvidia-smi",))) is None


LEAVES = """
import os, sys, threading
from probes.live._driver import unresponsive
from probes.live_host import LiveHost
from probes.parse import nvidia_smi_q
host = LiveHost(environ={"PATH": os.environ["PATH"]})
thread = threading.Thread(target=host.run, args=(["sleep", sys.argv[1]],), kwargs={"deadline": 60.0}, daemon=True)
thread.start()
while not host._starting and not host._running:
    pass
host.close()
os._exit(0)
"""


def test_a_child_that_is_just_being_started_does_not_outlive_the_check() -> None:
    """An interrupted check leaves at once; whoever is between fork and being known would stay for ever."""
    for n in range(5):
        seconds = f"{86400 + os.getpid()}.{n}"
        subprocess.run([sys.executable, "-c", LEAVES, seconds], cwd=ROOT, check=True, timeout=60)
        for _ in passing(3):
            if not (left := sleeping(seconds)):
                break
            time.sleep(0.02)
        assert not left


def sleeping(seconds: str) -> list[str]:
    """Processes that sleep for just so long."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes().split(b"\0")[:2] == [b"sleep", seconds.encode()]:
                found.append(path.parent.name)
    return found
