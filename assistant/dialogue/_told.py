"""Answers that rest on nothing but what a person says: no machine, recording or log was looked at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.diagnosis import State, Verdict, bad, bad_roots, only_said
from assistant.dialogue import _counters, _normal
from assistant.dialogue._of_run import decided, meanwhile, nothing_wrong, of_run
from assistant.dialogue._pages import close_page, closest, distinct
from assistant.dialogue._rated import Rated, rated, stands, to_do, usual
from assistant.dialogue._should import Advised, asked_in, asked_of, compared
from assistant.find import search
from assistant.intent.query import PASTED, Intent
from assistant.intent.stated import GRAVER, at_full_load
from assistant.intent.symptoms import without
from assistant.render.labels import colon, headline, led, listed, titled
from assistant.render.sheet import Fields, Items, Paragraph, Part
from assistant.render.working import HELD, TOLD, at_work
from assistant.reply import Reply
from knowledge.facts import vocabulary
from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Origin
from knowledge.readings import Rating
from knowledge.text import opened
from knowledge.workloads import named
from rules.engine import Grade
from rules.life import BACK_AFTER
from rules.model import Bucket, Usable, facts_named

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from assistant.dialogue._words import Words
    from rules.engine import Finding

CLOSEST = 3  # pages that are named where nothing was understood
SHOWN = 4  # readings that a first line names


_BESIDE = ("gpu.name", BACK_AFTER)  # what is told of a fault or a GPU, and is no reading
_WHAT = {"sensor.kind": "sensor.state", "part.kind": "part.health"}  # of what something was said, beside how it is


def pasted(o: Observation) -> bool:
    """Whether it was read from lines within what a person said."""
    return o.source.call == PASTED


def stated(d: Diagnosis) -> list[Observation]:
    """What the person said, and of the others beside the thing in question only what is not usual."""
    of = {(k.fact, k.inner.subject) for k in d.facts.observations}
    return [
        k.inner
        for k in d.facts.observations
        if k.inner.origin is not Origin.DERIVED
        and k.fact not in _BESIDE
        and (_WHAT.get(k.fact, ""), k.inner.subject) not in of
        and ("others" not in k.inner.subject.id or usual(k.inner) is not Rating.GOOD)
    ]


def doubted(turn: Turn) -> list[Observation]:
    """What the person stated about a machine that was looked at, where no finding rests on it; empty when all of it is usual."""
    assert turn.diagnosis is not None
    said = [k.inner for k in turn.diagnosis.facts.observations if k.inner.origin is Origin.TOLD]
    asked = {(o.fact, o.value if not isinstance(o.value, Event) else None) for o in turn.query.observations}
    said = [o for o in said if (o.fact, o.value if not isinstance(o.value, Event) else None) in asked]
    return [] if all(r.rating == Rating.GOOD for r in rated(turn.diagnosis, said)) else said


def answer(turn: Turn, w: Words) -> Reply | None:
    """What can be said of stated readings that no rule calls a fault: the worst of them decides, and what was not understood
    forbids a yes. None where a rule holds, or something was seen."""
    d = turn.diagnosis
    assert d is not None
    if not only_said(d.facts) or bad(d.findings):
        return None
    said = stated(d)
    lost = [c for c in turn.query.unread if not _of_symptom(c)]
    if not lost and (usual_there := _counters.quiet(turn, said)) is not None:
        return _meant(turn, d, usual_there)
    if not (said or turn.query.unread or turn.query.fine):
        return None
    if not said and 1 <= len(turn.query.unread) <= SHOWN and (measured := _of_measure(turn)) is not None:
        return measured
    if turn.query.symptoms and not said:
        return None  # the differential says more
    if not said and turn.query.unread and (known := close_page(turn.query)):
        return _of_page(turn, known)
    rows = rated(d, said)
    worst = rows[0].rating if rows else Rating.OPEN
    if worst is Rating.BAD:
        slow = all(r.observation.fact in _CLOCKS for r in rows if r.rating is Rating.BAD)
        usual = _counters.at_its_limit(turn, said) if slow else None
        return _bad(turn, w, rows) if usual is None else _meant(turn, d, usual, _counters.parts(w, ()))
    if not lost and (rests := _normal.of_rest(turn, rows)):
        return _meant(turn, d, _normal.of_resting(turn, w, rests), _advised(w))
    open_, good = [r for r in rows if r.rating is Rating.OPEN], [r for r in rows if r.rating is Rating.GOOD]
    only = (
        all(map(_REBOOTED.fullmatch, lost))
        and set(turn.query.symptoms) <= {"memory-errors"}
        and not _JUST_LOADED.search(turn.query.text)
    )
    if only and (past := _history(w, open_, good)):  # whoever tells nothing else asks what to make of it
        return _reply(turn, past, [], Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, NO_TEXT), rows)
    if turn.query.intent is Intent.DIAGNOSE and GRAVER.intersection(turn.query.symptoms[:1]):
        return None  # how busy it looks while it hangs or ends explains nothing
    asks_all = _ALL_WELL.search(asked_in(turn.query)) is not None and not any(o.fact == "gpu.name" for o in said)
    if asks_all and not lost and (known := _rest_is_well(turn, w, rows)):
        return _reply(turn, known, [], Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, NO_TEXT), rows)
    if (together := _of_counters(turn, w, said, lost)) is not None:
        return together
    judged = any(map(pasted, said)) or rates(turn) or asked_of(turn.query) is not None or of_run(turn.query) is not None
    # a clause of its own says that something is wrong
    reported = len(without(turn.query.unread)) < len(turn.query.unread)
    all_well = worst is Rating.GOOD and len(rows) > 1 and set(turn.query.symptoms) <= _NAMED_BY_READINGS
    if turn.query.symptoms and turn.query.intent is Intent.DIAGNOSE and (reported or not (judged or all_well)):
        return None
    if (
        not turn.query.unread
        and not _normal.asked(turn)
        and (noted := [f for f in d.roots if f.grade in (Grade.CONFIRMED, Grade.PROBABLE)])
    ):
        return _noted(turn, d, noted)
    head = _head(turn, w, rows)
    parts: list[Part] = []
    if turn.query.unread and rows:
        parts.append(Items(tuple(dict.fromkeys(stands(w, r) for r in rows))[:SHOWN]))
    if not said and turn.query.unread:
        parts += closest(distinct(search(turn.query.text))[:CLOSEST], turn.lang)
    lacks = dict.fromkeys(w.gaps(u.missing) for u in d.undecided[:3] if u.missing)
    parts += w.section("Would settle it", "可据此判断", [line for line in lacks if line])
    return _reply(turn, head, parts, Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, NO_TEXT), rows)


def _of_page(turn: Turn, name: str) -> Reply:
    """The page about what was told, where none of it could be judged: no verdict, so the question stays open."""
    from assistant.dialogue import explain

    found = explain.shown(name, turn.lang)
    return replace(
        found, settled=False, data={**found.data, "usable": "unknown", "not_taken_as_fact": list(turn.query.unread)}
    )


def _of_counters(turn: Turn, w: Words, said: Sequence[Observation], lost: Sequence[str]) -> Reply | None:
    """What readings of a GPU's work mean together; nothing that reassures beside clauses that were `lost`."""
    d = w.d
    if (starved := _counters.by_cpu(said)) is not None:
        return _meant(turn, d, starved, _counters.parts(w, ()))
    if (held := _counters.clock(turn, said)) is not None:
        return _meant(turn, d, held)
    if _THROTTLED.search(turn.query.text) and (free := _counters.clock_free(turn, said)) is not None:
        unread = tuple(c for c in turn.query.unread if not _counters.AT_TOP.search(c))
        return _meant(replace(turn, query=replace(turn.query, unread=unread)), d, free)
    if (drawn := _counters.by_power(turn, said)) is not None:
        return _meant(turn, d, drawn, _counters.parts(w, ()))
    counters = _counters.headline(turn, said)
    if counters is not None and counters[2] and not counters[1] and not lost:
        return _meant(
            turn, d, counters[0], _counters.parts(w, ())
        )  # at its power limit, which says more than "at work"
    # "at work" would say too much where a part does little, or where power alone leaves it open
    partly = counters is not None and (_counters.in_doubt(counters[1]) or not (counters[1] or counters[2]))
    kinds = HELD if lost else TOLD if partly else (*TOLD, "working")  # that it is held and idle reassures nobody
    if working := at_work(d.facts, kinds):
        unread = tuple(c for c in turn.query.unread if not _WHO.search(c))  # the steps below tell who
        turn = replace(turn, query=replace(turn.query, unread=unread))
        text = Text(f"{working.en} Nothing else was looked at.", f"{working.in_('zh')}没有查看其他信息。")
        return _meant(turn, d, text, _advised(w))
    if counters is not None and not (counters[2] and lost):
        return _meant(turn, d, counters[0], _counters.parts(w, counters[1]))
    return None


