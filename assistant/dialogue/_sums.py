"""Sums: the interval of checkpoints (Young), the time between interruptions, MFU, and what a better utilisation saves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from assistant.dialogue import _part_heat, _reckoned
from assistant.dialogue._pages import data_of
from assistant.intent.part_heat import PartHeat
from assistant.intent.reckoned import Load
from assistant.intent.sums import GPU_HOURS, Interrupted, Memory, Mfu, Saves, Saving, TrainingTime, asked
from assistant.render.sheet import Items
from assistant.reply import Reply
from knowledge.language import Text
from knowledge.ranges import ranges

if TYPE_CHECKING:
    from assistant.intent.query import Query

_MONTH = 730.0  # hours
_DAY = 48.0  # hours from which on days are said
_YEAR = 8760.0  # hours
_PUBLISHED = Text(
    f"one interruption per {GPU_HOURS:,.0f} GPU-hours, as published for Llama 3 on 16,384 H100 (arXiv 2407.21783)",
    f"每 {GPU_HOURS:,.0f} GPU 小时一次中断，取自 Llama 3 在 16,384 块 H100 上的公开数据（arXiv 2407.21783）",
)


def answer(query: Query, lang: str) -> Reply | None:
    """The sum that a sentence asks for; None where it asks for none."""
    found = asked(query.text)
    if isinstance(found, Saves):
        return _saves(found, lang)
    if isinstance(found, Interrupted):
        return _interrupted(found, lang)
    if isinstance(found, Mfu):
        return _mfu(found, lang)
    if isinstance(found, TrainingTime):
        return _training_time(found, lang)
    if isinstance(found, Saving):
        return _saving(found, lang)
    if isinstance(found, Memory):
        return _memory(found, lang)
    if isinstance(found, PartHeat):
        return _part_heat.answer(found, lang)
    return _reckoned.answer(found, lang) if found is not None else None


def _reply(head: Text, more: tuple[Text, ...], topics: tuple[str, ...], lang: str, **data: Any) -> Reply:
    return Reply(
        lang, head.in_(lang), (Items(tuple(t.in_(lang) for t in more)),), data=data_of("sum", list(topics), **data)
    )


def _long(hours: float, lang: str) -> str:
    """A time in words: 45 s, 17 minutes, 3.1 hours, 4.1 days."""
    if 60 * hours < 2:
        return f"{3600 * hours:.0f} {'秒' if lang == 'zh' else 's'}"
    if hours < 1:
        return f"{60 * hours:.0f} {'分钟' if lang == 'zh' else 'minutes'}"
    if hours >= 2 * _YEAR:
        return f"{hours / _YEAR:.2g} {'年' if lang == 'zh' else 'years'}"
    if hours >= _DAY:
        return f"{hours / 24:.3g} {'天' if lang == 'zh' else 'days'}"
    return f"{hours:.2g} {'小时' if lang == 'zh' else 'hours'}"


def interval(failing: float, write: float) -> float:
    """The time between two checkpoints that loses least, in hours: sqrt(2 * write * failing) (Young 1974, first order).

    `failing`: mean time between interruptions of the whole job; `write`: what one save holds the job up; both in hours.
    """
    return math.sqrt(2 * write * failing)


def _saves(f: Saves, lang: str) -> Reply:
    whole = f"{f.gpus:,} GPUs" if f.gpus else "the job"
    whole_zh = f"{f.gpus:,} 块 GPU " if f.gpus else "该任务"
    after = Text(
        f"{whole} {'are' if f.gpus else 'is'} interrupted every {_long(f.failing, 'en')} on average",
        f"{whole_zh}平均每 {_long(f.failing, 'zh')}中断一次",
    )
    if f.write:
        every = interval(f.failing, f.write)
        lost = 100 * (f.write / every + every / (2 * f.failing))
        head = Text(
            f"Save every {_long(every, 'en')}: {after.en}, and a save takes {_long(f.write, 'en')}. Saving and lost work then cost {lost:.2g} % of the time.",
            f"每 {_long(every, 'zh')}存一次：{after.zh}，每次存需 {_long(f.write, 'zh')}。存盘与丢失的工作合计占 {lost:.2g} % 的时间。",
        )
        shown: dict[str, Any] = {"interval_h": round(every, 4), "lost_percent": round(lost, 3)}
    else:
        each = {minutes: interval(f.failing, minutes / 60) for minutes in (0.5, 2, 5)}
        head = Text(
            f"Save every {_long(each[2], 'en')} if a save holds the job up for 2 minutes ({_long(each[0.5], 'en')} at 30 s, {_long(each[5], 'en')} at 5 minutes): {after.en}. Say how long a save takes for the exact figure.",
            f"若每次存盘耽误 2 分钟，则每 {_long(each[2], 'zh')}存一次（30 秒时 {_long(each[0.5], 'zh')}，5 分钟时 {_long(each[5], 'zh')}）：{after.zh}。告知一次存盘的耗时即可精确计算。",
        )
        shown = {"interval_h": {f"{60 * m:.0f}s": round(h, 4) for m, h in each.items()}}
    more = [
        Text(
            "sqrt(2 x save time x time between interruptions) (Young 1974); the loss is flat around it: twice or half of it costs a quarter more.",
            "公式：sqrt(2 × 存盘耗时 × 平均中断间隔)（Young 1974）；附近很平缓，加倍或减半只多损失四分之一。",
        ),
        Text(
            "Saving without waiting (async_save, or to local disk first) counts only the time in which the steps stand still.",
            "异步存盘（async_save，或先写本地盘）只计训练停顿的时间。",
        ),
    ]
    if not f.told:
        more.insert(0, Text(f"Taken: {_PUBLISHED.en}.", f"假设：{_PUBLISHED.zh}。"))
    return _reply(
        head, tuple(more), ("advice checkpoint-saving",), lang, mtbf_h=round(f.failing, 3), save_h=f.write, **shown
    )


def _interrupted(f: Interrupted, lang: str) -> Reply:
    if f.parts:
        return _of_parts(f, lang)
    hours = GPU_HOURS / f.gpus
    head = Text(
        f"About every {_long(hours, 'en')} for a job on {f.gpus:,} GPUs: {_PUBLISHED.en}. Small or well-kept fleets see less, new ones more.",
        f"{f.gpus:,} 块 GPU 的任务约每 {_long(hours, 'zh')}中断一次：{_PUBLISHED.zh}。小规模或维护好的集群更少，新集群更多。",
    )
    more = Text(
        "Meta's research clusters: 2.3 to 6.5 failures per 1,000 node-days (arXiv 2410.21680).",
        "Meta 研究集群：每 1,000 节点日 2.3–6.5 次故障（arXiv 2410.21680）。",
    )
    return _reply(head, (more,), ("term mtti",), lang, gpus=f.gpus, mtbf_h=round(hours, 3))


def _of_parts(f: Interrupted, lang: str) -> Reply:
    hours = f.each / f.parts
    part, part_zh = ("nodes", "个节点") if f.parts == f.nodes else ("GPUs", "块 GPU")
    head = Text(
        f"Every {_long(hours, 'en')} on average over {f.parts:,} {part}: {_long(f.each, 'en')} for one, divided by {f.parts:,}. A job on all of them ends that often.",
        f"{f.parts:,} {part_zh}平均每 {_long(hours, 'zh')}坏一次：单个 {_long(f.each, 'zh')} ÷ {f.parts:,}。用上全部的任务就按这个频率中断。",
    )
    more = (
        Text(
            "MTBF of N parts = MTBF of one / N, for failures that are independent and come at a steady rate; a rack or switch that fails takes many at once.",
            "N 个部件的 MTBF = 单个 MTBF ÷ N，前提是故障相互独立且速率稳定；机柜或交换机故障会同时带走多个。",
        ),
        Text(
            f"For comparison: {_PUBLISHED.en}, which would be every {_long(GPU_HOURS / f.gpus, 'en')} here.",
            f"对照：{_PUBLISHED.zh}，按此这里约每 {_long(GPU_HOURS / f.gpus, 'zh')}一次。",
        ),
    )
    return _reply(head, more, ("term mtti",), lang, gpus=f.gpus, parts=f.parts, mtbf_h=round(hours, 3))


def _mfu(f: Mfu, lang: str) -> Reply:
    dtype = "fp8" if f.fp8 and f.model.peak("fp8") else "bf16"
    peak = f.model.peak(dtype) or 0.0
    share = 100 * 6 * f.parameters * f.tokens / (f.gpus * peak * 1e12)
    band = ranges()["mfu"].band(share)
    how = f"6 x {f.parameters / 1e9:g}e9 x {f.tokens:,.0f} / ({f.gpus:,} x {peak:g}e12)"
    if share > 100:
        head = Text(
            f"That is {share:.0f} % MFU and cannot be: {how}. A figure is off: the tokens may be of several steps, or the GPUs more.",
            f"算得 MFU {share:.0f} %，不可能：{how}。某个数值有误：token 数可能跨多步，或 GPU 数不止这些。",
        )
    else:
        text = band.text if band is not None else Text("", "")
        head = Text(
            f"MFU {share:.1f} %: {how}, {f.model.title} with {peak:g} dense {dtype.upper()} TFLOP/s. {text.en}",
            f"MFU {share:.1f} %：{how}，{f.model.title} 的稠密 {dtype.upper()} 峰值为 {peak:g} TFLOP/s。{text.in_('zh')}",
        )
    more = Text(
        "6 FLOP per parameter and token (2 forward, 4 backward); attention comes on top: 12 x layers x width x length per token.",
        "每参数每 token 6 FLOP（前向 2、反向 4）；attention 另计：每 token 12 × 层数 × 宽度 × 序列长度。",
    )
    return _reply(head, (more,), ("range mfu",), lang, mfu_percent=round(share, 2), peak_tflops=peak)


_USUAL_MFU = (0.4, 0.3, 0.5)  # the usual one first: Llama 3 reports 38 to 43 % (arXiv 2407.21783)


def _training_time(f: TrainingTime, lang: str) -> Reply:
    peak = f.model.peak("bf16") or 0.0
    flop = 6 * f.parameters * f.tokens
    usual, slow, fast = (flop / (f.gpus * peak * 1e12 * share) / 3600 for share in _USUAL_MFU)
    tokens = f"{f.tokens / 1e12:g}T" if f.tokens >= 1e12 else f"{f.tokens / 1e9:g}B"
    head = Text(
        f"About {_long(usual, 'en')} at 40 % MFU ({_long(fast, 'en')} at 50 %, {_long(slow, 'en')} at 30 %): {f.parameters / 1e9:g}B on {tokens} tokens with {f.gpus:,} {f.model.title}, {usual * f.gpus:,.0f} GPU-hours.",
        f"MFU 40 % 时约 {_long(usual, 'zh')}（50 % 时 {_long(fast, 'zh')}，30 % 时 {_long(slow, 'zh')}）：{f.parameters / 1e9:g}B、{tokens} token、{f.gpus:,} 块 {f.model.title}，共 {usual * f.gpus:,.0f} GPU 小时。",
    )
    more = Text(
        f"6 x parameters x tokens / (GPUs x {peak:g} dense BF16 TFLOP/s x MFU). Add 10 to 20 % for restarts, evaluations and checkpoints; of an MoE count the active parameters.",
        f"6 × 参数量 × token 数 ÷（卡数 × 稠密 BF16 {peak:g} TFLOP/s × MFU）。另加 10 至 20 % 用于重启、评估与存盘；MoE 只计激活参数。",
    )
    return _reply(
        head, (more,), ("advice training-time",), lang, hours=round(usual, 1), gpu_hours=round(usual * f.gpus)
    )


def _saving(f: Saving, lang: str) -> Reply:
    less, more_work = 100 * (1 - f.before / f.after), 100 * (f.after / f.before - 1)
    en, zh = [f"{less:.0f} % of the GPUs for the same work"], [f"同样的工作少用 {less:.0f} % 的 GPU"]
    if f.gpus:
        kept = round(f.gpus * f.before / f.after)
        en.append(f"{f.gpus - kept:,} of {f.gpus:,}")
        zh.append(f"{f.gpus:,} 块中省 {f.gpus - kept:,} 块")
    if f.gpus and f.price:
        month = f.gpus * less / 100 * f.price * _MONTH
        en.append(f"{f.money}{month:,.0f} a month at {f.money}{f.price:g} a GPU-hour")
        zh.append(f"按每 GPU 小时 {f.money}{f.price:g} 计每月省 {f.money}{month:,.0f}")
    head = Text(
        f"It saves {', '.join(en)}; or it does {more_work:.0f} % more work on the same GPUs.",
        f"可省：{'，'.join(zh)}；或用同样的 GPU 多做 {more_work:.0f} % 的工作。",
    )
    more = Text(
        f"{f.before:g} % to {f.after:g} %: 1 - {f.before:g}/{f.after:g}. It holds where busy means working: utilisation also counts kernels that only wait.",
        f"{f.before:g} % 到 {f.after:g} %：1 − {f.before:g}/{f.after:g}。前提是忙等于干活：利用率也会把只在等待的 kernel 算作忙。",
    )
    return _reply(head, (more,), ("term busy-and-working",), lang, saved_percent=round(less, 2))


# Bytes a parameter. Training with Adam in mixed precision: 2 weight, 2 gradient, 12 FP32 copy and moments (ZeRO, arXiv 1910.02054).
_TRAIN = 16.0
_BESIDE = 1.2  # of the weights: KV cache, activations and buffers at small batches, as vLLM's default of 90 % leaves
_BUFFERS = 1.1  # of the weights, where the KV cache is reckoned by itself
_USABLE = 0.9  # of a GPU's memory: the context, fragments
_GPU = 80.0  # GiB, where no GPU is named


def _in_fewer_bits(f: Memory, serve: Mapping[int, float], gpus: Callable[[float], int]) -> Text:
    """In how many bits the weights would fit to be served, where nobody said in how many they are; nothing else."""
    fitting = next((b for b in (8, 4) if gpus(serve[b]) <= f.gpus), 0)
    if f.bits or f.use in ("train", "lora") or not fitting:
        return Text("", "")
    return Text(
        f" It fits with {fitting}-bit weights ({serve[fitting]:,.0f} GB).",
        f"{fitting} 位权重（{serve[fitting]:,.0f} GB）则放得下。",
    )


def _cached(load: Load) -> float:
    """The KV cache of all requests at full length, in GB: 2 x layers x KV heads x head size x 2 bytes a token (arXiv 2309.06180)."""
    return load.per_token * load.tokens * load.requests / 1e9


def _memory(f: Memory, lang: str) -> Reply:
    billions = f.parameters / 1e9
    each = f.gib or float((f.model.memory_gib if f.model else None) or _GPU)
    of = f"{f.model.family} " if f.model and not f.gib else ""

    def needs(nbytes: float, beside: float) -> float:
        return billions * nbytes * beside

    def gpus(size: float) -> int:
        return max(1, math.ceil(size / (each * _USABLE)))

    serve = {bits: needs(bits / 8, _BESIDE) for bits in (16, 8, 4)}
    train, lora = needs(_TRAIN, 1.0), needs((f.bits or 16) / 8, _BESIDE)
    bits = f.bits or 16
    if f.use == "train":
        size, en, zh = (
            train,
            f"to train all of it with Adam ({_TRAIN:g} bytes a parameter), before activations",
            f"全参数训练（Adam，每参数 {_TRAIN:g} 字节，不含激活）",
        )
    elif f.use == "lora":
        size, en, zh = (
            lora,
            f"for LoRA on {bits}-bit weights, before activations",
            f"在 {bits} 位权重上做 LoRA（不含激活）",
        )
    elif f.load is not None:
        serve = {b: needs(b / 8, _BUFFERS) + _cached(f.load) for b in (16, 8, 4)}
        of_requests = f"{f.load.requests:,} requests" if f.load.requests > 1 else "one request"
        each_takes = f"{f.load.tokens / 1024:g}k" if f.load.tokens % 1024 == 0 else f"{f.load.tokens:,.0f}"
        size, en, zh = (
            serve[bits],
            f"to serve it with {bits}-bit weights ({needs(bits / 8, _BUFFERS):,.0f} GB) and a KV cache for {of_requests} of {each_takes} tokens ({_cached(f.load):,.0f} GB in 16 bits, half in FP8)",
            f"以 {bits} 位权重推理（{needs(bits / 8, _BUFFERS):,.0f} GB）并容纳 {f.load.requests:,} 个 {each_takes} token 请求的 KV cache（16 位 {_cached(f.load):,.0f} GB，FP8 减半）",
        )
    else:
        size, en, zh = (
            serve[bits],
            f"to serve it with {bits}-bit weights (20 % for KV cache and buffers)",
            f"以 {bits} 位权重推理（含 20 % KV cache 与缓冲）",
        )
    many = gpus(size)
    group = next((n for n in (1, 2, 4, 8) if n >= many), math.ceil(many / 8) * 8)  # heads are divided evenly
    parallel = Text("", "")
    if group != many and f.use not in ("train", "lora"):
        parallel = Text(f" ({group} with tensor parallelism)", f"（张量并行取 {group} 块）")
    verdict = Text("", "")
    fits = many <= f.gpus
    if f.gpus:
        verdict = Text("Yes: " if fits else "No: ", "够：" if fits else "不够：")
    smaller = _in_fewer_bits(f, serve, gpus) if f.gpus and not fits else Text("", "")
    plural = "s" if many > 1 else ""
    head = Text(
        f"{verdict.en}{billions:g}B needs about {size:,.0f} GB {en}: at least {many} {of}GPU{plural} of {each:g} GB{parallel.en}.{smaller.en}",
        f"{verdict.zh}{billions:g}B {zh}，约需 {size:,.0f} GB：至少 {many} 块 {each:g} GB 的 {of or 'GPU '}".rstrip()
        + f"{parallel.zh}。{smaller.zh}",
    )
    told = f.load is not None
    more = (
        Text(
            f"To serve: 16-bit {serve[16]:,.0f} GB, 8-bit {serve[8]:,.0f} GB, 4-bit {serve[4]:,.0f} GB{'' if told else '; long contexts and many users take more for the KV cache'}. Tensor parallelism wants 1, 2, 4 or 8 GPUs.",
            f"推理：16 位 {serve[16]:,.0f} GB，8 位 {serve[8]:,.0f} GB，4 位 {serve[4]:,.0f} GB{'' if told else '；长上下文与高并发的 KV cache 更多'}。张量并行宜用 1、2、4、8 卡。",
        ),
        Text(
            f"To train: all parameters {train:,.0f} GB spread over the GPUs by FSDP or ZeRO-3, LoRA from {needs(2, _BESIDE):,.0f} GB; activations come on top (activation checkpointing cuts them).",
            f"训练：全参数 {train:,.0f} GB，由 FSDP 或 ZeRO-3 分摊到各卡；LoRA 约 {needs(2, _BESIDE):,.0f} GB 起；激活另计（activation checkpointing 可减少）。",
        ),
    )
    return _reply(head, more, ("term kv-cache",), lang, need_gb=round(size, 1), gpus=many)
