"""Which known issues a finding may be: its signature and the versions that were seen match a row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from knowledge.known_issues import COMPONENTS, KnownIssue, known_issues
from knowledge.language import Text
from knowledge.observation import Event, Scope, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rules.engine import Finding
    from rules.factbase import FactBase


class Known(NamedTuple):
    """A row, and the version here that has it."""

    issue: KnownIssue
    version: str

    def words(self, lang: str) -> str:
        """``NCCL 2.18.1: a hang of ...; fixed in 2.18.3 (https://...)``."""
        i = self.issue
        parts_en, parts_zh = (
            [f"{i.product} {self.version}: {i.symptom.en}"],
            [f"{i.product} {self.version}：{i.symptom.zh}"],
        )
        if i.fixed_in:
            parts_en.append(f"fixed in {', '.join(i.fixed_in)}")
            parts_zh.append(f"已修复于 {'、'.join(i.fixed_in)}")
        if i.workaround:
            parts_en.append(i.workaround.en)
            parts_zh.append(i.workaround.zh)
        return Text(f"{'; '.join(parts_en)} ({i.source})", f"{'；'.join(parts_zh)}（{i.source}）").in_(lang)


def known(finding: Finding, facts: FactBase) -> tuple[Known, ...]:
    """The rows that `finding` may be, where the version is known and the source speaks of it."""
    return tuple(_matching(finding, facts))


def _matching(f: Finding, facts: FactBase) -> Iterator[Known]:
    for issue in known_issues():
        if f.rule.id not in issue.rules or not _coded(f, issue) or not _on(f, issue, facts):
            continue
        affected = next((v for v in _versions(f, issue, facts) if issue.affects(v)), "")
        if affected:
            yield Known(issue, affected)


def _coded(f: Finding, issue: KnownIssue) -> bool:
    if issue.words and not any(issue.words in f"{o.value}".lower() for o in f.events):
        return False
    return not issue.codes or any(isinstance(o.value, Event) and o.value.code in issue.codes for o in f.events)


def _on(f: Finding, issue: KnownIssue, facts: FactBase) -> bool:
    """Whether the GPUs of the finding's node are of the models that the source names; not known is no."""
    if not issue.gpus:
        return True
    gpus = [s for s in facts.subjects(Scope.GPU) if _near(f, s.host)]
    names = (facts.current("gpu.name", s) for s in gpus)
    return any(o is not None and o.status is Status.OK and re.search(issue.gpus, str(o.value)) for o in names)


def _versions(f: Finding, issue: KnownIssue, facts: FactBase) -> Iterator[str]:
    for name in COMPONENTS[issue.component][1]:
        for subject in facts.subjects(facts.vocabulary[name].scope):
            o = facts.current(name, subject)
            if o is None or o.status is not Status.OK or not _near(f, subject.host):
                continue
            yield from o.value if isinstance(o.value, tuple) else (str(o.value),)


def _near(f: Finding, host: str) -> bool:
    return not host or not f.subject.host or host == f.subject.host
