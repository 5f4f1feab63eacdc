"""One measured value that a sentence states, with what it is held against: a draw and its limit, a copy and its link, a bandwidth and
the network cards told beside it. What counts or names things ("8x", "2 nodes", "gen5", "70b", "512 h100s") is no value of it.

Only reading: what the values mean stands in `assistant.dialogue._figures`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from assistant.intent import symptoms
from assistant.intent.grammar import words_of
from assistant.intent.stated import AT_REST, reports_trouble
from assistant.intent.things import MODEL
from knowledge.expected import expected
from knowledge.gpus import GpuSpec, candidates
from knowledge.lazy import lazy
from knowledge.observation import Observation
from knowledge.ranges import Range, ranges

_I = re.IGNORECASE
_MOST = 300  # characters: a sentence about one value is short
_N = r"(?<![a-z0-9_.])(?P<n>[0-9]+(?:\.[0-9]+)?)"


# --- what is read -------------------------------------------------------------------------


class HostCopy(NamedTuple):
    """A copy between host and GPU."""

    gbs: float  # GB/s, one direction
    generation: int  # of the PCIe link; 0: nobody said
    width: int  # lanes; 0: nobody said
    models: tuple[GpuSpec, ...]


class MemoryRate(NamedTuple):
    """What a test of the GPU's memory reached."""

    gbs: float
    spec: float  # GB/s that the sentence calls the specification; 0: none
    models: tuple[GpuSpec, ...]


class Collective(NamedTuple):
    """The bus bandwidth of a collective."""

    gbs: float
    nodes: bool  # whether it goes over several nodes
    gpus: int  # of a node; 0: nobody said
    nics: int  # of a node; 0: nobody said
    rate: float  # Gb/s of each; 0: nobody said
    models: tuple[GpuSpec, ...]


class Rdma(NamedTuple):
    """What a test of network cards reached."""

    gbits: float
    nics: int
    rate: float  # Gb/s of each


class Draw(NamedTuple):
    """The power of one GPU."""

    watts: float
    limit: float  # W; 0: nobody said
    models: tuple[GpuSpec, ...]
    training: bool
    inference: bool


class Clock(NamedTuple):
    """The SM clock of one GPU under load."""

    mhz: float
    most: float  # MHz that the sentence calls its maximum; 0: nobody said
    limit: float  # W to which the sentence says the power is limited; 0: nobody said
    models: tuple[GpuSpec, ...]
    memory: float = 0.0  # MHz of the memory that are said beside it; 0: nobody said


class Held(NamedTuple):
    """Memory of a GPU that is in use."""

    mib: float
    total: float  # MiB; 0: nobody said
    unowned: bool  # whether no process is seen that holds it


class Size(NamedTuple):
    """All the memory that a GPU reports."""

    mib: float
    models: tuple[GpuSpec, ...]


class Heat(NamedTuple):
    """A temperature of a GPU under load."""

    celsius: float
    measure: Range


class Share(NamedTuple):
    """A measure of a job in percent: MFU, goodput."""

    percent: float
    measure: Range


class Spikes(NamedTuple):
    """Steps of which some take far longer, in seconds."""

    usual: float
    worst: float
    every: str  # how often, in steps or minutes, as it is said


class Spread(NamedTuple):
    """The median of the step time and its upper end, in seconds."""

    median: float
    upper: float
    called: str  # p99


class NoSpace(NamedTuple):
    """A write that finds no space where there is some."""


class Busy(NamedTuple):
    """A utilisation near all of the time, of which it is asked if that is right."""

    percent: float


Figure = (
    HostCopy
    | MemoryRate
    | Collective
    | Rdma
    | Draw
    | Clock
    | Held
    | Size
    | Heat
    | Share
    | Spikes
    | Spread
    | NoSpace
    | Busy
)

_OF_MEMORY = ("gpu.memory.", "gpu.name", "gpu.process", "gpu.utilization.memory")
# The facts that the words of a figure tell too: what is told beside them is answered by the rules.
_FACTS: dict[type, tuple[str, ...]] = {
    HostCopy: ("benchmark.", "gpu.pcie.", "gpu.memory.", "node.memory."),  # 锁页内存
    MemoryRate: ("benchmark.", "gpu.name", "gpu.memory."),
    Collective: ("benchmark.", "gpu.name", "port.rate", "node.gpu.count", "link.speed", "node.ib.ports"),
    Rdma: ("benchmark.", "port.rate", "link.speed", "node.ib.ports"),
    Draw: ("gpu.power.", "gpu.name"),
    Clock: ("gpu.clock.sm", "gpu.clock.memory", "gpu.clock.graphics", "gpu.clock.max", "gpu.power.limit", "gpu.name"),
    Held: (*_OF_MEMORY, "fs.", "node.gpu.processes", "node.driver.state"),  # nvidia-smi 里没有
    Size: ("gpu.memory.", "gpu.name"),
    Heat: ("gpu.name",),  # a temperature that was told is judged by the rules
    Share: ("gpu.name", "gpu.activity.tensor", "job.", "trace."),
    Spikes: ("job.step.", "rank.step."),
    Spread: ("job.step.", "rank.step.", "gpu.activity.tensor", "gpu.name"),
    NoSpace: ("fs.", "node.shm.share"),
    Busy: ("gpu.utilization.core", "gpu.name"),
}
# The troubles that are nothing but another name of what the figure says.
_SIGNS: dict[type, frozenset[str]] = {
    HostCopy: frozenset(["slow-training", "low-utilization"]),
    Collective: frozenset(["network-trouble", "slow-training"]),
    Rdma: frozenset(["network-trouble"]),
    Clock: frozenset(["gpu-too-hot"]),
    Held: frozenset(["zombie-memory", "gpu-held", "out-of-memory", "gpu-missing"]),
    Size: frozenset(["out-of-memory"]),
    Share: frozenset(["slow-training", "low-utilization"]),
    Spikes: frozenset(["slow-training", "straggler", "data-loading-slow", "hang"]),
    Spread: frozenset(["slow-training"]),
    NoSpace: frozenset(["disk-trouble"]),
}


