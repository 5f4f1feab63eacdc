"""What follows from one profiled launch: changes of its configuration, and what its stalls mean.

Thresholds are those of the rules that ship with Nsight Compute (sections/*.py) unless said otherwise.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from knowledge.language import Text
from probes.trace.nsight.ncu_types import Advice, Bound, KernelProfile

_WARP: Final = 32
_TAIL: Final = 0.2  # of the time, lost in the last wave: less is not worth a change
_APART: Final = 10.0  # points of occupancy (Occupancy.py, AchievedOccupancy)


def advice(one: KernelProfile) -> tuple[Advice, ...]:
    """All that applies, the most rewarding first. Nothing is said of figures that are missing."""
    return (*_grid(one), *_block(one), *_tail(one), *_occupancy(one), *_uneven(one))


def _grid(one: KernelProfile) -> list[Advice]:
    if one.blocks is None or one.sms is None or one.blocks >= one.sms:
        return []
    return [Advice("grid-below-sms", Text(
        f"{one.blocks} blocks for {one.sms} SMs: at least {one.sms - one.blocks} of them idle; split the work into more blocks",
        f"{one.blocks} 个线程块对 {one.sms} 个 SM：至少 {one.sms - one.blocks} 个 SM 空闲；应拆分为更多线程块"))]  # fmt: skip


def _block(one: KernelProfile) -> list[Advice]:
    threads = one.threads
    if not threads or threads % _WARP == 0:
        return []
    lost = _WARP - threads % _WARP
    return [Advice("block-not-warps", Text(
        f"{threads} threads a block are no multiple of {_WARP}: {lost} lanes of its last warp never work",
        f"每块 {threads} 个线程不是 {_WARP} 的倍数：最后一个 warp 有 {lost} 个通道始终闲置"))]  # fmt: skip


def _tail(one: KernelProfile) -> list[Advice]:
    waves = one.waves
    if waves is None or waves <= 1:
        return []
    lost = 1 - waves / ceil(waves)
    if lost < _TAIL:
        return []
    return [Advice("tail-wave", Text(
        f"{waves:.2f} waves: the last one leaves up to {lost:.0%} of the launch's capacity idle if all blocks take equally long; choose a grid of whole waves or smaller blocks",
        f"{waves:.2f} 个波次：若各线程块耗时相同，最后一波最多使 {lost:.0%} 的能力空闲；应选择整数个波次的网格或更小的线程块"))]  # fmt: skip


_CURES: Final = {
    "registers": Text("fewer registers a thread (__launch_bounds__, maxrregcount)", "减少每线程寄存器（__launch_bounds__、maxrregcount）"),
    "shared memory": Text("less shared memory a block, or more of the L1 set aside for it", "减少每块共享内存，或为其划分更多 L1"),
    "blocks": Text("larger blocks: the SM holds no more of these", "使用更大的线程块：SM 能容纳的块数已达上限"),
    "warps": Text("smaller blocks: these do not divide the SM's warps well", "使用更小的线程块：当前大小不能很好地划分 SM 的 warp"),
    "barriers": Text("fewer barriers a block", "减少每块的屏障数"),
}  # fmt: skip


def _occupancy(one: KernelProfile) -> list[Advice]:
    """Only where latency is what binds: a kernel near a peak needs no more warps."""
    reached = one.occupancy_theoretical_pct
    if reached is None or reached >= 60 or one.bound not in (Bound.LATENCY, Bound.UNKNOWN) or not one.limiters:
        return []
    return [Advice(f"occupancy-{what.replace(' ', '-')}", Text(
        f"theoretical occupancy is {reached:.0f} %, limited by {what}: {_CURES[what].en}",
        f"理论占用率为 {reached:.0f}%，受限于 {_NAMES_ZH[what]}：{_CURES[what].zh}"))
        for what in one.limiters if what in _CURES]  # fmt: skip


_NAMES_ZH: Final = {
    "registers": "寄存器",
    "shared memory": "共享内存",
    "blocks": "线程块数",
    "warps": "warp 数",
    "barriers": "屏障数",
}


def _uneven(one: KernelProfile) -> list[Advice]:
    possible, reached = one.occupancy_theoretical_pct, one.occupancy_achieved_pct
    if possible is None or reached is None or possible - reached < _APART:
        return []
    return [Advice("occupancy-not-reached", Text(
        f"achieved occupancy is {reached:.0f} % of a possible {possible:.0f} %: warps or blocks take unequally long, or the grid is too small",
        f"实际占用率 {reached:.0f}%，理论为 {possible:.0f}%：各 warp 或线程块耗时不均，或网格太小"))]  # fmt: skip


def meaning(reason: str) -> Text | None:
    """What a stall waits for and what helps; None for a word that is not known (Kernel Profiling Guide, Warp Stall Reasons)."""
    return _MEANINGS.get(reason)


_MEANINGS: Final = {
    "long_scoreboard": Text("waits for data from global, local or texture memory: better locality, wider or earlier loads, data in shared memory",
                            "等待全局、局部或纹理内存的数据：改善局部性、更宽或更早的加载、使用共享内存"),
    "short_scoreboard": Text("waits for shared memory or special functions: fewer bank conflicts, fewer such operations",
                             "等待共享内存或特殊函数：减少 bank 冲突和此类操作"),
    "barrier": Text("waits for the other warps of its block at __syncthreads: even out the work, smaller blocks",
                    "在 __syncthreads 处等待同块的其他 warp：均衡工作量，或减小线程块"),
    "membar": Text("waits for a memory fence", "等待内存栅栏"),
    "math_pipe_throttle": Text("waits for its arithmetic pipe, which is busy: a good sign near the peak", "等待繁忙的运算流水线：接近峰值时属正常"),
    "mio_throttle": Text("the queue to shared memory and special functions is full: fewer, wider accesses",
                         "共享内存与特殊函数的队列已满：减少访问次数、加宽访问"),
    "lg_throttle": Text("the queue to local and global memory is full: fewer, wider accesses", "局部与全局内存的队列已满：减少访问次数、加宽访问"),
    "tex_throttle": Text("the texture queue is full", "纹理队列已满"),
    "wait": Text("waits for a fixed latency between two dependent instructions: more independent work in a thread",
                 "等待相关指令之间的固定延迟：增加线程内的独立工作"),
    "not_selected": Text("was ready while another warp was chosen: there are enough warps", "已就绪但调度了其他 warp：warp 数已足够"),
    "no_instruction": Text("waits for instructions: long jumps or a program larger than the cache", "等待取指：跳转过远或程序大于指令缓存"),
    "imc_miss": Text("misses in the constant cache: threads of a warp should read the same constants", "常量缓存未命中：同一 warp 应读取相同常量"),
    "branch_resolving": Text("waits for a branch target: fewer branches", "等待分支目标：减少分支"),
    "dispatch_stall": Text("the dispatcher held it back", "被分派单元阻塞"),
    "drain": Text("waits for its stores at the end: many writes at once", "结束时等待写出：写操作集中"),
    "sleeping": Text("sleeps (nanosleep)", "处于休眠（nanosleep）"),
    "misc": Text("various", "其他原因"),
    "gmma": Text("waits for the tensor core's asynchronous products", "等待张量核心的异步乘法"),
    "warpgroup_arrive": Text("waits for the warps of its group", "等待同组的 warp"),
}  # fmt: skip
