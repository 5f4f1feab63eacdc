"""Shared by all tests: components that a machine may lack, and the command line as a function."""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.unraisableexception import gc_collect_iterations_key
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from knowledge.compiled import cache_dir
from tests.command_server import CommandServer
from tests.components import component

# Other work may hold the machine at any time: no deadline, and slowness is no fault of a test. The suite is repeatable;
# random search is `make fuzz`, and what it finds is kept as an example.
_ALWAYS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("dev", _ALWAYS, max_examples=25, derandomize=True, database=None)
settings.register_profile("ci", _ALWAYS, max_examples=50, derandomize=True, database=None)
settings.register_profile("fuzz", _ALWAYS, max_examples=1000)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
settings.load_profile(_PROFILE)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # thousands of processes would compile everything anew
sys.dont_write_bytecode = False
# A shell's job in the background, or nohup: what these signals do is tested all the same.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Answer:
    """What one run of the command line gave."""

    code: int
    out: str
    err: str


Gpudiag = Callable[..., Answer]


_READ_AT_START = ("PYTHON", "LC_", "LANG")  # variables that count when a process begins
PROCESS_FIXTURES = {
    "gpudiag", "gpudiag_process", "command_server", "browser", "postgres", "scheduler", "ssh_host", "slack", "faulty", "silent",
    "narrator", "worker", "small", "wheel", "unpacked",
}  # fmt: skip
_BEGIN_PROCESSES = {
    "subprocess.Popen",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.exec",
    "os.system",
    "socket.bind",
}
_begun: list[str] = []


def _note_process(event: str, args: tuple[object, ...]) -> None:
    if event in _BEGIN_PROCESSES:
        _begun.append(f"{event} {args[0] if args else ''}")


def pytest_configure(config: pytest.Config) -> None:
    """Only a run of unit tests is told what they start: each import, file and attribute is an event of it, too."""
    config.stash[gc_collect_iterations_key] = (
        1  # of all that a worker holds: five times cost it four seconds at its end
    )
    if _only_units(config):
        sys.addaudithook(_note_process)


def _only_units(config: pytest.Config) -> bool:
    """Whether the run is of unit tests alone (``-m unit``, not ``-m "not unit"``)."""
    return re.search(r"(?<!not )\bunit\b", config.option.markexpr) is not None


