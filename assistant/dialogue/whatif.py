"""What if: the differences that facts, events or thresholds would make if they were otherwise. Nothing of it was seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.dialogue._asked import changed
from assistant.dialogue._assumed import Assumption, assumptions, told
from assistant.dialogue._scope import scoped
from assistant.dialogue._should import asked_of
from assistant.dialogue._standing import Stand, Standing, standings
from assistant.dialogue._suppose import Differences, differences, suppose
from assistant.dialogue._thresholds import with_rules
from assistant.dialogue._traced import bottleneck
from assistant.dialogue._words import Words, fact_of, facts_in, finding_data, nothing_yet, suggest, words, words_of
from assistant.intent.assumed import short
from assistant.intent.query import Assumed
from assistant.render.labels import colon, label, led, listed
from assistant.render.meanings import meaning
from assistant.render.sheet import Fields, Items, Paragraph, Part
from assistant.reply import Reply
from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.text import clean, opened
from rules.condition import FactLeaf
from rules.proof import deciding, leaf_proofs

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from rules.engine import Finding
    from rules.model import Rule

SHOWN = 4  # findings of one kind of difference


def answer(turn: Turn) -> Reply:
    """The differences only; that there are none is an answer too, with what keeps it so."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    w, d = words(turn), turn.diagnosis
    where = scoped(d, turn.query.slots)
    if where.unknown and not where.subjects:
        from assistant.dialogue.verdict import lost

        first = where.unknown[0]
        return _refused(turn, [Text(*[lost(w, first.slot, first.value, first.known)] * 2)])
    if not turn.query.assumed and (meant := _of_the_proof(turn)) is not None:
        turn = replace(turn, query=replace(turn.query, assumed=(meant,)))
    read = assumptions(turn, where)
    problems = [a for a in read if isinstance(a, Text)]
    made = [a for a in read if isinstance(a, Assumption)]
    if not read and (lines := told(turn.query.observations)) is not None:
        made = [lines]
    if not read and not made and (named := bottleneck(turn)) is not None:
        return named  # "what if I used CUDA graphs?"
    if not (problems or made) and asked_of(turn.query) is not None:
        from assistant.dialogue import verdict

        return verdict.answer(turn)  # "what if I just restart the job": an act, and nothing to assume
    if problems or not made:
        return _refused(turn, problems)
    ruleset = with_rules(turn.ruleset, {a.threshold.rule.id: a.threshold.rule for a in made if a.threshold is not None})
    then = suppose(d, ruleset, [s for a in made for s in a.suppositions])
    return _compared(turn, w, made, then)


def _of_the_proof(turn: Turn) -> Assumed | None:
    """ "what if the width were 16": a value that the finding in focus rests on, called by the last word of its name or by its meaning."""
    said, f = short(turn.query.text), turn.finding
    if said is None or f is None or turn.diagnosis is None:
        return None
    (word, value), known = said, turn.diagnosis.facts.vocabulary
    facts = dict.fromkeys(p.leaf.fact for p in leaf_proofs(f.proof) if isinstance(p.leaf, FactLeaf))
    named = [
        n for n in facts if word in re.split(r"[._]", n) or (not word.isascii() and word in known[n].meaning.in_("zh"))
    ]
    return Assumed(named[0], value) if len(named) == 1 else None


