"""Folders that are lists: a module that takes what another one has is told when they are found, with both names."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from knowledge.errors import TwinsError
from probes import active, live, registry
from probes.base import DocumentFormat, Format, LogFormat, surest
from tests.cases import Faults
from tui import screens

CAPTURES = Path(__file__).parent / "captures"


def module(name: str, **exports: Any) -> ModuleType:
    """A module that exports something."""
    made = ModuleType(f"somewhere.{name}")
    vars(made).update(exports)
    return made


def document(name: str, sign: str, sure: int = 50) -> DocumentFormat:
    return DocumentFormat(name, name, 1, (), lambda head: sure if sign in head else 0, lambda *_: [])


def clash(found: Callable[[], object]) -> str:
    with pytest.raises(TwinsError) as caught:
        found()
    return caught.value.message


# --- names and digits ---------------------------------------------------------------------


def test_two_formats_of_one_name_and_two_that_know_a_text_by_one_sign() -> None:
    a, b = document("one", "A"), document("two", "B")
    modules = [module("b", FORMAT=b), module("a", FORMAT=a)]
    assert registry.exported(modules) == (a, b), "in the order of their names"
    twin = module("c", FORMAT=replace(a, sniff=b.sniff))
    assert clash(lambda: registry.exported([*modules, twin])).splitlines() == [
        "two formats are called 'one': somewhere.a and somewhere.c",
        "two formats recognise a text by the same function: somewhere.b and somewhere.c",
    ]


def test_two_probes_and_two_active_tests_of_one_name() -> None:
    probe, other = live.probes()[:2]
    assert live.exported([module("b", PROBE=other), module("a", PROBE=probe)]) == (probe, other)
    said = clash(lambda: live.exported([module("a", PROBE=probe), module("b", PROBE=replace(other, name=probe.name))]))
    assert said == f"two probes are called {probe.name!r}: somewhere.a and somewhere.b"
    one, two, *_ = active.tests()
    assert set(active.exported([module("a", TESTS=[one]), module("b", TEST=two)])) == {one, two}
    again = module("b", TESTS=[two, two._replace(name=one.name)])
    said = clash(lambda: active.exported([module("a", TEST=one), again]))
    assert said == f"two active tests are called {one.name!r}: somewhere.a and somewhere.b"


def test_two_screens_with_one_digit_and_one_with_that_of_the_chat() -> None:
    one, two, *_ = screens.screens()
    assert screens.exported([module("b", SCREEN=two), module("a", SCREEN=one)]) == (one, two)
    twins = [module("a", SCREEN=one), module("b", SCREEN=two._replace(place=one.place))]
    assert (
        clash(lambda: screens.exported(twins)) == f"two screens have the digit {one.place}: somewhere.a and somewhere.b"
    )
    twins = [module("a", SCREEN=one), module("b", SCREEN=two._replace(name=one.name))]
    assert clash(lambda: screens.exported(twins)) == f"two screens are called {one.name!r}: somewhere.a and somewhere.b"
    for place in (0, 1, 10):
        lost = module("a", SCREEN=one._replace(place=place))
        assert f"somewhere.a has place {place}" in clash(lambda lost=lost: screens.exported([lost]))  # type: ignore[misc]


# --- one text, one format -----------------------------------------------------------------


def rivals(formats: Sequence[Format], head: str) -> list[Format]:
    """The formats of which only their names decide whose a text is. Logs have no owner: all log formats read each."""
    top = surest(formats, head)
    return top if len(top) > 1 and not all(isinstance(f, LogFormat) for f in top) else []


@pytest.mark.slow
def test_every_sample_is_recognised_by_one_document_format_before_all_others() -> None:
    with Faults() as faults:
        for path in (p for p in sorted(CAPTURES.rglob("*")) if p.is_file()):
            data = path.read_bytes()
            text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
            with faults.of(path.relative_to(CAPTURES)):
                found = rivals(registry.formats(), text[:65_536])
                assert not found, " and ".join(f"{Path(f.sniff.__code__.co_filename).name} ({f.name})" for f in found)


def test_the_certainty_is_the_order_of_formats() -> None:
    log = LogFormat("log", "a log", 1, (), lambda head: 50 * ("sign" in head), (), lambda *_: [])
    a, b = document("a", "sign"), document("b", "sign")
    assert rivals([a, b], "a sign") == [a, b]
    assert rivals([a, log], "a sign") == [a, log]
    assert rivals([a, document("b", "sign", 51)], "a sign") == []
    assert rivals([log, replace(log, name="other")], "a sign") == []
    assert rivals([a, b], "nothing") == []
