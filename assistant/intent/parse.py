"""From a sentence to a `Query`, without a language model.

In this order: one spelling, pasted log lines through the parsers, typing errors, slots, phrases of the lexicon,
symptoms, and last the topics that knowledge has a page about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assistant.intent import assumed, normal, told, topics
from assistant.intent.echo import echo
from assistant.intent.grammar import facts_of
from assistant.intent.judge import decide
from assistant.intent.query import Intent, Query, Slots
from assistant.intent.reading import ends, read
from assistant.intent.stated import Stated, stated
from knowledge.lazy import lazy
from knowledge.observation import Observation

_MARKS = lazy(r"<([a-z]+)>")
# what happens if I do nothing | and if we ignore it | 如果不管它会怎样
_LEFT_ALONE = lazy(
    r"\bif (?:i|we|you|one|they) (?:just )?(?:do nothing|don'?t do anything|ignore|leave (?:it|this|that|things)|keep (?:going|running|using)|carry on|wait)\b"
    r"|(?:如果|要是|假如)?(?:不管|不处理|不理|放着|置之不理)",
    re.IGNORECASE,
)
_ASKS_FACTS = (Intent.PROBE, Intent.WHATIF, Intent.EXPLAIN, Intent.FIX, Intent.DIAGNOSE, Intent.HISTORY)


def understand(text: str, *, lang: str = "en", pending: bool = False, hosts: Sequence[str] = ()) -> Query:
    """What `text` asks. Never raises on text; the same text gives the same query.

    `lang` is answered in when the sentence has no words of its own language ("79"); `pending`: the last answer
    ended in a question; `hosts` are the names of the inventory.
    """
    r = read(text, pending=pending, hosts=hosts)
    norm, pasted, found = r.normal, r.pasted, r.found
    outright = topics.outright(norm.raw)
    intent = Intent.EXPLAIN if outright else decide(r)
    filled = _with_paste(found.slots, pasted.observations, r.raw, pasted.pasted)
    said = _MARKS.sub(r"\1", found.marked)
    if (
        intent is Intent.FIX
        and not (filled.xid or filled.sxid or r.known or pasted.observations)
        and topics.only_wishes(said)
    ):
        intent = Intent.NEXT
    supposed = assumed.assumed(r.said, r.words, found.slots) if intent is Intent.WHATIF else ()
    signs = r.signs
    if intent in (Intent.WHATIF, Intent.WHY, Intent.UNKNOWN) and not supposed and _LEFT_ALONE.search(said):
        intent, signs = Intent.DIAGNOSE, ()  # what comes of it stands in the verdict
    filled = assumed.elsewhere(filled, supposed)
    written = [name.partition(" ")[2] for name in r.known if name.startswith("fact ")]
    facts = (
        tuple(dict.fromkeys((*written, *(name for _, _, name in facts_of(r.words))))) if intent in _ASKS_FACTS else ()
    )
    known = (*outright, *r.known)
    best, unsure = topics.topics(intent, filled, said, known, signs, pasted.observations)
    states = Stated()
    if intent in told.TELLS and not r.raw:
        states = stated(r.said, found, diagnosed=intent is Intent.DIAGNOSE)
    query = Query(
        text=norm.raw if len(norm.raw) <= normal.MAX_SAID else ends(norm.raw),
        lang=normal.language(_MARKS.sub(" ", found.marked), lang),
        intent=intent, slots=filled, topics=best, symptoms=signs if intent is not Intent.UNKNOWN else (), facts=facts,
        assumed=supposed,
        observations=(*pasted.observations, *told.events(intent, r.said, found.slots), *states.observations),
        asks=states.asks, unread=states.unread, fixed=r.fixed, unsure=unsure,
    )  # fmt: skip
    return echo(query)


def _with_paste(said: Slots, observations: Sequence[Observation], raw: bool, text: str) -> Slots:
    """The slots of what is said, and what the log lines name."""
    return told.with_lines(said, observations, text) if raw else said
