"""Why not something else: what the rules about it ask for, and what of it is not so, not known, or ruled out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.dialogue import _clauses
from assistant.dialogue._meant import Meant, meant
from assistant.dialogue._scope import scoped
from assistant.dialogue._standing import Stand, Standing, standings
from assistant.dialogue._traced import bottleneck
from assistant.dialogue._words import Words, causes_of, filled, finding_data, nothing_yet, suggest, words
from assistant.render import describe
from assistant.render.labels import aside, colon, label, listed, scope_name
from assistant.render.sheet import Paragraph, Part
from assistant.reply import Reply
from knowledge.text import clean
from rules.condition import leaves
from rules.evaluate import evaluate
from rules.proof import LeafProof, Truth

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding

_USE = re.compile(r"\b(?:use|using|schedule|run (?:it|jobs?|on))\b|使用|不用|调度")
OTHERS, LEAVES = 3, 4  # further rules in one line each; clauses of the first one


def answer(turn: Turn) -> Reply:
    """Why the hypothesis of the query was not concluded, or that it was."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    w = words(turn)
    what = meant(turn.query, turn.ruleset.rules)
    if not (what.outright and what.rules) and (named := bottleneck(turn)) is not None:
        return named
    if (
        not what.outright
        and (turn.query.slots.gpu or turn.query.slots.node)
        and _USE.search(turn.query.text.casefold())
    ):
        from assistant.dialogue.verdict import answer as verdict

        return verdict(turn)  # "why not use gpu 3?"
    if what.hypotheses:
        from assistant.dialogue._suspected import answer as suspected

        return suspected(turn, w, what)
    if not what.rules:
        return _no_rule(turn, w, what)
    where = scoped(turn.diagnosis, turn.query.slots)
    if where.unknown and not where.subjects:
        from assistant.dialogue.verdict import lost

        first = where.unknown[0]
        return Reply(turn.lang, lost(w, first.slot, first.value, first.known), suggestions=suggest(turn.lang, "alternatives", "why"),
                     data={"answer": "whynot", "unknown": {"slot": first.slot, "value": first.value}})  # fmt: skip
    every = standings(what.rules, turn.diagnosis, where.subjects)
    return _reply(turn, w, what, sorted(every, key=lambda s: not _is_it(s, what.code)))


def _is_it(s: Standing, code: int | None) -> bool:
    """Whether the rule holds, or is that of the code itself; another one that reads the code besides comes after it."""
    return code is None or s.rule.xid == code or s.stand in (Stand.CONCLUDED, Stand.SYMPTOM)


def _reply(turn: Turn, w: Words, what: Meant, every: Sequence[Standing]) -> Reply:
    first, rest = every[0], every[1:]
    parts: list[Part] = list(_detail(w, first))
    shown = [_line(w, s, what.code) for s in rest[:OTHERS]]
    if len(rest) > OTHERS:
        shown.append(label("more_lines", w.lang).format(n=len(rest) - OTHERS))
    parts += w.section("Related", "相关情况", shown)
    return Reply(
        turn.lang,
        _head(w, first, what.code),
        tuple(parts),
        focus=first.finding.id if first.finding is not None and first.stand in (Stand.CONCLUDED, Stand.SYMPTOM) else "",
        suggestions=_suggestions(w, first),
        data={"answer": "whynot", "said": what.said, "rules": [_data(w, s) for s in every]},
    )


def _suggestions(w: Words, s: Standing) -> tuple[str, ...]:
    leaf = next((p.leaf for p in s.lacking), None)
    spec = w.d.facts.vocabulary.get(getattr(leaf, "fact", "")) if leaf is not None else None
    if (
        spec is not None
        and getattr(leaf, "value", None) is not None
        and isinstance(getattr(leaf, "value", None), bool | str)
    ):
        value = str(getattr(leaf, "value", "")).lower()
        return (
            w.t(f"what if {spec.name} is {value}?", f"如果 {spec.name} 是 {value} 呢？"),
            *suggest(w.lang, "alternatives", "why"),
        )
    return suggest(w.lang, "alternatives", "why", "evidence")


# --- the first one ------------------------------------------------------------------------


