"""A capture that is looked at: its raw document, the machine at the same time, and what the rules conclude from both.

The same record gives the same answer, now and later: nothing of it is kept but what was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.observation import Observation, Scope, Status, Subject
from knowledge.record import dataclass
from knowledge.text import clean
from probes.capture import manifest
from probes.capture.subjects import process_subject, script

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.diagnosis import Diagnosis
    from assistant.machine import Look
    from probes.capture.model import Target
    from rules.engine import Finding
    from rules.loader import RuleSet

NO_LOOK = Text("nothing is known of the machine at the same time", "当时机器的情况未知")
AREA = "capture"  # of rules/catalog: about how a job spends its time, as seen while it runs


@dataclass(frozen=True, slots=True)
class Seen:
    """One capture."""

    folder: Path
    document: Mapping[str, Any]
    targets: tuple[tuple[Target, Mapping[str, Any]], ...]  # with their rows of the document
    diagnosis: Diagnosis
    observations: tuple[Observation, ...]

    @property
    def id(self) -> str:
        """What the capture is called."""
        return clean(str(self.document.get("id") or self.folder.name))

    @property
    def seconds(self) -> float:
        """Length of the window."""
        window = manifest.mapping(self.document.get("window"))
        return max(0, manifest.whole(window.get("ended")) - manifest.whole(window.get("began"))) / 1e9

    @property
    def traces(self) -> list[Path]:
        """The profiler traces that lie there."""
        named = [str(p.get("file") or "") for _, row in self.targets for p in manifest.rows(row.get("parts"))]
        found = (manifest.trace_path(self.folder, name) for name in dict.fromkeys(named))
        return [p for p in found if p is not None and p.name.endswith((".json", ".json.gz"))]

    def of(self, fact: str, subject: Subject) -> Any:
        """The value of a fact; None where there is none."""
        found = self.diagnosis.facts.current(fact, subject)
        return found.value if found is not None and found.status is Status.OK else None

    def process(self, pid: int) -> Subject:
        """The subject of a process of this capture."""
        return process_subject(pid, str(self.document.get("host") or ""))

    @property
    def about(self) -> Diagnosis:
        """What was found about those that were captured, with the verdict that follows from it."""
        from assistant.diagnosis import about

        ours = self._ours()
        return about(self.diagnosis, [f for f in self.diagnosis.findings if f.id in ours])

    @property
    def elsewhere(self) -> tuple[Finding, ...]:
        """What else was found on the machine, and explains nothing of it."""
        ours = self._ours()
        return tuple(f for f in self.diagnosis.roots if f.id not in ours)

    def _ours(self) -> set[str]:
        """Ids of findings about the processes, their ranks, jobs and GPUs, and of those that may explain one."""
        hosts = {self.process(0).parent}
        about = {self.process(p.pid) for t, _ in self.targets for p in (t.process, *t.helpers)}
        about |= {s for t, _ in self.targets for s in _part_of(t, str(self.document.get("host") or ""))}
        findings = self.diagnosis.findings
        ours = {f.id for f in findings if f.rule.area == AREA or about.intersection(f.subject.ancestors()) - hosts}
        while more := {f.id for f in findings if f.id not in ours and ours.intersection((*f.explains, *f.may_explain))}:
            ours |= more
        return ours

    def jobs(self) -> list[Subject]:
        """The jobs that anything is known of."""
        return sorted(self.diagnosis.facts.subjects(Scope.JOB), key=str)


def _part_of(target: Target, host: str) -> list[Subject]:
    """The job, the rank and the GPUs of a target."""
    from knowledge.observation import gpu
    from probes.capture.subjects import job_subject, rank_subject

    found = [job_subject(target, host), rank_subject(target, host), *(gpu(pci, host) for pci in target.gpus)]
    return [s for s in found if s is not None]


def called(target: Target, lang: str = "en") -> str:
    """``rank 1 (pid 4243)``; ``python (pid 4243)`` for what is no rank."""
    who = (
        f"rank {target.rank}" if target.rank is not None else clean(script(target) or target.process.name or "process")
    )
    return f"{who}（pid {target.process.pid}）" if lang == "zh" else f"{who} (pid {target.process.pid})"


def load(folder: Path, settings: Settings) -> Seen:
    """The record in `folder`, concluded from again. InputError when it cannot be read."""
    document = manifest.read(folder)
    place = folder if folder.is_dir() else folder.parent
    return conclude(place, document, settings, _machine(place))


def _machine(folder: Path) -> Look | None:
    """The machine at the same time, where it was recorded."""
    from assistant import machine

    path = folder / manifest.MACHINE
    if not path.is_file():
        return None
    try:
        return machine.bundle(str(path))[1]
    except GpudiagError:  # the capture speaks for itself
        return None


@cache
def _rules(packs: tuple[Path, ...], site_file: Path | None) -> RuleSet:
    """The rules in force: a list of captures asks for them again and again."""
    from rules.loader import load as load_rules

    return load_rules(packs, site_file)


def conclude(folder: Path, document: Mapping[str, Any], settings: Settings, look: Look | None) -> Seen:
    """What follows from a capture, together with what the machine told at the same time."""
    from assistant.diagnosis import Question, diagnose
    from probes.capture import facts

    asked = Question(
        ("capture.enough",),
        Text(
            "Nothing that slows it was seen in {capture.window.seconds} s.",
            "在 {capture.window.seconds} 秒内未发现拖慢它的因素。",
        ),
        Text("Nothing could be seen of what was asked about", "未能看到所询问对象的任何信息"),
    )
    host = str(document.get("host") or "")
    told = facts.observations(document, folder, host, source=manifest.NAME)
    found = diagnose(
        [*(look.observations if look else []), *told],
        _rules(settings.rules.packs, settings.rules.site_file),
        notes=look.notes if look else (NO_LOOK.in_(settings.output.lang),),
        sources=[str(folder / manifest.NAME)],
        question=asked,
    )
    return Seen(folder, document, tuple(manifest.targets(document)), found, tuple(told))
