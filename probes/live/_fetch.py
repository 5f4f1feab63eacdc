"""From replies to observations: what all probes share.

The rule of the house is that missing is never fine. Output that is known to lack something is
used for what it says, never for what it does not: sums over a listing, and "none seen", become
the status and the reason of the reply.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from knowledge.observation import Observation, Scope, Status, node
from knowledge.text import excerpt
from probes.base import Context, DocumentFormat, LogFormat
from probes.host import Host, Reply
from probes.scan import scan

# dmesg: read kernel buffer failed: Operation not permitted
# Failed to initialize NVML: Insufficient Permissions
_DENIED = re.compile(r"permission denied|operation not permitted|insufficient permissions|must be root", re.IGNORECASE)
_WORDS = {
    Status.DENIED: "privilege is missing",
    Status.TIMEOUT: "no answer in time",
    Status.UNSUPPORTED: "not supported on this machine",
    Status.NOT_ASKED: "was not asked",
}


def status_of(reply: Reply) -> Status:
    """Why `reply` is not a whole answer: its status, or what a command that ended with an error says of it."""
    if reply.status not in (Status.OK, Status.FAILED):
        return reply.status
    return Status.DENIED if not reply.whole and _DENIED.search(reply.errors[:4096]) else Status.FAILED


def reason(reply: Reply) -> str:
    """One line that says why `reply` is not a whole answer, beginning with the call."""
    printed = next((line for line in reply.errors.splitlines() if line.strip()), "")
    said = [reply.detail, printed] if reply.status in _WORDS or reply.cut else [printed, reply.detail]
    ended = f"ended with exit code {reply.exit_code}" if reply.exit_code else ""
    why = next((s for s in (*said, _WORDS.get(reply.status, ""), ended) if s), "it could not be read")
    shown = excerpt(reply.title, 120)
    line = excerpt(why.replace(reply.title, shown))
    return line if shown in line else f"{shown}: {line}"


def missing(
    facts: Iterable[str], host: Host, reply: Reply, parser: DocumentFormat | LogFormat,
    status: Status | None = None, why: str = "",
) -> list[Observation]:  # fmt: skip
    """The facts as observations without a value, about the node: which parts of it the reply would have named is not known."""
    source = _context(reply, host).at(parser.name, parser.revision)
    return [
        Observation(fact, node(host.name), None, status or status_of(reply), source, detail=why or reason(reply))
        for fact in facts
    ]


def document(
    reply: Reply, host: Host, parser: DocumentFormat, main: Sequence[str], *,
    sums: Collection[str] = (), proof: Collection[str] = (),
) -> list[Observation]:  # fmt: skip
    """Observations of a tool's output; the `main` facts that it does not tell, with the reason.

    `sums` are facts that need the whole output. `proof` are facts of which one is enough to say
    that the tool answered; without them each main fact is expected.
    """
    if reply.cut:  # head and tail are of different parts: a value behind the gap may belong to anything
        return missing(main, host, reply, parser)
    text = _text(reply)
    found = parser.parse(text, _context(reply, host)) if text.strip() else []
    if not reply.whole:
        found = _distrusted(found, reply, sums)
        told = {o.fact for o in found if o.subject.scope is Scope.NODE}  # the parts that were told are not all
    else:
        told = {o.fact for o in found}
        if told & set(proof):
            return found
    return found + missing([f for f in main if f not in told], host, reply, parser, why=_unsaid(reply, text))


def log(reply: Reply, host: Host, parser: LogFormat) -> list[Observation]:
    """Observations of a log; none when there is no text."""
    text = reply.data if reply.whole else _lines(reply.data)
    if not text.strip():
        return []
    stream = _Stream(text)
    stream.name = _name(reply)
    found = scan([stream], [parser], lambda _: _context(reply, host)).observations
    return list(found) if reply.whole else _distrusted(found, reply, ())


class _Stream(io.BytesIO):
    """Bytes with a name for people."""

    name = "-"


def _context(reply: Reply, host: Host) -> Context:
    return Context(_name(reply), host.name)


def _name(reply: Reply) -> str:
    """The call as people would type it to look: journalctl without the words that only say how it prints."""
    if reply.call[0] != "journalctl":
        return reply.title
    units = sum(word == "-u" for word in reply.call)
    chosen = ["-u", "nvidia-*"] if units > 1 else [word for word in reply.call if word == "-k" or word.startswith("_")]
    return " ".join(["journalctl", *chosen])


def _text(reply: Reply) -> str:
    """What a person would have seen: behind output that is not whole, the errors that ended it."""
    if reply.whole:
        return reply.text
    data = reply.data if reply.status is Status.OK else _lines(reply.data)
    between = b"" if not data or data.endswith(b"\n") else b"\n"
    return (data + between + reply.stderr).decode("utf-8-sig", "replace")


def _lines(data: bytes) -> bytes:
    """Whole lines: the last one of a call that was broken off may be half a number."""
    return data[: data.rfind(b"\n") + 1]


def _distrusted(found: Iterable[Observation], reply: Reply, sums: Collection[str]) -> list[Observation]:
    """Without conclusions from what does not stand in a text that is not whole; why it is not, the reply knows best."""
    out = []
    for o in found:
        sum_ = o.fact in sums and (o.status is Status.OK or reply.status is not Status.OK)
        if sum_ or o.status is Status.NONE_SEEN:
            o = replace(o, value=None, status=status_of(reply), window=None, detail=f"not whole: {reason(reply)}")
        out.append(o)
    return out


def _unsaid(reply: Reply, text: str) -> str:
    if not reply.whole:
        return ""
    first = next((line for line in text.splitlines() if line.strip()), "")
    shown = "" if first.lstrip()[:1] in "{[" else f": {first}"  # a document of JSON begins alike, whatever it tells
    said = f"the output does not tell{shown}" if first else "printed nothing"
    return excerpt(f"{reply.title}: {said}")
