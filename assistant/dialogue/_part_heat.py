"""Whether a part that is no GPU is too hot, and where its own limit stands.

NIC: the thermal thresholds in NVIDIA's ConnectX user manuals (warning 105 °C, critical 115 °C); optics: commercial modules are for a case of
0 to 70 °C (QSFP-DD and OSFP specifications), and hold their own thresholds; drives: the warning temperature of the NVMe specification, which
each names (WCTEMP); DIMM: JEDEC JESD79, 85 °C and 95 °C extended; CPU: data sheets of Xeon and EPYC, 95 to 105 °C.
"""

from __future__ import annotations

from typing import NamedTuple

from assistant.dialogue._pages import data_of
from assistant.intent.part_heat import Part, PartHeat
from assistant.render.sheet import Items
from assistant.reply import Reply
from knowledge.language import Text


class _Known(NamedTuple):
    name: Text
    warm: float  # °C from which on it is warm; 0: nobody publishes a limit
    hot: float
    limit: Text  # what the bounds are
    reads: str  # the command that shows value and limits of one's own


_OF = {
    Part.NIC: _Known(
        Text("network card", "网卡"), 90, 105, Text("a ConnectX warns at 105 °C and shuts down at 115 °C", "ConnectX 105 °C 告警、115 °C 关断"),
        "mget_temp -d mlx5_0",
    ),
    Part.OPTICS: _Known(
        Text("optical module", "光模块"), 65, 70, Text("most are for up to 70 °C, and each names its own thresholds", "多数限 70 °C，各模块自带阈值"),
        "ethtool -m IFACE",
    ),
    Part.NVSWITCH: _Known(
        Text("NVSwitch", "NVSwitch"), 0, 0, Text("", ""), "DCGM 858 (now), 859 (slowdown), 860 (shutdown)",
    ),
    Part.DRIVE: _Known(
        Text("drive", "硬盘"), 65, 75, Text("NVMe drives warn and slow down at 70 to 80 °C, each names its own", "NVMe 在 70 至 80 °C 告警并降速，各盘自带阈值"),
        "nvme smart-log /dev/nvme0",
    ),
    Part.DIMM: _Known(
        Text("memory module", "内存条"), 75, 85, Text("DDR is for 85 °C; above it refreshes twice as often, up to 95 °C", "DDR 限 85 °C；超过则加倍刷新，最高 95 °C"),
        "ipmitool sdr type Temperature",
    ),
    Part.CPU: _Known(
        Text("CPU", "CPU"), 85, 95, Text("server CPUs slow down at 95 to 105 °C", "服务器 CPU 在 95 至 105 °C 降频"),
        "sensors",
    ),
}  # fmt: skip


def answer(told: PartHeat, lang: str) -> Reply:
    """In order, warm or too hot in the first word."""
    of, at = _OF[told.part], f"{told.degrees:g} °C"
    if not of.warm:
        head = Text(
            f"It depends: {at} of an {of.name.en} is judged by the limit that it states itself, and none is published. Compare it with the other switches of the node, and with its slowdown limit.",
            f"视情况而定：{of.name.zh} 的 {at} 要看它自己给出的上限，没有公开值。与同机其他 NVSwitch 以及其降频上限比较。",
        )
        state = "depends"
    elif told.degrees >= of.hot:
        head = Text(
            f"Too hot: {of.name.en} at {at}; {of.limit.en}. Look at its cooling: air flow, dust, fans, inlet temperature.",
            f"过热：{of.name.zh} {at}；{of.limit.zh}。检查散热：风道、灰尘、风扇、进风温度。",
        )
        state = "hot"
    elif told.degrees >= of.warm:
        head = Text(
            f"Warm, still within limits: {of.name.en} at {at}; {of.limit.en}. Compare it with its peers, and watch it under load.",
            f"偏热但未超限：{of.name.zh} {at}；{of.limit.zh}。与同类比较，并在负载下观察。",
        )
        state = "warm"
    else:
        head = Text(f"In order: {of.name.en} at {at}; {of.limit.en}.", f"正常：{of.name.zh} {at}；{of.limit.zh}。")
        state = "fine"
    more = Text(
        f"Its value and limits: {of.reads}. The whole server: ipmitool sdr type Temperature.",
        f"查看数值与上限：{of.reads}。整机：ipmitool sdr type Temperature。",
    )
    return Reply(
        lang,
        head.in_(lang),
        (Items((more.in_(lang),)),),
        data=data_of("sum", [], part=str(told.part), celsius=told.degrees, state=state),
    )
