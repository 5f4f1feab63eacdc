"""Can it be used: yes, no, not yet, or that nobody can say; about the whole, or the one GPU or process that is named.

"Should I drain it" is answered against the action that is advised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant import vendors
from assistant.diagnosis import TOLD_BY, State, Verdict, bad_roots, forbidding, judged, no_gpu, only_said, unread
from assistant.dialogue import _compared, _normal, _told, _work, cause
from assistant.dialogue._looked import looked_at
from assistant.dialogue._of_run import decided, goes_on, meanwhile, of_run
from assistant.dialogue._scope import Scoped, scoped
from assistant.dialogue._should import Advised, Asked, Should, asked_of, compared, of_a_job, speaks_of_a_job
from assistant.dialogue._traced import bottleneck
from assistant.dialogue._words import Words, finding_data, nothing_yet, suggest, words, words_of
from assistant.dialogue.which import WHOLE_NODE, others
from assistant.intent.kinds import asks_of_others
from assistant.intent.of_run import Run
from assistant.intent.query import Slots
from assistant.render.labels import aside, colon, label, led, listed
from assistant.render.meanings import meaning
from assistant.render.sheet import Fields, Items, Paragraph, Part
from assistant.render.working import does
from assistant.reply import Reply
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Observation, Origin, Scope
from knowledge.text import clean
from rules.engine import Grade, Role
from rules.model import Bucket, Severity, Usable

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from rules.engine import Finding

REASONS, FACTS = 3, 4
_NAMES = frozenset({"gpu.index", "gpu.uuid", "gpu.pci", "gpu.minor"})
_FIRST = {
    Usable.YES: Text("Yes", "可以"), Usable.NO: Text("No", "不可以"), Usable.NOT_YET: Text("Not yet", "暂不可以"),
    Usable.IMPAIRED: Text("Only for what runs already", "不要派新任务"),
    Usable.UNKNOWN: Text("Cannot say", "无法判断"),
}  # fmt: skip


def answer(turn: Turn) -> Reply:
    """Yes, no, not yet or cannot say, with the reasons and the action."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    w, said_only = words(turn), only_said(turn.diagnosis.facts)
    if (blamed := cause.of_code(turn)) is not None:
        return blamed
    if (held := _compared.answer(turn, w)) is not None:
        return held
    if turn.query.page and said_only:  # nothing was looked at, and there is advice
        from assistant.dialogue import explain

        return explain.shown(turn.query.page, turn.lang)
    if (named := bottleneck(turn)) is not None:
        return named  # "should I use torch.compile?"
    if (told := _told.answer(turn, w)) is not None:
        return told
    # What is only told is all about what is asked, whatever its parts are called.
    where = scoped(turn.diagnosis, Slots() if said_only else turn.query.slots)
    if not turn.diagnosis.facts.observations and turn.query.symptoms:
        from assistant.dialogue import diagnose

        return diagnose.answer(turn)  # of a machine that nobody looked at only what is known of such trouble
    if where.unknown and not where.subjects:
        return _unknown(turn, w, where)
    if asks_of_others(turn.query.text) and not where.named and (of_others := others(turn)) is not None:
        return of_others
    about = decisive(where)
    usable, until = usability(about)
    silent = not turn.diagnosis.settled or (where.narrow and not values_of(w, where))
    if usable is Usable.YES and (silent or unread(turn.diagnosis.facts) or turn.query.unread):
        usable = Usable.UNKNOWN
    doubted = _told.doubted(turn) if usable is Usable.YES and not about else ()
    if doubted or (usable is Usable.YES and any(f.told for f in about)):
        usable = Usable.UNKNOWN  # a word of warning is no ground for a yes
    run = of_run(turn.query)
    should = asked_of(turn.query) if run is None else None
    ended = bool(about) and about[0].advice.bucket is Bucket.RESTART_APP and speaks_of_a_job(turn.query.text)
    if ended or (about and about[0].subject.scope in (Scope.JOB, Scope.DOCUMENT)):
        should = of_a_job(should, turn.query)

    def head(w: Words) -> str:
        return of_the_run(w, run) if run is not None else of_the_machine(w)

    def of_the_run(w: Words, run: Run) -> str:
        effect = usability(about)[0]
        if about and (said_only or effect is not Usable.YES or usable is Usable.YES):
            return decided(w, run, _advised(w, about), effect)
        said = of_the_machine(w)
        if usable is Usable.YES:
            return goes_on(w, run, said.partition(colon(w.lang).strip())[2].strip())
        return f"{said}{'' if w.lang == 'zh' else ' '}{meanwhile(turn.query).in_(w.lang)}"

    def of_the_machine(w: Words) -> str:
        if doubted:
            said = listed(dict.fromkeys(w.seen(o, places=False) for o in doubted[:FACTS]), w.lang, ";")
            return w.t(f"Cannot say: nothing that was read confirms what you state: {said}.",
                       f"无法判断：所读内容未能证实您所说的情况：{said}。")  # fmt: skip
        if not about and turn.query.unread and turn.diagnosis is not None and turn.diagnosis.settled:
            said = listed((f'"{c}"' for c in turn.query.unread[:2]), w.lang)
            return w.t(f"Cannot say: {said} could not be taken as a fact; nothing else was found wrong.",
                       f"无法判断：{said} 未能作为事实读取；此外未发现问题。")  # fmt: skip
        if said_only and about and _work.asked(turn.query) == "faster":
            title, action = w.title(about[0]), about[0].advice.text.in_(w.lang)
            return w.t(f"{led('Yes', title, 'en')}. {action}", f"能：{w.quoted(title)}。{action}")
        if said_only and about and usable is Usable.UNKNOWN and should is None:
            title, action = w.title(about[0]), w.action(about[0])
            return w.t(f"{led('It depends', title, 'en')}. {action}", f"视情况而定：{w.quoted(title)}。{action}")
        if should is not None:
            return _should(w, should, [*forbidding(where.about), *about], usable, until)
        if said_only and about and _normal.asked(turn):
            title, action = w.title(about[0]), about[0].advice.text.in_(w.lang)
            return w.t(
                f"{led('No, that is not normal', title, 'en')}. {action}", f"不正常：{w.quoted(title)}。{action}"
            )
        can = _can(w, where, about, usable, until)
        # Of what is only told the first line has the action too: nothing else is to come.
        return f"{can}{'' if w.lang == 'zh' else ' '}{about[0].advice.text.in_(w.lang)}" if said_only and about else can

    return Reply(
        turn.lang,
        head(w),
        (*_told.beside(turn, w), *_parts(w, where, about, usable)),
        of_scope(turn.diagnosis, about, usable, until, head)
        if where.narrow or (usable is Usable.UNKNOWN and turn.diagnosis.settled)
        else None,
        focus=about[0].id if about else "",
        settled=usable is not Usable.UNKNOWN,
        suggestions=suggest(turn.lang, "why", "next", "confidence") if about else suggest(turn.lang, "evidence", "confidence"),
        data={"answer": "verdict", "usable": str(usable), "until": until.in_(turn.lang) or None,
              "asked": "stop_run" if run is not None else str(should.asked) if should else None, "advised": str(about[0].advice.bucket) if about else None,
              "subjects": [str(s) for s in where.subjects], "reasons": [finding_data(f, turn.lang) for f in about[:REASONS]],
              "unknown": [{"slot": u.slot, "value": u.value, "known": list(u.known)}
                          for u in where.unknown]},
    )  # fmt: skip


