"""States over several looks: what came back, what was lost, and what is no sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive import derive
from knowledge.observation import Clock, Event, Observation, Scope, Source, Subject, Value, gpu, node

PORT = Subject(Scope.PORT, "mlx5_3/1", node("n1"))
HOUR = 3600 * 10**9


def looks(
    values: Sequence[Value], fact: str = "port.state", on: Subject = PORT, *, timed: bool = True
) -> list[Observation]:
    return [
        Observation(fact, on, v, source=Source("ibstat", f"{i}.txt", 5, order=i + 1), at=i * HOUR if timed else None,
                    clock=Clock.LOCAL if timed else Clock.NONE)
        for i, v in enumerate(values)
    ]  # fmt: skip


def changes(batch: Sequence[Observation]) -> list[Event]:
    return [o.value for o in derive(batch) if o.fact.endswith("_state_change") and isinstance(o.value, Event)]


@given(st.lists(st.sampled_from(["active", "down", "unknown"]), min_size=2, max_size=6))
def test_a_port_is_told_to_be_back_when_it_is_and_was_not(values: list[str]) -> None:
    known = [v for v in values if v != "unknown"]
    found = changes(looks(values))
    assert len(found) == (known[-1:] == ["active"] and "down" in known)
    assert all((e.get("was"), e.get("now")) == ("down", "active") for e in found)


def test_files_without_times_are_a_sequence_only_where_an_address_is_the_same_in_both() -> None:
    found = looks(["down", "active"], timed=False)
    assert not changes(found)
    for second, back in ((12, True), (13, False)):
        other = Subject(Scope.PORT, "mlx5_0/1", node("n1"))
        lids = [
            Observation("port.lid", other, lid, source=o.source) for lid, o in zip((12, second), found, strict=True)
        ]
        batch = derive([*found, *lids])
        assert sum(o.fact == "port_state_change" and isinstance(o.value, Event) for o in batch) == back
        assert [o.value for o in batch if o.fact == "port.state"] == (["active"] if back else ["down", "active"])


def test_of_files_without_times_the_gpu_is_lost_that_only_the_earlier_names() -> None:
    def batch(second: str) -> list[Observation]:
        counts = looks([3, len(second)], "node.gpu.listed", node("n1"), timed=False)
        return [*counts, *(Observation("gpu.name", gpu(f"GPU-{g}", "n1"), "A40", source=o.source)
                           for o, names in zip(counts, ("abc", second), strict=True) for g in names)]  # fmt: skip

    (event,) = changes(batch("ac"))
    assert (event.get("back"), event.get("lost")) == (False, "GPU-b")
    for other in ("abc", "a", "xy", "ax"):  # all; one, asked for; another machine; a board that was not there
        assert not changes(batch(other))


def test_of_two_gpus_one_is_lost_and_of_many_one_may_have_been_asked_for() -> None:
    for values, excerpt, lost in (([2, 1], "", 1), ([8, 1], "", 0), ([8, 1], "1 GPUs listed", 1)):
        counts = [replace(o, excerpt=excerpt) for o in looks(values, "node.gpu.listed", node("n1"))]
        assert len(changes(counts)) == lost, (values, excerpt)


def test_one_text_without_times_is_read_from_top_to_bottom() -> None:
    text = [
        Observation("port.state", PORT, v, source=Source("ibstat", "paste.txt", n))
        for v, n in (("active", 22), ("down", 6))
    ]
    (event,) = changes(text)
    assert event.get("since") is None


def test_gpus_that_are_fewer_than_before_were_lost_and_as_many_are_back() -> None:
    assert [e.get("back") for e in changes(looks([8, 7], "node.gpu.count", node("n1")))] == [False]
    assert [e.get("back") for e in changes(looks([7, 8], "node.gpu.count", node("n1")))] == [True]
    assert not changes(looks([8, 8], "node.gpu.count", node("n1")))


def test_files_of_two_machines_that_name_none_are_no_sequence() -> None:
    boards = [
        Observation("gpu.uuid", gpu("0000:3b:00.0"), f"GPU-{i}", source=Source("nvidia-smi-q", f"{i}.txt", 1))
        for i in range(2)
    ]
    assert not changes([*looks([8, 4], "node.gpu.count", node()), *boards])


def test_slurm_has_many_words_for_a_node_that_is_held() -> None:
    for word in ("DOWN*", "IDLE+DRAIN", "drng", "MIXED+DRAIN+NOT_RESPONDING", "FAILING"):
        assert bool(changes(looks([word, "IDLE"], "node.slurm.state", node("n1"))))
