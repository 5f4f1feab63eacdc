"""Files and folders of runbooks: the shipped ones, and a site's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from knowledge import compiled
from knowledge.errors import Fault
from knowledge.runbook import FOLDER
from knowledge.schema.runbook import Checks, read
from knowledge.schema.runbook_flow import NOWHERE, Leads, leads_of


def read_folder(
    folder: Path, elsewhere: Iterable[str] = (), checks: Checks | None = None
) -> tuple[list[dict[str, Any]], list[Fault]]:
    """Every ``*.md`` of `folder` as plain data, and all faults.

    `elsewhere` holds ids of runbooks that do not stand in this folder but may be named by ``on_failure``.
    """
    paths = sorted(folder.glob("*.md"))
    known = frozenset(path.stem for path in paths) | frozenset(elsewhere)
    entries: list[dict[str, Any]] = []
    faults: list[Fault] = []
    leads = leads_of([*(FOLDER.glob("*.md") if checks is not None else ()), *paths])
    for path in paths:
        entry, found = read_file(path, known, checks, leads)
        faults.extend(found)
        if entry is not None:
            entries.append(entry)
    return entries, faults


def read_file(
    path: Path, known: frozenset[str], checks: Checks | None = None, leads: Leads = NOWHERE
) -> tuple[dict[str, Any] | None, list[Fault]]:
    """One file; None when it cannot be read at all."""
    inside = path.is_relative_to(compiled.ROOT.parent)
    shown = str(path.relative_to(compiled.ROOT.parent)) if inside else str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return None, [Fault(shown, 1, 1, f"cannot be read: {error}")]
    return read(text, shown, known, checks, leads)


def read_site(
    folders: Sequence[Path], shipped: Iterable[str]
) -> tuple[dict[str, tuple[str, dict[str, Any]]], list[Fault]]:
    """The sound runbooks of a site by id, each with its file, and the faults of the others.

    A folder that is not there is a fault: somebody believes that its runbooks count.
    """
    files = [path for folder in folders for path in sorted(folder.glob("*.md"))]
    faults = [Fault(str(f), 1, 1, "the folder of runbooks cannot be read") for f in folders if not f.is_dir()]
    known = frozenset(shipped) | frozenset(path.stem for path in files)
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for path in files:
        entry, wrong = read_file(path, known)
        faults.extend(wrong)
        if entry is not None and not wrong:
            found[path.stem] = (str(path), entry)
    return found, faults
