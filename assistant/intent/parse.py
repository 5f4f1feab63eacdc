"""From a sentence to a `Query`, without a language model.

In this order: one spelling, pasted log lines through the parsers, typing errors, slots, phrases of the lexicon,
symptoms, and last the topics that knowledge has a page about.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.intent import assumed, intents, normal, paste, symptoms, told, topics, typos
from assistant.intent.echo import echo
from assistant.intent.query import Intent, Query, Slots
from assistant.intent.slots import slots
from knowledge.lazy import lazy
from knowledge.observation import Observation

_MARKS = lazy(r"<([a-z]+)>")
_ASKS_FACTS = (Intent.PROBE, Intent.WHATIF, Intent.EXPLAIN, Intent.FIX, Intent.DIAGNOSE)


def understand(text: str, *, lang: str = "en", pending: bool = False, hosts: Sequence[str] = ()) -> Query:
    """What `text` asks. Never raises on text; the same text gives the same query.

    `lang` is answered in when the sentence has no words of its own language ("79"); `pending`: the last answer
    ended in a question; `hosts` are the names of the inventory.
    """
    norm = normal.normal(text)
    pasted = paste.take(norm.raw, norm.text)
    said = pasted.said if len(pasted.said) <= normal.MAX_SAID else _ends(pasted.said)
    said, fixed = typos.repair(normal.normal(said).text if pasted.pasted else said)
    named = slots(said, hosts)
    raw = bool(pasted.observations or pasted.matches)
    found = topics.bare_codes(said, named) if not (raw or pending) else named
    words = intents.words_of(found.marked)
    signs = symptoms.find(words)
    known = topics.named(words, said, pasted.matches)
    intent = intents.decide(_sentence(words, raw, signs, known))
    filled = _with_paste(found.slots, pasted.observations, raw, pasted.pasted)
    facts = tuple(dict.fromkeys(name for _, _, name in intents.facts_of(words))) if intent in _ASKS_FACTS else ()
    best, unsure = topics.topics(intent, filled, _MARKS.sub(r"\1", found.marked), known, signs)
    query = Query(
        text=norm.raw if len(norm.raw) <= normal.MAX_SAID else _ends(norm.raw),
        lang=normal.language(_MARKS.sub(" ", found.marked), lang),
        intent=intent, slots=filled, topics=best, symptoms=signs if intent is not Intent.UNKNOWN else (), facts=facts,
        assumed=assumed.assumed(said, words, found.slots) if intent is Intent.WHATIF else (),
        observations=(*pasted.observations, *told.events(intent, said, found.slots)), fixed=fixed, unsure=unsure,
    )  # fmt: skip
    return echo(query)


def _sentence(words: Sequence[str], raw: bool, signs: Sequence[str], known: Sequence[str]) -> intents.Sentence:
    terms = [name for name in known if name.startswith("term ")]
    begin, finish = intents.core(words)
    concept = bool(terms) and topics.is_term(words[begin:finish])
    concept = concept or (len(known) > len(terms) and finish - begin == 1)  # a symbol alone
    return intents.Sentence(tuple(words), raw, len(signs), len(known) - len(terms), len(terms), concept)


def _ends(text: str) -> str:
    half = normal.MAX_SAID // 2
    return f"{text[:half]} ... {text[-half:]}"


def _with_paste(said: Slots, observations: Sequence[Observation], raw: bool, text: str) -> Slots:
    """The slots of what is said, and what the log lines name."""
    return told.with_lines(said, observations, text) if raw else said