_CLOCKS = ("gpu.clock.sm", "gpu.clock.graphics")
_THROTTLED = lazy(
    r"(?<![a-z])(?:throttl\w*|held (?:down|back)|slowed|too hot|overheat\w*)(?![a-z])|降频|限频|过热|太热|压频",
    re.IGNORECASE,
)


def _of_measure(turn: Turn) -> Reply | None:
    """What is known of a measure that is no fact here ("busbw 180 GB/s"): what is usual, and never that it is good."""
    from assistant.dialogue import _measure

    found = _measure.answer(turn.query, turn.lang)
    if found is None or (found.data.get("rating") == "good" and (turn.query.symptoms or not _normal.asked(turn))):
        return None
    return replace(
        found, settled=False, data={**found.data, "usable": "unknown", "not_taken_as_fact": list(turn.query.unread)}
    )


def beside(turn: Turn, w: Words) -> tuple[Part, ...]:
    """All that was stated, where a rule holds of some of it or a symptom is asked about: each value with its limit, and what was
    not understood. A clause that names a trouble was understood as that."""
    return (*_as_stated(turn, w), *_lost_line(turn))


def _lost_line(turn: Turn) -> tuple[Part, ...]:
    lost = tuple(c for c in turn.query.unread if not _of_symptom(c))
    return unread_line(replace(turn, query=replace(turn.query, unread=lost)))


