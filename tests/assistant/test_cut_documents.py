"""A sick document that is cut anywhere, or has a hole, is never OK and usable, even beside a healthy kernel log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.diagnosis import State, diagnose
from assistant.sources import read
from probes.whole import Whole, closed, whole
from rules.loader import load
from rules.model import Usable
from tests.cases import each

CAPTURES = Path(__file__).parent.parent / "captures"
SICK = sorted(p for p in CAPTURES.rglob("*sick*") if p.is_file())
CALM = "[    1.000000] Linux version 6.8.0\n[   14.650646] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15\n"


def verdict(folder: Path, text: bytes) -> tuple[State, Usable]:
    """Of a document, beside a kernel log in which all is well."""
    log, document = folder / "kernel.log", folder / "document"
    log.write_text(CALM)
    document.write_bytes(text)
    found = read([str(log)], [str(document)])
    said = diagnose(found.observations, load(), cut=found.cut).verdict
    return said.state, said.usable


@pytest.mark.slow
@each("path", SICK, ids=lambda p: p.name)
def test_a_sick_document_that_is_cut_is_no_yes(path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, text = tmp_path_factory.mktemp("cut"), path.read_bytes()
    if verdict(folder, text)[0] not in (State.DEGRADED, State.UNHEALTHY):
        return  # sick in a way that is told in notes alone

    @settings(max_examples=settings().max_examples // 2)
    @given(end=st.integers(0, len(text)), hole=st.booleans(), size=st.integers(60, 60 + len(text) // 10))
    def law(end: int, hole: bool, size: int) -> None:
        cut = text[:end] + text[end + size :] if hole else text[:end]
        assert verdict(folder, cut) != (State.OK, Usable.YES)

    law()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": [1, 2]}', Whole.PROVEN), ('{"a": [1, 2', Whole.BROKEN), ('{"a": 1}\n{"b": 2}\n', Whole.PROVEN),
        ('{"a": 1}\n{"b": ', Whole.BROKEN), ('{"a": 1}\nroot@n1:~# ', Whole.PROVEN), ("[1, 2]", Whole.PROVEN),
        ("<?xml version='1.0'?><a><b/></a>", Whole.PROVEN), ("<?xml version='1.0'?><a><b/>", Whole.BROKEN),
        ("<?xml version='1.0'?><a><b></a>", Whole.BROKEN),
        ("+---+---+\n| a | b |\n+---+---+\n", Whole.UNTOLD), ("+---+---+\n| a | b |\n", Whole.BROKEN),
        ("  CGroup: /system.slice/a.service\n          └─1822 /usr/bin/a -c b\n", Whole.UNTOLD), ("┌───┬\n├───┼", Whole.BROKEN),
        ("-+-[0000:00]-+-00.0  Intel\n             +-01.0  Mellanox\n", Whole.UNTOLD), ("+---+---+\n|---+-", Whole.BROKEN),
        ("#       size         count      type   redop    root     time   algbw   busbw #wrong\n 8 2 float\n", Whole.BROKEN),
        ("#       size         count      type   redop    root     time   algbw   busbw #wrong\n 8\n# Avg bus bandwidth    : 4.5\n", Whole.UNTOLD),
        ("T/V                N    NB     P     Q               Time                 Gflops\nWC0 1 1 4 2 3.1 3.7e+05\n", Whole.BROKEN),
        ("read: (g=0): rw=read, bs=(R) 4096B\nStarting 4 processes\n", Whole.BROKEN),
        ("read: (g=0): rw=read, bs=(R) 4096B\nRun status group 0 (all jobs):\n", Whole.UNTOLD),
        ("10.0%  proc'd: 2811 (51211 Gflop/s)   errors: 0   temps: 61 C\n", Whole.BROKEN),
        ("CA 'mlx5_0'\n\tNumber of ports: 1\n", Whole.UNTOLD), ("a 1\n# EOF\n", Whole.PROVEN), ("", Whole.UNTOLD),
    ],
)  # fmt: skip
def test_how_whole_a_text_is_stands_in_its_shape(text: str, expected: Whole) -> None:
    assert whole(text)[0] is expected


@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    assert whole(text)[0] in Whole
    assert whole("{" + text)[0] in Whole
    assert whole("<a " + text)[0] in Whole


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(_VALUES, max_size=4), st.integers(0, 200))
def test_of_cut_json_the_whole_values_are_read(value: list[object], at: int) -> None:
    text = json.dumps(value)
    rest = closed(text[:at])
    assert not rest or isinstance(json.loads(rest), list)
    assert json.loads(closed(text)) == value
    kept = json.loads(rest) if rest else []
    assert kept[:-1] == value[: max(0, len(kept) - 1)], "all but the last are as they were"


def test_what_stands_before_the_cut_is_found(tmp_path: Path) -> None:
    path = tmp_path / "diag.json"
    path.write_text(
        '{"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "GPU Memory", "results": '
        '[{"gpu_id": "4", "status": "Fail", "warnings": [{"warning": "memory mismatch"}]}, {"gpu_id": "5", "stat'
    )
    reading = read([], [str(path)])
    d = diagnose(reading.observations, load(), cut=reading.cut)
    assert reading.cut
    assert d.verdict.state is State.UNHEALTHY


def report(gpus: int) -> str:
    """``nvidia-smi -q`` of so many healthy GPUs, with the sections that end one."""
    one = (
        "GPU 00000000:{n:02X}:00.0\n    Product Name                          : NVIDIA H100\n    ECC Errors\n        Volatile\n"
        "            DRAM Uncorrectable            : 0\n    Remapped Rows\n        Pending                           : No\n"
        "    Processes                             : None\n\n"
    )
    head = f"==============NVSMI LOG==============\n\nAttached GPUs                             : {gpus}\n"
    return head + "".join(one.replace("{n:02X}", f"{n + 16:02X}") for n in range(gpus))


@given(st.integers(1, 8), st.data())
def test_a_report_is_whole_only_when_each_gpu_says_what_the_others_say(gpus: int, data: st.DataObject) -> None:
    text = report(gpus)
    assert whole(text)[0] is (Whole.UNTOLD if gpus == 1 else Whole.PROVEN), "of a single GPU nothing betrays a hole"
    lines = text.splitlines(keepends=True)
    first = data.draw(st.integers(2, len(lines) - 1))
    held = data.draw(st.integers(first + 1, len(lines)))
    if any("NVIDIA" not in line and line.strip() and "Processes" not in line for line in lines[first:held]):
        assert whole("".join([*lines[:first], *lines[held:]]))[0] is not Whole.PROVEN


@each("text", ["==============NVSMI LOG==============\n\nAttached GPUs      ", report(1).partition(" No\n")[0]])
def test_a_report_that_ends_at_a_key_is_broken(text: str) -> None:
    assert whole(text)[0] is Whole.BROKEN