def pytest_make_parametrize_id(val: object) -> str | None:
    """A case of a megabyte is named by how it begins: each worker sends the names of all its tests."""
    if isinstance(val, str | bytes) and len(val) > 80:
        return f"{ascii(val[:60])[:70]}...{len(val)}"
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test is `unit` unless it is marked, or takes a fixture that starts processes.

    Hypothesis, next in turn, would read the numbers and words of every module that is loaded, to draw them now and then: two
    CPU seconds a worker, twelve in a fresh checkout, and other examples wherever other modules are loaded. Only a search at
    random is given them.
    """
    if _PROFILE != "fuzz":
        providers._seen_modules.update(map(id, sys.modules.values()))
    for item in items:
        if PROCESS_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.process)
        if not any(item.iter_markers("process")) and not any(item.iter_markers("machine")):
            item.add_marker(pytest.mark.unit)
    if "PYTEST_XDIST_WORKER" in os.environ:
        items[:] = _mixed(items)


def _mixed(items: list[pytest.Item]) -> list[pytest.Item]:
    """Files that wait (for processes, servers, deadlines) and files that compute in turn, so that workers seldom all do one of both.

    Each worker begins with a part of its own, and takes from the others' ends once that is done: what waits does not stand at the
    end of a part, so that no worker waits for another one's last test. A file stays together: it keeps what its tests share.
    """
    files = [list(group) for _, group in itertools.groupby(items, key=lambda i: i.path)]
    waits: list[list[pytest.Item]] = []
    computes: list[list[pytest.Item]] = []
    for file in files:
        (computes if all(any(i.iter_markers("unit")) for i in file) else waits).append(file)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return [item for n in range(workers) for file in _part(waits[n::workers], computes[n::workers]) for item in file]


def _part(waits: list[list[pytest.Item]], computes: list[list[pytest.Item]]) -> list[list[pytest.Item]]:
    reach = ((waits, 0.95), (computes, 1.0))
    places = [((n + 0.5) / len(kind) * share, file) for kind, share in reach for n, file in enumerate(kind)]
    return [file for _, file in sorted(places, key=lambda p: p[0])]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One for each CPU where tests only compute. Of a whole run a worker waits half of its time, for a capture, a server or
    a deadline: five for two CPUs, and at most eight more than there are.
    """
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cpus if _only_units(config) else min(cpus * 5 // 2, cpus + 8)


def pytest_collection_finish() -> None:
    """A worker holds rules, catalogues and diagnoses for all its tests: garbage is not looked for among them each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
    gc.enable()


def pytest_collection(session: pytest.Session) -> None:
    """What a fresh checkout compiles (30 CPU seconds) is shared by the workers: each begins with other modules.

    What is collected stays: until the end of it no garbage is looked for.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None and getattr(session.config.option, "numprocesses", None):
        return  # the workers collect
    gc.disable()
    if worker is None or [Path(a).resolve() for a in session.config.args] != [ROOT / "tests"]:
        return
    before, modules = ([_dotted(f) for f in sorted((ROOT / "tests").rglob(n))] for n in ("*/conftest.py", "test_*.py"))
    first = int(worker["workerid"].removeprefix("gw")) * len(modules) // worker["workercount"]
    for module in before + modules[first:] + modules[:first]:  # what a folder settles holds when its tests are loaded
        with suppress(Exception, pytest.skip.Exception, pytest.fail.Exception):  # told when it is collected
            importlib.import_module(module)


def _dotted(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """As `pytest_runtest_call`."""
    yield from _held_to_its_mark(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Where only `unit` tests were asked for, one that starts a process or listens fails: `make quick` stays quick anywhere.

    In a whole run the first test that needs what a module keeps pays for it, whichever that is.
    """
    yield from _held_to_its_mark(item)


def _held_to_its_mark(item: pytest.Item) -> Iterator[None]:
    before = len(_begun)
    yield
    if _begun[before:] and _only_units(item.config):
        pytest.fail(f"not a unit test (mark it process or machine): {', '.join(_begun[before:])}", pytrace=False)


@pytest.fixture
def require() -> Callable[[str], str]:
    """`component`, for tests that need one."""
    return component


@pytest.fixture(scope="session")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment without anybody's settings, in English; compiled data is shared by all runs and workers."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("GPUDIAG_", "LC_", "LANG", "XDG_", "NO_COLOR", "COLUMNS"))
    }
    home = str(tmp_path_factory.mktemp("home"))
    return kept | {"HOME": home, "LANG": "C.UTF-8", "GPUDIAG_CACHE_DIR": str(cache_dir()), "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="session")
def command_server(tmp_path_factory: pytest.TempPathFactory, clean_environment: dict[str, str]) -> CommandServer:
    """The process that runs the commands of `gpudiag`."""
    base = tmp_path_factory.getbasetemp()
    worker = "PYTEST_XDIST_WORKER" in os.environ
    return CommandServer(base.parent if worker else base, clean_environment, os.getppid() if worker else os.getpid())


@pytest.fixture
def gpudiag(clean_environment: dict[str, str], command_server: CommandServer) -> Gpudiag:
    """The command line: ``gpudiag("explain", "xid", "79")``, in a process of its own that skips the start-up."""

    def run(
        *words: str,
        stdin: str | bytes | None = None,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        timeout: float = 120,
    ) -> Answer:
        own = [name for name, value in (env or {}).items() if clean_environment.get(name) != value]
        assert not any(name.startswith(_READ_AT_START) for name in own), f"take gpudiag_process: {own}"
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        code, out, err = command_server.run(words, data, cwd or ROOT, clean_environment | (env or {}), timeout)
        return Answer(code, out.decode(), err.decode())

    return run


@pytest.fixture
def gpudiag_process(clean_environment: dict[str, str]) -> Gpudiag:
    """The command line in a fresh interpreter, for tests whose subject is the process."""

    def run(
        *words: str,
        stdin: str | bytes | None = None,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        timeout: float = 120,
    ) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "assistant", *words],
            input=stdin.encode() if isinstance(stdin, str) else stdin or b"",
            capture_output=True,
            cwd=cwd or ROOT,
            env=clean_environment | (env or {}),
            timeout=timeout,
            check=False,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
