"""What is wrong, or why is it so: the diagnosis, and of a symptom the hypotheses with what speaks for and against them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from assistant.diagnosis import Diagnosis, State, Verdict, bad_roots, ended, no_gpu, only_said, verdict_of
from assistant.dialogue import Turn, _compared, _running, _told, _work, cause
from assistant.dialogue._of_run import meanwhile, of_run
from assistant.dialogue._pointed import denied, pointed
from assistant.dialogue._scope import Scoped, scoped
from assistant.dialogue._should import asked_of
from assistant.dialogue._traced import bottleneck, only_traces
from assistant.dialogue._words import words
from assistant.intent.assumed import left_alone
from assistant.render.labels import colon, led
from assistant.render.sheet import Fields, Heading, Items, Paragraph, Part
from assistant.render.working import at_work
from assistant.reply import Reply
from knowledge.bottlenecks import asked_about
from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy
from knowledge.observation import Scope
from rules.model import Bucket, Usable

if TYPE_CHECKING:
    from assistant.differential import Row
    from rules.engine import Finding

CLOSEST = 3  # hypotheses that are named where nothing was looked at
BESIDE = 4  # findings that have nothing to do with the question: so many are named
_ASK = {
    "why": Text("why?", "为什么？"),
    "evidence": Text("how do you know?", "你是怎么知道的？"),
    "else": Text("what else could it be?", "还可能是什么原因？"),
    "next": Text("what next?", "下一步做什么？"),
    "use": Text("can I keep using it?", "还能继续用吗？"),
}


def answer(turn: Turn) -> Reply:
    """The whole diagnosis; of a symptom what concerns it, the differential table, and the rest in a line each. Pure."""
    d = turn.diagnosis
    assert d is not None  # the session looked, or was told something
    w = words(turn)
    if (blamed := cause.of_code(turn)) is not None:
        return blamed
    if (held := _compared.answer(turn, w)) is not None:
        return held
    if (named := bottleneck(turn)) is not None:
        return named
    unread = only_said(d.facts) or no_gpu(d.facts) or asked_about(turn.query.text)
    if turn.query.page and unread:  # nothing was looked at that tells it, and there is advice
        from assistant.dialogue import explain

        return explain.shown(turn.query.page, turn.lang)
    if (of_work := _work.answer(turn)) is not None:
        return of_work
    if (running := _running.about(turn)) is not None:
        return _running.answer(turn, running)
    if (told := _told.answer(turn, w)) is not None:
        return told
    # A fault that is told answers, whatever else is known of such trouble.
    settled_by_word = only_said(d.facts) and bool(bad_roots(d.findings)) and not any(map(_told.pasted, _told.stated(d)))
    if (
        settled_by_word
        and not _only_tells(turn, d)
        and (_told.rates(turn) or asked_of(turn.query) is not None or of_run(turn.query) is not None)
    ):
        from assistant.dialogue import verdict

        return verdict.answer(turn)
    if not settled_by_word and not turn.query.symptoms and (where := scoped(d, turn.query.slots)).narrow:
        return _of_part(turn, d, where)
    if left_alone(turn.query.text) and bad_roots(d.findings) and not turn.query.symptoms:
        return _left_alone(turn, d)
    if (
        _state(turn)
        and not settled_by_word
        and (where := scoped(d, turn.query.slots)).narrow
        and not bad_roots(where.about)
    ):
        return _of_part(turn, d, where)  # "is gpu 3 too hot?": whatever another one is
    if settled_by_word or not turn.query.symptoms or _beyond_symptom(turn, d):
        shown = _with_second(d, _told.second(turn)) if settled_by_word else d
        return Reply(
            turn.lang,
            "",
            (*_remark(turn), *_told.beside(turn, w)),
            shown,
            settled=d.settled,
            suggestions=_next(turn, d),
        )
    from assistant.differential import differential

    turn = replace(turn, query=replace(turn.query, symptoms=_as_found(turn, d)))
    meant = pointed(turn.query)
    doubted = denied(turn.query, _told.stated(d)) if only_said(d.facts) else ()
    rows = differential(turn.query.symptoms, d, turn.plan, turn.lang, turn.ruleset, meant, doubted)
    if (refuted := _refuted(turn, d, rows)) is not None:
        aside = replace(d, findings=())  # what else is wrong stands beside it, all of it
        return Reply(turn.lang, refuted, _beside(d, aside, turn.lang), settled=True, suggestions=_next(turn, d),
                     data={"differential": [_plain(r) for r in rows]})  # fmt: skip
    shown = _about_symptom(d, turn, rows, meant)
    parts = _hypotheses(rows, turn.lang, only_said(d.facts))
    return Reply(
        turn.lang, "", (*_remark(turn), *_told.beside(turn, w), *parts, *_beside(d, shown, turn.lang)), replace(d, settled=shown.settled), shown,
        focus=next((f.id for f in shown.roots if shown.settled), ""), settled=shown.settled,
        suggestions=_next(turn, shown), data={"differential": [_plain(r) for r in rows]},
    )  # fmt: skip


def _left_alone(turn: Turn, d: Diagnosis) -> Reply:
    """What comes of it when nobody does anything: the fault stays, with what that means and what would end it."""
    w, f = words(turn), bad_roots(d.findings)[0]
    mild = f.advice.bucket in (Bucket.MONITOR, Bucket.IGNORE)
    lead = (
        w.t("For now it can be left alone", "暂时可以不管") if mild else w.t("It does not mend itself", "不会自行恢复")
    )
    head = led(lead, d.verdict.text.in_(w.lang), w.lang)
    rows = Fields(
        (
            (w.t("do", "动作"), w.action(f)),
            (w.t("runbook", "处置手册"), f"gpudiag runbook show {f.advice.runbook}" if f.advice.runbook else ""),
        )
    )
    return Reply(turn.lang, head, (Paragraph(f.rule.why.in_(w.lang)), rows), focus=f.id, settled=d.settled, suggestions=_next(turn, d),
                 data={"answer": "left_alone", "finding": f.rule.id})  # fmt: skip


def _beyond_symptom(turn: Turn, d: Diagnosis) -> bool:
    """Whether a pasted line shows a fault that no hypothesis of the symptom is about: what a tool printed goes before the words around it."""
    if not (only_said(d.facts) and any(map(_told.pasted, _told.stated(d)))):
        return False
    from knowledge.symptoms import symptoms

    known = [symptom for s in turn.query.symptoms if (symptom := symptoms().get(s)) is not None]
    rules = {r for symptom in known for h in symptom.hypotheses for r in (*h.rules, *h.signs)}
    roots = bad_roots(d.findings)
    return bool(roots) and rules.isdisjoint(f.rule.id for f in roots)


def _only_tells(turn: Turn, d: Diagnosis) -> bool:
    """Whether nothing is asked, and the "fine" of the sentence is a side of the contrast that it tells."""
    return not turn.query.asks and any(f.subject.scope is Scope.JOB for f in bad_roots(d.findings)[:1])


def _with_second(d: Diagnosis, second: Text) -> Diagnosis:
    """The diagnosis whose verdict names what was told beside it."""
    if not second:
        return d
    text = Text(
        f"{d.verdict.text.en} Told beside it: {second.en}.", f"{d.verdict.text.in_('zh')}同时还说：{second.in_('zh')}。"
    )
    return replace(d, verdict=replace(d.verdict, text=text))


def _hypotheses(rows: tuple[Row, ...], lang: str, told: bool) -> tuple[Part, ...]:
    """All of them with what speaks for and against each; of what is only `told` nothing does, and the closest few are named
    with what would settle each."""
    from assistant.differential import brief, summary, table

    if not told:
        heading = Heading(Text("Hypotheses", "可能的原因").in_(lang))
        return heading, Paragraph(summary(rows, lang)), *table(rows, lang)
    return Heading(Text("Could be", "可能是").in_(lang)), Items(
        tuple(f"{r.title}{colon(lang)}{brief(r.next)}" if r.next else r.title for r in rows[:CLOSEST])
    )


def _of_part(turn: Turn, d: Diagnosis, where: Scoped) -> Reply:
    """What is wrong with the GPU, process or rank that is named; the rest in a line each."""
    if not bad_roots(where.about):
        from assistant.dialogue import verdict

        reply = verdict.answer(turn)
        if reply.data.get("usable") != Usable.YES:
            return reply
        place = words(turn).view.where(where.subjects)
        said = Text(
            f"Nothing wrong was found on {place}.", f"{place}{' ' if place[-1:].isascii() else ''}未发现问题。"
        ).in_(turn.lang)
        return replace(reply, headline=said)
    judged = verdict_of(where.about, d.settled, d.facts, whole=d.findings)
    shown = replace(d, findings=where.about, ruled_out=(), undecided=(), verdict=judged)
    return Reply(
        turn.lang, "", (*_remark(turn), *_beside(d, shown, turn.lang)), d, shown, focus=shown.roots[0].id,
        settled=d.settled, suggestions=_next(turn, shown),
    )  # fmt: skip


def _plain(row: Row) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(row)


def _as_found(turn: Turn, d: Diagnosis) -> tuple[str, ...]:
    """The symptoms asked for: what is slow is the server, where a server's own fault was found."""
    asked = turn.query.symptoms
    if only_said(d.facts) or "slow-training" not in asked or "slow-serving" in asked:
        return asked
    return ("slow-serving", *asked) if any("serving" in f.rule.symptoms for f in bad_roots(d.findings)) else asked


