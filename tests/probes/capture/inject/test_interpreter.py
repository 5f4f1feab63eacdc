"""The interpreter of real processes, and maps files as a kernel or an enemy may write them."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.inject import interpreter
from probes.capture.inject.interpreter import Mapping
from tests import live_jobs

pytestmark = pytest.mark.process

VERSIONS = [(3, minor) for minor in range(live_jobs.OLDEST[1], live_jobs.NEWEST[1] + 1)]


@pytest.mark.machine
@pytest.mark.parametrize("version", VERSIONS, ids=lambda v: f"{v[0]}.{v[1]}")
def test_each_version(version: tuple[int, int]) -> None:
    path = live_jobs.python(*version)
    with live_jobs.Job("loop.py", interpreter=path) as job:
        found = interpreter.read(job.pid)
        assert found is not None
        assert found.version == version
        said = subprocess.run([*live_jobs._argv(path), "-V"], capture_output=True, text=True, check=True).stdout
        assert said.split()[1] == found.release
        assert found.torch == "absent"
        assert not found.cuda
        assert "python" in found.library
        span = interpreter.runtime_range(job.pid)
        assert span is not None
        start, end = span
        assert 400 < end - start < 1 << 20
        rows = [r for r in interpreter.maps(job.pid) if r.start <= start < r.end]
        assert [r.access[1] for r in rows] == ["w"]


def test_addresses_are_those_that_the_process_itself_knows() -> None:
    image = interpreter.image(os.getpid())
    assert image is not None
    for name in ("Py_AddPendingCall", "PyRun_SimpleString", "Py_IsInitialized"):
        pointer = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        assert image.address(name) == pointer
    assert image.address("no_such_name") is None
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    assert (interpreter.runtime_range(os.getpid()) or (0, 0))[0] == runtime


def test_no_python_and_no_process() -> None:
    with subprocess.Popen(["sleep", "100"]) as child:
        try:
            assert interpreter.read(child.pid) is None
            assert interpreter.runtime_range(child.pid) is None
        finally:
            child.kill()
    assert interpreter.read(child.pid) is None
    assert interpreter.read(2**22 + 5) is None
    assert interpreter.read(0) is None


@pytest.mark.machine
def test_torch_is_seen() -> None:
    with live_jobs.Job("train.py", interpreter=live_jobs.torch_python()) as job:
        found = interpreter.read(job.pid)
        assert found is not None
        assert found.torch == "loaded"


def test_an_interpreter_that_was_replaced_on_the_disk(tmp_path: Path) -> None:
    """The file that is mapped is read, not the one that has its name now."""
    if os.geteuid() != 0:
        pytest.skip("/proc/PID/map_files takes root")
    image = interpreter.image(os.getpid())
    assert image is not None
    copy = tmp_path / Path(image.path).name
    shutil.copy(image.path, copy)
    cat = shutil.which("cat")
    assert cat
    if "libpython" in copy.name:
        program, own = sys.executable, {"LD_LIBRARY_PATH": str(tmp_path), "LD_PRELOAD": str(copy)}
    else:  # all of it is in the program
        program, own = str(copy), {"PYTHONHOME": sys.base_prefix}
    child = subprocess.Popen([program, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"],
                             env=os.environ | own, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        new = tmp_path / "new"
        shutil.copy(cat, new)
        new.rename(copy)
        found = interpreter.read(child.pid)
        assert found is not None
        assert found.version == sys.version_info[:2]
    finally:
        child.kill()
        child.communicate()


MAPS = """\
00400000-0041f000 r--p 00000000 fe:00 339380                     /usr/bin/python3.11
7f7faea44000-7f7faeb9a000 r-xp 00026000 fe:00 339381 /a folder/with  spaces.so (deleted)
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7ffe9a112000-7ffe9a133000 rw-p 00000000 00:00 0                          [stack]
nonsense
-12-34 r--p 0 0 0
"""


def test_a_maps_file() -> None:
    rows = list(interpreter.parse(MAPS))
    assert rows[0] == Mapping(0x400000, 0x41F000, "r--p", 0, "fe:00", 339380, "/usr/bin/python3.11")
    assert rows[1].path == "/a folder/with  spaces.so"
    assert rows[1].deleted
    assert [r.path for r in rows[2:]] == ["", "[stack]"]


@given(st.text())
def test_law_any_text_is_read(text: str) -> None:
    for row in interpreter.parse(text):
        assert row.start >= 0
        assert row.end >= 0


@given(
    st.integers(3, 3),
    st.integers(8, 20),
    st.integers(0, 30),
    st.sampled_from([(0xA, "a"), (0xB, "b"), (0xC, "rc"), (0xF, "")]),
)
def test_law_version_numbers(major: int, minor: int, micro: int, level: tuple[int, str]) -> None:
    serial = 0 if level[0] == 0xF else 2
    number = major << 24 | minor << 16 | micro << 8 | level[0] << 4 | serial
    end = f"{level[1]}{serial}" if level[1] else ""
    assert interpreter._from_number(number) == ((major, minor), f"{major}.{minor}.{micro}{end}")
