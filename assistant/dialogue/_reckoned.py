"""Figures that decide: whether a CUDA release runs on a driver, how large a KV cache is, what a token costs, how well a job scales."""

from __future__ import annotations

from typing import Any

from assistant.dialogue._pages import data_of
from assistant.intent.reckoned import CudaOnDriver, KvCache, Scaled, TokenCost
from assistant.render.sheet import Items
from assistant.reply import Reply
from knowledge.language import Text

# The newest CUDA that each driver branch is made for, as its nvidia-smi shows it (release notes of the CUDA toolkit, table 3).
_NEWEST = {
    410: (10, 0), 418: (10, 1), 440: (10, 2), 450: (11, 0), 455: (11, 1), 460: (11, 2), 465: (11, 3), 470: (11, 4), 495: (11, 5),
    510: (11, 6), 515: (11, 7), 520: (11, 8), 525: (12, 0), 530: (12, 1), 535: (12, 2), 545: (12, 3), 550: (12, 4), 555: (12, 5),
    560: (12, 6), 565: (12, 7), 570: (12, 8), 575: (12, 9), 580: (13, 0), 590: (13, 1),
}  # fmt: skip
_FIRST = {11: 450, 12: 525, 13: 580}  # the oldest branch for all minor releases of a major
_GIB = 2.0**30
_GOOD, _FAIR = 90, 75  # % of linear


def answer(found: CudaOnDriver | KvCache | TokenCost | Scaled, lang: str) -> Reply:
    """The answer, figure first."""
    if isinstance(found, CudaOnDriver):
        return _cuda(found, lang)
    if isinstance(found, KvCache):
        return _kv(found, lang)
    return _cost(found, lang) if isinstance(found, TokenCost) else _scaled(found, lang)


def _reply(head: Text, more: tuple[Text, ...], topics: list[str], lang: str, **data: Any) -> Reply:
    return Reply(lang, head.in_(lang), (Items(tuple(t.in_(lang) for t in more)),), data=data_of("sum", topics, **data))


def made_for(driver: str) -> tuple[int, int] | None:
    """The newest CUDA of a driver's branch; None of a branch that is not known."""
    branch = int(driver.partition(".")[0])
    below = [b for b in _NEWEST if b <= branch]
    known = below and branch - max(below) < 5  # 537 is of 535; what is newer than the table is not guessed at
    return _NEWEST[max(below)] if known else None


def _cuda(f: CudaOnDriver, lang: str) -> Reply:
    newest, (major, minor) = made_for(f.driver), f.cuda
    called = f"{major}.{minor}"
    branch, first = int(f.driver.partition(".")[0]), _FIRST.get(major)
    if branch > max(_NEWEST) and newest is None and f.cuda <= max(_NEWEST.values()):
        runs = "yes"
        head = Text(
            f"It runs: driver {f.driver} is newer than those that are listed here, and a newer driver runs the programs of older CUDA releases.",
            f"能运行：驱动 {f.driver} 比此处列出的都新，新驱动可运行较旧 CUDA 版本的程序。",
        )
    elif newest is not None and f.cuda <= newest:
        runs = "yes"
        head = Text(
            f"It runs: driver {f.driver} takes CUDA up to {newest[0]}.{newest[1]}, and programs of older releases run on it, so CUDA {called} needs no other driver.",
            f"能运行：驱动 {f.driver} 最高支持 CUDA {newest[0]}.{newest[1]}，更早版本的程序也能运行，CUDA {called} 无需更换驱动。",
        )
    elif first is not None and branch >= first:
        runs = "limited"
        own = next((b for b, c in sorted(_NEWEST.items()) if c >= f.cuda), None)
        since = Text(f" ({own} or newer)", f"（{own} 或更新）") if own else Text("", "")
        made = f"{newest[0]}.{newest[1]}" if newest else f"{major}.x"
        head = Text(
            f"It runs, within limits: CUDA {major}.x runs from driver {first} on, so {called} runs on {f.driver} (made for {made}). Kernels compiled from PTX and features new in {called} need its own driver{since.en}.",
            f"能运行，但有限制：CUDA {major}.x 需驱动 {first} 或更新，{called} 可在 {f.driver}（对应 {made}）上运行。由 PTX 编译的 kernel 与 {called} 的新特性需其自身的驱动{since.in_('zh')}。",
        )
    elif newest is not None:
        runs = "no"
        needs = first or next((b for b, c in sorted(_NEWEST.items()) if c >= f.cuda), 0)
        head = Text(
            f"It does not run: driver {f.driver} takes CUDA up to {newest[0]}.{newest[1]}, and CUDA {major}.x needs {needs} or newer. Programs end with error 35: update the driver, or install a build for CUDA {newest[0]}.",
            f"不能运行：驱动 {f.driver} 最高支持 CUDA {newest[0]}.{newest[1]}，CUDA {major}.x 需 {needs} 或更新，否则报错 35。升级驱动，或改装 CUDA {newest[0]} 的版本。",
        )
    else:
        runs = "unknown"
        head = Text(
            f"Not known: driver {f.driver} is of no branch that is listed here. nvidia-smi shows in its head the newest CUDA that it takes: CUDA {called} must not be newer than that.",
            f"未知：驱动 {f.driver} 不属于此处已列出的分支。nvidia-smi 表头显示其支持的最高 CUDA：CUDA {called} 不得高于它。",
        )
    more = [
        Text(
            "It needs no toolkit on the node: PyTorch wheels and containers bring their own CUDA.",
            "节点上不需要安装 toolkit：PyTorch 的 wheel 与容器自带 CUDA。",
        )
    ]
    if runs == "no":
        more.append(
            Text(
                "On data-centre GPUs the package cuda-compat goes further back, on chosen driver branches.",
                "数据中心 GPU 可在部分驱动分支上用 cuda-compat 包前向兼容。",
            )
        )
    if f.container:
        more.append(
            Text(
                'An image may refuse by itself ("unsatisfied condition: cuda>=..."): that is its NVIDIA_REQUIRE_CUDA; NVIDIA_DISABLE_REQUIRE=1 passes over it.',
                '镜像可能自行拒绝启动（"unsatisfied condition: cuda>=..."）：来自其 NVIDIA_REQUIRE_CUDA，可用 NVIDIA_DISABLE_REQUIRE=1 跳过。',
            )
        )
    topics = ["range cuda-driver", "advice forward-compatibility"]
    return _reply(head, tuple(more), topics, lang, cuda=called, driver=f.driver, runs=runs)


