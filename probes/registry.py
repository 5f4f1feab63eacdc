"""All formats that gpudiag reads: every module of `probes.parse` that exports ``FORMAT``.

The folder is the registry; a module whose name starts with an underscore is a helper.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

import probes.parse
from probes.base import DocumentFormat, Format, LogFormat, best


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
    modules = [importlib.import_module(f"{probes.parse.__name__}.{name}") for name in names]
    found: list[Format] = [module.FORMAT for module in modules]
    return tuple(sorted(found, key=lambda format_: format_.name))


def sniff(head: str) -> Format | None:
    """The format that recognises the first 64 KiB of an input; None when none does."""
    return best(formats(), head)