def of_scope(
    d: Diagnosis, about: Sequence[Finding], usable: Usable, until: Text, head: Callable[[Words], str]
) -> Diagnosis:
    """The diagnosis with the verdict of the part that was asked about.

    The findings stay: what is wrong elsewhere is no secret, and the exit code is that of the reply's `usable`.
    """
    state = State.OK
    if usable is Usable.UNKNOWN and not about:
        state = State.UNKNOWN
    elif about:
        state = judged(about, usable)
    text = Text(head(words_of(d, "en")), head(words_of(d, "zh")))
    return replace(d, verdict=Verdict(state, usable, until, text), settled=usable is not Usable.UNKNOWN)


def decisive(where: Scoped) -> list[Finding]:
    """The findings that decide: roots that are sure enough; of a thing that has none, what elsewhere does to itself."""
    bad = bad_roots(where.about)
    bad = [*(forbidding(where.about) if bad else ()), *bad]  # what forbids more than its cause decides
    if bad or not where.narrow:
        return _worst_first(bad)
    sure = (Grade.CONFIRMED, Grade.PROBABLE)
    return _worst_first([
        f for f in where.about
        if f.role is Role.SYMPTOM and f.grade in sure and f.severity is not Severity.INFO
        and any(s in where.subjects for s in f.subject.ancestors())
    ])  # fmt: skip


def _worst_first(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda f: (-f.advice.usable.rank, -f.severity.rank))