def _size(nbytes: float) -> str:
    return f"{nbytes / _GIB:.3g} GiB" if nbytes >= _GIB / 2 else f"{nbytes / 2**20:.3g} MiB"


def _kv(f: KvCache, lang: str) -> Reply:
    each = f.per_token * f.bits / 16
    whole = each * f.tokens * f.requests
    several = f.requests > 1
    shown = f"{f.tokens / 1024:g}k" if f.tokens >= 1024 and f.tokens % 1024 == 0 else f"{f.tokens:,.0f}"
    head = Text(
        f"{_size(whole)} for {f'{f.requests:,} requests' if several else 'one request'} of {shown} tokens: {f.model} takes {each / 1024:g} KiB a token in {f.bits} bits.",
        f"{f'{f.requests:,} ' if several else '一'}个 {shown} token 的请求需 {_size(whole)}：{f.model} 每 token {each / 1024:g} KiB（{f.bits} 位）。",
    )
    more = (
        Text(
            f"Bytes per token = 2 x layers x KV heads x head size x bytes: {f.shape}. All GPUs of a tensor-parallel group share it.",
            f"每 token 字节数 = 2 × 层数 × KV 头数 × 头维度 × 字节数：{f.shape}。张量并行组内各卡分摊。",
        ),
        Text(
            "Requests at the same time add up; an FP8 cache (--kv-cache-dtype fp8) halves it.",
            "并发请求相加；FP8 缓存（--kv-cache-dtype fp8）减半。",
        ),
    )
    return _reply(head, more, ["term kv-cache", "advice kv-cache-size"], lang, bytes=round(whole))


def _cost(f: TokenCost, lang: str) -> Reply:
    cost = f.gpus * f.price / (f.tokens * 3600) * 1e6
    how = f"{f.gpus} x {f.money}{f.price:g} / ({f.tokens:,.0f} x 3600 / 1e6)"
    head = Text(
        f"{f.money}{cost:.3g} per million tokens: {how}, at {f.tokens:,.0f} tokens/s all the time.",
        f"每百万 token {f.money}{cost:.3g}：{how}，按持续 {f.tokens:,.0f} token/s 计。",
    )
    more = (
        Text(
            f"Idle hours count: at half the load it is {f.money}{2 * cost:.3g}. More requests at once raise the tokens/s, and lower the price until latency forbids it.",
            f"空闲也要付费：负载减半时为 {f.money}{2 * cost:.3g}。提高并发可提升 token/s、降低单价，直到延迟不可接受。",
        ),
    )
    return _reply(head, more, ["advice serving-throughput"], lang, cost=round(cost, 4))


def _scaled(f: Scaled, lang: str) -> Reply:
    share = 100 * f.times * f.before / f.after
    ideal = f.after / f.before
    if share > 100:
        word = Text(
            "more than linear: the smaller run was held up by something", "超过线性：较小规模那次受到了别的限制"
        )
    elif share >= _GOOD:
        word = Text("good", "良好")
    elif share >= _FAIR:
        word = Text("usual without tuning, and worth a look", "未调优时常见，值得一查")
    else:
        word = Text("poor: most of the added time is spent waiting", "较差：新增时间多在等待")
    look = Text(
        " Look first at the time in communication that no computing hides, then at ranks that come late and at the data loader.",
        "先看未被计算掩盖的通信时间，再看迟到的 rank 与数据加载。",
    )
    look = look if share < _GOOD else Text("", "")
    head = Text(
        f"{share:.0f} % of linear ({f.times:g}x of {ideal:g}x), {word.en}.{look.en}",
        f"线性的 {share:.0f} %（{f.times:g}x / {ideal:g}x），{word.in_('zh')}。{look.in_('zh')}",
    )
    more = (
        Text(
            "Record one step of all ranks: gpudiag trace summary rank*.json.gz names exposed communication, stragglers and idle time.",
            "录制所有 rank 的一步：gpudiag trace summary rank*.json.gz 给出暴露的通信、掉队 rank 与空闲。",
        ),
        Text(
            "Measure the network alone: all_reduce_perf on both sizes. NVLink carries it within a node, over nodes InfiniBand or RoCE must (NCCL_DEBUG=INFO: NET/IB, GDRDMA).",
            "单独测网络：两种规模各跑 all_reduce_perf。节点内走 NVLink，跨节点应走 InfiniBand 或 RoCE（NCCL_DEBUG=INFO：NET/IB、GDRDMA）。",
        ),
        Text(
            "With the global batch kept, each GPU has less to do: keep the batch per GPU, accumulate gradients, or overlap (larger buckets).",
            "全局 batch 不变时每卡工作变少：保持每卡 batch、梯度累积，或加强重叠（更大的 bucket）。",
        ),
    )
    return _reply(head, more, ["advice scaling-efficiency"], lang, percent=round(share, 1))
