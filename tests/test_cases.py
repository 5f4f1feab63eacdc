"""Many cases in one test: none is left out, and none that fails is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases import Faults, each


def test_every_case_is_tried_and_every_fault_is_told() -> None:
    tried = []

    @each(("name", "value"), [("one", 1), ("two", 0), ("three", 3), ("four", 0)])
    def law(name: str, value: int) -> None:
        tried.append(name)
        assert value, f"{name} is nothing"

    with pytest.raises(AssertionError) as told:
        law()
    assert tried == ["one", "two", "three", "four"]
    assert "2 of 4 cases" in str(told.value)
    assert "two-0" in str(told.value)
    assert "four is nothing" in str(told.value)
    assert "one-1" not in str(told.value)
    assert f"{Path(__file__).name}:" in str(told.value)


def test_an_error_is_a_fault_like_a_failed_assertion() -> None:
    @each("value", [0, 1], ids=["zero", "one"])
    def law(value: int) -> None:
        assert 1 // value

    with pytest.raises(AssertionError, match=r"1 of 2 cases:\nzero\n.*ZeroDivisionError"):
        law()


def test_a_case_that_fails_or_skips_in_words_of_pytest_is_a_fault() -> None:
    says: tuple[Callable[[str], object], ...] = (pytest.fail, pytest.skip)
    for say in says:
        faults = Faults()
        with faults.of("this"):
            say("not now")
        with pytest.raises(AssertionError, match=r"1 of 1 cases:\nthis\n.*not now"):
            faults.tell()


def test_no_case_is_no_test() -> None:
    @each("value", list)
    def law(value: int) -> None:
        assert value

    with pytest.raises(AssertionError, match="there are no cases"):
        law()


def test_cases_that_are_a_function_are_made_when_the_test_runs() -> None:
    made = []

    def cases() -> list[int]:
        made.append(1)
        return [1, 2]

    @each("value", cases)
    def law(value: int) -> None:
        assert value

    assert not made
    law()
    law()
    assert made == [1, 1]


def test_an_error_outside_of_a_case_is_told_as_it_is() -> None:
    def law() -> None:
        with Faults() as faults:
            with faults.of("this"):
                raise ValueError
            raise KeyError

    with pytest.raises(KeyError):
        law()


@each("name", ["a", "b"])
@each("value", [1, 2])
def test_each_case_has_fixtures_of_its_own(
    name: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import os

    assert not list(tmp_path.iterdir())
    assert "GPUDIAG_CASE" not in os.environ
    (tmp_path / name).touch()
    monkeypatch.setenv("GPUDIAG_CASE", str(value))
    print(name)
    assert capsys.readouterr().out == f"{name}\n"


class TestInAClass:
    """The law of a class is one too."""

    @each("value", [1, 2])
    @pytest.mark.parametrize("more", [1, 2])
    def test_each_may_stand_beside_parameters(self, value: int, more: int) -> None:
        assert value + more
