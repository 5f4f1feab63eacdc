"""What drivers of other vendors' GPUs say in the kernel log: each event from its lines, and what is no event."""

from __future__ import annotations

import io

import pytest

from knowledge.facts import vocabulary
from knowledge.observation import Observation, Status
from probes.base import Context, lines_of
from probes.parse import kernel_log
from probes.scan import scan
from tests.cases import each
from tests.probes.parse.test_kernel_events import FILLER, Story, of

A = "[9.0] amdgpu 0000:65:00.0: amdgpu: "
AMD = "gpu 0000:65:00.0"
X = "[9.0] xe 0000:03:00.0: [drm] "
XE = "gpu 0000:03:00.0"
STORIES = [
    Story("amdgpu_ras", A + "2 uncorrectable hardware errors detected in umc block", AMD,
          {"severity": "uncorrected", "count": 2, "block": "umc", "total": False}),
    Story("amdgpu_ras", A + "socket: 0, die: 1, 3 new correctable hardware errors detected in gfx block, no user action is needed",
          AMD, {"severity": "corrected", "count": 3, "block": "gfx"}),
    Story("amdgpu_ras", A + "{12} socket: 0, die: 0, 5 deferred hardware errors detected in total in umc block", AMD,
          {"severity": "deferred", "count": 5, "total": True}),
    Story("amdgpu_ras", A + "1 new poison consumption detected in sdma block", AMD, {"severity": "poison", "block": "sdma"}),
    Story("amdgpu_ras", A + "RAS poison consumption, fall back to gpu reset flow: client id 27", AMD, {"severity": "poison"}),
    Story("amdgpu_hang", A + "SMU: I'm not done with your previous command: SMN_C2PMSG_66:0x0000000E SMN_C2PMSG_82:0x00000000", AMD,
          {"unit": "smu"}),
    Story("amdgpu_hang", A + "Msg issuing pre-check failed(0xffffffff) and SMU may be not in the right state!", AMD, {"unit": "smu"}),
    Story("amdgpu_hang", "[9.0] amdgpu: qcm fence wait loop timeout expired\n[9.1] amdgpu: The cp might be in an unrecoverable state due to "
          "an unsuccessful queues preemption\n" + A.replace("9.0", "9.2") + "GPU reset begin!", AMD, {"unit": "hws"}),
    Story("amdgpu_bad_pages", A + "RAS records:130 exceed threshold:128", AMD, {"records": 130, "threshold": 128}),
    Story("amdgpu_bad_pages", A + "Saved bad pages 256 reaches threshold value 256", AMD, {"records": 256}),
    Story("amdgpu_reset", A + "GPU reset begin!\n[12.0] amdgpu 0000:65:00.0: amdgpu: GPU reset succeeded, trying to resume\n"
          "[13.0] [drm] VRAM is lost due to GPU reset!\n[14.0] amdgpu 0000:65:00.0: amdgpu: GPU reset(2) succeeded!", AMD,
          {"stage": "succeeded", "vram_lost": True}),
    Story("amdgpu_reset", A + "GPU reset begin!\n[12.0] amdgpu 0000:65:00.0: amdgpu: GPU reset(2) failed\n"
          "[14.0] amdgpu 0000:65:00.0: amdgpu: GPU reset end with ret = -110", AMD,
          {"stage": "failed", "error": -110, "vram_lost": False}),
    Story("amdgpu_reset", A + "GPU reset begin!", AMD, {"stage": "begun", "error": None}),
    Story("amdgpu_ring_timeout", "[9.0] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=13441142, "
          "emitted seq=13441144\n[9.1] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process python pid 2379 thread "
          "python:cs0 pid 2391\n" + A.replace("9.0", "9.2") + "GPU reset begin!", AMD,
          {"ring": "gfx_0.0.0", "recovered": False, "process": "python", "pid": 2379}),
    Story("amdgpu_ring_timeout", A + "ring comp_1.0.1 timeout, but soft recovered", AMD, {"ring": "comp_1.0.1", "recovered": True}),
    Story("amdgpu_ring_timeout", A + "ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=3\n"
          "[9.3] amdgpu 0000:65:00.0: amdgpu: Ring gfx_0.0.0 reset succeeded", AMD, {"recovered": True}),
    Story("amdgpu_fault", A + "[gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770)\n"
          "[9.0] amdgpu 0000:65:00.0: amdgpu:  Process python pid 4411 thread python pid 4411)", AMD,
          {"hub": "gfxhub", "process": "python", "pid": 4411}),
    Story("amdgpu_fault", A + "[gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:8 pasid:32779)\n"
          "[9.0] amdgpu 0000:65:00.0: amdgpu:  for process python3 pid 207 thread python3 pid 207", AMD,
          {"process": "python3", "pid": 207}),
    Story("amdgpu_fault", A + "[mmhub0] no-retry page fault (src_id:0 ring:40 vmid:1 pasid:32769, for process x pid 7 thread x pid 7)",
          AMD, {"hub": "mmhub0", "pid": 7}),
    Story("amdgpu_lost", A + "device lost from bus!", AMD),
    Story("amdgpu_init_failed", A + "Fatal error during GPU init", AMD),
    Story("intel_gpu_wedged", X + "*ERROR* CRITICAL: Xe has declared device 0000:03:00.0 as wedged.", XE),
    Story("intel_gpu_hang", X + "GT0: Engine reset: engine_class=ccs, logical_mask: 0x1, guc_id=6\n" + X
          + "Tile0: GT0: Timedout job: seqno=106926, lrc_seqno=106926, guc_id=6, flags=0x20 in llama-bench [260404]", XE,
          {"engine": "ccs", "process": "llama-bench", "pid": 260404}),
    Story("intel_gpu_hang", "[9.0] i915 0000:4d:00.0: [drm] GPU HANG: ecode 12:1:85dffffb, in python3 [1234]", "gpu 0000:4d:00.0",
          {"process": "python3", "pid": 1234}),
    Story("intel_gpu_hardware_error", X + "*ERROR* [Hardware Error]: Tile0 reported NONFATAL error 0x20000", XE,
          {"severity": "nonfatal"}),
    Story("ascend_driver_error", "[9.0] [ascend] [devmm] [ERROR] [devmm_pin_user_pages_fast 124] <VLLM::Worker_TP:670605,670605> "
          "Get_user_pages_fast fail. (va=0x1)", "node gpu-07",
          {"module": "devmm", "function": "devmm_pin_user_pages_fast", "process": "VLLM::Worker_TP", "pid": 670605}),
]  # fmt: skip
QUIET = [
    A + "0 uncorrectable hardware errors detected in umc block",
    A + "no uncorrectable hardware errors detected in gfx block",
    A + "socket: 0, die: 0, 0 new correctable hardware errors detected in umc block",
    A + "amdgpu: SMU is initialized successfully!",
    A + "RAS: optional ras ta ucode is not available",
    X + "Using GuC firmware from xe/pvc_guc_70.bin version 70.20.0",
    X + "Tile0: GT0: Engine reset: engine_class=ccs, logical_mask: 0x1, guc_id=6",
    "[9.0] [ascend] [devdrv] [INFO] [devdrv_probe 10] probe success",
    "Mar  3 12:00:00 gpu-07 trainer[88]: amdgpu 0000:65:00.0: amdgpu: device lost from bus!",
    "Mar  3 12:00:00 gpu-07 trainer[88]: xe 0000:03:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:03:00.0 as wedged.",
]


