"""Which GPU, process, rank or node: what is to blame by name, and what of its kind nothing was found on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.diagnosis import bad as bad_findings
from assistant.diagnosis import bad_roots
from assistant.dialogue import _most, _work, cause
from assistant.dialogue._blamed import Blamed, elsewhere, of_kind, other_end
from assistant.dialogue._captures import since_when
from assistant.dialogue._scope import scoped
from assistant.dialogue._traced import bottleneck
from assistant.dialogue._words import Words, finding_data, nothing_yet, suggest, words
from assistant.intent.kinds import asks_usable, kind_asked, kinds_asked
from assistant.intent.lines import codes, specific, text_of
from assistant.intent.lines import words as words_of
from assistant.render.labels import aside, colon, label, led, listed, scope_name
from assistant.render.lines import moment
from assistant.render.sheet import Items, Part
from assistant.reply import Reply
from knowledge.lazy import lazy
from knowledge.observation import Event, Origin, Scope, Subject
from knowledge.text import clean, opened
from rules.model import Bucket, Usable

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding

WHOLE_NODE = frozenset({Bucket.RESTART_BM, Bucket.RESTART_VM, Bucket.UPDATE_SWFW})  # actions that spare no GPU of it
_WHEN = lazy(r"(?<![a-z])(?:when|what time)(?![a-z])|时候|几点", re.IGNORECASE)
_WORST = lazy(
    r"(?<![a-z])(?:worst|most (?:serious|severe|critical|important|urgent))(?![a-z])|最严重|最要紧", re.IGNORECASE
)
_FIRST = lazy(r"(?<![a-z])(?:first|earliest)(?![a-z])|最先|最早|首先|第一个", re.IGNORECASE)
_GPU = lazy(r"(?<![a-z])(?:gpus?|cards?)(?![a-z])|显?卡", re.IGNORECASE)
_KIND = lazy(r"(?<![a-z])(?:which|what) [a-z]+|哪[个张块台]?\s?(?:作业|任务|网卡|链路)", re.IGNORECASE)
MOST, NAMES = 8, 4  # findings, one line each; names in a sentence


def answer(turn: Turn) -> Reply:
    """The things of the kind that is asked about on which something wrong was found, worst first, and the others."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    if (
        most := bottleneck(turn) or _work.idle(turn) or _most.answer(turn) or _silent(turn) or _left_out(turn)
    ) is not None:
        return most
    text = turn.query.text
    w, usable, kinds = words(turn), asks_usable(text), kinds_asked(text)
    kind = kinds[0] if kinds else None
    bad = bad_roots(scoped(turn.diagnosis, turn.query.slots).about)
    meant_ = [] if usable else _meant(turn, w)
    about = meant_ or bad or _ended(turn)
    asked = _KIND.sub(" ", text)
    asked = asked if words_of(asked) or codes(asked) else ""
    blamed = _of_all(about, kind, w, asked)
    if _FIRST.search(text):
        blamed = sorted(blamed, key=_began)[:1]
    named, names = {b.subject for b in blamed} | {f.subject for f in bad}, {b.name for b in blamed}
    rest = [s for s in _measured(w, kind) if s not in named and clean(w.view.name(s)) not in names]
    if usable:
        head = _usable(w, blamed, rest)
    elif not meant_ and bad and kind is not None and specific(asked):
        head = _other_than(w, blamed, bad)
    elif cause.asks_whose(text) and len(about) > 1:
        head = _by_cause(w, about, kind)
    else:
        head = _other_kinds(w, kinds, about, asked) or _head(
            w, kind, about, blamed, rest, _WORST.search(text) is not None
        )
        head += other_end(blamed[0].finding, w) if blamed and Scope.NODE in kinds else ""
        head += _when(w, text, blamed)
    first = blamed[0].finding if blamed else about[0] if about else None
    return Reply(
        turn.lang,
        head,
        _parts(w, blamed, usable),
        focus=first.id if first is not None else "",
        settled=turn.diagnosis.settled,
        suggestions=suggest(turn.lang, "why", "next", "evidence"),
        data={"answer": "which", "kind": str(kind) if kind else None, "blamed": [b.name for b in blamed],
              "one": blamed[0].subject.id if len(blamed) == 1 and blamed[0].subject is not None and kind is Scope.GPU else None,
              "others": [w.view.name(s) for s in rest], "findings": [finding_data(f, turn.lang) for f in about[:MOST]]},
    )  # fmt: skip