def second(turn: Turn) -> Text:
    """What was told beside the finding that leads, where only one was found: the readings that decide less."""
    from assistant.dialogue._words import words_of

    d = turn.diagnosis
    assert d is not None
    if len(bad_roots(d.findings)) != 1:
        return NO_TEXT
    (root,) = bad_roots(d.findings)
    used = {o.fact for o in (*root.because, *root.events)}
    figures = {source for name in facts_named(root.rule.leads.en) for source in _made_of(name)}  # stand in the sentence
    states = {source for name in used for source in _made_of(name)}  # that it is so is what the finding says
    rows = [
        o
        for o in stated(d)
        if o.fact not in used | figures | {"gpu.vendor"}
        and not (isinstance(o.value, bool) and o.fact in states)
        and not isinstance(o.value, Event)
        and not o.fact.startswith("job.")
    ]
    if not rows:
        return NO_TEXT
    return Text(*(
        listed(dict.fromkeys(words_of(d, lang).seen(o, places=False) for o in rows[:SECOND]), lang, ";") for lang in ("en", "zh")
    ))  # fmt: skip


def _made_of(fact: str) -> tuple[str, ...]:
    return tuple(vocabulary()[fact].derived_from)


SECOND = 2  # readings that a first line names beside the finding


def _of_symptom(clause: str) -> bool:
    """Whether a clause names a trouble or a kind of work, and was understood as that; that something is slow is one."""
    from assistant.intent import symptoms
    from assistant.intent.grammar import words_of

    return bool(symptoms.find(words_of(clause)) or named(clause)) or _SLOW.search(clause) is not None


_SLOW = lazy(r"\bslow(?:er|ly)?\b|很慢|变慢|太慢", re.IGNORECASE)


def _as_stated(turn: Turn, w: Words) -> tuple[Part, ...]:
    d = turn.diagnosis
    assert d is not None
    rows = rated(d, stated(d)) if only_said(d.facts) else []
    shown_already = {id(o) for f in bad_roots(d.findings) for o in f.because}
    shown = [r for r in rows if not isinstance(r.observation.value, Event) and id(r.observation) not in shown_already]
    lines = Items(tuple(dict.fromkeys(stands(w, r) for r in shown))[:SHOWN])
    lead = w.t("As stated:", "所述情况：")
    return (Paragraph(lead), lines) if shown else ()


