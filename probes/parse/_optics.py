"""What a module of a cable tells of itself, as facts: shared by ``ethtool -m`` and ``mlxlink -m``.

A module is an object of its node, named after the interface it is in. Powers and margins are told for lanes that carry light:
lanes of a module that are not used, and passive copper, have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from knowledge.observation import Scope, Status, Subject
from knowledge.record import dataclass
from probes.parse._app_emit import Emitter

FACTS = (
    "optics.of_interface", "optics.of_port", "optics.type", "optics.vendor", "optics.part", "optics.medium", "optics.temperature",
    "optics.temperature.margin", "optics.rx.power", "optics.rx.margin", "optics.tx.power", "optics.tx.margin", "optics.dark",
    "optics.alarms",
)  # fmt: skip
DARK = -30.0  # dBm: a microwatt; receivers print -40 or -inf for none at all


@dataclass(slots=True)
class Module:
    """What was printed of one module; powers in dBm, temperatures in degrees Celsius."""

    type: str = ""
    vendor: str = ""
    part: str = ""
    medium: str = ""  # optical, copper; empty when it is not told
    temperature: float | None = None
    hot: float | None = None  # the module's own limits
    rx: list[float] = field(default_factory=list)
    tx: list[float] = field(default_factory=list)
    rx_low: float | None = None
    tx_low: float | None = None
    alarms: list[str] = field(default_factory=list)
    alarms_told: bool = False
    link: bool | None = None  # whether the port has a link


def emit_module(emit: Emitter, name: str, module: Module, of: Subject) -> Subject:
    """Emit the facts; the module as subject."""
    subject = Subject(Scope.OBJECT, f"module of {name}", emit.node)
    relation = "optics.of_port" if of.scope is Scope.PORT else "optics.of_interface"
    emit.fact(relation, subject, f"{of.scope}:{of.id}", excerpt=name)
    for fact, text in (("optics.type", module.type), ("optics.vendor", module.vendor), ("optics.part", module.part)):
        if text:
            emit.fact(fact, subject, text, excerpt=text)
    if module.medium:
        emit.fact("optics.medium", subject, module.medium, excerpt=module.part or module.type)
    _temperature(emit, subject, module)
    _light(emit, subject, module)
    if module.alarms_told:
        shown = ", ".join(module.alarms[:6]) or "no alarm"
        emit.fact("optics.alarms", subject, tuple(module.alarms[:16]), excerpt=shown)
    else:
        emit.missing("optics.alarms", subject, Status.UNSUPPORTED, "this module has no alarms")
    return subject


def _temperature(emit: Emitter, subject: Subject, module: Module) -> None:
    if module.temperature is None or module.medium == "copper":  # copper prints zero
        for fact in ("optics.temperature", "optics.temperature.margin"):
            emit.missing(fact, subject, Status.UNSUPPORTED, "this module does not measure its temperature")
        return
    shown = f"{module.temperature} °C"
    emit.fact("optics.temperature", subject, module.temperature, excerpt=shown)
    if module.hot is None:
        emit.missing("optics.temperature.margin", subject, Status.UNSUPPORTED, "this module names no limit")
    else:
        shown = f"{shown}, limit {module.hot} °C"
        emit.fact("optics.temperature.margin", subject, round(module.hot - module.temperature, 2), excerpt=shown)


def _light(emit: Emitter, subject: Subject, module: Module) -> None:
    used = _used(module)
    if not module.rx or module.medium == "copper":
        why = "copper carries no light" if module.medium == "copper" else "this module does not measure light"
        status = Status.NOT_APPLICABLE if module.medium == "copper" else Status.UNSUPPORTED
        for fact in ("optics.rx.power", "optics.rx.margin", "optics.tx.power", "optics.tx.margin", "optics.dark"):
            emit.missing(fact, subject, status, why)
        return
    shown = "receives " + _lanes(module.rx)
    dark = all(power <= DARK for power in module.rx)
    emit.fact("optics.dark", subject, dark, excerpt=shown)
    rx, tx = [module.rx[i] for i in used], [module.tx[i] for i in used if i < len(module.tx)]
    for way, powers, low, words in (
        ("rx", rx, module.rx_low, shown),
        ("tx", tx, module.tx_low, "sends " + _lanes(module.tx)),
    ):
        off = way == "tx" and module.link is not True and all(power <= DARK for power in powers)  # switched off here
        if not powers or off or (way == "rx" and (dark or module.link is False)):
            for fact in (f"optics.{way}.power", f"optics.{way}.margin"):
                emit.missing(
                    fact, subject, Status.NOT_APPLICABLE, "no lane of this module is in use now", excerpt=words
                )
            continue
        least = min(powers)
        emit.fact(f"optics.{way}.power", subject, least, excerpt=words)
        if low is None:
            emit.missing(
                f"optics.{way}.margin", subject, Status.UNSUPPORTED, "this module names no limit", excerpt=words
            )
        else:
            emit.fact(f"optics.{way}.margin", subject, round(least - low, 2), excerpt=f"{words}; limit {low} dBm")


def _used(module: Module) -> list[int]:
    """Lanes that send or receive."""
    return [i for i, power in enumerate(module.rx) if power > DARK or (i < len(module.tx) and module.tx[i] > DARK)]


def _lanes(powers: Sequence[float]) -> str:
    return ", ".join(f"{power}" for power in powers[:8]) + " dBm"
