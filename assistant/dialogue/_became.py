"""What became of a fault in the files that were given: what came after the reset, the reboot, the reload; up again, or still there.

The first words say the state and never yes or no alone: "is it still gone" and "is it back" ask the same thing the other way
round. A cure is told by its own line; whether it should have helped is not judged here (`rules.life`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.diagnosis import bad, bad_roots, only_said
from assistant.dialogue._scope import scoped
from assistant.dialogue._words import Words, suggest, words
from assistant.intent.after import Became, became, without_cure
from assistant.intent.lines import meant
from assistant.intent.lines import words as words_of
from assistant.intent.steps import asked as of_steps
from assistant.render import lines
from assistant.render.labels import led
from assistant.render.sheet import Items, Paragraph, Part
from assistant.reply import Reply
from knowledge.language import Text
from knowledge.observation import Event, Observation, Scope, how_many
from knowledge.text import excerpt
from rules.life import CURE_NAMES, CURES, FAILED, SHORT, before, covered
from rules.model import Severity

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding

_BACK = {"link_carrier": ("up",), "filesystem_stall": ("restored",)}  # the states that say it is well again
_AN_HOUR = 3600 * 10**9
_TRIED = "gpu_reset_attempt"
_NOT_DONE = ("failed", "refused")
LINE, SHOWN = 160, 4
_NO_PROOF = Text(
    "A log that is silent is no proof: `nvidia-smi -q` tells the state of now (ECC counters, remapped rows, recovery action).",
    "日志中没有并不等于已经好：当前状态看 `nvidia-smi -q`（ECC 计数、行重映射、恢复动作）。",
)
_ONE_MOMENT = Text(
    "It is one moment, without a before and after: take the same output once more, later, and compare.",
    "这只是一个时刻，没有前后对比：之后再取一次同样的输出来比较。",
)


class _Told(NamedTuple):
    """What a sentence says of the state."""

    said: str
    well: bool | None  # whether it is over; None: not known
    held: str = ""  # how long it stayed away
    act: str = ""  # what was done about it
    shown: tuple[Observation, ...] = ()  # the lines that say so
    failed: bool = False  # whether what was done failed or was refused


def answer(turn: Turn) -> Reply | None:
    """The state after what was done about it; None where that is not asked, or nothing was read that tells it."""
    d, kind = turn.diagnosis, became(turn.query.text)
    if d is None or kind is None or only_said(d.facts) or of_steps(turn.query.text):
        return None
    w = words(turn)
    f = _asked_of(turn)
    told = _state(w, f) if f is not None else None
    if f is None or told is None:
        return None if f is None and not _names_nothing(turn) else _at_one_moment(turn, w, kind)
    parts: list[Part] = [Items(tuple(excerpt(lines.shown(o), LINE) for o in told.shown[:SHOWN]))]
    if told.well and f.subject.up(Scope.GPU) is not None:
        parts.append(Paragraph(_NO_PROOF.in_(w.lang)))
    first = next(iter(d.leads), f)
    worse = first is not f and first.severity is not Severity.INFO
    head = _head(w, kind, told) + (
        w.t(f" Now: {w.title(first)}.", f"目前：{w.quoted(w.title(first))}。") if worse else ""
    )
    if not told.well:
        parts.append(Items((w.action(first if worse else f),)))
    return Reply(
        turn.lang, head, tuple(parts), focus=f.id, settled=told.well is not None,
        suggestions=suggest(turn.lang, "why", "next", "evidence"),
        data={"answer": "became", "asked": str(kind), "over": told.well, "finding": f.rule.id},
    )  # fmt: skip


def _names_nothing(turn: Turn) -> bool:
    """Whether no thing is named whose state another answer tells: "any errors since the reboot?"."""
    return not words_of(without_cure(turn.query.text)) and not any(turn.query.slots._replace(since=()))


def _asked_of(turn: Turn) -> Finding | None:
    """The finding that is asked about: of what the words name, else the worst that is bad, else the worst that was."""
    d = turn.diagnosis
    assert d is not None
    about = scoped(d, turn.query.slots).about
    named = {id(o) for o in meant(without_cure(turn.query.text), d.events)}
    first = (*bad_roots(about), *bad(about), *(f for f in about if f.life is not None), *about)
    hit = next((f for f in first if any(id(o) in named and o.at is not None for o in f.events)), None)
    return hit or next(iter(first), None)


def _head(w: Words, kind: Became, told: _Told) -> str:
    if kind is Became.AHEAD:
        return w.t(f"No log tells that ahead. So far: {told.said}", f"日志无法预知。目前：{told.said}")
    if kind is Became.TRIED and told.act and told.failed:
        return w.t(f"Tried: {told.act}. ", f"试过：{told.act}。") + told.said
    if kind is Became.TRIED:
        lead = w.t(f"Yes: {told.act}. ", f"有：{told.act}。") if told.act else w.t("No. ", "没有。")
        return lead + told.said
    if kind is Became.HELD and told.held:
        return f"{led(told.held, told.said, w.lang)}"
    if kind is Became.CURED and told.act and told.well is False:
        return w.t("No. ", "没有。") + told.said
    return told.said


def _state(w: Words, f: Finding) -> _Told | None:
    """The state of what a finding tells, by the times of its events; None where these tell no time."""
    signs = _signs(w, f)
    if not signs:
        return None
    last = signs[-1]
    if (back := _well_again(w, f, last)) is not None:
        return back
    acts = [c for c in _acts(w, last) if any(before(s, c) for s in signs)]
    if not acts:
        return _open(w, f, signs)
    act = _named(acts)
    ahead, behind = [s for s in signs if before(s, act)], [s for s in signs if before(act, s)]
    kept = tuple({id(o): o for o in (*ahead[-1:], act, *behind[:1], *behind[-1:])}.values())
    if not behind and not _failed(act):
        return _gone(w, f, last, act)._replace(shown=kept)
    return _there(w, f, act, behind)._replace(shown=kept)


def _there(w: Words, f: Finding, act: Observation, behind: Sequence[Observation]) -> _Told:
    """That it is there behind what was done: that failed, or the fault was seen again."""
    name, at = _name(w, act), lines.moment(act)
    done, seen = w.t(f"{name} at {at}", f"{at} {name}"), lines.moment(behind[-1]) if behind else ""
    if _failed(act):
        tail = w.t(f"; last sign of it {seen}", f"，最后的迹象 {seen}") if seen else ""
        refused = isinstance(act.value, Event) and act.value.get("stage") == "refused"
        how, how_zh = ("was refused", "被拒绝") if refused else ("failed", "失败")
        said = w.t(f"Still there: {name} of {at} {how}{tail}", f"仍然存在：{at} 的{name}{how_zh}{tail}")
        act_said = f"{done}{w.t(f', and it {how}', f'，但{how_zh}')}"
        return _Told(led(said, _title(w, f), w.lang) + w.t(".", "。"), False, act=act_said, failed=True)
    ns = (behind[0].at or 0) - (act.at or 0)
    gap, still = _long(ns), ns < SHORT
    said = w.t(f"{'Still there' if still else 'It came back'}, {gap.en} after {name} of {at}, last seen {seen}",
               f"{'仍然存在' if still else '又出现了'}：{at} {name}之后 {gap.zh}再次出现，最后一次 {seen}")  # fmt: skip
    return _Told(led(said, _title(w, f), w.lang) + w.t(".", "。"), False, gap.in_(w.lang), done)


def _gone(w: Words, f: Finding, last: Observation, act: Observation) -> _Told:
    """That nothing of it stands behind a cure, with how long the log goes on."""
    name, at, end = _name(w, act), lines.moment(act), covered(last, act, w.d.facts)
    done = w.t(f"{name} at {at}", f"{at} {name}")
    quiet = None if end is None else end - (act.at or 0)
    what = led(w.t(f"last seen {lines.moment(last)}", f"最后一次 {lines.moment(last)}"), _title(w, f), w.lang)
    if quiet is None or quiet < SHORT:
        said = w.t(f"Not seen since {name} of {at}, but the log ends soon after that: {what}.",
                   f"{at} {name}之后未再出现，但日志随后即结束：{what}。")  # fmt: skip
        return _Told(said, None, act=done)
    long = _long(quiet)
    said = w.t(f"Nothing of it in the {long.en} since {name} of {at}, as far as the log goes: {what}.",
               f"{at} {name}之后，日志中 {long.zh}内未再出现：{what}。")  # fmt: skip
    return _Told(said, True, long.in_(w.lang), done)


def _title(w: Words, f: Finding) -> str:
    """The finding without what became of it, which the sentence says."""
    tail, title = f.life.words if f.life is not None else f.age, f.title
    bare = Text(
        title.en.replace(tail.en, "") if tail else title.en, title.zh.replace(tail.zh, "") if tail else title.zh
    )
    return w.rule_title(bare, [f.subject])


def _long(ns: int) -> Text:
    """A duration in words; of less than two days the hours, of less than two hours the minutes."""
    for size, en, zh in ((86_400, "days", "天"), (3600, "hours", "小时"), (60, "minutes", "分钟")):
        if ns >= 2 * size * 10**9:
            return Text(f"{ns // (size * 10**9)} {en}", f"{ns // (size * 10**9)} {zh}")
    return Text(f"{ns // 10**9} s", f"{ns // 10**9} 秒")


def _open(w: Words, f: Finding, signs: Sequence[Observation]) -> _Told:
    """That nothing stands behind it that could have ended it."""
    last, n = signs[-1], how_many(f.events)
    end = covered(last, last, w.d.facts)
    quiet = None if end is None else end - (last.at or 0)
    often = w.t(f"seen {n} times, last {lines.moment(last)}" if n > 1 else f"last seen {lines.moment(last)}",
                f"共 {n} 次，最后一次 {lines.moment(last)}" if n > 1 else f"最后一次 {lines.moment(last)}")  # fmt: skip
    goes_on = quiet is not None and quiet >= SHORT
    if quiet is not None and goes_on:
        long = _long(quiet)
        often += w.t(f", and the log goes on for {long.en} without it", f"，此后日志 {long.zh}内没有再出现")
    of_machine = f.subject.scope not in (Scope.JOB, Scope.DOCUMENT)
    lead = w.t("Nothing in the log ends it" + (" (no reset, reboot or reload of the driver)" if of_machine else ""),
               "日志中没有使其结束的事件" + ("（复位、重启或重新加载驱动）" if of_machine else ""))  # fmt: skip
    said = led(f"{lead}{w.mark}{often}", _title(w, f), w.lang)
    return _Told(f"{said}{w.t('.', '。')}", None if goes_on else False, shown=tuple(signs[-2:]))


def _well_again(w: Words, f: Finding, last: Observation) -> _Told | None:
    """That the link is up, or the file server answers, as the last line of it; None where nothing of the kind was read."""
    facts = {o.fact for o in f.events} & _BACK.keys()
    facts |= {"filesystem_stall"} if any(o.fact == "hung_task" for o in f.events) else set()
    places = {o.subject for o in f.events}
    own = [o for o in w.d.events if o.fact in facts and o.at is not None and o.subject in places]
    if not own:
        return None
    end = max(own, key=lambda o: (o.at or 0, o.source.line or 0))
    lost = [o for o in own if o.fact == end.fact and not _is_well(o)]
    at, link = lines.moment(end), end.fact == "link_carrier"
    shown = (*lost[-1:], end)
    if not _is_well(end):
        said = led(w.t(f"Still down since {at}", f"自 {at} 起仍未恢复"), _title(w, f), w.lang)
        return _Told(f"{said}{w.t('.', '。')}", False, shown=shown)
    if before(end, last):
        return None
    name = w.t(
        "Up again" if link else "The file server answers again", "链路已恢复连通" if link else "文件服务器已恢复应答"
    )
    often = w.t(f"; lost {len(lost)} times before", f"；此前断开 {len(lost)} 次") if len(lost) > 1 else ""
    said = w.t(f"{name} since {at}, by the last line of it{often}", f"{name}：最后一条相关记录为 {at}{often}")
    return _Told(led(said, _title(w, f), w.lang) + w.t(".", "。"), True if len(lost) < 2 else None, shown=shown)


def _is_well(o: Observation) -> bool:
    return isinstance(o.value, Event) and o.value.get("state") in _BACK[o.fact]


def _at_one_moment(turn: Turn, w: Words, kind: Became) -> Reply:
    """What was read once, at no time that a line tells: it is there, or it is not."""
    named = words_of(without_cure(turn.query.text))
    bad_now = bad_roots(scoped(w.d, turn.query.slots).about)
    there = [f for f in (*bad_now, *bad(w.d.findings)) if all(x.search(f"{f.rule.id} {f.title.en}") for x in named)]
    if kind is Became.TRIED:
        head = w.t(
            "Nothing that was read tells of a reset, a reboot or a reload of the driver.",
            "所读内容没有提到复位、重启或重新加载驱动。",
        )
    elif there:
        head = led(w.t("There, by what was read", "就所读内容而言仍然存在"), w.title(there[0]), w.lang) + w.t(".", "。")
    else:
        head = led(w.t("Nothing of it in what was read", "所读内容中没有该故障"), w.d.verdict.text.in_(w.lang), w.lang)
    once = (Paragraph(_ONE_MOMENT.in_(w.lang)),) if len(w.d.sources) == 1 and not w.d.events else ()
    return Reply(
        turn.lang, head, once, focus=there[0].id if there else "", settled=bool(there),
        suggestions=suggest(turn.lang, "why", "next", "evidence"),
        data={"answer": "became", "asked": str(kind), "over": not there, "finding": there[0].rule.id if there else None},
    )  # fmt: skip


def _signs(w: Words, f: Finding) -> list[Observation]:
    """The timed events of a fault and of whatever else is bad on the same GPU, in the order of time."""
    device = f.subject.up(Scope.GPU)
    kin = [x for x in bad(w.d.findings) if device is not None and x.subject.up(Scope.GPU) == device]
    own = {id(o): o for x in (f, *kin) for o in x.events if o.at is not None and o.fact != _TRIED}
    ends = f.events[-1].clock if f.events else None
    return sorted((o for o in own.values() if o.clock is ends), key=lambda o: (o.at or 0, o.source.line or 0))


def _acts(w: Words, last: Observation) -> list[Observation]:
    """What was done about it on the same machine, in the order of time."""
    here = last.subject.host
    found = [o for o in w.d.facts.events(_TRIED) if isinstance(o.value, Event) and o.value.get("stage") in _NOT_DONE]
    found += [o for fact in (*CURES, FAILED) for o in w.d.facts.events(fact)]
    device = last.subject.up(Scope.GPU)
    own = [o for o in found if o.subject.host == here and (device is None or o.subject.up(Scope.GPU) in (None, device))]
    return sorted(
        (o for o in own if o.at is not None and o.clock is last.clock), key=lambda o: (o.at or 0, o.source.line or 0)
    )


def _named(acts: Sequence[Observation]) -> Observation:
    """The last of them; of a boot that loads the driver the boot."""
    last = acts[-1]
    boots = [o for o in acts if o.fact == "boot" and (last.at or 0) - (o.at or 0) < _AN_HOUR]
    return boots[-1] if boots and last.fact == "driver_loaded" else last


def _failed(act: Observation) -> bool:
    return act.fact in (FAILED, _TRIED)


def _name(w: Words, act: Observation) -> str:
    if _failed(act):
        return w.t("the reset", "复位")
    return CURE_NAMES[CURES[act.fact]].in_(w.lang)