def _bad(turn: Turn, w: Words, rows: Sequence[Rated]) -> Reply:
    """A stated value is bad by itself, though the rule about it would need to know more."""
    first, d = rows[0], turn.diagnosis
    assert d is not None
    assert first.scale is not None
    same = [r for r in rows if r.rating is Rating.BAD and r.scale is not None]
    first = max(same, key=lambda r: Usable(r.scale.usable).rank if r.scale is not None else 0)
    scale = first.scale
    assert scale is not None
    usable, action = Usable(scale.usable), to_do(w, scale)
    if (run := of_run(turn.query)) is not None:
        head = decided(w, run, [Advised(opened(stands(w, first)), Bucket(scale.bucket), action, usable.stops)], usable)
    elif (should := asked_of(turn.query)) is not None:
        head = compared(
            w, should, [Advised(opened(stands(w, first)), Bucket(scale.bucket), action, usable.stops)], NO_TEXT
        )
    else:
        why, begins = first.meaning.text.in_(w.lang), first_word(turn, mild=scale.bucket == Bucket.MONITOR)
        head = w.t(f"{begins}: {stands(w, first)}. {why}", f"{begins}：{stands(w, first)}。{why}")
        head += _beside_it(turn)
    rest = [line for line in dict.fromkeys(stands(w, r) for r in rows) if line != stands(w, first)][:SHOWN]
    parts: list[Part] = [
        *_lost_line(turn),
        Fields((
            (w.t("do", "动作"), action),
            (w.t("also stated", "另外所述"), listed(rest, w.lang, ";")),
            (w.t("not known", "未知"), w.t("whether more is wrong: nothing was looked at", "是否还有其他问题：没有查看任何机器")),
            (w.t("runbook", "处置手册"), f"gpudiag runbook show {scale.runbook}" if scale.runbook else ""),
        )),
    ]  # fmt: skip
    state = State.UNHEALTHY if usable.stops else State.DEGRADED
    return _reply(turn, head, parts, Verdict(state, usable, NO_TEXT, NO_TEXT), rows)


def _beside_it(turn: Turn) -> str:
    """The trouble that was told beside a bad reading, which it may well come from."""
    from knowledge.symptoms import symptoms

    named = next((s for s in turn.query.symptoms if s in GRAVER and s in symptoms()), "")
    if not named:
        return ""
    title = symptoms()[named].title
    return Text(
        f" It comes before the other trouble ({title.en.split(':')[0]}), which may follow from it.",
        f"应先于另一问题（{title.in_('zh').split('：')[0]}）处理，后者可能由它引起。",
    ).in_(turn.lang)


def _reply(turn: Turn, head: str, parts: Sequence[Part], verdict: Verdict, rows: Sequence[Rated]) -> Reply:
    assert turn.diagnosis is not None
    said = replace(verdict, text=Text(head if turn.lang != "zh" else "", head))
    return Reply(turn.lang, head, tuple(parts), replace(turn.diagnosis, settled=False, verdict=said), settled=False,
                 data={"answer": "told", "usable": str(verdict.usable), "told": [r.observation.fact for r in rows],
                       "ratings": {r.observation.fact: r.rating for r in reversed(rows)},
                       "not_taken_as_fact": list(turn.query.unread)})  # fmt: skip


def _advised(w: Words) -> tuple[Part, ...]:
    """What is to be done about what GPUs do, as the rules about it say: also those that wait for a longer look."""
    known = dict.fromkeys([f.rule.id for f in w.d.findings] + [u.rule.id for u in w.d.undecided])
    texts = {f.rule.id: f.advice.text for f in w.d.findings} | {u.rule.id: u.rule.action.text for u in w.d.undecided}
    said = [texts[name].in_(w.lang) for name in known if name in _OF_WORK and texts[name]]
    if "gpu-held-and-idle" in known:
        said = [_WHO_HOLDS.in_(w.lang), *said]
    stakes = [o for o in w.d.facts.observations if o.fact == "gpu.work.at_stake"]
    lost = tuple(w.seen(o.inner, places=False) for o in stakes[:1])
    return (*([Items(lost)] if lost else []), *w.section("Do next", "下一步", said))


