"""What NVMe's health log tells, whoever printed it: field names of the NVM Express base specification, figure "SMART / Health"."""

from __future__ import annotations

import re
from collections.abc import Mapping

from knowledge.observation import Observation, Scope, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context

WARNINGS = ("spare", "temperature", "reliability", "read_only", "backup")  # bits 0 to 4 of critical_warning
LOG_FACTS = (
    *(f"drive.warning.{name}" for name in WARNINGS), "drive.temperature", "drive.spare", "drive.spare.threshold",
    "drive.wear", "drive.media_errors", "drive.errors.logged", "drive.unsafe_shutdowns", "drive.power_on",
    "drive.time_hot", "drive.time_critical", "drive.throttled.heat",
)  # fmt: skip
_COUNTS = {
    "media_errors": "drive.media_errors", "num_err_log_entries": "drive.errors.logged",
    "unsafe_shutdowns": "drive.unsafe_shutdowns", "warning_temp_time": "drive.time_hot",
    "critical_comp_time": "drive.time_critical",
}  # fmt: skip
_SHARES = {"avail_spare": "drive.spare", "spare_thresh": "drive.spare.threshold", "percent_used": "drive.wear"}
UNNAMED = "unknown:drive"  # of a text that does not say which
# nvme0n1, nvme0n1p2 and nvme0c0n1 are of the controller nvme0
_NVME = re.compile(r"(nvme\d{1,4})(?:c\d{1,4})?(?:n\d{1,4})?(?:p\d{1,4})?")


class Sheet:
    """Collects observations about the drives of one document."""

    def __init__(self, context: Context, probe: str, revision: int) -> None:
        self.node = node(context.host)
        self.out: list[Observation] = []
        self._source = context.at(probe, revision)

    def drive(self, name: str) -> Subject:
        """The drive called so, `UNNAMED` for none; a namespace or partition of NVMe stands for its controller."""
        short = " ".join(clean(name).split()).rpartition("/")[2][:60]
        found = _NVME.fullmatch(short)
        return Subject(Scope.OBJECT, found[1] if found else short or UNNAMED, self.node)

    def put(
        self, fact: str, subject: Subject, value: Value, shown: str, status: Status = Status.OK, detail: str = ""
    ) -> None:
        """One observation."""
        self.out.append(
            Observation(fact, subject, value, status, self._source, excerpt=excerpt(shown, 300), detail=excerpt(detail))
        )


def count(value: object) -> int | None:
    """A counter of the log: a number, or one printed as text because it may have 128 bits."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.replace(",", "").strip()
        return int(text) if re.fullmatch(r"\d{1,39}", text) and int(text) < 1 << 63 else None
    return value if isinstance(value, int) and 0 <= value < 1 << 63 else None


def health_log(sheet: Sheet, subject: Subject, log: Mapping[str, object]) -> None:
    """Facts of a log whose fields are named as nvme-cli names them in JSON; temperature in degrees C under ``celsius``."""
    bits = log.get("critical_warning")
    if isinstance(bits, dict):  # nvme smart-log -H -o json
        bits = bits.get("value")
    warning = count(bits)
    if warning is not None:
        for bit, name in enumerate(WARNINGS):
            sheet.put(f"drive.warning.{name}", subject, bool(warning >> bit & 1), f"critical_warning: {warning:#x}")
    celsius = log.get("celsius")
    if isinstance(celsius, float) and -60 < celsius < 200:
        sheet.put("drive.temperature", subject, celsius, f"temperature: {celsius:g} °C")
    for key, fact in _SHARES.items():
        share = count(log.get(key))
        if share is not None and share <= 255:
            sheet.put(fact, subject, float(share), f"{key}: {share}%")
    for key, fact in _COUNTS.items():
        number = count(log.get(key))
        if number is not None:
            sheet.put(fact, subject, number, f"{key}: {number}")
    hours = count(log.get("power_on_hours"))
    if hours is not None:
        sheet.put("drive.power_on", subject, float(hours), f"power_on_hours: {hours}")
    slowed = [count(log.get(f"thm_temp{i}_trans_count")) for i in (1, 2)]
    told = [n for n in slowed if n is not None]
    if told:
        sheet.put("drive.throttled.heat", subject, sum(told), f"thm_temp1/2_trans_count: {' '.join(map(str, told))}")