def parse(text: str) -> list[Observation]:
    return list(kernel_log.parse(lines_of(text), Context("log", "gpu-07")))


def told(text: str) -> list[Observation]:
    """Events of other vendors' drivers, and those that could not be read."""
    return [o for o in parse(text) if o.fact in kernel_log.VENDOR_EVENTS and o.status is not Status.NONE_SEEN]


of_each_story = each("story", STORIES, ids=lambda s: f"{s.fact}-{STORIES.index(s)}")


class TestEvents:
    @of_each_story
    def test_is_told_by_its_lines(self, story: Story) -> None:
        events = of(parse(story.lines), story.fact)
        assert len(events) == story.count
        observation, event = events[0]
        assert (str(observation.subject), observation.subject.host) == (story.subject, "gpu-07")
        assert {name: event.get(name) for name in story.fields} == story.fields

    @of_each_story
    def test_fits_the_vocabulary(self, story: Story) -> None:
        for o in parse(story.lines):
            assert o.fact in kernel_log.PROVIDES
            assert o.status is not Status.OK or vocabulary()[o.fact].accepts(o.value), o

    @pytest.mark.slow
    @of_each_story
    def test_is_found_amid_other_lines(self, story: Story) -> None:
        filler = [FILLER.format(n=n) for n in range(300)]
        text = "\n".join([*filler, story.lines, *filler])
        alone = of(parse(story.lines), story.fact)
        scanned = scan(
            [io.BytesIO(text.encode())], [kernel_log.FORMAT], lambda _: Context("log", "gpu-07")
        ).observations
        for amid in (of(scanned, story.fact), of(parse(text), story.fact)):
            assert [(o.subject, e) for o, e in amid] == [(o.subject, e) for o, e in alone]

    @of_each_story
    def test_other_drivers_say_nothing(self, story: Story) -> None:
        found = {o.fact for o in parse(story.lines) if o.status is Status.OK and not o.fact.startswith("log.")}
        assert found <= set(kernel_log.VENDOR_EVENTS)