def alone(figure: Figure, told: Sequence[Observation], signs: Sequence[str]) -> bool:
    """Whether a sentence tells nothing but the figure: no other reading and no trouble beside it."""
    facts, known = ("gpu.name", "gpu.vendor", *_FACTS[type(figure)]), _SIGNS.get(type(figure), frozenset())
    return all(o.fact.startswith(facts) or o.value == "active" for o in told) and set(signs) <= known


def figure(text: str) -> Figure | None:
    """The one value that a sentence states and what it is held against; None where it states none, or compares it with what it was
    or with that of its peers."""
    if not text or len(text) > _MOST or (not _DIGIT.search(text) and not _SPACE.search(text)):
        return None
    text = _without_lead(text)
    found = next((found for read in _READERS if (found := read(text)) is not None), None)
    told_in_two = isinstance(found, _OF_TWO_CLAUSES) or (isinstance(found, Held) and found.unowned)
    return None if found is None or (not told_in_two and trouble_beside(_without_question(text))) else found


def _without_question(text: str) -> str:
    """The text without a question ahead of its only clause with a value: "expected busbw on 8xH100? I get 210 GB/s"."""
    asks = _NEXT_CLAUSE.search(text)
    if asks is None or asks[0].strip() not in "?？吗" or _MEASURED.search(ahead := text[: asks.start()]):
        return text
    return text if symptoms.find(words_of(ahead)) or reports_trouble(ahead) else text[asks.end() :]


def _without_lead(text: str) -> str:
    """The text without what is fine ahead of it: "NVLink all active but all_reduce gives 120 GB/s"."""
    turn = _TURN.search(text)
    if turn is None or _DIGIT.search(ahead := text[: turn.start()]):
        return text
    return text if symptoms.find(words_of(ahead)) or reports_trouble(ahead) else text[turn.end() :]


# What is told in two clauses by itself: 78 GB held but no process, most steps 3 s but some 9, no space left but df shows some.
_OF_TWO_CLAUSES = (Spikes, Spread, NoSpace)
# Where another clause begins: "78C, ok? the node keeps rebooting", 正常吗 但是掉卡了
_NEXT_CLAUSE = lazy(
    r"(?<![a-z])(?:but|however|yet|although|though|when|while|and)(?![a-z])|[?？!。;；]|但是?|不过|可是|却|然而|吗\s",
    _I,
)
_TURN = lazy(r"(?<![a-z])(?:but|however|yet)(?![a-z])|但是?|不过|可是", _I)
_MEASURED = lazy(
    r"(?<![\w.])[0-9]+(?:\.[0-9]+)?\s*(?:(?:rpm|[mg]hz|c|w|watts?|[gmt]i?b(?:/s|ps)?|m?s|errors?|times)(?![a-z])|[°%个次块张秒瓦度]|毫秒)",
    _I,
)


def measures(text: str) -> bool:
    """Whether a number with a unit stands in a sentence."""
    return _MEASURED.search(text) is not None


def trouble_beside(text: str) -> bool:
    """Whether a clause behind the first tells of trouble or of another value: then no value alone is the answer."""
    begins = _NEXT_CLAUSE.search(text)
    if begins is None:
        return False
    rest = text[begins.end() :]
    return bool(symptoms.find(words_of(rest))) or reports_trouble(rest) or _MEASURED.search(rest) is not None


_DIGIT = lazy("[0-9]")


# --- words --------------------------------------------------------------------------------

_PEERS = lazy(
    r"(?<![a-z])(?:others?|rest|peers|neighbou?rs?|elsewhere|another)(?![a-z])|其[他它余]|别的|另外|剩下|隔壁|邻", _I
)
_PAST = lazy(
    r"(?<![a-z])(?:last (?:week|month|night|time|year)|yesterday|used to|before|previous(?:ly)?|earlier|was|were|now(?! and)|since|dropp?ed|fell|grew|grow\w*|leak\w*|keeps|climb\w*)(?![a-z])"
    r"|上周|上个?月|昨[天晚]|以前|之前|原来|原先|现在|越来越|一直涨|不断|增长|上涨|泄漏|降到|掉到|变成",
    _I,
)
_TRAINS = lazy(r"(?<![a-z])(?:re)?train\w*|(?<![a-z])(?:fine-?tun|pre-?train)\w*|训练|微调|预训练", _I)
_SERVES = lazy(r"(?<![a-z])(?:infer\w*|serv\w+|decod\w+|vllm|sglang|tensorrt|tgi)(?![a-z])|推理|解码", _I)


def _compares(text: str) -> bool:
    return _PEERS.search(text) is not None or _PAST.search(text) is not None


_TIMES = lazy(r"(?<![a-z0-9.])[0-9]+\s?[x×*]\s?(?=[a-z])", _I)  # 8xH100


def _models(text: str) -> tuple[GpuSpec, ...]:
    """The models that a sentence names; those of one form or size where it says which."""
    text = _TIMES.sub(" ", text)
    for found in MODEL.finditer(text):
        name = found[0].strip(" ,").removesuffix("s").removesuffix("S")
        specs = candidates(name) or candidates(f"RTX {name}")
        if not specs:
            continue
        after = text[found.end() : found.end() + 12].casefold()
        for form in ("sxm", "pcie", "nvl"):
            if re.match(rf"[ -]?\(?{form}(?!ink)", after):
                specs = tuple(s for s in specs if form in f"{s.form_factor} {s.id}") or specs
        size = re.search(r"([0-9]{2,3})\s?gi?b?(?![a-z/])", found[0] + after, _I)
        if size:
            specs = tuple(s for s in specs if s.memory_gib == float(size[1])) or specs
        return specs
    return ()


_RATE = lazy(rf"{_N}\s?(?P<u>[tgm]i?b(?:ps|it/s|its?/s|/s(?:ec)?|/秒|每秒)|[tg]bit)(?![a-z0-9])", _I)