def _about_symptom(d: Diagnosis, turn: Turn, rows: tuple[Row, ...], meant: Sequence[str]) -> Diagnosis:
    """The diagnosis as the answer to "why": its findings are those that speak for a hypothesis, with their effects.

    `meant`: ids of hypotheses that the words point at.
    """
    ids = {name for r in rows if r.state in ("for", "possible") for name in (*r.findings, *r.causes)}
    known = {f.id: f for f in d.findings}
    where = scoped(d, turn.query.slots)
    if where.narrow and (here := ids & {f.id for f in bad_roots(where.about)}):
        ids = here  # "why is gpu 0 slow": what ails another one is told beside it
    ids |= {e for name in ids if name in known for e in known[name].explains}
    findings, whole, whole_verdict = tuple(f for f in d.findings if f.id in ids), d.findings, d.verdict
    mild = State.OK if d.verdict.state is State.OK else State.DEGRADED  # never worse than `check` says
    d = replace(d, findings=findings, ruled_out=(), undecided=())
    supported = [r for r in rows if r.state == "for"]
    looked = bool(d.facts.observations) and not only_said(d.facts)
    title_en, title_zh = _titles(turn)
    if supported and bad_roots(findings):
        verdict = verdict_of(findings, True, d.facts, whole=whole)
        lead = Text(led(title_en, verdict.text.en, "en"), f"{title_zh}：{verdict.text.zh}")
        return replace(d, settled=True, verdict=replace(verdict, text=lead))
    if looked and (
        own := _of_the_job(turn, whole)
    ):  # the job's own log tells how it ended, whatever brings such a thing about
        ids = {e for f in own for e in (f.id, *f.explains)}
        verdict = verdict_of(own, True, d.facts, whole=whole)
        lead = Text(led(title_en, verdict.text.en, "en"), f"{title_zh}：{verdict.text.zh}")
        shown = tuple(f for f in whole if f.id in ids)
        return replace(d, findings=shown, settled=True, verdict=replace(verdict, text=lead))
    if supported and (end := ended([f for f in findings if f.id in supported[0].findings], d.facts)):
        lead = Text(f"{end.en} No fault was found in what was read.", f"{end.zh}所读内容中没有发现故障。")
        return replace(d, settled=True, verdict=Verdict(mild, whole_verdict.usable, NO_TEXT, lead))
    if supported:
        does, likely = at_work(d.facts) or NO_TEXT, supported[0].title
        begun = f"{likely[:1].lower()}{likely[1:]}" if likely[1:2].islower() or likely[1:2] == " " else likely
        lead = Text(
            f"{title_en}. A likely cause: {begun}. {does.en} No fault was found in what was read.".replace("  ", " "),
            f"{title_zh}。可能原因：{likely}。{does.in_('zh')}所读内容中没有发现故障。",
        )  # fmt: skip
        return replace(d, settled=True, verdict=Verdict(mild, whole_verdict.usable, NO_TEXT, lead))
    if looked and (roots := bad_roots(findings)) and any(r.causes for r in rows):  # what brings it about, one step back
        verdict = verdict_of(roots, True, d.facts, whole=whole)
        lead = Text(led(title_en, verdict.text.en, "en"), f"{title_zh}：{verdict.text.zh}")
        return replace(d, settled=True, verdict=replace(verdict, text=lead))
    open_ = sum(r.state in ("unknown", "possible") for r in rows)
    if not looked:
        text = _by_prior(rows, title_en, title_zh, _says(turn), bool(rows) and rows[0].id in meant)
        if of_run(turn.query) is not None:
            first = meanwhile(turn.query)
            text = Text(f"{first.en} {text.en}", f"{first.in_('zh')}{text.in_('zh')}")
    elif not open_:
        text = Text(
            f"{title_en}: none of the {len(rows)} known causes holds here.",
            f"{title_zh}：{len(rows)} 种已知原因在此均不成立。",
        )
    elif bad_roots(whole):  # never milder than `check`, and no claim that it is the cause
        found = whole_verdict.text
        text = Text(
            f"{title_en}: no known cause of it is shown. Found here: {found.en}",
            f"{title_zh}：没有证据指向已知原因。在此发现：{found.in_('zh')}",
        )
        return replace(d, settled=False, verdict=replace(whole_verdict, text=text))
    else:
        shut = len(rows) - open_
        text = Text(
            f"{title_en}: no cause found yet; "
            + (
                f"{shut} of {len(rows)} possible causes are ruled out."
                if shut
                else f"what was read decides none of {len(rows)} possible causes."
            ),
            f"{title_zh}：尚未找到原因；"
            + (
                f"{len(rows)} 种可能原因中已排除 {shut} 种。"
                if shut
                else f"所读内容无法判定 {len(rows)} 种可能原因中的任何一种。"
            ),
        )
    return replace(d, settled=False, verdict=Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, text))