_SAY_NOTHING = lazy(
    r"(?<![a-z])(?:no|without(?: any)?|missing) (?:logs?|lines?|output)(?![a-z])|(?<![a-z])(?:silent|(?:did|do|does) not (?:report|log|say|write|time out)|never reported|logged nothing)(?![a-z])|没有?(?:日志|输出|报)|未报|没日志",
    re.IGNORECASE,
)


def _silent(turn: Turn) -> Reply | None:
    """The ranks of which no line was read, beside those that report; None where that is not asked, or no rank reports."""
    d = turn.diagnosis
    if d is None or kind_asked(turn.query.text) is not Scope.RANK or not _SAY_NOTHING.search(turn.query.text):
        return None
    w = words(turn)
    told = {int(s.id) for o in d.events if (s := o.subject.up(Scope.RANK)) is not None and s.id.isdigit()}
    if not told:
        return None
    known = [o.value for s in d.facts.subjects(Scope.DOCUMENT) if (o := d.facts.current("job.ranks", s)) is not None]
    world = max([n for n in known if isinstance(n, int)], default=0)
    silent = [f"{n}" for n in range(max(world, max(told) + 1)) if n not in told]
    of = (
        w.t(f"of {world}", f"共 {world} 个")
        if world
        else w.t(f"up to rank {max(told)}; how many there are was not read", f"截至 rank {max(told)}，总数未读到")
    )
    those = w.t(f"{len(told)} ranks report ({of})", f"有 {len(told)} 个 rank 有日志（{of}）")
    head = (
        w.t(f"Rank {listed(silent[:MOST], 'en')}: {those}.", f"Rank {listed(silent[:MOST], 'zh')}：{those}。")
        if silent
        else w.t(f"None: {those}.", f"没有：{those}。")
    )
    return Reply(turn.lang, head, settled=bool(silent or world), suggestions=suggest(turn.lang, "why", "next"),
                 data={"answer": "which", "kind": "rank", "silent": silent})  # fmt: skip


_GONE = lazy(r"(?<![a-z])(?:missing|lost|gone|absent|not (?:listed|there|shown|seen)|left out|disappeared|lack\w*|lose)(?![a-z])|缺|少|不见|掉|丢|没(?:有?列|识别|认)", re.IGNORECASE)  # fmt: skip


def _left_out(turn: Turn) -> Reply | None:
    """The GPUs whose numbers a listing leaves out; None where that is not asked, or the numbers have no gap."""
    d = turn.diagnosis
    if d is None or kind_asked(turn.query.text) is not Scope.GPU or not _GONE.search(turn.query.text):
        return None
    w, gpus = words(turn), d.facts.subjects(Scope.GPU)
    out = [o.value for s in d.facts.subjects(Scope.NODE) if (o := d.facts.current("node.gpu.left_out", s)) is not None]
    numbers = [o.value for s in gpus if (o := d.facts.current("gpu.index", s)) is not None and isinstance(o.value, int)]
    gaps = sorted({*range(max(numbers, default=0))} - {*numbers})
    if not gaps or len(numbers) != len(set(numbers)) or len(out) != 1 or out[0] != len(gaps):
        return None
    names, last = listed([f"GPU {n}" for n in gaps[:MOST]], w.lang), max(numbers)
    bad = bad_roots(d.findings)
    said = "".join(f"{'' if w.lang == 'zh' else ' '}{w.title(f)}{w.t('.', '。')}" for f in bad[:1])
    return Reply(
        turn.lang, w.t(f"{names}: left out of 0 to {last}.", f"{names}：在 0 到 {last} 中缺少。") + said,
        focus=bad[0].id if bad else "", settled=True, suggestions=suggest(turn.lang, "why", "next", "evidence"),
        data={"answer": "which", "kind": "gpu", "missing": gaps},
    )  # fmt: skip


