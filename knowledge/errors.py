"""Every error that gpudiag raises on purpose.

::

    GpudiagError                 one sentence: what, where, what to do
    ├── UsageError               asked wrongly                       (exit 2)
    │   ├── InputError           a file that cannot be read          (exit 2)
    │   └── ConfigError          a setting that cannot be used       (exit 2)
    ├── UnknownNameError         a name that no table holds          (exit 2)
    ├── TwinsError               two modules that take one place     (exit 2)
    └── FaultsError              data files with faults, all at once (exit 2)

    UndeclaredFactError          a bug of gpudiag's own              (exit 70)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from knowledge.record import dataclass


class GpudiagError(Exception):
    """An expected failure. ``hint`` says what to do about it; ``zh`` and ``hint_zh`` are the same in Chinese."""

    def __init__(self, message: str, *, hint: str = "", zh: str = "", hint_zh: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.zh, self.hint_zh = zh, hint_zh

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message

    def in_(self, language: str) -> str:
        """As it is shown in a language; in English, where it was written in no other."""
        if language != "zh" or not self.zh:
            return str(self)
        hint = self.hint_zh or self.hint
        return f"{self.zh}\n  {hint}" if hint else self.zh


class UsageError(GpudiagError):
    """The request itself cannot be served."""


class InputError(UsageError):
    """A file or stream cannot be read."""


class ConfigError(UsageError):
    """A setting cannot be used; the message names the file or variable."""


class UnknownNameError(GpudiagError):
    """A name that does not exist; the hint lists the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, kind_zh: str = "") -> None:
        known = tuple(known)
        hint, hint_zh = nearest_hint(name, known), nearest_hint(name, known, lang="zh")
        zh = f"没有名为 {name!r} 的{kind_zh or f' {kind}'}"
        super().__init__(f"no {kind} named {name!r}", hint=hint, zh=zh, hint_zh=hint_zh)


class UndeclaredFactError(Exception):
    """A parser, a probe or a derivation tells a fact that the vocabulary does not hold.

    It is no `GpudiagError`: nobody asked wrongly, and whoever handles those must not make an answer of it.
    """

    def __init__(self, fact: str, source: str, nearest: str) -> None:
        hint = f"; the nearest is {nearest!r}" if nearest else ""
        super().__init__(f"{source or 'something'} tells {fact!r}, which is no fact{hint}")


class TwinsError(GpudiagError):
    """Two modules of a folder that is a list export what only one may: both are named."""


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing that is wrong in a data file, with its place (1-based line and column)."""

    file: str
    line: int
    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        tail = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {self.message}{tail}"


class FaultsError(GpudiagError):
    """All faults of the files that were read; never only the first one."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(sorted(faults))
        count = len(self.faults)
        head = f"{count} fault{'s' if count != 1 else ''}"
        super().__init__("\n".join([head, *map(str, self.faults)]))


def alike(name: object, other: object) -> bool:
    """Whether one of two words may be a misspelt form of the other."""
    import difflib

    return bool(difflib.get_close_matches(str(name), [str(other)], cutoff=0.6))


def nearest_hint(name: str, known: Iterable[str], limit: int = 3, lang: str = "en") -> str:
    """``"did you mean a, b?"`` for the names closest to `name`, or what is allowed if few."""
    import difflib  # only a wrong name needs it: a tenth of the start of `explain`

    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=limit, cutoff=0.6)
    if close:
        said = ", ".join(close)
        return f"是否指 {said}？" if lang == "zh" else f"did you mean {said}?"
    if names and len(names) <= 12:
        return ("可用：" if lang == "zh" else "allowed: ") + ", ".join(names)
    return ""
