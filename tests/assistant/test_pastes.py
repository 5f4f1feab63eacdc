"""Outputs that somebody pasted below each other, without prompts: none swallows the rest, and none is read twice."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnosis import State, diagnose
from assistant.sources import Reading, read
from knowledge.observation import Event, Status
from probes.base import DocumentFormat, lines_of
from probes.pieces import apart, standing
from rules.loader import load
from tests.cases import each
from tests.probes.test_vocabulary_law import MANY, Sample, samples

LOST = "NVRM: Xid (PCI:0000:41:00): 79, pid=81201, name=python3, GPU has fallen off the bus."
SHORT = 20_000  # characters: a law over many texts is told by those that people paste
Told = set[tuple[str, str, str]]


@cache
def texts() -> list[Sample]:
    """Every shipped sample that a person could paste: no folder of traces, no file of several outputs."""
    return [
        s
        for s in samples()
        if len(s.text) < SHORT
        and s.format is not None
        and s.format.name != MANY
        and not (isinstance(s.format, DocumentFormat) and s.format.files)
    ]


def given_as(folder: Path, text: str) -> Reading:
    path = folder / "paste.txt"
    path.write_text(text)
    return read([], [str(path)])


def told(reading: Reading) -> Told:
    """What was read of the machine, without what is said of the text or of the log as a whole."""
    return {
        (o.fact, str(o.subject), str(o.value))
        for o in reading.observations
        if o.status is Status.OK and not o.fact.startswith(("log.", "input.", "job."))
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pastes")


@given(st.data())
def test_a_line_of_the_kernel_is_read_wherever_it_stands(folder: Path, data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(texts()))
    lines = sample.text.rstrip("\n").split("\n")
    gaps = [n for n, line in enumerate(lines) if not line.strip()]
    place = data.draw(st.sampled_from([0, len(lines), *gaps]))
    reading = given_as(folder, "\n".join([*lines[:place], LOST, *lines[place:]]) + "\n")
    ours = [o for o in reading.observations if o.fact == "xid" and o.excerpt.strip() == LOST]
    number = len(lines_of("\n".join([*lines[:place], LOST])))  # a carriage return ends a line, too
    assert [(o.value.code, o.source.line) for o in ours if isinstance(o.value, Event)] == [(79, number)]
    assert any(o.fact == "log.kernel.readable" and o.value is True for o in reading.observations)
    found = diagnose(reading.observations, load(), cut=reading.cut)
    assert found.verdict.state not in (State.OK, State.UNKNOWN)
    assert "gpu-fell-off-bus" in {f.rule.id for f in found.findings}


@given(st.data())
def test_of_two_outputs_both_are_read(folder: Path, data: st.DataObject) -> None:
    one, other = data.draw(st.sampled_from(texts())), data.draw(st.sampled_from(texts()))
    if one.format is other.format:
        return  # one output taken twice: the later says how it is
    between = data.draw(st.sampled_from(["\n\n", "\n```\n\n```\n", "\n\nand this is the other one:\n\n"]))
    alone = [told(given_as(folder, text.text)) for text in (one, other)]
    together = told(given_as(folder, one.text.rstrip("\n") + between + other.text))
    assert alone[0] | alone[1] <= together


IB = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n"
TOPO = "        GPU0    GPU1    CPU Affinity\nGPU0     X      NV18    0-47\nGPU1    NV18     X      0-47\n"
FULL = "Filesystem      Size  Used Avail Use% Mounted on\n/dev/nvme0n1p2  1.8T  1.8T     0 100% /\ntmpfs           126G  1.2M  126G   1% /run\n"
LISTED = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5d2f1a00-7c3e-4b1a-9f20-0c1d2e3f4a50)\n"
DOWN = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: 10\n\t\tLink layer: InfiniBand\n"
REMAPPED = "    Remapped Rows\n        Correctable Error                 : 0\n        Uncorrectable Error               : 3\n        Pending                           : Yes\n        Remapping Failure Occurred        : No\n"
LOGGED = "Nov 16 09:01:12 gpu-07 nvidia-persistenced[1811]: device 0000:3b:00.0 - failed to open.\nNov 16 09:01:13 gpu-07 nvidia-persistenced[1811]: PID file unlocked.\n"
HEALTH = f"+{'-' * 27}+{'-' * 40}+\n| {'Health Monitor Report':66} |\n+{'=' * 27}+{'=' * 40}+\n| Overall Health            | {'Healthy':38} |\n+{'-' * 27}+{'-' * 40}+\n"
FREE = "               total        used        free      shared  buff/cache   available\nMem:           2.0Ti       120Gi       1.7Ti       1.2Gi       180Gi       1.8Ti\n"


@each(
    "text, kinds",
    [
        (FULL + LISTED, ["df", "nvidia-smi"]),
        (FULL + LISTED + TOPO, ["df", "nvidia-smi", "nvidia-smi-topo"]),
        (FREE + DOWN, ["free", "ibstat"]),
        (DOWN + FREE + FULL, ["ibstat", "free", "df"]),
        (FULL + FULL, ["df"]),
        (FULL + LOGGED, ["df", "kernel-log"]),
        (LOGGED + FULL, ["df", "kernel-log"]),
        (DOWN + REMAPPED, ["ibstat", "nvidia-smi-q"]),
        (LISTED + LISTED.replace("GPU 0", "GPU 1") + HEALTH, ["nvidia-smi", "dcgmi-health"]),
    ],
)
def test_outputs_without_a_blank_line_between_them_are_each_read(folder: Path, text: str, kinds: list[str]) -> None:
    assert [kind for _, names in given_as(folder, text).kinds for kind in names] == kinds


@pytest.mark.slow
def test_every_shipped_sample_is_one_output() -> None:
    for sample in texts():
        if sample.format is None or sample.format.name == "systemctl-status":
            continue  # it shows lines of the journal, which are read as such
        assert not (isinstance(sample.format, DocumentFormat) and standing(sample.text)), sample.name
        found = apart(sample.text, (), sample.format)
        assert found is None or (len(found.pieces) == 1 and not found.logs.strip()), sample.name


@each(
    "text",
    [
        f"{IB}\nall ports of node 12 look fine to me, no Xid 79 since the reboot\n",
        f"we replaced the GPU that had fallen off the bus (XID 79) last week:\n\n{TOPO}\nThanks\n",
        f"{IB}\n| 79 | GPU has fallen off the bus | reboot |\n\nas the manual says\n",
        f"```\n{TOPO}```\nand\n```\n{IB}```\n",
        f"{TOPO}\n[  101.000000] nvidia 0000:41:00.0: enabling device (0140 -> 0142)\n",
    ],
)
def test_what_people_write_between_them_is_no_fault(folder: Path, text: str) -> None:
    reading = given_as(folder, text)
    assert not [o for o in reading.observations if isinstance(o.value, Event) and o.fact in ("xid", "gpu_lost")]
    assert diagnose(reading.observations, load(), cut=reading.cut).verdict.state is State.OK


@each(
    "text, code",
    [
        (f"yesterday we saw XID 79 on GPU 3 of this node, it came back after a reboot\n{LISTED}", 79),
        (f"{LISTED}\nand in the night there was an xid 48 on GPU 5, can we use it?\n", 48),
        (f"昨晚 GPU 3 报了 XID 94\n\n{IB}", 94),
        (f"No XID 79 errors on this node so far.\n\n{LISTED}", None),
        (f"XID 79 means that the GPU has fallen off the bus, see the manual\n\n{LISTED}", None),
        (f"we had xid 79 here and replaced the board\n\n{IB}", None),
    ],
)
def test_an_xid_in_the_words_beside_an_output_forbids_ok(folder: Path, text: str, code: int | None) -> None:
    reading = given_as(folder, text)
    said = [o.value for o in reading.observations if o.source.probe == "prose"]
    assert [v.code if isinstance(v, Event) else v for v in said] == ([code] if code else [])
    state = diagnose(reading.observations, load(), cut=reading.cut).verdict.state
    assert (state is State.OK) is (code is None)
    assert (state is State.UNKNOWN) is (code == 79)  # it came back


@each(
    "line", ["NVRM: GPU4 kfooBar_IMPL: flux capacitor failed", "mlx5_core 0000:1b:00.0: mlx5_foo: bar failed, error 7"]
)
def test_an_error_of_a_driver_that_nobody_knows_forbids_ok(folder: Path, line: str) -> None:
    lines = IB.splitlines()
    reading = given_as(folder, "\n".join([*lines[:3], line, *lines[3:]]) + "\n")
    found = diagnose(reading.observations, load(), cut=reading.cut)
    assert found.verdict.state is State.UNKNOWN
    assert line[:20] in str([o.excerpt for o in reading.observations])


@each("sign", ["NVML: ", "\t "])
@each("ahead", ["", "$ nvidia-smi -L\n{rows}\n$ nvidia-smi nvlink -s\n"])
def test_the_row_above_what_is_said_of_a_gpus_links_is_of_the_same_output(folder: Path, sign: str, ahead: str) -> None:
    rows = [f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: GPU-{n}b2f8a71-3c5d-9e40-8a1b-77c0d9e4f21{n})" for n in range(3)]
    said = "\n".join(f"{row}\n{sign}Unable to retrieve NVLink information as all links are inActive" for row in rows)
    reading = given_as(folder, f"{ahead.format(rows=chr(10).join(rows))}{said}\n")
    assert sum(o.fact == "gpu.nvlink.active" and o.value == 0 for o in reading.observations) == len(rows)
    assert [o.value for o in reading.observations if o.fact == "node.gpu.listed"] == ([3] if ahead else [])


def test_a_long_output_costs_no_second_reading(folder: Path) -> None:
    sample = next(s for s in texts() if s.format is not None and s.format.name == "lspci")
    assert isinstance(sample.format, DocumentFormat)
    text = "\n".join(sample.text.rstrip("\n") + "\n" for _ in range(2_000_000 // len(sample.text)))
    begun = time.process_time()
    assert apart(text, standing(text), sample.format) is None
    looked = time.process_time() - begun
    begun = time.process_time()
    given_as(folder, text)
    assert looked < 0.5 * (time.process_time() - begun)


@each(("line", "host"), [(LOST, ""), (f"gpu08: {LOST}", "gpu08")])
def test_among_gathered_outputs_too(folder: Path, line: str, host: str) -> None:
    gathered = "".join(f"gpu07: {row}\n" for row in TOPO.splitlines() * 4)
    reading = given_as(folder, f"{gathered}{line}\n")
    found = [o for o in reading.observations if o.fact == "xid" and o.status is Status.OK]
    assert [(o.subject.host, o.source.line) for o in found] == [(host, gathered.count("\n") + 1)]
    assert not [n for n in reading.notes if n.problem]
