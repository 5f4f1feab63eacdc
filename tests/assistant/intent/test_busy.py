"""Sentences of busy, slow, held and wasted GPUs: which advice their marks ask for, in both languages, and which ask for none."""

from __future__ import annotations

from assistant.intent import busy
from assistant.intent.parse import understand
from knowledge.advice import advice
from tests.cases import each


@each(
    ("said", "page"),
    [
        ("how can I find out if the kernel is compute bound or bandwidth bound?", "memory-or-compute-bound"),
        ("怎么区分是访存受限还是计算受限", "memory-or-compute-bound"),
        ("is GPU-Util in nvidia-smi reliable?", "trust-utilization"),
        ("利用率这个数靠谱吗", "trust-utilization"),
        ("nvidia-smi shows 98% but no job is running", "busy-without-process"),
        ("没有任何进程，利用率却是 98%", "busy-without-process"),
        ("HPC code in double precision shows 0% tensor, is that a problem?", "fp64-without-tensor-cores"),
        ("双精度科学计算 tensor 一直为 0 正常吗", "fp64-without-tensor-cores"),
        ("MIG instance utilization is blank, where do I read it?", "mig-utilization"),
        ("MIG 实例的利用率显示 N/A 怎么看", "mig-utilization"),
        ("sw power cap active on L40S at 350W, do I need to care?", "power-cap-at-full-load"),
        ("4 of 8 H200s show SW Power Cap: Active while training at 100% util", "power-cap-at-full-load"),
        ("4 张卡显示 SW Power Cap，训练中利用率 100%", "power-cap-at-full-load"),
        ("fan 100%, 45C, 0% util, why is it loud?", "fan-full-and-cool"),
        ("风扇全速但卡空闲，怎么回事", "fan-full-and-cool"),
        ("forward compatibility was attempted on non supported HW", "compat-not-supported"),
        ("one of the 8 cards pulls half the watts of the rest", "one-gpu-draws-less"),
        ("一张卡的功率只有其他卡的六成", "one-gpu-draws-less"),
        ("nvswitch saturated, tensor only 12%", "waits-for-nvlink"),
        ("PCIe 跑满，SM 很闲，怎么办", "waits-for-pcie"),
        ("同事的 jupyter 占了 40G 一直不跑，能自动踢掉吗", "cull-notebooks"),
        ("decode on H100 only pulls 45% of TDP, alert?", "decode-at-half-power"),
        ("our reserved gpus sit at 1% for a week, should we cancel the job?", "allocated-and-idle"),
        ("occupancy 只有 12%，tensor active 65%，要优化吗", "occupancy-by-itself"),
        ("吞吐比上周掉了两成，代码没动", "slower-than-before"),
        ("half of our 64 GPUs are idle, whose are they", "idle-gpus"),
        ("910B 报 ECC 错误怎么看", "ascend-support"),
        ("npu-smi shows health Alarm on chip 2, can I use it?", "ascend-alarm"),
        ("7 chips Health OK, one Alarm on Ascend 910B, use the node?", "ascend-alarm"),
        ("npu-smi health is OK and no alarm, 55 C, fine to use?", "ascend-ok"),
        ("昇腾910B4 Health OK 温度 48，能用吗", "ascend-ok"),
        ("npu-smi 里 Health 都是 OK，没有告警，可以派任务吗", "ascend-ok"),
        ("昇腾910B Health OK 温度 105，能用吗", "ascend-support"),
        ("昇腾 Health OK 但是 HCCL 超时，能用吗", "ascend-support"),
        ("海光 DCU 的 hy-smi 能分析吗", "other-makers-support"),
        ("MTT S4000 支持吗", "moore-threads-support"),
        ("sw power cap active on H100 at 300W, a problem?", ""),
        ("nvlink is down and tensor only 12%", ""),
        ("training got slower after the driver upgrade since yesterday", ""),
        ("H100 util 100% but only 140W, is it working?", ""),
        ("is the gpu idle?", ""),
    ],
)
def test_marks_of_a_sentence(said: str, page: str) -> None:
    assert busy.asked(said).id == page


def test_every_mark_of_the_data_is_known() -> None:
    used = {mark for a in advice().values() for t in a.told for mark in (*t.has, *t.without)}
    assert used <= busy.MARKS


@each(
    ("said", "signs"),
    [
        ("clocks dropped to 1200 on gpu 3", ()),
        ("功耗从 600W 掉到 130W", ()),
        ("gpu 3 dropped off the bus", ("gpu-lost",)),
        ("power dropped to 100W and then a gpu fell off the bus", ("gpu-lost",)),
    ],
)
def test_a_value_that_fell_is_no_gpu_that_was_lost(said: str, signs: tuple[str, ...]) -> None:
    lost = {"gpu-lost", "gpu-missing"}
    assert {s for s in understand(said).symptoms if s in lost} == set(signs) & lost


@each(
    ("said", "told"),
    [
        ("what does SM active 0.12 with GPU util 100 mean?", {"gpu.activity.sm": 12, "gpu.utilization.core": 100}),
        ("tensor core 利用率只有 2%，fp32 pipe 70%", {"gpu.activity.tensor": 2, "gpu.activity.fp32": 70}),
        ("GPU 卡在 990MHz 显示 Power Brake", {"gpu.clock.sm": 990, "gpu.clock.event.hw_power_brake": True}),
        (
            "L40S 满载 350W 1.2GHz 是降频了吗",
            {"gpu.power.draw": 350, "gpu.clock.sm": 1200, "gpu.utilization.core": 100},
        ),
    ],
)
def test_a_value_is_of_the_metric_it_stands_with(said: str, told: dict[str, float]) -> None:
    assert {o.fact: o.value for o in understand(said).observations if o.fact != "gpu.name"} == told
