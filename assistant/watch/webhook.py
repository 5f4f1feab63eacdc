"""Messages about alerts to webhooks: each at least once, in order, repeated until it is taken.

Messages wait in an outbox that is kept on disk with the alerts, so that neither a receiver that is down
nor a restart loses one. A message is repeated when its answer was lost, or when the process was killed between the
answer and the disk: its ``Idempotency-Key`` is the same then, so that a receiver can tell.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlsplit

from assistant.watch.alerts import SECOND, Change, Sighting, What
from knowledge.errors import UsageError
from knowledge.record import dataclass

SCHEMA = "gpudiag/alert/1"
TIMEOUT = 10.0  # seconds for one try
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 600.0  # seconds between tries: doubled each time, with jitter
GIVE_UP = 86_400.0  # seconds after which a message is old news
QUEUE = 1000  # messages kept; the oldest go first
LONGEST_WAIT = 3600.0  # seconds: a receiver may ask for this much patience
_AGAIN = frozenset({408, 425, 429, *range(500, 600)})
_COLOR = {"critical": "#a30200", "error": "#d94a00", "warning": "#e8a400", "info": "#439fe0"}
_SIGN = {
    "critical": ":red_circle:",
    "error": ":large_orange_circle:",
    "warning": ":large_yellow_circle:",
    "info": ":large_blue_circle:",
}


@dataclass(frozen=True, slots=True)
class Target:
    """A receiver. The URL is a secret: it is named in talk by its host alone."""

    url: str
    slack: bool

    @property
    def id(self) -> str:
        """What stands for it in the outbox."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """Its host, without what may be secret: user, path and query."""
        return urlsplit(self.url).hostname or "?"


def target(text: str) -> Target:
    """``https://...``; Slack's own address, or ``slack+https://...``, gets Slack's format. UsageError for others."""
    slack = text.startswith("slack+") or "://hooks.slack.com/" in text
    url = text.removeprefix("slack+")
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or not url.isascii() or any(c <= " " for c in url):
        raise UsageError(f"a webhook is an address such as https://host/path, not {text[:12]!r}...")
    return Target(url, slack)


@dataclass(frozen=True, slots=True)
class Message:
    """One message that waits. Times in ns since 1970 UTC."""

    id: str
    target: str
    body: str  # JSON
    made: int
    tries: int = 0
    due: int = 0


class Outbox:
    """Messages in the order in which things happened; a receiver gets the next only after it took the last."""

    def __init__(self, targets: Sequence[Target], waiting: Iterable[Message] = ()) -> None:
        self.targets = {t.id: t for t in targets}
        self.waiting = [m for m in waiting if m.target in self.targets][-QUEUE:]

    def add(self, changes: Iterable[Change], host: str) -> int:
        """A message for each change and receiver; one that waits already is not added again. Returns how many old ones gave way."""
        known = {m.id for m in self.waiting}
        for change in changes:
            for t in self.targets.values():
                body = json.dumps(slack(change, host) if t.slack else payload(change, host), ensure_ascii=False)
                message = Message(_id(change, t), t.id, body, change.at, 0, change.at)
                if message.id not in known:
                    known.add(message.id)
                    self.waiting.append(message)
        extra = max(len(self.waiting) - QUEUE, 0)
        del self.waiting[:extra]
        return extra

    def next(self, target: str, now: int) -> Message | None:
        """The message that a receiver should get now: its oldest, unless that one still waits for its next try."""
        m = next((m for m in self.waiting if m.target == target), None)
        if m is None:
            return None
        waits = 0 < m.due - now <= int(LONGEST_WAIT * SECOND)  # one due far ahead was noted by a clock that was wrong
        return None if waits and now - m.made <= GIVE_UP * SECOND else m

    def settle(self, m: Message, status: int, pause: float | None, now: int) -> tuple[str, str]:
        """Note how a try ended: HTTP status, 0 without an answer; the pause that was asked for. Returns outcome and reason."""
        place = next((i for i, other in enumerate(self.waiting) if other.id == m.id), None)
        if 200 <= status < 300:
            outcome, why = "sent", ""
        elif now - m.made > GIVE_UP * SECOND:
            outcome, why = "dropped", "not taken for a day"
        elif status == 0 or status in _AGAIN:
            outcome, why = "retried", f"HTTP {status}" if status else "no answer"
        else:
            outcome, why = "dropped", f"HTTP {status}"
        if place is None:  # it gave way to newer ones meanwhile
            return outcome, why
        if outcome == "retried":
            doubled = min(FIRST_PAUSE * 2.0 ** min(m.tries, 20), LONGEST_PAUSE) * random.uniform(0.8, 1.2)
            wait = min(doubled if pause is None else max(pause, 1.0), LONGEST_WAIT)
            self.waiting[place] = replace(m, tries=m.tries + 1, due=now + int(wait * SECOND))
        else:
            del self.waiting[place]
        return outcome, why

    def dump(self) -> list[dict[str, Any]]:
        """The waiting messages as plain data: no address is in it."""
        return [asdict(m) for m in self.waiting]