def usability(findings: Sequence[Finding]) -> tuple[Usable, Text]:
    """The worst of the findings, and until when; YES of none."""
    if not findings:
        return Usable.YES, NO_TEXT
    worst = findings[0].advice
    return worst.usable, worst.until if worst.usable.rank >= Usable.IMPAIRED.rank else NO_TEXT


def _can(w: Words, where: Scoped, about: Sequence[Finding], usable: Usable, until: Text) -> str:
    first, d = _FIRST[usable].in_(w.lang), w.d
    what = w.view.where(where.subjects) if where.subjects else ""
    if usable is Usable.UNKNOWN and about and not where.narrow and no_gpu(d.facts):
        return _without_gpu(w, about)
    if usable is Usable.UNKNOWN and about and d.settled and (lost := _base_unread(w)):
        return w.t(f"What was read does not forbid it, but that is no full yes: {lost} not read{_how(w, ' (', ')')}. Found: {w.title(about[0])}.",
                   f"已读内容不妨碍使用，但还不能完全肯定：未读取{lost.rstrip()}{_how(w, '（', '）')}。已发现：{w.quoted(w.title(about[0]))}。")  # fmt: skip
    if usable is Usable.UNKNOWN and not about:
        seen = not where.narrow or values_of(w, where)
        if not d.settled and seen:
            return clean(d.verdict.text.in_(w.lang))
        if seen and (lost := _base_unread(w)):
            of = w.t(f"on {what}" if what else "in what was read", f"{_spaced(what)}" if what else "已读内容")
            work = (does(d.facts, where.subjects) if where.narrow else None) or NO_TEXT
            return w.t(f"Nothing wrong was found {of}, but that is no full yes: {lost} not read{_how(w, ' (', ')')}. {work.en}".rstrip(),
                       f"{of}未发现问题，但还不能完全肯定：未读取{lost.rstrip()}{_how(w, '（', '）')}。{work.in_('zh')}")  # fmt: skip
        return w.t(f"{first}: nothing was read of {what}.", f"{first}：没有读到{_spaced(what)}的任何信息。")
    if not about:
        of = w.t(f"on {what}", what) if what else w.t("in what was looked at", "所查看的内容")
        shared = next((f for f in bad_roots(where.others) if f.advice.bucket in WHOLE_NODE), None)
        if where.narrow and shared is not None:
            return w.t(f"{first}, by itself: nothing wrong was found {of}. But {shared.advice.bucket} is due elsewhere, and takes it down too.",
                       f"{first}，就其自身而言：{_spaced(of, 1)}未发现问题。但其他位置需要 {shared.advice.bucket}，会一并中断它。")  # fmt: skip
        return w.t(f"{first}: nothing wrong was found {of}.", f"{first}：{_spaced(of, 1)}未发现问题。")
    reason = w.title(about[0])
    if usable is Usable.YES and about[0].advice.bucket is Bucket.IGNORE:
        return w.t(
            f"{led(f'{first}, and nothing has to be done', reason, 'en')}.", f"{first}，无需处理：{w.quoted(reason)}。"
        )
    if usable is Usable.YES:
        return w.t(f"{led(f'{first}, but look after this', reason, 'en')}.", f"{first}，但需留意：{w.quoted(reason)}。")
    when = until.in_(w.lang)
    if when:
        gap = " " if when[:1].isascii() else ""
        return w.t(
            f"{led(_until(usable, first, when), reason, 'en')}.", f"{first}，须等{gap}{when}：{w.quoted(reason)}。"
        )
    return w.t(f"{led(first, reason, 'en')}.", f"{first}：{w.quoted(reason)}。")


def _without_gpu(w: Words, about: Sequence[Finding]) -> str:
    """Of a node without a GPU: that there is none comes ahead of whatever else is wrong with it."""
    first, title = _FIRST[Usable.UNKNOWN].in_(w.lang), w.title(about[0])
    return w.t(
        f"{first}: no GPU is on the bus of this node. {title}.",
        f"{first}：该节点总线上没有 GPU。另外：{w.quoted(title)}。",
    )


def _base_unread(w: Words) -> str:
    """What nobody read of that on which a yes rests, in English with its verb; empty when all of it was."""
    names = [name.in_(w.lang) for name in unread(w.d.facts)]
    if w.lang == "zh":
        return _spaced("和".join(names)) if names else ""
    return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'}" if names else ""


