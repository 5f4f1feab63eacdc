"""A finished reply in other words: the payload, and what may be shown of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.narrate import fence, prompt
from assistant.narrate.fence import Narration, Withheld
from assistant.narrate.material import Material, material
from assistant.narrate.redact import Pseudonyms, Redacted
from knowledge.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assistant.reply import Reply


@dataclass(frozen=True, slots=True)
class Prepared:
    """A payload, and what is needed to judge the answer to it."""

    redacted: Redacted
    material: Material

    @property
    def messages(self) -> tuple[Mapping[str, str], ...]:
        """All that is sent."""
        return self.redacted.messages

    @property
    def table(self) -> Mapping[str, str]:
        """What each placeholder and each pseudonym stands for; stays here (``--show-redaction``)."""
        return {**{f"{{{n}}}": s.value for n, s in self.material.slots.items()}, **self.redacted.table}


def prepare(
    reply: Reply, audience: str, lang: str = "", *, log: bool = False, pseudonyms: Pseudonyms | None = None
) -> Prepared | None:
    """The payload of `reply`; None when it rests on no diagnosis, or on one that found nothing to tell of.

    `log`: with some raw lines, as data; `pseudonyms`: those of the conversation.
    """
    found = material(reply, log)
    if found is None or not found.items or (lang and lang != found.lang):
        return None
    messages = prompt.reword(found.plain(), audience, found.lang)
    return Prepared((pseudonyms or Pseudonyms(_names(reply))).redact(messages), found)


def finish(prepared: Prepared, raw: str) -> Narration | Withheld:
    """What may be shown of the answer `raw`. Never raises."""
    return fence.judge(prepared.material, raw)


def _names(reply: Reply) -> dict[str, list[str]]:
    """Names of machines and workloads that the diagnosis knows."""
    from knowledge.observation import Scope

    d = reply.shown or reply.diagnosis
    if d is None:
        return {}

    def ids(*scopes: Scope) -> list[str]:
        return sorted(
            {s.id for scope in scopes for s in d.facts.subjects(scope) if len(s.id) > 2 and not s.id.isdigit()}
        )

    return {"node": ids(Scope.NODE, Scope.SWITCH), "work": ids(Scope.POD, Scope.CONTAINER, Scope.JOB)}
