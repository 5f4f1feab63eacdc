"""`knowledge.record.dataclass` makes what the standard library makes: the same class is declared by both."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any

import pytest

from knowledge import record
from knowledge.language import Text


def declared(dataclass: Any, *, frozen: bool) -> Any:
    @dataclass(slots=True, frozen=frozen)
    class Reading:
        """A class with one of everything."""

        name: str
        value: float = 0.0
        seen: list[int] = field(default_factory=list, hash=False)
        note: str = field(default="", compare=False, repr=False)

    return Reading


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("args", [("a",), ("a", 1.5, [1], "n"), ("b", float("nan"))])
def test_objects_are_those_of_the_standard_library(args: tuple[Any, ...], frozen: bool) -> None:
    std, ours = declared(dataclasses.dataclass, frozen=frozen), declared(record.dataclass, frozen=frozen)
    theirs, mine = std(*args), ours(*args)
    assert repr(mine) == repr(theirs)
    assert dataclasses.asdict(mine) == dataclasses.asdict(theirs)
    assert (mine == ours(*args)) is (theirs == std(*args))
    assert mine == dataclasses.replace(mine, note="another")
    assert mine != dataclasses.replace(mine, name="c")
    assert mine != theirs
    assert ours.__match_args__ == std.__match_args__
    assert (std.__hash__ is None) is (ours.__hash__ is None)
    if frozen:
        assert hash(mine) == hash(theirs)  # sets keep their order


def test_lists_are_not_shared_and_what_is_missing_is_told() -> None:
    ours = declared(record.dataclass, frozen=False)
    ours("a").seen.append(1)
    assert ours("a").seen == []
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        ours()


def test_a_frozen_one_stays_as_it_is_and_travels() -> None:
    text = Text("a disk", "磁盘")
    with pytest.raises(FrozenInstanceError):
        text.en = "another"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del text.en
    with pytest.raises(AttributeError):
        text.other = 1  # type: ignore[attr-defined]
    assert copy.copy(text) == pickle.loads(pickle.dumps(text)) == text


def test_own_methods_are_kept_and_a_base_gives_its_fields() -> None:
    @record.dataclass(slots=True, frozen=True)
    class Base:
        first: int

        def __repr__(self) -> str:
            return f"<{self.first}>"

    @record.dataclass(slots=True, frozen=True)
    class Derived(Base):
        second: int = 2

    assert repr(Base(1)) == "<1>"
    assert repr(Derived(1)).endswith("Derived(first=1, second=2)")
    assert Derived(1) == Derived(first=1, second=2) != Base(1)
