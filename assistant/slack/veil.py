"""Observations as somebody may see them who is not logged in on the machine: pure.

Of another user's process the program is shown and nothing else, unless a role of the viewer's may see more. A hidden name is a
mark that tells two people apart and lasts as long as the bot runs: how many own the processes of a GPU is still counted right.
Whose a process is that nobody told the owner of is not known, so it is another's. Secrets are masked for everybody.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from assistant.rights import sight
from assistant.rights.model import Sight
from assistant.rights.sight import HIDDEN
from knowledge.observation import Event, Observation, Scope, Status, Subject, Value
from knowledge.record import dataclass
from knowledge.text import clean
from probes.collectors.processes import masked_prose

_KEY = secrets.token_bytes(16)
_OWNERS = ("process.user", "job.user")
_PROGRAMS = ("process.command", "process.name", "process.comm")
_CHOSEN = ("job.name", "process.writing.folder")  # by the user, like an argument
_SETTINGS = ("process.env", "job.env")
_TITLES = frozenset({"SLURM_JOB_NAME", "POD_NAME"})
_NAMING = (Scope.JOB, Scope.OBJECT, Scope.POD)  # what may be called after somebody
# Words that are accounts, too: in running text they are left alone.
_COMMON = frozenset("""
root nobody daemon bin sys mail nvidia gpu node host user users admin train data test work job home cuda python kernel server
""".split())  # noqa: SIM905  # fmt: skip
_NO_PERSON = frozenset({"root", "0"})
# /home/alice/run.py     UID: 1000 PID: 42     uid=1000     /user.slice/user-1000.slice/
_HOME = re.compile(r"(/(?:home|Users)/)([^/\s\"':,;()]{1,64})")
_UID = re.compile(r"(?i)(\buid[:=_ ] ?)([1-9]\d{0,9})\b|(\buser[-@])([1-9]\d{0,9})(?=\.(?:slice|service)\b)")
# Paths that tell of the machine; any other one is somebody's.
_PATH = re.compile(r"(?<![\w.~/-])/(?!(?:proc|sys|dev|usr|lib|lib64|bin|sbin|opt|etc|run|boot)\b)[^\s\"',;()]{1,4096}")


def veiled(
    observations: Sequence[Observation], sights: Collection[Sight], viewer: str = "", *, key: bytes = _KEY
) -> tuple[Observation, ...]:
    """`observations` for somebody who may see `sights`. `viewer`: their account on the machine, empty where it is not known."""
    veil = _Veil(observations, frozenset(sights), viewer, key)
    return tuple(veil.over(o) for o in observations)


@lru_cache(1 << 14)  # 30 us a line of a log, and each turn of a conversation shows the same ones again
def _without_secrets(text: str) -> str:
    return masked_prose(text)


@dataclass
class _Veil:
    observations: Sequence[Observation]
    sights: frozenset[Sight]
    viewer: str
    key: bytes

    @cached_property
    def owners(self) -> dict[Subject, set[str]]:
        """Who is said to own a process or a job."""
        out: dict[Subject, set[str]] = {}
        for o in self.observations:
            if o.fact in _OWNERS and isinstance(o.value, str):
                out.setdefault(o.subject, set()).add(o.value)
        return out

    @cached_property
    def named(self) -> re.Pattern[str] | None:
        """The names of other people, wherever they stand in a text."""
        told = {n for names in self.owners.values() for n in names}
        told |= {v.partition("=")[2] for o in self.observations if o.fact in _SETTINGS and isinstance(o.value, tuple)
                 for v in o.value if v.partition("=")[0].endswith("_USER")}  # fmt: skip
        names = [n for n in told if len(n) > 2 and not n.isdigit() and n.lower() not in _COMMON and n != self.user(n)]
        words = "|".join(map(re.escape, sorted(names, key=lambda n: (-len(n), n))))
        return re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])") if words else None

    @cached_property
    def titles(self) -> dict[str, str]:
        """Names of other users' processes that are more than a program: a process may write its command line into its name."""
        told = {o.value for o in self.observations
                if o.fact == "process.comm" and isinstance(o.value, str) and len(o.value.split()) > 1 and not self.own(o.subject)}  # fmt: skip
        return {t: self.program(t, own=False) for t in sorted(told, key=lambda t: (-len(t), t))}

    def own(self, subject: Subject) -> bool:
        """Whether a process or a job, or what belongs to it, is the viewer's."""
        about = subject.up(Scope.PROCESS) or subject.up(Scope.JOB)
        return bool(self.viewer) and about is not None and self.owners.get(about) == {self.viewer}

    def over(self, o: Observation) -> Observation:
        """One of them; the same object where nothing is hidden."""
        own = self.own(o.subject)
        others = not own and (o.subject.up(Scope.PROCESS) or o.subject.up(Scope.JOB)) is not None
        strict = others and Sight.COMMAND_LINES not in self.sights
        value, excerpt = self.value(o, own), self.shown(o, own)
        source = o.source
        if (call := self.text(source.call, strict)) != source.call:
            source = replace(source, call=call)
        detail, subject = self.text(o.detail, strict), self.subject(o.subject)
        if (value, excerpt, source, detail, subject) == (o.value, o.excerpt, o.source, o.detail, o.subject):
            return o
        return replace(o, value=value, excerpt=excerpt, source=source, detail=detail, subject=subject)

    # --- parts ------------------------------------------------------------------------------

    def value(self, o: Observation, own: bool) -> Value:
        """What it tells."""
        value = o.value
        if isinstance(value, Event):
            fields = {k: self.field(k, v) if isinstance(v, str) else v for k, v in value.fields.items()}
            return value if fields == value.fields else Event(value.code, fields)
        if isinstance(value, tuple):
            return tuple(self.setting(v, own) if o.fact in _SETTINGS else self.text(v) for v in value)
        if not isinstance(value, str):
            return value
        if o.fact in _OWNERS:
            return self.user(value)
        if o.fact in _PROGRAMS:
            return self.program(value, own)
        if o.fact == "process.owner" and value.startswith("user "):
            return f"user {self.user(value.removeprefix('user '))}"
        if o.fact in _CHOSEN and not own and Sight.COMMAND_LINES not in self.sights:
            return HIDDEN
        scope, colon, id_ = value.partition(":")
        if colon and scope in _NAMING:
            return f"{scope}:{self.names(id_)}"
        return self.text(value)

    def shown(self, o: Observation, own: bool) -> str:
        """The raw text that a person can check."""
        excerpt, strict = o.excerpt, not own and Sight.COMMAND_LINES not in self.sights
        if o.fact in _OWNERS and o.status is Status.OK and excerpt and self.user(str(o.value)) != o.value:
            return HIDDEN
        if o.fact in ("process.command", "process.name"):
            return self.program(excerpt, own)
        if strict and o.fact in (*_CHOSEN, *_SETTINGS, "process.in_job"):
            return HIDDEN if excerpt else ""
        return self.text(excerpt, strict and o.subject.up(Scope.PROCESS) is not None)

    def field(self, name: str, text: str) -> str:
        """A field of an event; of a process its program."""
        return self.program(text, own=False) if name in ("process", "task", "invoker") else self.text(text)

    def setting(self, text: str, own: bool) -> str:
        """``NAME=value`` of an environment."""
        name, mark, value = text.partition("=")
        if name.endswith("_USER"):
            return f"{name}{mark}{self.user(value)}"
        if name in _TITLES and not own and Sight.COMMAND_LINES not in self.sights:
            return f"{name}{mark}{HIDDEN}"
        return self.text(text, strict=not own and Sight.COMMAND_LINES not in self.sights)

    def program(self, text: str, own: bool) -> str:
        """A command line, or a name that a process gave itself."""
        words = clean(text).split()
        told = sight.command_line(words, self.sights, own=own)
        if not own and Sight.COMMAND_LINES not in self.sights and told:
            told = (told[0].rpartition("/")[2] or HIDDEN, *told[1:])
        return self.names(text if list(told) == text.split(" ") else " ".join(told))

    def user(self, name: str) -> str:
        """A person's account."""
        if not name or name in _NO_PERSON or name.startswith(HIDDEN):
            return name
        if sight.user(name, self.sights, own=bool(self.viewer) and name == self.viewer) == name:
            return name
        return HIDDEN + hmac.new(self.key, name.encode("utf-8", "replace"), "sha256").hexdigest()[:4]

    def names(self, text: str) -> str:
        """`text` without names of other people."""
        if Sight.USERS in self.sights or not text:
            return text
        if "/home/" in text or "/Users/" in text:
            text = _HOME.sub(lambda m: m[1] + self.user(m[2]), text)
        if "uid" in text.lower() or "user" in text:
            text = _UID.sub(lambda m: (m[1] or m[3]) + HIDDEN, text)
        return self.named.sub(lambda m: self.user(m[0]), text) if self.named else text

    def text(self, text: str, strict: bool = False) -> str:
        """Any text. `strict`: of another user's process, whose paths are arguments of it."""
        if not text:
            return text
        text = _without_secrets(text)
        if Sight.COMMAND_LINES not in self.sights:
            for title, shown in self.titles.items():
                text = text.replace(title, shown)
        if strict and "/" in text:
            text = _PATH.sub(HIDDEN, text)
        return self.names(text)

    def subject(self, s: Subject) -> Subject:
        """The same thing; one that is called after somebody by the mark for them."""
        if Sight.USERS in self.sights or not any(a.scope in _NAMING for a in s.ancestors()):
            return s
        parent = self.subject(s.parent) if s.parent is not None else None
        return Subject(s.scope, self.names(s.id) if s.scope in _NAMING else s.id, parent)
