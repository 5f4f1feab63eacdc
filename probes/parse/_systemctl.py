"""``systemctl show``: blocks of ``Key=value`` lines, one a unit, and what they say of a service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from knowledge.lazy import lazy
from knowledge.record import dataclass
from knowledge.text import clean

# Role of a unit on a GPU node; the names that distributions and vendors give it.
ROLES: Mapping[str, tuple[str, ...]] = {
    "fabric_manager": ("nvidia-fabricmanager",),
    "persistence": ("nvidia-persistenced",),
    "dcgm": ("nvidia-dcgm", "dcgm"),
    "imex": ("nvidia-imex",),
    "mps": ("nvidia-mps", "nvidia-cuda-mps"),
    "docker": ("docker",),
    "container_runtime": ("containerd", "crio"),
    "kubelet": ("kubelet", "k3s", "k3s-agent", "rke2-server", "rke2-agent"),
    "slurmd": ("slurmd",),
    "munge": ("munge",),
    "subnet_manager": ("opensm", "opensmd"),
    "time_sync": ("chronyd", "chrony", "ntpd", "ntp", "ntpsec", "systemd-timesyncd", "ptp4l", "phc2sys"),
}
ROLE_OF: Mapping[str, str] = {unit: role for role, units in ROLES.items() for unit in units}
# What keeps the distribution itself tidy: news, metadata, indexes, updates, desktop devices. Nothing that GPU work rests on.
_HOUSEKEEPING = lazy(
    r"(?:fwupd|motd|update-motd|update-notifier|apt|unattended-upgrades|packagekit|dnf|yum|esm-cache|ua|ubuntu-advantage|apport|whoopsie|kerneloops|"
    r"abrt\w*|man-db|[mp]?locate|updatedb|dpkg-db-backup|rhsmcertd|insights-client|landscape-client|snapd|plymouth|cups|bluetooth|bolt|"
    r"ModemManager|avahi-daemon|colord|switcheroo-control|geoclue|pollinate|popularity-contest|sysstat|pmlogger|pmie)(?:[-.@_].{0,200})"
)
# From the state that helps most to the one that helps least: of several units of a role the best counts.
BEST_FIRST = ("running", "starting", "restarting", "failed", "stopped", "not_running", "not_installed")
# Kinds of units that do something when they fail; a device or a scope is made by the kernel or a program.
UNIT = r"[\w@:.\\-]{1,200}\.(?:service|socket|mount|automount|swap|path|timer|target)"
_ESCAPED = lazy(r"\\x([0-9a-f]{2})")
_OF_SYSTEM = lazy(r"/(?:boot|dev|proc|run|snap|sys|tmp|var/lib/snapd)(?:/.*)?|/")  # mounts that no job works on
_UNIT = lazy(UNIT)
_LINE = lazy(r"([A-Z][A-Za-z]{1,60})=(.{0,2000})")


@dataclass(frozen=True, slots=True)
class Unit:
    """One block."""

    properties: Mapping[str, str]
    line: int  # where it begins, from 1

    @property
    def id(self) -> str:
        """``docker.service``"""
        return self.properties.get("Id", "")

    @property
    def role(self) -> str:
        """What it does on a GPU node; empty for other units."""
        return role_of(self.id)

    @property
    def installed(self) -> bool:
        """Whether there is a unit file."""
        return self.properties.get("LoadState", "") not in ("not-found", "")

    @property
    def state(self) -> str:
        """One of `BEST_FIRST`; empty when the words are not known."""
        active, sub = self.properties.get("ActiveState", ""), self.properties.get("SubState", "")
        if not self.installed and active in ("inactive", ""):
            return "not_installed"
        if active == "activating":
            return "restarting" if sub.startswith("auto-restart") else "starting"
        return {"active": "running", "reloading": "running", "refreshing": "running", "failed": "failed",
                "inactive": "stopped", "deactivating": "stopped", "maintenance": "stopped"}.get(active, "")  # fmt: skip

    def shown(self, *names: str) -> str:
        """Some of the lines, as they are printed."""
        return " ".join(f"{name}={self.properties[name]}" for name in names if self.properties.get(name))


def mount_point(unit: str) -> str:
    """Where a unit mounts a file system, as systemd names it: ``data-set\\x2d1.mount`` is /data/set-1; empty for other units."""
    path, _, kind = unit.rpartition(".")
    if kind not in ("mount", "automount"):
        return ""
    return "/" + _ESCAPED.sub(lambda m: chr(int(m[1], 16)), path.strip("-").replace("-", "/"))


def role_of(unit: str) -> str:
    """What a unit does on a GPU node; empty for other units."""
    point = mount_point(unit)
    if point:
        return "" if _OF_SYSTEM.fullmatch(point) else "mount"
    return ROLE_OF.get(unit.removesuffix(".service"), "housekeeping" if _HOUSEKEEPING.fullmatch(unit) else "")


def units(lines: Iterable[str]) -> list[Unit]:
    """The blocks of units, each once (an alias prints the unit that it stands for)."""
    found: dict[str, Unit] = {}
    block: dict[str, str] = {}
    first = number = 0

    def close() -> None:
        unit = Unit(block, first)
        if _UNIT.fullmatch(unit.id):
            found.setdefault(unit.id, unit)

    for number, raw in enumerate(lines, 1):
        match = _LINE.fullmatch(clean(raw).strip())
        if match is None or match[1] in block:
            close()
            block, first = {}, 0
        if match is not None:
            first = first or number
            block[match[1]] = match[2]
    close()
    return list(found.values())


def best(states: Sequence[str]) -> str:
    """The state of a role that several units can play; empty when none is known."""
    return next((state for state in BEST_FIRST if state in states), "")
