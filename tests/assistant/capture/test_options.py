"""The options of ``gpudiag profile``: what they wish for, and complaints that say what is allowed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.arguments import command_parser
from assistant.capture import options
from assistant.cli import load
from knowledge.errors import UsageError
from probes.capture.model import Item
from tests.conftest import Gpudiag


def parsed(*words: str) -> argparse.Namespace:
    """The arguments of a command line."""
    found: argparse.Namespace = command_parser(load("profile")).parse_args(list(words))
    return found


def test_the_names_of_parts_are_those_of_the_model() -> None:
    assert sorted(options.ITEMS) == sorted(str(i) for i in Item)


def test_the_default() -> None:
    wish = options.wish(parsed("--pid", "1"), "")
    assert wish.items == (Item.STACKS, Item.CPU, Item.TORCH, Item.KERNELS)
    assert not wish.explicit
    assert wish.window.duration_ns == 2 * 10**9
    assert not wish.window.by_iterations


@pytest.mark.parametrize(
    ("words", "check"),
    [
        (("--duration", "500ms"), lambda w: w.window.duration_ns == 5 * 10**8),
        (("--duration", "2s"), lambda w: w.window.duration_ns == 2 * 10**9),
        (("--duration", "750"), lambda w: w.window.duration_ns == 75 * 10**7),
        (("--iterations", "10", "--skip", "2"), lambda w: (w.window.iterations, w.window.skip) == (10, 2)),
        (
            ("--with", "stacks,cpu", "--with", "shapes"),
            lambda w: w.items == (Item.STACKS, Item.CPU, Item.SHAPES) and w.explicit,
        ),
        (("--with", "loss=total_loss"), lambda w: w.items == (Item.LOSS,) and w.loss == "total_loss"),
        (("--anchor", "train:step"), lambda w: w.window.anchor == "train:step"),
        (("--hang",), lambda w: w.hang and not w.injects),
    ],
    ids=["ms", "s", "bare", "iterations", "with", "loss", "anchor", "hang"],
)
def test_what_options_wish_for(words: tuple[str, ...], check: Callable[[object], bool]) -> None:
    assert check(options.wish(parsed("--pid", "1", *words), ""))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--duration", "50ms"), "100ms to 10s"), (("--duration", "11s"), "100ms to 10s"), (("--duration", "nan"), "100ms to 10s"),
        (("--iterations", "0"), "1 to 1000"), (("--with", "stack"), "stacks"), (("--with", "torch=x"), "only loss"),
        (("--with", "loss=a b"), "only loss"), (("--anchor", "step"), "module:function"), (("--duration", "1s", "--iterations", "3"), "two windows"),
        (("--skip", "3"), "--iterations"), (("--hang", "--with", "torch"), "injects nothing"), (("--hang", "--iterations", "3"), "injects nothing"),
    ],
    ids=["short", "long", "nan", "none", "near", "name", "local", "anchor", "both", "skip", "hang-torch", "hang-iterations"],
)  # fmt: skip
def test_what_cannot_be_is_told_with_what_can(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as told:
        options.wish(parsed("--pid", "1", *words), "")
    assert said in str(told.value)


def test_pids_come_in_lists_and_repeated() -> None:
    assert options.pids(parsed("--pid", "1,2", "--pid", "3 2")) == (1, 2, 3)
    with pytest.raises(UsageError, match="--name"):
        options.pids(parsed("--pid", "train.py"))


@given(st.text(max_size=12))
def test_any_word_is_a_duration_or_none(word: str) -> None:
    with suppress(ValueError):
        assert 10**8 <= options.duration(word) <= 10**10


def test_actions_stand_before_and_behind_flags(gpudiag: Gpudiag) -> None:
    for words in (
        ("profile", "list", "--format", "json"),
        ("--format", "json", "profile", "list"),
        ("profile", "--format", "json", "list"),
    ):
        answer = gpudiag(*words)
        assert answer.code == 0, answer.err
        assert '"gpudiag/profile-list/1"' in answer.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("profile",), "--pid"), (("profile", "4242"), "--pid 4242"), (("profile", "--pid", "0"), "no process"),
        (("profile", "--pid", "999999999"), "999999999"), (("profile", "show"), "which capture"), (("profile", "show", "nothing"), "profile list"),
        (("profile", "delete", "nothing", "--yes"), "no capture"), (("profile", "--name", "there-is-no-such-job"), "there-is-no-such-job"),
    ],
    ids=["nobody", "bare-pid", "zero", "gone", "show", "show-none", "delete-none", "no-name"],
)  # fmt: skip
def test_wrong_uses_are_told_in_a_sentence(gpudiag: Gpudiag, words: tuple[str, ...], said: str) -> None:
    answer = gpudiag(*words)
    assert answer.code == 2
    assert said in answer.err
    assert "bug" not in answer.err
    assert not answer.out
