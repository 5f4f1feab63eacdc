"""A process that is asked about while it runs: what it does, what holds it up, and what its stacks and threads speak against.

What is wrong elsewhere on the machine stands below, in a line each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from assistant.diagnosis import Diagnosis, State, Verdict, bad_roots, gaps, sentence_of, verdict_of
from assistant.dialogue._scope import scoped
from assistant.intent.query import Intent, Slots, of_process
from assistant.render.labels import colon, listed, reason_name
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Part, Table
from assistant.reply import Reply
from assistant.session.naming import SAID, Meant, meant, rank_of
from assistant.session.processes import script_of, title_of
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Scope, Status, Subject
from knowledge.text import clean, excerpt
from rules.model import Severity, Usable

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.differential import Row
    from rules.engine import Finding

LEAST = 1.0  # percent of the window from which an activity is named
ACTIVITIES = 6  # of a process
PROCESSES = 4  # of which the activities are shown
NEAR = 6  # processes that are named beside one that is not there
SLOW = "slow-training"  # what is meant by a question that names no symptom
_KNOWN = frozenset({"node.processes", "capture.window.seconds"})  # where processes were looked for, or one was captured
_LOOKED = ("capture.samples", "thread.cpu.share")  # facts that only a look into a process tells
_ASK = {
    "why": Text("why?", "为什么？"), "evidence": Text("how do you know?", "你是怎么知道的？"),
    "next": Text("what next?", "下一步做什么？"), "function": Text("which function takes the time?", "哪个函数最耗时？"),
    "loader": Text("why not the data loader?", "为什么不是数据加载？"),
}  # fmt: skip


def about(turn: Turn) -> Meant | None:
    """The processes that the question names, where it asks what they do; None for any other question."""
    d = turn.diagnosis
    if d is None or not of_process(turn.query) or turn.query.observations or d.facts.facts.isdisjoint(_KNOWN):
        return None
    from knowledge.symptoms import symptoms

    known = symptoms()
    if any(not known[s].running for s in turn.query.symptoms if s in known):
        return None  # a crash, say: what it does now tells nothing of it
    found = meant(turn.query, d.facts)
    return found if found.processes or found.gone else None


def looked_into(processes: Sequence[Subject], d: Diagnosis) -> tuple[Subject, ...]:
    """Those of `processes` of which stacks or threads were read."""
    return tuple(p for p in processes if any(_ok(fact, p, d) is not None for fact in _LOOKED))


def _outside(processes: Sequence[Subject], d: Diagnosis) -> list[Subject]:
    """Those of `processes` whose threads were seen, and whose stacks could not be read: most of what holds a loop up is not told."""
    return [
        p
        for p in processes
        if (o := d.facts.current("capture.samples", p)) is not None and o.status not in (Status.OK, Status.NONE_SEEN)
    ]


def answer(turn: Turn, named: Meant) -> Reply:
    """What holds the processes up, or what they do; what could not be seen, and by which command it could."""
    d = turn.diagnosis
    assert d is not None
    if not named.processes:
        return _gone(turn, named, d)
    seen = looked_into(named.processes, d)
    found = _findings(named.processes, d, looked=bool(seen))
    rows = _rows(turn, named.processes, d)
    settled = bool(seen) and (bool(bad_roots(found)) or not _outside(seen, d))
    shown = replace(
        d, findings=found, ruled_out=(), undecided=(), notes=(), coverage=replace(d.coverage, denied=(), failed=()),
        verdict=_verdict(named.processes, seen, found, d), settled=settled,
    )  # fmt: skip
    parts: list[Part] = []
    if named.gone:
        parts.append(Paragraph(_absent(named, turn.lang)))
    parts += [part for p in seen[:PROCESSES] for part in _did(p, d, turn.lang)]
    if len(seen) > PROCESSES:
        rest = len(seen) - PROCESSES
        parts.append(Paragraph(Text(f"{rest} more ranks were looked at.", f"另查看了 {rest} 个 rank。").in_(turn.lang)))
    parts += _unread(turn, named.processes, seen, d)
    if seen and turn.query.intent is not Intent.PROBE:
        parts += _hypotheses(turn, rows, named.processes)
    parts += _elsewhere(turn, d, found)
    if _profiled(turn):
        parts += _offer(named.processes, turn.lang)
    keys = ("why", "function", "loader", "next") if found else ("function", "loader", "evidence")
    return Reply(
        turn.lang, "", tuple(parts), replace(d, settled=settled, findings=found), shown,
        focus=next((f.id for f in shown.roots if bad_roots((f,))), next((f.id for f in shown.roots), "")),
        settled=settled,
        suggestions=tuple(_ASK[k].in_(turn.lang) for k in keys) if seen else (),
        data={"answer": "running", "processes": [str(p.id) for p in named.processes],
              "looked_into": [str(p.id) for p in seen], "gone": list(named.gone),
              "differential": [asdict(r) for r in rows] if seen else []},
    )  # fmt: skip


# --- what is found ------------------------------------------------------------------------


def _findings(processes: Sequence[Subject], d: Diagnosis, *, looked: bool) -> tuple[Finding, ...]:
    """What was found on the processes, their ranks, jobs, containers and GPUs, and all that may be behind it; of the node
    itself only what explains one of these, or, once they were looked into, slows down whatever runs there. That comes last."""
    from knowledge.symptoms import symptoms

    where = scoped(d, Slots(pid=tuple(int(p.id) for p in processes)))
    tags = set(symptoms()[SLOW].tags) if looked else set[str]()
    ours = {f.id for f in where.about if f.subject.scope is not Scope.NODE}
    ours |= {f.id for f in d.findings if f.subject.scope is Scope.NODE and f.severity is not Severity.INFO
             and not tags.isdisjoint(f.rule.symptoms)}  # fmt: skip
    while more := {f.id for f in d.findings if f.id not in ours and ours.intersection(f.explains)}:
        ours |= more
    found = [f for f in d.findings if f.id in ours]
    return tuple(sorted(found, key=lambda f: f.subject.scope is Scope.NODE))


def _verdict(processes: Sequence[Subject], seen: Sequence[Subject], found: Sequence[Finding], d: Diagnosis) -> Verdict:
    who = _who(processes, d)
    own = [f for f in found if f.subject.scope is not Scope.NODE]
    if seen and bad_roots(own):
        verdict = verdict_of(found, True, d.facts)
        return replace(verdict, text=_titled(verdict.text, processes, d))
    if not seen:
        text = Text(f"What {_small(who.en)} does was not looked into.", f"尚未查看{who.zh}在做什么。")
        return Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, text)
    if (open_ := gaps(own)) and not bad_roots(found):
        return Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, sentence_of(open_, d.facts))
    most = _most(seen, d)
    if (kind := _ok("process.hung.kind", seen[0], d)) and _ok("process.hung", seen[0], d) is True:
        from assistant.capture.words import word

        text = Text(f"{who.en} stands still. It waits for: {word(str(kind), 'en')}.",
                    f"{who.zh}停住不动，等待：{word(str(kind), 'zh')}。")  # fmt: skip
        return Verdict(State.OK, Usable.UNKNOWN, NO_TEXT, text)
    text = Text(
        f"{who.en}: nothing that holds {'them' if len(processes) > 1 else 'it'} up was seen{most.en}.",
        f"{who.zh}：未发现拖慢它的因素{most.zh}。",
    )
    if blind := _outside(seen, d):
        whose = Text("their", "它们") if len(blind) > 1 else Text("its", "它")
        text = Text(
            f"{who.en}: {whose.en} stacks could not be read, so what takes the time is not known; from outside nothing holds it up.",
            f"{who.zh}：无法读取{whose.zh}的调用栈，尚不清楚时间花在哪里；从外部看没有拖慢它的因素。",
        )
    if bad_roots(found):  # the node alone
        verdict = verdict_of(found, True, d.facts)
        return replace(verdict, text=Text(f"{text.en} {verdict.text.en}", f"{text.zh}{verdict.text.zh}"))
    if blind:
        return Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, text)
    return Verdict(State.OK, Usable.UNKNOWN, NO_TEXT, text)


def _titled(text: Text, processes: Sequence[Subject], d: Diagnosis) -> Text:
    """A sentence with what the processes are called: ``Process 4242 (train.py): ...``."""
    en, zh = text.en, text.zh
    for p in processes:
        title = title_of(d.facts, p)
        en = en.replace(f"Process {p.id}:", f"Process {title}:", 1)
        zh = zh.replace(f"进程 {p.id}：", f"进程 {title}：", 1)
    return Text(en, zh)


def _who(processes: Sequence[Subject], d: Diagnosis) -> Text:
    """``Process 4242 (train.py)``; of ranks their script."""
    titles = [title_of(d.facts, p) for p in processes]
    if len(processes) == 1:
        return Text(f"Process {titles[0]}", f"进程 {titles[0]}")
    if all(rank_of(p, d.facts) for p in processes):
        name = script_of(d.facts, processes[0])
        n = len(processes)
        return Text(f"{n} ranks{f' of {name}' if name else ''}", f"{name + ' 的 ' if name else ''}{n} 个 rank")
    some = titles[:SAID]
    return Text(f"Processes {listed(some, 'en')}", f"进程 {listed(some, 'zh')}")


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]


def _most(seen: Sequence[Subject], d: Diagnosis) -> Text:
    """What the first of them does most, in a clause."""
    top = next(iter(_shares(seen[0], d)), None)
    if top is None:
        return NO_TEXT
    name, share, _ = top
    return Text(f"; most of the window, {share:.0f} %, is {name.en}", f"；窗口的大部分（{share:.0f} %）为{name.zh}")


# --- what they do -------------------------------------------------------------------------


def _shares(process: Subject, d: Diagnosis) -> list[tuple[Text, float, str]]:
    """Activities of the thread that runs the loop: name, percent of the window, function; the greatest first."""
    from assistant.capture.words import ACTIVITIES as NAMES

    out = []
    for fact, (name, _) in NAMES.items():
        share = _ok(fact, process, d)
        if isinstance(share, float | int) and share >= LEAST:
            where = _ok(fact.replace(".share", ".function"), process, d)
            out.append((name, float(share), clean(excerpt(where, 120)) if isinstance(where, str) else ""))
    return sorted(out, key=lambda row: -row[1])


def _did(process: Subject, d: Diagnosis, lang: str) -> list[Part]:
    """Where the time of one process went; where it stands, when it does not move."""
    from assistant.capture.words import word

    rank = rank_of(process, d.facts)
    name = f"rank {rank}, {title_of(d.facts, process)}" if rank else title_of(d.facts, process)
    rows = [
        (what.in_(lang), f"{share:.0f} %{f'  {where}' if where else ''}") for what, share, where in _shares(process, d)
    ][:ACTIVITIES]
    stands = _ok("process.hung.function", process, d)
    if isinstance(stands, str) and stands:
        kind = str(_ok("process.hung.kind", process, d) or "unknown")
        rows = [(Text("is in", "停在").in_(lang), clean(excerpt(stands, 160))),
                (word("kind", lang), word(kind, lang) if kind else "")]  # fmt: skip
    elif (hot := _ok("stack.hot.function", process, d)) and rows:
        share = _ok("stack.hot.share", process, d)
        rows.append((Text("hottest function", "最热函数").in_(lang), f"{share:.0f} %  {clean(excerpt(str(hot), 120))}"))
    cpu = _ok("thread.cpu.share", process, d)
    if isinstance(cpu, float | int):
        rows.append((Text("its thread on a CPU", "该线程占用 CPU").in_(lang), f"{cpu:.0f} %"))
    if not rows:
        return []
    return [Heading(f"{word('where', lang)}{colon(lang)}{name}"), Fields(tuple(rows))]


def _unread(turn: Turn, processes: Sequence[Subject], seen: Sequence[Subject], d: Diagnosis) -> list[Part]:
    """What a look that was taken did not give, with the reason: no Python, no right to look."""
    lines: dict[str, None] = {}
    for p in processes:
        for fact in ("stack.hot.function", "capture.samples", "thread.cpu.share"):
            o = d.facts.current(fact, p)
            if o is not None and o.status is not Status.OK and o.status is not Status.NONE_SEEN and o.detail:
                lines[
                    f"{title_of(d.facts, p)}{colon(turn.lang)}{reason_name(f'{o.status}: {o.detail}', turn.lang)}"
                ] = None
                break
    if not seen:  # of a look that failed as a whole the reason stands on the node
        for node in {p.parent for p in processes if p.parent is not None}:
            o = d.facts.current("capture.samples", node)
            if o is not None and o.status is not Status.OK and o.detail:
                lines[reason_name(f"{o.status}: {o.detail}", turn.lang)] = None
    if not lines:
        return []
    return [Heading(Text("Could not be read", "未能读取").in_(turn.lang)), Items(tuple(lines))]


# --- hypotheses ---------------------------------------------------------------------------


def _rows(turn: Turn, processes: Sequence[Subject], d: Diagnosis) -> tuple[Row, ...]:
    from assistant.differential import weighed
    from knowledge.symptoms import hypotheses_of, symptoms

    said = [s for s in turn.query.symptoms if s in symptoms()] or [SLOW]
    touched = {*processes}
    for p in processes:
        for scope in (Scope.RANK, Scope.JOB, Scope.GPU):
            touched.update(d.facts.related(p, scope))
    tags = {tag for s in said for tag in symptoms()[s].tags}
    hypotheses = hypotheses_of(said, running=True)
    return weighed(hypotheses, tags, d, turn.plan, turn.lang, turn.ruleset, touched)


def _hypotheses(turn: Turn, rows: Sequence[Row], processes: Sequence[Subject]) -> list[Part]:
    """What is so, what may be and what is not, each with what speaks for or against it; of what nobody looked at its name."""
    from assistant.differential import Stand, state_word

    told = [r for r in rows if r.state is not Stand.UNKNOWN]
    blind = [r for r in rows if r.state is Stand.UNKNOWN]
    lang = turn.lang
    parts: list[Part] = [Heading(Text("Hypotheses", "可能的原因").in_(lang))]
    if told:
        cells = tuple(
            (r.title, state_word(r, lang), _bare(next(iter((*r.for_, *r.against, *r.unknown)), ""), processes))
            for r in told
        )
        header = Text("hypothesis", "假设"), Text("", ""), Text("what was seen", "观测")
        parts.append(Table(tuple(t.in_(lang) for t in header), cells))
    if blind:
        names = listed((r.title.split(" (")[0].split("（")[0] for r in blind), lang, ";")
        parts.append(Paragraph(Text(f"Not told by this look: {names}.", f"本次查看无法判断：{names}。").in_(lang)))
    return parts


def _bare(sentence: str, processes: Sequence[Subject]) -> str:
    """What was seen of the one process that all of it is about, without its name."""
    if len(processes) == 1:
        pid = processes[0].id
        for words, bare in ((f"the driving thread of process {pid}", "its thread"), (f" of process {pid}", ""),
                            (f"process {pid}", "it"), (f"进程 {pid} 的", "其")):  # fmt: skip
            sentence = sentence.replace(words, bare, 1)
    return sentence


# --- beside it ----------------------------------------------------------------------------


def _elsewhere(turn: Turn, d: Diagnosis, found: Sequence[Finding]) -> list[Part]:
    """That other things are wrong here, in one line."""
    here = {f.id for f in found}
    others = [f for f in bad_roots(d.findings) if f.id not in here]
    if not others:
        return []
    first, rest = others[0].title.in_(turn.lang), len(others) - 1
    said = Text(
        f"Also found on {turn.far or 'this machine'}: {first}{f' (+{rest} more)' if rest else ''}: {turn.check} tells more.",
        f"{turn.far or '本机'}另有发现：{first}{f'（另有 {rest} 项）' if rest else ''}，详见 {turn.check}。",
    )
    return [Paragraph(said.in_(turn.lang))]


def _profiled(turn: Turn) -> bool:
    """Whether it is asked for operators and kernels: what only runs inside the job."""
    words = turn.query.text.casefold()
    return any(w in words for w in ("profile", "profiling", "profiler", "性能分析", "采集"))


def _offer(processes: Sequence[Subject], lang: str) -> list[Part]:
    """The command that captures operators and kernels too, and what that costs."""
    from probes.live.job_trace import PROBE

    said = Text(
        f"Operators and kernels: this command asks before anything runs inside the job ({PROBE.side_effects[0].en}).",
        f"算子与 kernel：以下命令在作业内运行任何内容前都会询问（{PROBE.side_effects[0].zh}）。",
    )
    return [Paragraph(said.in_(lang)), Code((f"gpudiag profile --pid {','.join(p.id for p in processes[:SAID])}",))]


def _ok(fact: str, subject: Subject, d: Diagnosis) -> object:
    o = d.facts.current(fact, subject)
    return o.value if o is not None and o.status is Status.OK else None


# --- looked at again ----------------------------------------------------------------------


def again(turn: Turn) -> Reply | None:
    """After "again": what holds the processes up now, beside what did before. None when it was about no process."""
    d, before = turn.diagnosis, turn.before
    turn = replace(turn, query=replace(turn.query, intent=Intent.DIAGNOSE))
    named = about(turn)
    if named is None or d is None or before is None:
        return None
    reply = answer(turn, named)
    was = meant(turn.query, before.facts).processes
    if not looked_into(named.processes, d) or not looked_into(was, before):
        return reply
    told = [bad_roots([f for f in _findings(p, x, looked=True) if f.subject.scope is not Scope.NODE])
            for p, x in ((was, before), (named.processes, d))]  # fmt: skip
    lines = _changed(told[0], told[1], turn.lang)
    same = not any(line for kind, line in lines if kind != "still")
    head = Text("Nothing changed.", "没有变化。") if same else Text("Something changed.", "有变化。")
    parts: list[Part] = [Paragraph(head.in_(turn.lang)), Items(tuple(line for _, line in lines))]
    parts += _shares_then_and_now(was, before, named.processes, d, turn.lang)
    return replace(reply, parts=(*parts, *reply.parts), data={**reply.data, "answer": "rerun"})


def _changed(then: Sequence[Finding], now: Sequence[Finding], lang: str) -> list[tuple[str, str]]:
    words = {"gone": Text("no longer", "不再"), "new": Text("new", "新增"), "still": Text("still", "仍然")}
    old, new = ({f.rule.id: f for f in found} for found in (then, now))
    kinds = [("gone", f) for name, f in old.items() if name not in new]
    kinds += [("new" if name not in old else "still", f) for name, f in new.items()]
    return [(kind, f"{words[kind].in_(lang)}{colon(lang)}{f.title.in_(lang)}") for kind, f in kinds]


def _shares_then_and_now(
    was: Sequence[Subject], before: Diagnosis, now: Sequence[Subject], d: Diagnosis, lang: str
) -> list[Part]:
    """What one process did then and does now, in percent of the window; of several ranks the findings say enough."""
    if len(was) != 1 or len(now) != 1:
        return []
    then = {name.in_(lang): share for name, share, _ in _shares(was[0], before)}
    today = {name.in_(lang): share for name, share, _ in _shares(now[0], d)}
    names = sorted({*then, *today}, key=lambda n: (-max(then.get(n, 0.0), today.get(n, 0.0)), n))[:ACTIVITIES]
    header = tuple(t.in_(lang) for t in (Text("activity", "活动"), Text("before", "之前"), Text("now", "现在")))
    return [Table(header, tuple((n, f"{then.get(n, 0.0):.0f} %", f"{today.get(n, 0.0):.0f} %") for n in names))]


# --- nobody there -------------------------------------------------------------------------


def _gone(turn: Turn, named: Meant, d: Diagnosis) -> Reply:
    near = [s for s in d.facts.subjects(Scope.PROCESS) if s.id.isdigit() and script_of(d.facts, s)]
    titles = [title_of(d.facts, s) for s in near][:NEAR]
    lang = turn.lang
    parts: list[Part] = []
    if titles:
        parts.append(
            Paragraph(Text(f"Running here: {', '.join(titles)}.", f"正在运行：{'、'.join(titles)}。").in_(lang))
        )
    return Reply(
        lang, _unlisted(d, lang) or _absent(named, lang), tuple(parts), replace(d, findings=(), settled=False), settled=False,
        suggestions=tuple(Text(f"why is pid {s.id} slow?", f"pid {s.id} 为什么慢？").in_(lang) for s in near[:3]),
        data={"answer": "running", "processes": [], "looked_into": [], "gone": list(named.gone)},
    )  # fmt: skip


def _unlisted(d: Diagnosis, lang: str) -> str:
    """Why nobody can say which processes there are; empty when they were listed."""
    told = [o for node in d.facts.subjects(Scope.NODE) if (o := d.facts.current("node.processes", node)) is not None]
    if not told or any(o.status is Status.OK for o in told):
        return ""
    why = reason_name(f"{told[0].status}: {told[0].detail}", lang)
    return Text(f"The processes here could not be read: {why}.", f"无法读取此处的进程：{why}。").in_(lang)


def _absent(named: Meant, lang: str) -> str:
    names = listed(named.gone, lang)
    return Text(f"No process {names} was seen.", f"未看到进程 {names}。").in_(lang)
