"""Checking rules: lint with the probes' registry, tests with the real parsers. Rules and probes meet only here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assistant.exits import Exit
from assistant.output import write
from assistant.sources import parse_text, provided
from knowledge.errors import Fault, FaultsError, InputError, UnknownNameError
from knowledge.facts import vocabulary
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

    Without `named` the shipped catalogue is checked, and the configured `packs`, whose
    faults of style are warnings (a pack that cannot be loaded is a fault everywhere).
    """
    for path in named:
        if not path.exists():
            raise InputError(f"{path} does not exist", hint="rules lint takes rule files, packs and site files")
    count, faults = check(named or [CATALOG])
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
    """How many files were checked, and every fault in them."""
    files = [f.resolve() for p in paths for f in (loader.rule_files(p) if p.is_dir() else [p])]
    if not files:
        return 0, [Fault(str(p), 1, 1, "holds no rule files (*.yaml)") for p in paths]
    faults: list[Fault] = []
    plain: dict[str, tuple[str, dict[str, Any]]] = {}
    for file in files:
        faults += _shape(file, plain)
    if not faults or plain:
        faults += _set_faults(plain)
    return len(files), sorted(set(faults))


def _shape(file: Path, plain: dict[str, tuple[str, dict[str, Any]]]) -> list[Fault]:
    """Faults of one file alone; a sound rule is added to `plain`, a site file is checked as one."""
    document, rule = loader.read_file(file)
    if isinstance(document.data, list):
        try:
            loader.load(site=file)
        except FaultsError as error:
            return list(error.faults)
        return []
    if rule is None or document.faults:
        return document.faults
    if rule.id in plain:
        return [Fault(document.file, 1, 1, f"rule {rule.id!r} is already defined in {plain[rule.id][0]}")]
    plain[rule.id] = (document.file, document.data)
    return []


def _set_faults(plain: Mapping[str, tuple[str, dict[str, Any]]]) -> list[Fault]:
    """Faults that show only beside the other rules: what is laid over the catalogue is checked with it."""
    own = {file for file, _ in plain.values()}
    everything = {**_sound_shipped(), **plain}
    built = [rule for file, data in everything.values() if (rule := _built(file, data))]
    return [f for f in whole.lint(built, provided(), _runbooks()) if f.file in own]


def _sound_shipped() -> dict[str, tuple[str, dict[str, Any]]]:
    """The shipped rules that can be read; their own faults are another run's business."""
    out = {}
    for path in loader.rule_files(CATALOG):
        document, rule = loader.read_file(path)
        if rule is not None and not document.faults:
            out[rule.id] = (document.file, document.data)
    return out


def _built(file: str, data: Mapping[str, Any]) -> Rule | None:
    return loader.build(data, file, vocabulary(), lambda _path, _message, _hint: None, {})


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