def _of_all(found: Sequence[Finding], kind: Scope | None, w: Words, asked: str = "") -> list[Blamed]:
    """Each thing once, with the worst that was found on it."""
    every: dict[str, Blamed] = {}
    for f in found:
        for b in of_kind(f, kind, w, asked):
            every.setdefault(b.name, b)
    return list(every.values())


def _meant(turn: Turn, w: Words) -> list[Finding]:
    """The findings that the words of the question mean: "which GPU has the slow PCIe link", "which host ran out of memory"."""
    kind = kind_asked(turn.query.text)
    asked = _KIND.sub(" ", turn.query.text) if kind is not None else turn.query.text
    lines, numbers = words_of(asked), codes(asked)
    of_gpu = not lines and not numbers and kind in (Scope.PROCESS, Scope.JOB, Scope.NODE) and _GPU.search(asked)
    if not lines and not numbers and not of_gpu:
        return []
    told = bad_findings(scoped(turn.diagnosis, turn.query.slots).about) if turn.diagnosis is not None else []

    def means(f: Finding) -> bool:
        if numbers:
            return f.xid in numbers
        if of_gpu:
            return f.subject.up(Scope.GPU) is not None
        text = " ".join((f.rule.id.replace("-", " "), w.title(f), f.title.en, *(text_of(o) for o in f.events)))
        return all(line.search(text) for line in lines)

    return sorted(filter(means, told), key=lambda f: f.behind)  # stable: causes before what they explain


def _other_than(w: Words, blamed: Sequence[Blamed], bad: Sequence[Finding]) -> str:
    """That nothing found is of the trouble that is asked about, with what was found."""
    found = [f"{b.name}{aside(clean(b.finding.title.in_(w.lang)), w.lang)}" for b in blamed[:NAMES]]
    said = listed(found or [w.title(f) for f in bad[:NAMES]], w.lang, ";")
    return w.t(f"No finding is of that kind. Found was: {said}.", f"没有这一类的发现。已发现的是：{said}。")


def _ended(turn: Turn) -> list[Finding]:
    """What ended a job, where nothing is broken: a time limit, a preemption."""
    assert turn.diagnosis is not None
    return [f for f in turn.diagnosis.roots if f.events and all(o.fact == "job_terminated" for o in f.events)]


def _by_cause(w: Words, found: Sequence[Finding], kind: Scope | None) -> str:
    """Which is the hardware's and which the program's."""
    sides: dict[str, list[str]] = {}
    for f in found:
        name = next((b.name for b in of_kind(f, kind, w)), "")
        if name:
            what = cause.kind_of(f).in_(w.lang)
            sides.setdefault(what, []).append(f"{name} ({f.title.en})" if w.lang != "zh" else f"{name}（{f.title.in_('zh')}）")  # fmt: skip
    said = (f"{opened(what)}{colon(w.lang)}{listed(names[:NAMES], w.lang)}" for what, names in sides.items())
    return w.t(". ", "。").join(said) + w.t(".", "。") if sides else ""


