"""All formats that gpudiag reads: every module of `probes.parse` that exports ``FORMAT``.

The folder is the registry; a module whose name starts with an underscore is a helper.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

import probes.parse
from knowledge.exports import unlike
from probes.base import DocumentFormat, Format, LogFormat, best, last_named, leading, scored
from probes.parse._json import loaded


@cache
def formats() -> tuple[Format, ...]:
    """Every format, ordered by name. AttributeError when a module exports none."""
    return _load(_modules())


@cache
def document_formats() -> tuple[DocumentFormat, ...]:
    """The formats that are read as a whole."""
    return tuple(format_ for format_ in formats() if isinstance(format_, DocumentFormat))


@cache
def log_formats() -> tuple[LogFormat, ...]:
    """The formats of which lines are read.

    Only modules whose text names `LogFormat` are imported: a log is the common input, and the
    patterns of thirty document formats would cost more than reading it.
    """
    folder = Path(probes.parse.__path__[0])
    names = [n for n in _modules() if b"LogFormat(" in (folder / f"{n}.py").read_bytes()]
    return tuple(format_ for format_ in _load(names) if isinstance(format_, LogFormat))


def _modules() -> list[str]:
    return sorted(info.name for info in pkgutil.iter_modules(probes.parse.__path__) if not info.name.startswith("_"))


def _load(names: list[str]) -> tuple[Format, ...]:
    return exported(importlib.import_module(f"{probes.parse.__name__}.{name}") for name in names)


def exported(modules: Iterable[ModuleType]) -> tuple[Format, ...]:
    """The formats of these modules, ordered by name. TwinsError when two have one name, or know a text by the same sign."""
    found: list[tuple[str, Format]] = [(module.__name__, module.FORMAT) for module in modules]
    own = {"name": "are called {!r}", "sniff": "recognise a text by the same function"}
    return tuple(sorted(unlike(found, "formats", own), key=lambda format_: format_.name))


HEADLINE = 100  # the certainty of a document that is known by its own headline
SEVERAL = "output-bundle"  # a file of several outputs, of which some may be logs
LOG = 40  # the certainty from which a log format knows the file, and not a word in it
# How a line of a syslog, a kernel log or an exported journal begins.
_STAMPED = re.compile(
    r"(?m)^(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\[ {0,12}\d{1,12}\.\d{3,9}\]|\[[A-Z][a-z]{2} [A-Z][a-z]{2} "
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\d{1,3},\d{1,12},\d{1,16},|\{(?=[^\n]{0,4000}\"MESSAGE\"))[^\n]*\n?"
)


def sniff(head: str) -> Format | None:
    """The format that recognises the first 64 KiB of an input; None when none does.

    Logs quote everything. In a file that is a log, a document is known by what stands between the
    log lines, and by more than one sentence there unless that is its headline.
    """
    scores = scored(formats(), head)
    found = last_named(leading(scores))
    logs = [(score, form) for score, form in scores if isinstance(form, LogFormat)]
    log = last_named(leading(logs))
    sure = max((score for score, _ in logs), default=0)
    if not isinstance(found, DocumentFormat) or log is None or sure < LOG or found.name == SEVERAL:
        return found
    if found.timed is not None and found.timed(head):
        return found
    between = _STAMPED.sub("", head)
    document = best(document_formats(), between)
    if document is None or document.sniff(between) < sure:
        return log
    return log if _is_one_sentence(document, between) and not _is_within(log, document, between) else document


# NAMESPACE   NAME        READY   STATUS             RESTARTS       AGE
_GAP = re.compile(r"\s{2,}|\t")
_CELLS = 4  # of a heading that is no sentence


def _is_within(log: Format, document: Format, text: str) -> bool:
    """Whether all that the log is known by stands within the document: in a single value of JSON, or in rows below the heading that the
    text begins with.
    """
    if (said := text.strip()).startswith(("[", "{")):
        try:
            return loaded(said) is not None
        except (ValueError, RecursionError):
            return False
    heading, *below = [line for line in text.splitlines()[:2000] if line.strip()]
    if len(_GAP.split(heading.strip())) < _CELLS or document.sniff(heading) < document.sniff(text):
        return False
    return all(len(_GAP.split(line.strip())) >= _CELLS for line in below if log.sniff(line) >= LOG)


def _is_one_sentence(document: Format, text: str) -> bool:
    """Whether a line alone, which is no headline, is all that the document is known by."""
    score = document.sniff(text)
    return score < HEADLINE and any(document.sniff(line) >= score for line in text.splitlines()[:2000] if line)
