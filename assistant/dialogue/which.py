"""Which GPU, process, rank or node: what is to blame by name, and what of its kind nothing was found on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.diagnosis import bad_roots
from assistant.dialogue._scope import scoped
from assistant.dialogue._words import Words, finding_data, nothing_yet, suggest, words
from assistant.intent.kinds import asks_usable, kind_asked
from assistant.render.labels import aside, colon, label, led, listed, scope_name
from assistant.render.sheet import Items, Part
from assistant.reply import Reply
from knowledge.observation import Event, Origin, Scope, Subject
from knowledge.text import clean
from rules.engine import program_of
from rules.model import Bucket, Usable

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding

WHOLE_NODE = frozenset({Bucket.RESTART_BM, Bucket.RESTART_VM, Bucket.UPDATE_SWFW})  # actions that spare no GPU of it
MOST, NAMES = 8, 4  # findings, one line each; names in a sentence


class _Blamed(NamedTuple):
    """A thing by name, and the worst that was found on it."""

    name: str
    finding: Finding
    subject: Subject | None  # None: only a line of a log names it


def answer(turn: Turn) -> Reply:
    """The things of the kind that is asked about on which something wrong was found, worst first, and the others."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    w, kind, usable = words(turn), kind_asked(turn.query.text), asks_usable(turn.query.text)
    bad = bad_roots(scoped(turn.diagnosis, turn.query.slots).about)
    blamed = list({b.name: b for f in reversed(bad) for b in _of_kind(f, kind, w)}.values())[::-1]
    named = {b.subject for b in blamed}
    rest = [s for s in _measured(w, kind) if s not in named]
    head = _usable(w, blamed, rest) if usable else _head(w, kind, bad, blamed, rest)
    first = blamed[0].finding if blamed else bad[0] if bad else None
    return Reply(
        turn.lang,
        head,
        _parts(w, blamed, usable),
        focus=first.id if first is not None else "",
        settled=turn.diagnosis.settled,
        suggestions=suggest(turn.lang, "why", "next", "evidence"),
        data={"answer": "which", "kind": str(kind) if kind else None, "blamed": [b.name for b in blamed],
              "others": [w.view.name(s) for s in rest], "findings": [finding_data(f, turn.lang) for f in bad[:MOST]]},
    )  # fmt: skip


def _of_kind(f: Finding, kind: Scope | None, w: Words) -> Iterator[_Blamed]:
    """The things of the kind that a finding is about: its subject, what that is part of, or what its lines name."""
    subjects = [f.subject] if kind is None else [s] if (s := f.subject.up(kind)) else w.d.facts.related(f.subject, kind)
    if kind is Scope.PROCESS and (program := program_of(f.events)) is not None:
        yield _Blamed(program.words.in_(w.lang), f, None)
        return
    if kind is Scope.RANK and f.subject.up(kind) is None:  # of a job: the ranks that it names, and not all that report
        for rank in _ranks(f):
            yield _Blamed(f"rank {rank}", f, None)
        return
    for s in subjects:
        if s.id:  # a node whose name nobody told names nothing
            yield _Blamed(clean(w.view.name(s)), f, s)


_RANKS = (
    "job.nccl.timeout.missing_ranks",
    "job.nccl.timeout.min_seq_rank",
    "job.slow_rank",
    "job.hung.rank",
    "job.ranks.missing_here",
)


def _ranks(f: Finding) -> Iterator[str]:
    """The ranks that the evidence of a finding blames."""
    for o in f.because:
        if o.fact in _RANKS and o.status.answered and o.value is not None:
            yield from map(str, o.value) if isinstance(o.value, tuple) else (str(o.value),)


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


def _parts(w: Words, blamed: Sequence[_Blamed], usable: bool) -> tuple[Part, ...]:
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


def _head(
    w: Words, kind: Scope | None, bad: Sequence[Finding], blamed: Sequence[_Blamed], rest: Sequence[Subject]
) -> str:
    if not blamed and bad:
        title, what = w.title(bad[0]), scope_name(kind, w.lang) if kind else ""
        return w.t(
            f"What was read names no {what}. {title}.", f"所读内容未指明{_apart(what).rstrip()}：{w.quoted(title)}。"
        )
    if not blamed:
        return (
            w.t("None: nothing wrong was found.", "没有：未发现问题。") + _others(w, kind, rest)
            if w.d.settled
            else clean(w.d.verdict.text.in_(w.lang))
        )
    title = w.title(blamed[0].finding)
    if len(blamed) > 1:
        return f"{_names(w, [b.name for b in blamed])}{w.t('.', '。')}{_others(w, kind, rest)}"
    said = title if blamed[0].name in title else led(blamed[0].name, title, w.lang)
    return f"{said}{w.t('.', '。')}{_others(w, kind, rest)}"


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
    blamed = [b for f in bad for b in _of_kind(f, kind, w)]
    rest = [s for s in _measured(w, kind) if s not in {b.subject for b in blamed}]
    return Reply(
        turn.lang,
        _of_others(w, kind, bad, rest),
        _parts(w, blamed, True),
        focus=bad[0].id,
        settled=bool(rest) or not _spares(bad),
        suggestions=suggest(turn.lang, "why", "next", "evidence"),
        data={"answer": "others", "kind": str(kind), "others": [w.view.name(s) for s in rest],
              "findings": [finding_data(f, turn.lang) for f in bad[:MOST]]},
    )  # fmt: skip


def _spares(bad: Sequence[Finding]) -> bool:
    """Whether what has to be done leaves the rest of the node alone."""
    return not any(
        f.advice.bucket in WHOLE_NODE or f.subject.scope is Scope.NODE for f in bad if f.advice.usable is not Usable.YES
    )


def _of_others(w: Words, kind: Scope, bad: Sequence[Finding], rest: Sequence[Subject]) -> str:
    what, title = scope_name(kind, w.lang), w.title(bad[0])
    if not _spares(bad):
        whole = next(f for f in bad if f.advice.bucket in WHOLE_NODE or f.subject.scope is Scope.NODE)
        return w.t(f"{led(f'Not for long: {whole.advice.bucket} takes the whole node down', w.title(whole), 'en')}.",
                   f"不能长期使用：{whole.advice.bucket} 会影响整个节点：{w.quoted(w.title(whole))}。")  # fmt: skip
    if rest:
        names = _names(w, [w.view.name(s) for s in rest])
        return w.t(f"{led(f'Yes, as far as it was read: nothing was found on {names}', title, 'en')}.",
                   f"可以，就已读内容而言，{names} 未发现问题：{w.quoted(title)}。")  # fmt: skip
    return w.t(f"{led(f'Nothing that was read is about another {what}', title, 'en')}. `nvidia-smi -q` of the node tells their state.",
               f"所读内容未涉及其他{_apart(what).rstrip()}：{w.quoted(title)}。该节点的 `nvidia-smi -q` 可说明其状态。")  # fmt: skip


def _usable(w: Words, blamed: Sequence[_Blamed], rest: Sequence[Subject]) -> str:
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
