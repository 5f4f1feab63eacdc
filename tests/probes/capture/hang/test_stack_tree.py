from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.capture.hang.stack_tree import groups, spans, tree

stacks = st.dictionaries(st.integers(0, 30), st.lists(st.sampled_from("abcd"), max_size=6).map(tuple), max_size=12)


def test_the_few_stand_out() -> None:
    many = ("main", "train", "wrapper", "all_reduce")
    held = dict.fromkeys(range(8), many) | {3: ("main", "train", "load", "read")}
    first, last = groups(held)
    assert (first.members, last.members) == ((0, 1, 2, 4, 5, 6, 7), (3,))
    assert tree(held).splitlines() == ["[0-7] main > train", "  [0-2,4-7] wrapper > all_reduce", "  [3] load > read"]


def test_a_run_of_frames_is_shown_by_its_ends() -> None:
    assert tree({0: ("a", "b", "c", "d"), 1: ("a", "b", "c", "d", "e")}) == "[0-1] a > .. > d\n  [1] e"


def test_numbers_as_people_write_them() -> None:
    assert spans([9, 0, 1, 2, 2, 5, 6]) == "0-2,5-6,9"
    assert spans([]) == ""


@given(stacks)
def test_each_rank_is_in_one_group(held: dict[int, tuple[str, ...]]) -> None:
    found = groups(held)
    assert sorted(m for g in found for m in g.members) == sorted(held)
    assert all(held[m] == g.stack for g in found for m in g.members)
    assert [len(g.members) for g in found] == sorted((len(g.members) for g in found), reverse=True)


@given(stacks, st.randoms())
def test_the_order_of_ranks_does_not_matter(held: dict[int, tuple[str, ...]], random: object) -> None:
    turned = dict(sorted(held.items(), key=lambda item: -item[0]))
    assert groups(turned) == groups(held)
    assert tree(turned) == tree(held)


@given(stacks, st.permutations(range(31)))
def test_other_numbers_give_the_same_groups(held: dict[int, tuple[str, ...]], order: list[int]) -> None:
    renamed = {order[m]: s for m, s in held.items()}
    assert {(g.stack, tuple(sorted(order[m] for m in g.members))) for g in groups(held)} == {
        (g.stack, g.members) for g in groups(renamed)
    }


@given(stacks)
def test_the_lines_at_the_root_hold_every_rank_that_has_a_stack(held: dict[int, tuple[str, ...]]) -> None:
    roots = [line for line in tree(held).splitlines() if not line.startswith(" ")]
    assert len(roots) == len({s[0] for s in held.values() if s})


def test_a_tree_without_end_is_cut() -> None:
    wide = {i: (f"root{i}",) for i in range(500)}
    assert tree(wide, most=10).splitlines()[-1] == ".. 490 lines more"
