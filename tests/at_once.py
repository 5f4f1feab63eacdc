"""Cases that mostly wait (for a deadline, for a process that does not end), side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.cases import Faults

T = TypeVar("T")
MANY = 6  # few enough that each process still begins soon on two cores


def at_once(law: Callable[[T], None], cases: Iterable[T], *, many: int = MANY) -> None:
    """Try `law` on each case in a thread of its own. All are tried, and the test fails once with all that failed."""
    with ThreadPoolExecutor(many) as threads, Faults() as faults:
        for case, done in [(case, threads.submit(law, case)) for case in cases]:
            with faults.of(case):
                done.result()
