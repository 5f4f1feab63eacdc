"""A differential diagnosis: every hypothesis behind a symptom, with what speaks for it, against it, and what is open.

The evidence is that of the rules. A rule that holds speaks for its hypothesis; a hypothesis is ruled out only when
each rule that decides it was evaluated on everything it is about and cannot hold. What could not be looked at leaves
it open: missing is never fine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from assistant.diagnosis import only_said
from assistant.differential.weigh import Scales, Stand, Weighed
from assistant.differential.words import Wording
from assistant.render.cells import cut, wrap
from assistant.render.labels import colon, listed
from knowledge.language import Text
from knowledge.priors import order
from knowledge.record import dataclass
from knowledge.symptoms import hypotheses_of, symptoms

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.planner import Plan
    from assistant.render.sheet import Part
    from knowledge.observation import Subject
    from knowledge.symptoms import Hypothesis
    from rules.loader import RuleSet

__all__ = ["Row", "Stand", "brief", "differential", "state_word", "summary", "table", "weighed"]

ROWS = 6  # of the table, at most, that can still be
SHUT = 2  # and that cannot
NAMED = 3  # hypotheses of one kind in the summary, at most
_SENTENCE = re.compile(r"(?<=[\w`)])\. (?=[A-Z])|。(?=.)")
_AFTER_COLON = re.compile(": |：")
TITLE = 60  # columns of a title within the table, at most
SENTENCE = 72  # and of an evidence sentence or a next step: cut in the middle they say little

_STANDS = {
    Stand.FOR: Text("supported", "有证据支持"),
    Stand.POSSIBLE: Text("possible", "有可能"),
    Stand.UNKNOWN: Text("open", "未确定"),
    Stand.AGAINST: Text("ruled out", "已排除"),
}
_CONSEQUENCE = Text("consequence", "连带后果")
_HEADER = (
    Text("hypothesis", "假设"), Text("for", "支持"), Text("against", "反对"), Text("unknown", "未知"), Text("next", "下一步"),
)  # fmt: skip
_NO_PROBE = Text("no probe tells", "无探针可判断")


@dataclass(frozen=True, slots=True)
class Row:
    """One hypothesis, in one language."""

    id: str
    title: str
    state: Stand
    for_: tuple[str, ...] = ()  # evidence sentences
    against: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()  # what is not known, after what would tell it
    next: str = ""  # the probe with its cost, the question, the step by hand; of what is supported the action
    findings: tuple[str, ...] = ()  # ids
    causes: tuple[str, ...] = ()  # ids of findings that explain what speaks for it: a consequence, not the cause


def differential(
    symptom_ids: Sequence[str],
    diagnosis: Diagnosis,
    plan: Plan | None,
    lang: str,
    ruleset: RuleSet | None = None,
    pointed: Sequence[str] = (),
    denied: Collection[str] = (),
) -> tuple[Row, ...]:
    """The hypotheses of `symptom_ids` in the light of `diagnosis`: supported, open by their prior, ruled out.

    `pointed`: ids of hypotheses that the words of the complaint point at, the surest first; they lead those that are open.
    `denied`: ids of those that it speaks against without ruling them out; they come last of the open ones.

    `plan` names the probes and questions that can still tell something; without it every probe and input counts.
    `ruleset` is the one that the diagnosis was made with, the shipped one by default.
    """
    known = symptoms()
    tags = {tag for name in symptom_ids if name in known for tag in known[name].tags}
    return weighed(hypotheses_of(symptom_ids), tags, diagnosis, plan, lang, ruleset, pointed=pointed, denied=denied)


def weighed(
    hypotheses: Iterable[Hypothesis], tags: Collection[str], diagnosis: Diagnosis, plan: Plan | None, lang: str,
    ruleset: RuleSet | None = None, about: Collection[Subject] = (), pointed: Sequence[str] = (),
    denied: Collection[str] = (),
) -> tuple[Row, ...]:  # fmt: skip
    """Hypotheses in the light of `diagnosis`, in the same order; `tags` are the words of a symptom that rules carry.

    `about`: the processes, ranks, jobs and GPUs that count; empty: all. `pointed`, `denied`: see `differential`.
    """
    if ruleset is None:
        from rules.loader import load

        ruleset = load()
    scales = Scales(diagnosis, ruleset, about)
    every = [scales.weigh(h, tags) for h in hypotheses]
    words = Wording(diagnosis, plan, lang)
    return tuple(_row(w, words, lang) for w in sorted(every, key=_order(every, diagnosis, pointed, denied)))


def _order(
    weighed: Sequence[Weighed], diagnosis: Diagnosis, pointed: Sequence[str], denied: Collection[str]
) -> Callable[[Weighed], tuple[int, ...]]:
    """What is found in the order of the findings; what is open as the words point, then by how often such a thing is the
    cause; else as in the data.

    Where something was found, and where no machine was looked at, the order of the symptom's own hypotheses says more
    than that of a fleet's failures.
    """
    looked = not only_said(diagnosis.facts)
    found = {f.id: i for i, f in enumerate(diagnosis.findings)}
    prior = {cause: i for i, cause in enumerate(order(w.hypothesis.cause for w in weighed))}
    listed_as = {w.hypothesis.id: i for i, w in enumerate(weighed)}

    def key(w: Weighed) -> tuple[int, ...]:
        worst = min((found[f.id] for f in w.findings if f.id in found), default=len(found))
        rank = prior[w.hypothesis.cause] if looked and not w.findings else 0
        is_open = w.stand in (Stand.POSSIBLE, Stand.UNKNOWN)
        meant = pointed.index(w.hypothesis.id) if is_open and w.hypothesis.id in pointed else len(pointed)
        shut = list(Stand).index(w.stand)
        place = (1 if is_open else 2 * (w.stand is Stand.AGAINST)), meant, is_open and w.hypothesis.id in denied
        return *place, shut, worst, rank, listed_as[w.hypothesis.id]

    return key


def _row(w: Weighed, words: Wording, lang: str) -> Row:
    h = w.hypothesis
    return Row(
        id=h.id,
        title=h.title.in_(lang),
        state=w.stand,
        for_=words.seen(w.for_, h.facts),
        against=words.denied(w.against, h.facts) if w.stand is not Stand.FOR else (),
        unknown=words.unknown(w.gaps),
        next=words.next(w),
        findings=tuple(f.id for f in w.findings),
        causes=w.causes,
    )


def table(rows: Sequence[Row], lang: str, most: int = ROWS) -> tuple[Part, ...]:
    """What can still be, then some of what cannot, with what speaks for and against each, what is not known, and what
    would tell. A line below says how many were left out."""
    from assistant.render.sheet import Paragraph, Table

    told = [r for r in rows if r.state is not Stand.AGAINST][:most]
    told += [r for r in rows if r.state is Stand.AGAINST][: max(SHUT, most - len(told))]
    shown: list[tuple[str, ...]] = [_cells(row, lang) for row in told]
    parts: list[Part] = [Table(tuple(text.in_(lang) for text in _HEADER), tuple(shown))]
    if rest := [r for r in rows if r not in told]:
        more, counts = Text(f"{len(rest)} more", f"另有 {len(rest)} 项").in_(lang), _counts(rest, lang)
        counts = counts.removeprefix(f"{len(rest)} ")  # all of one kind
        parts.append(Paragraph(f"{more}{colon(lang)}{counts}{'。' if lang == 'zh' else '.'}"))
    return tuple(parts)


def _cells(row: Row, lang: str) -> tuple[str, ...]:
    """Its name, what speaks for it, what against it, what is not known, and the next look."""
    for_ = next(iter(row.for_), "")
    against = next(iter(row.against), "") if row.state is Stand.AGAINST else ""
    unknown = next(iter(row.unknown), "") if row.state in (Stand.UNKNOWN, Stand.POSSIBLE) else ""
    if row.state is Stand.UNKNOWN and not unknown:
        unknown = _NO_PROBE.in_(lang)
    title = _AFTER_COLON.split(row.title)[0]
    unknown = _AFTER_COLON.split(unknown, maxsplit=1)[-1]  # what would tell it stands in the next cell
    cells = (_opening(c) for c in (for_, against, unknown, brief(row.next)))
    return cut(title, TITLE), *cells


def _opening(text: str) -> str:
    """A sentence in a cell: its first words, when it is long."""
    lines = wrap(text, SENTENCE)
    return lines[0] if len(lines) == 1 else f"{lines[0].rstrip(' ,;，；：:（(')} ..."


def brief(step: str) -> str:
    """The first sentence of a step: what to do stands there, how to read the result behind it."""
    return _SENTENCE.split(step, maxsplit=1)[0]


def state_word(row: Row, lang: str) -> str:
    """Where a hypothesis stands, in a word."""
    return _state(row).in_(lang)


def _state(row: Row) -> Text:
    return _CONSEQUENCE if row.causes else _STANDS[row.state]


def _counts(rows: Sequence[Row], lang: str) -> str:
    known = [(stand, sum(r.state is stand for r in rows)) for stand in Stand]
    said = ((_STANDS[stand].in_(lang), n) for stand, n in known if n)
    return listed((f"{word} {n} 项" if lang == "zh" else f"{n} {word}" for word, n in said), lang)


def summary(rows: Sequence[Row], lang: str) -> str:
    """One line: what is most likely, what was ruled out, what is still open. Empty without rows."""
    likely = [r for r in rows if r.state is Stand.FOR]
    likely = likely or [r for r in rows if r.state is Stand.POSSIBLE and not r.causes]
    supported = bool(likely) and likely[0].state is Stand.FOR
    shut = (Stand.FOR, Stand.AGAINST)
    parts = (
        (Text("Most likely", "最可能") if supported else Text("Possible", "有可能"), likely),
        (Text("Ruled out", "已排除"), [r for r in rows if r.state is Stand.AGAINST]),
        (Text("Still open", "尚未确定"), [r for r in rows if r.state not in shut and not r.causes and r not in likely]),
    )
    said = [f"{name.in_(lang)}{_colon(lang)}{_named(some, lang)}{_stop(lang)}" for name, some in parts if some]
    return "".join(said) if lang == "zh" else " ".join(said)


def _named(rows: Sequence[Row], lang: str) -> str:
    """Titles up to their colon, as parts of a sentence."""
    titles = [_within(_AFTER_COLON.split(row.title)[0], lang) for row in rows[:NAMED]]
    rest = len(rows) - NAMED
    return listed(titles, lang, ";") + (Text(f"; {rest} more", f"；另有 {rest} 项").in_(lang) if rest > 0 else "")


def _within(title: str, lang: str) -> str:
    return title[:1].lower() + title[1:] if lang != "zh" and _is_plain(title) else title


def _is_plain(title: str) -> bool:
    """Whether a title opens with a word that is written small within a sentence."""
    first = title.split(" ", 1)[0]
    return first[1:].islower() or len(first) == 1


def _colon(lang: str) -> str:
    return {"zh": "："}.get(lang, ": ")


def _stop(lang: str) -> str:
    return {"zh": "。"}.get(lang, ".")
