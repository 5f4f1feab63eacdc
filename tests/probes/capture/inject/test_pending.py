"""The injector against real processes: every way in which one may be interrupted, and what a borrowed thread was doing."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.inject import _injector, _sigframe, pending, ptrace
from probes.capture.model import Rung
from tests import live_jobs
from tests.probes.capture.injections import Injections

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not ptrace.supported() or not ptrace.allowed(), reason="ptrace of x86-64 is not possible here"),
]
Inject = Callable[..., object]
PATIENCE = 60.0  # seconds; other work may hold the machine
HIT = "import os; f = os.open(os.environ['TMPDIR'] + '/hits', os.O_WRONLY | os.O_APPEND | os.O_CREAT); os.write(f, b'.'); os.close(f)"
VERSIONS = [(3, minor) for minor in range(live_jobs.OLDEST[1], live_jobs.NEWEST[1] + 1)]


def hits(job: live_jobs.Job) -> int:
    """How often the injected statement ran."""
    file = job.folder / "hits"
    return file.stat().st_size if file.exists() else 0


@pytest.fixture(scope="module")
def injections() -> Iterator[Injections]:
    """Where injections are made."""
    with Injections() as found:
        yield found


@pytest.fixture
def inject(injections: Injections) -> Inject:
    """What an injection answers: of `HIT`, and with `PATIENCE`, where nothing else is said."""

    def run(pid: int, code: str = HIT, seconds: float = PATIENCE, **killed: Any) -> object:
        return injections.inject(pid, code, seconds, **killed)

    return run


def at_peace(pid: int) -> None:
    """No thread of it is traced or stopped, and none has signals blocked that it had not: as soon as each had a CPU again."""
    until = time.monotonic() + PATIENCE
    while troubled(pid):
        assert time.monotonic() < until, troubled(pid)
        time.sleep(0.01)


def troubled(pid: int) -> list[str]:
    """What is wrong with its threads."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            rows = (task / "status").read_text().splitlines()
            bad = [r for r in rows if r.startswith(("State:\tt", "State:\tT", "SigBlk:\tffff"))]
            found += bad + [r for r in rows if r.startswith("TracerPid:") and r != "TracerPid:\t0"]
    return found