def _how(w: Words, opening: str, closing: str) -> str:
    """The commands whose outputs tell what was not read."""
    makers = {str(k.inner.value) for k in w.d.facts.observations if k.fact == "gpu.vendor"}
    tool = next((vendors.TOOLS[maker] for maker in sorted(makers) if maker in vendors.TOOLS), "")
    told_by = {**TOLD_BY, **({next(iter(TOLD_BY)): tool} if tool else {})}
    commands = [f"`{command}`" for name, command in told_by.items() if name in unread(w.d.facts)]
    return f"{opening}{listed(commands, w.lang)}{closing}" if commands else ""


def _until(usable: Usable, first: str, when: str) -> str:
    """``Not until the GPU has been reset``, ``No, not until ...``, ``Only for what runs already, no new work until ...``."""
    if usable is Usable.IMPAIRED:
        return f"{first}, no new work until {when}"
    return f"Not until {when}" if usable is Usable.NOT_YET else f"{first}, not until {when}"


def _should(w: Words, should: Should, about: Sequence[Finding], usable: Usable, until: Text) -> str:
    if not about:
        ended = next((f for f in w.d.roots if f.events and all(o.fact == "job_terminated" for o in f.events)), None)
        if should.asked is Asked.RESTART_JOB and ended is not None:
            title, why = w.title(ended), ended.rule.why.in_(w.lang)
            return w.t(f"{led('Yes', title, 'en')}. {why}", f"可以：{w.quoted(title)}。{why}")
        if usable is Usable.UNKNOWN:
            if w.d.settled and (lost := _base_unread(w)):
                return w.t(f"Nothing that was read asks to {should.word.en}; but {lost} not read{_how(w, ' (', ')')}.",
                           f"已读内容没有需要{should.word.in_('zh')}的问题；但未读取{lost.rstrip()}{_how(w, '（', '）')}。")  # fmt: skip
            return w.t("Cannot say: what was read does not settle it.", "无法判断：已读到的信息不足以下结论。")
        if should.without:
            return w.t(
                f"Yes: nothing was found that asks to {should.word.en}.",
                f"可以：没有发现需要{should.word.in_('zh')}的问题。",
            )
        return w.t(
            f"No: nothing was found that asks to {should.word.en}.",
            f"不需要：没有发现需要{should.word.in_('zh')}的问题。",
        )
    if usable is Usable.UNKNOWN and no_gpu(w.d.facts):
        return _without_gpu(w, about)  # neither a yes nor a no of a GPU follows from what its host is busy with
    return compared(w, should, _advised(w, about), until)


def _advised(w: Words, about: Sequence[Finding]) -> list[Advised]:
    return [
        Advised(
            w.title(f),
            f.advice.bucket,
            w.action(f),
            f.advice.usable.stops,
            _later(f, "replace"),
            _later(f, "reset the gpu"),
        )
        for f in about
    ]


def _later(f: Finding, deed: str) -> Text:
    """The step behind the first one that does, or whose outcome can be, what is named."""
    return next((t for t in f.advice.then if deed in t.en.casefold()), NO_TEXT)


def _parts(w: Words, where: Scoped, about: Sequence[Finding], usable: Usable) -> list[Part]:
    parts: list[Part] = []
    if where.unnamed_node:
        parts.append(Paragraph(w.t("The sources do not tell the name of their node; it is taken to be the one you named.",
                                   "来源未说明其节点名称，此处视为您所指的节点。")))  # fmt: skip
    parts.extend(Paragraph(lost(w, u.slot, u.value, u.known)) for u in where.unknown)
    if about:
        parts.append(Items(tuple(_reason(w, f) for f in about[:REASONS])))
        if len(about) > REASONS:
            parts.append(Paragraph(label("more_lines", w.lang).format(n=len(about) - REASONS)))
        a = about[0].advice
        parts.append(Fields((
            (w.t("do", "动作"), w.action(about[0])),
            (w.t("command", "命令"), clean(a.command) if a.pasteable else ""),
            (w.t("risk", "风险"), "" if a.risk == "safe" else label(str(a.risk), w.lang)),
            (w.t("runbook", "处置手册"), f"gpudiag runbook show {a.runbook}" if a.runbook else ""),
        )))  # fmt: skip
    elif usable is Usable.UNKNOWN:
        parts += w.section("Missing", "缺少", w.unseen(3)) or w.section("Looked at", "查看了", looked_at(w))
    elif where.narrow:
        n = len(values_of(w, where))
        parts.append(Items((read_of(w, n),)))
        parts += w.section("Could not be seen", "未能查看", _unread(w, where))
    else:
        parts.append(Items(tuple(looked_at(w)[:3])))
        parts += w.section("Could not be seen", "未能查看", w.unseen(2))
    return [*parts, *elsewhere(w, where)]


