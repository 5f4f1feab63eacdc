"""Hardware or software: what kind of thing failed, of each thing that was found, as the hypotheses class it; and whether one
thing that was found caused another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from assistant.diagnosis import bad_roots, only_said
from assistant.dialogue import _order, _suspicion
from assistant.dialogue._scope import scoped
from assistant.dialogue._words import Words, finding_data, nothing_yet, suggest, words
from assistant.intent.ranked import asks_if_hardware
from assistant.intent.suspicion import suspect_of
from assistant.render.labels import aside, led, listed
from assistant.render.sheet import Fields, Items
from assistant.reply import Reply
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import Scope
from knowledge.priors import CauseClass
from rules.model import Bucket

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding

# is this our hardware or the user's kernel? | 是卡的问题还是代码的问题 | 卡坏了还是程序有 bug
_HARD = r"(?:hardware|hw|gpus?|cards?|boards?|machine|node|silicon|硬件|显卡|卡|机器)"
_SOFT = r"(?:software|sw|drivers?|codes?|programs?|apps?|applications?|jobs?|scripts?|bugs?|users?|kernels?|软件|驱动|代码|程序|应用|用户|作业|任务|脚本)"
_HAN = r"[\u4e00-\u9fff\s]{0,8}?"
_BLAMES = lazy(
    rf"(?<![a-z]){_HARD}(?:'s)?(?:\s+[a-z']+){{0,3}}?,?\s+(?:or|vs\.?|versus)\s+(?:[a-z']+\s+){{0,4}}?{_SOFT}(?![a-z])"
    rf"|(?<![a-z]){_SOFT}(?:'s)?(?:\s+[a-z']+){{0,3}}?,?\s+(?:or|vs\.?|versus)\s+(?:[a-z']+\s+){{0,4}}?{_HARD}(?![a-z])"
    rf"|{_HARD}{_HAN}还是{_HAN}{_SOFT}|{_SOFT}{_HAN}还是{_HAN}{_HARD}",
    re.IGNORECASE,
)
MOST = 4  # findings, one line each
_KINDS = {
    CauseClass.GPU: Text("GPU hardware", "GPU 硬件"), CauseClass.MEMORY: Text("GPU memory (hardware)", "GPU 显存（硬件）"),
    CauseClass.NETWORK: Text("network", "网络"), CauseClass.SOFTWARE: Text("software", "软件"), CauseClass.HOST: Text("host", "主机"),
    CauseClass.STORAGE: Text("storage", "存储"), CauseClass.POWER: Text("power supply (hardware)", "供电（硬件）"),
    CauseClass.COOLING: Text("cooling (hardware)", "散热（硬件）"), CauseClass.UNKNOWN: Text("not known", "未知"),
}  # fmt: skip
NOT_KNOWN = _KINDS[CauseClass.UNKNOWN]
# An action says more than the class: what is mended by a new program was no fault of the board.
_BY_ACTION = {
    Bucket.RESTART_APP: Text("software: the program", "软件：应用程序"), Bucket.TUNE_JOB: Text("software: the job", "软件：作业"),
    Bucket.FIX_CODE: Text("software: the program", "软件：应用程序"), Bucket.CHANGE_SETTING: Text("a setting", "设置"),
    Bucket.UPDATE_SWFW: Text("software: driver or firmware", "软件：驱动或固件"),
    Bucket.WORKFLOW_NVLINK_ERR: Text("NVLink (hardware)", "NVLink（硬件）"), Bucket.WORKFLOW_NVLINK5_ERR: Text("NVLink (hardware)", "NVLink（硬件）"),
    Bucket.CHECK_MECHANICALS: Text("hardware", "硬件"), Bucket.INSPECT_NETWORK: Text("network", "网络"),
}  # fmt: skip
# A program that is ended by a fault of the board is started anew: the board's class stands.
_BOARD = (CauseClass.GPU, CauseClass.MEMORY, CauseClass.POWER, CauseClass.COOLING)
# GSP and PMU run firmware that the driver loads: NVIDIA lists hardware and driver as causes of XID 119 and 120 alike.
_FIRMWARE = Text(
    "firmware of the GPU, which the driver loads (the driver or the hardware)",
    "GPU 固件，由驱动加载（驱动或硬件均有可能）",
)
_OF_NODE = Text("the node or its scheduler", "节点或其调度系统")
_ITS_OWN = (
    "cuda_oom",
    "python_error",
    "job_terminated",
)  # what a program, or who ended it, tells of the program itself
_OF_JOBS = (Bucket.TUNE_JOB, Bucket.ASK_PLATFORM, Bucket.INSPECT_NETWORK, Bucket.MONITOR)


def answer(turn: Turn) -> Reply:
    """The kind of the worst root, then of the others; that nothing points anywhere where nothing was found."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    if (ordered := _order.answer(turn)) is not None:
        return ordered
    if (suspected := _suspicion.answer(turn)) is not None:
        return suspected
    if not _BLAMES.search(turn.query.text) and (either := _suspicion.either(turn)) is not None:
        return either
    w = words(turn)
    bad = bad_roots(scoped(turn.diagnosis, turn.query.slots).about)
    if codes := set(turn.query.slots.xid):  # of the code that is named, whatever else is wrong
        bad = [f for f in turn.diagnosis.findings if f.xid in codes] or bad
    if not bad:
        return Reply(turn.lang, turn.diagnosis.verdict.text.in_(turn.lang), settled=turn.diagnosis.settled,
                     suggestions=suggest(turn.lang, "alternatives", "evidence"), data={"answer": "cause", "findings": []})  # fmt: skip
    first, kind = bad[0], kind_of(bad[0])
    said = w.t(f"{kind.en[:1].upper()}{kind.en[1:]}, as far as it shows", f"目前看是{_apart(kind.zh)}")
    if (yes := _side(turn.query.text, first)) is not None:
        said = w.t(
            f"{'Yes' if yes else 'No'}, as far as it shows: {kind.en}",
            f"目前看{'是' if yes else '不是，而是'}{_apart(kind.zh)}",
        )
    if kind == NOT_KNOWN:
        said = w.t("What was read does not tell", "所读内容无法说明")
        if _of_gpu(turn.query.text) and not any(f.subject.up(Scope.GPU) for f in bad):
            said = w.t(
                "No sign of a broken GPU in what was read. Found was", "所读内容中没有 GPU 损坏的迹象。已发现的是"
            )
    items = [f"{w.title(f)}{aside(kind_of(f).in_(w.lang), w.lang)}" for f in bad[1 : MOST + 1]]
    return Reply(
        turn.lang,
        f"{led(said, w.title(first), w.lang)}{w.t('.', '。')}",
        (*((Items(tuple(items)),) if items else ()), *w.section("What would tell it", "如何确认", settling(w, first))),
        focus=first.id,
        settled=turn.diagnosis.settled,
        suggestions=suggest(turn.lang, "why", "alternatives", "next"),
        data={"answer": "cause", "kind": kind.en, "findings": [finding_data(f, turn.lang) for f in bad[:MOST]]},
    )  # fmt: skip