def _other_kinds(w: Words, kinds: Sequence[Scope], found: Sequence[Finding], asked: str) -> str:
    """The names of all kinds of a question for several; empty where it asks for one, or nothing names two of them."""
    if len(kinds) < 2 or not found:
        return ""
    f, names = found[0], list[str]()
    lacking: list[Scope] = []
    for kind in kinds:
        own = [b.name for b in of_kind(f, kind, w, asked)][:NAMES]
        names += own
        lacking += [] if own else [kind]
    if not names:
        return ""
    said = led(opened(listed(names, w.lang)), w.title(f), w.lang) + w.t(".", "。")
    return _gap(w).join([said, *(_unnamed(w, kind, found[:1], scope_name(kind, w.lang)) for kind in lacking)])


def _when(w: Words, text: str, blamed: Sequence[Blamed]) -> str:
    """The first and last time of the worst, where the question asks for that too."""
    if not blamed or not _WHEN.search(text):
        return ""
    timed = sorted((o for o in blamed[0].finding.events if o.at is not None), key=lambda o: o.at or 0)
    if not timed:
        said = since_when(w, blamed[0].finding) or w.t("Its line has no time.", "该行未读到时间。")
        return f"{_gap(w)}{said}"
    first, last = moment(timed[0]), moment(timed[0 if _FIRST.search(text) else -1])
    span = first if first == last else w.t(f"{first} to {last}", f"{first} 至 {last}")
    return w.t(f" At {span}.", f"时间：{span}。")


def _began(b: Blamed) -> float:
    """When the first line of a finding was logged; after all others where none has a time."""
    return min((o.at for o in b.finding.events if o.at is not None), default=float("inf"))


def _measured(w: Words, kind: Scope | None) -> list[Subject]:
    """All things of the kind that were looked at. Of one that a line of a log names nothing is known beside the line."""
    if kind is None:
        return []
    known = (k.inner for k in w.d.facts.observations)
    looked_at = {
        o.subject
        for o in known
        if o.status.answered and not isinstance(o.value, Event) and o.origin is not Origin.DERIVED
    }
    return [s for s in w.d.facts.subjects(kind) if s in looked_at]


def _parts(w: Words, blamed: Sequence[Blamed], usable: bool) -> tuple[Part, ...]:
    """One line for each thing, with what is wrong and what that asks for; nothing where the first line has said it."""
    if len(blamed) < 2 and not usable:
        return ()
    said = [
        f"{b.name}{aside(label(str(b.finding.severity), w.lang), w.lang)}{colon(w.lang)}"
        f"{clean(b.finding.title.in_(w.lang))} -> {b.finding.advice.bucket}"
        for b in blamed[:MOST]
    ]
    more = len(blamed) - MOST
    return (Items((*said, *((label("more_lines", w.lang).format(n=more),) if more > 0 else ()))),) if said else ()


def _gap(w: Words) -> str:
    """What stands between two sentences."""
    return "" if w.lang == "zh" else " "


def _head(
    w: Words, kind: Scope | None, bad: Sequence[Finding], blamed: Sequence[Blamed], rest: Sequence[Subject], worst: bool
) -> str:
    if not blamed and bad:
        title, what = w.title(bad[0]), scope_name(kind, w.lang) if kind else ""
        if kind is None:
            return f"{title}{w.t('.', '。')}"
        if reporting := _reporting(
            w, kind, bad
        ):  # those that tell of it stand beside it, and none of them is to blame for that
            return w.t(
                f"No {what} stands out: {reporting} tell it. {title}.",
                f"没有哪个{_apart(what)}突出：{reporting} 都报告了该问题：{w.quoted(title)}。",
            )
        place = bad[0].subject
        if kind is Scope.RANK and place.scope is Scope.GPU:
            name = clean(w.view.name(place))
            return w.t(
                f"The {what} on {name}; its number was not read. {title}.",
                f"{name} 上的那个{_apart(what)}，所读内容没有它的编号：{w.quoted(title)}。",
            )
        return f"{_unnamed(w, kind, bad, what)}{w.t(f' {title}.', f'{w.quoted(title)}。')}"
    if not blamed:
        return (
            w.t("None: nothing wrong was found", "没有：未发现问题") + _read(w, kind, rest)
            if w.d.settled
            else clean(w.d.verdict.text.in_(w.lang))
        )
    title = w.title(blamed[0].finding)
    if kind is None and worst:
        return f"{title}{w.t('.', '。')}"
    if len(blamed) > 1:
        return f"{_names(w, [b.name for b in blamed])}{w.t('.', '。')}{_others(w, kind, rest)}"
    b = blamed[0]
    said = (
        title
        if b.subject is not None and b.subject in b.finding.subject.ancestors() and b.name in title
        else led(opened(b.name), title, w.lang)
    )
    return f"{said}{w.t('.', '。')}{_others(w, kind, rest)}"


