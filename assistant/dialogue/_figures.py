"""Answers about one measured value: fine, too low or a problem comes first, then what it is held against and what to look at.

What is usual comes from the tables: links and tests from `expected.yaml`, models from `gpus.yaml`, bands from `ranges.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.dialogue._counters import LOOKS
from assistant.dialogue._pages import data_of
from assistant.intent import figures
from assistant.intent.figures import (
    Busy,
    Clock,
    Collective,
    Draw,
    Heat,
    Held,
    HostCopy,
    MemoryRate,
    NoSpace,
    Rdma,
    Share,
    Size,
    Spikes,
    Spread,
)
from assistant.intent.stated import asks_usual
from assistant.render.labels import aside, listed
from assistant.render.sheet import Fields, Items, Part
from assistant.reply import Reply
from assistant.topics.range import bounds
from knowledge import expected
from knowledge.at_rest import at_rest
from knowledge.gpus import GpuSpec
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.ranges import ranges

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.intent.query import Query

_FINE, _LOW, _HIGH = Text("Fine", "正常"), Text("Too low", "偏低"), Text("Too high", "偏高")
_PROBLEM, _ROOM, _OPEN = Text("A problem", "有问题"), Text("Room to gain", "有提升空间"), Text("Depends", "要看情况")
_BOARD = Text("Depends on the board", "取决于型号")
_LEADS = {"good": _FINE, "fair": _ROOM, "poor": _LOW, "bad": Text("Impossible", "不可能"), "open": _OPEN}
# The same where it is asked if it is usual: a yes or a no comes first.
_ASKED = {
    "Fine": Text("Yes, fine", "正常"),
    "Too low": Text("No, too low", "不正常，偏低"),
    "Too high": Text("No, too high", "不正常，偏高"),
    "Too hot": Text("No, too hot", "不正常，过热"),
}
# Is 650 W too much? A yes would say that it is.
_IF_WRONG = lazy(
    r"(?<![a-z])(?:too (?:much|high|low|little|hot|slow|few)|bad|wrong|a problem|abnormal|worr\w+)(?![a-z])|太[高低多少热慢]|偏[高低]|过[高低热]|异常|有问题|不正常",
    re.IGNORECASE,
)
_RATINGS = {
    "Fine": "good",
    "Yes, fine": "good",
    "Depends": "open",
    "Depends on the board": "open",
    "A problem": "bad",
    "Some steps are longer": "fair",
}
_ROOF = 80.0  # % of the specified memory bandwidth that is reached in practice: ranges.yaml, dram-active
_FLOOR = 0.8  # of what is typical, below which something is wrong: expected.yaml, where no floor is public
_WIRE = {
    3: 15.75,
    4: 31.5,
    5: 63.0,
    6: 126.0,
}  # GB/s of 16 lanes one way: PCIe base specification, 128b/130b (6: 242/256 FLITs)
_EDR = 12.5  # GB/s of the slowest port that jobs over nodes use: ranges.yaml, infiniband-bandwidth


class _Said(NamedTuple):
    """An answer before it is a reply."""

    lead: Text
    text: Text
    do: tuple[str, ...] = ()
    runbook: str = ""
    topics: tuple[str, ...] = ()
    data: dict[str, Any] = {}


def answer(query: Query, turn: Turn) -> Reply | None:
    """What the one value of a sentence is; None where it states none, or other readings and troubles stand beside it."""
    found = figures.figure(query.text)
    if found is None or query.slots.xid or query.slots.sxid or not figures.alone(found, query.observations, ()):
        return None
    said = _ANSWERS[type(found)](found)
    if said is not None and asks_usual(query.text) and not _IF_WRONG.search(query.text):
        said = said._replace(lead=_ASKED.get(said.lead.en, said.lead))
    return None if said is None else _reply(said, turn.lang)


def _reply(said: _Said, lang: str) -> Reply:
    head = f"{said.lead.in_(lang)}{'：' if lang == 'zh' else ': '}{said.text.in_(lang)}"
    parts: tuple[Part, ...] = (Items(said.do),) if said.do else ()
    unknown = Text("whether anything else is wrong: nothing was looked at", "是否还有其他问题：没有查看任何机器")
    runbook = f"gpudiag runbook show {said.runbook}" if said.runbook else ""
    fields = Fields(
        ((Text("not known", "未知").in_(lang), unknown.in_(lang)), (Text("runbook", "处置手册").in_(lang), runbook))
    )
    data = {"rating": _RATINGS.get(said.lead.en, "poor"), "usable": "unknown", **said.data}
    data = data_of("figures", list(said.topics), **data)
    return Reply(lang, head, (*parts, fields), settled=False, data=data)


def _by_models(sides: Sequence[tuple[Text, GpuSpec, str]]) -> tuple[Text, str, str]:
    """One verdict where the models that a name may mean agree, else each with its own: the lead, and the models in both languages."""

    def named(lang: str, of: str = "") -> str:
        rows = [f"{s.title}{aside(shown, lang)}" for lead, s, shown in sides if of in ("", lead.en)]
        return listed(dict.fromkeys(rows), lang)

    leads = list({lead.en: lead for lead, _, _ in sides}.values())
    if len(leads) == 1:
        return leads[0], named("en"), named("zh")
    en = "; ".join(f"{lead.en.lower()} on {named('en', lead.en)}" for lead in leads)
    zh = "；".join(f"对 {named('zh', lead.en)}{lead.in_('zh')}" for lead in leads)
    return _BOARD, en, zh


# --- links and tests ----------------------------------------------------------------------


def _host_copy(f: HostCopy) -> _Said | None:
    gens = {s.pcie_generation for s in f.models if s.pcie_generation}
    gen = f.generation or (gens.pop() if len(gens) == 1 else 0)
    width = f.width or 16
    part = width / 16
    known = {g: e for g in (3, 4, 5) if (e := expected.host_copy(g, 16)) is not None}
    do = (
        "nvidia-smi --query-gpu=index,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max --format=csv",
        "lspci -vv | grep -E 'LnkCap|LnkSta'",
        "nvidia-smi topo -m",
    )
    data = {"value": f.gbs, "generation": gen}
    if gen not in known:
        fine = [g for g, e in known.items() if e.floor * part <= f.gbs <= _WIRE[g] * part]
        low = [g for g, e in known.items() if f.gbs < e.floor * part]
        en = (
            f"{f.gbs:g} GB/s between host and GPU is what a Gen{fine[-1]} x{width} link gives"
            if fine
            else f"{f.gbs:g} GB/s between host and GPU fits no full link"
        )
        zh = (
            f"主机与 GPU 之间 {f.gbs:g} GB/s 相当于 Gen{fine[-1]} x{width} 链路的正常水平"
            if fine
            else f"主机与 GPU 之间 {f.gbs:g} GB/s 不符合任何满速链路"
        )
        if low:
            en += f", too low for {listed([f'Gen{g} (about {known[g].typical * part:g})' for g in low], 'en')}"
            zh += f"，对 {listed([f'Gen{g}（约 {known[g].typical * part:g}）' for g in low], 'zh')} 则偏低"
        lead = _OPEN if low else _FINE if fine else _OPEN
        return _Said(
            lead,
            Text(f"{en}. An A100 has Gen4, an H100 and newer Gen5.", f"{zh}。A100 为 Gen4，H100 及更新为 Gen5。"),
            do if low else (),
            "",
            ("range pcie-bandwidth",),
            data,
        )
    e = known[gen]
    typical, floor = e.typical * part, e.floor * part
    link = f"Gen{gen} x{width}"
    if f.gbs >= floor:
        text = Text(
            f"{f.gbs:g} GB/s between host and GPU is what a {link} link gives (about {typical:g} GB/s with pinned memory, {_WIRE[gen] * part:g} on the wire).",
            f"主机与 GPU 之间 {f.gbs:g} GB/s 是 {link} 链路的正常水平（锁页内存约 {typical:g} GB/s，线路速率 {_WIRE[gen] * part:g}）。",
        )
        return _Said(_FINE, text, (), "", ("range pcie-bandwidth",), data)
    like = next(
        (
            f"Gen{g} x{w}"
            for g, w in ((3, 16), (4, 8), (5, 4), (3, 8), (4, 4), (3, 4))
            if g <= gen and known[g].floor * w / 16 <= f.gbs
        ),
        "",
    )
    like_en = f", as much as {like}" if like and like != link else ""
    like_zh = f"，相当于 {like}" if like and like != link else ""
    text = Text(
        f"{f.gbs:g} GB/s between host and GPU, and a {link} link gives about {typical:g} (sick below {floor:g}){like_en}. Pageable memory (test with pinned), the far NUMA node, or a link with fewer lanes or a lower generation: read LnkSta under load.",
        f"主机与 GPU 之间 {f.gbs:g} GB/s，而 {link} 链路约为 {typical:g}（低于 {floor:g} 即异常）{like_zh}。原因：未用锁页内存、远端 NUMA 节点，或链路宽度、代数降低：在负载下查看 LnkSta。",
    )
    return _Said(_LOW, text, do, "pcie-degraded", ("range pcie-bandwidth",), data)


def _memory_rate(f: MemoryRate) -> _Said | None:
    def side(spec: float) -> Text:
        share = 100 * f.gbs / spec
        return _HIGH if share > 100 else _FINE if share >= _ROOF * _FLOOR else _LOW

    known = [s for s in f.models if s.bandwidth_gbs]
    known = [s for s in known if f.gbs <= float(s.bandwidth_gbs or 0)] or known  # what reaches more is another board
    roof, data = _rate(f.gbs), {"value": f.gbs}
    about_en = f"About {_ROOF:g} % is the most that real work reaches; copies and tests come a little nearer."
    about_zh = f"实际负载最高约 {_ROOF:g} %，拷贝与测试略高。"
    if f.spec or len({s.bandwidth_gbs for s in known}) == 1:
        spec = f.spec or float(known[0].bandwidth_gbs or 0)
        lead, share = side(spec), 100 * f.gbs / spec
        name = known[0].title if known and not f.spec else ""
        en = f"{roof} of memory bandwidth is {share:.0f} % of the {_rate(spec)} {f'of {name}' if name else 'that are specified'}."
        zh = f"显存带宽 {roof} 是{f' {name} ' if name else ''}规格 {_rate(spec)} 的 {share:.0f} %。"
    elif known:
        lead, each_en, each_zh = _by_models(
            [
                (
                    side(float(s.bandwidth_gbs or 1)),
                    s,
                    f"{100 * f.gbs / float(s.bandwidth_gbs or 1):.0f} %/{_rate(float(s.bandwidth_gbs or 0))}",
                )
                for s in known
            ]
        )
        en, zh = f"{roof} of memory bandwidth: {each_en}.", f"显存带宽 {roof}：{each_zh}。"
    else:
        return None
    if lead is _HIGH:
        about_en, about_zh = (
            "More than the memory can do: the data fitted into the L2 cache, or it is another model.",
            "超过显存能力：数据落在 L2 缓存内，或型号不同。",
        )
    elif lead is _LOW:
        about_en = f"A test should reach {_ROOF * _FLOOR:.0f} % and more: another process, a low memory clock, small blocks, or a copy that is counted once instead of twice (read and write)."
        about_zh = f"测试应达到 {_ROOF * _FLOOR:.0f} % 以上：可能有其他进程、显存时钟偏低、数据块太小，或拷贝只计了一次（应读写各计一次）。"
    return _Said(lead, Text(f"{en} {about_en}", f"{zh}{about_zh}"), (), "", ("range dram-active",), data)


def _rate(gbs: float) -> str:
    return f"{gbs / 1000:.3g} TB/s" if gbs >= 1000 else f"{gbs:.4g} GB/s"


_PATH = (
    "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH all_reduce_perf -b 1G -e 8G -f 2 -g 8",
    "ibstat",
    "nvidia-smi topo -m",
)


def _collective(f: Collective) -> _Said | None:
    if f.nodes or (f.nics and f.rate):
        return _over_nodes(f)
    rows = [(s, e) for s in f.models if (e := _of_node(s)) is not None]
    if not rows or f.gpus not in (0, 8):
        return None
    spec, e = rows[0]
    data = {"value": f.gbs, "floor": e.floor}
    shown_en, shown_zh = (
        f"8x {spec.family} (SXM) on one node reach about {e.typical:g} GB/s",
        f"单节点 8x {spec.family}（SXM）约为 {e.typical:g} GB/s",
    )
    if f.gbs >= e.floor:
        more = f" {e.note.en}" if e.note and f.gbs < e.typical * 0.9 else ""
        more_zh = e.note.in_("zh") if more else ""
        text = Text(
            f"{f.gbs:g} GB/s of bus bandwidth; {shown_en}, and from {e.floor:g} on it is in order.{more}",
            f"总线带宽 {f.gbs:g} GB/s；{shown_zh}，{e.floor:g} 及以上即为正常。{more_zh}",
        )
        return _Said(_FINE, text, (), "", ("range all-reduce-bandwidth",), data)
    from assistant.dialogue import _busbw

    far = _busbw.below(spec.family, f.gbs)
    if far is not None:
        return _Said(
            _LOW,
            Text(f"{f.gbs:g} GB/s of bus bandwidth. {far.en}", f"总线带宽 {f.gbs:g} GB/s。{far.in_('zh')}"),
            _PATH,
            "nccl-timeout",
            ("range all-reduce-bandwidth",),
            data,
        )
    text = Text(
        f"{f.gbs:g} GB/s of bus bandwidth; {shown_en}, and below {e.floor:g} something is wrong: NVLinks down, no NVLS, small messages (test up to 8 GB), or other work on the GPUs.",
        f"总线带宽 {f.gbs:g} GB/s；{shown_zh}，低于 {e.floor:g} 即有问题：NVLink 断开、未用 NVLS、消息太小（测到 8 GB），或 GPU 上有其他任务。",
    )
    return _Said(_LOW, text, ("nvidia-smi nvlink -s", *_PATH), "nvlink-down", ("range all-reduce-bandwidth",), data)


def _of_node(s: GpuSpec) -> expected.Expected | None:
    return next((e for e in expected.expected() if e.measure == "all_reduce" and s.id in e.gpus), None)


def _over_nodes(f: Collective) -> _Said:
    """Between nodes the network cards of one set the limit: so many times their rate, in bytes."""
    floor = expected.rdma_share()
    need = floor.floor if floor is not None else 100 * _FLOOR
    each, topics = f.rate / 8, ("range all-reduce-bandwidth", "range infiniband-bandwidth")
    data = {"value": f.gbs, "nics": f.nics, "rate": f.rate}
    if f.nics and f.rate:
        whole = f.nics * each
        share = 100 * f.gbs / whole
        told_en = f"{f.gbs:g} GB/s of bus bandwidth, and {f.nics}x {f.rate:g} Gb/s carry {whole:g} GB/s: {share:.0f} %."
        told_zh = f"总线带宽 {f.gbs:g} GB/s，而 {f.nics}x {f.rate:g} Gb/s 可承载 {whole:g} GB/s：{share:.0f} %。"
        if share >= need:
            return _Said(
                _FINE,
                Text(f"{told_en} The network is used to the full.", f"{told_zh}网络已充分利用。"),
                (),
                "",
                topics,
                data,
            )
        used = max(1, round(f.gbs / each))
        why_en = (
            f" That is no more than {used} of {f.nics} cards: the others are down, not chosen (NCCL_IB_HCA), without GPUDirect, or their rail is slow."
            if used < f.nics
            else " Small messages, no GPUDirect, or congestion: test up to 8 GB."
        )
        why_zh = (
            f"只相当于 {f.nics} 块网卡中的 {used} 块：其余未连通、未被选用（NCCL_IB_HCA）、没有 GPUDirect，或所在 rail 较慢。"
            if used < f.nics
            else "消息太小、没有 GPUDirect，或网络拥塞：测到 8 GB。"
        )
        return _Said(
            _LOW,
            Text(
                f"{told_en}{why_en} NCCL_DEBUG=INFO: NET/IB or NET/Socket, and which cards.",
                f"{told_zh}{why_zh}NCCL_DEBUG=INFO：NET/IB 还是 NET/Socket、用了哪些网卡。",
            ),
            _PATH,
            "nccl-timeout",
            topics,
            data,
        )
    if f.gbs < _EDR:
        text = Text(
            f"{f.gbs:g} GB/s between nodes are {8 * f.gbs:g} Gb/s, less than one EDR port of 100 Gb/s carries ({_EDR:g} GB/s): NCCL went over TCP, or over one slow card. NCCL_DEBUG=INFO: NET/Socket in place of NET/IB says so.",
            f"跨节点 {f.gbs:g} GB/s 即 {8 * f.gbs:g} Gb/s，还不到一个 100 Gb/s EDR 端口（{_EDR:g} GB/s）：NCCL 走了 TCP，或只用了一块慢网卡。NCCL_DEBUG=INFO 显示 NET/Socket 而非 NET/IB 即可确认。",
        )
        return _Said(_LOW, text, _PATH, "nccl-timeout", topics, data)
    if f.rate:
        cards = max(1, round(f.gbs / each))
        text = Text(
            f"{f.gbs:g} GB/s are {f.gbs / each:.3g} times one {f.rate:g} Gb/s card ({each:g} GB/s): fine with {cards} of them in a node, too low with more.",
            f"{f.gbs:g} GB/s 相当于 {f.gbs / each:.3g} 块 {f.rate:g} Gb/s 网卡（每块 {each:g} GB/s）：每节点 {cards} 块时正常，更多则偏低。",
        )
        return _Said(_OPEN, text, _PATH, "", topics, data)
    eight = 8 * 400 / 8
    share = 100 * f.gbs / eight
    if need <= share:
        text = Text(
            f"{f.gbs:g} GB/s between nodes are {share:.0f} % of what eight cards of 400 Gb/s carry ({eight:g} GB/s), as a DGX H100 has them.",
            f"跨节点 {f.gbs:g} GB/s 是 8 块 400 Gb/s 网卡（{eight:g} GB/s，DGX H100 的配置）的 {share:.0f} %。",
        )
        return _Said(_FINE, text, (), "", topics, data)
    text = Text(
        f"between nodes the cards of a node set it: {f.gbs:g} GB/s are {8 * f.gbs:g} Gb/s, which is fine for {_cards(f.gbs, 'en')} and too low for more. How many cards of what rate has a node?",
        f"跨节点取决于每节点的网卡：{f.gbs:g} GB/s 即 {8 * f.gbs:g} Gb/s，对 {_cards(f.gbs, 'zh')} 属正常，配置更高则偏低。每节点有几块、多少 Gb/s 的网卡？",
    )
    return _Said(_OPEN, text, _PATH, "", topics, data)


def _cards(gbs: float, lang: str) -> str:
    """The sets of cards for which so many GB/s are about all that they carry."""
    return listed([f"{max(1, round(8 * gbs / rate))}x {rate} Gb/s" for rate in (200, 400)], lang)


def _rdma(f: Rdma) -> _Said | None:
    floor = expected.rdma_share()
    if floor is None:
        return None
    whole = f.nics * f.rate
    share = 100 * f.gbits / whole
    fine = share >= floor.floor
    en = f"{f.gbits:.4g} of {whole:g} Gb/s is {share:.0f} %; a sound port reaches about {floor.typical:g} % in ib_write_bw, and {floor.floor:g} % is the least."
    zh = f"{f.gbits:.4g}/{whole:g} Gb/s 为 {share:.0f} %；正常端口用 ib_write_bw 约 {floor.typical:g} %，最低 {floor.floor:g} %。"
    if not fine:
        en += " One queue pair or small messages (-q 4 -s 1048576), the far NUMA node, a PCIe link of the card that is narrow, errors on the cable."
        zh += "原因：单个 QP 或消息太小（-q 4 -s 1048576）、远端 NUMA 节点、网卡 PCIe 链路变窄、线缆误码。"
    do = () if fine else ("ibstat", "mlxlink -d DEVICE -m -c", "lspci -vv | grep -E 'LnkCap|LnkSta'")
    return _Said(
        _FINE if fine else _LOW,
        Text(en, zh),
        do,
        "" if fine else "ib-port-down",
        ("range infiniband-bandwidth",),
        {"value": f.gbits},
    )


# --- power, memory, heat ------------------------------------------------------------------


def _draw(f: Draw) -> _Said | None:
    known = [s for s in f.models if s.tdp_w]
    topics, data = ("range power-draw",), {"watts": f.watts, "limit": f.limit}
    if not f.limit and not known:
        return _any_board(f, topics, data)
    if f.limit:
        lead, text = _of_limit(f, f.limit)
        shown_en, shown_zh = f"{f.watts:g} of {f.limit:g} W", f"{f.watts:g}/{f.limit:g} W"
        return _Said(
            lead,
            Text(
                f"{shown_en} is {100 * f.watts / f.limit:.0f} % of the limit. {text.en}",
                f"{shown_zh} 为上限的 {100 * f.watts / f.limit:.0f} %。{text.in_('zh')}",
            ),
            (),
            "",
            topics,
            data,
        )
    # a draw above what a board is built for rules the board out
    if f.watts > 2 * max(float(s.tdp_w or 0) for s in known):
        return None  # of several GPUs or of the node
    fits = [s for s in known if f.watts <= 1.05 * float(s.tdp_w or 0)] or known
    sides = [(_of_limit(f, float(s.tdp_w or 1))[0], s, f"{s.tdp_w:.0f} W") for s in fits]
    lead, each_en, each_zh = _by_models(sides)
    nearest = max(fits, key=lambda s: s.tdp_w or 0.0) if lead is _BOARD else fits[0]
    why = _of_limit(f, float(nearest.tdp_w or 1))[1]
    return _Said(
        lead,
        Text(
            f"{f.watts:g} W against the limit of {each_en}. {why.en}"
            if lead is not _BOARD
            else f"{f.watts:g} W is {each_en}. {why.en}",
            f"{f.watts:g} W，{'' if lead is _BOARD else '上限 '}{each_zh}。{why.in_('zh')}",
        ),
        (),
        "",
        topics,
        data,
    )


def _of_limit(f: Draw, limit: float) -> tuple[Text, Text]:
    """How a draw is against a limit, by the bands of the measure; of training less than the most is little."""
    share = 100 * f.watts / limit
    band = ranges()["power-draw"].band(share)
    busy = ranges()["power-share"].band(share)
    assert band is not None
    assert busy is not None
    kind = "training" if f.training else "decode" if f.inference else ""
    if kind and kind in busy.cases:
        rating, text = busy.cases[kind]
        return (_LOW if rating == "poor" else _FINE), text
    if f.training and busy.rating == "poor":
        return _LOW, busy.text
    if share >= 105:
        return _OPEN, band.text
    return (_FINE if band.rating == "good" else _OPEN), band.text


# Shares of the highest clock: from the first on it runs free, above the second large matrix products at the power limit keep it there
# (H100 SXM at 700 W: 1400 to 1700 of 1980 MHz, as `nvidia-smi dmon` shows in training), below it something else holds it.
_FREE, _HELD = 0.92, 0.68


def _clock(f: Clock) -> _Said | None:
    tops = sorted({f.most} if f.most else {float(s.max_clock_mhz or 0) for s in f.models})
    if f.mhz > 1.05 * tops[-1] or f.mhz < 0.1 * tops[0]:
        return None
    top = f"{tops[0]:g} .. {tops[-1]:g}" if len(tops) > 1 else f"{tops[0]:g}"
    design = max((float(s.tdp_w or 0) for s in f.models), default=0.0)
    if f.mhz >= _FREE * tops[-1]:
        lead, why = _FINE, Text("That is the full clock: nothing holds it down.", "已是满频，没有被压低。")
    elif f.limit and f.limit < 0.97 * design:
        lead = _OPEN
        why = Text(
            f"The power limit is set to {f.limit:g} of {design:g} W, and under load that limit lowers the clock: by intent, no fault. "
            "Raise it with nvidia-smi -pl if power and cooling allow.",
            f"功耗上限设为 {f.limit:g} W（设计 {design:g} W），负载下由它压低频率：这是设定所致，不是故障。供电与散热允许时可用 nvidia-smi -pl 调高。",
        )
    elif f.mhz >= _HELD * tops[-1]:
        lead = _OPEN
        why = Text(
            "Usual where large matrix products run at the power limit, not fine where the GPU draws less than that. "
            "Read the reason: nvidia-smi -q -d PERFORMANCE,POWER.",
            "大矩阵运算顶到功耗上限时属正常；若功耗未到上限则不正常。查看原因：nvidia-smi -q -d PERFORMANCE,POWER。",
        )
    else:
        lead = _LOW
        why = Text(
            "Under load that is held down: power limit, heat, power brake, or locked clocks; without load a GPU goes there by itself. "
            "Read the reason: nvidia-smi -q -d PERFORMANCE,POWER.",
            "负载下属于被压低：功耗上限、过热、power brake 或锁频；空载时会自行降到这里。查看原因：nvidia-smi -q -d PERFORMANCE,POWER。",
        )
    share = 100 * f.mhz / tops[-1]
    text = Text(
        f"{f.mhz:g} of {top} MHz ({share:.0f} %). {why.en}",
        f"{f.mhz:g} MHz，最高 {top} MHz（{share:.0f} %）。{why.in_('zh')}",
    )
    if f.memory:
        text = Text(
            f"{text.en} The memory's {f.memory:g} MHz are full where Max Clocks of nvidia-smi -q -d CLOCK has the same.",
            f"{text.in_('zh')}显存频率 {f.memory:g} MHz：与 nvidia-smi -q -d CLOCK 的 Max Clocks 相同即为满频。",
        )
    return _Said(
        lead, text, (), "", ("howto read-throttle-reasons",), {"mhz": f.mhz, "most": tops[-1], "limit": f.limit}
    )


def _any_board(f: Draw, topics: tuple[str, ...], data: dict[str, Any]) -> _Said | None:
    """Of a draw of which neither board nor limit is said: on which boards it is usual under load."""
    boards = (("L40S", 350), ("A100 SXM", 400), ("H100 SXM", 700), ("B200", 1000))
    over = [f"{name} ({watts} W)" for name, watts in boards if f.watts > 1.05 * watts]
    fit = [f"{name} ({watts} W)" for name, watts in boards if f.watts <= 1.05 * watts]
    if not fit or f.watts < 150:  # at rest 50 to 140 W are usual: readings.yaml
        return None
    en = f"{f.watts:g} W under load is within the limit of {listed(fit, 'en')}"
    zh = f"负载下 {f.watts:g} W 在 {listed(fit, 'zh')} 的上限之内"
    if over:
        en, zh = f"{en}; above that of {listed(over, 'en')}", f"{zh}；超过 {listed(over, 'zh')}"
    en += ". Without load it would be too much: 50 to 140 W are usual at rest."
    zh += "。空闲时则偏高：空闲常见 50 至 140 W。"
    return _Said(_FINE, Text(en, zh), (), "", topics, data)


def _held(f: Held) -> _Said | None:
    data, rest = {"mib": f.mib, "total": f.total}, at_rest("gpu.memory.used", "")
    small = rest is not None and f.mib <= rest.high
    if small and rest is not None:
        text = Text(
            f"{_mib(f.mib)} without a process is the driver's own (up to {rest.high:g} MiB at rest is usual); no program holds it.",
            f"空闲时占用 {_mib(f.mib)} 是驱动自身占用（空闲时 {rest.high:g} MiB 以内属常见），不是程序占用。",
        )
        return _Said(_FINE, text, (), "", ("range memory-use",), data)
    if f.unowned:
        text = Text(
            f"{_mib(f.mib)} are held though no process shows: a process that was left over (killed job, zombie, debugger) or one in another container, which nvidia-smi cannot name. Find it with fuser -v /dev/nvidia* as root on the host and end it; if nobody holds the device, reset the GPU.",
            f"{_mib(f.mib)} 显存被占用却看不到进程：残留进程（被杀的任务、僵尸进程），或属于其他容器，nvidia-smi 显示不出。在宿主机以 root 运行 fuser -v /dev/nvidia* 找到并结束它；若无人占用，再复位该 GPU。",
        )
        do = (
            "fuser -v /dev/nvidia*",
            "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv",
            "ps -eo pid,ppid,stat,etime,cmd | grep -E 'python|defunct'",
        )
        return _Said(_PROBLEM, text, do, "zombie-memory", ("range memory-use",), data)
    if not f.total:
        return None
    share = 100 * f.mib / f.total
    shown_en, shown_zh = (
        f"{_mib(f.mib)} of {_mib(f.total)} in use ({share:.0f} %)",
        f"已用 {_mib(f.mib)}/{_mib(f.total)}（{share:.0f} %）",
    )
    if share >= 95:
        text = Text(
            f"{shown_en} is no fault by itself: PyTorch's allocator and serving engines keep what they took. Only {_mib(f.total - f.mib)} are left: in training the next larger batch may run out of memory.",
            f"{shown_zh}本身不是故障：PyTorch 分配器与推理引擎会保留申请过的显存。仅剩 {_mib(f.total - f.mib)}：训练时更大的 batch 可能显存不足。",
        )
    elif share >= 50:
        text = Text(f"{shown_en}; {_mib(f.total - f.mib)} are left.", f"{shown_zh}；还剩 {_mib(f.total - f.mib)}。")
    else:
        text = Text(
            f"{shown_en}; more than half is free, a larger batch may fit.",
            f"{shown_zh}；一半以上空闲，可尝试更大的 batch。",
        )
    return _Said(_FINE, text, (), "", ("range memory-use",), data)


def _mib(mib: float) -> str:
    return f"{mib / 1024:.4g} GiB" if mib >= 1024 else f"{mib:.4g} MiB"


def _size(f: Size) -> _Said | None:
    fits = [s for s in f.models if s.memory_gib and s.fits(f.mib)]
    data, names = {"mib": f.mib}, sorted({f"{s.memory_gib:g} GB" for s in f.models if s.memory_gib})
    family = f.models[0].family
    if fits:
        text = Text(
            f"{_mib(f.mib)} is all of the memory of a {fits[0].title}: the driver reports a little less or more than the name says.",
            f"{_mib(f.mib)} 就是 {fits[0].title} 的全部显存：驱动显示的数值与标称略有出入。",
        )
        return _Said(_FINE, text, (), "", (f"gpu {fits[0].id}",), data)
    if not names:
        return None
    text = Text(
        f"{_mib(f.mib)}, and a {family} has {' or '.join(names)}: a slice of it (MIG, vGPU) or another model than was ordered; memory does not shrink by a fault. Read name and MIG mode.",
        f"显示 {_mib(f.mib)}，而 {family} 为 {' 或 '.join(names)}：看到的是切片（MIG、vGPU），或型号不是预期的；显存总量不会因故障变小。请查看型号名与 MIG 模式。",
    )
    do = ("nvidia-smi --query-gpu=index,name,memory.total,mig.mode.current --format=csv", "nvidia-smi -L")
    return _Said(Text("Not as it should be", "与预期不符"), text, do, "", (f"gpu {f.models[0].id}",), data)


def _heat(f: Heat) -> _Said | None:
    band = f.measure.band(f.celsius)
    if band is None:
        return None
    lead = {"good": _FINE, "open": Text("Not yet too hot", "尚未过热")}.get(band.rating, Text("Too hot", "过热"))
    where = bounds(band, f.measure.unit, "en"), bounds(band, f.measure.unit, "zh")
    rest, rest_zh = "", ""
    usual = at_rest("gpu.temperature.core", "")
    if band.rating == "good" and usual is not None and f.measure.id == "temperature-core" and f.celsius > usual.high:
        rest, rest_zh = (
            f" Without load {usual.low:g} to {usual.high:g} °C.",
            f"空闲时为 {usual.low:g} 至 {usual.high:g} °C。",
        )
    text = Text(
        f"{f.celsius:g} °C ({where[0]}). {band.text.en}{rest}",
        f"{f.celsius:g} °C（{where[1]}）。{band.text.in_('zh')}{rest_zh}",
    )
    do = () if band.rating == "good" else ("nvidia-smi -q -d TEMPERATURE,PERFORMANCE",)
    return _Said(
        lead,
        text,
        do,
        "thermal" if band.rating == "poor" else "",
        (f"range {f.measure.id}",),
        {"value": f.celsius, "unit": f.measure.unit, "rating": band.rating},
    )


# --- the job ------------------------------------------------------------------------------


def _share(f: Share) -> _Said | None:
    band = f.measure.band(f.percent)
    if band is None:
        return None
    lead = _LEADS[band.rating]
    if band.rating == "poor" and f.measure.id == "exposed-communication":
        lead = _HIGH
    where = bounds(band, f.measure.unit, "en"), bounds(band, f.measure.unit, "zh")
    shown, title = f"{f.percent:.6g} {f.measure.unit}", f.measure.title.in_("zh")
    text = Text(
        f"{f.measure.title.en} of {shown} ({where[0]}). {band.text.en}",
        f"{title}{'' if title[-1:] == '）' else ' '}{shown}（{where[1]}）。{band.text.in_('zh')}",
    )
    return _Said(
        lead,
        text,
        (),
        "",
        (f"range {f.measure.id}",),
        {"value": f.percent, "unit": f.measure.unit, "rating": band.rating},
    )


def _spikes(f: Spikes) -> _Said | None:
    usual, worst = _seconds(f.usual), _seconds(f.worst)
    times = f.worst / f.usual if f.usual else 0.0
    rhythm_en = (
        f"{f.every}: look at what runs just then"
        if f.every
        else "a fixed rhythm points at one of the first three, an irregular one at the last two"
    )
    rhythm_zh = f"{f.every}：看此时运行的是什么" if f.every else "有固定周期多为前三种，不规则多为后两种"
    shown_en = (
        f"most steps take {usual}, some {worst} ({times:.2g} times)" if f.usual else f"a pause of {worst}, {f.every}"
    )
    shown_zh = f"多数步 {usual}，个别 {worst}（{times:.2g} 倍）" if f.usual else f"{f.every}停 {worst}"
    text = Text(
        f"{shown_en}: what runs only now and then. A checkpoint or an evaluation; logging or Python's garbage collection; the loader at the end of a shard or epoch; a slow storage or network; one rank that is late for the others ({rhythm_en}).",
        f"{shown_zh}：原因是只偶尔运行的部分。存 checkpoint 或评估；日志或 Python 垃圾回收；数据加载在分片、epoch 末尾补数据；存储或网络变慢；某个 rank 迟到（{rhythm_zh}）。",
    )
    do = ("gpudiag profile --pid PID --iterations 50", "gpudiag trace iterations TRACE.json.gz")
    return _Said(
        Text("Spikes, not a slow job", "偶发尖峰，不是整体变慢"),
        text,
        do,
        "",
        ("symptom slow-training",),
        {"usual_s": f.usual, "worst_s": f.worst},
    )


def _seconds(s: float) -> str:
    return f"{1000 * s:.4g} ms" if s < 1 else f"{s:.4g} s"


_WORTH, _UNEVEN = 3.0, 3.0  # percent, times: rules trace-iteration-outliers (share) and iterations-uneven (ratio)


def _spread(f: Spread) -> _Said | None:
    over, times = 100 * (f.upper / f.median - 1), f.upper / f.median
    more = (f"{over:.2g} % more", f"高 {over:.2g} %") if times < 2 else (f"{times:.2g} times", f"{times:.2g} 倍")
    shown_en = f"the median step takes {_seconds(f.median)}, {f.called} {_seconds(f.upper)}, {more[0]}"
    shown_zh = f"步时中位数 {_seconds(f.median)}，{f.called} {_seconds(f.upper)}，{more[1]}"
    data = {"median_s": f.median, "upper_s": f.upper}
    if over <= _WORTH:
        return _Said(
            _FINE,
            Text(
                f"{shown_en}: steps are even, and there is nothing to win in them.",
                f"{shown_zh}：步时平稳，没有可改进之处。",
            ),
            (),
            "",
            (),
            data,
        )
    uneven = f.upper >= _UNEVEN * f.median
    why_en = "look at what runs only now and then: checkpoint, evaluation, garbage collection, the loader, a late rank"
    why_zh = "看只偶尔运行的部分：checkpoint、评估、垃圾回收、数据加载、迟到的 rank"
    lead = Text("Uneven steps", "步时不均") if uneven else Text("Some steps are longer", "部分步偏长")
    return _Said(
        lead,
        Text(f"{shown_en}: {why_en}.", f"{shown_zh}：{why_zh}。"),
        ("gpudiag profile --pid PID --iterations 50",),
        "",
        ("symptom slow-training",),
        data,
    )


def _busy(f: Busy) -> _Said | None:
    text = Text(
        f"{f.percent:g} % is usual under load, but no proof of work: it says that some kernel is there, also one that waits. Power near the limit and SM active from 80 % on speak for work: {LOOKS[0]}.",
        f"负载下 {f.percent:g} % 属正常，但不能证明在做有用功：它只说明有 kernel，等待中的也算。功耗接近上限、SM active 不低于 80 % 才像在工作：{LOOKS[0]}。",
    )
    return _Said(_FINE, text, (), "", ("range gpu-utilization",), {"value": f.percent})


def _no_space(_: NoSpace) -> _Said | None:
    text = Text(
        "not the space that df shows is used up: the inodes (df -i), a quota of the user or project, /dev/shm or /tmp in the container, another mount than the one looked at, or files that were deleted and are still open (lsof +L1).",
        "用尽的不是 df 显示的空间：可能是 inode（df -i）、用户或项目配额、容器内的 /dev/shm 或 /tmp、另一个挂载点，或已删除但仍被打开的文件（lsof +L1）。",
    )
    do = (
        "df -i PATH; df -h PATH /dev/shm /tmp",
        "quota -s; lfs quota -h -u $USER PATH",
        "lsof +L1 | sort -k7 -n | tail",
    )
    return _Said(_PROBLEM, text, do, "filesystem-full", ("symptom disk-trouble",), {})


_ANSWERS: dict[type, Callable[[Any], _Said | None]] = {
    HostCopy: _host_copy,
    MemoryRate: _memory_rate,
    Collective: _collective,
    Rdma: _rdma,
    Draw: _draw,
    Clock: _clock,
    Held: _held,
    Size: _size,
    Heat: _heat,
    Share: _share,
    Spikes: _spikes,
    Spread: _spread,
    NoSpace: _no_space,
    Busy: _busy,
}