def of_code(turn: Turn) -> Reply | None:
    """Whether an XID that is told or pasted is the hardware's or the program's, where the same sentence asks that, and what to do."""
    d = turn.diagnosis
    text = turn.query.text
    if d is None or not only_said(d.facts):
        return None
    if (of_node := _of_one_node(turn)) is not None:
        return of_node
    if not (_BLAMES.search(text) or asks_if_hardware(text)):
        return None
    if not (roots := bad_roots(d.findings)) or roots[0].xid is None:
        return None
    reply, w, first = answer(turn), words(turn), roots[0]
    do = Fields((
        (w.t("do", "动作"), f"{first.advice.bucket}{w.t(': ', '：')}{first.advice.text.in_(w.lang)}"),
        (w.t("runbook", "处置手册"), f"gpudiag runbook show {first.advice.runbook}" if first.advice.runbook else ""),
    ))  # fmt: skip
    return replace(reply, parts=(*reply.parts, do))


ON_ONE_NODE = "job-fails-on-one-node-only"
_MOVE_IT = Text(
    "To be sure: run the same job with another node in its place, and the same ranks and data. If it fails there too, it is the program or its data after all.",
    "确认方法：用另一节点顶替，以相同的 rank 与数据运行同一作业。若在那里也出错，则仍是程序或数据的问题。",
)