def _unnamed(w: Words, kind: Scope, found: Sequence[Finding], what: str) -> str:
    """That the lines of a finding tell no thing of the kind, with those that other lines name: the text was looked through for them."""
    others = elsewhere(found, kind, w)
    source = clean(next((o.source.call for f in found for o in (*f.events, *f.because) if o.source.call), ""))
    if others:
        names = _names(w, others)
        return w.t(f"The lines of this finding tell no {what}; other lines name {names}.", f"与该结论有关的行没有给出{_apart(what).rstrip()}；其他行提到 {names}。")  # fmt: skip
    place = w.t(f" of {source}" if source else "", f"{source} 中" if source else "")
    return w.t(f"The lines{place} that were understood tell no {what}; others may.", f"{place}已理解的行没有给出{_apart(what).rstrip()}，其他行可能有。")  # fmt: skip


def _read(w: Words, kind: Scope | None, rest: Sequence[Subject]) -> str:
    """On which of the kind: those that were read."""
    if not rest or kind is None:
        return w.t(".", "。")
    names = _names(w, [w.view.name(s) for s in rest])
    return w.t(f" on the {len(rest)} that were read: {names}.", f"，读到 {len(rest)} 个：{names}。")


def _reporting(w: Words, kind: Scope | None, found: Sequence[Finding]) -> str:
    told = [s for o in found[0].events if kind is not None and (s := o.subject.up(kind)) is not None and s.id]
    return _names(w, [w.view.name(s) for s in dict.fromkeys(told)]) if len(set(told)) > 1 else ""


def _others(w: Words, kind: Scope | None, rest: Sequence[Subject]) -> str:
    """The others of the kind that were looked at, as far as there are any."""
    if not rest or kind is None:
        return ""
    n, names = len(rest), _names(w, [w.view.name(s) for s in rest])
    others = "one" if n == 1 else str(n)
    return w.t(
        f" Nothing was found on the other {others}{aside(names, 'en')}.", f"其余 {n} 个未发现问题{aside(names, 'zh')}。"
    )


def others(turn: Turn) -> Reply | None:
    """Whether those can be used that are not the one to blame; None where nothing is to blame."""
    assert turn.diagnosis is not None
    w = words(turn)
    bad = bad_roots(turn.diagnosis.findings)
    if not bad:
        return None
    kind = kind_asked(turn.query.text) or Scope.GPU
    blamed = _of_all(bad, kind, w)
    named, names = {b.subject for b in blamed}, {b.name for b in blamed}  # of a rank only a line names it
    rest = [s for s in _measured(w, kind) if s not in named and clean(w.view.name(s)) not in names]
    return Reply(
        turn.lang,
        _of_others(w, kind, bad, rest, turn.query.text),
        _parts(w, blamed, True),
        focus=bad[0].id,
        settled=bool(rest) or not _spares(bad),
        suggestions=suggest(turn.lang, "why", "next", "evidence"),
        data={"answer": "others", "kind": str(kind), "others": [w.view.name(s) for s in rest],
              "findings": [finding_data(f, turn.lang) for f in bad[:MOST]]},
    )  # fmt: skip


