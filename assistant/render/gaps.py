"""What could not be seen and what stays undecided, arranged by what a person can do about it.

On a live node one missing privilege hides a hundred facts. What one command would show is one line;
what nothing would show (the device does not have it) is told last, or only when asked for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assistant.render.labels import label, reason_name
from knowledge.observation import Status
from knowledge.text import clean
from rules.model import Severity

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis, Gap
    from knowledge.observation import Subject
    from rules.engine import Undecided
    from rules.proof import Missing

NAMES, TITLES = 4, 3  # facts and titles of one line, at most, without --verbose
# "needs root: run sudo gpudiag check"; "Operation not permitted: run as root to see it"
_REMEDY = re.compile(r"\brun (?:(as root)\b|((?:sudo )?gpudiag [^;:()]{1,120}))")
_HOPELESS = (Status.UNSUPPORTED, Status.NOT_ASKED)  # nothing that was asked could have told it


def remedy(reason: str) -> str:
    """The command in a reason that would show what is missing; empty when it names none."""
    found = _REMEDY.search(reason)
    if found is None:
        return ""
    return "sudo gpudiag check" if found[1] else found[2].strip(" .,")


def status_of(reason: str) -> str:
    """The status word that a reason begins with, or the reason."""
    return reason.partition(": ")[0]


@dataclass(slots=True)
class _Lack:
    """One thing that would tell, and the facts that it would tell."""

    source: str
    command: bool  # whether `source` is something to run
    facts: dict[str, None] = field(default_factory=dict)


class Gaps:
    """The lines about what is not known, in one language."""

    def __init__(
        self, diagnosis: Diagnosis, lang: str, tells: Callable[[str], str], where: Callable[[Sequence[Subject]], str],
        verbose: bool,
    ) -> None:  # fmt: skip
        self.d, self.lang, self.tells, self.where, self.verbose = diagnosis, lang, tells, where, verbose

    # --- what would tell ------------------------------------------------------------------

    def needs(self, gaps: Iterable[Missing]) -> tuple[str, ...]:
        """What would tell, with the facts it would tell: one input often answers several questions."""
        out = tuple(self._lack(lack) for lack in self._lacks(gaps))
        return out if self.verbose else out[:NAMES]

    def _lacks(self, gaps: Iterable[Missing]) -> list[_Lack]:
        found: dict[str, _Lack] = {}
        for m in gaps:
            source, command = self._source(m)
            found.setdefault(source, _Lack(source, command)).facts.setdefault(m.fact)
        return sorted(found.values(), key=lambda lack: not lack.command)

    def _source(self, m: Missing) -> tuple[str, bool]:
        """A command that shows it; else an input that nobody gave; else why there is none."""
        command = remedy(m.reason)
        if command:
            return clean(command), True
        if status_of(m.reason) == Status.UNSUPPORTED:
            return reason_name(str(Status.UNSUPPORTED), self.lang), False  # the same input again tells no more
        told = self.tells(m.fact).split(", ")[0]
        spec = self.d.facts.vocabulary.get(m.fact)
        question = spec.ask.in_(self.lang) if spec and spec.ask else ""
        return (told or question or reason_name(m.reason, self.lang)), False

    def _lack(self, lack: _Lack) -> str:
        return f"{lack.source} [{self._names(lack.facts)}]"

    def _names(self, names: Iterable[str], most: int = NAMES) -> str:
        known = list(names)
        shown = known if self.verbose or len(known) <= most else known[:most]
        rest = len(known) - len(shown)
        return ", ".join(shown) + (f", {label('more_lines', self.lang).format(n=rest)}" if rest else "")

    # --- undecided ------------------------------------------------------------------------

    def undecided(self) -> list[str]:
        """One line for the rules that wait for the same thing: what can be helped first, then by severity."""
        by_rule: dict[str, list[Undecided]] = defaultdict(list)
        for u in filter(self._worth_saying, self.d.undecided):
            by_rule[u.rule.id].append(u)
        by_need: dict[tuple[str, ...], list[list[Undecided]]] = defaultdict(list)
        for _, group in sorted(by_rule.items(), key=lambda item: (-item[1][0].rule.severity.rank, item[0])):
            lacks = self._lacks(m for u in group for m in u.missing)
            by_need[tuple(lack.source for lack in lacks)].append(group)
        ranked = sorted(by_need.values(), key=lambda groups: (self._hopeless(groups), -groups[0][0].rule.severity.rank))
        return [self._waiting(groups) for groups in ranked]

    def _waiting(self, groups: Sequence[Sequence[Undecided]]) -> str:
        titles = [f"{clean(g[0].rule.title.in_(self.lang))}: {self.where([u.subject for u in g])}" for g in groups]
        needs = ", ".join(self.needs(m for g in groups for u in g for m in u.missing))
        shown = titles if self.verbose or len(titles) <= TITLES else titles[:TITLES]
        rest = len(titles) - len(shown)
        more = f"; {label('more_lines', self.lang).format(n=rest)}" if rest else ""
        return f"{'; '.join(shown)}{more}; {label('needs', self.lang)}{needs}"

    def _hopeless(self, groups: Sequence[Sequence[Undecided]]) -> bool:
        return all(status_of(m.reason) == Status.UNSUPPORTED for g in groups for u in g for m in u.missing)

    def _worth_saying(self, u: Undecided) -> bool:
        """Not that a lesser matter could be settled by what nobody gave or no device tells: there is always one."""
        serious = u.rule.severity in (Severity.ERROR, Severity.CRITICAL)
        return self.verbose or serious or any(status_of(m.reason) not in _HOPELESS for m in u.missing)

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
        lines = [self._shown_by(command, group) for command, group in sorted(helped.items(), key=lambda i: -len(i[1]))]
        for (status, detail), facts in sorted(others.items(), key=lambda item: -len(item[1])):
            reason = reason_name(f"{status}: {detail}" if detail else str(status), self.lang)
            lines.append(f"{reason}: {self._names(facts, NAMES + 1)}")
        return lines

    def _shown_by(self, command: str, gaps: Sequence[Gap]) -> str:
        """``sudo gpudiag check shows: kernel log [xid, sxid]; process table [...]``"""
        by_source: dict[str, dict[str, None]] = defaultdict(dict)
        for g in gaps:
            by_source[self.tells(g.fact).split(", ")[0]].setdefault(g.fact)
        listed = sorted(by_source.items(), key=lambda item: -len(item[1]))
        parts = [f"{source} [{self._names(facts)}]" if source else self._names(facts) for source, facts in listed]
        said = label("would_show", self.lang).format(command=command, what="; ".join(parts))
        reasons = dict.fromkeys(clean(g.detail) for g in gaps) if self.verbose else {}
        return said + "".join(f" ({reason})" for reason in reasons)