_WHO_HOLDS = Text(
    "Who holds it: nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv, then ps -o user,lstart,cmd -p PID. Where it lists none: fuser -v /dev/nvidia* as root (containers, other users, leftovers).",
    "查是谁在占：nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv，再 ps -o user,lstart,cmd -p PID。若列不出进程，以 root 运行 fuser -v /dev/nvidia*（容器、其他用户、残留进程）。",
)
_WHO = lazy(r"(?<![a-z])(?:who|whose|which process|what process)(?![a-z])|谁|哪个进程|什么进程", re.IGNORECASE)

_OF_WORK = ("gpu-bound-by-memory-bandwidth", "gpu-bound-by-tensor-cores", "gpu-held-and-idle")


def _meant(turn: Turn, d: Diagnosis, text: Text, parts: tuple[Part, ...] = ()) -> Reply:
    """What the readings mean together, where nothing is wrong with them."""
    turn = replace(turn, query=replace(turn.query, unread=tuple(c for c in turn.query.unread if not _of_symptom(c))))
    shown = replace(d, settled=False, verdict=Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, text))
    return Reply(turn.lang, text.in_(turn.lang), (*parts, *unread_line(turn)), shown, settled=False,
                 data={"answer": "told", "usable": "unknown", "told": [o.fact for o in stated(d)], "not_taken_as_fact": list(turn.query.unread)})  # fmt: skip


def _noted(turn: Turn, d: Diagnosis, noted: Sequence[Finding]) -> Reply:
    """What was said is known and no fault by itself: the finding, what its rule asks for, and that nothing else was looked at."""
    first = noted[0]
    next_en, next_zh = (first.rule.action.text.in_(lang) for lang in ("en", "zh"))
    text = Text(
        f"{headline(titled([first]), [first.subject], 'en')}: no fault by itself. {next_en}{next_en and ' '}Nothing else was looked at.",
        f"{headline(titled([first]), [first.subject], 'zh')}：其本身不是故障。{next_zh}没有查看其他信息。",
    )
    if (answered := _of_act(turn, first)) is not None:
        return _meant(turn, d, answered, (Fields(((Text("runbook", "处置手册").in_(turn.lang), _book(first)),)),))
    shown = replace(d, settled=False, verdict=Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, text))
    lead = ""
    if (should := asked_of(turn.query)) is not None and not should.either and first.advice.bucket is Bucket.IGNORE:
        lead = Text(
            f"Nothing stated asks to {should.word.en}. {text.en}",
            f"所述情况不需要{should.word.in_('zh')}。{text.in_('zh')}",
        ).in_(turn.lang)
    return Reply(turn.lang, lead, unread_line(turn), shown, shown, focus=first.id, settled=False,
                 data={"answer": "told", "usable": "unknown", "told": [o.fact for o in stated(d)], "not_taken_as_fact": list(turn.query.unread)})  # fmt: skip


def _of_act(turn: Turn, first: Finding) -> Text | None:
    """Whether what is asked about has to be done, or forbidden, for a finding that is no fault by itself; None where neither is asked."""
    should = asked_of(turn.query)
    if turn.query.intent is not Intent.VERDICT or (should is not None and (should.without or should.either)):
        return None
    later = first.advice.then or (first.rule.action.text,)
    then_en, then_zh = (" ".join(filter(None, (t.in_(lang) for t in later))) for lang in ("en", "zh"))
    title_en, title_zh = (headline(titled([first]), [first.subject], lang) for lang in ("en", "zh"))
    lead_en = f"No need to {should.word.en} now" if should is not None else "No reason to stop using it"
    lead_zh = f"现在不需要{should.word.in_('zh')}" if should is not None else "不妨碍继续使用"
    return Text(
        f"{led(lead_en, title_en, 'en')}: no fault by itself. {then_en}{then_en and ' '}Nothing else was looked at.",
        f"{lead_zh}：“{title_zh}”本身不是故障。{then_zh}没有查看其他信息。",
    )


def _book(f: Finding) -> str:
    return f"gpudiag runbook show {f.advice.runbook}" if f.advice.runbook else ""


