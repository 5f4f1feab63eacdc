"""What sentences are matched against, worked out of the word lists once: kept as JSON beside the data, read at start.

Only indexes: which phrases to look at when a word is said. A phrase itself is read when a sentence holds its first word.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TypedDict

from knowledge import compiled

SHARD = "understanding"
ARTLESS = frozenset(["the", "and", "for", "was", "our", "has", "had", "its", "but", "not", "you", "are", "can", "did"])
_DATA = ("lexicon", "symptoms", "hypotheses", "glossary", "facts", "advice", "nccl", "pytorch", "cuda")
_CODE = ("tables.py", "phrases.py", "symptoms.py", "grammar.py")


class Tables(TypedDict):
    """As it stands in the JSON. Words of a run, and words of a list, are parted by blanks."""

    firsts: Mapping[str, list[int]]  # a word -> the phrases of the lexicon that can begin with it
    lexical: str  # words of the field and of its questions
    known: str  # ... and those of everyday English: right as they are
    signs: list[tuple[str, str, bool]]  # phrases of symptoms: the symptom, its words, whether they are Han characters
    sign_words: Mapping[str, list[int]]  # a word -> the phrases of symptoms that are looked at when it is said
    points: list[tuple[str, str, bool]]  # the same of hypotheses
    point_words: Mapping[str, list[int]]
    terms: Mapping[str, list[tuple[str, str]]]  # first word -> names of the glossary and their ids, the longest first
    facts: Mapping[
        str, list[tuple[str, str]]
    ]  # first word -> what facts are called by their own words, the longest first
    messages: list[
        str
    ]  # in small letters: what only an error's message says, of every message that the catalogues know


@cache
def tables() -> Tables:
    """All indexes. FaultsError when the data has faults, ValueError when a phrase of it cannot be read."""
    shipped = compiled.SHIPPED / f"{SHARD}.json"
    out: Tables = json.loads(shipped.read_bytes()) if shipped.is_file() else compiled.cached(SHARD, _files(), build)
    return out


def build() -> Tables:
    """The indexes as plain data (the wheel's ``_compiled/understanding.json``)."""
    lexical, known = _words()
    signs, sign_words = _phrases_of("symptoms")
    points, point_words = _phrases_of("hypotheses")
    return Tables(
        firsts=_firsts(), lexical=" ".join(lexical), known=" ".join(known), signs=signs, sign_words=sign_words,
        points=points, point_words=point_words, terms=_terms(), facts=_facts(), messages=_messages(),
    )  # fmt: skip


def _files() -> list[Path]:
    here, code = Path(__file__).parent, compiled.ROOT
    tokens = here.parent / "find" / "tokens.py"
    data = [path for name in _DATA for path in (*compiled.shard_files(name), code / "schema" / f"{name}.py")]
    return [*data, *(here / name for name in _CODE), tokens, code / "lexicon.py"]


def _firsts() -> dict[str, list[int]]:
    from assistant.intent import phrases
    from knowledge.lexicon import lexicon

    data = lexicon()
    classes: dict[str, phrases.Element] = {}
    for name, words in data.classes.items():
        classes[name] = phrases.of_class(words, classes)
    out: dict[str, list[int]] = {}
    for number, phrase in enumerate(data.phrases):
        row = phrases.parse(phrase.text.removeprefix("^ "), classes)
        for word in sorted(phrases.firsts(row)):
            out.setdefault(word, []).append(number)
    return out


def _words() -> tuple[list[str], list[str]]:
    from knowledge.lexicon import lexicon

    data = lexicon()
    texts = [p.text for p in data.phrases]
    texts += [w for words in data.classes.values() for w in words]
    texts += [
        w for role in ("field", "weak", "program", "elsewhere", "never", "filler") for w in data.roles.get(role, ())
    ]
    texts += [*data.facts, *data.values]
    lexical = set(re.findall("[a-z]{2,}", " ".join(texts)))
    known = set(lexical)
    stated = (s.text for s in data.statements)
    plain = (word for words in data.roles.values() for word in words)
    for some in (plain, data.spellings, ARTLESS, stated):
        known.update(part for text in some for part in re.findall("[a-z]+", text))
    return sorted(lexical), sorted(known)


def _phrases_of(shard: str) -> tuple[list[tuple[str, str, bool]], dict[str, list[int]]]:
    """Phrases of symptoms or of hypotheses; and each under the word of it that fewest others hold."""
    from assistant.intent.symptoms import ANY, content

    out: list[tuple[str, str, bool]] = []
    for entry in compiled.shard(shard):
        for lang, said in (entry.get("said") or {}).items():
            every = filter(None, (content(text, lang, merged=shard == "symptoms") for text in said))
            out += [(entry["id"], " ".join(words), not "".join(words).isascii()) for words in every]
    split = [words.split(" ") for _, words, _ in out]
    held = Counter(word for words in split for word in set(words))
    index: dict[str, list[int]] = {}
    for number, words in enumerate(split):
        index.setdefault(min((w for w in words if w != ANY), key=lambda w: (held[w], w)), []).append(number)
    return out, index


def _terms() -> dict[str, list[tuple[str, str]]]:
    from assistant.intent.phrases import split

    out: dict[str, list[tuple[str, str]]] = {}
    for data in compiled.shard("glossary"):
        names = (data["id"].replace("-", " "), data["term"]["en"], data["term"]["zh"], *data.get("also", ()))
        for name in names:
            run = split(name.casefold()) if len(name) > 2 or name.isupper() else []
            if run:
                out.setdefault(run[0], []).append((" ".join(run), data["id"]))
    return _longest_first(out)


def _longest_first(runs: dict[str, list[tuple[str, str]]]) -> dict[str, list[tuple[str, str]]]:
    for some in runs.values():
        some.sort(key=lambda pair: -pair[0].count(" "))
    return runs


def _facts() -> dict[str, list[tuple[str, str]]]:
    """What facts are called by their own words, "gpu ecc mode" and what they mean in Chinese, where no other is called so."""
    from assistant.intent.grammar import words_of

    called: dict[str, set[str]] = {}
    for data in compiled.shard("facts"):
        if data["kind"] == "event" or data.get("replaced_by"):
            continue
        called.setdefault(" ".join(words_of(re.sub(r"[._]", " ", data["name"]))), set()).add(data["name"])
        means = re.split(r"[，。；：（(、,]", data["meaning"]["zh"])[0].replace("是否", "").strip()
        if 4 <= len(means) <= 32 and re.search("[哪何么多查是为不]", means) is None:
            called.setdefault(" ".join(words_of(means.casefold())), set()).add(data["name"])
    out: dict[str, list[tuple[str, str]]] = {}
    for run, names in called.items():
        if len(names) == 1 and " " in run:
            out.setdefault(run.split(" ")[0], []).append((run, next(iter(names))))
    return _longest_first(out)


# A run of plain characters of a pattern; a dot and brackets are written with a backslash.
_PLAIN = re.compile(r"(?:[A-Za-z0-9 _,:'/=-]|\\[.()\[\]])+")
_GROUP = re.compile(r"\(\?:|\(\?i:")
# Shorter ones are anybody's ("out of memory"); those of CUDA are meant alone as `CudaStatus.patterns` has it.
_TELLING = 20  # characters
_OF_CUDA = 25
# ERR_NVGPUCTRPERM, ibv_reg_mr
_CODE_NAME = re.compile(r"(?=.{12,})[A-Z]+(?:_[A-Z]+)+|NVMLError_[A-Za-z]+|ibv_[a-z]+(?:_[a-z]+)*")
# said of a disk, a socket or a memory in everyday words, too: a symptom
_EVERYDAY = ("no space left on device", "cannot allocate memory", "connection timed out", "connection reset by peer")


def _messages() -> list[str]:
    from knowledge.catalog.lookup import Family, signatures

    patterns = [_GROUP.sub("(", s.pattern) for family in (Family.NCCL, Family.PYTORCH) for s in signatures(family)]
    runs = [re.sub(r"\\(.)", r"\1", run).strip() for pattern in patterns for run in _PLAIN.findall(pattern)]
    said = [m for status in compiled.shard("cuda") for m in status.get("messages", ()) if len(m) >= _OF_CUDA]
    plain = {
        run.casefold() for run in (*runs, *said) if (len(run) >= _TELLING and " " in run) or _CODE_NAME.fullmatch(run)
    }
    return sorted(run for run in plain if not run.endswith(_EVERYDAY))
