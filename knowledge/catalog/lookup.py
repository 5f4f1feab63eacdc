"""From a line that somebody pasted to what it means: signatures of NCCL, PyTorch and CUDA, and the glossary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from knowledge.catalog import cuda
from knowledge.catalog.cuda import Disagreement
from knowledge.catalog.pytorch import read_oom
from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass
from knowledge.text import clean, excerpt

MAX_TEXT = 1 << 20  # characters; of longer texts the head and the tail are read
_PLACES = 64  # matches of one pattern that are looked at
_LONGEST = 8000  # characters of a message that spans lines
_MEMORY = 256 << 20  # bytes that the automaton of all patterns may use


class Family(StrEnum):
    """Which catalogue a signature stands in."""

    NCCL = "nccl"
    PYTORCH = "pytorch"
    CUDA = "cuda"


@dataclass(frozen=True, slots=True)
class Signature:
    """A text that a library prints, and what it means."""

    family: Family
    id: str
    pattern: str  # RE2, tried without regard to case; a dot never crosses a line
    title: Text
    cause: Text
    check: Text  # what to look at next
    bucket: str  # a word of data/buckets.yaml
    kind: str = "signature"  # or result (ncclResult_t), completion (ibv_wc_status), status (CUDA)
    number: int | None = None  # of a result, completion or status
    symbol: str = ""  # ncclRemoteError, IBV_WC_RETRY_EXC_ERR, cudaErrorLaunchFailure
    when: str = ""  # check that tells entries of one pattern apart: oom:<OomKind>
    environment: tuple[str, ...] = ()  # variables that concern it
    broader: bool = False  # gives way to a precise entry that matches the same text
    overlaps: tuple[str, ...] = ()  # precise entries that match its sample too
    sample: str = ""
    near_miss: str = ""
    sources: tuple[str, ...] = ()
    disagrees: tuple[Disagreement, ...] = ()

    @classmethod
    def from_plain(cls, family: Family, data: Mapping[str, Any]) -> Signature:
        """From checked YAML."""
        return cls(
            family=family, id=data["id"], pattern=data["pattern"], title=Text.of(data["title"]),
            cause=Text.of(data["cause"]), check=Text.of(data["check"]), bucket=data["bucket"], kind=data["kind"],
            number=data.get("number"), symbol=data.get("symbol", ""), when=data.get("when", ""),
            environment=tuple(data.get("environment", ())), broader=data.get("broader", False),
            overlaps=tuple(data.get("overlaps", ())), sample=data["sample"], near_miss=data["near_miss"],
            sources=tuple(data["sources"]), disagrees=Disagreement.all_of(data),
        )  # fmt: skip

    @classmethod
    def of_status(cls, status: cuda.CudaStatus) -> Signature:
        """A CUDA status code as a signature: always broader than what a framework says about it."""
        return cls(
            family=Family.CUDA, id=status.id, pattern="|".join(status.patterns()), title=status.title,
            cause=status.cause, check=status.check, bucket=status.bucket, kind="status", number=status.code,
            symbol=status.name, broader=True, sources=status.sources, disagrees=status.disagrees,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Match:
    """A signature found in a text."""

    signature: Signature
    line: int  # 1-based, in the text that was read
    text: str  # the line, cleaned


@cache
def signatures(family: Family | None = None) -> tuple[Signature, ...]:
    """All signatures, or those of one family, in catalogue order."""
    from knowledge.compiled import shard

    if family is None:
        return tuple(s for f in Family for s in signatures(f))
    if family is Family.CUDA:
        return tuple(Signature.of_status(status) for status in cuda.all_statuses())
    return tuple(Signature.from_plain(family, data) for data in shard(family.value))


def signature(identifier: str) -> Signature | None:
    """The signature called `identifier`."""
    return next((s for s in signatures() if s.id == identifier), None)


class _Scanner:
    """All patterns in one automaton; each alone again where a place is wanted."""

    def __init__(self, entries: Iterable[Signature]) -> None:
        import re2

        self.entries = tuple(entries)
        self.options = re2.Options()
        self.options.case_sensitive = False
        self.options.max_mem = _MEMORY
        self.options.log_errors = False
        self.all = re2.Set.SearchSet(self.options)
        for entry in self.entries:
            self.all.Add(entry.pattern)
        self.all.Compile()
        self.one = cache(lambda i: re2.compile(self.entries[i].pattern, self.options))

    def hits(self, text: str) -> list[_Hit]:
        """Every entry that matches, with the places of its first matches."""
        out = []
        for index in self.all.Match(text) or ():
            found = islice(self.one(index).finditer(text), _PLACES)
            if places := tuple(_place(one) for one in found):
                out.append(_Hit(self.entries[index], places))
        return out


class _Hit(NamedTuple):
    """An entry that matches, and where: (start, end) of its first matches."""

    entry: Signature
    places: tuple[tuple[int, int], ...]


def _place(found: re.Match[str]) -> tuple[int, int]:
    """What was found: the message within the line when the pattern marks it, else the whole match."""
    groups = (found.span(group) for group in range(1, len(found.groups()) + 1))
    return next((span for span in groups if span[0] >= 0), found.span())


@cache
def _scanner() -> _Scanner:
    return _Scanner(signatures())


def find_signature(text: str) -> list[Match]:
    """What `text` (a line, a traceback, a log of any size) says, the most telling first.

    Precise signatures come before CUDA's codes, and those before broader signatures; among equals the
    earlier line comes first. Never raises on text; an empty list means that nothing is known.
    """
    ready = _prepare(text)
    hits = [
        (hit.entry, place) for hit in _scanner().hits(ready) for place in hit.places if _holds(hit.entry, ready, place)
    ]
    firsts: dict[str, tuple[Signature, int]] = {}
    for entry, (start, _) in _longest_codes(hits):
        firsts.setdefault(entry.id, (entry, start))
    matches = [Match(entry, ready.count("\n", 0, start) + 1, _line(ready, start)) for entry, start in firsts.values()]
    return sorted(matches, key=lambda m: (_level(m.signature), m.line, m.signature.id))


def nearest(text: str, limit: int = 5) -> list[Signature]:
    """Signatures whose name, title or sample share most words with `text`: for a phrase that no pattern matches."""
    wanted = _words(text)
    scored = [(len(wanted & _bag(s)), s) for s in signatures()] if wanted else []
    best = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], _level(pair[1]), pair[1].id))
    return [s for _, s in best[:limit]]


def _prepare(text: str) -> str:
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n{text[-MAX_TEXT // 2 :]}"
    # Lone surrogates (names from a broken file system) have no UTF-8 form.
    return clean(text.replace("\r\n", "\n").replace("\r", "\n")).encode("utf-8", "replace").decode("utf-8")


def _holds(entry: Signature, text: str, place: tuple[int, int]) -> bool:
    if not entry.when.startswith("oom:"):
        return True
    oom = read_oom(text[place[0] : place[0] + _LONGEST])
    return oom is not None and entry.when == f"oom:{oom.kind}"


_Found: TypeAlias = tuple[Signature, tuple[int, int]]


def _longest_codes(hits: list[_Found]) -> list[_Found]:
    """Without CUDA messages that are only a part of another's ("operation not permitted")."""
    spans = {place for entry, place in hits if entry.family is Family.CUDA}

    def inner(start: int, end: int) -> bool:
        return any(a <= start and end <= b and b - a > end - start for a, b in spans)

    return [(entry, place) for entry, place in hits if entry.family is not Family.CUDA or not inner(*place)]


