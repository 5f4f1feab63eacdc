"""The verdict's clause, log lines for people, our own notes in Chinese: what a new user reads first."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.diagnosis import diagnose
from assistant.render.labels import headline
from assistant.render.lines import shown
from assistant.render.view import view
from assistant.render.words import _ZH, our_words, source_name
from assistant.sources import parse_text, tells
from knowledge.language import Text
from knowledge.observation import AT_LEAST, Clock, Event, Observation, Scope, Source, Subject, gpu, node
from rules.loader import load
from tests.cases import each
from tests.diagnoses import incident

HERE = node("n1")
GPU = gpu("0000:3b:00.0", "n1")
MOMENT = 1_787_107_256_650_116_000  # 2026-08-19 02:40:56.650116 UTC


@each(
    ("title", "subjects", "en", "zh"),
    [
        (Text("GPU has fallen off the bus", "GPU 从总线上掉线"), [GPU],
         "GPU 0000:3b:00.0 has fallen off the bus", "GPU 0000:3b:00.0：从总线上掉线"),
        (Text("GPU page fault (MMU)", "GPU 缺页错误"), [GPU],
         "GPU 0000:3b:00.0: GPU page fault (MMU)", "GPU 0000:3b:00.0：缺页错误"),
        (Text("GPU memory is full", "GPU 的显存已满"), [GPU],
         "GPU 0000:3b:00.0: GPU memory is full", "GPU 0000:3b:00.0：GPU 的显存已满"),
        (Text("An RDMA port receives damaged symbols", "端口损坏"), [Subject(Scope.PORT, "mlx5_0/1", HERE)],
         "Port mlx5_0/1 receives damaged symbols", "端口 mlx5_0/1：端口损坏"),
        (Text("Compute rails are down", "轨道断开"), [HERE], "Node n1: Compute rails are down", "节点 n1：轨道断开"),
        (Text("A file system is full", "文件系统已满"), [Subject(Scope.OBJECT, "/data", HERE)],
         "/data: A file system is full", "/data：文件系统已满"),
        (Text("The DCGM service failed", "DCGM 服务失败"), [Subject(Scope.OBJECT, "nvidia-dcgm.service", HERE)],
         "nvidia-dcgm.service: The DCGM service failed", "nvidia-dcgm.service：DCGM 服务失败"),
        (Text("GPU is too hot", "GPU 过热"), [GPU, gpu("0000:5d:00.0", "n1")], "2 GPUs (0000:3b:00.0, 0000:5d:00.0): GPU is too hot", "2 个 GPU（0000:3b:00.0、0000:5d:00.0）：GPU 过热"),
        (Text("It crashed", "崩溃"), [Subject(Scope.PROCESS, p, HERE) for p in "123"], "3 processes: It crashed", "3 个进程：崩溃"),
    ],
)  # fmt: skip
def test_the_clause_names_the_thing_once(title: Text, subjects: list[Subject], en: str, zh: str) -> None:
    assert headline(title, subjects, "en") == en
    assert headline(title, subjects, "zh") == zh
    assert headline(title, subjects, "en", named=True).count("n1") == 1


def test_of_a_log_about_more_gpus_than_are_told_apart_their_number_is_the_least() -> None:
    line = "NVRM: Xid (PCI:0000:{b}:00): 95, pid=7, name=python, Uncontained: LTC TAG"
    found = [
        Observation("xid", gpu(f"0000:{b}:00.0", "n1"), Event(95, {"severity": "critical"}), source=Source("log", "kern.log", 1),
                    at=MOMENT, clock=Clock.REALTIME, excerpt=line.format(b=b))
        for b in ("3b", "5d")
    ]  # fmt: skip
    every, cut = (
        diagnose([replace(o, detail=detail) for o in found], load()).verdict for detail in ("", f"{AT_LEAST}: more")
    )
    assert every.text.en.startswith("2 GPUs")
    assert cut.text.en == f"At least {every.text.en}"
    assert cut.text.zh == f"至少 {every.text.zh}"


def test_every_title_makes_a_clause() -> None:
    for rule in load().rules:
        subject = {Scope.NODE: HERE, Scope.GPU: GPU}.get(rule.scope, Subject(rule.scope, "x1", HERE))
        said = headline(rule.title, [subject], "en")
        assert not re.search(r" on (?:GPU|node|process) \S+$", said), said
        assert said[0].isupper() or said.startswith("x1"), said
        assert not re.search(r"^(\w+ \S+) \1", said), said


def line(raw: str, clock: Clock = Clock.REALTIME, at: int | None = MOMENT) -> Observation:
    return Observation(
        "xid", GPU, Event(79, {}), source=Source("kernel-log", "kern.log", 1), at=at, clock=clock, excerpt=raw
    )


SAID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


@each(
    "ahead",
    [
        "12,352,13454698950,-;", "4,352,13454698950,c,caller=T12;", "2026-08-19T02:40:56.650116+0000 kernel: ",
        "2026-08-19T04:40:56.650116+02:00 node-7 kernel: [1204487.508031] ", "<4>[ 1204.508031] ", "[1204487.508031] ",
        "Aug 19 02:40:56 node-7 kernel: [  12.508031] ",
    ],
)  # fmt: skip
def test_a_log_line_is_shown_by_its_time_and_message(ahead: str) -> None:
    assert shown(line(ahead + SAID)) == f"2026-08-19 02:40:56.650Z {SAID}"


def test_a_line_keeps_the_time_that_says_most() -> None:
    assert shown(line(f"[1204.5] {SAID}", Clock.BOOT)) == f"[1204.5] {SAID}"
    assert shown(line(f"Aug 19 02:40:56 n1 kernel: {SAID}", Clock.YEARLESS)) == f"Aug 19 02:40:56 n1 kernel: {SAID}"
    assert shown(line(SAID)) == SAID
    unit = "2026-08-19T02:40:56.650116+0000 systemd[1]: nvidia-fabricmanager.service: Failed"
    assert shown(line(unit)) == "2026-08-19 02:40:56.650Z systemd[1]: nvidia-fabricmanager.service: Failed"


def test_lines_that_say_the_same_are_one_with_a_count() -> None:
    down = [
        Observation(
            "link_carrier", Subject(Scope.NIC, "ib3", HERE), Event(None, {"state": "down", "interface": "ib3", "brief": False}),
            source=Source("kernel-log", "kern.log", n), at=MOMENT + n * 10**12, clock=Clock.REALTIME,
            excerpt=f"12,{n},5,-;mlx5_core 0000:5e:00.0 ib3: Link down",
        )
        for n in range(1, 5)
    ]  # fmt: skip
    flapping = next(b for b in view(diagnose(down, load()), "en", tells).blocks if b.rule == "link-flapping")
    (one,) = flapping.evidence
    assert one.place == "kern.log:1"
    assert one.raw.endswith("Z mlx5_core 0000:5e:00.0 ib3: Link down")
    assert one.exact == down[0].excerpt
    assert one.note.startswith("4 times, last 2026-08-19 03:4")
    every = next(b for b in view(diagnose(down, load()), "en", tells, verbose=True).blocks if b.rule == "link-flapping")
    assert len(every.evidence) == 4


@each(
    ("note", "zh"),
    [
        ("nvmlDeviceGetMemoryInfo_v2(3): no answer in 24.55 s", "nvmlDeviceGetMemoryInfo_v2(3)：24.55 秒内无应答"),
        ("statvfs(/data) did not answer within 1.0 s", "statvfs(/data) 在 1.0 秒内无应答"),
        (
            "7 of 8 active, 7 at 400 Gb/s; not active: mlx5_3/1",
            "8 个中有 7 个激活，其中 7 个为 400 Gb/s；未激活：mlx5_3/1",
        ),
        ("NVML_ERROR_GPU_IS_LOST: GPU is lost", "NVML_ERROR_GPU_IS_LOST: GPU is lost"),
        ("Pending: Yes", "Pending: Yes"),
        ("a raw line; with a semicolon", "a raw line; with a semicolon"),
    ],
)
def test_our_notes_speak_the_language_of_the_answer(note: str, zh: str) -> None:
    assert our_words(note, "zh") == zh
    assert our_words(note, "en") == note


def test_the_table_of_notes_is_sound() -> None:
    for pattern, said in _ZH:
        groups = re.compile(pattern).groups
        assert {int(n) for n in re.findall(r"\\(\d)", said)} <= set(range(1, groups + 1)), pattern
        assert re.search(r"[\u4e00-\u9fff]", said), said


def test_what_only_gpudiag_reads_is_asked_for_by_its_command() -> None:
    assert source_name("NVML snapshot", "en") == "gpudiag check on the node"
    assert source_name("gpudiag filesystems snapshot", "zh") == "在节点上运行 gpudiag check"
    assert source_name("ibstat", "zh") == "ibstat"


def test_kinds_of_errors_are_words_in_titles() -> None:
    failed = Observation("nccl_error", Subject(Scope.DOCUMENT, "train.log"), Event(6, {"kind": "remote_error", "message": "x"}),
                         source=Source("nccl-log", "train.log", 3), excerpt="NCCL WARN x")  # fmt: skip
    titles = [f.title for f in diagnose([failed], load()).findings if f.rule.id == "nccl-error"]
    assert [(t.en, t.zh) for t in titles] == [("NCCL error: the peer failed", "NCCL 错误：对端失败")]


@pytest.mark.process
@pytest.mark.parametrize("name", ["pci", "rdma", "nvml"])
def test_collectors_name_the_machine_below_their_root(name: str, tmp_path: Path) -> None:
    import json
    import subprocess
    import sys

    import probes.collectors

    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/hostname").write_text("gpu-node-7\n")
    program = Path(probes.collectors.__path__[0]) / f"{name}.py"
    argv = [sys.executable, "-I", "-B", str(program), "--deadline", "5", "--root", str(tmp_path)]
    ran = subprocess.run(argv, capture_output=True, timeout=30, check=True)
    assert json.loads(ran.stdout)["host"] == "gpu-node-7"


@each("name", ["mig", "off-the-bus", "driver-hangs", "nfs-hung", "power-brake", "double-bit-error"])
def test_what_a_sick_or_divided_thing_does_not_tell_is_no_question(name: str) -> None:
    d = incident(name)
    assert d.undecided, "else this shows nothing"
    assert view(d, "en", tells).undecided == ()
    assert view(d, "en", tells, verbose=True).undecided


def test_a_question_with_a_sign_stays() -> None:
    world = [
        Observation("gpu.name", GPU, "NVIDIA H100 80GB HBM3", source=Source("nvml", "nvml")),
        Observation("gpu.nvlink.active", GPU, 0, source=Source("nvml", "nvml")),
    ]
    assert any("Every NVLink" in item for item in view(diagnose(world, load()), "en", tells).undecided)


def test_what_was_ruled_out_is_told_by_its_code() -> None:
    page = view(incident("off-the-bus"), "en", tells)
    assert page.ruled_out == (
        "A GPU does not answer, and no XID says why: GPU 5 (0000:ba:00.0) (XID 79; journalctl _TRANSPORT=kernel:11)",
    )


def test_a_process_that_a_cause_explains_is_named_with_the_place_where_it_sleeps() -> None:
    page = view(incident("driver-hangs"), "en", tells)
    stuck = "A process on a GPU hangs in the kernel (process 4203 in os_acquire_rwlock_write)"
    assert any(stuck in b.explains for b in page.blocks)


def test_a_reset_that_is_due_is_named_whatever_else_is_wrong() -> None:
    """Behind graver things it would be counted as one more, and its step cut off."""
    gpus = [gpu(f"0000:{n}b:00.0", "n1") for n in range(3)]
    told = [
        Observation("gpu.row_remap.pending", gpus[2], value=True, source=Source("x")),
        Observation("gpu.clock.event.hw_thermal", gpus[0], value=True, source=Source("x")),
        Observation("gpu.row_remap.failure", gpus[1], value=True, source=Source("x")),
        *(
            Observation("psu.state", Subject(Scope.OBJECT, f"PS{n}", HERE), "failed", source=Source("x"))
            for n in (1, 2)
        ),
    ]
    d = diagnose(told, load())
    assert "GPU 0000:2b:00.0: A row remapping waits for a reset" in d.verdict.text.en
    steps = view(d, "en").steps
    assert "DRAIN_AND_RESET" in [step.bucket for step in steps[:3]]


def test_what_else_is_wrong_is_named_by_its_rule_where_its_figures_are_too_long() -> None:
    """What its GPU does otherwise ("at work") says nothing of what is wrong."""
    heading = "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk  pviol  tviol\n# Idx      W      C      C      %      %    MHz    MHz      %   bool\n"
    row = "    0    312     91    101    100     64   2619    705      0      1\n    1    641     63     77    100     65   2619   1755     82      0\n"
    said = diagnose(parse_text("input", heading + 2 * row), load()).verdict.text.en
    assert "Also: Heat holds its clocks down, again and again." in said