def _compared(turn: Turn, w: Words, made: Sequence[Assumption], then: Diagnosis) -> Reply:
    d, lang = w.d, turn.lang
    diff = differences(d, then)
    after = words_of(then, lang)
    said = listed((a.said.in_(lang) for a in made), lang, ";")
    before_text, after_text = (clean(x.verdict.text.in_(lang)) for x in (d, then))
    moved = (d.verdict.state, d.verdict.usable, before_text) != (then.verdict.state, then.verdict.usable, after_text)
    parts: list[Part] = []
    if moved:
        parts.append(Fields((
            (w.t("verdict now", "当前结论"), f"{label(str(d.verdict.state), lang)}{colon(lang)}{before_text}"),
            (w.t("it would be", "届时结论"), f"{label(str(then.verdict.state), lang)}{colon(lang)}{after_text}"),
        )))  # fmt: skip
    parts += w.section("Would be found as well", "还会出现的结论", _few(after, diff.appear, graded=True))
    parts += w.section("Would not be found", "将不再成立的结论", _few(w, diff.vanish))
    parts += w.section("Would be different", "会改变的结论", _shifts(w, diff))
    if not diff and not moved:
        parts.append(Items(tuple(_kept(turn, w, made, then))))
    return Reply(
        lang,
        _head(w, said, diff, moved, then),
        tuple(parts),
        hypothetical=True,
        suggestions=suggest(lang, "why", "confidence", "alternatives"),
        data={"answer": "whatif", "assumed": [a._asdict() for a in turn.query.assumed], "changes": bool(diff) or moved,
              "verdict": {"before": str(d.verdict.state), "after": str(then.verdict.state),
                          "usable_before": str(d.verdict.usable), "usable_after": str(then.verdict.usable)},
              "appear": [finding_data(f, lang) for f in diff.appear], "vanish": [finding_data(f, lang) for f in diff.vanish],
              "change": [{"before": finding_data(a, lang), "after": finding_data(b, lang)} for a, b in diff.change]},
    )  # fmt: skip


def _head(w: Words, said: str, diff: Differences, moved: bool, then: Diagnosis) -> str:
    return w.t(f"Supposed: {said}. ", f"假设：{said}。") + _outcome(w, diff, moved, then)


def _outcome(w: Words, diff: Differences, moved: bool, then: Diagnosis) -> str:
    """What would come of it, in a sentence."""
    if not diff and not moved:
        return w.t("Nothing would change.", "不会有任何变化。")
    if not moved:
        n = len(diff.appear) + len(diff.vanish) + len(diff.change)
        return w.t(f"The verdict would stay, {n} finding{'' if n == 1 else 's'} would differ.",
                   f"结论不变，但有 {n} 项发现会不同。")  # fmt: skip
    state = label(str(then.verdict.state), w.lang)
    if then.verdict.state is w.d.verdict.state:
        if [f.id for f in then.roots[:1]] == [f.id for f in w.d.roots[:1]]:
            return w.t(
                f"It would still be {state}, with other findings beside it.", f"结论仍为“{state}”，但其他发现会不同。"
            )
        return w.t(f"It would still be {state}, for another reason.", f"结论仍为“{state}”，但原因不同。")
    before = label(str(w.d.verdict.state), w.lang)
    return w.t(f"It would be {state} instead of {before}.", f"结论将为“{state}”，而不是“{before}”。")


def _few(w: Words, findings: Sequence[Finding], graded: bool = False) -> list[str]:
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for f in findings:
        key = (f.rule.id, f.title.en, f.severity, f.grade, f.advice.bucket)
        groups.setdefault(key, []).append(f)
    said = [_found(w, group, graded) for group in list(groups.values())[:SHOWN]]
    rest = len(groups) - SHOWN
    return said if rest <= 0 else [*said, label("more_lines", w.lang).format(n=rest)]


def _found(w: Words, group: Sequence[Finding], graded: bool) -> str:
    """A finding, or the same one on several subjects."""
    f = group[0]
    title = w.rule_title(f.title, [x.subject for x in group])
    if not graded:
        return title
    return f"{label(str(f.severity), w.lang)} {title}{w.mark}{w.grade(f)}{w.mark}{f.advice.bucket}"


def _shifts(w: Words, diff: Differences) -> list[str]:
    said = [f"{w.title(b)}{colon(w.lang)}{changed(w, a, b)}" for a, b in diff.change[:SHOWN]]
    rest = len(diff.change) - SHOWN
    return said if rest <= 0 else [*said, label("more_lines", w.lang).format(n=rest)]


# --- nothing would change -----------------------------------------------------------------


