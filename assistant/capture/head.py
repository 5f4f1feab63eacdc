"""The first line of the answer: who is slow or hangs, in what, for how much of the time, and what to change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assistant.capture.looking import AREA, Seen, called
from assistant.render.cells import width
from assistant.render.labels import aside, colon, impact_words, label, listed, many, subject_name
from assistant.render.trace_page import Head
from assistant.render.trace_units import share
from knowledge.language import Text
from knowledge.observation import Scope, Subject
from knowledge.text import clean
from probes.capture.manifest import mapping, rows, text
from rules.engine import Grade
from rules.model import Severity

if TYPE_CHECKING:
    from rules.engine import Finding

_CLAUSE = re.compile(r"[.;:](?=\s)|[。；：]")
_SHORT = 48  # columns of an advice that say enough
_NAMED = re.compile(r"([\w<>.]{1,80}) \([^()]{1,80}:\d+\)")  # a function in a title
_ENDED = 4  # processes by name
_ALSO = 2  # further findings in the first lines
_SURE = (Grade.CONFIRMED, Grade.PROBABLE)


def head(seen: Seen, lang: str) -> Head:
    """The verdict of a capture, and who ended within it: that may be the news."""
    found = _head(seen, lang)
    found = found._replace(text=found.text + _unknown_ranks(seen, lang))
    gone = [
        called(t, lang)
        for t, row in seen.targets
        if mapping(mapping(row.get("aftermath")).get("after")).get("alive") is False
    ]
    if not gone:
        return found
    who = listed(gone[:_ENDED], lang) + (f" +{len(gone) - _ENDED}" if len(gone) > _ENDED else "")
    ended = Text(f" {who} ended during the capture.", f"{who} 在采集期间退出。").in_(lang)
    return found._replace(text=found.text + ended)


def _unknown_ranks(seen: Seen, lang: str) -> str:
    """That all ranks were asked for and which of them were captured is not sure: one process may stand for a job of many."""
    asked = "--all-ranks" in str(seen.document.get("line") or "")
    notes = [clean(text(n).in_(lang)).rstrip(".。") for _, row in seen.targets for n in rows(row.get("notes"))]
    if not asked or (len(seen.targets) > 1 and not notes):
        return ""
    n = len(seen.targets)
    why = f": {notes[0]}" if notes else ""
    return Text(f" Of all ranks {n} {'was' if n == 1 else 'were'} captured{why}. Others may stand elsewhere.",
                f"要求采集全部 rank，实际采集到 {n} 个{why}。其他 rank 可能处于不同状态。").in_(lang)  # fmt: skip


def _head(seen: Seen, lang: str) -> Head:
    groups = seen.groups
    sure = [g for g in groups if g[0].grade is not Grade.POSSIBLE] or groups
    bad = [g for g in sure if g[0].severity is not Severity.INFO] or sure
    if hung := _hung(seen, lang):
        worst = max(
            (f.severity for f in seen.diagnosis.findings if _of_jobs(f)), key=lambda s: s.rank, default=Severity.WARNING
        )
        return Head(str(worst), label(str(worst), lang), hung)
    if late := _late(seen, lang):
        worst = max((g[0].severity for g in bad), key=lambda s: s.rank, default=Severity.WARNING)
        return Head(str(worst), label(str(worst), lang), late + _why(seen, bad, late, lang))
    if not bad or bad[0][0].severity is Severity.INFO:
        return _quiet(seen, bad, lang)
    group = bad[0]
    f = group[0]
    stop = "。" if lang == "zh" else ". "
    title = clean(f.title.in_(lang))
    who = _who(seen, group, lang)
    said = f"{who}{colon(lang)}{title}{stop}" if who else f"{title[:1].upper()}{title[1:]}{stop}"
    explained = impact_words(f.impact, lang)
    if explained:
        said += f"{explained}{stop}" if lang == "zh" else f"It {explained}{stop}"
    advice = _first(clean(f.advice.text.in_(lang)))
    return Head(str(f.severity), label(str(f.severity), lang), said + advice + _also(bad[1:], lang))


def told(seen: Seen) -> bool:
    """Whether it is known of one of the targets what it did: that nothing was found says something only then."""
    items = seen.document.get("items")
    stacks = isinstance(items, list) and "stacks" in items
    facts = ("stack.python.share", "process.hung") if stacks else ("thread.cpu.share", "capture.samples")
    return any(seen.of(fact, seen.process(t.process.pid)) is not None for t, _ in seen.targets for fact in facts)


def _of_jobs(f: Finding) -> bool:
    """Whether a finding, explained or not, is of a capture: of a job that hangs it is what makes it grave."""
    return f.rule.area == AREA and f.grade in _SURE


def _why(seen: Seen, groups: list[list[Finding]], said: str, lang: str) -> str:
    """What makes the late rank late, where the function that it is in does not tell: another thread that holds its lock, its CPUs."""
    late = {str(seen.of("job.slow_rank", job)) for job in seen.jobs()}
    about = {str(t.process.pid) for t, _ in seen.targets if str(t.rank) in late}
    root = next((g[0] for g in groups if g[0].subject.scope is Scope.PROCESS and g[0].subject.id in about), None)
    if root is None or root.severity is Severity.INFO:
        return ""
    title = clean(root.title.in_(lang))
    if any(f"{name} (" in said for name in _NAMED.findall(title)):
        return ""
    taken = aside(share(root.impact.share), lang) if root.impact is not None else ""
    return f"原因：{title}{taken}。" if lang == "zh" else f" Why: {title}{taken}."


def _also(rest: list[list[Finding]], lang: str) -> str:
    """What else costs time: a second fault does not wait for the next capture. Of equal subjects, hence without them."""
    told = [f"{clean(g[0].title.in_(lang))}{aside(share(g[0].impact.share), lang)}" for g in rest
            if g[0].severity is not Severity.INFO and g[0].grade in _SURE and g[0].impact is not None]  # fmt: skip
    if not told:
        return ""
    named = listed(told[:_ALSO], lang, ";")
    return f"另外：{named}。" if lang == "zh" else f" Also: {named}."


def bad_of(seen: Seen) -> list[list[Finding]]:
    """Findings of warning or worse about those that were captured, at least probable."""
    return [g for g in seen.groups if any(f.severity is not Severity.INFO and f.grade in _SURE for f in g)]


def _quiet(seen: Seen, notes: list[list[Finding]], lang: str) -> Head:
    """Nothing was found but what is good to know: either nothing is wrong, or nothing could be seen."""
    samples = [seen.of("capture.samples", seen.process(t.process.pid)) for t, _ in seen.targets]
    if not any(isinstance(n, int) and n > 0 for n in samples):
        text = Text("Nothing could be seen of what was asked about.", "未能看到所询问对象的任何信息。")
        return Head("unknown", label("unknown", lang), text.in_(lang))
    if not told(seen):
        few = max(n for n in samples if isinstance(n, int))
        text = Text(f"Too little was seen to tell: {few} looks in {seen.seconds:.1f} s. Capture longer: --duration 10s.",
                    f"所见太少，无法判断：{seen.seconds:.1f} 秒内仅采样 {few} 次。请延长采集：--duration 10s。")  # fmt: skip
        return Head("unknown", label("unknown", lang), text.in_(lang))
    n = len(seen.targets)
    text = Text(f"Nothing that slows {called(seen.targets[0][0]) if n == 1 else f'these {n} processes'} was seen in {seen.seconds:.1f} s.",
                f"在 {seen.seconds:.1f} 秒内未发现拖慢{called(seen.targets[0][0], 'zh') if n == 1 else f'这 {n} 个进程'}的因素。")  # fmt: skip
    said = text.in_(lang)
    if notes:
        worth = [
            f"{clean(g[0].title.in_(lang))}{aside(share(g[0].impact.share), lang) if g[0].impact else ''}"
            for g in notes[:_ALSO]
        ]
        named = listed(worth, lang, ";")
        said += f"值得了解：{named}。" if lang == "zh" else f" Good to know: {named}."
    return Head("ok", label("ok", lang), said)


# --- a rank among others -----------------------------------------------------------------------


def _hung(seen: Seen, lang: str) -> str:
    """``rank 1 (pid 4243) hangs the job: it stands in load (train.py:88); 3 ranks wait in all_reduce``."""
    for job in seen.jobs():
        if seen.of("job.hung", job) is not True:
            continue
        who, where = _rank(seen, job, "job.hung.rank", lang), _text(seen, "job.hung.function", job)
        waiting, what = seen.of("job.hung.ranks_waiting", job), _text(seen, "job.hung.collective", job)
        absent = seen.of("job.hung.absent", job)
        if (
            isinstance(absent, tuple) and absent
        ):  # a rank that has gone is waited for by those that stand, whoever stands worst
            where = ""
            who = Text(
                f"rank {', '.join(map(clean, absent[:4]))} (which is not there)",
                f"rank {'、'.join(map(clean, absent[:4]))}（不存在）",
            ).in_(lang)
        if not who:
            return Text("The job hangs: no rank moves.", "作业挂起：所有 rank 均无进展。").in_(lang)
        said = Text(f"{who} hangs the job", f"{who} 使作业挂起").in_(lang)
        if where:
            said += Text(f": it stands in {where}", f"：停在 {where}").in_(lang)
        if waiting and what:
            rest = Text(f"; {waiting} other rank{'s' if waiting != 1 else ''} wait{'s' if waiting == 1 else ''} in {what}",
                        f"；其余 {waiting} 个 rank 在 {what} 中等待")  # fmt: skip
            said += rest.in_(lang)
        return said + ("。" if lang == "zh" else ".")
    return ""


def _late(seen: Seen, lang: str) -> str:
    """``rank 1 (pid 4243) is late: augment (train.py:88) takes 61 % of its time; the others wait 58 % in all_reduce``."""
    for job in seen.jobs():
        who = _rank(seen, job, "job.slow_rank", lang)
        if not who or not bad_of(seen):
            continue
        where = _text(seen, "job.slow_rank.function", job)
        waits, what = seen.of("job.slow_rank.wait.share", job), _text(seen, "job.waiting.function", job)
        said = Text(f"{who} is late", f"{who} 落后").in_(lang)
        if where:
            own = _own_share(seen, job, where)
            took = (
                Text(f": {where} takes {share(own / 100)} of its time", f"：{where} 占其 {share(own / 100)} 的时间")
                if own
                else Text(f": it is in {where}", f"：停留在 {where}")
            )
            said += took.in_(lang)
        if isinstance(waits, int | float):
            in_ = Text(f" in {what}" if what else "", f"在 {what} 中" if what else "")
            said += Text(
                f"; the others wait {share(waits / 100)} of theirs{in_.en}",
                f"；其余 rank {in_.zh}等待 {share(waits / 100)} 的时间",
            ).in_(lang)
        return said + ("。" if lang == "zh" else ".")
    return ""


def _rank(seen: Seen, job: Subject, fact: str, lang: str) -> str:
    """The rank that `fact` names, with its pid where it is one of the targets."""
    number = seen.of(fact, job)
    if number is None:
        return ""
    found = next((t for t, _ in seen.targets if str(t.rank) == str(number)), None)
    return called(found, lang) if found is not None else f"rank {clean(str(number))}"


def _own_share(seen: Seen, job: Subject, function: str) -> float:
    """How much of the late rank's time its function takes; 0 where that is not told."""
    number = str(seen.of("job.slow_rank", job))
    for target, _ in seen.targets:
        if str(target.rank) != number:
            continue
        subject = seen.process(target.process.pid)
        for name in (
            "data_work",
            "data_wait",
            "python",
            "io",
            "sync",
            "sleep",
            "logging",
            "checkpoint",
            "operator",
            "hot",
        ):
            value = seen.of(f"stack.{name}.share", subject)
            if function in _text(seen, f"stack.{name}.function", subject) and isinstance(value, int | float):
                return float(value)
    return 0.0


def _text(seen: Seen, fact: str, subject: Subject) -> str:
    value = seen.of(fact, subject)
    return clean(value)[:200] if isinstance(value, str) else ""


# --- findings ----------------------------------------------------------------------------------


def _who(seen: Seen, group: list[Finding], lang: str) -> str:
    """Whom a finding is about, where it does not go without saying."""
    about = list(dict.fromkeys(f.subject for f in group))
    if len(about) > 1:
        return clean(many(about, lang))
    if about[0].scope is Scope.PROCESS:
        found = next((t for t, _ in seen.targets if str(t.process.pid) == about[0].id), None)
        if found is not None:
            return called(found, lang)
    return "" if about[0].scope is Scope.NODE else clean(subject_name(about[0], lang))


def _first(advice: str) -> str:
    """The beginning of an advice, to the end of a clause: the whole of it stands below."""
    for found in _CLAUSE.finditer(advice):
        if width(advice[: found.start()]) >= _SHORT:
            return advice[: found.start()] + ("。" if found[0] in "。；：" else ".")
    return advice