class _Rate(NamedTuple):
    gbs: float  # GB/s
    bits: bool
    start: int
    end: int


def _rates(text: str) -> list[_Rate]:
    """The rates of a text, in GB/s however they are written: 12.3 GB/s, 2.9 TB/s, 390 Gb/s, 400 Gbps."""
    out = []
    for m in _RATE.finditer(text):
        unit = m["u"]
        bits = "bit" in unit.casefold() or (unit[1] == "b" and (unit[0].isupper() or unit[2:4] == "ps"))
        scale = {"t": 1000.0, "g": 1.0, "m": 0.001}[unit[0].casefold()] / (8 if bits else 1)
        out.append(_Rate(float(m["n"]) * scale, bits, m.start(), m.end()))
    return out


# --- readers ------------------------------------------------------------------------------

_COPY = lazy(
    r"(?<![a-z])(?:bandwidth ?test|nvbandwidth|h2d|d2h|htod|dtoh|host[- ]to[- ](?:device|gpu)|device[- ]to[- ]host|cpu[- ]to[- ]gpu|pinned|pageable|pci-?e (?:bandwidth|bw|cop(?:y|ies)|throughput|transfer))(?![a-z])"
    r"|主机到(?:设备|gpu|显卡)|设备到主机|cpu到gpu|锁页|pci-?e\s*(?:gen\s?[3-6]|[3-6](?:\.0)?|x\s?16|的|实测|测出来?的?|单向)*\s*(?:拷贝|带宽|测速|传输)",
    _I,
)
_NO_COPY = lazy(
    r"(?<![a-z])(?:rx|tx|traffic|nvlinks?|nvswitch|d2d|p2p|peer|busbw|nccl|all[-_ ]?reduce|nvme|ssd|disk|bidir\w*|both (?:ways|directions)|while|during)(?![a-z])|流量|显存带宽|双向|磁盘|硬盘|训练(?:时|中|期间)",
    _I,
)
_GEN = lazy(
    r"(?<![a-z])(?:pci-?e\s*)?gen(?:eration)?[ -]?([3-6])(?![0-9])|pci-?e[ -]?([3-6])(?:\.0)?(?![0-9.])|([3-6])\s*代",
    _I,
)
_WIDTH = lazy(r"(?<![a-z0-9])x\s?(4|8|16)(?![0-9a-z])", _I)
_WANTED = lazy(
    r"(?<![a-z])(?:should(?! (?:i|we)(?![a-z]))|expect\w*(?!\s*(?:[?.!]|$))(?![a-z])|instead|rather than|supposed)(?![a-z])|应[该为当]|而不是|本该",
    _I,
)


def _host_copy(text: str) -> HostCopy | None:
    rates = [r for r in _rates(text) if not r.bits]
    if not rates or not _COPY.search(text) or _NO_COPY.search(text) or _compares(text):
        return None
    if len(rates) > 1 and (len(rates) > 2 or _WANTED.search(text)):
        return None
    value = min(r.gbs for r in rates)
    if value > 200:  # no PCIe link: a test of the memory
        return None
    gen = next((int(g) for m in _GEN.finditer(text) for g in m.groups() if g), 0)
    lanes = _WIDTH.search(text)
    return HostCopy(value, gen, int(lanes[1]) if lanes else 0, _models(text))


_MEMORY_TEST = lazy(
    r"(?<![a-z])(?:mem(?:ory)?|hbm[0-9]?e?|vram|dram|gpu)[ -]?(?:bandwidth|bw|copy|throughput)(?![a-z])|(?<![a-z])(?:babel)?stream (?:triad|copy|test|bench\w*)|babelstream|device[- ]to[- ]device|(?<![a-z])d2d(?![a-z])|显存(?:的)?(?:实测|拷贝)?(?:带宽|速率)|hbm ?(?:实测)?带宽",
    _I,
)
_SOME_BANDWIDTH = lazy(r"(?<![a-z])(?:bandwidth|bw)(?![a-z])|bandwidth ?test|带宽", _I)
_NO_MEMORY = lazy(
    r"(?<![a-z])(?:nvlinks?|nvswitch|busbw|nccl|all[-_ ]?reduce|pci-?e (?:bandwidth|bw)|nics?|ib|infiniband|roce|storage|disk|nvme|p2p|peer|cpu|host)(?![a-z])|网|存储|磁盘|内存带宽|主机",
    _I,
)
_SPEC = lazy(
    r"(?<![a-z])(?:spec\w*|data ?sheet|peak|rated|theoretical\w*|nominal|advertised|max(?:imum)?|of)(?![a-z])|标称|规格|理论|峰值|官方",
    _I,
)


def _memory_rate(text: str) -> MemoryRate | None:
    rates, models = [r for r in _rates(text) if not r.bits], _models(text)
    named = _MEMORY_TEST.search(text) or (models and _SOME_BANDWIDTH.search(text) and any(r.gbs > 200 for r in rates))
    if not 0 < len(rates) < 3 or not named or _NO_MEMORY.search(text) or _compares(text):
        return None
    if len(rates) == 1:
        bare = _BARE_SPEC.search(text)
        spec = (
            float(bare["n"] or bare["n2"])
            * (1000 if rates[0].gbs > 100 and float(bare["n"] or bare["n2"]) < 100 else 1)
            if bare
            else 0.0
        )
        return MemoryRate(rates[0].gbs, spec, models) if models or spec else None
    if not _SPEC.search(text) and not _WANTED.search(text):
        return None
    value, spec = sorted(r.gbs for r in rates)
    return MemoryRate(value, spec, models)


# 3.35 is the spec | 规格 3.35: without a unit of its own
_BARE_SPEC = lazy(
    rf"{_N}(?!\s?[tgm]i?b)\s*(?:is|being|by|as|in) (?:the |its )?(?:spec\w*|data ?sheet|peak|rated|theoretical\w*|nominal)|(?:spec\w*|data ?sheet|peak|theoretical\w*|标称|规格|理论)(?:值| is| says|为|是|:|：)*\s*(?P<n2>[0-9]+(?:\.[0-9]+)?)(?!\s?[tgm]i?b)",
    _I,
)


