"""What a model is told: findings, what was ruled out and what was not seen, with placeholders for everything of the site.

The words are those of the deterministic answer (`assistant.render.view.Builder`), so what a filled placeholder says is what stands
above it. Words that strangers chose (names, raw lines, reasons of tools) are never part of it; only a site that asks for its log
lines sends some, cleaned and marked as data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from assistant.narrate.placeholders import PLACEHOLDER, Slot, Table, kind_of
from assistant.narrate.wording import all_signs, sentences
from assistant.render.labels import colon, subject_name
from knowledge.observation import Event, Scope, Status, Subject, how_many
from knowledge.record import dataclass
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.render.view import Builder
    from assistant.reply import Reply
    from rules.engine import Finding

_FIELD = re.compile(r"\{([a-z_]+)\}")
# Says something good of use or health: told only where the verdict says that it can be used.
_GOOD = {
    "en": ("can go on", "goes on", "go on", "new job", "healthy", "can be used", "needs nothing", "nothing is lost", "no errors", "links up"),
    "zh": ("可以", "继续", "新作业", "健康", "无需", "正常", "无错误"),
}  # fmt: skip
ROOTS, SYMPTOMS, OTHERS, SEEN, LOG = 8, 13, 6, 4, 3  # findings of each kind, and lines of one, that are told at most


class Kind(StrEnum):
    """What a sentence may cite."""

    FINDING = "finding"
    RULED_OUT = "ruled_out"
    UNDECIDED = "undecided"
    UNSEEN = "could_not_see"
    DEED = "done"  # of a post-mortem
    OPEN = "open_point"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to tell of. All texts hold placeholders; none holds a digit outside of them."""

    id: str
    kind: Kind
    what: str
    where: str = ""
    members: tuple[str, ...] = ()  # placeholders of the single things that `where` names
    root: bool = True
    certainty: str = ""  # confirmed, probable, possible
    severity: str = ""
    codes: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()  # what was measured, in sentences
    background: tuple[str, ...] = ()  # sentences of the rule's page
    explains: tuple[str, ...] = ()  # ids of items
    may_explain: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    then: tuple[str, ...] = ()  # what to do afterwards
    standing: str = ""  # whether it can be used, as the verdict says it
    count: str = ""
    times: tuple[str, ...] = ()
    log: tuple[str, ...] = ()  # lines of strangers: only where the site asks for them
    findings: tuple[str, ...] = ()  # their ids in the diagnosis; never sent

    def plain(self) -> dict[str, Any]:
        """What is sent of it: nothing that is empty."""
        every = {
            "id": self.id, "kind": str(self.kind), "what": self.what, "where": self.where, "certainty": self.certainty,
            "severity": self.severity, "role": ("root" if self.root else "symptom") if self.kind is Kind.FINDING else "",
            "codes": self.codes, "count": self.count, "times": self.times, "measured": self.seen,
            "background": self.background, "explains": self.explains, "may_explain": self.may_explain,
            "actions": self.actions, "commands": self.commands, "afterwards": self.then, "use": self.standing,
            "log_lines": self.log,
        }  # fmt: skip
        return {k: list(v) if isinstance(v, tuple) else v for k, v in every.items() if v}


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that a narration may rest on, and the table that fills it."""

    lang: str
    state: str  # ok, degraded, unhealthy, unknown
    usable: str  # yes, not_yet, no, unknown
    items: tuple[Item, ...]
    slots: Mapping[str, Slot] = field(default_factory=dict)

    @property
    def by_id(self) -> Mapping[str, Item]:
        """The items by what a sentence cites."""
        return {i.id: i for i in self.items}

    def plain(self) -> dict[str, Any]:
        """What is sent: no real name, number or command."""
        return {"state": self.state, "can_be_used": self.usable, "items": [i.plain() for i in self.items]}


def material(reply: Reply, log: bool = False) -> Material | None:
    """The material of a finished reply; None when it rests on no diagnosis. `log`: with some raw lines."""
    d = reply.shown or reply.diagnosis
    return of_diagnosis(d, reply.lang, log) if d is not None else None


def of_diagnosis(d: Diagnosis, lang: str, log: bool = False) -> Material:
    """The material of a diagnosis, in `lang`. Pure."""
    from assistant.render.view import Builder

    return _Writer(Builder(d, lang, lambda _: "", verbose=False), d, lang, log).write()


class _Writer:
    def __init__(self, builder: Builder, d: Diagnosis, lang: str, log: bool) -> None:
        self.b, self.d, self.lang, self.log = builder, d, lang, log
        self.table = Table()
        roots = builder._groups(d.roots)[:ROOTS]
        below = builder._groups(f for f in d.findings if f not in d.roots)[:SYMPTOMS]
        self.groups = [*roots, *below]
        self.ids = {f.id: f"f{n}" for n, g in enumerate(self.groups, 1) for f in g}
        self._learn()

    def write(self) -> Material:
        from assistant.diagnosis import State

        d, b, t = self.d, self.b, self.table
        items = [self._finding(f"f{n}", g) for n, g in enumerate(self.groups, 1)]
        for n, group in enumerate(b._groups(d.ruled_out)[:OTHERS], 1):
            f, own = group[0], f"r{n}"
            ids = tuple(g.id for g in group)
            items.append(Item(own, Kind.RULED_OUT, self._title(f, own), self._where(group, own), findings=ids))
        for n, line in enumerate(b.gaps.undecided()[:OTHERS], 1):
            items.append(Item(f"u{n}", Kind.UNDECIDED, t.named("what", line, f"u{n}")))
        unseen = (
            [*b.gaps.unseen(), *(clean(c) for c in d.cut)]
            if d.verdict.state is not State.OK or d.cut
            else b.gaps.unseen()
        )
        for n, line in enumerate(unseen[:OTHERS], 1):
            items.append(Item(f"g{n}", Kind.UNSEEN, t.named("what", line, f"g{n}")))
        return Material(self.lang, str(d.verdict.state), str(d.verdict.usable), tuple(items), t.slots)

    # --- names ----------------------------------------------------------------------------

    def _learn(self) -> None:
        """The names of everything that the findings are about, and the words that strangers chose."""
        found = [f for g in self.groups for f in g] + list(self.d.ruled_out)
        for f in found:
            for s in (f.subject, *(o.subject for o in (*f.events, *f.because))):
                self._subject(s)
            first = f.events[0].value if f.events else None
            if not isinstance(first, Event):
                continue
            for name in _FIELD.findall(f.rule.title.en):
                value = first.get(name)
                if isinstance(value, str) and not name.startswith("title"):  # ours: a code's name in the catalogue
                    self.table.known(value, "name")

    def _subject(self, subject: Subject) -> None:
        here: Subject | None = subject
        while here is not None:
            kind = str(here.scope) if str(here.scope).isalpha() else "name"
            if here.id:
                self.table.known(self.b.name(here), kind)
                self.table.known(subject_name(here, self.b.lang), kind, same_as=self.b.name(here))
                self.table.known(str(here), kind)
                if len(here.id) > 1:
                    self.table.known(here.id, kind)
            if here.scope is Scope.NODE and not here.id:
                self.table.known(self.b.name(here), "node")
            here = here.parent

    def _where(self, group: Sequence[Finding], own: str) -> str:
        subject = group[0].subject
        kind = str(subject.scope) if str(subject.scope).isalpha() else "name"
        return self.table.slot(kind if len(group) == 1 else f"{kind}s", self.b.where([g.subject for g in group]), own)

    def _members(self, group: Sequence[Finding], own: str) -> tuple[str, ...]:
        """Of the same on several things: each of them, as the measurements name it."""
        about = dict.fromkeys(g.subject for g in group)
        kinds = [(str(s.scope) if str(s.scope).isalpha() else "name", self.b.name(s)) for s in about]
        return tuple(self.table.slot(kind, name, own) for kind, name in kinds) if len(about) > 1 else ()

    # --- a finding ------------------------------------------------------------------------

    def _finding(self, own: str, group: Sequence[Finding]) -> Item:
        from rules.engine import Role

        f, t = group[0], self.table
        root = f.role is Role.ROOT
        events = [o for g in group for o in g.events]
        return Item(
            own, Kind.FINDING, self._title(f, own), self._where(group, own), self._members(group, own), root,
            certainty=str(f.grade), severity=str(f.severity),
            codes=(t.slot("xid", f"XID {f.xid}", own),) if f.xid is not None else (),
            seen=self._measured(group, own), background=self._background(f) if root else (),
            explains=self._others(own, [e for g in group for e in g.explains]),
            may_explain=self._others(own, [e for g in group for e in g.may_explain]),
            actions=(t.hide(f.advice.text.in_(self.lang), own),) if root else (),
            commands=self._commands(group, own) if root else (),
            then=tuple(dict.fromkeys(t.hide(x.in_(self.lang), own) for g in group for x in g.advice.then)) if root else (),
            standing=self._standing(f, own) if root else "",
            count=t.named("count", str(how_many(events)), own) if how_many(events) > 1 else "",
            times=self._times(events, own), log=self._log(group) if self.log else (), findings=tuple(g.id for g in group),
        )  # fmt: skip

    def _title(self, f: Finding, own: str) -> str:
        """The title; what programs chose in it is a placeholder, whatever words it is made of and whatever stands behind it."""
        title, ending = f.title.in_(self.lang), f.ending.in_(self.lang)
        name, found, became = title.rpartition(colon(self.lang) + ending) if ending else (title, "", "")
        if not found:
            return self.table.hide(title, own)
        named = self.table.named("of", ending, own)
        return self.table.hide(name, own) + colon(self.lang) + named + self.table.hide(became, own)

    def _others(self, own: str, ids: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.ids[i] for i in ids if i in self.ids and self.ids[i] != own))

    def _measured(self, group: Sequence[Finding], own: str) -> tuple[str, ...]:
        from assistant.render.labels import sentence

        out: dict[str, None] = {}
        for o in (o for f in group for o in (*f.because, *f.advice.because)):
            spec = self.d.facts.vocabulary.get(o.fact)
            if spec is None or o.status is not Status.OK or o.value is None or isinstance(o.value, Event):
                continue
            said = clean(sentence(spec, o, self.lang))
            shown = o.value if isinstance(o.value, tuple) else (o.value,)
            ours = {*spec.values, *spec.labels}
            strange = [x for x in shown if isinstance(x, str) and x not in ours]
            out.setdefault(self.table.hide(said, own, strange, _called(o.fact)))
        about = {self._where(group, own), *self._members(group, own)}
        return tuple(line for line in out if not _strange(line, about))[:SEEN]

    def _background(self, f: Finding) -> tuple[str, ...]:
        """The page from its beginning, up to the first sentence that holds a number (a code in it was not seen here) or says something
        good of use that the verdict does not say: a later sentence without those before it may mean something else."""
        return tuple(takewhile(self._sayable, sentences(f.rule.why.in_(self.lang), self.lang)))

    def _sayable(self, text: str) -> bool:
        good = str(self.d.verdict.usable) != "yes" and any(x in text.lower() for x in _GOOD[self.lang])
        return "{" not in text and all_signs(text, self.lang) and not good

    def _commands(self, group: Sequence[Finding], own: str) -> tuple[str, ...]:
        found = dict.fromkeys(clean(f.advice.command) for f in group if f.advice.pasteable)
        return tuple(self.table.slot("cmd", c, own) for c in found)

    def _standing(self, f: Finding, own: str) -> str:
        from rules.model import Usable

        fit = str(self.d.verdict.usable) == "yes" and f.subject.scope in (Scope.GPU, Scope.NODE)
        if f.advice.usable is Usable.YES and not fit:
            return ""  # of one thing among others that cannot be used, or of a process, of which nobody asks it
        until = f.advice.until.in_(self.lang)
        zh = self.lang == "zh"
        said = {
            Usable.YES: "可以继续使用" if zh else "can go on being used",
            Usable.NOT_YET: (f"暂不可用，直到{until}" if until else "暂不可用") if zh else (f"not usable until {until}" if until else "not usable yet"),
            Usable.IMPAIRED: (f"受损运行，不要派新任务，直到{until}" if until else "受损运行，不要派新任务") if zh else (f"impaired: no new work until {until}" if until else "impaired: no new work"),
            Usable.NO: (f"请勿使用，直到{until}" if until else "请勿使用") if zh else (f"do not use until {until}" if until else "do not use"),
            Usable.UNKNOWN: "",
        }[f.advice.usable]  # fmt: skip
        return self.table.hide(said, own)

    def _times(self, events: Sequence[Any], own: str) -> tuple[str, ...]:
        from assistant.render import lines

        timed = [o for o in events if o.at is not None and lines.is_timed(o)]
        said = dict.fromkeys(lines.moment(o) for o in timed)
        first, last = next(iter(said), ""), next(reversed(said), "")
        out = [self.table.named("first", first, own)] if first else []
        return tuple([*out, self.table.named("last", last, own)] if last and last != first else out)

    def _log(self, group: Sequence[Finding]) -> tuple[str, ...]:
        """Raw lines, cleaned; angle brackets and braces could pass for marks of ours."""
        sign = str.maketrans({"<": "(", ">": ")", "{": "(", "}": ")", "`": "'"})
        found = (excerpt(o.excerpt, 240).translate(sign) for f in group for o in f.events)
        return tuple(dict.fromkeys(x for x in found if x))[:LOG]


def _strange(line: str, about: set[str]) -> bool:
    """Whether a measurement is of another thing of the same kind: of the GPUs beside the one that a finding is about."""
    kinds = {kind for w in about if (kind := kind_of(w))}
    named = {f"{{{name}}}" for name in PLACEHOLDER.findall(line)}
    return not named & about and any(kind_of(n) in kinds for n in named)


def _called(fact: str) -> str:
    """What a value is called after its fact: ``slowdown`` of ``gpu.temperature.slowdown``."""
    last = "".join(c for c in fact.rpartition(".")[2].lower() if "a" <= c <= "z")
    return last if last not in ("", "gpu", "node", "count", "first", "last", "what", "of") else "value"
