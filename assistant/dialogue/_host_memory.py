"""The memory of a host, where a question about memory is asked of what tells of no other: its modules, and what of it is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.diagnosis import bad_roots
from assistant.dialogue._shown import marks_of, table, value
from assistant.dialogue._words import Words, suggest, words
from assistant.intent.host_memory import errors, left, modules
from assistant.render.labels import listed
from assistant.reply import Reply
from knowledge.observation import Observation, Scope, Status
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.dialogue import Turn

MOST = 4  # modules in a first line
_ERRORS = ("dimm.errors.uncorrected", "dimm.errors.corrected")  # the graver first
_LEFT = ("node.memory.available.share", "node.memory.available", "node.memory.free")
_OF_GPUS = ("gpu.ecc.", "gpu.memory.")
FULL = 5.0  # % that programs can still get, up to which it is full


def answer(turn: Turn) -> Reply | None:
    """The errors of the modules, or what is left of the memory; None where that is not asked, or memory of GPUs was read too."""
    d, text = turn.diagnosis, turn.query.text
    if d is None or not (errors(text) or left(text)):
        return None
    w = words(turn)
    if not modules(text) and any(name.startswith(_OF_GPUS) for name in d.facts.facts):
        return None
    return (_modules(turn, w) if errors(text) else None) or (_left(turn, w) if left(text) else None)


def _known(w: Words, name: str, scope: Scope) -> list[Observation]:
    every = (w.d.facts.current(name, s) for s in w.d.facts.subjects(scope))
    return [o for o in every if o is not None and o.status is Status.OK and isinstance(o.value, int | float)]


def _modules(turn: Turn, w: Words) -> Reply | None:
    rows = [o for name in _ERRORS for o in _known(w, name, Scope.OBJECT)]
    if not rows:
        return None
    bad = sorted((o for o in rows if o.value), key=lambda o: (not _named(o), _ERRORS.index(o.fact), -_count(o)))
    said = [f"{clean(w.view.name(o.subject))}{w.t(': ', '：')}{_of(w, o)}" for o in bad[:MOST]]
    gap = w.t(". ", "。")
    head = (
        gap.join(said) + w.t(".", "。")
        if said
        else w.t(
            f"None: no error on any of {len(rows)} counters of host memory.",
            f"没有：主机内存的 {len(rows)} 个计数均为 0。",
        )
    )
    lone = [o for o in bad if not _named(o)]
    if lone and any(map(_named, bad)):
        where = listed([clean(w.view.name(o.subject)) for o in lone[:MOST]], w.lang)
        head += w.t(f" Which module of {where} it was is not told.", f"{where} 的是哪一条未指明。")
    found = [f"{w.title(f)} -> {f.advice.bucket}" for f in bad_roots(w.d.findings)[:MOST]]
    return Reply(
        turn.lang, head, (table(w, bad or rows, marks_of(w)), *w.section("Found", "发现", found)), settled=True,
        suggestions=suggest(turn.lang, "why", "next", "evidence"),
        data={"answer": "host memory", "modules": [o.subject.id for o in bad]},
    )  # fmt: skip


def _named(o: Observation) -> bool:
    """Whether it counts for a module that has a label, and not for a row or a controller."""
    return "(" in o.subject.id or "dimm" in o.subject.id.casefold()


def _count(o: Observation) -> float:
    return float(o.value) if isinstance(o.value, int | float) else 0.0


def _of(w: Words, o: Observation) -> str:
    kind = w.t("uncorrected", "不可纠正") if o.fact == _ERRORS[0] else w.t("corrected", "已纠正")
    n = f"{_count(o):.0f}"
    return w.t(f"{n} {kind} error{'s' * (n != '1')}", f"{n} 个{kind}错误")


def _left(turn: Turn, w: Words) -> Reply | None:
    rows = [o for name in _LEFT for o in _known(w, name, Scope.NODE)]
    if not rows:
        return None
    share = next((_count(o) for o in rows if o.fact == _LEFT[0]), None)
    said = listed([value(w, o) for o in rows if o.fact == rows[0].fact], w.lang)
    lead = "" if share is None else w.t("Full: ", "已满：") if share <= FULL else w.t("Not full: ", "未满：")
    what = w.t("of the host's memory", "主机内存") if share is not None else w.t("of host memory", "主机内存")
    head = w.t(f"{lead}{said} {what} can still be had by programs.", f"{lead}{what}还有 {said} 可供程序使用。")
    return Reply(
        turn.lang,
        head,
        (table(w, rows, marks_of(w)),),
        settled=True,
        suggestions=suggest(turn.lang, "verdict", "evidence"),
        data={"answer": "host memory", "share": share},
    )