def _of_the_job(turn: Turn, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Asked why a job ended or hangs: what its own log shows to be wrong, root causes alone."""
    from knowledge.symptoms import symptoms

    tags = {tag for s in turn.query.symptoms if s in symptoms() for tag in symptoms()[s].tags}
    scopes = (Scope.DOCUMENT, Scope.RANK, Scope.JOB)
    return tuple(f for f in bad_roots(findings) if f.subject.scope in scopes) if tags & {"crash", "hang"} else ()


_WHETHER = lazy(
    r"^\W*(?:is|are|was|were|has|have|does|do|did|could|can)(?![a-z])|[吗么嘛]|是不是|有没有|是否|会不会", re.IGNORECASE
)


_HEAT = lazy(r"heat|(?<![a-z])hot(?![a-z])|temp|thermal|热|温|烫", re.IGNORECASE)


def _state(turn: Turn) -> str:
    """The hypothesis that is the state of the hardware asked about; empty where the symptom is none."""
    from knowledge.symptoms import symptoms

    first = symptoms().get(turn.query.symptoms[0]) if turn.query.symptoms else None
    return first.state if first is not None else ""


def _refuted(turn: Turn, d: Diagnosis, rows: tuple[Row, ...]) -> str | None:
    """ "Is it overheating?": no, with what was read that says so; None where that is open, or something else is asked."""
    from knowledge.symptoms import hypotheses

    if only_said(d.facts) or not _WHETHER.search(turn.query.text):
        return None
    state = _state(turn)
    of_heat = bool(state) and "gpu.temperature.core" in hypotheses()[state].facts
    if of_heat and not _HEAT.search(turn.query.text) and any(r.state == "for" for r in rows):
        return None  # "is it throttling?": not by heat, and by something else
    row = next((r for r in rows if r.id == state and r.state == "against"), None)
    if row is None or not row.against:
        return None
    read = [
        o.value for g in d.facts.subjects(Scope.GPU) if (o := d.facts.current("gpu.temperature.core", g)) is not None
    ]
    temperatures = (
        sorted(v for v in read if isinstance(v, int | float))
        if "gpu.temperature.core" in hypotheses()[state].facts
        else []
    )
    if not temperatures:
        return Text(f"No, ruled out: {row.title}.", f"不是，已排除：{row.title}。").in_(turn.lang)
    low, high = temperatures[0], temperatures[-1]
    span = f"{low:g} °C" if low == high else Text(f"{low:g} to {high:g} °C", f"{low:g} 到 {high:g} °C").in_(turn.lang)
    return Text(f"No: {span}, and no clock is lowered because of heat.", f"没有：{span}，也没有因过热而降频。").in_(
        turn.lang
    )


def _by_prior(rows: tuple[Row, ...], title_en: str, title_zh: str, says: Text, meant: bool) -> Text:
    """What to suspect first, and what decides that: of a machine that nobody looked at. `rows` are in the one language asked for.

    `says`: what such a symptom means at all, where its readings deceive; `meant`: whether the words point at the first row.
    """
    if says and not meant:
        return says
    from assistant.differential.words import NEEDS

    usual, *others = [r.title for r in rows[:2]]
    step = rows[0].next.rstrip(".。")
    lacks = next((step.removeprefix(n) for n in (NEEDS.en, NEEDS.zh) if step.startswith(n)), "")
    decide = (
        Text(f"To decide it takes {lacks}.", f"判断需要：{lacks}。")
        if lacks
        else Text(f"To decide: {step}.", f"判断方法：{step}。")
    )
    then_en, then_zh = (f", then: {others[0]}", f"，其次是“{others[0]}”") if others else ("", "")
    first = Text("what is said points to", "所述情况指向") if meant else Text("suspect first", "首先怀疑")
    return Text(
        f"{title_en}: no machine was looked at; {first.en}: {usual}{then_en}. {decide.en}",
        f"{title_zh}：未查看任何机器；{first.zh}“{usual}”{then_zh}。{decide.zh}",
    )


def _beside(d: Diagnosis, shown: Diagnosis, lang: str) -> tuple[Part, ...]:
    """What else is wrong here, a line each: it was found, and it is not what was asked."""
    from assistant.render.labels import colon, headline, known_as, label, subject_name

    there = {f.id for f in shown.findings}
    others = [f for f in bad_roots(d.findings) if f.id not in there]
    if not others:
        return ()
    alike: dict[tuple[str, str], list[Finding]] = {}
    for f in others:
        alike.setdefault((str(f.severity), f.title.in_(lang)), []).append(f)
    named, called = len({f.subject.host for f in d.findings}) > 1, known_as(d.facts)
    lines = [
        f"{label(severity, lang)} {title}{colon(lang)}{subject_name(its[0].subject, lang)}"
        if len(its) == 1
        else f"{label(severity, lang)} {headline(its[0].title, [f.subject for f in its], lang, named=named, called=called)}"
        for (severity, title), its in islice(alike.items(), BESIDE)
    ]
    if len(alike) > BESIDE:
        lines.append(label("more_lines", lang).format(n=len(alike) - BESIDE))
    return (Heading(Text("Also found here", "此外还发现").in_(lang)), Items(tuple(lines)))


def _says(turn: Turn) -> Text:
    """What the symptom asked about means, where that is the answer: the page of a reading that misleads."""
    from knowledge.symptoms import symptoms

    first = symptoms().get(turn.query.symptoms[0]) if turn.query.symptoms else None
    return first.text if first is not None and "busy" in first.tags else NO_TEXT


def _titles(turn: Turn) -> tuple[str, str]:
    from knowledge.symptoms import symptoms

    known = symptoms()
    titles = [known[s].title for s in turn.query.symptoms if s in known][:1]  # the best fit; the others are its kin
    return ", ".join(t.en.split(":")[0] for t in titles), "、".join(t.zh.split("：")[0] for t in titles)


def _remark(turn: Turn) -> tuple[Part, ...]:
    """A process that was named and that nobody saw."""
    from assistant.session.processes import pid_known, pid_suggestions

    d = turn.diagnosis
    if d is None or not turn.query.slots.pid:
        return ()
    looked = "node.processes" in d.facts.facts
    absent = [pid for pid in turn.query.slots.pid if looked and not pid_known(d.facts, pid)]
    if not absent:
        return ()
    near = ", ".join(pid_suggestions(d.facts)[:4])
    names = ", ".join(map(str, absent))
    said = Text(
        f"No process {names} was seen.{f' On GPUs: {near}.' if near else ''}",
        f"未看到进程 {names}。{f'正在使用 GPU 的进程：{near}。' if near else ''}",
    )
    return (Paragraph(said.in_(turn.lang)),)


def _next(turn: Turn, d: Diagnosis) -> tuple[str, ...]:
    keys: tuple[str, ...] = ("why", "next", "use") if d.roots else ("else", "evidence")
    if d.roots and only_traces(d):  # of the health of the machine a trace tells nothing
        keys = ("why", "next", "else")
    return tuple(_ASK[k].in_(turn.lang) for k in keys)
