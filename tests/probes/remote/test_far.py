"""Parts of the far side as functions: what is kept of an output, and how a program is cut for compiling."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes import _reader
from probes._children import Kept, where
from probes.live_host import COLLECTORS
from probes.remote import far
from probes.remote.sending import payload
from tests.probes.remote import interpreters
from tests.probes.remote.processes import gone, marked


@given(st.lists(st.binary(max_size=50), max_size=30), st.integers(2, 120))
def test_it_keeps_what_a_child_here_keeps(stream: list[bytes], cap: int) -> None:
    job = far.Job({"id": 1, "op": "run", "cap": cap}, 0.0)
    kept = Kept(cap)
    head = b""
    for part in stream:
        head += job.take("out", part)
        kept.add(part)
    tail = b"".join(job.tail)
    assert head == kept.head
    assert job.passed == len(head)
    assert tail == kept.tail
    assert job.total - job.passed - job.held == kept.lost


@given(st.lists(st.binary(max_size=20_000), max_size=12))
def test_it_keeps_head_and_tail_of_errors(stream: list[bytes]) -> None:
    job = far.Job({"id": 1, "op": "run"}, 0.0)
    for part in stream:
        assert job.take("err", part) == b""
    whole = b"".join(stream)
    got = job.errors + job.errors_tail
    if len(whole) <= 2 * far.ERRORS:
        assert got == whole
    else:
        assert got == whole[: far.ERRORS] + whole[-far.ERRORS :]


@given(st.lists(st.sampled_from(["x = 1", "def f():\n    return '''a\n\nb'''", "if True:\n    y = 2\n\nelse:\n    y = 3",
                                 "z = (\n    1,\n\n    2,\n)", "'''text\n\nx = 9\n\n'''", "# words", "class A:\n\n    b = 3"]), max_size=30))  # fmt: skip
def test_a_program_in_parts_is_the_program(blocks: list[str]) -> None:
    source = "from __future__ import annotations\n\n" + "\n\n".join(blocks) + "\n"
    assert "".join(far.parts(source)).rstrip() == source.rstrip()
    assert "".join(far.parts(source, 30)).rstrip() == source.rstrip()
    one = type(sys)("one")
    far.execute(source, "one.py", one, part=30)
    other = type(sys)("other")
    exec(source, other.__dict__)
    plain = {k: v for k, v in other.__dict__.items() if isinstance(v, int | tuple)}
    assert {k: v for k, v in one.__dict__.items() if isinstance(v, int | tuple)} == plain
    assert set(one.__dict__) | {"__doc__", "__builtins__"} == set(other.__dict__) | {"__doc__", "__builtins__"}


def test_faults_have_their_lines() -> None:
    source = "a = 1\n\n" * 5000 + "def f():\n    raise ValueError('here')\n"
    one = type(sys)("one")
    far.execute(source, "one.py", one)
    with pytest.raises(ValueError, match="here") as caught:
        one.f()
    assert caught.traceback[-1].lineno + 1 == source.count("\n")


def test_collectors_are_really_cut() -> None:
    for path in COLLECTORS.glob("[a-z]*.py"):
        source = path.read_text()
        parts = far.parts(source)
        for part in parts:
            compile(part, path.name, "exec", dont_inherit=True)
        assert max(map(len, parts)) < 15_000 or len(parts) > len(source) // 20_000, path.name


def test_what_is_sent_is_small_and_old() -> None:
    first = payload({"mark": "x", "limit": 1.0, "keep": [], "folders": []})
    assert len(first) < 20_000
    sent = sum(len(zlib.compress(p.read_bytes(), 9)) for p in COLLECTORS.glob("[a-z]*.py"))
    assert sent + len(first) < 230_000  # with pynvml (50 KB) below 300 KB, were all of them asked for
    for module in (far, _reader):
        source = Path(str(module.__file__)).read_text()
        assert "\nfrom __future__" not in source  # annotations came with Python 3.7
        assert "import dataclasses" not in source


@pytest.mark.parametrize(
    ("name", "there"),
    [("sh", True), ("/bin/sh", True), ("no-such-tool", False), ("", False), ("/etc/passwd", False), ("a\x00b", False)],
)
def test_programs_are_found_as_the_library_finds_them(name: str, there: bool) -> None:
    assert (far.found(name, "/usr/bin:/bin") is not None) is there


@pytest.mark.process
def test_where_a_process_sleeps_is_told_as_it_is_of_one_here() -> None:
    with subprocess.Popen(["cat"], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"x")
        assert child.stdout.read(1) == b"x"
        while not where(child.pid).startswith("state S"):  # it waits for more
            time.sleep(0.01)
        assert far.where(child.pid) == where(child.pid)
    assert far.where(child.pid) == where(child.pid) == "it is gone from /proc"


# --- the program, alone --------------------------------------------------------------------------


def alone(limit: float) -> subprocess.Popen[bytes]:
    """The far side with nobody who reads what it says."""
    child = subprocess.Popen(interpreters.far(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    child.stdin.write(payload({"mark": "here", "limit": limit, "keep": ["PATH"], "folders": ["/usr/bin", "/bin"]}))
    child.stdin.flush()
    assert child.stdout is not None
    assert child.stdout.readline() == b"here\n"
    return child


def ask(child: subprocess.Popen[bytes], **more: object) -> None:
    assert child.stdin is not None
    child.stdin.write(json.dumps({"size": 0, **more}).encode() + b"\n")
    child.stdin.flush()


@pytest.mark.process
def test_it_ends_by_itself_though_nobody_reads_and_its_input_stays_open() -> None:
    mark = marked()
    with alone(2.0) as child:
        ask(child, id=1, op="run", argv=["sh", "-c", f"trap '' TERM HUP; sleep {mark} & wait"], cap=1000, deadline=60)
        ask(child, id=2, op="run", argv=["yes"], cap=1 << 30, deadline=60)  # its output is full
        while gone(mark):
            time.sleep(0.02)
        assert child.wait(20) == 0
    assert gone(mark, 5)


@pytest.mark.process
def test_its_children_end_though_it_is_killed() -> None:
    mark = marked()
    with alone(1.0) as child:
        ask(child, id=1, op="run", argv=["sleep", mark], cap=1000, deadline=60)
        while gone(mark):
            time.sleep(0.02)
        child.kill()
    assert gone(mark, 20)


@pytest.mark.process
def test_questions_that_make_no_sense_end_it() -> None:
    with alone(20.0) as child:
        ask(child, id=1)
        assert child.wait(20) == 1
