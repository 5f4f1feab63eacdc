"""Pseudonyms on the final payload: the last thing that happens before it is sent, whatever its producers did.

A name gets the same pseudonym through a whole conversation (``node-a1``), and `restore` puts it back on this side. Secrets are
masked for good. What counts as a name or a secret is what `probes.redact` and the masking of command lines know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from knowledge.record import dataclass
from probes import redact as known
from probes.collectors import processes as masking

Message = Mapping[str, str]
_KINDS = ("node", "user", "work", "uuid", "mail", "guid", "mac", "ipv6", "ipv4", "serial", "gpu", "name")
# --password hunter2: in prose a value stands behind a sign, in a command line behind a space as well
_OPTION = re.compile(
    r"(?i)(--?[a-z-]{0,30}(?:password|passwd|passphrase|token|secret|api-?key|access-?key|credentials?)\s{1,3})(?!\*)[^\s\"'\\]+"
)
_GPU_UUID = re.compile(r"\b(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
# pod/team-a/train-0, namespace team-a, job_name=bert, job "bert"
_WORK = re.compile(
    r"(?i)\b(?:pod|namespace|ns|job[_ -]?name|container|deployment)(?:[ :=/]+|[\"']\s*[:=]\s*[\"'])[\"']?((?=[\w.-]*[-\d])[\w][\w.-]{2,200})(?:/([\w][\w.-]{2,200}))?"
)
_HOST = re.compile(
    r"(?i)\b(?:host|hostname|node|server)(?:[ :=]+|[\"']\s*[:=]\s*[\"'])[\"']?((?=[\w.-]*\d)[A-Za-z][\w.-]{2,200})"
)
_USER = re.compile(r"(?i)\b(?:user|username|owner|for user|uid=\d+\()[ :=(]+[\"']?([a-z_][\w.-]{2,63})")


@dataclass(frozen=True, slots=True)
class Redacted:
    """What may be sent, and what its pseudonyms stand for."""

    messages: tuple[Message, ...]
    table: Mapping[str, str]  # pseudonym -> name; never sent

    def restore(self, text: str) -> str:
        """`text` with the names in place of their pseudonyms. Secrets stay masked."""
        if not self.table:
            return text
        longest = sorted(self.table, key=lambda a: (-len(a), a))
        return re.sub(rf"(?:{'|'.join(map(re.escape, longest))})(?!\d)", lambda m: self.table[m[0]], text)


class Pseudonyms:
    """Those of one conversation: the same name keeps its pseudonym from the first message to the last."""

    def __init__(self, names: Mapping[str, Iterable[str]] | None = None, mark: str = "a") -> None:
        """`names`: what is known to be a name, by kind (node, user, work)."""
        self._mark = mark
        self._of: dict[str, str] = {}
        self._back: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for kind, found in (names or {}).items():
            self._names.update(
                (n, kind if kind in _KINDS else "name") for n in found if len(n) > 1 and n.lower() not in _PLAIN
            )

    def redact(self, messages: Sequence[Message]) -> Redacted:
        """`messages` as they may be sent. Every value of them is looked at."""
        bare = [{k: without_secrets(v) for k, v in m.items()} for m in messages]
        self._learn([v for m in bare for v in m.values()])
        pattern = self._pattern()
        hidden = tuple({k: v if k == "role" else pattern.sub(self._hide, v) for k, v in m.items()} for m in bare)
        return Redacted(hidden, dict(self._back))

    def _learn(self, texts: Sequence[str]) -> None:
        plain = [t.replace("\\n", "\n").replace('\\"', '"') for t in texts]
        for name, kind in known.names_in((*texts, *plain)):
            self._names.setdefault(name, kind)
        for text in plain:
            for pattern, kind in ((_WORK, "work"), (_HOST, "node"), (_USER, "user")):
                for m in pattern.finditer(text):
                    for name in (g.rstrip(".-") for g in m.groups() if g):
                        if len(name) > 2 and name.lower() not in _PLAIN:
                            self._names.setdefault(name, kind)

    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self._names, key=lambda n: (-len(n), n))
        parts = [rf"(?P<x>(?:{'|'.join(_KINDS)})-{self._mark}\d+)", f"(?P<gpu>{_GPU_UUID.pattern})"]
        for kind, shape in known.shapes():
            flags = "i" if shape.flags & re.IGNORECASE else ""
            body = re.sub(r"^\(\?i\)", "", shape.pattern)
            if kind == "serial":
                body = body.replace("(serial", "(?P<ahead>serial", 1).replace(
                    ")([A-Z0-9]{6,40})", ")(?P<number>[A-Z0-9]{6,40})"
                )
            parts.append(f"(?P<{kind}>(?{flags}:{body}))" if flags else f"(?P<{kind}>{body})")
        if longest:
            parts.append(rf"(?P<names>(?<![\w-])(?:{'|'.join(map(re.escape, longest))})(?![\w-]))")
        return re.compile("|".join(parts))

    def _hide(self, m: re.Match[str]) -> str:
        found = {k: v for k, v in m.groupdict().items() if v is not None}
        if "serial" in found:
            return f"{found['ahead']}{self._alias('serial', found['number'])}"
        if "names" in found:
            return self._alias(self._names[m[0]], m[0])
        kind = next(iter(k for k in found if k not in ("ahead", "number")))
        if kind == "ipv4" and m[0].startswith(("127.", "0.0.0.0", "255.")):
            return m[0]
        return self._alias("name" if kind == "x" else kind, m[0])

    def _alias(self, kind: str, name: str) -> str:
        if name not in self._of:
            n = 1 + sum(a.startswith(f"{kind}-") for a in self._back)
            alias = self._of[name] = f"{kind}-{self._mark}{n}"
            self._back[alias] = name
        return self._of[name]


_PLAIN = frozenset(
    [
        "name",
        "names",
        "and",
        "the",
        "this",
        "that",
        "gpu",
        "gpus",
        "node",
        "nodes",
        "can",
        "will",
        "may",
        "has",
        "have",
        "was",
        "are",
        "not",
        "which",
        "root",  # an account of nobody; and findings are roots
    ]
)


def without_secrets(text: str) -> str:
    """`text` with everything masked that opens something."""
    return masking.masked_prose(_OPTION.sub(r"\1***", known.without_secrets(text)))