@contextmanager
def script(text: str, interpreter: str = sys.executable) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `text`; it has said its first line."""
    child = subprocess.Popen(
        [interpreter, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


@pytest.mark.machine
@pytest.mark.parametrize("version", VERSIONS, ids=lambda v: f"{v[0]}.{v[1]}")
def test_each_version_in_the_storm(inject: Inject, version: tuple[int, int]) -> None:
    with live_jobs.Job("storm.py", interpreter=live_jobs.python(*version)) as job:
        for turn in range(8):
            answer = inject(job.pid)
            assert isinstance(answer, dict), answer
            assert answer["answered"]
            assert hits(job) == turn + 1
        job.advance(2)
        at_peace(job.pid)
        assert job.output == "ready\n"


@pytest.mark.parametrize("words", [("loop.py",), ("threads.py", "20")], ids=" ".join)
def test_death_before_each_request(inject: Inject, words: tuple[str, ...]) -> None:
    """Killed before every single ptrace request, the target goes on, unharmed, and can be asked again.

    A death may keep one of the slots that a target has for calls: where the last is taken, another target goes on.
    """
    at, ended = 0, 0
    while not ended:
        with live_jobs.Job(*words, interpreter=sys.executable) as target:
            begun, answer = at, inject(target.pid, killed_before=at)
            while answer == signal.SIGKILL:
                target.advance(2)
                at_peace(target.pid)
                assert target.output.strip() == "ready"
                at += 1
                answer = inject(target.pid, killed_before=at)
            if answer == "queue-full" and at > begun:
                continue
            assert isinstance(answer, dict), answer
            ended = at
            before = hits(target)
            assert isinstance(inject(target.pid), dict)
            assert hits(target) == before + 1
    assert ended > 20  # all requests of one injection were reached


def test_killed_at_random_moments(inject: Inject) -> None:
    with live_jobs.Job("storm.py") as job:
        for turn in range(30):
            inject(job.pid, killed_after=turn * 0.0004)
            at_peace(job.pid)
        job.advance(2)
        assert job.output == "ready\n"
        assert isinstance(inject(job.pid), dict)


BLOCKED = {
    "sleep": "time.sleep({s})",
    "poll": "import select; p = select.poll(); p.register(r); p.poll({s} * 1000)",
    "select": "import select; select.select([r], [], [], {s})",
    "epoll": "import select; p = select.epoll(); p.register(r); p.poll({s})",
    "lock": "import threading; l = threading.Lock(); l.acquire(); l.acquire(timeout={s})",
    "condition": "import threading; threading.Event().wait({s})",
    "sigtimedwait": "import signal; signal.sigtimedwait([signal.SIGUSR2], {s})",
    "usleep": "import ctypes; c = ctypes.CDLL(None, use_errno=True); assert c.usleep(int({s} * 1e6)) == 0, ctypes.get_errno()",
    "raw poll": "import ctypes; c = ctypes.CDLL(None, use_errno=True); b = (ctypes.c_int * 2)(r, 1); assert c.poll(b, 1, int({s} * 1000)) == 0, 'EINTR'",
    "raw epoll": "import ctypes; c = ctypes.CDLL(None, use_errno=True); e = c.epoll_create1(0); b = (ctypes.c_char * 64)(); assert c.epoll_wait(e, b, 1, int({s} * 1000)) == 0, 'EINTR'",
}


@pytest.mark.parametrize("how", sorted(BLOCKED))
def test_a_wait_with_a_time_goes_on(inject: Inject, how: str) -> None:
    """The wait of the only thread is neither cut short nor reported as interrupted, though it is borrowed many times."""
    seconds = 0.8
    text = (
        "import os, time\nr, w = os.pipe()\nprint('ready', flush=True)\nat = time.monotonic()\n"
        f"try:\n {BLOCKED[how].format(s=seconds)}\n print('fine', time.monotonic() - at, flush=True)\n"
        "except BaseException as e:\n print('failed', repr(e), flush=True)\ntime.sleep(100)\n"
    )
    with script(text) as child:
        time.sleep(0.1)
        for _ in range(5):
            inject(child.pid, "pass", seconds=0.05)  # it stays queued: the main thread waits
        assert child.stdout is not None
        said = child.stdout.readline().split()
        assert said[0] == "fine", said
        assert float(said[1]) >= seconds - 0.01
        at_peace(child.pid)


def test_a_read_from_a_pipe_goes_on(inject: Inject) -> None:
    text = "import sys, os\nprint('ready', flush=True)\nprint('got', os.read(0, 100), flush=True)\nimport time; time.sleep(100)"
    with script(text) as child:
        for _ in range(4):
            inject(child.pid, "pass", seconds=0.05)
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("hello\n")
        child.stdin.flush()
        assert child.stdout.readline() == "got b'hello\\n'\n"


def test_floating_point_and_vectors_are_kept(inject: Inject) -> None:
    """A thread that computes is borrowed again and again; its sums come out right."""
    text = (
        "import select, time\nprint('ready', flush=True)\n"
        "def work():\n s = 0.0\n for i in range(200000): s += (i * 1.1) % 7.3\n return s\n"
        "first = work()\nwhile not select.select([0], [], [], 0)[0]: assert work() == first\n"
        "print('same', flush=True)\ntime.sleep(100)"
    )
    with script(text) as child:
        for _ in range(10):
            inject(child.pid, "pass", seconds=5)
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("enough\n")
        child.stdin.flush()
        assert child.stdout.readline() == "same\n"


def test_signals_that_come_meanwhile_arrive(inject: Inject) -> None:
    """Each of many signals sent during injections is seen, and stopping and continuing the process does not derail it."""
    text = (
        "import signal, time\nseen = 0\ndef count(*_):\n global seen; seen += 1\n print('seen', seen, flush=True)\n"
        "signal.signal(signal.SIGUSR2, count)\nprint('ready', flush=True)\nwhile True: time.sleep(0.001)\n"
    )
    with script(text) as child:
        assert child.stdout is not None
        for number in range(1, 16):
            sender = threading.Timer(0.002 * (number % 8), os.kill, (child.pid, signal.SIGUSR2))
            sender.start()
            inject(child.pid, "pass")
            sender.join()
            assert child.stdout.readline() == f"seen {number}\n"
        at_peace(child.pid)


def test_stop_and_continue_meanwhile(inject: Inject) -> None:
    with live_jobs.Job("storm.py") as job:
        over = threading.Event()

        def tease() -> None:
            while not over.wait(0.003):
                os.kill(job.pid, signal.SIGSTOP)
                time.sleep(0.001)
                os.kill(job.pid, signal.SIGCONT)
            os.kill(job.pid, signal.SIGCONT)

        teaser = threading.Thread(target=tease)
        teaser.start()
        answers = [inject(job.pid) for _ in range(15)]
        over.set()
        teaser.join()
        assert all(isinstance(a, dict) or a in ("stopped", "failed") for a in answers), answers
        job.advance(2)
        assert job.output == "ready\n"
        at_peace(job.pid)


def test_a_stopped_process_stays_stopped(inject: Inject) -> None:
    with live_jobs.Job("loop.py") as job:
        os.kill(job.pid, signal.SIGSTOP)
        time.sleep(0.1)
        assert inject(job.pid, seconds=1) in ("stopped", "failed")
        assert "State:\tT" in Path(f"/proc/{job.pid}/status").read_text()
        os.kill(job.pid, signal.SIGCONT)
        job.advance(2)


def test_the_target_ends_meanwhile(inject: Inject) -> None:
    for turn in range(6):
        with live_jobs.Job("loop.py") as job:
            killer = threading.Timer(0.004 * turn, os.kill, (job.pid, signal.SIGKILL))
            killer.start()
            answer = inject(job.pid, seconds=5)
            killer.join()
            assert isinstance(answer, dict) or answer in ("gone", "failed", "no-python", "no-pending-call"), answer


def test_threads_that_end_all_the_time(inject: Inject) -> None:
    text = (
        "import threading, time\nprint('ready', flush=True)\n"
        "while True:\n ts = [threading.Thread(target=time.sleep, args=(0.001,)) for _ in range(8)]\n"
        " [t.start() for t in ts]\n [t.join() for t in ts]\n"
    )
    with script(text) as child:
        answers = [inject(child.pid, "pass") for _ in range(10)]
        assert all(isinstance(a, dict) for a in answers), answers
        assert child.poll() is None
        at_peace(child.pid)


def test_the_borrowed_thread_ends_meanwhile(inject: Inject) -> None:
    """It is asked at most once, however the thread that was borrowed fares."""
    text = (
        "import threading, time, ctypes\nprint('ready', flush=True)\nc = ctypes.CDLL(None)\n"
        "while True:\n ts = [threading.Thread(target=c.usleep, args=(300 * i,)) for i in range(6)]\n"
        " [t.start() for t in ts]\n [t.join() for t in ts]\n"
    )
    with live_jobs.Job("loop.py") as job, script(text) as child:
        for number in range(1, 21):
            answer = inject(child.pid, f"f = open({str(job.folder / 'hits')!r}, 'a'); f.write('.'); f.close()")
            assert isinstance(answer, dict), answer
            assert hits(job) == number
        at_peace(child.pid)


def test_forks_do_not_run_it_again(inject: Inject) -> None:
    text = (
        "import os, time\nprint('ready', flush=True)\n"
        "while True:\n p = os.fork()\n if not p:\n  sum(range(1000)); os._exit(0)\n os.waitpid(p, 0)\n"
    )
    with live_jobs.Job("loop.py") as job, script(text) as child:
        for _ in range(10):
            assert isinstance(
                inject(child.pid, f"f = open({str(job.folder / 'hits')!r}, 'a'); f.write('.'); f.close()"), dict
            )
        assert hits(job) == 10


def test_repeated_injections_leave_one_mapping(inject: Inject) -> None:
    with live_jobs.Job("loop.py") as job:
        for _ in range(12):
            assert isinstance(inject(job.pid), dict)
        assert hits(job) == 12
        ours = [r for r in Path(f"/proc/{job.pid}/maps").read_text().splitlines() if r.startswith(f"{pending.BASE:x}")]
        assert [int(r.split()[0].split("-")[1], 16) - pending.BASE for r in ours] == [pending.SLOT]


def test_calls_that_never_run_fill_the_places_and_are_refused(inject: Inject) -> None:
    with script("import ctypes\nprint('ready', flush=True)\nctypes.CDLL(None).sleep(100)") as child:
        said = [inject(child.pid, "pass", seconds=0.6) for _ in range(pending.SLOTS + 1)]
        assert [a["answered"] for a in said[:-1] if isinstance(a, dict)] == [False] * pending.SLOTS
        assert said[-1] == "queue-full"


def test_two_at_once(inject: Inject) -> None:
    with live_jobs.Job("loop.py") as job, pending._alone(job.pid):
        assert inject(job.pid) == "tracer"


def test_what_is_run_leaves_no_name_and_raises_nothing(inject: Inject) -> None:
    text = "import time, sys\nprint('ready', flush=True)\nold = set(dir())\nold.add('old')\nwhile set(dir()) == old: time.sleep(0.01)\n"
    with script(text) as child:
        for code in ("x = 1", "raise SystemExit(3)", "1/0", "def broken(:", "raise KeyboardInterrupt"):
            if code != "raise KeyboardInterrupt":
                assert isinstance(inject(child.pid, code), dict)
        time.sleep(0.1)
        assert child.poll() is None


def test_an_interpreter_that_starts_is_refused(inject: Inject) -> None:
    """Whatever the moment of the start, nothing breaks."""
    for turn in range(12):
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(0.3); print('fine')"], stdout=subprocess.PIPE
        )
        time.sleep(turn * 0.003)
        answer = inject(child.pid, "pass", seconds=5)
        assert isinstance(answer, dict) or answer in ("no-python", "no-pending-call", "failed", "gone"), answer
        out, _ = child.communicate(timeout=PATIENCE)
        assert out == b"fine\n"
        assert child.returncode == 0


def test_an_interpreter_that_ends_is_not_harmed(inject: Inject) -> None:
    for turn in range(12):
        child = subprocess.Popen(
            [sys.executable, "-c", "import time, json, asyncio, email; time.sleep(0.15)"], stderr=subprocess.PIPE
        )
        time.sleep(0.1 + turn * 0.012)
        inject(child.pid, "pass", seconds=2)
        _, errors = child.communicate(timeout=PATIENCE)
        assert (child.returncode, errors) == (0, b"")


def test_perform_answers_in_json() -> None:
    """The child's answers are plain data, also for a process that is not there."""
    answer = _injector.perform({"pid": 2**22 - 1, "code": "pass", "rung": Rung.PENDING_CALL, "until": time.monotonic()})
    assert answer["refusal"]["code"] == "gone"
    json.dumps(answer)