def _of_one_node(turn: Turn) -> Reply | None:
    """Of a code that programs bring about, told of one node of several that run the same: that node; None of any other."""
    assert turn.diagnosis is not None
    found = turn.diagnosis.findings
    here = next((f for f in found if f.rule.id == ON_ONE_NODE), None)
    code = next(
        (f for f in found if f.xid is not None and f.advice.bucket in (Bucket.RESTART_APP, Bucket.FIX_CODE)), None
    )
    if here is None or code is None:
        return None
    w = words(turn)
    said = w.t(
        "Hardware of that node is suspected, not the program, which the other nodes run without it",
        "怀疑该节点的硬件，而非程序（其他节点运行同样的程序没有问题）",
    )
    do = Fields(((w.t("do", "动作"), f"{here.advice.bucket}{w.t(': ', '：')}{here.advice.text.in_(w.lang)}"),))
    return Reply(
        turn.lang,
        f"{led(said, w.title(code), w.lang)}{w.t('.', '。')}",
        (do, Items((_MOVE_IT.in_(w.lang),))),
        focus=here.id,
        settled=turn.diagnosis.settled,
        suggestions=suggest(turn.lang, "why", "alternatives", "next"),
        data={"answer": "cause", "kind": "hardware", "findings": [finding_data(f, turn.lang) for f in (here, code)]},
    )


# NVIDIA's workflows for XID 13 and 31 ask for the program first, and for the diagnostic where other programs fail on the same GPU
_ELSE_HARDWARE = Text(
    "It would be hardware if other, known-good programs fail on the same GPU too (XID 13: always on the same GPC and TPC), or ECC errors, XID 48, 63, 94 or 95 stand beside it: then dcgmi diag -r 3 on that GPU. The same program failing on other GPUs is the program.",
    "若其他已知正常的程序也在同一张卡上出错（XID 13：总在同一 GPC 与 TPC），或同时有 ECC 错误、XID 48、63、94、95，才是硬件：对该卡跑 dcgmi diag -r 3。同一程序在其他卡上也出错，就是程序。",
)
_FIND_LINE = Text(
    "The line of the program: compute-sanitizer python train.py on a small run, or CUDA_LAUNCH_BLOCKING=1 for a stack that fits.",
    "定位出错的代码：用小规模运行 compute-sanitizer python train.py，或设 CUDA_LAUNCH_BLOCKING=1 得到准确的调用栈。",
)


def asks_whose(text: str) -> bool:
    """Whether it is asked what is the hardware's, or the program's."""
    return any(words.search(text) for words in (_BLAMES, _ONE_HARD, _ONE_SOFT))


_ONE_HARD = lazy(r"(?<![a-z])(?:hardware|hw)(?![a-z])|硬件", re.IGNORECASE)
_ONE_SOFT = lazy(r"(?<![a-z])(?:codes?|programs?|scripts?|bugs?)(?![a-z])|代码|程序|脚本", re.IGNORECASE)


_ONE_NET = lazy(r"(?<![a-z])(?:network|fabric)(?![a-z])|网络", re.IGNORECASE)


