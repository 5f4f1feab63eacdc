"""Plans: what is done to each target, by which way, what is not and why, and what it costs. Pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.language import Text
from probes.capture import plan
from probes.capture.model import (
    GENTLE,
    INJECTED,
    LEAST_MS,
    MOST_MS,
    Item,
    Outcome,
    Process,
    Refusal,
    Rung,
    Target,
    Window,
)

items = st.sets(st.sampled_from(list(Item))).map(tuple)
refusals = st.sampled_from([
    Refusal("tracer", Text("another process traces it", "被其他进程跟踪")), Refusal("no-cuda", Text("it uses no GPU", "未使用 GPU")),
    Refusal("no-torch", Text("no torch", "没有 torch")), Refusal("state-d", Text("it waits in the kernel", "在内核中等待")),
])  # fmt: skip
ways = st.one_of(
    st.just(()), refusals, st.lists(st.sampled_from([Rung.PENDING_CALL, Rung.GDB]), unique=True).map(tuple)
)
surveys = st.builds(plan.Survey, st.dictionaries(st.sampled_from(list(Item)), refusals, max_size=4), ways)
windows = st.builds(Window, iterations=st.integers(0, 20), skip=st.integers(0, 3))


def target(pid: int = 4242) -> Target:
    """A process."""
    return Target(Process(pid, 1, "python"))


def test_the_default_needs_no_consent_and_says_what_would() -> None:
    made = plan.make(plan.Wish(), [target()], {4242: plan.Survey({}, (Rung.PENDING_CALL, Rung.GDB))})
    assert made.injects
    assert made.targets[0].gentle == (Item.STACKS, Item.CPU)
    assert made.targets[0].injected == (Item.TORCH, Item.KERNELS)
    assert [s.rung for s in made.targets[0].steps] == [Rung.PY_SPY, Rung.PROC, Rung.PENDING_CALL, Rung.PENDING_CALL]
    assert [c.item for c in made.costs if c.stall_ms > 0] == [Item.TORCH, Item.KERNELS]
    without = plan.gentle(made)
    assert not without.injects
    assert {p.outcome for p in without.targets[0].left_out()} == {Outcome.DECLINED}
    assert not any(c.stall_ms for c in without.costs)


def test_what_a_target_has_nothing_of_is_left_out_quietly_unless_it_was_named() -> None:
    survey = {4242: plan.Survey({Item.KERNELS: Refusal("no-cuda", Text("it uses no GPU"))}, (Rung.GDB,))}
    assert Item.KERNELS not in [s.item for s in plan.make(plan.Wish(), [target()], survey).targets[0].steps]
    named = plan.make(plan.Wish((Item.KERNELS,), explicit=True), [target()], survey).targets[0]
    assert [(p.item, p.outcome) for p in named.left_out()] == [(Item.KERNELS, Outcome.REFUSED)]


def test_iterations_become_time_where_they_cannot_be_counted() -> None:
    wish = plan.Wish((Item.STACKS,), Window(iterations=10, skip=2))
    assert plan.make(wish, [target()], {4242: plan.Survey({}, (Rung.GDB,))}).window.iterations == 10
    assert plan.make(wish, [target()], {4242: plan.Survey({}, ())}).window.iterations == 0
    assert plan.gentle(plan.make(wish, [target()], {4242: plan.Survey({}, (Rung.GDB,))})).window.iterations == 0


def test_only_the_hang_path_injects_nothing() -> None:
    made = plan.make(plan.Wish(hang=True), [target()], {4242: plan.Survey({}, (Rung.GDB,))})
    assert not made.injects
    assert set(made.items) <= GENTLE


@given(items, surveys, windows, st.booleans())
def test_nothing_runs_that_was_not_asked_for_or_was_refused(
    asked: tuple[Item, ...], survey: plan.Survey, window: Window, explicit: bool
) -> None:
    made = plan.make(plan.Wish(asked, window, explicit=explicit), [target()], {4242: survey})
    one = made.targets[0]
    assert set(one.gentle) | set(one.injected) <= set(plan.whole(asked))
    assert not set(survey.refused) & (set(one.gentle) | set(one.injected))
    assert isinstance(survey.ways, tuple) or not one.injected
    told = {s.item for s in one.steps}
    assert told <= set(plan.whole(asked))
    assert told == set(plan.whole(asked)) or not explicit
    assert {p.item for p in one.left_out()}.isdisjoint((*one.gentle, *one.injected))
    assert all(p.why for p in one.left_out())


@given(items, surveys, windows)
def test_without_consent_nothing_runs_inside_and_the_rest_stays(
    asked: tuple[Item, ...], survey: plan.Survey, window: Window
) -> None:
    made = plan.make(plan.Wish(asked, window), [target()], {4242: survey})
    without = plan.gentle(made)
    assert not without.injects
    assert not without.targets[0].injected
    assert without.targets[0].gentle == made.targets[0].gentle
    assert without.window.iterations == 0
    assert plan.gentle(without) == without


@given(items)
def test_needs_are_closed_and_in_order(asked: tuple[Item, ...]) -> None:
    closed = plan.whole(asked)
    assert set(asked) <= set(closed)
    assert plan.whole(closed) == closed
    assert list(closed) == [i for i in Item if i in closed]
    assert set(closed) & INJECTED or set(closed) <= GENTLE


@pytest.mark.parametrize("item", list(Item), ids=str)
def test_each_part_states_its_cost_in_both_languages(item: Item) -> None:
    cost = plan.cost(item)
    assert cost.says.en
    assert cost.says.zh
    assert (cost.stall_ms > 0) <= (item in INJECTED)
    assert plan.cost(item, 1000).stall_ms == cost.stall_ms


@given(st.integers(0, 20_000), st.integers(-1, 2000), st.integers(-1, 200_000))
def test_windows_that_cannot_be_are_told(ms: int, iterations: int, skip: int) -> None:
    fault = plan.window_fault(Window(ms * 1_000_000, iterations, skip))
    good = LEAST_MS <= ms <= MOST_MS and 0 <= iterations <= 1000 and 0 <= skip <= 100_000
    assert bool(fault) != good
