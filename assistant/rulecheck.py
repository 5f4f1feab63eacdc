"""Checking rules: lint with the probes' registry, tests with the real parsers. Rules and probes meet only here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path

from assistant.exits import Exit
from assistant.output import write
from assistant.sources import parse_text, provided
from knowledge import yamlfile
from knowledge.errors import Fault, FaultsError, InputError, UnknownNameError
from knowledge.facts import vocabulary
from knowledge.record import dataclass
from rules import lint as whole
from rules import loader, testing
from rules.loader import CATALOG, RuleSet
from rules.model import Rule

ROOT = Path(loader.__file__).parent.parent


def file_of(rule: Rule) -> Path:
    """The file that a rule was read from."""
    path = Path(rule.file)
    return path if path.is_absolute() else ROOT / path


# --- lint ---------------------------------------------------------------------------------


def lint(named: Sequence[Path], packs: Sequence[Path]) -> int:
    """Print every fault; exit code 2 for faults in named files or in the shipped catalogue.

    Without `named` the shipped catalogue is checked, what parsers and probes promise to it, and the configured
    `packs`, whose faults of style are warnings (a pack that cannot be loaded is a fault everywhere).
    """
    for path in named:
        if not path.exists():
            raise InputError(f"{path} does not exist", hint="rules lint takes rule files, packs and site files")
    count, faults = check(named or [CATALOG])
    faults += [] if named else promised()
    warnings: list[Fault] = []
    for pack in [] if named else packs:
        n, found = check([pack])
        count += n
        warnings += [f for f in found if f not in faults]
    for fault in faults:
        write(f"{_shown(fault)}\n")
    for fault in warnings:
        write(f"{_shown(fault)} [warning: site pack]\n")
    write(f"{count} files, {len(faults)} faults, {len(warnings)} warnings\n")
    return Exit.OK if count and not faults else Exit.USAGE


def check(paths: Sequence[Path]) -> tuple[int, list[Fault]]:
    """How many files were checked, and every fault in them: what hides behind another fault is found all the same."""
    files = [f.resolve() for p in paths for f in (loader.rule_files(p) if p.is_dir() else [p])]
    if not files:
        return 0, [Fault(str(p), 1, 1, "holds no rule files (*.yaml)") for p in paths]
    found = _Read()
    for file in files:
        found.take(file)
    return len(files), sorted({*found.faults, *_set_faults(found, files)})


@dataclass(slots=True)
class _Read:
    """What was read of the files that are checked, and what is wrong with each alone."""

    rules: dict[str, Rule] = field(default_factory=dict)  # by id, as far as they can be read
    faults: list[Fault] = field(default_factory=list)
    faulty: dict[str, Collection[yamlfile.Path_]] = field(default_factory=dict)  # by file: what cannot
    named: set[str] = field(default_factory=set)  # rules of which nothing can

    def take(self, file: Path) -> None:
        """Read one file: a rule, or a site file, which is checked as one."""
        document, rule = loader.read_partly(file)
        if isinstance(document.data, list):
            self.faults += _of_site(file)
            return
        self.faults += document.faults
        if rule is None:
            self.named.add(file.stem)
        elif rule.id in self.rules:
            message = f"rule {rule.id!r} is already defined in {self.rules[rule.id].file}"
            self.faults.append(Fault(document.file, *document.at(("id",)), message))
        else:
            self.rules[rule.id] = rule
            self.faulty[rule.file] = document.faulty


def _of_site(file: Path) -> Sequence[Fault]:
    try:
        loader.load(site=file)
    except FaultsError as error:
        return error.faults
    return ()


def _set_faults(found: _Read, files: Collection[Path]) -> list[Fault]:
    """Faults of pages, tests and the graph. What is laid over the catalogue is checked with it."""
    if not found.rules:
        return []
    own = {rule.file for rule in found.rules.values()}
    beside = [r for r in _sound_shipped(set(files)) if r.id not in found.rules]
    faults = whole.lint([*beside, *found.rules.values()], provided(), _runbooks(), found.faulty, found.named)
    return [f for f in faults if f.file in own]


def _sound_shipped(checked: Collection[Path]) -> list[Rule]:
    """The other shipped rules that can be read; their own faults are another run's business."""
    others = set(loader.rule_files(CATALOG)) - set(checked)
    if not others:
        return []
    try:
        return [rule for rule in loader.load().rules if file_of(rule) in others]
    except FaultsError:
        read = (loader.read_file(path)[1] for path in sorted(others))
        return [rule for rule in read if rule is not None]


def promised() -> list[Fault]:
    """The facts that a parser or a probe says it provides, and that the vocabulary lacks."""
    from assistant import formats
    from probes.live import probes

    told = {f"probes/parse/{entry.module}.py": entry.provides for entry in formats.index()}
    told |= {f"probes/live/{probe.name.replace('-', '_')}.py": probe.provides for probe in probes()}
    return [
        Fault(file, _line(file, name), 1, f"provides {name!r}, which is no fact", _nearest(name))
        for file, provides in told.items()
        for name in provides
        if name not in vocabulary()
    ]


def _nearest(name: str) -> str:
    near = vocabulary().nearest(name)
    return f"the nearest is {near!r}" if near else ""


def _line(file: str, word: str) -> int:
    """Where a word stands in a file of ours; the first line, where it is put together or stands in a helper."""
    try:
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return 1
    return next((number for number, line in enumerate(lines, 1) if word in line), 1)


def _runbooks() -> frozenset[str]:
    from knowledge import runbook

    return frozenset(path.stem for folder in runbook.folders() for path in folder.glob("*.md"))


def _shown(fault: Fault) -> Fault:
    """The place as the user would type it from here."""
    path = Path(fault.file)
    here = Path.cwd()
    return replace(fault, file=str(path.relative_to(here))) if path.is_relative_to(here) else fault


# --- tests --------------------------------------------------------------------------------


def test(ruleset: RuleSet, ids: Iterable[str], mutate: bool) -> int:
    """Run the rules' own cases with the real parsers; exit code 2 for failures, or when there is nothing to run."""
    chosen = _chosen(ruleset, list(ids))
    outcomes = testing.run(chosen, parse_text)
    failed = [o for o in outcomes if not o.passed]
    for o in failed:
        write(f"{o.rule}: {o.case}: {o.problem}\n")
    survivors = testing.mutate(chosen, parse_text) if mutate and not failed else []
    for s in survivors:
        write(f"{s.rule}: {s.path} {s.change}: no test notices\n")
    if mutate and not failed:
        write(f"{len(survivors)} mutants survived\n")
    if not outcomes:
        write(f"no cases were found in {len(chosen)} rules: nothing was tested\n")
    write(f"{len(chosen)} rules\n{len(outcomes) - len(failed)} passed, {len(failed)} failed\n")
    return Exit.OK if outcomes and not failed and not survivors else Exit.USAGE


def _chosen(ruleset: RuleSet, ids: Sequence[str]) -> list[Rule]:
    known = {r.id: r for r in ruleset.rules}
    for name in ids:
        if name not in known:
            raise UnknownNameError("rule", name, known)
    return [known[name] for name in ids] if ids else list(ruleset.rules)