_ILL = lazy(
    r"(?<![a-z])(?:wrong|broken|bad|faulty|sick|affected|problems?|issues?|errors?|too)(?![a-z])|(?<!没)(?<!没有)问题|坏|故障|影响|异常",
    re.IGNORECASE,
)


def _spares(bad: Sequence[Finding]) -> bool:
    """Whether what has to be done leaves the rest of the node alone."""
    return not any(
        f.advice.bucket in WHOLE_NODE or (f.subject.scope is Scope.NODE and f.advice.usable.stops) for f in bad
    )


def _of_others(w: Words, kind: Scope, bad: Sequence[Finding], rest: Sequence[Subject], asked: str) -> str:
    what, title = scope_name(kind, w.lang), w.title(bad[0])
    if not _spares(bad):
        whole = next((f for f in bad if f.advice.bucket in WHOLE_NODE), None)
        if whole is None:
            whole = next(f for f in bad if f.subject.scope is Scope.NODE and f.advice.usable.stops)
            return w.t(f"{led('No: it is about the whole node', w.title(whole), 'en')}.",
                       f"不能：该问题涉及整个节点：{w.quoted(w.title(whole))}。")  # fmt: skip
        return w.t(f"{led(f'Not for long: {whole.advice.bucket} takes the whole node down', w.title(whole), 'en')}.",
                   f"不能长期使用：{whole.advice.bucket} 会影响整个节点：{w.quoted(w.title(whole))}。")  # fmt: skip
    if rest:
        names = _names(w, [w.view.name(s) for s in rest])
        if _ILL.search(asked):  # a yes to "is anything wrong with them?" says the reverse
            return w.t(f"{led(f'Nothing was found on {names}, as far as it was read', title, 'en')}.",
                       f"就已读内容而言，{names} 未发现问题：{w.quoted(title)}。")  # fmt: skip
        return w.t(f"{led(f'Yes, as far as it was read: nothing was found on {names}', title, 'en')}.",
                   f"可以，就已读内容而言，{names} 未发现问题：{w.quoted(title)}。")  # fmt: skip
    return w.t(f"{led(f'Nothing that was read is about another {what}', title, 'en')}. `nvidia-smi -q` of the node tells their state.",
               f"所读内容未涉及其他{_apart(what).rstrip()}：{w.quoted(title)}。该节点的 `nvidia-smi -q` 可说明其状态。")  # fmt: skip


def _usable(w: Words, blamed: Sequence[Blamed], rest: Sequence[Subject]) -> str:
    """Those without a finding that forbids it, then those with one."""
    out = [b.name for b in blamed if b.finding.advice.usable is not Usable.YES]
    fine = sorted([*(w.view.name(s) for s in rest), *(b.name for b in blamed if b.finding.advice.usable is Usable.YES)])
    if not fine and not out:
        return clean(w.d.verdict.text.in_(w.lang))
    if not fine:
        return w.t(
            f"Not {_names(w, out)}; of others nothing was read.", f"{_names(w, out)} 不可用；没有读到其他的信息。"
        )
    said = w.t(f"Nothing that was read forbids {_names(w, fine)}.", f"就已读内容而言，{_names(w, fine)} 可以使用。")
    whole = next((b.finding.advice.bucket for b in blamed if b.finding.advice.bucket in WHOLE_NODE), None)
    if out:
        said += w.t(f" Not {_names(w, out)}", f"{_names(w, out)} 不可用")
        said += (
            w.t(f": {whole} is due, and takes the others down too.", f"：需要 {whole}，会一并中断其他。")
            if whole
            else w.t(".", "。")
        )
    return said


def _names(w: Words, names: Sequence[str]) -> str:
    more = len(names) - NAMES
    return listed([*names[:NAMES], *([f"+{more}"] if more > 0 else [])], w.lang)


def _apart(name: str) -> str:
    """A name within a Chinese sentence: Latin letters stand apart."""
    return f" {name} " if name[:1].isascii() else name