@given(st.text(), st.integers(0, 2**22))
def test_law_the_wrapped_code_is_one_statement_that_any_python_takes(code: str, inner: int) -> None:
    if "\0" in code or any("\ud800" <= c <= "\udfff" for c in code):
        return
    tree = ast.parse(pending.wrap(code, inner), feature_version=(3, 8))
    assert [type(node) for node in tree.body] == [ast.Try]


registers = st.fixed_dictionaries({n: st.integers(0, 2**64 - 1) for n in ptrace.NAMES}).map(
    lambda r: r | {"rsp": 0x7000_0000_0000 + r["rsp"] % 2**30}
)


@given(registers, st.integers(512 + 64, 12000).map(lambda n: n // 8 * 8), st.integers(0, 2**64 - 1))
def test_law_the_frame_lies_below_the_red_zone_and_is_aligned(now: dict[str, int], size: int, mask: int) -> None:
    start, frame = _sigframe.build(now, bytes(size), mask, 0x1111, 0x2222)
    assert start % 16 == 8
    assert start + len(frame) <= now["rsp"] - _sigframe.RED_ZONE
    assert now["rsp"] - start < _sigframe.ROOM // 2
    assert frame[:16] == (0x2222).to_bytes(8, "little") + (0x1111).to_bytes(8, "little")
    at_state = int.from_bytes(frame[16 + 40 + 184 : 16 + 40 + 192], "little")
    assert at_state % 64 == 0
    assert start + len(frame) == at_state + size + 4
    assert int.from_bytes(frame[16 + 40 + 256 : 16 + 40 + 264], "little") == mask


@given(registers, st.sampled_from([512, 513, 514, 516, 0, 4, 11]), st.integers(0, 460))
def test_law_a_call_that_begins_again_is_rewound_and_no_other(now: dict[str, int], code: int, number: int) -> None:
    now |= {"orig_rax": number, "rax": (-code) % 2**64, "rip": 0x7000_0000_0100}
    later = _sigframe.by_hand(now)
    if code in (512, 513, 514):
        assert (later["rax"], later["rip"]) == (number, now["rip"] - 2)
    elif code == 516:
        assert (_sigframe.signed(later["rax"]), later["rip"]) == (-4, now["rip"])
    else:
        assert (later["rax"], later["rip"]) == (now["rax"], now["rip"])
    assert _sigframe.signed(later["orig_rax"]) == -1