_BUSBW = lazy(
    r"(?<![a-z])(?:bus ?bw|bus bandwidth|all[-_ ]?reduce(?:_perf)?|nccl[- ]?tests?|all[-_ ]?gather|reduce[-_ ]?scatter|nccl (?:bandwidth|bw)|(?:inter|cross|multi)-?\s?node (?:bandwidth|bw))(?![a-z])|总线带宽|(?:跨机|跨节点|多机|机间|节点间|nccl)[^，。；,;0-9]{0,8}带宽",
    _I,
)
# busbw 只有 180: in GB/s, as nccl-tests prints it
_PLAIN_BUSBW = lazy(
    r"(?:bus ?bw|总线带宽)[^0-9,，。;；]{0,10}(?P<n>[0-9]{1,4}(?:\.[0-9]+)?)(?![0-9.]|\s*(?:卡|张|块|台|机|个|gpus?|nodes?|%|[gmt]i?b|x))",
    _I,
)
_SEVERAL = lazy(
    r"(?<![a-z0-9])(?:[2-9]|[1-9][0-9]+|two|three|four|eight|sixteen|multi|both|several)[ -]?nodes?(?![a-z])|(?<![a-z])(?:across|between|over) (?:the |all )?(?:nodes|machines|hosts)|inter-?node|(?<![a-z0-9])(?:[2-9]|[1-9][0-9]+)\s?[x×*]\s?8(?![0-9])|双机|多机|跨机|跨节点|[2-9两二三四八]\s*(?:台|机|个?节点)",
    _I,
)
_SEVERAL_GPUS = lazy(
    r"(?<![0-9a-z.])([0-9]+)\s*(?:x|×|\*)?\s*(?:gpus?|cards?|nvidia|[abhl][0-9]{2,3}s?)(?![0-9])|([0-9]+)\s*(?:卡|张卡|块卡)",
    _I,
)
_NIC = r"(?:nics?|hcas?|ports?|rails?|cx-?[5-8]|connectx-?[5-8]|infiniband|ib|roce|ndr|hdr|edr|xdr|网卡|网口|端口)"
_GBITS = r"(?P<rate>10|25|40|50|100|200|400|800)\s?g(?:b(?:ps|it/s|/s|e)?)?(?![a-z0-9]|/s)"
_MANY_NICS = lazy(
    rf"(?<![0-9a-z.])(?P<many>[0-9]{{1,2}})\s*(?:x|×|\*|张|块|个|条|口)?\s*(?:of\s+)?{_GBITS}|(?<![0-9a-z.])(?P<of>[0-9]{{1,2}})\s*(?:x|×|\*|张|块|个|条)?\s*{_NIC}\s*(?:cards?\s*)?(?:of|at|@|with|each|,|，|每[张块个]|各)?\s*(?P<r2>10|25|40|50|100|200|400|800)\s?g",
    _I,
)
_KINDS = {"edr": 100.0, "hdr": 200.0, "ndr": 400.0, "xdr": 800.0}
_KIND = lazy(
    r"(?:(?<![0-9a-z.])(?P<many>[0-9]{1,2})\s*(?:x|×|\*|张|块|个|条)?\s*)?(?<![a-z])(?P<kind>edr|hdr|ndr|xdr)(?![a-z])",
    _I,
)
_ONE_RATE = lazy(rf"(?<![0-9a-z.]){_GBITS}", _I)


def _nics(text: str, without: Sequence[_Rate]) -> tuple[int, float]:
    """How many network cards of how many Gb/s: "8x400G", "4 nics at 200G", "8 张 400G 网卡", "NDR"; zero of what is not said."""
    bare = text
    for r in without:
        bare = bare[: r.start] + "_" * (r.end - r.start) + bare[r.end :]
    if found := _MANY_NICS.search(bare):
        return int(found["many"] or found["of"]), float(found["rate"] or found["r2"])
    kind, one = _KIND.search(bare), _ONE_RATE.search(bare)
    if kind is not None:
        return int(kind["many"] or 0), _KINDS[kind["kind"].casefold()]
    return 0, float(one["rate"]) if one is not None else 0.0


_OTHER_COLLECTIVE = lazy(r"all[-_ ]?gather|reduce[-_ ]?scatter", _I)  # within a node the table has all-reduce only


def _collective(text: str) -> Collective | None:
    rates = _rates(text) or [_Rate(float(m["n"]), False, m.start(), m.end()) for m in _PLAIN_BUSBW.finditer(text)]
    if not _BUSBW.search(text) or not 0 < len(rates) < 3 or _compares(text):
        return None
    measured = [r for r in rates if not r.bits] or rates[:1]
    if len(measured) != 1:
        return None
    nics, rate = _nics(text, measured)
    each = next((int(g) for m in _SEVERAL_GPUS.finditer(text) for g in m.groups() if g), 0)
    nodes, models = _SEVERAL.search(text) is not None or each > 8, _models(text)
    if _OTHER_COLLECTIVE.search(text) and not nodes:
        return None
    known = {name for e in expected() if e.measure == "all_reduce" for name in e.gpus}
    if not (nodes or (nics and rate)) and (each not in (0, 8) or not any(s.id in known for s in models)):
        return None  # of such a set nothing is known
    return Collective(measured[0].gbs, nodes, each, nics, rate, models)


_PERFTEST = lazy(
    r"(?<![a-z])(?:ib_(?:write|read|send)_bw|perftest|iperf3?|rdma (?:test|bandwidth|write|read))(?![a-z])", _I
)


