"""``dmidecode`` (or ``dmidecode -t memory``): slots and modules of the host's memory.

Text as dmidecode 3.x prints type 17, "Memory Device". Channels are told from the names of the slots, and only where
every slot is named in one of the ways that boards of GPU nodes use: ``P0 CHANNEL A`` with ``DIMM 0``, ``CPU1_DIMM_A1``,
``P1-DIMMA1``, ``A1`` (Dell), ``PROC 1 DIMM 4``, ``CPU0_C0D1``, ``P0_Node0_Channel3_Dimm0``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import field

from knowledge.observation import Observation, Status, node
from knowledge.record import dataclass
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat

NAME, REVISION = "dmidecode", 1
PROVIDES = (
    "node.memory.slots", "node.memory.modules", "node.memory.module_kinds", "node.memory.speed",
    "node.memory.speed.rated", "node.memory.channels", "node.memory.channels.empty", "node.memory.sockets.uneven",
)  # fmt: skip
MAIN = ("node.memory.slots",)
_HANDLE = re.compile(r"Handle 0x[0-9A-Fa-f]{4}, DMI type (\d{1,3}), \d{1,5} bytes")
_FIELD = re.compile(r"\s{1,8}([A-Z][A-Za-z ]{1,40}): ?(.{0,120})")
_SIZE = re.compile(r"(\d{1,9}) (kB|MB|GB|TB)")
_UNIT = {"kB": 1 / 1024, "MB": 1, "GB": 1024, "TB": 1 << 20}
_SPEED = re.compile(r"(\d{1,6}) M[TH][/z]s?")
_VOLATILE = ("DRAM", "", "Unknown", "<OUT OF SPEC>", "None")  # Memory Technology; persistent modules are no main memory
# A9: the ninth slot of the first socket, on the first of eight channels or the ninth of twelve, which is not told
_NUMBERED = re.compile(r"(?:^|/ )(?P<socket>[AB])(?P<channel>\d{1,2})$")
# socket and channel from "bank locator / locator"
_PLACES = (
    re.compile(r"P(?:ROC ?)?(?P<socket>\d{1,2}) CHANNEL (?P<channel>[A-Z]{1,2})\b", re.IGNORECASE),
    re.compile(r"P(?P<socket>\d{1,2})_Node\d{1,2}_Channel(?P<channel>\d{1,2})_Dimm\d", re.IGNORECASE),
    re.compile(r"NODE (?P<socket>\d{1,2}) CHANNEL (?P<channel>\d{1,2}) DIMM \d", re.IGNORECASE),
    re.compile(r"CPU(?P<socket>\d{1,2})_(?:DIMM_)?(?P<channel>[A-Z])\d\b"),
    re.compile(r"CPU(?P<socket>\d{1,2})_C(?P<channel>\d{1,2})D\d\b"),
    re.compile(r"P(?P<socket>\d{1,2})-DIMM(?P<channel>[A-Z])\d\b"),
    _NUMBERED,
    re.compile(r"DIMM_(?P<channel>[A-Z])\d\b"),
)


@dataclass(slots=True)
class _Slot:
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> float | None:
        """MiB of the module; 0 for an empty slot, None when it is not told."""
        text = self.fields.get("Size", "")
        if text == "No Module Installed":
            return 0
        found = _SIZE.fullmatch(text)
        return int(found[1]) * _UNIT[found[2]] if found else None

    @property
    def place(self) -> str:
        return f"{self.fields.get('Bank Locator', '')} / {self.fields.get('Locator', '')}".strip()


def sniff(head: str) -> int:
    """95 for the tool's headline, 80 for a part of its output."""
    if re.search(r"(?m)^# dmidecode \d", head[:400]):
        return 95
    return 80 if _HANDLE.search(head) and "\tLocator:" in head else 0


