"""``dcgmi discovery -l``: the GPUs that DCGM knows, by its number, with address and UUID.

How many there are stands above the table: a table with fewer is cut. DCGM may number GPUs otherwise than the driver, so the
address and the UUID name them here, and the number ties nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from knowledge.identity import UNKNOWN_PCI, normalise_pci
from knowledge.observation import Observation, Status, gpu, node
from knowledge.text import clean, digits, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "dcgmi-discovery", 2
PROVIDES = ("gpu.name", "gpu.uuid", "node.gpu.listed", "node.nvswitch.listed")
# 8 GPUs found.        1 GPU found (Active).
_COUNT = re.compile(r"(\d{1,4}) GPUs? found(?: \(\w{1,12}\))?\.\s{0,80}")
# 4 NvSwitches found.
_SWITCHES = re.compile(r"(\d{1,3}) NvSwitch(?:es)? found\.\s{0,80}")
# | GPU ID | Device Information                                                   |
_HEAD = re.compile(r"\| GPU ID \| Device Information\s{1,100}\|\s{0,80}")
# | 0      | Name: NVIDIA H100 80GB HBM3 ... |        |        | PCI Bus ID: 00000000:1B:00.0 ... |
_CELL = re.compile(r"\|\s{1,8}(\d{0,4})\s{0,8}\|\s{1,8}(Name|PCI Bus ID|Device UUID): (.{1,100}?)\s{1,100}\|\s{0,80}")


def sniff(head: str) -> int:
    """94 for the heading of the table."""
    return 94 if any(_HEAD.fullmatch(clean(line.text[:300])) for line in lines_of(head)[:30]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Name and UUID of each GPU, how many are listed (failed where more are announced), and how many NVSwitches."""
    out: list[Observation] = []
    told, devices = "", 0
    for line in lines_of(text):
        shown = clean(line.text[:200]).strip()
        if found := _COUNT.fullmatch(shown):
            told = found[1]
        elif found := _SWITCHES.fullmatch(shown):
            at = context.at(NAME, REVISION, line.number)
            out.append(Observation("node.nvswitch.listed", node(context.host), int(found[1]), source=at, excerpt=shown))
    for device, line in _devices(text):
        devices += 1
        out += _gpu(device, line, context)
    announced = digits(told) if told else None
    at, listed = context.at(NAME, REVISION, 1), node(context.host)
    if announced is not None and announced != devices:
        why = f"the listing ends early: {announced} GPUs are announced and {devices} listed"
        return [*out, Observation("node.gpu.listed", listed, None, Status.FAILED, at, detail=why)]
    if devices:
        out.append(Observation("node.gpu.listed", listed, devices, source=at, excerpt=f"{devices} GPUs found"))
    return out


def _devices(text: str) -> Iterator[tuple[dict[str, str], Line]]:
    """The cells of each GPU that has an address, by their names, with the line of its first."""
    device: dict[str, str] = {}
    first = Line(0, "")
    for line in (*lines_of(text), Line(0, "| 0 | Name: end |")):
        cell = _CELL.fullmatch(clean(line.text[:300]))
        if cell is None:
            continue
        if cell[1]:
            if "PCI Bus ID" in device:
                yield device, first
            device, first = {}, line
        device[cell[2]] = cell[3]


def _gpu(device: dict[str, str], line: Line, context: Context) -> list[Observation]:
    address = normalise_pci(device["PCI Bus ID"])
    if address.startswith(UNKNOWN_PCI):
        return []
    subject, at = gpu(address, context.host), context.at(NAME, REVISION, line.number)
    out = []
    for fact, key in (("gpu.name", "Name"), ("gpu.uuid", "Device UUID")):
        value = device.get(key, "")
        if value.startswith("<<<"):  # <<<NULL>>> is what DCGM prints for a field that it could not read
            out.append(Observation(fact, subject, None, Status.FAILED, at, detail=f"DCGM prints {value}"))
        elif value:
            out.append(Observation(fact, subject, value, source=at, excerpt=excerpt(f"{key}: {value}")))
    return out


FORMAT = DocumentFormat(NAME, "dcgmi discovery -l", REVISION, PROVIDES, sniff, parse)