def test_every_event_has_a_story() -> None:
    assert {story.fact for story in STORIES} == set(kernel_log.VENDOR_EVENTS)


@each("line", QUIET)
def test_lines_that_tell_of_nothing(line: str) -> None:
    assert told(line) == []


def test_counters_of_a_gpu_that_slept_are_no_errors() -> None:
    (found,) = told(A + "2097120 uncorrectable hardware errors detected in umc block")
    assert (found.fact, found.status) == ("amdgpu_ras", Status.FAILED)
    assert "ones" in found.detail


def test_a_total_beside_its_new_errors_counts_once() -> None:
    text = (
        A + "3 new uncorrectable hardware errors detected in umc block\n"
        + A + "9 uncorrectable hardware errors detected in total in umc block"
    )  # fmt: skip
    assert [e.get("count") for _, e in of(parse(text), "amdgpu_ras")] == [3]


def test_two_gpus_are_two() -> None:
    other = A.replace("65:", "15:")
    text = f"{A}GPU reset begin!\n{other}GPU reset begin!\n{A}GPU reset(1) succeeded!\n{other}GPU reset(1) failed"
    stages = {str(o.subject): e.get("stage") for o, e in of(parse(text), "amdgpu_reset")}
    assert stages == {AMD: "succeeded", "gpu 0000:15:00.0": "failed"}


def test_a_line_without_an_address_beside_two_gpus_is_of_neither() -> None:
    line = "[9.0] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2"
    text = f"{A}amdgpu: x\n{line}\n{A.replace('65:', '15:')}amdgpu: x"
    ((found, _),) = of(parse(text), "amdgpu_ring_timeout")
    assert found.subject.id.startswith("unknown:")


def test_a_burst_is_one_event() -> None:
    lines = [
        f"[{9 + n / 10:.1f}] {A.split('] ', 1)[1]}[gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770)"
        for n in range(50)
    ]
    assert len(of(parse("\n".join(lines)), "amdgpu_fault")) == 1
    assert len(of(parse(f"{lines[0]}\n{lines[0].replace('[9.0]', '[99.0]')}"), "amdgpu_fault")) == 2


@each(
    ("line", "speaks"),
    [
        (A + "SMU is initialized successfully!", "amdgpu_"),
        (X + "Using GuC firmware from xe/pvc_guc_70.bin", "intel_gpu_"),
        ("[9.0] [ascend] [devdrv] [INFO] [devdrv_probe 10] probe success", "ascend_"),
        ("[9.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15", ""),
    ],
)
def test_only_of_a_driver_that_speaks_none_was_seen(line: str, speaks: str) -> None:
    """A log of a node with GPUs of NVIDIA says nothing of those that it has not."""
    found = {o.fact for o in parse(line) if o.status is Status.NONE_SEEN} & set(kernel_log.VENDOR_EVENTS)
    assert found == ({e for e in kernel_log.VENDOR_EVENTS if e.startswith(speaks)} if speaks else set())