def _level(entry: Signature) -> int:
    if entry.family is Family.CUDA:
        return 1
    return 2 if entry.broader else 0


def _line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return excerpt(text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)])


def _words(text: str) -> frozenset[str]:
    return frozenset(w for w in re.findall(r"[a-z0-9_]{3,40}", text[:MAX_TEXT].lower()))


@cache
def _bag(entry: Signature) -> frozenset[str]:
    return _words(f"{entry.id.replace('-', ' ')} {entry.title.en} {entry.symbol} {entry.sample}")


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the field, explained."""

    id: str
    term: Text
    text: Text
    also: tuple[str, ...] = ()  # other spellings
    see_also: tuple[str, ...] = ()  # ids
    sources: tuple[str, ...] = ()
    disagrees: tuple[Disagreement, ...] = ()
    needed: Text = NO_TEXT  # who needs it; empty where nobody asks


@cache
def glossary() -> Mapping[str, Term]:
    """All terms by id."""
    from knowledge.compiled import shard

    return {
        d["id"]: Term(
            d["id"], Text.of(d["term"]), Text.of(d["text"]), tuple(d.get("also", ())), tuple(d.get("see_also", ())),
            tuple(d["sources"]), Disagreement.all_of(d), Text.of(d.get("needed")),
        )
        for d in shard("glossary")
    }  # fmt: skip


@cache
def _spellings() -> Mapping[str, str]:
    out: dict[str, str] = {}
    # Ids and terms go before other spellings, so that no second name takes another term's own.
    for names in (lambda t: (t.id, t.term.en, t.term.zh), lambda t: t.also):
        for term in glossary().values():
            for name in names(term):
                out.setdefault(_plain(name), term.id)
    return out


def find_term(word: str) -> Term | None:
    """The term that `word` names by id, by either language's name or by another spelling; case and hyphens do not count."""
    identifier = _spellings().get(_plain(word))
    return glossary()[identifier] if identifier else None


def _plain(word: str) -> str:
    return re.sub(r"[\s_\-./]+", " ", word).strip().casefold()