# IB 400G 测出来 22 GB/s | only 180 Gb/s measured on an NDR port: a network card is named, and that something went over it
_NIC_NAMED = lazy(rf"(?<![a-z]){_NIC}(?![a-z])", _I)
_CARRIED = lazy(
    r"(?<![a-z])(?:measur\w+|tests?|tested|testing|benchmark\w*|reach\w*|achiev\w+|gets?|getting|got|delivers?|throughput|bandwidth|bw)(?![a-z])|测|跑(?:到|出|了|满|不)|打流|压测|带宽|吞吐|传输",
    _I,
)
_NOT_RDMA = lazy(
    r"(?<![a-z])(?:nvlinks?|pcie|h2d|d2h|hbm|dram|nfs|lustre|nvme|disk|storage|files?|read|write|reads|writes|checkpoints?|data ?sets?|download\w*|upload\w*|traffic|idle|nccl|busbw|all[-_ ]?\w*)(?![a-z])|显存|磁盘|硬盘|存储|文件|数据集|下载|流量|空闲|读|写",
    _I,
)


def _rdma(text: str) -> Rdma | None:
    rates = _rates(text)
    if not rates or len(rates) > 2 or not (_PERFTEST.search(text) or _over_network(text)) or _compares(text):
        return None
    reached = min(rates, key=lambda r: r.gbs)  # none carries more than its rate
    nics, rate = _nics(text, [reached])
    if not rate and len(rates) == 2:
        rate = max(r.gbs for r in rates) * 8
    return Rdma(reached.gbs * 8, max(nics, 1), rate) if rate else None


def _over_network(text: str) -> bool:
    """Whether a rate is said to have been reached over a network card, and nothing else that data goes through is named."""
    named = _NIC_NAMED.search(text) is not None and _CARRIED.search(text) is not None
    return named and _NOT_RDMA.search(text) is None


_W = r"(?:w|watts?|瓦)(?![a-z0-9])"
_OF_LIMIT = lazy(
    rf"{_N}\s*(?:{_W})?\s*(?:(?:out\s+)?of|/)\s*(?:(?:its|the|a|an|max|maximum|allowed|limit|of)\s+)*(?P<limit>[0-9]{{2,4}})\s*{_W}"
    rf"|(?<![a-z0-9_.])(?P<n2>[0-9]{{2,4}}(?:\.[0-9]+)?)\s*{_W}\s*(?:(?:out\s+)?of|/)\s*(?:(?:its|the|a|an|max|maximum)\s+)*(?P<limit2>[0-9]{{2,4}})(?![0-9.]|\s*[a-z%]{{1,3}}(?![a-z]))",
    _I,
)
_WATTS = lazy(rf"{_N}\s*{_W}", _I)
_CEILING = lazy(
    rf"(?:limit|cap|tdp|tgp|上限|功耗墙|限制|限额|额定)\s*(?:is|of|at|为|是|=|:|：)?\s*(?P<limit>[0-9]{{2,4}})\s*{_W}|(?P<l2>[0-9]{{2,4}})\s*{_W}\s*(?:的)?\s*(?:power )?(?:limit|cap|tdp|tgp|上限|功耗墙)(?!\s*(?:is|of|at|为|是|=|:|：)?\s*[0-9])",
    _I,
)
_DRAWS = lazy(
    r"(?<![a-z])(?:draw\w*|pull\w*|power|consum\w+|us(?:es|ing)|at|sits?|runs?|burn\w*|eat\w*|pegged|steady|training|inference|serving)(?![a-z])|(?:w|watts?)\s+(?:on|for|from)\s+(?:an?|the|my|our|each|one)(?![a-z])|功耗|功率|耗电|吃|跑|训练|推理",
    _I,
)
_LIMITS = lazy(r"(?<![a-z])(?:limit|cap|default|tdp|tgp|max(?:imum)?)(?![a-z])|上限|功耗墙|额定|默认|最大", _I)
_NO_DRAW = lazy(
    r"(?<![a-z])(?:cap(?:ped|ping)?|undervolt\w*|lower\w*|set|raise|nodes?|servers?|racks?|psus?|chassis|cpus?|system|pdu|throttl\w*|brake|mhz|hang\w*|hung|stuck|%|percent|util\w*|busy)(?![a-z])|[0-9]\s*%|整机|服务器|机柜|节点|机箱|电源|限[到制为]|调|降频|利用率|占用|时钟|频率|卡住|卡死",
    _I,
)


_LISTED = lazy(r"(?:(?<![0-9.])[0-9]{2,4}[\s,，、/]+){3}[0-9]{2,4}")  # several, with a unit at the last


def _draw(text: str) -> Draw | None:
    if _NO_DRAW.search(_CEILING.sub(" ", text)) or _compares(text) or AT_REST.search(text):
        return None
    values = [float(m["n"]) for m in _WATTS.finditer(text)]
    pair, top, models = _OF_LIMIT.search(text), _CEILING.search(text), _models(text)
    limit = 0.0
    if pair is not None and (pair["limit"] or pair["limit2"]):
        watts, limit = float(pair["n"] or pair["n2"]), float(pair["limit"] or pair["limit2"])
    elif top is not None and len(values) == 2:
        limit = float(top["limit"] or top["l2"])
        watts = next((v for v in values if v != limit), limit)
    elif (
        len(values) == 1
        and not _LIMITS.search(text)
        and _DRAWS.search(text)
        and not (_WANTED.search(text) or _LISTED.search(text))
    ):
        watts = values[0]
    else:
        return None
    return Draw(watts, limit, models, _TRAINS.search(text) is not None, _SERVES.search(text) is not None)


_CLOCK = lazy(
    r"(?<![a-z0-9_.])(?P<n>[0-9]+(?:\.[0-9]+)?)\s*(?P<u>[mg]hz)?(?:\s*(?:/|(?:out )?of|，?最大|，?最高)\s*(?:the |its |a )?(?:max(?:imum)? (?:of )?)?(?P<most>[0-9]+(?:\.[0-9]+)?))?\s*(?P<v>[mg]hz)(?![a-z])",
    _I,
)
_NO_CLOCK = lazy(
    r"(?<![a-z])(?:mem(?:ory)?|hbm|vram|cpu|ram|ddr[0-9]?|video|idle|lock(?:ed)?|-lgc|lower|lowers|set|min(?:imum)?|xeon|epyc|fabric|crash\w*|hang\w*)(?![a-z])|显存|内存|空闲|闲置|锁|处理器",
    _I,
)


