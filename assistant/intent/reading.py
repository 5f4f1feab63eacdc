"""A sentence taken apart: what is understood from, and what examples are learned from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from assistant.intent import blocks, grammar, han, intents, normal, paste, symptoms, topics, typos
from assistant.intent.corrected import corrected
from assistant.intent.pointed import pointed
from assistant.intent.slots import Named, pages_in, slots


class Reading(NamedTuple):
    """Everything that is known of a sentence before it is decided what it wants."""

    normal: normal.Normal
    pasted: paste.Paste
    said: str  # what is said beside log lines, slips mended and without what is taken back
    fixed: tuple[tuple[str, str], ...]  # typos: as written, as read
    named: Named  # slots that are said
    found: Named  # ... and bare codes
    raw: bool  # log lines or a traceback stood in it
    words: tuple[str, ...]
    signs: tuple[str, ...]  # symptoms
    known: tuple[str, ...]  # pages named exactly
    sentence: intents.Sentence


def read(text: str, *, pending: bool = False, hosts: Sequence[str] = ()) -> Reading:
    """Take a message apart. Never raises on text."""
    norm = normal.normal(text)
    pasted = paste.take(norm.raw, norm.text)
    said = pasted.said if len(pasted.said) <= normal.MAX_SAID else ends(pasted.said)
    said, fixed = typos.repair(normal.normal(said).text if pasted.pasted else said, hosts)
    if normal.has_han(said):
        said, misheard = han.repair(said)
        fixed += misheard
    said = blocks.spread(pointed(corrected(said)))
    named = slots(said, hosts)
    raw = bool(pasted.observations or pasted.matches)
    found = topics.bare_codes(said, named) if not (raw or pending) else named
    words = tuple(grammar.words_of(found.marked))
    signs = symptoms.of_gpus(symptoms.find(words, found.marked), found.marked)
    signs = symptoms.of_collectives(signs, found.marked)
    signs = symptoms.served(signs, words, named.slots.process)
    written = dict.fromkeys(f"{kind} {name}" for kind, name, _, _ in pages_in(said))
    known = (*written, *topics.named(words, said, pasted.matches))
    return Reading(
        norm, pasted, said, fixed, named, found, raw, words, signs, known, _sentence(words, raw, signs, known)
    )


def _sentence(words: Sequence[str], raw: bool, signs: Sequence[str], known: Sequence[str]) -> intents.Sentence:
    terms = [name for name in known if name.startswith("term ")]
    begin, finish = grammar.core(words)
    concept = bool(terms) and topics.is_term(words[begin:finish])
    concept = concept or (len(known) > len(terms) and finish - begin == 1)  # a symbol alone
    return intents.Sentence(tuple(words), raw, len(signs), len(known) - len(terms), len(terms), concept)


def ends(text: str) -> str:
    """Head and tail of a long text."""
    half = normal.MAX_SAID // 2
    return f"{text[:half]} ... {text[-half:]}"