def _head(w: Words, s: Standing, code: int | None) -> str:
    title = _title(w, s, code)
    match s.stand:
        case Stand.CONCLUDED:
            grade = w.grade(s.finding) if s.finding is not None else ""
            return w.t(
                f"It is among the findings: {title} ({grade}).", f"它就在结论之中：{w.quoted(title)}（{grade}）。"
            )
        case Stand.SYMPTOM:
            roots = causes_of(s.finding, w.d) if s.finding is not None else ()
            cause = w.title(roots[0]) if roots else w.t("another finding", "另一结论")
            return w.t(
                f"It holds, but as a consequence: {title}; the cause is {cause}.",
                f"成立，但只是后果：{w.quoted(title)}；原因是{w.quoted(cause)}。",
            )
        case Stand.RULED_OUT:
            return w.t(f"Ruled out: {title}; its condition holds, but something speaks against it.",
                       f"已排除：{w.quoted(title)}的条件成立，但有反对的证据。")  # fmt: skip
        case Stand.UNKNOWN:
            return w.t(
                f"It cannot be excluded, because not all that it takes is known: {title}.",
                f"不能排除{w.quoted(title)}：所需信息尚不清楚。",
            )
        case Stand.NOT_MATCHED:
            return w.t(f"It was looked at, and it is not so: {title}.", f"已检查，不成立：{w.quoted(title)}。")
        case Stand.INAPPLICABLE:
            return w.t(f"It does not apply here: {title}.", f"{w.quoted(title)}不适用于此。")
        case Stand.NO_SUBJECT:
            kind = scope_name(s.rule.scope, w.lang)
            return w.t(
                f"It cannot be told, because nothing is known of any {kind} here: {title}.",
                f"{w.quoted(title)}无从判断：这里没有关于{f' {kind} ' if kind.isascii() else kind}的任何信息。",
            )


def _title(w: Words, s: Standing, code: int | None) -> str:
    """What is asked about, with its place; where it stands alike everywhere, without."""
    if s.finding is not None:
        return w.title(s.finding)
    if s.subject is None or len(s.alike) > 1:
        return w.rule_name(s.rule, code)
    return w.rule_title(filled(s.rule, code), [s.subject])


def _detail(w: Words, s: Standing) -> tuple[Part, ...]:
    match s.stand:
        case Stand.CONCLUDED:
            return w.section("It holds because", "成立依据", w.clauses(s.proof, 2)) if s.proof is not None else ()
        case Stand.SYMPTOM:
            assert s.finding is not None
            by = [f"{w.title(f)}{aside(w.grade(f), w.lang)}" for f in causes_of(s.finding, w.d)[:2]]
            seen = w.clauses(s.finding.proof, 2)
            return (*w.section("Explained by", "原因", by), *w.section("It holds because", "成立依据", seen))
        case Stand.RULED_OUT:
            assert s.finding is not None
            return w.section("What speaks against it", "反对的证据", _excluded(w, s.finding))
        case Stand.UNKNOWN | Stand.NOT_MATCHED:
            return _lacking(w, s)
        case Stand.INAPPLICABLE:
            kinds = ", ".join(f"{k}: {v}" for k, v in s.rule.applies.items())
            return (Paragraph(w.t(f"The rule is about {kinds}.", f"该规则适用于 {kinds}。")),)
        case Stand.NO_SUBJECT:
            known = w.d.facts.vocabulary
            asks = dict.fromkeys(_clauses.asked(leaf, known, w.lang) for leaf in leaves(s.rule.when))
            return w.section("It would take", "需要知道", list(asks)[:LEAVES])


def _excluded(w: Words, f: Finding) -> list[str]:
    proofs = [evaluate(c, f.subject, w.d.facts) for c in f.rule.excludes]
    return [line for p in proofs if p.truth is Truth.TRUE for line in w.clauses(p, 2)]


def _lacking(w: Words, s: Standing) -> tuple[Part, ...]:
    differ = [p for p in s.lacking if p.truth is not Truth.UNKNOWN]
    unknown = [p for p in s.lacking if p.truth is Truth.UNKNOWN]
    parts = w.section("What speaks against it", "不符之处", _several(w, differ))
    parts += w.section("Not known", "尚不清楚", _several(w, unknown))
    return (*parts, *w.section("What speaks for it", "支持的迹象", _several(w, _true(s))[:2]))


