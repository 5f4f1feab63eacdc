"""Where and when a job fails: what differs between two sides is heard in any order, and what does not differ is not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.contrasts import behind
from assistant.intent.parse import understand

ONE = st.sampled_from(("on one node", "within a node", "on a single node", "inside one machine"))
MANY = st.sampled_from(("on two nodes", "across two nodes", "over 4 nodes", "across nodes", "between nodes"))
FINE = st.sampled_from(("works", "runs fine", "is fine"))
FAILS = st.sampled_from(("fails", "hangs", "times out", "crashes"))


def told(sentence: str) -> dict[str, object]:
    return {o.fact: o.value for o in understand(sentence).observations if o.fact.startswith("job.")}


@given(fine=FINE, one=ONE, fails=FAILS, many=MANY)
def test_fine_within_a_node_and_failing_between_several_is_one_contrast(
    fine: str, one: str, fails: str, many: str
) -> None:
    """Whatever the words for either side."""
    assert told(f"nccl {fine} {one} but {fails} {many}") == {"job.fails.across_nodes": True}


@given(fine=FINE, one=ONE, many=MANY)
def test_what_works_on_both_sides_is_no_contrast(fine: str, one: str, many: str) -> None:
    """Nothing fails, so nothing is told to."""
    assert told(f"nccl {fine} {one} and {fine} {many}") == {}


@given(rank=st.integers(0, 4095), at=st.integers(10, 99_998), ahead=st.integers(1, 1000))
def test_the_rank_with_the_smaller_number_is_behind(rank: int, at: int, ahead: int) -> None:
    """And the one that is ahead is not."""
    said = behind(f"rank {rank} last enqueued {at} others {at + ahead}")
    assert said is not None
    assert said.value == rank
    assert behind(f"rank {rank} last enqueued {at + ahead} others {at}") is None


def test_a_change_counts_where_something_is_wrong() -> None:
    """A change by itself is none of the trouble."""
    assert told("training crashes since the driver update") == {"job.fails.since_change": "driver"}
    assert told("两台新机器加进来以后训练变慢了") == {"job.fails.since_change": "nodes"}
    for text in (
        "we moved the job to another hall and now it is slow",
        "same job, different rack, half the throughput",
        "任务换到另一个机柜之后变慢了",
    ):
        assert told(text) == {"job.fails.since_change": "nodes"}
    assert told("what is new since the driver update") == {}


def test_it_is_a_same_step_only_where_every_run_stops_there() -> None:
    """Once at a step says nothing."""
    assert told("it hangs at step 4000 every time") == {"job.fails.at_same_step": True}
    assert told("训练跑到第 5000 步必卡") == {"job.fails.at_same_step": True}
    assert told("it hung at step 4000") == {}


@given(st.sampled_from((13, 31, 43)), st.integers(2, 512))
def test_one_of_many_nodes_with_the_same_program_is_the_node(code: int, nodes: int) -> None:
    """In both languages; where all of them have it, it is not."""
    for sentence in (
        f"xid {code} on only one node out of {nodes}, same code everywhere. hw or my kernel?",
        f"xid {code} only on node 7, other {nodes} nodes run the same code fine",
        f"{nodes} 台里只有一台报 xid {code}，代码一样",
    ):
        assert told(sentence) == {"job.fails.on_one_node": True}, sentence
    assert told(f"xid {code} on all {nodes} nodes, same code. hw or my kernel?") == {}
