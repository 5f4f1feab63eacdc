"""The box that ``amd-smi`` prints without a subcommand (ROCm 7): two lines a GPU, read into the records of its JSON.

UEC is the count of uncorrectable errors; Temp that of the hotspot. Source of the columns: amdsmi_cli of ROCm/amdsmi (7.0 to 7.2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.text import clean
from probes.base import lines_of

# | BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
_HEAD = re.compile(
    r"\|\s{1,10}BDF\s{1,60}GPU-Name\s{1,10}\|\s{1,10}Mem-Uti\s{1,10}Temp\s{1,10}UEC\s{1,20}Power-Usage\s{1,10}\|\s{0,8}"
)
# | 0000:05:00.0    AMD Instinct MI300X | 0 %      38 °C   0           134/750 W |      N/A        N/A   0             N/A/0 W |
_UPPER = re.compile(
    r"\|\s{1,10}([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s{1,40}(\S.{0,40}?)\s{1,10}\|"
    r"\s{1,10}(N/A|\d{1,3} ?%)\s{1,20}(N/A|\d{1,3} ?\u00b0? ?C)\s{1,20}(\S{1,12})\s{1,30}(\S.{0,24}?)\s{1,10}\|\s{0,8}"
)
# |   0       0       7        SPX/NPS1 | 0 %        N/A           285/196592 MB |      0 %     25.49 |      100 %   29.8 % |
_LOWER = re.compile(
    r"\|\s{1,10}(\d{1,4})\s{1,20}\S{1,6}\s{1,20}\S{1,6}\s{1,20}\S{1,20}\s{1,10}\|"
    r"\s{1,10}(N/A|\d{1,3} ?%)\s{1,20}\S{1,8}(?: %)?\s{1,30}(\S.{0,24}?)\s{1,10}\|\s{0,8}"
)
# | AMD-SMI 26.0.0+37d158ab      amdgpu version: 6.14.14  ROCm version: 7.0.0    |
_DRIVER = re.compile(r"\|\s{1,10}AMD-SMI \S{1,40}\s{1,20}amdgpu version: (\d[\w.+-]{1,30})\s")
_OF = re.compile(r"(.{1,12})/(\d{1,9}) ?(MB|W)")


def heads(text: str) -> bool:
    """Whether the heading of the box stands among the first lines."""
    return any(_HEAD.fullmatch(clean(line.text[:200])) for line in lines_of(text)[:20])


def records(text: str) -> list[Mapping[str, Any]]:
    """A record for each GPU of which both lines are there."""
    out: list[Mapping[str, Any]] = []
    upper: re.Match[str] | None = None
    version = ""
    for line in lines_of(text):
        told = clean(line.text[:200])
        if driver := _DRIVER.match(told):
            version = driver[1]
        elif found := _UPPER.fullmatch(told):
            upper = found
        elif upper is not None and (lower := _LOWER.fullmatch(told)):
            out.append(_record(upper, lower, version))
            upper = None
    return out


def _record(upper: re.Match[str], lower: re.Match[str], version: str) -> Mapping[str, Any]:
    power, memory = _OF.fullmatch(upper[6]), _OF.fullmatch(lower[3])
    record: dict[str, Any] = {
        "gpu": int(lower[1]),
        "bus": {"bdf": upper[1]},
        "asic": {"market_name": upper[2]},
        "usage": {"gfx_activity": lower[2], "umc_activity": upper[3]},
        "temperature": {"hotspot": upper[4].replace("\u00b0", "")},
        "ecc": {"total_uncorrectable_count": upper[5]},
    }
    if power:
        record |= {"power": {"socket_power": f"{power[1]} W"}, "limit": {"socket_power": f"{power[2]} W"}}
    if memory:
        record["mem_usage"] = {"used_vram": f"{memory[1]} MB", "total_vram": f"{memory[2]} MB"}
    return record | ({"driver": {"version": version}} if version else {})
