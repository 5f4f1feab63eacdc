"""The temperature of a part that is no GPU, told by itself: "infiniband card at 102 degrees, ok?", CPU 温度 95 度正常吗."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from knowledge.lazy import lazy

_I = re.IGNORECASE
_LONG = 120  # characters


class Part(StrEnum):
    """A part whose temperature people tell."""

    OPTICS = "optics"
    NVSWITCH = "nvswitch"
    NIC = "nic"
    DRIVE = "drive"
    DIMM = "dimm"
    CPU = "cpu"


class PartHeat(NamedTuple):
    """A part and how hot it is said to be, in °C."""

    part: Part
    degrees: float


# The more particular one first: an optical module is told with its port.
_PARTS = (
    (Part.OPTICS, lazy(r"(?<![a-z])(?:optics|optical modules?|transceivers?|q?sfp[a-z0-9+-]*|osfp)(?![a-z])|光模块|光收发器?", _I)),
    (Part.NVSWITCH, lazy(r"(?<![a-z])nv[- ]?switch(?:es)?[0-9]?(?![a-z])", _I)),
    (Part.NIC, lazy(r"(?<![a-z])(?:(?:infiniband|ib|roce|rdma|ethernet|mellanox|network) ?(?:nics?|hcas?|cards?|adapters?)|(?:mellanox )?connect-?x-?[0-9]?|nics?|hcas?|mlx5(?:_[0-9]+)?|network (?:card|adapter)|cx-?[5678])(?![a-z])|(?:ib|infiniband|roce|以太网?)?\s?网卡", _I)),
    (Part.DRIVE, lazy(r"(?<![a-z])(?:nvmes?(?:[0-9]+(?:n[0-9]+)?)?(?: ?(?:ssds?|drives?|disks?))?|ssds?|hard drives?|drives?|disks?)(?![a-z])|固态硬?盘?|硬盘|磁盘", _I)),
    (Part.DIMM, lazy(r"(?<![a-z])(?:dimms?|memory modules?|ram sticks?)(?![a-z])|内存条", _I)),
    (Part.CPU, lazy(r"(?<![a-z])(?:cpus?[0-9]?|xeons?|epycs?)(?: package)?(?![a-z])|处理器", _I)),
)  # fmt: skip
_HEAT = lazy(
    r"(?<![a-z])(?:temp(?:erature)?s?|hot|degrees?|deg|celsius|heat)(?![a-z])|温度|°|摄氏|[0-9]\s?度|[0-9]\s?c(?![a-z0-9])|℃",
    _I,
)
_NUMBER = lazy(r"(?<![\w.-])([0-9]{2,3}(?:\.[0-9])?)(?=\s?(?:°|℃|度|摄氏|c(?![a-z0-9])|deg|[^\w.%/]|$))", _I)
# what may stand beside part and number where nothing else is told
_AROUND = lazy(
    r"(?<![a-z])(?:temp(?:erature)?s?|at|is|are|was|on|of|an?|the|my|our|one|some|gpu|nodes?|servers?|hosts?|machines?|boxe?s?|port|ok|okay|normal|usual|bad|fine|safe|good|too|so|very|hot|warm|worry|worried|worrying|concern(?:ed|ing)?|should|must|i|we|it|its|that|this|degrees?|deg|celsius|c|reading|reads?|shows?|says|hits?|hit|reach(?:es|ed|ing)?|runs?|running|sits?|goes|gets?|went|up|under|with|full|heavy|load|idle|in|for|to|be|high|a problem|problem|and|about|around|over|above|mlx5(?:_[0-9]+)?|critical|dangerous|matter)(?![a-z])"
    r"|温度|摄氏度?|正常|要不要紧|要紧|要不要|满载|空载|负载|节点|机器|服务器|端口|端|可以|问题|怎么办|影响|会不会|危险|没事|关系|过高|有点|需要|处理|[度吗么呢吧不高太过算是有到达了的上这个块张没时会热烫在都已经跑]"
    r"|[°℃\s?？!！。,，;；:：'’()（）=~-]",
    _I,
)


def part_heat(said: str) -> PartHeat | None:
    """The part and the temperature that a sentence tells of it, and nothing else; None for any other."""
    if len(said) > _LONG or not _HEAT.search(said):
        return None
    found = next(((part, m) for part, pattern in _PARTS if (m := pattern.search(said)) is not None), None)
    if found is None:
        return None
    part, where = found
    rest = f"{said[: where.start()]} {said[where.end() :]}"
    numbers = [*_NUMBER.finditer(rest)]
    if len(numbers) != 1:
        return None
    number = numbers[0]
    rest = f"{rest[: number.start()]} {rest[number.end() :]}"
    return None if _AROUND.sub("", rest) else PartHeat(part, float(number[1]))