# sm clock 1980 mem clock 2619: in MHz, as nvidia-smi prints them
_PLAIN_CLOCK = lazy(
    r"(?<![a-z])(?:sm|graphics|core|gpu)\s+(?:clocks?|clk)\s*(?:is|at|of|=|:)?\s*[0-9]{3,4}(?![0-9.]|\s*[mg]hz)|SM\s*(?:时钟|频率)\s*(?:是|为|到)?\s*[0-9]{3,4}(?![0-9.]|\s*[mg]hz)",
    _I,
)
_MEMORY_CLOCK = lazy(
    r"(?:(?<![a-z])(?:and |with )?(?:mem(?:ory)?|hbm|vram)\s+(?:clocks?|clk)|显存(?:时钟|频率))\s*(?:is|at|of|=|:|是|为)?\s*(?P<n>[0-9]{3,5})(?![0-9.])\s*(?:mhz)?",
    _I,
)


def _clock(text: str) -> Clock | None:
    memory = _MEMORY_CLOCK.search(text)
    text = _PLAIN_CLOCK.sub(lambda m: f"{m[0]} MHz", _MEMORY_CLOCK.sub(" ", text))
    values = [*_CLOCK.finditer(text)]
    if len(values) != 1 or _NO_CLOCK.search(text) or _compares(text) or AT_REST.search(text):
        return None
    m = values[0]
    scale = 1000.0 if (m["u"] or m["v"]).casefold() == "ghz" else 1.0
    watts = [float(w["n"]) for w in _WATTS.finditer(text)]
    if len(watts) > 1 or (watts and not _LIMITS.search(text)):
        return None
    most, models = float(m["most"] or 0) * scale, tuple(s for s in _models(text) if s.max_clock_mhz)
    if not (most or models):
        return None
    return Clock(float(m["n"]) * scale, most, watts[0] if watts else 0.0, models, float(memory["n"]) if memory else 0.0)


_MIB = {"m": 1.0, "g": 1024.0, "t": 1024.0**2}
_SIZE = lazy(rf"{_N}\s?(?P<u>[mg])(?:i?b|ig)?(?![a-z0-9/])", _I)
_OF_TOTAL = lazy(
    r"(?<![a-z0-9_.])(?P<n>[0-9]+(?:\.[0-9]+)?)\s?(?P<u>[mg])?(?:i?b)?\s*(?:/|(?:out )?of|，?\s*[总一]?共)\s*(?:the |its |a )?(?P<all>[0-9]+(?:\.[0-9]+)?)\s?(?P<u2>[mg])i?b?(?![a-z0-9/])",
    _I,
)
_UNOWNED = lazy(
    r"(?<![a-z])(?:no|without(?: any)?|zero|0|not a single|not one|not any) (?:running |visible |compute |gpu |python )?(?:process\w*|pids?)(?![a-z])|process(?:es)? (?:list|table) (?:is )?empty|(?:no one|nobody|nothing) (?:is )?(?:running|using|listed|runs|uses)|(?:no|without any) (?:job|program)s?(?: (?:is|are))? (?:running|on it)|no running (?:process\w*|jobs?)"
    r"|没有?(?:任何|一个|看到)?(?:进程|程序|任务|作业|人用)|(?:看|查|找)不到(?:任何)?(?:进程|程序)|无(?:任何)?进程|进程(?:列表|栏)?(?:是|为)?空|0 ?个进程|没人用|没跑(?:任何)?(?:东西|任务|程序)",
    _I,
)
_GPU_MEMORY = lazy(
    r"(?<![a-z])(?:mem(?:ory)?|vram|hbm|gpus?|used|in use|occupied|taken|held|holds?|nvidia-smi)(?![a-z])|显存|占|空卡|显卡|[张块]卡|卡上",
    _I,
)
_NO_MEMORY_HELD = lazy(
    r"(?<![a-z])(?:ram|host|swap|disk|storage|shm|df|scratch|filesystem|partition|mount|cpu|oom|out of memory|kv|free|left|available|batch|bandwidth|checkpoint|model|weights|mig)(?![a-z])|(?<!显)内存|主机|磁盘|硬盘|分区|空闲(?!时|的?卡)|剩|可用|带宽|溢出|不足|模型|权重",
    _I,
)
_UNUSED_CARD = lazy(
    r"空卡|闲置的?卡|空闲(?:的)?卡|(?<![a-z])(?:empty|unused|free|fresh) (?:gpu|card)(?![a-z])|(?<![a-z])(?:gpus?|cards?) (?:is |are )?(?:all )?(?:empty|unused)(?![a-z])",
    _I,
)


def _held(text: str) -> Held | None:
    if not _GPU_MEMORY.search(text) or _NO_MEMORY_HELD.search(_UNUSED_CARD.sub(" ", text)) or _compares(text):
        return None
    unowned = _UNOWNED.search(text) is not None
    if pair := _OF_TOTAL.search(text):
        unit = pair["u2"].casefold()
        used, total = float(pair["n"]) * _MIB[(pair["u"] or unit).casefold()], float(pair["all"]) * _MIB[unit]
        if not total:
            return None  # a GPU of which no size is read: nothing held there is fine
        return Held(used, total, unowned) if used <= total * 1.05 else None
    sizes = list(_SIZE.finditer(MODEL.sub(" ", text)))
    rests = AT_REST.search(text) is not None or _UNUSED_CARD.search(text) is not None
    if len(sizes) != 1 or not (unowned or rests):
        return None
    mib = float(sizes[0]["n"]) * _MIB[sizes[0]["u"].casefold()]
    if not unowned and mib > _RESTING:
        return None  # what is held while it rests is answered by the scale of rest
    return Held(mib, 0.0, unowned)


