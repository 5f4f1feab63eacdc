"""``mlxlink -d DEVICE -m -c`` as text or with ``--json``: the link, its bit errors, and the module behind it.

Sections and names: mlxlink of mstflint (mlxlink_commander.cpp); docs.nvidia.com/networking/display/mftv4221526lts/mlxlink+Utility.
A value with limits is ``49 [-10..80]``, one for each lane ``1.9,1.8 [-5.0..4.0]``; as JSON lanes may be ``{"values": [...]}``.
A bit error rate is ``15E-255`` where none was seen. Passive copper prints zeros, N/A and loss of signal: none of them counts.
Serial numbers are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.observation import Observation, Scope, Status, Subject
from knowledge.text import clean, digits
from probes.base import Context, DocumentFormat
from probes.parse import _optics
from probes.parse._app_emit import Emitter, clean_lines
from probes.parse._json import DECODER
from probes.parse._optics import Module, emit_module
from probes.parse._whose import UNNAMED, interface, port_number

NAME, REVISION = "mlxlink", 1
OPERATION, SUPPORT, TROUBLE = "Operational Info", "Supported Info", "Troubleshooting Info"
MODULE, COUNTERS = "Module Info", "Physical Counters and BER Info"
RATES = {
    "Effective Physical BER": "port.ber.effective",
    "Raw Physical BER": "port.ber.raw",
    "Symbol BER": "port.ber.symbol",
}
PROVIDES = (
    "port.link.up", "port.link.speed", "port.link.speed.best", "port.fec", "port.link.opcode", "port.link.advice",
    *RATES.values(), "port.ber.seconds", *_optics.FACTS,
)  # fmt: skip
_TITLE = re.compile(
    r"^(Operational Info|Troubleshooting Info|Physical Counters and BER Info)[ \t]{0,8}\n-{8,40}", re.MULTILINE
)
_JSON = re.compile(r'"(?:Operational Info|Troubleshooting Info|Physical Counters and BER Info)"\s{0,8}:\s{0,8}\{')
_RANGE = re.compile(r"\[\s?(-?[\d.]{1,12}?)\s?\.\.\s?(-?[\d.]{1,12})\s?\]")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?(?:[eE][-+]?\d{1,3})?")
# 400G, 100G_4X, 1G; IB-NDR or NDR at 4x
_ETHERNET = re.compile(r"(\d{1,4}(?:\.\d)?)G(?:bE)?(?:_\d{1,2}X)?")
_INFINIBAND = {
    "SDR": 10,
    "DDR": 20,
    "QDR": 40,
    "FDR10": 40,
    "FDR": 56,
    "EDR": 100,
    "HDR": 200,
    "NDR": 400,
    "XDR": 800,
}  # Gb/s at 4x
_ERROR = re.compile(r"-E-\s{0,4}(.{1,200})")


def sniff(head: str) -> int:
    """95 when a section of mlxlink is there, as text or in a document of JSON."""
    text = clean(head)
    return 95 if _TITLE.search(text) or (_JSON.search(text) and text.lstrip("\ufeff \n").startswith("{")) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of the port and of its module."""
    emit = Emitter(NAME, REVISION, context)
    device = interface(text, context)
    name = device if device == UNNAMED else f"{device}/{port_number(text, context)}"
    port = Subject(Scope.PORT, name, emit.node)
    sections, failed = _sections(text)
    if not any(sections.values()):
        found = _ERROR.search(clean(text))
        why = failed or (found[1] if found else "the output shows no link")
        denied = "permission" in why.lower() or "must be root" in why.lower()
        emit.missing("port.link.up", port, Status.DENIED if denied else Status.FAILED, why)
        return emit.out
    up = _link(emit, port, sections.get(OPERATION, {}), sections.get(SUPPORT, {}))
    _trouble(emit, port, sections.get(TROUBLE, {}))
    if COUNTERS in sections:
        _rates(emit, port, sections[COUNTERS], up)
    if sections.get(MODULE):
        emit_module(emit, port.id, _module(sections[MODULE], up), port)
    return emit.out


def _sections(text: str) -> tuple[dict[str, dict[str, str]], str]:
    """Values by section and name, and what the tool says went wrong."""
    start = text.find("{")
    if start >= 0 and _JSON.search(text[:65536]):
        return _of_json(text[start:])
    out: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    previous = ""
    for line in clean_lines(text):
        if set(line.text.strip()) == {"-"}:
            current = out.setdefault(previous.strip(), {})
        elif " : " in line.text:
            name, _, value = line.text.partition(" : ")
            current.setdefault(name.strip(), value.strip())
        previous = line.text
    return {title: values for title, values in out.items() if values}, ""


def _of_json(text: str) -> tuple[dict[str, dict[str, str]], str]:
    try:
        document, _ = DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return {}, "the JSON document is cut"
    status, result = _dict(_dict(document).get("status")), _dict(_dict(document).get("result"))
    body = _dict(result.get("output")) or _dict(document)
    sections = {
        clean(k): {clean(n): _flat(v) for n, v in part.items()} for k, part in body.items() if isinstance(part, dict)
    }
    message = clean(str(status.get("message", "")))
    return {k: v for k, v in sections.items() if k.endswith("Info")}, message if status.get("code") else ""


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("values", "")
    if isinstance(value, list):
        return ",".join(clean(str(item)) for item in value[:32])
    return clean(str(value)).strip() if isinstance(value, str | int | float) else ""


