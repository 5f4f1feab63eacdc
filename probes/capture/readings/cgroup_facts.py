"""Facts from the counters of control groups: what a process may use, and how long it was held back for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knowledge.observation import Status, Subject
from knowledge.text import clean
from probes.capture.readings import timebase
from probes.capture.readings._telling import Gap, Teller, Told, Window, gap, growth, mapping

LIMIT, SHARE, PERIODS = (
    "process.cgroup.cpu.limit",
    "process.cgroup.throttled.share",
    "process.cgroup.throttled.periods.share",
)


def tell_groups(tell: Teller, subject: Subject, document: Mapping[str, Any], pid: int, window: Window | None) -> None:
    """The tightest quota of a process's group and those above it, and the group that was throttled most."""
    of = mapping(document.get("of")).get(str(pid))
    levels = mapping(of).get("cpu") if "status" not in mapping(of) else of
    if not isinstance(levels, list):
        why = gap(levels, "its control group was not read") or Gap(Status.FAILED, "its control group was not read")
        for fact in (LIMIT, SHARE, PERIODS):
            tell.add(fact, subject, why, f"/proc/{pid}/cgroup")
        return
    groups = {str(level): mapping(mapping(document.get("cpu")).get(str(level))) for level in levels}
    _limit(tell, subject, groups)
    _throttled(tell, subject, groups, window)


def _limit(tell: Teller, subject: Subject, groups: Mapping[str, Mapping[str, Any]]) -> None:
    quotas = {}
    readable = False
    for folder, group in groups.items():
        readable = readable or "quota_us" in group
        quota, period = _last(group.get("quota_us")), _last(group.get("period_us"))
        if quota and period:
            quotas[folder] = (quota / period, f"{quota} us of every {period} us")
    if quotas:
        folder = min(quotas, key=lambda f: quotas[f][0])
        tell.add(LIMIT, subject, float(quotas[folder][0]), clean(folder), f"{clean(folder)}: {quotas[folder][1]}")
        return
    none = "there is no CPU quota on its control groups" if readable else "its control groups have no CPU controller"
    tell.add(
        LIMIT,
        subject,
        Gap(Status.NOT_APPLICABLE if readable else Status.UNSUPPORTED, none),
        ", ".join(list(groups)[:1]),
    )


def _throttled(tell: Teller, subject: Subject, groups: Mapping[str, Mapping[str, Any]], window: Window | None) -> None:
    """The group that was held back most; throttling is counted once for each CPU that the group stood still on."""
    best: tuple[float, str, str] | None = None
    periods: dict[str, tuple[float, float]] = {}
    for folder, group in groups.items():
        at = timebase.times(group.get("at"))
        held, seconds = growth(at, group.get("throttled_ns"), window)
        if seconds <= 0:
            continue
        used, counted = growth(at, group.get("usage_ns"), window)
        share = stood(held, used if counted > 0 else None, seconds)
        shown = f"{clean(folder)}: throttled for {held / 1e6:.1f} ms (all its CPUs together) in {seconds:.3f} s"
        shown += f", {used / 1e6:.1f} ms of CPU used" if counted > 0 else ""
        if best is None or share > best[0]:
            best = (share, folder, shown)
        many, _ = growth(at, group.get("nr_periods"), window)
        periods[folder] = (many, growth(at, group.get("nr_throttled"), window)[0])
    if best is None:
        why = Gap(Status.UNSUPPORTED, "the counters of throttling are not told for its control groups")
        for fact in (SHARE, PERIODS):
            tell.add(fact, subject, why, ", ".join(list(groups)[:1]))
        return
    tell.add(SHARE, subject, best[0], clean(best[1]) + "/cpu.stat", best[2])
    many, throttled = periods[best[1]]
    told: Told = (
        100.0 * min(throttled / many, 1.0) if many >= 1 else Gap(Status.NOT_APPLICABLE, "no period of a quota passed")
    )
    tell.add(PERIODS, subject, told, clean(best[1]) + "/cpu.stat", f"{throttled:.0f} of {many:.0f} periods")


def stood(held: float, used: float | None, seconds: float) -> float:
    """Percent of the window in which a group stood still, from ns throttled over all CPUs and ns of CPU time used.

    On k CPUs that are throttled together the kernel counts k times: throttled / (throttled + used) is the share of one of
    them while the group had work. A group that had little has stood still for no more than what was counted at all.
    """
    most = min(held / (seconds * 1e9), 1.0)
    if used is None or held <= 0:
        return 100.0 * most
    return 100.0 * min(most, held / (held + used))


def _last(values: object) -> int | None:
    if not isinstance(values, list):
        return None
    return next((v for v in reversed(values) if isinstance(v, int) and v > 0), None)
