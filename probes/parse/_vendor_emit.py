"""What the parsers of other vendors' tools share: one GPU under its names, and printed values as facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.identity import UNKNOWN_PCI, normalise_pci
from knowledge.observation import Event, Observation, Status, Subject, gpu
from knowledge.text import clean
from probes.base import Context
from probes.parse._app_emit import Emitter
from probes.parse._json import DECODER
from probes.parse._smi_values import Reading, absent, not_understood, parse_number

MIB = {"b": 2.0**-20, "kb": 2.0**-10, "mb": 1.0, "mib": 1.0, "gb": 2.0**10, "gib": 2.0**10}  # the tools' MB are MiB
CELSIUS = {"c": 1.0, "": 1.0}
WATTS = {"w": 1.0, "": 1.0, "mw": 0.001}
PERCENT = {"%": 1.0, "": 1.0}
MHZ = {"mhz": 1.0, "": 1.0, "ghz": 1000.0}
PLAIN = {"": 1.0}
_MOST = 1024  # GPUs of one output
_START = re.compile(r"^[\[{]", re.MULTILINE)
_AHEAD = "\ufeff \n\t"  # a mark of byte order and blanks, as editors and shells put them ahead
NONE_LISTED = "the document is cut, or lists no GPU"
_TRIES = 8  # lines of warnings may begin with a bracket


REFUSED = "vendor_tool_refused"
# What a tool says in place of a list -> what stands in its way, the more exact first.
_REFUSALS = (
    # Unable to open /dev/kfd read-write: Permission denied        train is not member of "render" group, the default DRM access group.
    ("denied", re.compile(r"Permission denied|is not member of \"")),
    # Unable to get devices, driver not initialized (amdgpu not found in modules)        ROCk module is NOT loaded, possibly no GPU devices
    ("not_loaded", re.compile(r"not found in modules|module is NOT loaded|check amdgpu version and module status")),
    # dcmi module initialize failed. ret is -8005
    ("unreachable", re.compile(r"dcmi module initialize failed|DrvMngGetConsoleLogLevel failed")),
)


def opens(text: str) -> str:
    """The first character of what was printed: a bracket, where it is a document."""
    return text.lstrip(_AHEAD)[:1]


def table(value: object) -> Mapping[str, Any]:
    """`value` when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def tables(value: object) -> list[Mapping[str, Any]]:
    """The JSON objects of an array; of one object, that one."""
    if isinstance(value, dict):
        return [value]
    return [item for item in value[:_MOST] if isinstance(item, dict)] if isinstance(value, list) else []


def load(text: str) -> object:
    """The JSON value that begins a line of `text`, perhaps behind lines of warnings; None when there is no whole one."""
    text = text.lstrip(_AHEAD)
    for start, _ in zip(_START.finditer(text), range(_TRIES), strict=False):
        try:
            return DECODER.raw_decode(text, start.start())[0]
        except (ValueError, RecursionError):
            continue
    return None


def words(value: object) -> str:
    """Text of a JSON value on one line; empty for what is no text."""
    return " ".join(clean(value).split())[:400] if isinstance(value, str) else ""


def number(value: object, units: Mapping[str, float], *, whole: bool = False) -> Reading:
    """A printed quantity: ``{"value": 41, "unit": "W"}``, ``41``, ``"41.0"`` or ``"41 W"``; why not, for anything else."""
    unit = ""
    if isinstance(value, dict):
        unit, value = words(value.get("unit")), value.get("value")
    if value is None:
        return Reading(None, Status.UNSUPPORTED, "not told")
    if isinstance(value, str):
        if reading := absent(value):
            return reading
        parsed = parse_number(value)
        if parsed is None:
            return not_understood(value, "a number")
        value, unit = parsed[0], unit or parsed[1]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return not_understood(str(value), "a number")
    factor = units.get(unit.lower())
    if factor is None:
        return not_understood(f"{value} {unit}", f"a number in {', '.join(u for u in units if u) or 'no unit'}")
    if not -1e15 < value < 1e15:  # whole numbers of JSON have no bounds
        return not_understood("a huge number", "a number that a GPU can have")
    found = value * factor
    return Reading(round(found) if whole else float(found))


def text_of(value: object) -> Reading:
    """A printed name; ``N/A`` and the like are none."""
    said = words(value) if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    return (absent(said) or Reading(said)) if said else Reading(None, Status.UNSUPPORTED, "not told")


class VendorEmitter(Emitter):
    """Collects the observations of one output of a tool of `vendor`."""

    def __init__(self, probe: str, revision: int, context: Context, vendor: str) -> None:
        Emitter.__init__(self, probe, revision, context)
        self.vendor = vendor

    def device(self, index: str, bdf: str = "") -> Subject:
        """The GPU that the tool calls `index`; under its address where `bdf` is one. Emits whose it is, and the tie."""
        address = normalise_pci(bdf) if bdf else UNKNOWN_PCI
        name = f"{self.vendor}:{index}"
        known = not address.startswith(UNKNOWN_PCI)
        subject = gpu(address if known else name, self.context.host)
        self.fact("gpu.vendor", subject, self.vendor, excerpt=f"{name} {bdf}".strip())
        if known:
            self.fact("gpu.vendor_index", subject, name, excerpt=f"{name} is {bdf}")
        return subject

    def put(self, fact: str, subject: Subject, reading: Reading, line: int | None = None, shown: str = "") -> None:
        """One observation from a reading."""
        if reading.ok and reading.value is not None:
            self.fact(fact, subject, reading.value, line, shown)
        else:
            self.missing(fact, subject, reading.status, reading.detail, line=line, excerpt=shown)

    def count(self, devices: int) -> None:
        """How many the tool lists."""
        self.fact(f"node.gpus.{self.vendor}", self.node, devices, excerpt=f"{devices} listed")

    def failed(self, why: str, status: Status = Status.FAILED) -> list[Observation]:
        """The tool gave no list; `why`. Where it says that its driver is out of reach, that is an event as well."""
        kind = next((kind for kind, words in _REFUSALS if words.search(why)), None)
        if kind is not None:
            said = clean(why).removeprefix("ERROR:root:")[:160]
            self.fact(
                REFUSED, self.node, Event(None, {"vendor": self.vendor, "kind": kind, "text": said}), excerpt=said
            )
        self.missing(f"node.gpus.{self.vendor}", self.node, status, why, excerpt=why)
        return self.out