_RESTING = 700.0  # MiB: at_rest.yaml, memory
_REPORTS = lazy(
    r"(?<![a-z])(?:shows?|showing|reports?|reported|reporting|sees?|has|have|lists?|says|only|total|capacity|detect\w*)(?![a-z])|显示|只有|总共|容量|总量|总显存|看到|识别|认到|报",
    _I,
)
# 买的是 80G: what it should be is held against it
_ORDERED = lazy(
    r"(?<![a-z])(?:bought|ordered|paid for|instead of|rather than|should (?:be|have))(?![a-z])|买的?|订的?|下单|采购|说好|应该?[是为有]|标称|规格|而不是|不是(?:应该)?",
    _I,
)
_NO_TOTAL = lazy(
    r"(?<![a-z])(?:used|usage|in use|us(?:e|es|ing)|alloc\w*|reserv\w*|free|left|available|oom|out of memory|batch|model|weights|fits?|load|leak|process\w*|bandwidth|ram|disk|ecc|rows?|pages?|host|swap|shm|/s|takes?|hold\w*)(?![a-z])|占|已用|用了|使用|空闲|剩|可用|进程|带宽|溢出|模型|主机|(?<!显)内存",
    _I,
)


def _size(text: str) -> Size | None:
    models = _models(text)
    if (
        not models
        or _ORDERED.search(text)
        or not _REPORTS.search(text)
        or _NO_TOTAL.search(text)
        or _compares(text)
        or _OF_TOTAL.search(text)
    ):
        return None
    sizes = [m for m in _SIZE.finditer(MODEL.sub(" ", text)) if "b" in m[0].casefold()]
    if len(sizes) != 1 or _WANTED.search(text):
        return None
    return Size(float(sizes[0]["n"]) * _MIB[sizes[0]["u"].casefold()], models)


_CELSIUS = lazy(
    r"(?<![a-z0-9_.])(?P<n>[0-9]{2,3}(?:\.[0-9])?)\s*(?:°\s?c|℃|c(?![a-z0-9])|度|摄氏度|degrees?(?: c(?:elsius)?)?|celsius|deg)",
    _I,
)
_ASKS_FINE = lazy(
    r"(?<![a-z])(?:ok|okay|fine|normal|usual|good|bad|safe|too (?:hot|high|warm)|hot|high|worry\w*|problem|expected|alright)(?![a-z])|正常|没事|有事|好事|好吗|问题|高吗|高不高|偏高|太高|烫|可以|行|热",
    _I,
)
_NO_HEAT = lazy(
    r"(?<![a-z])(?:cpus?|nvme|ssds?|disks?|drives?|inlet|outlet|ambient|coolant|water|liquid|loop|room|optics?|transceivers?|switch\w*|nics?|hcas?|psus?|dimms?|bmc|vrms?|backplanes?|racks?|chassis|chipsets?|pch|mainboards?|motherboards?|exhaust|raid|hba|infiniband|connectx|mlx5\w*|fan|throttl\w*|mhz|slow\w*|shut\w*)(?![a-z])|进风|出风|水温|机房|机柜|机箱|背板|主板|芯片组|处理器|内存条|环境|光模块|交换机|网卡|电源|硬盘|风扇|降频|慢",
    _I,
)


def _heat(text: str) -> Heat | None:
    values = [float(m["n"]) for m in _CELSIUS.finditer(text)]
    if (
        len(values) != 1
        or not _ASKS_FINE.search(text)
        or _NO_HEAT.search(text)
        or _compares(text)
        or AT_REST.search(text)
    ):
        return None
    memory = re.search(r"(?<![a-z])(?:mem(?:ory)?|hbm|vram)(?![a-z])|显存", text, _I)
    return Heat(values[0], ranges()["temperature-memory" if memory else "temperature-core"])


# Measures of a job that are no reading of a machine.
_OF_JOB = ("mfu", "hfu", "goodput", "exposed-communication", "communication-overlap")
_PERCENT = lazy(
    r"(?<![a-z0-9_.])(?P<n>[0-9]{1,3}(?:\.[0-9]+)?)\s*(?:%|percent|个点)|(?<![a-z0-9_.])(?P<part>0\.[0-9]{1,3})(?![0-9a-z])",
    _I,
)


def _share(text: str) -> Share | None:
    values = [*_PERCENT.finditer(text)]
    if not values or _compares(text):
        return None
    for name in _OF_JOB:
        measure = ranges()[name]
        places = [m.start() for a in measure.aliases for m in _called(a).finditer(text)]
        if not places:
            continue
        near = min(values, key=lambda m: min(abs(m.start() - p) for p in places))
        return Share(float(near["n"]) if near["n"] else 100 * float(near["part"]), measure)
    return None


def _called(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z]){re.escape(name)}(?![a-z])", _I)


_TIME = r"([0-9]+(?:\.[0-9]+)?)\s?(ms|毫秒|s|secs?|seconds?|秒|min(?:utes?)?|分钟)?(?![a-z0-9])"
_STEP = lazy(r"(?<![a-z])(?:steps?|iter(?:ation)?s?|batch(?:es)?|epochs?)(?![a-z])|步|迭代", _I)
_NOW_AND_THEN = lazy(
    r"(?<![a-z])(?:now and (?:then|again)|sometimes|occasional\w*|once in a while|from time to time|every (?:now|so often|few|couple|once|[0-9]+)|sporadic\w*|random\w*|periodic\w*|intermittent\w*|spik\w+|outliers?|hiccups?|some (?:steps?|iterations?|of them)|a few steps?|one step in)(?![a-z])"
    r"|偶尔|有时|时不时|每隔|每[跑训过]? ?[0-9]+ ?[步个分]|每(?:到|次到?|个)? ?epoch|又回来|又恢复|又下来|反复|来回|突然|间或|个别|尖峰|毛刺|抖动|飙|忽然|隔一?会|一会|不定期|偶发",
    _I,
)
_STEP_TIMES = lazy(rf"(?<![a-z0-9_.]){_TIME}", _I)
_EVERY = lazy(
    r"(?:every|each)\s+(?:[0-9]+(?:st|nd|rd|th)?|few|couple of)\s*(?:steps?|iterations?|minutes?|min)|每[隔跑训过]?\s*[0-9]+\s*(?:个)?(?:步|迭代|iter\w*|steps?|分钟)|每(?:到|次到?|个)?\s*epoch\s*(?:结束|末尾?|完|之后|后|开头|开始)|(?:at|after) the end of (?:each|every) epoch",
    _I,
)
_PAUSES = lazy(r"(?<![a-z])(?:slow|pauses?|stalls?|hangs?|freezes?|stops?)(?![a-z])|慢|卡|停|顿", _I)
_BEFORE = lazy(
    r"(?<![a-z])(?:last (?:week|month|night|time)|yesterday|used to|before(?! the)|since|previously|other (?:ranks?|gpus?|nodes?|jobs?))(?![a-z])|上周|昨[天晚]|以前|之前|原来|其他(?:rank|卡|节点|机)",
    _I,
)


