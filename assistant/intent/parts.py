"""Whose a stated value is, where the sentence calls the part by its name, and what a register's bits say in words.

A drive, a mount, a power supply or a PCI device that is named once is the one that is meant; of several, none. A GPU of
another maker than NVIDIA has that maker's facts, so that no tool of NVIDIA is advised for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from knowledge.identity import UNKNOWN_PCI, normalise_pci
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Scope, Subject

_I = re.IGNORECASE
_UNSAID = f"{UNKNOWN_PCI}?"
# Beginning of a fact -> how a sentence calls the part that it is about.
_NAMES = {
    "drive.": lazy(r"(?<![a-z0-9])(nvme[0-9]{1,3}|sd[a-z]{1,2}|md[0-9]{1,3})(?=n[0-9]|p[0-9]|[^a-z0-9]|$)", _I),
    "fs.": lazy(r"(?<![A-Za-z0-9_.])(/(?:[A-Za-z0-9_.-]{1,40}/?){1,6})(?<!/)(?![A-Za-z0-9/])"),
    "psu.": lazy(
        r"(?<![a-z])((?:psu|power supply)\s?#?[0-9]{1,2})(?!\s*/\s*[0-9]|[0-9])|(?:电源(?:模块)?)\s?[0-9]{1,2}(?![0-9个])|[0-9]{1,2}\s?号\s?电源(?:模块)?",
        _I,
    ),
    "part.": lazy(r"(?<![a-z])((?:pump)\s?#?[0-9]{1,2})(?!\s*(?:of|/)\s*[0-9]|[0-9])", _I),
    "sensor.": lazy(
        r"(?<![a-z])(fan\s?#?[0-9]{1,2}(?![0-9])|[0-9]{1,2}\s?号?\s?(?:风扇|风机)|(?:风扇|风机)\s?[0-9]{1,2}(?![0-9]))",
        _I,
    ),
    "aer": lazy(r"(?<![0-9a-f:])((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?)(?![0-9a-f:])", _I),
}
_ROOT = lazy(
    r"(?<![a-z])root (?:fs|disk|file ?system|partition|volume)|根分区|根目录|(?<![^\s(\"'“])/(?=[\s)\"'”,.;?!，。；？分目盘已满快用使占写]|$)",
    _I,
)
_KIND = lazy(r"(?<![a-z])(lustre|nfs|gpfs|beegfs|weka|ceph|cephfs)(?![a-z])", _I)


def called(o: Observation) -> Observation:
    """`o`, about the part that its sentence names where it was not said which; as it is where none or several are named."""
    pattern = next((p for begins, p in _NAMES.items() if o.fact.startswith(begins)), None)
    if pattern is None or o.subject.id != _UNSAID:
        return o
    found = [m[1] or m[0] for m in pattern.finditer(o.excerpt)]
    names = set(found) if o.fact.startswith("fs.") else {name.casefold() for name in found}  # of paths capitals count
    if not names and o.fact.startswith("fs."):
        names = {"/"} if _ROOT.search(o.excerpt) else {m[1].casefold() for m in _KIND.finditer(o.excerpt)}
    if len(names) != 1:
        return o
    name = names.pop()
    if name == "/dev/shm" and o.fact == "fs.used.share" and o.subject.parent is not None:
        return replace(o, fact="node.shm.share", subject=o.subject.parent)
    if o.subject.scope is Scope.PCI and not (name := normalise_pci(name) or ""):
        return o
    return o.about(Subject(o.subject.scope, name, o.subject.parent))


_LOAD = lazy(r"(?:负载|(?<![a-z])load)\s*(?:是|为|达到?|is|at|of)?\s*[0-9.]+(?![0-9.]|\s*(?:%|percent))", _I)


def per_core(found: Sequence[Observation]) -> Iterator[Observation]:
    """`found`, a load on so many CPUs as the load of each; how many CPUs there are is no reading by itself."""
    cores = {o.subject: o.value for o in found if o.fact == "node.cpu.online"}
    for o in found:
        if o.fact == "gpu.utilization.core" and cores and isinstance(o.value, int | float) and _LOAD.search(o.excerpt):
            o = replace(o, fact="node.load.1m", subject=next(iter(cores)), value=float(o.value))  # 负载 20, 96 核
        of = cores.get(o.subject)
        if o.fact == "node.load.1m" and isinstance(of, int) and isinstance(o.value, float) and of:
            yield o
            o = replace(o, fact="node.load.per_cpu", value=o.value / of)
        if o.fact != "node.cpu.online":
            yield o


_MAKERS = {
    "amd": lazy(r"(?<![a-z])(?:amd(?:gpu)?|instinct|radeon|rocm|mi[0-9]{2,3}[ax]?)(?![a-z])", _I),
    "huawei": lazy(r"(?<![a-z])(?:ascend|npu)(?![a-z])|昇腾", _I),
    "habana": lazy(r"(?<![a-z])(?:gaudi ?[0-9]?|habana)(?![a-z])", _I),
}
_NVIDIA = lazy(r"(?<![a-z])(?:nvidia|nvml|nvrm|xid|[ahb][0-9]{3}s?)(?![a-z0-9])", _I)


def of_maker(found: Sequence[Observation]) -> Iterator[Observation]:
    """`found`, memory errors of a GPU of another maker as that maker counts them, and whose GPU it is."""
    told: dict[Subject, Observation] = {}
    for o in found:
        maker = next((name for name, words in _MAKERS.items() if words.search(o.excerpt)), "")
        if o.subject.scope is not Scope.GPU or not maker or _NVIDIA.search(o.excerpt):
            yield o
            continue
        if o.fact.endswith((".seen", ".growing")):
            continue  # what is advised of these is NVIDIA's: the symptom says more
        told.setdefault(o.subject, replace(o, fact="gpu.vendor", value=maker))
        kind = re.match(r"gpu\.ecc\.[a-z]+\.((?:un)?corrected)\.", o.fact)
        if kind:
            o = replace(o, fact=f"gpu.ras.{kind[1]}")
        elif maker == "amd" and o.fact == "gpu_reset_failed":
            o = replace(o, fact="amdgpu_reset", value=Event(None, {"stage": "failed"}))
        yield o
    yield from told.values()


# NVMe specification, SMART / Health Information, byte 0: what each bit of "Critical Warning" says.
_BITS = ("low spare", "temperature", "reliability", "read only", "backup")
_WARNING = lazy(r"critical[ _]?warnings?\s*(?:is|are|of|was|=|:|为|是)?\s*(0x[0-9a-f]{1,2}|[0-9]{1,3})(?![0-9a-z])", _I)


# NVML: nvmlClocksEventReasons, the bits that hold a clock down, by the names that nvidia-smi gives them.
_REASONS = {
    0x4: "sw power cap",
    0x8: "hw slowdown",
    0x20: "sw thermal slowdown",
    0x40: "hw thermal slowdown",
    0x80: "hw power brake slowdown",
}
_MASK = lazy(
    r"clocks?[ _](?:events?|throttl\w*)[ _]?reasons?(?:[._ ]active)?\s*(?:is|are|of|was|=|:|为|是)?\s*0x([0-9a-f]{1,16})(?![0-9a-z])",
    _I,
)


_DRIVE = lazy(r"(?<![a-z0-9])(nvme)[0-9]{1,3}(?:n[0-9]{1,3})?(?:p[0-9]{1,3})?(?![a-z0-9])", _I)


# aggregate dram uncorrectable | lifetime double bit errors | 累计ECC双比特错误: a history, however it is put
_HISTORY = lazy(
    r"(?:aggregated?|lifetime)\s+(?:(?:dram|sram|hbm|ecc|memory|gpu|total)\s+){0,3}(?P<en>un)?correct(?:able|ed)(?:\s+(?:ecc|dram|sram|memory|errors?|count)){0,4}"
    r"|(?P<un>un)correct(?:able|ed)\s+(?:(?:ecc|dram|errors?)\s+){0,3}(?:aggregate|lifetime)(?:\s+count)?"
    r"|(?:aggregated?|lifetime)\s+(?:(?:dram|ecc|memory)\s+){0,2}(?P<dbe>double[- ]bit|dbes?)(?:\s+(?:ecc|errors?)){0,2}"
    r"|(?:累计|历史累计|历史上?)的?(?:ecc|显存)?的?(?P<zh>不可纠正|双比特|双bit)的?(?:ecc)?(?:错误)?(?:数|计数)?",
    _I,
)
# 历史上有 3 个 dbe
_ONCE_HAD = lazy(
    r"(?:历史上?|以前|累计)(?:总共|一共|累计)?有过?\s*([0-9]{1,6})\s*个?\s*(?:ecc)?\s*(?:dbes?|双比特|双bit|不可纠正|uncorrectable)(?:ecc)?(?:错误)?",
    _I,
)
_LINKS = lazy(r"(?<![a-z])(nvlinks?)(?![a-z])(?P<rest>.{0,80})", _I)
_OF_LINKS = lazy(r"(?<![a-z])(?<!pcie )(?:nvlink )?(replays?|recover(?:y|ies)|crc)(?: errors?)?(?![a-z])", _I)


def plain(clause: str) -> str:
    """`clause` in the words of the facts: a drive without the numbers of its name, the bits of an NVMe critical warning
    as words (``0x04`` is "drive warns of reliability"), counts of a history and of NVLinks by their whole names."""
    clause = _TWO_HEATS.sub(r"核心温度 \1 度 , 显存温度 \2 度", clause)
    clause = _HEATS_BACK.sub(r"显存温度 \1 度 , 核心温度 \2 度", _CLEARED.sub(r"\1 0 , ", clause))
    clause = _SPAN.sub(r"\1 \3", _HELD_OF.sub(r"显存占用 \1 gb , 显存总量 \2 gb", _BECAME.sub(r"\2", clause)))
    if _REMAP.search(clause):
        clause = _OF_REMAP.sub(_of_remap, clause)
    clause = _MASK.sub(_reasons, _WARNING.sub(_in_words, _DRIVE.sub(r"\1", clause)))
    clause = _ONCE_HAD.sub(r" aggregate uncorrectable ecc errors \1 ", clause)
    clause = _HISTORY.sub(lambda m: f"aggregate {'' if m.lastgroup is None else 'un'}correctable ecc errors ", clause)
    return _LINKS.sub(lambda m: m[1] + _OF_LINKS.sub(r"nvlink \1 errors", m["rest"]), clause, count=1)


# 核心 79 显存 94: two temperatures, as no memory is so small
_TWO_HEATS = lazy(
    r"(?:核心|core)\s*(?:温度)?\s*([3-9][0-9]|1[01][0-9])\s*[度c]?\s*[,，、/]?\s*(?:显存|hbm|memory|mem)\s*(?:温度)?\s*([3-9][0-9]|1[01][0-9])(?![0-9.]|\s*(?:[gmt%]|个))\s*[度c]?",
    _I,
)
# 0→3: what it is now
_BECAME = lazy(r"(?<![0-9a-z.:/-])([0-9]{1,7})\s*(?:→|->|=>)\s*([0-9]{1,7})(?![0-9.]|\s*(?:→|->|=>))")
# 显存 76/80: in GB, as cards have so many
_HELD_OF = lazy(
    r"显存\s*(?:占用|用了)?\s*([0-9]{1,3}(?:\.[0-9]+)?)\s*/\s*(16|24|32|40|48|80|94|96|141|180|192|288)(?![0-9.]|\s*[gmt])",
    _I,
)
# 温度 62-68: of a span the greater counts
_SPAN = lazy(
    r"(温度|功耗|功率|利用率|频率|(?<![a-z])(?:temp|power|util|clocks?))\s*(?:都|在|是)*\s*([0-9]{2,4})\s*(?:-|~|至|到)\s*([0-9]{2,4})(?![0-9.:])",
    _I,
)
_HEATS_BACK = lazy(
    r"(?:显存|hbm)\s*(?:温度)?\s*([3-9][0-9]|1[01][0-9])(?![0-9.]|\s*(?:[gmt%]|个))\s*[度c]?\s*了?\s*[,，、/]?\s*(?:核心|core)\s*(?:温度)?\s*([3-9][0-9]|1[01][0-9])(?![0-9.%])\s*[度c]?",
    _I,
)
# volatile 清零了 aggregate 还有 7 个
_CLEARED = lazy(
    r"(?<![a-z])(volatile|aggregate)\s*(?:计数)?(?:都|全|已经?|被|里|面)*(?:清零|归零|全是? ?0|都是? ?0)了?(?![0-9])",
    _I,
)
_REMAP = lazy(r"(?<![a-z])remap|(?<!不可)重映射", _I)
# uncorrectable remapped rows 1 correctable 0 pending no failure no: the rows of nvidia-smi in a line
_OF_REMAP = lazy(
    r"(?<![a-z])(?P<un>un)?correct(?:able|ed)(?:\s+errors?)?(?:\s+(?:remapped\s+rows?|row\s+remaps?|remaps?))?\s*[:=是为有]?\s*(?P<n>[0-9]{1,5})(?![0-9.])"
    r"|(?<![a-z])(?:row\s+remap\w*\s+|remap\w*\s+)?(?P<what>pending|fail(?:ure|ed))(?:\s+occurred)?\s*[:=是为]?\s*(?P<is>yes|no|true|false|[0-9]{1,4}|没有|无|否|是|有)(?![a-z0-9])",
    _I,
)
_WORDS = {"no": "no", "false": "no", "0": "no", "没有": "no", "无": "no", "否": "no"}


def _of_remap(m: re.Match[str]) -> str:
    if m["n"]:
        return f" , {'' if m['un'] else 'correctable '}row remaps {m['n']} , "
    part = "pending" if m["what"].casefold() == "pending" else "failure"
    return f" , row remap {part} {_WORDS.get(m['is'].casefold(), 'yes')} , "


def _reasons(m: re.Match[str]) -> str:
    mask = int(m[1], 16)
    said = [f"{name} active" for bit, name in _REASONS.items() if mask & bit] or ["hw slowdown not active"]
    return f" {' | '.join(said)} "


def _in_words(m: re.Match[str]) -> str:
    number = int(m[1], 0) if m[1][:2].casefold() == "0x" else int(m[1])
    if number >> len(_BITS):
        return m[0]
    said = [f"drive warns of {_BITS[n]}" for n in range(len(_BITS)) if number >> n & 1] or ["drive warns of nothing"]
    return f" {' | '.join(said)} "