def waiting(data: Any) -> list[Message]:
    """The opposite of `Outbox.dump`; what cannot be understood is left out."""
    out = []
    for row in data if isinstance(data, list) else ():
        try:
            out.append(
                Message(
                    str(row["id"]),
                    str(row["target"]),
                    str(row["body"]),
                    int(row["made"]),
                    int(row["tries"]),
                    int(row["due"]),
                )
            )
        except (KeyError, TypeError, ValueError):
            continue
    return out


def _id(change: Change, t: Target) -> str:
    a = change.alert
    text = f"{t.id}|{a.last.key}|{change.what}|{a.severity}|{a.fired}|{len(a.returns)}|{change.at}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def payload(change: Change, host: str) -> dict[str, Any]:
    """The generic message, schema ``gpudiag/alert/1``."""
    a, s = change.alert, change.alert.last
    return {
        "schema": SCHEMA, "status": str(change.what), "fingerprint": hashlib.sha256(s.key.encode()).hexdigest()[:16],
        "host": s.host or host, "rule": s.rule, "xid": s.xid, "subject": s.subject, "severity": str(a.severity),
        "grade": s.grade, "title": dict(s.title), "action": {"bucket": s.bucket, "usable": s.usable},
        "evidence": list(s.evidence), "explains": list(s.explains), "returns": len(a.returns),
        "first_seen": _iso(a.first_seen), "last_seen": _iso(a.last_seen), "at": _iso(change.at),
    }  # fmt: skip


def slack(change: Change, host: str) -> dict[str, Any]:
    """Blocks for a Slack incoming webhook: the verdict first, then the evidence and the command to run."""
    a, s = change.alert, change.alert.last
    title = _escaped(_told(s))
    node = _escaped(s.host or host)
    where = "" if s.subject.startswith("node ") else f" · node *{node}*"
    if change.what is What.CLEARED:
        head = f":white_check_mark: *Resolved* {title}{where}"
        return {"text": f"resolved: {title} ({node})", "blocks": [_section(head)]}
    word = "*Worse*: " if change.what is What.ESCALATED else ""
    head = f"{_SIGN[str(a.severity)]} {word}*{title}*{where}"
    blocks = [_section(head)]
    lines = [f"*Do next:* `{s.bucket}`" + ("  ·  *do not use it*" if s.usable == "no" else "")]
    if a.returns:
        lines.append(f"Came back {len(a.returns)} time{'s' if len(a.returns) != 1 else ''} in a day.")
    if s.explains:
        lines.append("Explains: " + "; ".join(map(_escaped, s.explains[:3])))
    blocks.append(_section("\n".join(lines)))
    if s.evidence:
        blocks.append(_section("```" + _escaped("\n".join(s.evidence[:3]))[:2500].replace("```", "'''") + "```"))
    blocks.append(
        {
            "type": "context",
            "elements": [{"type": "mrkdwn", "text": f"`gpudiag explain rule {s.rule}`  ·  `gpudiag check` on {node}"}],
        }
    )
    return {
        "text": f"{a.severity}: {title} ({node})",
        "attachments": [{"color": _COLOR[str(a.severity)], "blocks": blocks}],
    }


def _told(s: Sighting) -> str:
    """``GPU 0000:3b:00.0 has fallen off the bus``: the clause that the verdict of a check uses."""
    from assistant.render.labels import headline
    from knowledge.language import Text
    from knowledge.observation import Scope, Subject

    title = s.title.get("en", s.rule)
    scope, _, name = s.subject.partition(" ")
    if scope not in list(Scope) or not name or " link " in name:  # this node; gpu 0000:3b:00.0 link 3
        return f"{s.subject}: {title}" if s.subject else title
    return headline(Text(title), [Subject(Scope(scope), name)], "en")


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:3000]}}


def _escaped(text: str) -> str:
    """Slack's three characters; what a log line says must not mention people or make links."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _iso(at: int) -> str:
    from probes.host import iso

    return iso(at) or ""