def _kept(turn: Turn, w: Words, made: Sequence[Assumption], then: Diagnosis) -> Iterator[str]:
    """What keeps the answer as it is, in a line for each assumption."""
    for a in made:
        if a.empty:
            yield (
                w.t("It is so already.", "现在就是如此。")
                if a.facts
                else w.t("It would be the same rule.", "规则不变。")
            )
        elif a.threshold is not None:
            yield _still(w, standings([a.threshold.rule], then)[0], then)
        else:
            yield _unmoved(turn, w, a, then)


def _unmoved(turn: Turn, w: Words, a: Assumption, then: Diagnosis) -> str:
    """Why a fact changes nothing: no rule asks for it; or the rule still holds, or still does not."""
    asking = [r for r in turn.ruleset.rules if a.facts.intersection(_all_facts(r))]
    names = listed((w.quoted(meaning(name, vocabulary(), w.lang)) for name in sorted(a.facts)), w.lang)
    if not asking:
        return w.t(f"No rule asks for this: {names}.", f"没有规则用到{names}。")
    main = [r for r in asking if a.facts.intersection(facts_in(r.when))] or asking
    held = [f for r in (main, asking) for f in then.findings if f.rule.id in {x.id for x in r}]
    if held:
        return _holds_without(w, held[0], a)
    near = standings(main, then, a.subjects)
    best = next((s for s in near if any(fact_of(p.leaf) in a.facts for p in s.lacking)), near[0])
    return _still(w, best, then, a.facts)


def _holds_without(w: Words, f: Finding, a: Assumption) -> str:
    other = [p for p in deciding(f.proof) if fact_of(p.leaf) not in a.facts] or list(deciding(f.proof))
    title = w.quoted(w.title(f))
    return led(w.t(f"{title} holds all the same", f"{title}仍然成立"), opened(w.clause(other[0])), w.lang)


def _still(w: Words, s: Standing, then: Diagnosis, facts: frozenset[str] = frozenset()) -> str:
    """Where the rule nearest to the assumption stands then, with the clause that keeps it there."""
    after = words_of(then, w.lang)
    if s.finding is not None:
        title, held = w.quoted(after.title(s.finding)), next(iter(deciding(s.finding.proof)), None)
        shown = after.clause(held) if held is not None else s.rule.id
        return led(w.t(f"{title} holds all the same", f"{title}仍然成立"), opened(shown), w.lang)
    title = w.quoted(w.rule_name(s.rule))
    if s.lacking:
        reason = after.clause(next((p for p in s.lacking if fact_of(p.leaf) in facts), s.lacking[0]))
        if s.stand is Stand.UNKNOWN:
            return led(w.t(f"{title} would still be open", f"{title}仍无法判定"), reason, w.lang)
        return led(w.t(f"{title} would still not hold", f"{title}仍不成立"), opened(reason), w.lang)
    return w.t(f"{title}: nothing here that it is about", f"{title}：这里没有它所涉及的对象")


def _all_facts(rule: Rule) -> set[str]:
    return {name for c in (rule.when, *rule.confirms, *rule.excludes) for name in facts_in(c)}


# --- what cannot be assumed ---------------------------------------------------------------


def _refused(turn: Turn, problems: Sequence[Text]) -> Reply:
    lang = turn.lang
    zh = lang == "zh"
    if problems:
        head, rest = problems[0].in_(lang), tuple(Paragraph(p.in_(lang)) for p in problems[1:])
    else:
        head, rest = (
            ("要假设什么？请说出一项事实及其值。" if zh else "What should be assumed? Name a fact and its value."),
            (),
        )
    return Reply(
        lang,
        head,
        rest,
        settled=False,
        suggestions=(*_examples(turn), *suggest(lang, "why")),
        data={"answer": "whatif", "problems": [p.in_(lang) for p in problems]},
    )


def _examples(turn: Turn) -> tuple[str, ...]:
    """A what-if that can be said of the finding that the talk is about."""
    f = turn.finding
    zh = turn.lang == "zh"
    if f is not None and f.xid is not None:
        return (f"如果没有出现 xid {f.xid} 呢？" if zh else f"what if there had been no xid {f.xid}?",)
    return ("如果 ECC 关闭呢？" if zh else "what if ECC is off?",)