def elsewhere(w: Words, where: Scoped) -> tuple[Part, ...]:
    """What is wrong with the rest, where the question was about a part: in a line."""
    rest = bad_roots(where.others) if where.narrow else []
    if not rest:
        return ()
    said = listed((f"{w.title(f)}{aside(str(f.advice.bucket), w.lang)}" for f in rest[:2]), w.lang, ";")
    more = len(rest) - 2
    tail = f"{w.mark}{label('more_lines', w.lang).format(n=more)}" if more > 0 else ""
    return (Paragraph(w.t(f"Elsewhere: {said}{tail}.", f"其他位置：{said}{tail}。")),)


def _spaced(name: str, behind: int = 0) -> str:
    """A name within a Chinese sentence: Latin letters and digits stand apart."""
    ahead = " " if not behind and name[:1].isascii() else ""
    return f"{ahead}{name}{' ' if name[-1:].isascii() else ''}"


def read_of(w: Words, n: int) -> str:
    """How much was read of what was asked about."""
    return w.t(
        f"{n} value{'' if n == 1 else 's'} of it {'was' if n == 1 else 'were'} read.", f"读取了它的 {n} 项数值。"
    )


def values_of(w: Words, where: Scoped) -> list[Observation]:
    """What was answered about the things named: not merely what they are called."""
    named = set(where.subjects)
    seen = w.d.facts.observations
    about = {s for s in {k.inner.subject for k in seen} if not named.isdisjoint(s.ancestors())}
    return [
        k.inner
        for k in seen
        if k.inner.status.answered
        and k.inner.origin is not Origin.TOLD
        and k.fact not in _NAMES
        and k.inner.subject in about
    ]


def _unread(w: Words, where: Scoped) -> list[str]:
    """What was asked about the things named and refused or failed."""
    names = {str(s) for s in where.subjects}
    known = w.d.facts.vocabulary
    gaps = (*w.d.coverage.denied, *w.d.coverage.failed)
    lost = dict.fromkeys(meaning(g.fact, known, w.lang) for g in gaps if g.subject in names)
    shown = list(lost)[:FACTS]
    rest = [label("more_lines", w.lang).format(n=len(lost) - FACTS)] if len(lost) > FACTS else []
    return [listed([*shown, *rest], w.lang, ";")] if shown else []


def _reason(w: Words, f: Finding) -> str:
    return f"{label(str(f.severity), w.lang)} {w.title(f)}{aside(w.grade(f), w.lang)}"


def lost(w: Words, slot: str, value: str, known: Sequence[str]) -> str:
    """That something named is not known, and what there is instead."""
    word = {"gpu": "GPU", "pid": w.t("process", "进程"), "process": w.t("process", "进程"), "rank": "rank",
            "job": w.t("job", "作业"), "node": w.t("node", "节点")}[slot]  # fmt: skip
    there = w.t("; there is: ", "；已知的有：") + listed(known, w.lang) if known else ""
    return w.t(
        f"No {word} {value} is known{there}.", f"未知的{' ' if word[:1].isascii() else ''}{word} {value}{there}。"
    )


def _unknown(turn: Turn, w: Words, where: Scoped) -> Reply:
    first = where.unknown[0]
    gone = lost(w, first.slot, first.value, first.known)
    head = f"{_FIRST[Usable.UNKNOWN].in_(w.lang)}{colon(w.lang)}{gone[:1].lower() if w.lang != 'zh' else gone[:1]}{gone[1:]}"
    parts = tuple(Paragraph(lost(w, u.slot, u.value, u.known)) for u in where.unknown[1:])
    again = _suggested(w, first.slot, first.known)
    return Reply(
        turn.lang,
        head,
        parts,
        settled=False,
        suggestions=again or suggest(turn.lang, "verdict", "help"),
        data={"answer": "verdict", "usable": "unknown",
              "unknown": [{"slot": u.slot, "value": u.value, "known": list(u.known)} for u in where.unknown]},
    )  # fmt: skip


def _suggested(w: Words, slot: str, known: Sequence[str]) -> tuple[str, ...]:
    word = {"gpu": "gpu", "pid": "pid", "rank": "rank", "job": "job", "node": "node", "process": "process"}[slot]
    names = [name.partition(" ")[0] for name in known[:3]]
    return tuple(w.t(f"is {word} {name} ok?", f"{word} {name} 正常吗？") for name in names)