_WORRY = lazy(
    r"\b(?:worr\w{1,3}|matters?|bad|wrong|problems?|concern\w{0,3}|serious|broken|too (?:hot|high|low|slow))\b",
    re.IGNORECASE,
)
_USE = lazy(
    r"\b(?:can|could|may|ok|okay|fine|normal|good|safe|usable|healthy|keep|ready|right|ignore|wait)\b", re.IGNORECASE
)
_TRUST = lazy(
    r"(?<![a-z])(?:trust|rely on|believe|keep)(?![a-z])[^.?]{0,20}(?:checkpoints?|weights|results?|model)|(?:checkpoint|检查点|权重|结果)[^，。]{0,6}(?:可信|能信|还能用|能用|可靠)|信任?[^，。]{0,6}(?:checkpoint|检查点|权重|结果)",
    re.IGNORECASE,
)
_WHY = lazy(
    r"\bwhy\b|\bhow come\b|\bwhat(?:'?s| is| are| was| went| goes| could be| can be| might be)?(?: going)? wrong\b|为什么|为何|为啥|怎么回事|(?<![没无])(?:什么|啥)(?:问题|毛病|原因)(?![吗么嘛吧])",
    re.IGNORECASE,
)
_RATED_ZH = lazy(r"正常|没(?:啥|什么|有|大)?(?:问题|事)|没毛病|问题不大|要紧|太高|影响|坏了|坏卡")
_ALL_WELL = lazy(r"没(?:啥|什么|有|大)?(?:问题|事|毛病)(?:吧|吗|么|嘛)|问题不大吧|o?ok[吗吧么]", re.IGNORECASE)
_USE_ZH = lazy(r"能|可以|可否|行[吗不么]|行不行|(?:继续|接着|还|再)[跑用训]|[跑用训](?:吗|么|不|得)")


def rates(turn: Turn) -> bool:
    """Whether it is asked how good something is, and not what the reason of a trouble is."""
    asked = turn.query.asks or turn.query.text
    return not _WHY.search(asked) and any(p.search(asked) for p in (_WORRY, _USE, _USE_ZH, _RATED_ZH))


def first_word(turn: Turn, *, mild: bool = False) -> str:
    """What an answer begins with where something is bad: No to "can I use it", and never a yes to "is it bad?".

    `mild`: what is advised is to watch it, and stops nothing.
    """
    asked = asked_in(turn.query)
    if mild:
        return "并不正常，但可以继续运行" if turn.lang == "zh" else "Not in order, though it may go on"
    if _TRUST.search(asked):
        return "不要信任" if turn.lang == "zh" else "No, go back to one from before it"
    if turn.lang == "zh" and _normal.asked(turn):
        return "不正常"
    if turn.lang == "zh":
        return "不可以" if _USE_ZH.search(asked) and "没问题" not in asked else "有问题"
    if _WORRY.search(asked):
        return "A problem"
    return "No" if _USE.search(asked) else "Not in order"


