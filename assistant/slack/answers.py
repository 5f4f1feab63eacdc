"""An answer as this person's message: with the buttons that they may press, and what they are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assistant.intent.query import Intent
from assistant.session.phrases import noted
from assistant.slack import blocks, cards, gate, rich
from assistant.slack.ledger import Ticket
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.session.state import Pending
    from assistant.slack.blocks import Offer
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Place
    from assistant.slack.page import Rendered
    from assistant.slack.turns import Outcome

ANSWER = "answer"  # the button that answers a question of ours
_NOT_OFFERED = Text("Not offered to you here: {why}", "此处不向您提供：{why}")
_SECOND = Text("needs a second person", "需要第二人同意")
_FOLLOW = {
    blocks.EVIDENCE: Text("how do you know?", "你怎么知道？"),
    blocks.WHAT_IF: Text("what if?", "假如？"),
}  # fmt: skip


def message(bot: Bot, asker: Asker, place: Place, asked: str, outcome: Outcome) -> Rendered:
    """The message. Called in a worker thread: its buttons are written to the ledger."""
    answer, lang = outcome.answer, outcome.answer.reply.lang
    reply, pending = answer.reply, answer.pending
    offer: Offer | None = None
    waits: dict[str, Any] = {"asked": asked}
    if pending is not None and pending.probes:
        node = answer.frame.origin.host or outcome.here
        ruled = gate.ruled(bot.policy(), asker, node, pending.probes, outcome.options)
        open_ = [*ruled.allowed, *ruled.second]
        waits |= {"probes": list(pending.probes), "node": node, "options": dict(outcome.options)}
        if open_:
            offer = offered(pending, second=bool(ruled.second))
        else:
            why = next(iter(ruled.denied.values())).why
            reply = noted(reply, _NOT_OFFERED.in_(lang).format(why=why.in_(lang)))

    def ticket(kind: str) -> str:
        data = _data(kind, outcome, lang, waits)
        return bot.ledger.issue(Ticket(kind, place, asker.person.id, data))

    if offer is not None and answer.query is not None and answer.query.intent is Intent.PROBE and pending is not None:
        return cards.consent(_asked(pending), _terms(pending, ruled.second != {}), lang, ticket, why=pending.reason)
    question = "" if pending is not None and pending.probes else answer.question
    from assistant.sources import tells

    said = blocks.render(reply, ticket, tells=tells, question=question, offer=offer)
    return replace(said, blocks=[*said.blocks, *_choices(bot, asker, place, asked, outcome)])


def offered(pending: Pending, *, second: bool) -> Offer:
    """The probes that wait: what they are, and what they cost."""
    from probes.live import Cost, probes

    specs = [s for s in probes() if s.name in pending.probes]
    what = Text(", ".join(s.title.en for s in specs), "、".join(s.title.in_("zh") for s in specs))
    longest = max((s.deadline for s in specs), default=0.0)
    heavy = any(s.cost >= Cost.HEAVY for s in specs)
    cost = Text(f"{longest / 60:.0f} min at most", f"最多 {longest / 60:.0f} 分钟") if heavy and longest >= 90 \
        else Text(f"{longest:.0f} s at most", f"最多 {longest:.0f} 秒")  # fmt: skip
    if second:
        cost = Text(f"{cost.en}, {_SECOND.en}", f"{cost.in_('zh')}，{_SECOND.in_('zh')}")
    return blocks.Offer(what, cost)


def terms(pending: Pending, lang: str) -> str:
    """What a yes agrees to, a line each."""
    from assistant.session.shown import terms as rows

    found = rows(pending, lang)
    colon = "：" if lang == "zh" else ": "
    return "\n".join(f"{name}{colon}{said}" if name else said for name, said in found.rows) if found else ""


def _terms(pending: Pending, second: bool) -> Text:
    more = Text(f"\n{_SECOND.en}", f"\n{_SECOND.in_('zh')}") if second else Text("", "")
    return Text(terms(pending, "en") + more.en, terms(pending, "zh") + more.in_("zh"))


def _asked(pending: Pending) -> Text:
    from assistant.session.shown import terms as rows

    en, zh = rows(pending, "en"), rows(pending, "zh")
    return Text(en.question if en else pending.text.en, zh.question if zh else pending.text.in_("zh"))


def _data(kind: str, outcome: Outcome, lang: str, waits: Mapping[str, Any]) -> dict[str, Any]:
    """What a button carries, in the ledger."""
    match kind:
        case blocks.WHY:
            return {"ask": _why(outcome, lang)}
        case blocks.EVIDENCE | blocks.WHAT_IF:
            return {"ask": _FOLLOW[kind].in_(lang)}
        case blocks.RUN_NEXT | cards.AGREE | cards.NO:
            return dict(waits)
    return {}


def _why(outcome: Outcome, lang: str) -> str:
    from assistant.session.shown import shown

    subjects: Sequence[Any] = shown(outcome.answer).subjects
    named = next((s.question for s in subjects if s.question), "")
    return named or Text("why?", "为什么？").in_(lang)


def _choices(bot: Bot, asker: Asker, place: Place, asked: str, outcome: Outcome) -> list[dict[str, Any]]:
    """The answers that can be given to a question of ours without typing."""
    from assistant.session.shown import choices

    pending, lang = outcome.answer.pending, outcome.answer.reply.lang
    if pending is None or pending.probes:
        return []
    row = []
    for n, choice in enumerate(choices(pending, lang)):
        data = {"asked": asked, "fact": pending.fact, "path": pending.path, "choice": n}
        number = bot.ledger.issue(Ticket(ANSWER, place, asker.person.id, data))
        row.append({**rich.button(ANSWER, choice.text, number), "action_id": f"gpudiag.{ANSWER}.{n}"})
    return rich.actions(row)