def _spikes(text: str) -> Spikes | None:
    if not _STEP.search(text) or not _NOW_AND_THEN.search(text) or _BEFORE.search(text):
        return None
    every = _EVERY.search(text)
    times = _seconds(text if every is None else text.replace(every[0], " "))
    if every is not None and len(times) == 1 and _PAUSES.search(text):
        return Spikes(0.0, times[0], every[0])
    if len(times) != 2 or times[0] == times[1]:
        return None
    return Spikes(min(times), max(times), every[0] if every else "")


def _seconds(text: str) -> list[float]:
    """The times of a text, in seconds; one without a unit has that of its neighbour: "from 3 to 9 s"."""
    found = [(float(m[1]), m[2]) for m in _STEP_TIMES.finditer(text)]
    units = [u for _, u in found if u]
    if not units:
        return []
    scale = {"ms": 0.001, "毫秒": 0.001, "m": 60.0, "分": 60.0}
    out = []
    for number, unit in found:
        said = (unit or units[0]).casefold()
        out.append(number * (scale.get(said) or scale.get(said[0], 1.0)))
    return out


_QUANTILE = lazy(
    r"(?:(?<![a-z0-9])(?P<a>p[0-9]{2}|median|mean|avg|max|平均|中位数?|最大)\s*(?:steps?|step time|iterations?|步时?)?\s*(?:is|of|takes?|=|:|：|为|是)?\s*(?P<va>[0-9]+(?:\.[0-9]+)?)\s?(?P<ua>ms|毫秒|s|secs?|秒)?(?![a-z0-9]))|(?:(?<![a-z0-9_.])(?P<vb>[0-9]+(?:\.[0-9]+)?)\s?(?P<ub>ms|毫秒|s|secs?|秒)?\s*(?:\(|at |at the )?(?P<b>p[0-9]{2}|median|mean|avg|max)(?![a-z0-9]))",
    _I,
)
_MIDDLE = ("p50", "median", "mean", "avg", "平均", "中位", "中位数")


def _spread(text: str) -> Spread | None:
    if not _STEP.search(text) or _BEFORE.search(text):
        return None
    found = [
        ((m["a"] or m["b"]).casefold(), float(m["va"] or m["vb"]), (m["ua"] or m["ub"] or "").casefold())
        for m in _QUANTILE.finditer(text)
    ]
    unit = next((u for _, _, u in found if u), "")  # one without has that of the first
    said = {name: number * (0.001 if (u or unit) in ("ms", "毫秒") else 1.0) for name, number, u in found}
    middle = next((said[n] for n in _MIDDLE if n in said), 0.0)
    upper = next(((n, v) for n, v in said.items() if n not in _MIDDLE), None)
    if not middle or not unit or upper is None or upper[1] < middle:
        return None
    return Spread(middle, upper[1], upper[0])


_SPACE = lazy(r"no space left|enospc|disk full error|空间不足|没有空间|磁盘(?:已)?满|设备上没有空间", _I)
_ROOM = lazy(
    r"(?<![a-z])(?:df|du)(?![a-z])[^.;。；]{0,40}?(?:plenty|space|room|free|available|only|[0-9]+\s?(?:%|[gt]i?b?)|ok|fine|half)|(?:plenty|lots|enough|half|[0-9]+ ?[gt]b?)(?: of)? (?:the )?(?:disk )?(?:space|room|free)|df[^。；]{0,20}(?:还有|剩|空|够|[0-9]+\s?(?:%|[gt]))|(?:还有|还剩)[^。；]{0,8}(?:空间|[0-9]+\s?[gt]b?)|空间(?:还)?(?:很多|够|充足)",
    _I,
)


def _no_space(text: str) -> NoSpace | None:
    return NoSpace() if _SPACE.search(text) and _ROOM.search(_SPACE.sub(" ", text)) else None


_UTIL = lazy(r"(?<![a-z])(?:gpu[- ]?)?util\w*(?![a-z])|利用率|使用率", _I)
_NO_UTIL = lazy(
    r"(?<![a-z])(?:cpu|memory|mem|vram|disk|network|cluster|fleet|slow\w*|but|sm|tensor|mfu|hfu|only|hang\w*|stuck|idle|low|why)(?![a-z])|内存|显存|磁盘|网络|集群|慢|但|却|只|卡[住死]|为[什啥何]|空闲",
    _I,
)


def _busy(text: str) -> Busy | None:
    values = [*_PERCENT.finditer(text)]
    if len(values) != 1 or not values[0]["n"] or not _UTIL.search(text) or _NO_UTIL.search(text):
        return None
    percent = float(values[0]["n"])
    return Busy(percent) if _BUSY <= percent <= 100 and _ASKS_FINE.search(text) and not _compares(text) else None


_BUSY = 75.0  # %: ranges.yaml, gpu-utilization
_READERS: tuple[Callable[[str], Figure | None], ...] = (
    _no_space,
    _spikes,
    _spread,
    _share,
    _rdma,
    _collective,
    _memory_rate,
    _host_copy,
    _draw,
    _clock,
    _held,
    _size,
    _heat,
    _busy,
)
