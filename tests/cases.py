"""Many cases in one test: all are tried, and the test fails once with every case that failed and what differed.

For laws over catalogues and tables, where an item of pytest for each entry would cost more than the law itself.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import pytest

Test = Callable[..., None]
Case = TypeVar("Case")
Way = TypeVar("Way")
Ids = Callable[[Any], object] | Iterable[object]
_SHOWN = 50  # failed cases that are told in full; of more, only the names


class Faults:
    """The cases that failed. ``with Faults() as faults:`` around all of them, ``with faults.of(name):`` around each."""

    def __init__(self) -> None:
        self.tried = 0
        self.found: list[tuple[str, BaseException]] = []

    @contextlib.contextmanager
    def of(self, name: object) -> Iterator[None]:
        """One case: what fails in it is kept, and the next is tried. To skip is a fault: the case was not tried."""
        self.tried += 1
        try:
            yield
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001  # told below
            self.found.append((str(name), error))

    def __enter__(self) -> Faults:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.tell()

    def tell(self) -> None:
        """Fail with all that was found. Without a single case nothing was tested: that fails too."""
        assert self.tried, "there are no cases"
        if self.found:
            told = [f"{name}\n{_what(error)}" for name, error in self.found[:_SHOWN]]
            told += [name for name, _ in self.found[_SHOWN:]]
            raise AssertionError("\n".join([f"{len(self.found)} of {self.tried} cases:", *told])) from self.found[0][1]


def each(
    names: str | Sequence[str], cases: Iterable[Any] | Callable[[], Iterable[Any]], *, ids: Ids | None = None
) -> Callable[[Test], Test]:
    """Like ``pytest.mark.parametrize``, as one test. Cases that cost something are given as a function: it is called
    when the test runs. `tmp_path`, `monkeypatch` and `capsys` are each case's own; other fixtures are shared.
    """
    wanted = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)

    def over(test: Test) -> Test:
        signature = inspect.signature(test)
        missing = set(wanted) - set(signature.parameters)
        assert not missing, f"{test.__name__} takes no {', '.join(sorted(missing))}"

        @wraps(test, updated=())
        def every(*args: Any, **fixtures: Any) -> None:
            with Faults() as faults:
                for number, case in enumerate(cases() if callable(cases) else cases):
                    values = dict(zip(wanted, [case] if len(wanted) == 1 else case, strict=True))
                    with faults.of(_name(values, ids, number)), _own(fixtures, number) as own:
                        test(*args, **own, **values)

        kept = [p for name, p in signature.parameters.items() if name not in wanted]
        every.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # what pytest fills in
        if marks := getattr(test, "pytestmark", None):
            every.pytestmark = list(marks)  # type: ignore[attr-defined]
        return every

    return over


def in_turns(
    cases: Iterable[Case], ways: Sequence[Way], kinds: Callable[[Case], Iterable[Hashable]], share: int
) -> Iterator[tuple[Case, Sequence[Way]]]:
    """Each case with the ways in which it is tried: all of them where it is the first that shows one of its `kinds`; of the
    others one in `share`, another part from one to the next. So all ways meet all kinds, and each way each `share`-th case.
    """
    known: set[Hashable] = set()
    for number, case in enumerate(cases):
        shown = set(kinds(case))
        yield case, ways[number % share :: share] if shown <= known else ways
        known |= shown


@contextlib.contextmanager
def _own(fixtures: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """The fixtures of one case."""
    own = dict(fixtures)
    with contextlib.ExitStack() as after:
        if "tmp_path" in own:
            own["tmp_path"] /= f"case{number}"
            own["tmp_path"].mkdir()
        if "monkeypatch" in own:
            own["monkeypatch"] = after.enter_context(own["monkeypatch"].context())
        if "capsys" in own:
            own["capsys"].readouterr()
        yield own


def _name(values: dict[str, Any], ids: Ids | None, number: int) -> str:
    if ids is None or callable(ids):
        return "-".join(str((ids or _short)(value)) for value in values.values())
    return str(list(ids)[number])


def _short(value: object) -> str:
    text = str(value) if isinstance(value, str | int | float | Path) else repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _what(error: BaseException) -> str:
    """What a case failed with, and the line of the test."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if "tests" in file.parts and file != Path(__file__):
            place = f"{file.name}:{trace.tb_lineno}: "
        trace = trace.tb_next
    said = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return "\n".join(f"    {line}" for line in f"{place}{said}".splitlines()[:20])


def timeless(answer: str) -> str:
    """`answer` without the word that it was seen now or recorded, and without how long ago that was."""
    answer = re.sub(r"\s*(?:\(\d+\s+(?:days|years|h)\s+ago\)|（\d+ [年天小时]+前）)", "", answer)
    return re.sub(r'("seen": )"\w+"|(?:seen|recorded|查看于|记录于) (?=\d{4}-)', r"\1", answer)