def _true(s: Standing) -> list[LeafProof]:
    from knowledge.observation import Status
    from rules.proof import leaf_proofs

    if s.proof is None:
        return []
    return [
        p for p in leaf_proofs(s.proof) if p.truth is Truth.TRUE and any(o.status is Status.OK for o in p.observations)
    ]


def _several(w: Words, proofs: Sequence[LeafProof]) -> list[str]:
    said = list(dict.fromkeys(w.clause(p) for p in proofs))
    rest = len(said) - LEAVES
    return said if rest <= 0 else [*said[:LEAVES], label("more_lines", w.lang).format(n=rest)]


# --- the others ---------------------------------------------------------------------------


def _line(w: Words, s: Standing, code: int | None) -> str:
    return f"{_title(w, s, code)}{colon(w.lang)}{reason(w, s)}"


def reason(w: Words, s: Standing) -> str:
    """Where a rule stands, in a clause: what is not so, what is not known."""
    match s.stand:
        case Stand.CONCLUDED:
            return w.t("among the findings", "在结论之中")
        case Stand.SYMPTOM:
            return w.t("holds, as a consequence", "成立，但为后果")
        case Stand.RULED_OUT:
            return label("ruled_out", w.lang)
        case Stand.UNKNOWN:
            return w.gaps(m for p in s.lacking for m in p.missing) or w.t("not known", "未知")
        case Stand.NOT_MATCHED:
            first = next((p for p in s.lacking if p.truth is Truth.FALSE), s.lacking[0])
            return w.t("not so; ", "不成立；") + w.clause(first, places=False)
        case Stand.INAPPLICABLE:
            return w.t("does not apply here", "不适用于此")
        case Stand.NO_SUBJECT:
            kind = scope_name(s.rule.scope, w.lang)
            return w.t(f"no {kind} is known here", f"没有关于{kind}的信息")


def _no_rule(turn: Turn, w: Words, what: Meant) -> Reply:
    text = clean(turn.query.text)[:80]
    if what.said:
        head = w.t(f"No rule is about {what.said}, so nothing was concluded for or against it.",
                   f"没有关于 {what.said} 的规则，因此既未得出也未排除该结论。")  # fmt: skip
        parts = _would_take(w, turn)
    else:
        head = w.t(f"Nothing that a rule is about was named: {text}", f"没有指出任何规则所涉及的问题：{text}")
        parts = ()
    root = next(iter(w.d.roots), None)
    again = w.t("why not xid 79?", "为什么不是 xid 79？")
    return Reply(turn.lang, head, parts, settled=False,
                 suggestions=suggest(turn.lang, *(("why",) if root else ()), "alternatives", again),
                 data={"answer": "whynot", "said": what.said, "rules": []})  # fmt: skip


def _would_take(w: Words, turn: Turn) -> tuple[Part, ...]:
    """What it would take to know: the log line of a code, or a rule of one's own."""
    codes = [f"XID {c}" for c in turn.query.slots.xid] + [f"SXID {c}" for c in turn.query.slots.sxid]
    if codes:
        return (Paragraph(w.t(f"It would take a line of {listed(codes, w.lang)} in the kernel log; it would be shown, and its catalogue entry with it.",
                              f"需要内核日志中有 {listed(codes, w.lang)} 的记录行；若有则会显示，并附上目录条目。")),)  # fmt: skip
    return (Paragraph(w.t("It would take a rule about it: packs of rules of your own are laid over the shipped ones (--rules).",
                          "需要有相应的规则：可用 --rules 在内置规则之上叠加自己的规则包。")),)  # fmt: skip


def _data(w: Words, s: Standing) -> dict[str, object]:
    from assistant.render.json_ import subject

    return {
        "rule": s.rule.id, "title": w.rule_name(s.rule), "stand": str(s.stand),
        "subject": subject(s.subject) if s.subject is not None else None,
        "finding": finding_data(s.finding, w.lang) if s.finding is not None else None,
        "lacking": [{"clause": describe.leaf(p.leaf, "en"), "truth": str(p.truth), "seen": p.seen or None,
                     "missing": [str(m) for m in p.missing]} for p in s.lacking],
    }  # fmt: skip