def _head(turn: Turn, w: Words, rows: Sequence[Rated]) -> str:
    """Nothing stated is bad: what is missing for a yes comes first, be it that it was not understood."""
    unread = turn.query.unread
    clauses = listed((w.quoted(c) for c in unread[:2]), w.lang)
    if not rows and not unread:
        fine = listed((w.quoted(c) for c in turn.query.fine[:SHOWN]), w.lang)
        return w.t(f"Cannot say from that alone: {fine} speaks for it, and nothing was looked at. A yes takes a look: gpudiag check on it.",
                   f"仅凭这些无法判断：{fine}是好的迹象，但没有查看任何机器。要得到肯定的回答，请在其上运行 gpudiag check。")  # fmt: skip
    if not rows:
        return w.t(f"Cannot say: {clauses} could not be taken as a fact, and nothing was looked at.",
                   f"无法判断：{clauses} 未能作为事实读取，也没有查看任何机器。")  # fmt: skip
    if unread and not (rates(turn) or asked_of(turn.query) is not None):  # nobody asked for a yes or a no
        return w.t(f"{clauses} was not understood. What was understood:", f"没有听懂{clauses}。已听懂的内容：")
    if unread:
        return w.t(f"Cannot say: {clauses} was not understood, so this is no yes. What was understood:",
                   f"无法判断：没有听懂{clauses}，因此不能给出肯定的回答。已听懂的内容：")  # fmt: skip
    shown = listed(dict.fromkeys(stands(w, r) for r in rows[:SHOWN]), w.lang, ";")
    if rows[0].rating is not Rating.GOOD and (known := _rest_is_well(turn, w, rows)):
        return known
    if rows[0].rating is not Rating.GOOD:
        why = rows[0].meaning.text.in_(w.lang)
        if _normal.asked(turn):
            return f"{_normal.lead(turn, Rating.OPEN)}{colon(w.lang)}{shown}{w.t('. ', '。')}{why}".rstrip()
        on = meanwhile(turn.query).in_(w.lang) if of_run(turn.query) is not None else ""
        return w.t(f"Cannot say from that alone: {shown}; nothing else was looked at. {why} {on}".rstrip(),
                   f"仅凭这些无法判断{colon('zh')}{shown}；没有查看其他信息。{why}{on}")  # fmt: skip
    if (run := of_run(turn.query)) is not None:
        return nothing_wrong(w, run, shown)
    should = asked_of(turn.query)
    if should is not None:
        return w.t(f"Nothing stated asks to {should.word.en}: {shown}. Nothing else was looked at.",
                   f"所述情况不需要{should.word.in_('zh')}：{shown}。没有查看其他信息。")  # fmt: skip
    if _normal.asked(turn):
        return w.t(f"{_normal.lead(turn, Rating.GOOD)}: {shown}. Nothing else was looked at.",
                   f"{_normal.lead(turn, Rating.GOOD)}：{shown}。没有查看其他信息。")  # fmt: skip
    if turn.lang == "zh" and _ALL_WELL.search(asked_in(turn.query)):
        return f"就所述而言没有问题：{shown}。没有查看其他信息；要确认机器本身，在其上运行 gpudiag check。"
    return w.t(f"Nothing wrong in that: {shown}. That the machine can be used takes a look at it: gpudiag check on it.",
               f"所述数值均正常：{shown}。要确认机器可用，还需查看机器本身：在其上运行 gpudiag check。")  # fmt: skip


# A symptom that the name of a reading names: rows that were remapped, and nothing pending
_NAMED_BY_READINGS = frozenset(["memory-errors"])
# What they say depends on the model and the work: beside readings that are in order they are no doubt.
_OF_LOAD = (
    "gpu.power.draw",
    "gpu.clock.",
    "gpu.memory.used",
    "gpu.memory.share",
    "gpu.memory.total",
    "gpu.pcie.gen",
)


# W: sixty percent (a GPU at work, `_counters.HALF_POWER`) of the 700 W of an H100, the greatest limit that is common
_AT_WORK = 420.0


def _draws_little(turn: Turn, rows: Sequence[Rated]) -> bool:
    """Whether a GPU that is said to be loaded draws so little that it may only look busy: which model it is decides."""
    told = {r.observation.fact: r.observation.value for r in rows}
    watts, busy = told.get("gpu.power.draw"), told.get("gpu.utilization.core")
    loaded = (isinstance(busy, int | float) and busy >= _counters.BUSY) or at_full_load(turn.query.text)
    return loaded and isinstance(watts, int | float) and watts < _AT_WORK


def _of_load(r: Rated) -> bool:
    o = r.observation
    if o.fact == "gpu.utilization.core":  # one that is half idle is a doubt
        return isinstance(o.value, int | float) and o.value >= _counters.BUSY
    return o.fact.startswith(_OF_LOAD)


