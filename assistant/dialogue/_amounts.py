"""Answers from figures that stand together: memory that is free and still refused, and the part of a step that loads data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue._pages import data_of, text_in
from assistant.intent.amounts import Loading, Oom, cluster_use, loading, oom
from assistant.intent.stated import asks_usual
from assistant.render.sheet import Fields, Items, Paragraph, Part
from assistant.reply import Reply
from knowledge.language import Text
from knowledge.ranges import ranges

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.intent.query import Query

_MUCH = 1024.0  # MiB that lie unused in the allocator: less is its usual rounding (PyTorch hands out blocks of 2 and 20 MiB)
_ENOUGH = 2048.0  # MiB free at which "too large a request" is not what comes first to mind
_FRAGMENTS = Text(
    "Fragmentation: the message says how much is reserved by PyTorch but unallocated. Much of it: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; torch.cuda.memory_summary() shows the blocks.",
    "碎片化：报错信息中有 reserved by PyTorch but unallocated 的数值，若较大：设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True；torch.cuda.memory_summary() 可查看各块。",
)
_CAUSES = (
    Text("Another GPU than the one that was looked at: the message names it, by its number within CUDA_VISIBLE_DEVICES. Several ranks on GPU 0 (no torch.cuda.set_device(LOCAL_RANK)) show as several processes on it: nvidia-smi --query-compute-apps=gpu_uuid,pid,used_gpu_memory --format=csv.",
         "并非所查看的那张 GPU：报错信息给出其编号（CUDA_VISIBLE_DEVICES 内的编号）。多个 rank 挤在 GPU 0（未调用 torch.cuda.set_device(LOCAL_RANK)）时，其上会有多个进程：nvidia-smi --query-compute-apps=gpu_uuid,pid,used_gpu_memory --format=csv。"),
    Text("Another moment: what the failed process held is free after it ended, and another process may have held it then. Watch it: nvidia-smi --query-gpu=index,memory.used,memory.free --format=csv -lms 200.",
         "时间不同：失败进程占用的显存在其退出后已释放，或当时被其他进程占用。持续观察：nvidia-smi --query-gpu=index,memory.used,memory.free --format=csv -lms 200。"),
    Text("A part of the GPU: a MIG instance has its own memory (nvidia-smi -L), and a limit for each process refuses sooner (torch.cuda.set_per_process_memory_fraction, gpu_memory_utilization, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT).",
         "只能用 GPU 的一部分：MIG 实例有独立显存（nvidia-smi -L）；进程限额会更早拒绝（torch.cuda.set_per_process_memory_fraction、gpu_memory_utilization、CUDA_MPS_PINNED_DEVICE_MEM_LIMIT）。"),
    Text("Pinned memory of the host (cudaHostAlloc, pin_memory) says out of memory too: free -g and ulimit -l.",
         "主机锁页内存（cudaHostAlloc、pin_memory）不足也会报 out of memory：查看 free -g 与 ulimit -l。"),
)  # fmt: skip


def answer(query: Query, turn: Turn) -> Reply | None:
    """What the figures of a sentence decide; None where none stand in it."""
    if (refused := oom(query.text)) is not None:
        return _refused(refused, turn.lang)
    if (part := loading(query.text)) is not None:
        return _loading(part, query, turn.lang)
    if (use := cluster_use(query.text)) is not None:
        from assistant.dialogue._measure import judge

        return judge(ranges()["cluster-utilization"], use, query.text, turn.lang)
    return None


def _refused(told: Oom, lang: str) -> Reply:
    causes = [c.in_(lang) for c in _CAUSES]
    fragments = _FRAGMENTS.in_(lang)
    free, asked, unused = told.free, told.requested, told.unallocated
    fits = free is not None and asked is not None and asked <= free
    if free is not None and asked is not None and asked > free:
        head = text_in(lang, f"The request is larger than what is free: {_size(asked)} asked, {_size(free)} free, {_size(asked - free)} short. A smaller batch, or free what others hold.",
                       f"申请大于空闲显存：申请 {_size(asked)}，空闲 {_size(free)}，还差 {_size(asked - free)}。减小批次，或释放其他占用。")  # fmt: skip
        items, kind = [fragments], "too-large"
    elif unused is not None and unused >= max(_MUCH, asked or 0.0):
        head = text_in(lang, f"Fragmentation: {_size(unused)} are reserved by the program and not in use, in pieces that do not fit. Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True and keep shapes steady.",
                       f"碎片化：程序已保留而未使用的显存有 {_size(unused)}，但都是不合适的小块。设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True，并保持形状稳定。")  # fmt: skip
        items, kind = causes[:2] if fits else [], "fragmented"
    elif fits and free is not None and asked is not None:
        head = text_in(lang, f"Enough is free ({_size(free)} for {_size(asked)}), so size is not the cause: fragmentation, or another device than the one that was looked at.",
                       f"空闲足够（申请 {_size(asked)}，空闲 {_size(free)}），因此不是容量问题：碎片化，或实际是另一张 GPU。")  # fmt: skip
        items, kind = [fragments, *causes], "fits"
    elif free is not None and free >= _ENOUGH:
        head = text_in(lang, f"With {_size(free)} free it is fragmentation, or another GPU or moment than the one that was looked at, unless the request was larger: \"Tried to allocate\" in the message decides.",
                       f"空闲 {_size(free)} 时仍不足，多为碎片化，或实际是另一张 GPU、另一时刻，除非申请本身更大：由报错中的“Tried to allocate”判断。")  # fmt: skip
        items, kind = [fragments, *causes], "free"
    else:
        head = text_in(lang, "Little is free: the request did not fit. \"Tried to allocate\" in the message says by how much.", "空闲很少：申请放不下。报错中的“Tried to allocate”说明差多少。")  # fmt: skip
        items, kind = [fragments], "little"
    parts: tuple[Part, ...] = (
        *((Items(tuple(items)),) if items else ()),
        Fields(((text_in(lang, "command", "命令"), "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
                (text_in(lang, "runbook", "处置手册"), "gpudiag runbook show cuda-oom"))),
        Paragraph(text_in(lang, "Paste the whole message, or gpudiag check --log FILE: its figures decide which it is.", "粘贴完整报错，或运行 gpudiag check --log FILE：其中的数值可判断是哪一种。")),
    )  # fmt: skip
    data = {"requested_mib": asked, "free_mib": free, "unallocated_mib": unused, "kind": kind}
    return Reply(lang, head, parts, settled=False, data=data_of("amounts", ["symptom out-of-memory"], **data))


def _size(mib: float) -> str:
    return f"{mib / 1024:.4g} GiB" if mib >= 1024 else f"{mib:.4g} MiB"


def _loading(told: Loading, query: Query, lang: str) -> Reply:
    """The share of a step that loads data, by its band, what is to be won, and what to change."""
    from assistant.dialogue._measure import lead_of

    measure = ranges()["data-loader-wait"]
    band = measure.band(told.share) or measure.bands[-1]
    share, gain = f"{told.share:.0f} %", told.step / (told.step - told.wait)
    lead = lead_of(band.rating, lang) if asks_usual(query.text) else ""
    head = text_in(lang, f"{lead}{share} of the step is spent on data ({told.wait:g} of {told.step:g} ms). {band.text.en}",
                   f"{lead}一步中有 {share} 用于数据（{told.wait:g}/{told.step:g} ms）。{band.text.in_('zh')}")  # fmt: skip
    bound = band.rating == "poor"
    won = text_in(lang, f"Loaded behind the computing, a step would take {told.step - told.wait:g} ms at best: {gain:.3g} times as fast.",
                  f"若加载完全被计算掩盖，一步最短为 {told.step - told.wait:g} ms：最多快到 {gain:.3g} 倍。")  # fmt: skip
    changes = (
        Text("More workers, and keep them: DataLoader(num_workers=4 to 8 a GPU, persistent_workers=True, prefetch_factor=4, pin_memory=True); copies with non_blocking=True.",
             "增加并保留 worker：DataLoader(num_workers=每卡 4 至 8, persistent_workers=True, prefetch_factor=4, pin_memory=True)；拷贝用 non_blocking=True。"),
        Text("Where the CPUs are full: decode and augment ahead of time or on the GPU (DALI). Where storage is slow: large shards on a local drive instead of small files.",
             "CPU 已满：提前或在 GPU 上解码与增强（DALI）。存储慢：用本地盘上的大分片代替小文件。"),
        Text("Which of both it is: gpudiag profile --pid PID names the function that the workers are in.", "区分两者：gpudiag profile --pid PID 指出 worker 停在哪个函数。"),
    )  # fmt: skip
    parts = (Paragraph(won), Items(tuple(c.in_(lang) for c in changes))) if bound else (Paragraph(won),)
    found = data_of(
        "amounts", ["range data-loader-wait"], share=round(told.share, 1), rating=band.rating, gain=round(gain, 2)
    )
    return Reply(lang, head, parts, settled=False, data=found)
