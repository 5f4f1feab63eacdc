"""Equal lines that are counted: the same in C and in Python, none lost, and the same conclusions as from every line."""

from __future__ import annotations

import io
import json
import os
import random
import re
import subprocess
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from assistant.diagnosis import Diagnosis, diagnose
from knowledge.derive import derive
from knowledge.observation import AT_LEAST, Clock, Event, Observation, Source, gpu, how_many
from probes import native
from probes._scan_fold import (
    LIBRARY,
    PAUSES,
    SOURCE,
    CompiledFold,
    Fold,
    Limits,
    PlainFold,
    library,
    lines_at,
    look,
    new,
    numbers_of,
)
from probes._scan_open import foreign
from probes._scan_windows import EDGE
from probes.base import Context, Line, LogFormat
from probes.parse import kernel_log
from probes.parse._kernel_unread import BESIDE
from probes.registry import log_formats
from probes.scan import scan
from rules.loader import load
from tests.cases import each
from tests.components import cannot
from tests.conftest import ROOT

OTHER = "GPUDIAG_TEST_FOLD"  # a library that is built in another way
HALF = settings(max_examples=settings().max_examples // 2)  # each example is two diagnoses
EVERY = Limits(any=1 << 40, calm=1 << 40, crowd=1 << 40, shared=1 << 60)  # folds nothing


@pytest.fixture(scope="module")
def built() -> Any:
    """The library; required where a C compiler is required."""
    return library(Path(os.environ.get(OTHER, LIBRARY))) or cannot(
        "cc", "the compiled fold was not built from this source"
    )


PARTS = st.sampled_from([
    b"12:00:01", b"2026-11-21", b"2026-11-21T03:00:01.5Z", b"Nov 21 03:00:01 ", b"gpu0001", b"0000:3b:00.0", b"Xid (PCI:0000:3b:00): ",
    b"79", b"): 24007", b"1700000000123456", b"[ 123.456789]", b"6,12,1234567,-;", b"python[123]:", b"[3]", b"0x7f1234567",
    b"GPU-7540a9b3", b"deadbeef1", b" ", b":", b".", b"fail", b"Link up", b"Link down", b"ab12cd", b"1234", b"12:00:01:02",
    b"00:12:00:01", b"\xff", b"T", b"21T03:00:01", b"node-0001", b";i=", b'"_HOSTNAME":"', b"+00:00", b"-", b"/", b"_", b"\xc4",
    b'{"', b'","', b'" : "', b'"}', b"{", b"}", b"[", b"]", b",", b"\\", b'"MESSAGE":"', b"SXid (PCI:0000:06:00.0): ",
])  # fmt: skip
WORDS = st.lists(PARTS, max_size=8).map(b"".join) | st.binary(max_size=40).map(lambda b: b.replace(b"\n", b""))
TIMES = st.builds(lambda d, h, m, s: b"Nov %d %02d:%02d:%02d h%d " % (d, h, m, s, h % 2),
                  st.integers(1, 2), st.integers(0, 2), st.integers(0, 3), st.integers(0, 59))  # fmt: skip
SMALL = st.integers(1, 3)
LIMITS = st.builds(
    Limits, SMALL, st.integers(0, 2), SMALL, st.integers(1, 2), st.integers(1, 2), st.integers(1, 5), st.integers(1, 8), SMALL, SMALL,
    st.integers(0, 3), st.sampled_from([100, 300, 1 << 20]), st.integers(0, 2), st.integers(0, 3), st.integers(1, 2), st.integers(0, 20), st.integers(0, 3),
    st.integers(0, 3), st.integers(0, 5), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4),
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Lines of few sorts, at times, with numbers."""
    sorts = draw(st.lists(WORDS, min_size=1, max_size=5))
    ends = [b"", b" 1", b" 2", b" 34567", b" 45678", b" pid=7", b" pid=4242", b" fail pid=5151"]
    one = st.tuples(st.just(b"") | TIMES, st.sampled_from(sorts), st.sampled_from(ends))
    return b"\n".join(b"".join(parts) for parts in draw(st.lists(one, max_size=60)))


def folded(fold: Fold, text: bytes) -> tuple[list[int], Any, int]:
    places, at = array("q"), 0
    for line in text.split(b"\n"):
        places.extend((at, at + len(line)))
        at += len(line) + 1
    found = fold.lines(text, 0, len(text), places, 1)
    assert list(found.numbers) == list(range(1, len(found.codes) + 1))
    assert found.next == 1 + text.count(b"\n")
    return list(found.codes), fold.runs(), fold.lost


@given(texts(), LIMITS)
def test_the_compiled_fold_decides_as_the_plain_one(built: Any, text: bytes, limits: Limits) -> None:
    assert folded(CompiledFold(built, limits), text) == folded(PlainFold(limits), text)


@pytest.mark.process
def test_the_compiled_fold_touches_no_memory_but_its_own(tmp_path: Path, require: Callable[[str], str]) -> None:
    """The test before this one, with a library that address and undefined-behaviour sanitizers watch."""
    compiler, made = require("cc"), tmp_path / "_fold.so"
    watch = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    mark = f'-DSOURCE_HASH="{native.source_hash(SOURCE)}"'
    build = [
        compiler,
        "-std=c99",
        "-g",
        "-O1",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        *watch,
        mark,
        "-o",
        str(made),
        str(SOURCE),
    ]
    watcher = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if subprocess.run(build, capture_output=True, check=False).returncode or not Path(watcher).is_absolute():
        pytest.skip("this compiler has no sanitizers")
    env = os.environ | {
        OTHER: str(made),
        "LD_PRELOAD": watcher,
        "ASAN_OPTIONS": "detect_leaks=0",
    }  # Python's own are many
    one = f"{__file__}::{test_the_compiled_fold_decides_as_the_plain_one.__name__}"
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", one]
    done = subprocess.run(run, capture_output=True, text=True, check=False, env=env, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "1 passed" in done.stdout


@given(texts(), LIMITS)
def test_each_line_is_kept_or_in_one_run(text: bytes, limits: Limits) -> None:
    codes, runs, lost = folded(PlainFold(limits), text)
    assert sum(code < 0 for code in codes) + sum(run.times for run in runs) == len(codes)
    for run in runs:
        own = [
            number
            for number, code in enumerate(codes, 1)
            if code == run.entry and run.first[0] <= number <= run.last[0]
        ]
        assert (len(own), own[0], own[-1]) == (run.times, run.first[0], run.last[0])
    assert lost <= sum(run.times for run in runs)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200)), st.integers(0, 60), st.integers(0, 60))
def test_lines_around_ends_are_whole(data: bytes, ends: list[int], low: int, cut: int) -> None:
    start = data.rfind(b"\n", 0, min(low, len(data))) + 1
    end = max(start, len(data) - cut)
    inside = sorted({e for e in ends if start < e <= end})
    places = lines_at(data, start, end, inside)
    found = list(zip(places[::2], places[1::2], strict=True))
    lines, at = [], start
    for line in data[start:end].split(b"\n"):
        lines.append((at, at + len(line)))
        at += len(line) + 1
    assert found == [(a, b) for a, b in lines if any(a < e <= b + 1 for e in inside)]
    assert list(numbers_of(data, start, places, 7)) == [7 + data.count(b"\n", start, head) for head, _ in found]


VALUES = st.text(max_size=12) | st.integers(0, 10**17) | st.lists(st.integers(0, 255), max_size=4)
OBJECTS = st.dictionaries(
    st.text(max_size=8), VALUES | st.dictionaries(st.text(max_size=3), VALUES, max_size=3), min_size=1, max_size=12
)


@given(
    st.data(),
    OBJECTS,
    st.sampled_from(["", "data: ", "\x1e", "Nov 21 03:00:01 n1 app[7]: "]),
    st.sampled_from([",", ", ", " ,  "]),
)
def test_members_of_an_object_may_stand_in_any_order(
    data: st.DataObject, told: dict[str, Any], ahead: str, mark: str
) -> None:
    other = dict(data.draw(st.permutations(list(told.items()))))
    one, two = (look((ahead + json.dumps(o, separators=(m, ":"))).encode()) for o, m in ((told, ","), (other, mark)))
    if not any(isinstance(value, dict | list) for value in told.values()):
        assert one == two
    else:  # what is within a member stays as it was written
        assert one.near == look((ahead + json.dumps(other, separators=(",", ":"))).encode()).near


SAME = [
    (
        "Nov 21 03:00:01 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=x",
        "Nov 22 04:10:59 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=52431, name=x",
        True,
    ),
    ("NVRM: Xid (PCI:0000:3b:00): 31, pid=4242", "NVRM: Xid (PCI:0000:5d:00): 31, pid=4242", False),
    ("NVRM: Xid (PCI:0008:01:00): 31, pid=4242", "NVRM: Xid (PCI:0009:01:00): 31, pid=4242", False),
    ("SXid (PCI:0000:06:00.0): 12028, Non-fatal, Link 3", "SXid (PCI:0000:06:00.0): 12029, Non-fatal, Link 3", False),
    ("[rank3]: RuntimeError: x", "[rank4]: RuntimeError: x", False),
    ("Device=GPU-7540a9b3-eeb9-1214-1526-f93c9ea826a8", "Device=GPU-8540a9b3-eeb9-1214-1526-f93c9ea826a8", False),
    (
        "2026-11-21T03:00:01.123+00:00 n1 x[12]: a 0x7f0012345678",
        "2026-11-21T03:00:02.5+00:00 n1 x[7]: a 0x7f0087654321",
        True,
    ),
    ("[ 1112.345678] mlx5_core 0000:5d:00.0: a", "[ 9912.345678] mlx5_core 0000:5d:00.0: a", True),
    ("6,397,227996636,-;a", "6,9871,9227996636,-;a", True),
    ("Nov 21 03:00:01 node-0001 kernel: a", "Nov 21 03:00:01 node-0002 kernel: a", False),
    ("2026-11-21T03:00:01.5+00:00 ip-10-0-1-1234 x[1]: a", "2026-11-21T03:00:01.5+00:00 ip-10-0-1-4321 x[1]: a", False),
    ("node-0001:4242:4343 [3] a", "node-0002:4242:4343 [3] a", False),
    ("node-0001:4242:4343 [3] a", "node-0001:5252:5353 [3] a", True),
    ('{"_HOSTNAME":"node-0001","MESSAGE":"a"}', '{"_HOSTNAME":"node-0002","MESSAGE":"a"}', False),
    ('{"__CURSOR":"s=a;i=3e8;b=c"}', '{"__CURSOR":"s=a;i=f;b=c"}', True),
    ("Nov 21 03:00:01 n1 kernel: job-0001 a", "Nov 21 03:00:01 n1 kernel: job-0002 a", True),
    ('{"a":"1","b":"{2,}","c":{"d":3,"e":4}}', '{"c":{"d":3,"e":4},"a":"1", "b":"{2,}"} ', True),
    ('{"c":{"d":3,"e":4}}', '{"c":{"e":4,"d":3}}', False),
    ('{"a":"x,y","b":1} {"c":2}', '{"b":1,"a":"x,y"} {"c":2}', False),
]


@each("one, other, equal", SAME)
def test_what_is_equal(one: str, other: str, equal: bool) -> None:
    assert (look(one.encode()).near == look(other.encode()).near) is equal


KINDS = [
    ("NVRM: Xid (PCI:0000:3b:00): 31, pid=7", "NVRM: Xid (PCI:0000:5d:00): 31, pid=8", True),
    ("NVRM: Xid (PCI:0000:3b:00): 31, pid=7", "NVRM: Xid (PCI:0000:3b:00): 79, pid=7", False),
    (
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 12028, Link 3",
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 24007, Link 3",
        False,
    ),
    ("step (rank 0): 12", "step (rank 0): 13", True),
]


@each("one, other, alike", KINDS)
def test_the_code_of_an_xid_makes_another_kind(one: str, other: str, alike: bool) -> None:
    assert (look(one.encode()).far == look(other.encode()).far) is alike


# --- the whole way ---------------------------------------------------------------------------


@dataclass
class Recorder:
    """A log format that keeps what it is given."""

    lines: list[Line] = field(default_factory=list)
    context: Context = field(default_factory=Context)

    def parse(self, lines: Sequence[Line], context: Context) -> list[Observation]:
        self.lines, self.context = list(lines), context
        return []


@given(texts(), LIMITS, st.integers(1, 400), st.sampled_from([(0, 0), (2, 3), (0, 90)]))
def test_lines_and_counts_add_up(text: bytes, limits: Limits, block: int, around: tuple[int, int]) -> None:
    """A line that a format gets stands for one, or for as many as it is told; together they are all that matched."""
    got = Recorder()
    own = LogFormat("one", "one", 1, (), lambda _: 1, ("fail|Link|Xid|gpu",), got.parse, *around)
    assume(foreign(text, "log") is None)
    scan([io.BytesIO(text)], [own], block=block, fold=lambda: PlainFold(limits))
    words = ("fail", "Link", "Xid", "gpu")
    matched = [
        line
        for line in text.replace(b"\r", b"\n").decode("utf-8", "replace").split("\n")
        if any(w in line for w in words)
    ]
    kept = [line for line in got.lines if any(w in line.text for w in words)]
    assert sum(got.context.times.get(line.number, 1) for line in kept) == len(matched)


NAMES = ("0000:3b:00", "0000:5d:00")
EVENTS = st.sampled_from([
    *(f"NVRM: Xid (PCI:{pci}): {code}, pid={pid}, name=python, text" for pci in NAMES for code in (13, 31, 63, 94, 79) for pid in (4242, 5151)),
    "mlx5_core 0000:49:00.0 ib0: Link down", "mlx5_core 0000:49:00.0 ib0: Link up", "mlx5_core 0000:4a:00.0 ib1: Link up",
    "pcieport 0000:00:01.1: AER: Corrected error received: 0000:00:01.1", "NVRM: something failed here",
])  # fmt: skip
BURSTS = st.lists(st.tuples(EVENTS, st.integers(1, 25), st.sampled_from([0, 1, 20, 400, 4000])), min_size=1, max_size=8)


def kernel_text(bursts: Sequence[tuple[str, int, int]]) -> bytes:
    at, out = 0, []
    for message, times, apart in bursts:
        for _ in range(times):
            at += apart
            clock = f"Nov {1 + at // 86400:2d} {at // 3600 % 24:02d}:{at // 60 % 60:02d}:{at % 60:02d}"
            out.append(f"{clock} n1 kernel: {message}")
        at += 1
    return "\n".join(out).encode() + b"\n"


def concluded(text: bytes, limits: Limits) -> Diagnosis:
    return diagnose(scan([io.BytesIO(text)], log_formats(), fold=lambda: PlainFold(limits)).observations, load())


@HALF
@given(BURSTS)
def test_rules_see_the_same_in_a_burst_that_was_folded(bursts: list[tuple[str, int, int]]) -> None:
    """Verdict, findings, their grades, roles and counts are those of a log of which every line is an event.

    What counts bursts sees them apart as long as their spans are kept apart: then there are enough of them.
    """
    text = kernel_text(bursts)
    every, few = concluded(text, EVERY), concluded(text, Limits(any=4, fresh=4, runs=16, calm=2, whole=0, calm_whole=0))
    assert few.verdict == every.verdict
    assert [(f.id, f.grade, f.role, f.severity) for f in few.findings] == [
        (f.id, f.grade, f.role, f.severity) for f in every.findings
    ]
    for one, other in zip(few.findings, every.findings, strict=True):
        if re.search(r"gap=\d", repr(one.rule.when)):
            assert one.count <= other.count
        else:
            assert (one.count, one.times) == (other.count, other.times)
    assert how_many(few.events) == len(every.events)


PLACED = "NVRM: Xid (PCI:0000:{gpu:02x}:00): 31, pid={pid}, name=python, MMU Fault: ENGINE GPC{gpc} faulted @ 0x7f{x:x}_{y:08x}{more}"


@given(st.integers(0, 999), st.integers(1, 6), st.integers(1, 12), st.booleans(), st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_a_gpu_has_as_many_events_as_lines_or_that_it_has_more_is_said(
    seed: int, gpus: int, gpcs: int, crowded: bool, telling: int
) -> None:
    """However many different lines there are; a line with more numbers than names of things is one of those only counted."""
    r, lines, right = random.Random(seed), [], Counter[str]()
    for n in range(400):
        gpu = r.randrange(gpus) if n < 380 else 0
        more = "".join(f" {r.randrange(9)}" for _ in range(13)) if crowded and n > 100 else ""
        words = {
            "pid": r.randrange(1000, 9999),
            "gpc": r.randrange(gpcs),
            "x": r.randrange(256),
            "y": r.randrange(1 << 32),
        }
        lines.append((PLACED.format(gpu=gpu, more=more, **words), 1, 1))
        right[f"0000:{gpu:02x}:00.0"] += 1
    few = Limits(any=2, fresh=2, crowd=4, each=1, telling=telling, late=1, later=1, early=0, whole=0, calm_whole=0)
    read = scan([io.BytesIO(kernel_text(lines))], [kernel_log.FORMAT], fold=partial(new, few))
    found = Counter[str]()
    for o in read.observations:
        if o.fact == "xid" and isinstance(o.value, Event):
            found[o.subject.id] += o.times
    if any("at least as many" in note.text.en for note in read.notes):
        assert found <= right
        assert found != right
    else:
        assert found == right
    assert crowded or telling < gpus * gpcs or not read.notes


MERGED = [
    ["kernel: [ascend] [devmm] [ERROR] [devmm_pin_user_pages_fast 124] <python:4242,4242> Get_user_pages_fast fail."],
    ["kernel: NVRM: GPU0 _issueRpcAndWait: rpcRecvPoll timedout for fn 76 sequence 4129!"],
    [
        "kernel: NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0x65:2168)",
        "kernel: NVRM: GPU 0000:3b:00.0: rm_init_adapter failed, device minor number 0",
    ],
    ["kernel: NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x62:0x65:2168)"],
    [
        "kernel: DMAR: [DMA Read] Request device [9b:00.0] fault addr 0x3fffc000 [fault reason 0x06] PTE Read access is not set"
    ],
    ["kernel: BUG: unable to handle page fault for address: ffffc90000a3f000"],
    ["kernel: xe 0000:29:00.0: [drm] *ERROR* [Hardware Error]: Tile0 reported NONFATAL error 0x20000"],
    ["systemd[1]: nvidia-persistenced.service: Failed with result 'exit-code'."],
    ["train.sh[4242]: srun: error: gpu044: task 3: Segmentation fault (core dumped)"],
    [
        "train.sh[4242]: RuntimeError: CUDA error: MPS client failed to connect to the MPS control daemon or the MPS server"
    ],
]


def told(text: bytes, limits: Limits) -> Counter[tuple[str, str]]:
    """How many events there are of each kind about each thing, and how often those happened that count themselves."""
    out: Counter[tuple[str, str]] = Counter()
    for o in scan([io.BytesIO(text)], log_formats(), fold=partial(new, limits)).observations:
        if isinstance(o.value, Event):
            out[o.fact, str(o.subject)] += o.times
            out[f"{o.fact}.count", str(o.subject)] += int(o.value.get("count") or 0)
    return out


@settings(max_examples=settings().max_examples // 5)  # each example holds all of MERGED, and is read twice
@given(st.lists(st.sampled_from([0, 1, 2, 4, 9, 12, 100, 4000, 86_400]), min_size=12, max_size=24))
def test_what_several_lines_tell_together_is_as_many_events_in_a_burst_that_was_folded(apart: list[int]) -> None:
    """Lines near each other are one event (`LogFormat.bursts`), attempts of two lines one each, and some count themselves."""
    at, lines = 80_000, []
    for block in MERGED:
        for pause in apart:
            at += pause
            clock = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=at)).strftime("%b %d %H:%M:%S")
            lines += [f"{clock} n1 {line}" for line in block]
    lines += [f"{clock} n1 systemd[1]: Started a session."] * EDGE  # ends are kept whole
    text = "\n".join(lines).encode() + b"\n"
    assert told(text, Limits(any=4, fresh=4, late=2, later=2, whole=0, calm_whole=0)) == told(text, EVERY)


def test_another_exception_is_told_behind_many_that_begin_alike() -> None:
    def raised(line: str) -> list[str]:
        calls = [
            f'  File "/opt/train/{name}.py", line 20, in {name}' for name in ("main", "run", "step", "load", "read")
        ]
        return ["Traceback (most recent call last):", *calls, line, *["step 12 | loss 2.11"] * 100]

    many = raised("ConnectionResetError: [Errno 104] Connection reset by peer") * 60
    text = "\n".join([*many, *raised("KeyError: 'lr'"), *many]).encode()
    few = Limits(any=4, fresh=4, whole=0, calm_whole=0)
    kinds = told(text, few)
    assert kinds["python_error", "document -"] == 2
    assert kinds == told(text, EVERY)


@each("line, went_on", [("step 12 | loss 2.11", True), ("checkpoint is being written", False)])
def test_whether_the_program_went_on_behind_a_folded_exception_is_seen(line: str, went_on: bool) -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "/opt/track.py", line 20, in send',
        "ConnectionError: reset",
    ]
    handled = [*raised, "step 11 | loss 2.11", *["checkpoint is being written"] * 100] * 60
    text = "\n".join([*handled, *raised, line, *["checkpoint is being written"] * 200]).encode()
    for limits in (EVERY, Limits(any=4, fresh=4, whole=0, calm_whole=0)):
        found = scan([io.BytesIO(text)], log_formats(), fold=partial(PlainFold, limits)).observations
        assert [o.value.get("went_on") for o in found if isinstance(o.value, Event)] == [went_on]


def test_gaps_of_bursts_are_counted_by_the_fold() -> None:
    assert {gap for f in log_formats() for gap in f.bursts.values()} <= {pause * 10**9 for pause in PAUSES}


@each("bursts, apart, events", [([2000, 300], 250, 1), ([2000, 300], 450, 2), ([200, 9, 9, 200], 450, 4)])
def test_an_error_without_a_time_is_another_one_behind_400_lines(bursts: list[int], apart: int, events: int) -> None:
    """Between the first and the last of folded lines nobody knows where they stand: no gap was there that the fold did not keep."""
    line = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW"
    text = "\n".join(row for n in bursts for row in [*["a file was loaded"] * apart, *[line] * n]).encode()
    found = {limits: told(text, limits) for limits in (EVERY, Limits(), Limits(whole=0, calm_whole=0))}
    assert {count["cuda_error", "document -"] for count in found.values()} == {events}


@each("programs, found", [(1, False), (2, True), (8, True)])  # with the one just before
def test_programs_that_fail_at_once_are_seen_behind_many_that_failed_alone(programs: int, found: bool) -> None:
    crash = "NVRM: Xid (PCI:0000:3b:00): 43, pid={}, name=python, Ch 00000008"
    alone = [(crash.format(10_000 + i), 1, 60) for i in range(400)]
    text = kernel_text([*alone, *((crash.format(20_000 + i), 1, 0) for i in range(programs)), *alone])
    assert ("many-programs-fail-at-once" in {f.rule.id for f in concluded(text, Limits(whole=0)).findings}) is found


@each("programs, title", [(50, "50 programs on"), (500, "At least 161 programs on")])
def test_programs_of_a_moment_of_which_some_were_folded_are_the_least(programs: int, title: str) -> None:
    line = "Nov  1 00:00:09 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 32, pid={}, name=a"
    text = "\n".join(line.format(10_000 + i) for i in range(programs)).encode()
    titles = [f.title.en for f in concluded(text, Limits(whole=0, later=64)).findings]
    assert [t for t in titles if t.startswith(title)], titles


@each("apart, seen", [(0, True), (60, False)])
def test_programs_that_fail_at_once_are_known_of_lines_that_were_all_folded(apart: int, seen: bool) -> None:
    """Behind what is kept of them one line stands for the others: whether there were several at once the fold has seen."""
    crash = "NVRM: Xid (PCI:0000:3b:00): 31, pid={}, name=a, Ch 00000008"
    moments = [
        (crash.format(10_000 + 9 * i + j), 1, 0 if j else 900)
        for i in range(600)
        for j in range(4 if apart == 0 else 1)
    ]
    text = kernel_text(moments)
    found = scan([io.BytesIO(text)], log_formats(), fold=lambda: PlainFold(Limits(whole=0, later=64))).observations
    told = [o.value.get("programs_folded") for o in found if isinstance(o.value, Event) and o.times > 1]
    assert told
    assert any(told) is seen


@each("began, programs", [(0, 4), (9, 1)])
def test_a_line_has_the_programs_of_those_that_were_folded_within_its_moment(began: int, programs: int) -> None:
    """Where they lie in it as a whole: of a longer span of time nobody knows which moment it was."""
    second, at = 10**9, 1_787_107_256 * 10**9
    one = Observation(
        "xid",
        gpu("0000:3b:00.0", "n1"),
        Event(31, {"pid": 4242}),
        source=Source("log", "kern.log", 1),
        at=at,
        clock=Clock.REALTIME,
    )
    last = replace(
        one,
        value=Event(31, {"pid": 5151, "programs_folded": 4}),
        at=at + second,
        times=6,
        window=(at - began * second, at + second),
    )
    (told,) = (o.value for o in derive([one, last]) if o.fact == "xid" and o.times == 1)
    assert isinstance(told, Event)
    assert told.get("programs") == max(programs, 2)


@each("outages, title", [(9, "again and again: 9x in this log"), (200, "again and again: at least 70x in this log")])
def test_outages_of_a_node_of_which_some_were_folded_are_the_least(outages: int, title: str) -> None:
    lines = ("slurmctld[9]: error: Nodes n7 not responding, setting DOWN", "slurmctld[9]: node n7 returned to service")
    text = kernel_text([(line, 1, 60) for _ in range(outages) for line in lines]).replace(b"kernel: ", b"")
    titles = [f.title.en for f in concluded(text, Limits(whole=0, calm_whole=0)).findings]
    assert [t for t in titles if t.endswith(title)], titles
    assert not [t for t in titles if "not understand" in t]


def journal(shape: str, hosts: Sequence[str], records: Sequence[tuple[str, int]], seed: int) -> bytes:
    """What journalctl prints of XIDs (address and code), half a second apart; members of JSON in any order."""
    order, out = random.Random(seed), []
    for n, (pci, code) in enumerate(records):
        at = 1_764_200_000_000_000 + n * 500_000
        message = f"NVRM: Xid (PCI:{pci}): {code}, pid=4242, name=python, Ch 00000008"
        fields = {"__CURSOR": f"s=06eb;i={n:x};b=59b7;m=1;t={at:x};x=f", "__REALTIME_TIMESTAMP": str(at), "_TRANSPORT": "kernel",
                  "_BOOT_ID": "a" * 32, "_HOSTNAME": hosts[n % len(hosts)], "MESSAGE": message, "PRIORITY": "3", "_COLD": "x,y"}  # fmt: skip
        mixed = dict(order.sample(list(fields.items()), len(fields)))
        if shape == "json":
            out.append(json.dumps(mixed, separators=(",", ":")) + "\n")
        elif shape == "json-pretty":
            out.append("{\n" + ",\n".join(f"\t{json.dumps(k)} : {json.dumps(v)}" for k, v in mixed.items()) + "\n}\n")
        elif shape == "jq":
            out.append(json.dumps(mixed, indent=2) + "\n")
        elif shape == "jq -s":
            out.append(
                f"{',' if n else '['}\n" + "".join(f"  {line}\n" for line in json.dumps(mixed, indent=2).split("\n"))
            )
        elif shape == "export":
            out.append("".join(f"{k}={v}\n" for k, v in fields.items()) + "\n")
        else:
            head = f"Thu {datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%d %H:%M:%S.%f} UTC [{fields.pop('__CURSOR')}]\n"
            out.append(head + "".join(f"    {k}={v}\n" for k, v in fields.items()))
    return "".join(out).encode()


@given(
    st.sampled_from(["json", "json-pretty", "jq", "jq -s", "export", "verbose"]),
    st.integers(0, 99),
    st.integers(1, 40),
    st.integers(200, 900),
)
@settings(max_examples=18, deadline=None)
def test_a_flood_of_journal_records_is_counted_for_each_gpu(shape: str, seed: int, block: int, size: int) -> None:
    records = [(NAMES[n % 3 // 2], (94, 31)[n % 2]) for n in range(size)]
    records[seed] = (NAMES[1], 79)
    few = Limits(any=2, fresh=2, early=9, whole=9, calm_whole=9)
    read = scan(
        [io.BytesIO(journal(shape, ["n1"], records, seed))], log_formats(), fold=partial(new, few), block=block << 10
    )
    told: Counter[tuple[str, Any]] = Counter()
    for o in read.observations:
        if o.fact == "xid" and isinstance(o.value, Event):
            told[o.subject.id, o.value.code] += o.times
    assert told == Counter((f"{pci}.0", code) for pci, code in records)
    assert {o.subject.host for o in read.observations if o.fact == "xid"} == {"n1"}
    assert not read.notes


@each("shape", [("json-pretty",), ("jq",), ("jq -s",), ("export",), ("verbose",)])
def test_of_records_of_several_hosts_that_were_folded_no_host_gets_those_of_another(shape: str) -> None:
    text = journal(shape, ["n1", "n1", "n2"], [(NAMES[0], 94)] * 600, 1)
    read = scan(
        [io.BytesIO(text)], log_formats(), fold=partial(new, Limits(any=2, fresh=2, early=9, whole=9, calm_whole=9))
    )
    told = Counter(
        o.subject.host
        for o in read.observations
        if o.fact == "xid" and isinstance(o.value, Event)
        for _ in range(o.times)
    )
    assert told["n1"] <= 400
    assert told["n2"] <= 200
    assert any("only counted" in note.text.en for note in read.notes)


def test_a_burst_is_a_few_events() -> None:
    text = kernel_text(
        [("NVRM: Xid (PCI:0000:3b:00): 94, pid=7, name=x, Contained: SM (0x1). RST: No, D-RST: No", 20_000, 1)]
    )
    found = [o for o in scan([io.BytesIO(text)], log_formats()).observations if o.fact == "xid" and o.value is not None]
    assert how_many(found) == 20_000
    assert len(found) < 1200


def test_of_many_things_in_trouble_few_lines_are_kept_of_each_and_all_are_counted() -> None:
    """Eight codes of sixteen GPUs, each again and again, of another program and behind a silence."""
    line = "NVRM: Xid (PCI:0000:{gpu:02x}:00): {code}, pid={pid}, name=python, failed"
    codes = (13, 31, 43, 45, 63, 74, 94, 119)
    each_ = [(16 + gpu, code) for gpu in range(16) for code in codes]
    bursts = [
        (line.format(gpu=gpu, code=code, pid=1000 + 131 * n + i), 1, 4)
        for n in range(24)
        for i, (gpu, code) in enumerate(each_)
    ]
    few = Limits(whole=0, calm_whole=0, shared=2 * len(each_))
    read = scan([io.BytesIO(kernel_text(bursts))], log_formats(), fold=partial(new, few))
    found = [o for o in read.observations if o.fact == "xid" and isinstance(o.value, Event)]
    counts = Counter[tuple[Any, Any]]()
    for o in found:
        assert isinstance(o.value, Event)
        counts[o.subject, o.value.code] += o.times
    assert set(counts.values()) == {24}
    assert len(counts) == len(each_)
    assert len(found) < 12 * len(each_)


STATES = [
    (
        'n1 kubelet[1810]: E0302 02:13:41.100001    1810 kubelet.go:2419] "Skipping pod synchronization" '
        'err="PLEG is not healthy: pleg was last seen active 5m7.9s ago; threshold is 3m0s"',
        1,
    ),
    ("n1 rsyslogd[812]: file '/var/log/messages': write error - No space left on device", 1),
    ("n1 slurmd[4021]: fatal: Unable to find slurmstepd file at /usr/sbin/slurmstepd", 1),
    ("n1 slurmd[4021]: error: [job 4242] prolog failed status=1:0", 150),
]


@each("line, events", STATES)
def test_what_a_daemon_says_again_and_again_is_one_state(line: str, events: int) -> None:
    told = [f"Nov  1 00:{i // 60:02d}:{i % 60:02d} {line}\n" for i in range(150)]
    text = "".join(
        [*told, *["Nov  1 01:00:00 n1 systemd[1]: Started a session.\n"] * EDGE]
    ).encode()  # ends are kept whole
    few = Limits(any=4, fresh=4, whole=0, calm_whole=0)
    for limits in (EVERY, few):
        found = scan([io.BytesIO(text)], log_formats(), fold=partial(PlainFold, limits)).observations
        own = [
            o
            for o in found
            if o.value is not None and o.fact in {"slurm_failure", "daemon_disk_full", "kubelet_runtime_silent"}
        ]
        assert how_many(own) == events


XID_79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
NOT_KNOWN = "NVRM: GPU6 kfooBar_IMPL: flux capacitor failed"


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from((XID_79, NOT_KNOWN)), st.integers(1, 60)), min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_errors_that_no_parser_took_are_counted_or_told_as_the_least(bursts: list[tuple[str, int]]) -> None:
    lines = [line for line, times in bursts for _ in range(times)]
    text = "".join(f"Nov 21 03:{n // 60:02d}:{n % 60:02d} n0 kernel: {x}\n" for n, x in enumerate(lines)).encode()
    few = Limits(any=4, fresh=2, runs=4, early=0, whole=0, calm_whole=0)
    told: list[tuple[int, str]] = []
    for limits in (Limits(), few):
        found = scan([io.BytesIO(text)], (kernel_log.FORMAT,), fold=partial(new, limits)).observations
        not_read = [o for o in found if o.fact == "log.driver.errors_not_read"]
        assert len(not_read) <= 1
        told.append((int(str(not_read[0].value or 0)), not_read[0].detail) if not_read else (0, ""))
    (whole, _), (part, detail) = told
    assert whole == part or (part < whole and detail.startswith(AT_LEAST if part else BESIDE))


def test_a_line_that_goes_on_with_a_fault_is_understood() -> None:
    hang = "i915 0000:29:00.0: [drm] GPU HANG: ecode 12:1:85dffffb, in python3 [1234]"
    text = "".join(f"Nov 21 03:00:{n // 20:02d} n0 kernel: {hang}\n" for n in range(400)).encode()
    found = scan([io.BytesIO(text)], (kernel_log.FORMAT,)).observations
    assert any(o.fact == "intel_gpu_hang" for o in found)
    assert not any(o.fact == "log.driver.errors_not_read" for o in found)
