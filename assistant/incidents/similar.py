"""Which earlier incidents are like one, why, and how they ended.

There is no score. Incidents are compared by what was recorded of them, and put in this order: the same cause (root rules), the same
GPU (by serial, UUID, or address on the same node), the same code (XID), the same node, the same runbook, words that both titles
share; of two that are alike in the same things the newer one comes first. Each hit says in which of these it is like the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from assistant.incidents.fold import Incident, Linked
from assistant.incidents.shape import gpu_of
from assistant.incidents.words import lasting
from assistant.render.labels import aside, colon, listed
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.text import clean, excerpt

MOST = 5  # hits that are told
PAST = 500  # earlier incidents that are compared, the newest first
WORDS = 2  # shared words of titles that make two incidents alike when nothing else does
NAMED = 3  # shared words that are named
_WORD = re.compile(r"[a-z][a-z0-9_-]{3,}|[\u4e00-\u9fff]{2}")
# Words that titles of unlike incidents share.
_COMMON = frozenset(
    re.findall(
        "[a-z]+",
        "with that this from have been does into over under after before again were will node nodes cannot could error errors "
        "fails failed failure failing problem issue incident reports reported",
    )
)


class Traits(NamedTuple):
    """What an incident is compared by."""

    rules: frozenset[str]
    gpus: frozenset[str]
    xids: frozenset[int]
    hosts: frozenset[str]
    runbooks: frozenset[str]
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Like:
    """An earlier incident, and in what it is like the one that was asked about; `same` in the order of the module's text."""

    incident: Incident
    same: Traits

    @property
    def order(self) -> tuple[int, ...]:
        """What is compared to sort hits: descending, field by field."""
        return (*(bool(s) for s in self.same[:-1]), len(self.same.words), self.incident.number)


def traits(incident: Incident) -> Traits:
    """By its root findings; of one that was opened by hand by node, runbook and title alone."""
    roots = [f for f in incident.findings if f.role == "root"]
    return Traits(
        frozenset(f.rule for f in roots if f.rule), frozenset(name for f in roots for name in _gpu_names(f)),
        frozenset(f.xid for f in roots if f.xid is not None), frozenset(incident.hosts), frozenset(incident.runbooks),
        _words(incident.title),
    )  # fmt: skip


def _gpu_names(f: Linked) -> Iterable[str]:
    """Names under which the board is known: its own stay with it in another node."""
    parts = f.data.get("parts")
    if isinstance(parts, dict):
        yield from (f"{kind} {v}" for kind in ("uuid", "serial") if isinstance(v := parts.get(kind), str) and v)
    if f.host and (address := gpu_of(f.subject)):
        yield f"{f.host} {address}"


def _words(title: Text) -> frozenset[str]:
    """Words of both languages; of Chinese each two letters that stand together."""
    said = f"{title.en} {title.zh}".lower()
    pairs = re.findall(r"(?=([\u4e00-\u9fff]{2}))", said)
    return frozenset({*_WORD.findall(said), *pairs} - _COMMON)


def similar(incident: Incident, others: Iterable[Incident], most: int = MOST) -> tuple[Like, ...]:
    """Those of `others` that began before it (smaller numbers) and are like it. Their order does not matter."""
    own = traits(incident)
    found = []
    for other in others:
        if other.number >= incident.number:
            continue
        like = Like(other, _shared(own, traits(other)))
        if any(like.same[:-1]) or len(shared_words(like)) >= WORDS:
            found.append(like)
    return tuple(sorted(found, key=lambda h: h.order, reverse=True)[:most])


def _shared(a: Traits, b: Traits) -> Traits:
    return Traits(a.rules & b.rules, a.gpus & b.gpus, a.xids & b.xids, a.hosts & b.hosts, a.runbooks & b.runbooks,
                  a.words & b.words)  # fmt: skip


def shared_words(like: Like) -> list[str]:
    """Words that both titles hold; of Chinese the longest stretches, which are no words but read like them."""
    title, shared = like.incident.title, like.same.words
    out = {w for w in shared if w.isascii()}
    for run in re.findall("[\u4e00-\u9fff]{2,}", f"{title.en} {title.zh}"):
        stretch = run[0]
        for pair in (run[i : i + 2] for i in range(len(run) - 1)):
            if pair in shared:
                stretch += pair[1]
                continue
            out |= {stretch} if len(stretch) > 1 else set()
            stretch = pair[1]
        out |= {stretch} if len(stretch) > 1 else set()
    return sorted(out)


# --- words --------------------------------------------------------------------------------


def why(like: Like, lang: str) -> str:
    """In what it is like the other, what counts most first."""
    s = like.same
    said = [
        _named(Text("same cause", "原因相同"), s.rules, lang),
        Text("same GPU", "同一 GPU").in_(lang) if s.gpus else "",
        _named(Text("same XID", "相同 XID"), (str(x) for x in sorted(s.xids)), lang) if not s.rules else "",
        _named(Text("same node", "同一节点"), s.hosts, lang),
        _named(Text("same runbook", "同一处置手册"), s.runbooks, lang) if not s.rules else "",
    ]
    if not any(said):
        said = [_named(Text("same words", "相同词语"), shared_words(like), lang)]
    return listed([x for x in said if x], lang, ";")


def _named(what: Text, names: Iterable[str], lang: str) -> str:
    told = [excerpt(n, 80) for n in sorted(names)]
    more = f" +{len(told) - NAMED}" if len(told) > NAMED else ""
    return f"{what.in_(lang)} {listed(told[:NAMED], lang)}{more}" if told else ""


def how_it_ended(like: Like, since: int, lang: str) -> str:
    """``closed 3 days earlier: board replaced``; of one that is not over how far it is. `since`: ns UTC, from which one counts back."""
    from assistant.incidents.words import STATUS

    other = like.incident
    if other.closed_at is None:
        return STATUS[other.status].in_(lang)
    gone = since - other.closed_at
    said = Text("closed later", "后来关闭")  # it was still open then
    if gone >= 0:
        said = Text(f"closed {lasting(gone, 'en')} earlier", f"此前 {lasting(gone, 'zh')}关闭")
    ended = excerpt(other.ended, 200)
    return f"{said.in_(lang)}{colon(lang)}{ended}" if ended else said.in_(lang)


def line(like: Like, since: int, lang: str) -> str:
    """``like #12 (closed 3 days earlier: board replaced)``."""
    number = like.incident.number
    lead = Text(f"like #{number}", f"类似 #{number}").in_(lang)
    return lead + aside(how_it_ended(like, since, lang), lang)


def full(like: Like, since: int, lang: str) -> str:
    """Number, title, why, and how that one ended: one entry of a list."""
    i = like.incident
    title = excerpt(clean(i.title.in_(lang)), 160)
    parts: Sequence[str] = (f"#{i.number} {title}", why(like, lang), how_it_ended(like, since, lang))
    return listed(parts, lang, ";")