def _link(emit: Emitter, port: Subject, found: Mapping[str, str], support: Mapping[str, str]) -> bool | None:
    state = found.get("State", "")
    up = state.lower() == "active" if state and state != "N/A" else None
    shown = f"State: {state}, {found.get('Physical state', '')}"
    if up is None:
        emit.missing("port.link.up", port, Status.UNSUPPORTED, "the state of the link is not printed")
    else:
        emit.fact("port.link.up", port, up, excerpt=shown)
    lanes = digits(found.get("Width", "").lower().removesuffix("x"), 2) or 0
    speed = _speed(found.get("Speed", ""), lanes if 0 < lanes <= 16 else 4)
    if up and speed:
        emit.fact("port.link.speed", port, speed, excerpt=f"Speed: {found['Speed']}, width {found.get('Width', '?')}")
    if up and found.get("FEC", "N/A") != "N/A":
        emit.fact("port.fec", port, found["FEC"], excerpt=f"FEC: {found['FEC']}")
    best = _best(support)
    if best:
        emit.fact(
            "port.link.speed.best", port, best, excerpt="; ".join(f"{k}: {v}" for k, v in list(support.items())[:2])
        )
    return up


def _speed(text: str, lanes: int = 4) -> float | None:
    """Gb/s of ``400G``, ``100G_4X`` or ``IB-NDR``."""
    word = text.strip().upper().removeprefix("IB-")
    if found := _ETHERNET.fullmatch(word):
        return float(found[1])
    rate = _INFINIBAND.get(word)
    return rate * lanes / 4 if rate else None


def _best(support: Mapping[str, str]) -> float | None:
    """The highest speed that both the port and the cable can do."""
    speeds: list[set[float]] = []
    for key, value in support.items():
        if key.startswith(("Enabled Link Speed", "Supported Cable Speed")):
            words = value.partition("(")[2].rstrip(")").split(",")
            speeds.append({rate for word in words if (rate := _speed(word)) is not None})
    both = set.intersection(*speeds) if len(speeds) == 2 else set()
    return max(both) if both else None


def _trouble(emit: Emitter, port: Subject, found: Mapping[str, str]) -> None:
    code = digits(found.get("Status Opcode", "").split(" ")[0], 8)
    if code is not None:
        shown = f"Status Opcode: {code}, {found.get('Recommendation', '')}"
        emit.fact("port.link.opcode", port, code, excerpt=shown)
    else:
        emit.missing("port.link.opcode", port, Status.UNSUPPORTED, "the state of trouble is not printed")
    if advice := found.get("Recommendation", ""):
        emit.fact("port.link.advice", port, advice.rstrip("."), excerpt=f"Recommendation: {advice}")


def _rates(emit: Emitter, port: Subject, found: Mapping[str, str], up: bool | None) -> None:
    minutes = _NUMBER.fullmatch(found.get("Time Since Last Clear [Min]", ""))
    if minutes:
        emit.fact(
            "port.ber.seconds",
            port,
            round(60 * float(minutes[0]), 1),
            excerpt=f"Time Since Last Clear [Min]: {minutes[0]}",
        )
    for name, fact in RATES.items():
        text = found.get(name, "")
        if _NUMBER.fullmatch(text) and up:
            emit.fact(fact, port, float(text), excerpt=f"{name}: {text}")
        elif name != "Symbol BER" or text:  # only InfiniBand has it
            status = Status.NOT_APPLICABLE if up is False else Status.UNSUPPORTED
            emit.missing(fact, port, status, "the link is down" if up is False else "it is not printed")


def _module(found: Mapping[str, str], up: bool | None) -> Module:
    technology = f"{found.get('Cable Technology', '')} {found.get('Cable Type', '')}".lower()
    module = Module(
        _text(found, "Identifier"), _text(found, "Vendor Name"), _text(found, "Vendor Part Number"), link=up
    )
    if "copper" in technology:
        module.medium = "copper"
    elif any(word in technology for word in ("vcsel", "optic", "laser", "dfb", "eml", "nm ")):
        module.medium = "optical"
    if module.medium == "copper":
        return module
    temperature, _, module.hot = _values(found.get("Temperature [C]", ""))
    module.temperature = temperature[0] if temperature and module.hot is not None else None
    module.rx, module.rx_low, rx_high = _values(found.get("Rx Power Current [dBm]", ""))
    module.tx, module.tx_low, _ = _values(found.get("Tx Power Current [dBm]", ""))
    if rx_high is None:
        module.rx, module.tx = [], []
    for key, words in (("Module FW Fault", "module firmware fault"), ("DataPath FW Fault", "data path firmware fault")):
        if found.get(key, "") in ("0", "1"):
            module.alarms_told = True
            if found[key] == "1":
                module.alarms.append(words)
    faults = found.get("Tx Fault [per lane]", "").split(",")
    module.alarms += [f"transmit fault (lane {i})" for i, value in enumerate(faults, 1) if value.strip() == "1"]
    return module


def _text(found: Mapping[str, str], name: str) -> str:
    value = found.get(name, "")
    return "" if value in ("N/A", "Unknown") else value


def _values(text: str) -> tuple[list[float], float | None, float | None]:
    """Values and limits of ``1.9,1.8 [-5.0..4.0]``; equal limits are a module that has none."""
    limits = _RANGE.search(text)
    numbers = [
        float(word) for word in text.split("[", maxsplit=1)[0].strip().split(",") if _NUMBER.fullmatch(word.strip())
    ]
    if limits is None or not (_NUMBER.fullmatch(limits[1]) and _NUMBER.fullmatch(limits[2])):
        return numbers, None, None
    low, high = float(limits[1]), float(limits[2])
    return (numbers, low, high) if low < high else ([], None, None)


FORMAT = DocumentFormat(NAME, "mlxlink", REVISION, PROVIDES, sniff, parse)