def _rest_is_well(turn: Turn, w: Words, rows: Sequence[Rated]) -> str:
    """The first line where most of what is stated is in order and the rest says nothing by itself; of the history of a board, that
    nothing has come since. Empty where that is not so, or nobody asked."""
    if not (rates(turn) or asked_of(turn.query) is not None):
        return ""
    open_ = [r for r in rows if r.rating is not Rating.GOOD]
    good = [r for r in rows if r.rating is Rating.GOOD]
    if (past := _history(w, open_, good)) and not _JUST_LOADED.search(turn.query.text):
        return past
    if not good or not all(map(_of_load, open_)) or _draws_little(turn, rows):
        return ""
    shown = listed(dict.fromkeys(stands(w, r) for r in good[:SHOWN]), w.lang, ";")
    rest = listed(dict.fromkeys(w.seen(r.observation, places=False) for r in open_[:SHOWN]), w.lang, ";")
    return w.t(f"Nothing wrong in what can be judged: {shown}. By itself this says neither good nor bad, as it depends on model and work: {rest}. That the machine can be used takes a look at it: gpudiag check on it.",
               f"能判断的都正常：{shown}。{rest}：取决于型号与负载，本身不说明好坏。要确认机器本身，在其上运行 gpudiag check。")  # fmt: skip


def _history(w: Words, open_: Sequence[Rated], good: Sequence[Rated]) -> str:
    """What errors over the life of a board mean where none came since the driver was loaded; empty of any other readings."""
    clean = {r.observation.fact for r in good if r.observation.value == 0}
    old = [r.observation for r in open_]
    if not old or not all(o.fact.startswith(_LIFE) and o.fact.replace(_LIFE, _NOW) in clean for o in old):
        return ""
    shown = listed(dict.fromkeys(w.seen(o, places=False) for o in old), w.lang, ";")
    return w.t(f"Nothing to do for that alone: {shown}, none since the driver was loaded, so they are old. What decides is row remapping, neither pending nor failed: nvidia-smi -q -d ROW_REMAPPER.",
               f"仅凭这些无需处理：{shown}，自驱动加载以来为 0，是历史记录。还需确认行重映射无待处理、无失败：nvidia-smi -q -d ROW_REMAPPER。")  # fmt: skip


# of a driver that was loaded a moment ago a count of nought says nothing yet
_JUST_LOADED = lazy(
    r"清零|归零|刚刚?[^，。；]{0,6}(?:装|重启|升级|复位|重置|加载|换|开机)|(?:重启|复位|重置)[之以]?后|(?<![a-z])(?:just|freshly) (?:rebooted|reset|loaded|installed|upgraded)|after (?:the|a) (?:reboot|reset)",
    re.IGNORECASE,
)
# since when the count of nought holds, and nothing else
_REBOOTED = lazy(
    r"(?:昨[天晚]|前天|上周|[0-9]+ ?天前)?\s?(?:节点|机器|系统)?重启过(?:了|一次)?|(?:it |node |we )?(?:was )?rebooted (?:it )?(?:yesterday|last week)",
    re.IGNORECASE,
)
_LIFE, _NOW = "gpu.ecc.aggregate.", "gpu.ecc.volatile."
_KIND = lazy(
    r"uncorr|unrecover|\b(?:dbes?|ue)\b|double|volatile uncorr|不可纠正|未纠正|无法纠正|不可修复|双比特|双bit",
    re.IGNORECASE,
)


def _assumed(turn: Turn) -> tuple[Part, ...]:
    """That ECC errors were taken as uncorrected ones, where some are stated and nobody said of which kind."""
    some = any(
        o.fact.startswith("gpu.ecc.volatile.uncorrected") and o.value and o.origin is Origin.TOLD
        for o in turn.query.observations
    )
    if not some or _KIND.search(turn.query.text):
        return ()
    en = "Taken as uncorrected errors, as which kind was not said: corrected ones were repaired and need nothing. nvidia-smi -q -d ECC tells."
    zh = "未说明是哪一种 ECC 错误，此处按不可纠正错误处理：可纠正的已被修复，无需处理。由 nvidia-smi -q -d ECC 可知。"
    return (Paragraph(zh if turn.lang == "zh" else en),)


def unread_line(turn: Turn) -> tuple[Part, ...]:
    """What was stated and is no fact here, said beside an answer that does not rest on it; and what was taken for something."""
    if not turn.query.unread:
        return _assumed(turn)
    quoted = listed((f"“{c}”" if turn.lang == "zh" else f'"{c}"' for c in turn.query.unread[:3]), turn.lang)
    en, zh = f"Not understood, so not in this answer: {quoted}.", f"没有听懂，因此未计入本回答：{quoted}。"
    return (Paragraph(zh if turn.lang == "zh" else en), *_assumed(turn))