def _side(text: str, f: Finding) -> bool | None:
    """Whether it is the one side that is asked about, "is it my code?"; None where both are, or it is not known."""
    hard, soft, net = (words.search(text) is not None for words in (_ONE_HARD, _ONE_SOFT, _ONE_NET))
    of_gpu = not hard and _of_gpu(text)
    hard = hard or of_gpu
    kind = kind_of(f)
    if hard + soft + net != 1 or _BLAMES.search(text) or kind == NOT_KNOWN:
        return None
    if net:
        return kind in (_KINDS[CauseClass.NETWORK], _BY_ACTION[Bucket.INSPECT_NETWORK])
    if of_gpu and kind == _KINDS[CauseClass.HOST]:
        return False
    program = kind in (_BY_ACTION[Bucket.RESTART_APP], _BY_ACTION[Bucket.TUNE_JOB])
    if kind == _FIRMWARE and not soft:
        return None
    if soft:
        return program if kind != _KINDS[CauseClass.SOFTWARE] else None
    return "hardware" in kind.en if kind != _KINDS[CauseClass.HOST] else None


def _of_gpu(text: str) -> bool:
    """Whether it is asked if the GPU itself is broken."""
    return (suspect := suspect_of(text)) is not None and suspect.id == "hardware"


def kind_of(f: Finding) -> Text:
    """What kind of thing failed. That a job stands still, or a rank of it, is no cause: what made it so was not read."""
    found, bucket = _classes().get(f.rule.id, CauseClass.UNKNOWN), f.advice.bucket
    if f.subject.scope in (Scope.JOB, Scope.DOCUMENT) and bucket in _OF_JOBS:
        if found is CauseClass.NETWORK and bucket is Bucket.INSPECT_NETWORK:  # a transport that names its peer
            return _KINDS[found]
        own = bool(f.events) and all(o.fact in _ITS_OWN for o in f.events)
        if own and bucket is Bucket.ASK_PLATFORM:  # who ended the job says that a node was lost
            return _OF_NODE
        return _BY_ACTION[bucket] if own and bucket is Bucket.TUNE_JOB else NOT_KNOWN
    if f.rule.id in _of_firmware():
        return _FIRMWARE
    if bucket is Bucket.RESTART_APP and found in _BOARD:
        return _KINDS[found]
    if f.subject.scope is Scope.NODE and bucket is Bucket.ASK_PLATFORM and found is CauseClass.SOFTWARE:
        return _OF_NODE
    return _BY_ACTION.get(bucket) or _KINDS[found]


@cache
def _classes() -> Mapping[str, CauseClass]:
    """Rule -> what kind of thing its hypothesis says failed; the rules that decide go before those that only fit."""
    from knowledge.symptoms import hypotheses

    every = hypotheses().values()
    return {r: h.cause for h in every for r in h.signs} | {r: h.cause for h in every for r in h.rules}


@cache
def _of_firmware() -> frozenset[str]:
    from knowledge.symptoms import hypotheses

    return frozenset(hypotheses()["firmware-stopped"].rules)


def settling(w: Words, f: Finding) -> list[str]:
    """What of the cause is open: NVIDIA's list for a code, what the finding is mistaken for, and the next step that decides."""
    listed_causes = _listed(f, w.lang)
    of_program = f.xid is not None and f.advice.bucket in (Bucket.RESTART_APP, Bucket.FIX_CODE)
    return [
        *((t.in_(w.lang) for t in (_ELSE_HARDWARE, _FIND_LINE)) if of_program else ()),
        w.t(f"NVIDIA lists as possible causes: {listed_causes}", f"NVIDIA 所列的可能原因：{listed_causes}") if listed_causes else "",
        *((f.advice.text.in_(w.lang),) if kind_of(f) == NOT_KNOWN else ()),
        *(t.in_(w.lang) for t in f.advice.then[:2]),
    ]  # fmt: skip


def _listed(f: Finding, lang: str) -> str:
    from knowledge.catalog.xid import xid

    entry = xid(f.xid) if f.xid is not None else None
    return listed([c.replace("_", " ") for c in entry.causes], lang) if entry is not None else ""


def _apart(name: str) -> str:
    """A name within a Chinese sentence: Latin letters stand apart."""
    return f" {name}" if name[:1].isascii() else name
