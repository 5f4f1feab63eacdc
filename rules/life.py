"""Faults have a life: what a boot, a reset or a load of the driver has ended, what came back after it, what is long ago.

A fault is past when each of its events lies before something that cures it, on a time line that both share, and the log
that told of it was read beyond that. It came back when it was seen on both sides. Two times are compared when they were
read from one clock of one source, where the order of the lines says the same; or in UTC, on one machine whose name is
known. What cannot be compared cures nothing: a boot in the log of another machine, or of another year, is none of this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from knowledge.facts import vocabulary
from knowledge.identity import UNKNOWN_PCI
from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Status, Subject
from knowledge.record import dataclass
from rules.factbase import FactBase
from rules.model import Bucket, Cure, Risk, Rule, Severity, Usable
from rules.resolve import OVER_SOON, Advice, Case, buckets, fill

CURES: Mapping[str, Cure] = {"boot": Cure.REBOOT, "driver_loaded": Cure.RELOAD, "gpu_reset": Cure.RESET}
FAILED = "gpu_reset_failed"  # a reset that did not cure what it should have
# An event is told with its age from here on: whoever was on call when it happened has handed over since.
LONG_AGO = 24 * 3600 * 10**9
SHORT = 60 * 10**9  # silence of less says nothing: a job has not even started again
# What is left to do when it came back after this. gpud asks for an inspection of the hardware from the second reboot on.
_NEXT: Mapping[Cure, Bucket] = {
    Cure.RESET: Bucket.RESTART_BM, Cure.RELOAD: Bucket.RESTART_BM, Cure.REBOOT: Bucket.CHECK_MECHANICALS,
}  # fmt: skip
CURE_NAMES: Mapping[Cure, Text] = {
    Cure.RESET: Text("the reset", "复位"),
    Cure.RELOAD: Text("the reload of the driver", "重新加载驱动"),
    Cure.REBOOT: Text("the reboot", "重启"),
}
BACK_AFTER = "gpu.fault.back_after"  # what a person says that it came back after; no log has to tell it then
# What is left to do, by what was told to have been done: of a card that was put in anew the vendor decides, and where another
# card fails too it is not the card. What was "handled" in some way before counts as the cure that the rule advises.
_TOLD: Mapping[str, tuple[Cure, Bucket]] = {
    "reset": (Cure.RESET, Bucket.RESTART_BM),
    "reload": (Cure.RELOAD, Bucket.RESTART_BM),
    "reboot": (Cure.REBOOT, Bucket.CHECK_MECHANICALS),
    "reseat": (Cure.REPLACE, Bucket.CONTACT_SUPPORT),
    "replacement": (Cure.REPLACE, Bucket.CHECK_MECHANICALS),
    "moved": (Cure.REPLACE, Bucket.CONTACT_SUPPORT),
}
_RESEATED = Text(
    "Reseating did not help: drain the node, move the GPU to another slot if there is one, and have it replaced (RMA) if the fault goes with it; if it stays with the slot, have riser, slot and power looked at.",
    "重新插拔未能解决：排空节点，如有条件将该 GPU 换到另一插槽；故障随卡走则申请更换（RMA），留在原插槽则检查转接卡、插槽与供电。",
)
_REPLACED = Text(
    "Another part fails in the same place, so it is not the card: have slot, riser, cables, power and cooling of that place inspected.",
    "换件后同一位置仍出现故障，说明问题不在卡：检查该位置的插槽、转接卡、线缆、供电与散热。",
)
_MOVED = Text(
    "The fault goes with the card, so it is the card: keep nvidia-bug-report.sh and have it replaced (RMA). The slot that it came from is cleared.",
    "故障随卡走，说明问题在卡：保存 nvidia-bug-report.sh 并申请更换（RMA）。原插槽可排除。",
)
_POWER_CYCLE = Text(
    "The reset failed: drain the node and power it off and on (a warm reboot leaves the board powered). If the GPU does not come back, have it replaced (RMA).",
    "复位失败：排空节点并断电再上电（热重启不会给板卡断电）。若 GPU 仍未恢复，申请更换（RMA）。",
)
_COLD = Text("the node has been powered off and on and the GPU is back", "节点已断电再上电且 GPU 恢复")
_LATER = Text("a look that shows otherwise", "结果相反的检查")
_LOOK: Mapping[str, str] = {"nvidia": "nvidia-smi -q -i {gpu_pci}", "amd": "amd-smi metric --ecc --gpu {gpu_pci}"}
_NODE_LOOK = "journalctl -k -b -p err"
_CONFIRM = Text(
    "Confirm that it is over before the node takes work: look at it with the command, then let it pass a diagnostic (dcgmi diag -r 2).",
    "节点接收任务前先确认故障已消除：用该命令查看，再通过一次诊断（dcgmi diag -r 2）。",
)
_CONFIRM_OTHER = Text(
    "Confirm that it is over before the node takes work: look at it with the command, then let it pass the vendor's diagnostic.",
    "节点接收任务前先确认故障已消除：用该命令查看，再通过一次厂商诊断。",
)
_LOOKED_AGAIN = Text(
    "The same output shows otherwise by now. Where nobody has mended it, look again under load: what went by itself comes back by itself.",
    "同一输出此后显示正常。若无人处理过，请在负载下再看一次：自行消失的问题会自行再现。",
)
_CONFIRM_NODE = Text(
    "Confirm that it is over before the node takes work: the kernel must have nothing to say against it since the boot.",
    "节点接收任务前先确认故障已消除：本次启动以来内核日志不应再有相关错误。",
)

Timeline: TypeAlias = tuple[Clock, str, str]


@dataclass(frozen=True, slots=True)
class Life:
    """What became of a fault."""

    cure: Observation  # what ended it, what it came back after, or the later look that shows otherwise
    kind: Cure | None  # None: a later look
    again: bool  # it was seen again, or is still there
    quiet: int | None = None  # ns for which the log goes on without it
    failed: bool = False  # the cure itself failed
    kin: int | None = None  # the XID that it came back after, where that was another face of the same fault
    told: str = ""  # what a person says that it came back after (`BACK_AFTER`)
    same: bool = False  # what told of the fault was read again, and tells otherwise
    often: int = 1  # how many times it was there, with looks without it in between

    @property
    def words(self) -> Text:
        """What its title goes on with; of what is past the title itself is in the past (`past_tense`)."""
        name, at = CURE_NAMES.get(self.kind, _LATER) if self.kind else _LATER, moment(self.cure)
        en, zh = (f"{name.en} at {at}", f"{at} {name.zh}") if at else (name.en, name.zh)
        if self.failed:
            return Text(f", and the reset{f' at {at}' if at else ''} failed", f"，且{at and f' {at} '}复位失败")
        if self.kin is not None:
            return Text(
                f" after {en}, which was for XID {self.kin}", f"（发生于{zh}之后，该次{name.zh}针对 XID {self.kin}）"
            )
        if self.told == "handled":
            return Text(", and not for the first time", "（并非首次）")
        if self.told:
            said = vocabulary()[BACK_AFTER].labels[self.told]
            return Text(f" again after {said.en}", f"（{said.zh}后再次发生）")
        if self.again:
            return Text(f" again after {en}", f"（{zh}后再次发生）")
        when = f" of {at}" if at else ""
        blank = " " if zh[:1].isascii() else ""
        if self.same and self.often > 1:
            return Text(f"; came and went {self.often} times", f"；反复出现 {self.often} 次")
        if self.same:
            return Text(
                f"; not so at the last look{f' ({at})' if at else ''}",
                f"；最后一次查看{f'（{at}）' if at else ''}已非如此",
            )
        if self.kind is None:
            return Text(f", until {name.en}{when}", f"，直到{blank}{zh}")
        if self.quiet is None:
            return Text(f" before {name.en}{when}", f"（在{blank}{zh}之前）")
        if self.quiet < SHORT:
            return Text(
                f" before {name.en}{when}; the log ends soon after that", f"（在{blank}{zh}之前，日志随后即结束）"
            )
        en, zh_long = _long(self.quiet)
        return Text(
            f" before {name.en}{when}; nothing of it in the {en} since",
            f"（在{blank}{zh}之前；此后 {zh_long}内未再出现）",
        )

    @property
    def over(self) -> bool:
        """Whether it is past and confirmed: what told of it tells otherwise, or who was to confirm that has had a day of the log without it."""
        return not self.again and (
            (self.same and self.often == 1) or (self.quiet is not None and self.quiet >= LONG_AGO)
        )

    def severity(self, severity: Severity) -> Severity:
        """A fault that is past is no more than a warning, and after a day of silence no more than information."""
        if self.again:
            return severity
        return Severity.INFO if self.over or severity is Severity.INFO else Severity.WARNING

    def advice(self, given: Advice, case: Case) -> Advice:
        """What is past is to be confirmed first; what came back asks for more than what did not help."""
        return _more(given, case, self) if self.again else _confirm(given, case, self)


def _confirm(given: Advice, case: Case, life: Life) -> Advice:
    device = case.subject.up(Scope.GPU) or next((g for o in case.events if (g := o.subject.up(Scope.GPU))), None)
    vendor = case.facts.read_up("gpu.vendor", device)[1] if device is not None else None
    known = str(vendor.value) if vendor is not None and vendor.status is Status.OK else "nvidia"
    command = _NODE_LOOK if device is None else _LOOK.get(known, "")
    words = _CONFIRM_NODE if device is None else _CONFIRM if known == "nvidia" else _CONFIRM_OTHER
    if life.same:
        words, command = _LOOKED_AGAIN, ""
    usable = Usable.UNKNOWN if given.usable.rank > Usable.UNKNOWN.rank else given.usable
    return replace(
        given, bucket=Bucket.MONITOR, resolver="cure", text=words if life.same else case.rule.action.confirm or words,
        command=fill(command, case.subject, case.facts, case.events), risk=Risk.SAFE,
        usable=Usable.YES if life.over else usable, until=NO_TEXT, then=(), because=(*given.because, life.cure),
    )  # fmt: skip


def _more(given: Advice, case: Case, life: Life) -> Advice:
    spec = case.rule.action
    _, after = _TOLD.get(life.told, (life.kind, _NEXT.get(life.kind or Cure.REBOOT, Bucket.CHECK_MECHANICALS)))
    info = buckets()[spec.again_bucket or after]
    if (words := {"reseat": _RESEATED, "replacement": _REPLACED, "moved": _MOVED}.get(life.told)) is not None:
        info = replace(buckets()[after], text=words)
    if life.failed:
        info = replace(
            buckets()[Bucket.RESTART_BM], text=_POWER_CYCLE, until=_COLD, command="ipmitool chassis power cycle"
        )
    because = (*given.because, life.cure)
    instead = bool(
        spec.again and spec.again_bucket
    )  # what did not help is not to be repeated, though this be the milder word
    if info.strength <= buckets()[given.bucket].strength and not instead:
        return replace(given, because=because)
    own = spec.again if not life.failed and (spec.again_bucket or life.kind is Cure.REBOOT) else NO_TEXT
    own = NO_TEXT if life.told in ("reseat", "replacement", "moved", "handled") and not spec.again_bucket else own
    usable = max(given.usable, info.usable, key=lambda u: u.rank)
    return replace(
        given, bucket=info.bucket, resolver="again", text=own or info.text, command=info.command, risk=info.risk,
        usable=usable, until=info.until, runbook=given.runbook or info.runbook, then=(), because=because,
    )  # fmt: skip


def cures_of(rule: Rule, bucket: Bucket) -> frozenset[Cure]:
    """What ends a finding of `rule` whose action is `bucket`."""
    told = rule.cured_by if rule.cured_by is not None else buckets()[bucket].cured_by
    return frozenset(told or ())


def life_of(
    case: Case, bucket: Bucket, rests_on: Iterable[Observation], contrary: Sequence[Observation] = ()
) -> Life | None:
    """What became of the fault of these events; None when nothing did that is known.

    `rests_on`: what else speaks for it. A state that is not known to be older than the cure says that it is there.
    `contrary`: all that could confirm it, and says that it is not there. Only a look that is later than the fault
    tells of a cure that no log shows.
    """
    kinds = cures_of(case.rule, bucket) - {Cure.REPLACE}
    if kinds and (said := _told_again(case, (*case.events, *rests_on))) is not None:
        value = str(said.value)
        usual = Cure.RESET if Cure.RESET in kinds else Cure.REBOOT
        return Life(said, _TOLD[value][0] if value in _TOLD else usual, again=True, told=value)
    if not case.events:
        return None
    if (failed := _failed(case, bucket)) is not None:
        return Life(failed, Cure.RESET, again=True, failed=True)
    if not kinds:
        return None
    found = _found(case.events, kinds, case.facts)
    again = [c for events, cures in found if (c := _came_back(events, cures)) is not None]
    if again:
        last = max(again, key=_place)
        return Life(last, CURES[last.fact], again=True)
    if (kin := _kin(case, found)) is not None:
        return kin
    ended = [_ended(events, cures) for events, cures in found]
    over = [c for c in ended if c is not None]
    if len(over) < len(ended):
        later = all(before(o, look) for o in case.events for look in contrary)
        return Life(max(contrary, key=_place), None, again=False) if contrary and later else None
    cure = max(over, key=_place)
    own = {id(o) for o in case.events}
    if any(not before(o, cure) for o in rests_on if id(o) not in own):
        return None
    if all(o.origin is Origin.TOLD for o in (*case.events, cure)):
        return Life(cure, CURES[cure.fact], again=False)  # who says both has no log that goes on
    quiet = [_quiet(o, cure, case.facts) for o in case.events]
    known = [q for q in quiet if q is not None]
    return Life(cure, CURES[cure.fact], again=False, quiet=min(known)) if known and len(known) == len(quiet) else None


def _told_again(case: Case, rests_on: Sequence[Observation]) -> Observation | None:
    """What was told that the fault came back after; None where nothing was, or where the fault was read and not told."""
    if not any(o.origin is Origin.TOLD for o in rests_on):
        return None
    device = case.subject.up(Scope.GPU)
    for subject in case.facts.subjects(Scope.GPU):
        o = case.facts.current(BACK_AFTER, subject)
        same = device is None or subject == device or is_unknown(subject.id) or is_unknown(device.id)
        if o is not None and o.status is Status.OK and o.origin is Origin.TOLD and same:
            return o
    return None


def is_unknown(called: str) -> bool:
    """Whether nobody said which GPU is meant."""
    return called.startswith(UNKNOWN_PCI)


def _found(
    events: Sequence[Observation], kinds: frozenset[Cure], facts: FactBase
) -> list[tuple[list[Observation], list[Observation]]]:
    """The events of one device on one time line each, in order, with the cures there that may have ended them."""
    groups: dict[tuple[Timeline | None, Subject], list[Observation]] = {}
    for o in events:
        device = o.subject.up(Scope.GPU) or o.subject.up(Scope.NODE) or o.subject
        groups.setdefault((_timeline(o), device), []).append(o)
    out = []
    for (timeline, device), group in groups.items():
        here = [device, *([n] if (n := device.up(Scope.NODE)) is not None and n != device else [])]
        cures = [
            c for fact, kind in CURES.items() if kind in kinds for s in here for c in facts.events_at(fact, s)
            if timeline is not None and _timeline(c) == timeline
        ]  # fmt: skip
        out.append((sorted(group, key=_place), sorted(cures, key=_place)))
    return out


def _failed(case: Case, bucket: Bucket) -> Observation | None:
    """The last reset that failed behind events that ask for one, with nothing behind it that cures more."""
    if Cure.RESET not in (buckets()[bucket].cured_by or ()):
        return None
    out = []
    for events, cures in _found(case.events, frozenset(Cure), case.facts):
        device = events[0].subject.up(Scope.GPU)
        tried = () if device is None else case.facts.events_at(FAILED, device)
        out += [f for f in tried if before(events[0], f) and not any(before(f, c) for c in cures)]
    return max(out, key=_place, default=None)


def _kin(case: Case, found: Sequence[tuple[Sequence[Observation], Sequence[Observation]]]) -> Life | None:
    """The cure of another face of the same fault, behind which all of these events lie.

    Which codes are faces of one fault, NVIDIA's catalogue tells: those that explain each other (XID 48 and 95).
    """
    from knowledge.catalog.xid import xid

    entry = xid(case.rule.xid) if case.rule.xid is not None else None
    if entry is None:
        return None
    codes = frozenset({*entry.explains, *entry.explained_by}) - OVER_SOON
    for events, cures in found:
        own = [c for c in cures if before(c, events[0])]
        device = events[0].subject.up(Scope.GPU)
        if not own or device is None:
            continue
        for o in case.facts.events_coded("xid", device, codes):
            code = o.value.code if isinstance(o.value, Event) else None
            cure = next((c for c in own if before(o, c)), None)
            if code in codes and code != 154 and cure is not None and o.subject == device:
                return Life(cure, CURES[cure.fact], again=True, kin=code)
    return None


def _timeline(o: Observation) -> Timeline | None:
    """What makes times comparable; None for an observation without a time."""
    if o.at is None or o.clock is Clock.NONE:
        return None
    shared = o.clock is Clock.REALTIME and bool(o.subject.host)
    return o.clock, o.subject.host, "" if shared else o.source.call


def _place(o: Observation) -> tuple[Clock, int, str, int]:
    return o.clock, o.at if o.at is not None else -1, o.source.call, o.source.line or 0


def before(one: Observation, other: Observation) -> bool:
    """Whether `one` surely happened before `other`. In one source the order of the lines must say the same."""
    timeline = _timeline(one)
    if timeline is None or timeline != _timeline(other) or one.at is None or other.at is None:
        return False
    if one.source.call == other.source.call and one.source.line is not None and other.source.line is not None:
        return one.at <= other.at and one.source.line < other.source.line
    return one.at < other.at


def _ended(events: Sequence[Observation], cures: Sequence[Observation]) -> Observation | None:
    """The first cure that lies behind all `events`."""
    if not cures or not all(before(o, cures[-1]) for o in events):
        return None
    first = next((c for c in cures if before(events[-1], c)), cures[-1])
    return first if all(before(o, first) for o in events) else cures[-1]


def _came_back(events: Sequence[Observation], cures: Sequence[Observation]) -> Observation | None:
    """The last cure that has events on both sides."""
    last = next((c for c in reversed(cures) if before(c, events[-1])), None)
    return last if last is not None and before(events[0], last) else None


def covered(o: Observation, moment_: Observation, facts: FactBase) -> int | None:
    """Until when the log that tells of events like `o` was read without a gap from `moment_` on; None when nobody knows."""
    node = o.subject.up(Scope.NODE)
    ends = [
        s.window[1]
        for s in (facts.silences(o.fact, node) if node is not None else ())
        if s.status is Status.NONE_SEEN and s.window is not None and _shares(s, moment_)
        and s.window[0] <= (moment_.at or 0) <= s.window[1]
    ]  # fmt: skip
    return max(ends, default=None)


def _shares(silence: Observation, o: Observation) -> bool:
    """Whether a window and a time are of one time line. A window over several sources names them all."""
    if silence.clock is not o.clock:
        return False
    return silence.source.call == o.source.call or (o.clock is Clock.REALTIME and bool(o.subject.host))


def _quiet(o: Observation, cure: Observation, facts: FactBase) -> int | None:
    """ns for which the log goes on behind the cure without an event like `o`."""
    end = covered(o, cure, facts)
    return None if end is None else end - (cure.at or 0)


def age(events: Sequence[Observation], facts: FactBase) -> Text:
    """How long ago the newest of the events was when its log ended, where that is long; empty where nobody knows."""
    latest: dict[Timeline | None, Observation] = {}
    for o in sorted(events, key=_place):
        latest[_timeline(o)] = o
    ages: list[tuple[int, Observation]] = []
    for timeline, o in latest.items():
        end = covered(o, o, facts) if timeline is not None else None
        if end is None:
            return NO_TEXT
        ages.append((end - (o.at or 0), o))
    if not ages or (newest := min(ages, key=lambda a: a[0]))[0] < LONG_AGO:
        return NO_TEXT
    long, at = span(newest[0]), moment(newest[1])
    when = (f" on {at}", f" {at}") if at else ("", "")
    return Text(f", last seen{when[0]}, {long.en} before the log ends", f"，最后一次{when[1]}，距日志结束 {long.zh}")


_WAS: Mapping[str, str] = {
    "has": "had",
    "have": "had",
    "is": "was",
    "are": "were",
    "does": "did",
    "do": "did",
    "cannot": "could not",
    "come": "came",
    "lacks": "lacked",
    "needs": "needed",
    "reaches": "reached",
    "stands": "stood",
    "asks": "asked",
    "fails": "failed",
    "finds": "found",
    "hangs": "hung",
    "holds": "held",
    "keeps": "kept",
    "marks": "marked",
    "recommends": "recommended",
    "reports": "reported",
    "runs": "ran",
    "says": "said",
    "waits": "waited",
}
_VERB = lazy(rf"\b(?:{'|'.join(_WAS)})\b(?![^(]*\))")  # not what stands in brackets


def past_tense(title: str) -> str:
    """An English title in the past: ``GPU had fallen off the bus``."""
    return _VERB.sub(lambda m: _WAS[m[0]], title, count=1)


def _long(ns: int) -> tuple[str, str]:
    """A duration in words: ``4 days``, ``1 hour``."""
    said = span(ns)
    number, _, unit = said.en.partition(" ")
    word = {"d": "day", "h": "hour", "min": "minute", "s": "second"}[unit]
    return f"{number} {word}{'' if number == '1' else 's'}", said.zh


def moment(o: Observation) -> str:
    """A time to the minute: ``2026-11-23 02:55 UTC``, ``11-23 02:55`` where the year is not told; empty on a machine's own clock."""
    if o.at is None or o.clock not in (Clock.REALTIME, Clock.LOCAL, Clock.YEARLESS):
        return ""
    told = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=o.at // 10**9)
    form = "%m-%d %H:%M" if o.clock is Clock.YEARLESS else "%Y-%m-%d %H:%M"
    return told.strftime(form) + (" UTC" if o.clock is Clock.REALTIME else "")


def span(ns: int) -> Text:
    """A duration in its largest whole unit: ``19 d``, ``6 h``, ``12 s``."""
    for size, en, zh in ((86_400, "d", "天"), (3600, "h", "小时"), (60, "min", "分钟")):
        if ns >= 2 * size * 10**9 or (en != "min" and ns >= size * 10**9):
            return Text(f"{ns // (size * 10**9)} {en}", f"{ns // (size * 10**9)} {zh}")
    return Text(f"{ns // 10**9} s", f"{ns // 10**9} 秒")


def speaks(o: Observation) -> bool:
    """Whether an observation speaks for a fault that is there: an event, or a value that was read."""
    return isinstance(o.value, Event) or o.status is Status.OK
