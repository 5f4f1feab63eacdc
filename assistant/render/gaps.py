"""What could not be seen and what stays undecided, arranged by what a person can do about it.

On a live node one missing privilege hides a hundred facts. What one command would show is one line;
what nothing would show (the device does not have it) is told last, or only when asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from assistant.render.labels import aside, colon, label, listed, reason_name, tight
from assistant.render.meanings import called
from assistant.render.words import our_words, part_name, source_name
from assistant.vendors import TOOLS
from knowledge.lazy import lazy
from knowledge.observation import Scope, Status
from knowledge.record import dataclass
from knowledge.text import clean
from rules.engine import Grade
from rules.model import Severity

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis, Gap
    from knowledge.observation import Subject
    from rules.engine import Undecided
    from rules.proof import Missing

NAMES, TITLES = 4, 3  # facts and titles of one line, at most, without --verbose
# "needs root: run sudo gpudiag check"; "Operation not permitted: run as root to see it"
_REMEDY = lazy(r"\brun (?:(as root)\b|((?:sudo )?gpudiag [^;:()]{1,120}))")
# "the trace holds no shapes: record with record_shapes=True" (probes.trace.verdict.untold)
_RECORDING = lazy(r"\brecord with ([^;\n]{1,120})")
_NEVER = (Status.UNSUPPORTED, Status.NOT_APPLICABLE)
_HOPELESS = (*_NEVER, Status.NOT_ASKED)  # nothing that was asked could have told it
_SURE = (Grade.CONFIRMED, Grade.PROBABLE)
# Facts that say what a thing is, not how it is, that it is in use or that it rests: on a healthy node they hold as well.
_KIND_OF_THING = lazy(
    r"\.(?:name|index|uuid|serial|model|architecture|version|nvswitch_count|fabric\.state|read_only|utilization\.core|clock\.(?:sm|graphics))$"
)


def remedy(reason: str) -> str:
    """The command in a reason that would show what is missing; empty when it names none."""
    found = _REMEDY.search(reason)
    if found is None:
        return ""
    return "sudo gpudiag check" if found[1] else found[2].strip(" .,")


def recording(reason: str) -> str:
    """The option with which a trace would tell what is missing; empty when the reason names none."""
    found = _RECORDING.search(reason)
    return found[1].strip() if found else ""


def status_of(reason: str) -> str:
    """The status word that a reason begins with, or the reason."""
    return reason.partition(": ")[0]


@dataclass(slots=True)
class _Lack:
    """One thing that would tell, and the facts that it would tell."""

    source: str
    command: bool  # whether `source` is something to run
    reason: bool = False  # whether `source` says only why there is nothing to get
    facts: dict[str, None] = field(default_factory=dict)


class Gaps:
    """The lines about what is not known, in one language."""

    def __init__(
        self, diagnosis: Diagnosis, lang: str, tells: Callable[[str], str], where: Callable[[Sequence[Subject]], str],
        verbose: bool,
    ) -> None:  # fmt: skip
        self.d, self.lang, self.tells, self.where, self.verbose = diagnosis, lang, tells, where, verbose
        # Things out of use for a reason that was found: what they did not answer needs no other reason.
        self._condemned = {
            f.subject
            for f in diagnosis.roots
            if f.subject.scope is not Scope.NODE and f.grade in _SURE and f.advice.usable.stops
        }

    # --- what would tell ------------------------------------------------------------------

    def needs(self, gaps: Iterable[Missing]) -> tuple[str, ...]:
        """What would tell, with the facts it would tell: one input often answers several questions."""
        known = [m for m in gaps if not self._untold(m)]
        out = tuple(f"{lack.source} [{self._names(lack.facts)}]" for lack in self._lacks(known))
        return out if self.verbose else out[:NAMES]

    def needed(self, needs: Iterable[str], gaps: Iterable[Missing]) -> list[str]:
        """``needs A, B``, and apart from it why of other things nothing can be had: a reason is nothing to get."""
        why = tuple(lack.source for lack in self._lacks(m for m in gaps if not self._untold(m)) if lack.reason)
        got = [n for n in needs if not why or not n.startswith(why)]
        said = label("needs", self.lang).format(listed(got, self.lang)) if got else ""
        return [tight(said, self.lang)] * bool(got) + [n for n in needs if n not in got]

    def _lacks(self, gaps: Iterable[Missing]) -> list[_Lack]:
        found: dict[str, _Lack] = {}
        for m in gaps:
            source, command = self._source(m)
            reason = source == reason_name(m.reason, self.lang)
            found.setdefault(source, _Lack(source, command, reason)).facts.setdefault(m.fact)
        return sorted(found.values(), key=lambda lack: not lack.command)

    def _untold(self, m: Missing) -> bool:
        """Whether the source has spoken and does not tell it: the same input again tells no more."""
        return status_of(m.reason) in _NEVER and not remedy(m.reason) and not recording(m.reason)

    def _source(self, m: Missing) -> tuple[str, bool]:
        """A command that shows it; else an input that nobody gave; else why there is none."""
        command = remedy(m.reason)
        if command:
            return clean(command), True
        if option := recording(m.reason):
            return label("recorded_with", self.lang).format(option=clean(option)), False
        if self._untold(m):
            return "", False
        told = self._teller(m)
        if "snapshot" in told and status_of(m.reason) != Status.NOT_ASKED:  # we looked ourselves
            return reason_name(m.reason, self.lang), False
        spec = self.d.facts.vocabulary.get(m.fact)
        question = spec.ask.in_(self.lang) if spec and spec.ask else ""
        return (source_name(told, self.lang) or question or reason_name(m.reason, self.lang)), False

    def _teller(self, m: Missing) -> str:
        """The input that tells most; for a GPU of another vendor that vendor's tool, or none."""
        titles = self.tells(m.fact).split(", ")
        seen = self.d.facts.read_up("gpu.vendor", m.subject)[1]
        if seen is None or seen.status is not Status.OK or seen.value == "nvidia":
            return titles[0]
        tool = TOOLS.get(str(seen.value), "?")
        return next((t for t in titles if t.startswith(tool)), "")

    def _names(self, names: Iterable[str], most: int = NAMES) -> str:
        known = list(names)
        shown = known if self.verbose or len(known) <= most else known[:most]
        rest = len(known) - len(shown)
        return ", ".join(shown) + (f", {label('more_lines', self.lang).format(n=rest)}" if rest else "")

    # --- undecided ------------------------------------------------------------------------

    def undecided(self) -> list[str]:
        """One line for the rules that wait for the same thing: what can be helped first, then by severity."""
        by_rule: dict[str, list[Undecided]] = defaultdict(list)
        for u in filter(self.worth_saying, self.d.undecided):
            by_rule[u.rule.id].append(u)
        by_need: dict[tuple[str, ...], list[list[Undecided]]] = defaultdict(list)
        for _, group in sorted(by_rule.items(), key=lambda item: (-item[1][0].rule.severity.rank, item[0])):
            lacks = self._lacks(m for u in group for m in u.missing)
            by_need[tuple(lack.source for lack in lacks)].append(group)
        ranked = sorted(by_need.values(), key=lambda groups: (self._hopeless(groups), -groups[0][0].rule.severity.rank))
        return [self._waiting(groups) for groups in ranked]

    def _waiting(self, groups: Sequence[Sequence[Undecided]]) -> str:
        titles = [f"{clean(g[0].rule.name.in_(self.lang))}{colon(self.lang)}{self.where([u.subject for u in g])}"
                  for g in groups]  # fmt: skip
        shown = titles if self.verbose or len(titles) <= TITLES else titles[:TITLES]
        rest = len(titles) - len(shown)
        parts = [*shown, *([label("more_lines", self.lang).format(n=rest)] if rest else [])]
        gaps = [m for g in groups for u in g for m in u.missing]
        if needs := self.needs(gaps):
            parts += self.needed(needs, gaps)
        if untold := dict.fromkeys(m.fact for m in gaps if self._untold(m)):
            parts.append(f"{label('unsupported', self.lang)}{colon(self.lang)}{self._names(untold)}")
        return listed(parts, self.lang, ";")

    def _hopeless(self, groups: Sequence[Sequence[Undecided]]) -> bool:
        return all(self._untold(m) for g in groups for u in g for m in u.missing)

    def worth_saying(self, u: Undecided) -> bool:
        """Not what nothing can settle, what is settled by a worse thing there, and not that a healthy node has questions.

        A rule is a question only when something speaks for it besides what kind of thing it looks at; and a lesser
        matter not when it waits for what nobody gave: there is always one.
        """
        if self.verbose:
            return True
        if any(s in self._condemned for s in u.subject.ancestors()):
            return False
        if any(status_of(m.reason) not in _HOPELESS or remedy(m.reason) or recording(m.reason) for m in u.missing):
            return True
        own = (o for o in u.because if u.subject in o.subject.ancestors() or o.subject in u.subject.ancestors())
        telling = any(not _KIND_OF_THING.search(o.fact) for o in own)
        return telling and u.rule.severity in (Severity.ERROR, Severity.CRITICAL)

    # --- what could not be seen -----------------------------------------------------------

    def unseen(self) -> list[str]:
        """What one command would show in one line, then the other reasons, those of most facts first."""
        gaps = [*self.d.coverage.denied, *self.d.coverage.failed]
        helped: dict[str, list[Gap]] = defaultdict(list)
        others: dict[tuple[Status, str], dict[str, None]] = defaultdict(dict)
        for g in gaps:
            command = remedy(g.detail)
            if command:
                helped[clean(command)].append(g)
            else:
                others[g.status, clean(g.detail)].setdefault(g.fact)
        # a machine that could not be reached: the first line has said so, and why
        whys = [detail.partition(": ")[2].rstrip(".") for _, detail in others]
        if not helped and len(whys) == 1 and whys[0] and whys[0] in self.d.verdict.text.en:
            return []
        lines = [self._shown_by(command, group) for command, group in sorted(helped.items(), key=lambda i: -len(i[1]))]
        for (status, detail), facts in sorted(others.items(), key=lambda item: -len(item[1])):
            reason = reason_name(f"{status}: {detail}" if detail else str(status), self.lang)
            lines.append(f"{reason}{colon(self.lang)}{self._meant(facts)}")
        return lines

    def _meant(self, names: Iterable[str]) -> str:
        """Facts by what they are; all of them, by name, with --verbose."""
        known = list(names)
        if self.verbose:
            return self._names(known)
        said = list(dict.fromkeys(called(name, self.d.facts.vocabulary, self.lang) for name in known))
        rest = len(said) - NAMES - 1
        more = [label("more_lines", self.lang).format(n=rest)] if rest > 0 else []
        return listed([*said[: NAMES + 1], *more], self.lang, ";")

    def _shown_by(self, command: str, gaps: Sequence[Gap]) -> str:
        """``sudo gpudiag check shows: kernel log [xid, sxid]; process table [...]``"""
        by_source: dict[str, dict[str, None]] = defaultdict(dict)
        for g in gaps:
            title = self.tells(g.fact).split(", ")[0]
            by_source[part_name(title, self.lang)].setdefault(g.fact)
        ranked = sorted(by_source.items(), key=lambda item: -len(item[1]))
        parts = [f"{source} [{self._names(facts)}]" if source else self._names(facts) for source, facts in ranked]
        said = label("would_show", self.lang).format(
            command=our_words(command, self.lang), what=listed(parts, self.lang, ";")
        )
        reasons = dict.fromkeys(clean(g.detail) for g in gaps) if self.verbose else {}
        return said + "".join(aside(our_words(reason, self.lang), self.lang) for reason in reasons)