def parse(text: str, context: Context) -> list[Observation]:
    """How many slots and modules there are, of which kind, how fast, and which channels stand empty."""
    slots = [s for s in _slots(text) if s.fields.get("Memory Technology", "") in _VOLATILE and _main(s)]
    here, source = node(context.host), context.at(NAME, REVISION)
    out: list[Observation] = []

    def add(fact: str, value: object, shown: str) -> None:
        plain = value if isinstance(value, int | tuple) else None
        out.append(Observation(fact, here, plain, Status.OK, source, excerpt=excerpt(shown, 300)))

    if not slots:
        if sniff(text[:65536]):
            said = next((line for line in text.splitlines() if re.search(r"denied|not permitted|No SMBIOS", line)), "")
            status = Status.DENIED if re.search(r"denied|not permitted", said) else Status.UNSUPPORTED
            why = clean(said).strip() or "it describes no memory slot"
            out.append(Observation(MAIN[0], here, None, status, source, detail=excerpt(why)))
        return out
    filled = [s for s in slots if s.size]
    add("node.memory.slots", len(slots), f"{len(slots)} memory devices")
    if all(s.size is not None for s in slots):
        add("node.memory.modules", len(filled), f"{len(filled)} of {len(slots)} hold a module")
    kinds = tuple(sorted({f"{s.fields['Size']} {s.fields.get('Type', '')}".strip() for s in filled}))
    if kinds:
        add("node.memory.module_kinds", kinds, ", ".join(kinds))
    for fact, keys in (
        ("node.memory.speed", ("Configured Memory Speed", "Configured Clock Speed")), ("node.memory.speed.rated", ("Speed",)),
    ):  # fmt: skip
        speeds = [_speed(s, keys) for s in filled]
        known = [n for n in speeds if n]
        if known and len(known) == len(speeds):
            add(fact, min(known), f"{keys[0]}: {min(known)} MT/s")
    _channels(slots, add)
    return out


def _main(slot: _Slot) -> bool:
    """System memory: not the flash of the firmware, nor memory on a card."""
    return slot.fields.get("Type", "") not in ("Flash", "ROM", "EEPROM", "Logical non-volatile device")


def _slots(text: str) -> list[_Slot]:
    found: list[_Slot] = []
    inside = False
    for line in text.splitlines()[:200000]:
        if handle := _HANDLE.match(line):
            inside = handle[1] == "17"
            if inside:
                found.append(_Slot())
        elif inside and (entry := _FIELD.match(line)):
            found[-1].fields.setdefault(entry[1], clean(entry[2]).strip())
    return [slot for slot in found if slot.fields]


def _speed(slot: _Slot, keys: tuple[str, ...]) -> int | None:
    text = next((slot.fields[key] for key in keys if key in slot.fields), "")
    found = _SPEED.match(text)
    return int(found[1]) if found else None


def _channels(slots: list[_Slot], add: object) -> None:
    assert callable(add)
    sizes: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    numbered = False
    for slot in slots:
        found = next((m for pattern in _PLACES if (m := pattern.search(slot.place))), None)
        if found is None or slot.size is None:
            return  # one slot that is named another way, and nothing is known of the channels
        numbered = numbered or found.re is _NUMBERED
        socket = found.groupdict().get("socket") or "0"
        sizes[socket][found["channel"].upper()] += slot.size
    every = [
        (socket, channel, size)
        for socket, channels in sorted(sizes.items())
        for channel, size in sorted(channels.items())
    ]
    if len(every) < 2:
        return
    if not numbered:
        empty = tuple(f"socket {socket} channel {channel}" for socket, channel, size in every if not size)
        add("node.memory.channels", len(every), f"{len(every)} channels of {len(sizes)} sockets")
        add("node.memory.channels.empty", empty, ", ".join(empty) or "every channel holds a module")
    if len(sizes) > 1:
        totals = {socket: sum(channels.values()) for socket, channels in sizes.items()}
        shown = ", ".join(f"socket {socket}: {total:g} MiB" for socket, total in sorted(totals.items()))
        add("node.memory.sockets.uneven", len(set(totals.values())) > 1, shown)


FORMAT = DocumentFormat(NAME, "dmidecode -t memory", REVISION, PROVIDES, sniff, parse)
