"""GPUs of other vendors, joined from the bus, the drivers and the tools: which there are, and whose health nothing told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive import derive
from knowledge.derive.vendor import JUDGED_BY, enrich
from knowledge.facts import vocabulary
from knowledge.observation import Event, Observation, Origin, Scope, Source, Status, Subject, Value, gpu, node
from tests.cases import each
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

N = node("n1")
A, B, C = "0000:05:00.0", "0000:15:00.0", "0000:65:00.0"


def told(fact: str, value: Value | Event, on: Subject, status: Status = Status.OK, call: str = "c") -> Observation:
    why = "" if status in (Status.OK, Status.NONE_SEEN) else "why"
    return Observation(fact, on, value if status is Status.OK else None, status, Source("p", call), detail=why)


def bus(address: str, vendor: str = "amd", *, bound: bool | None = None, class_: str = "") -> list[Observation]:
    """What the bus tells of a device."""
    device = Subject(Scope.PCI, address, N)
    out = [told("pci.accelerator", vendor, device)]
    out += [] if bound is None else [told("pci.accelerator.bound", bound, device)]
    return [*out, told("pci.class", class_, device)] if class_ else out


def derived(batch: list[Observation]) -> dict[tuple[str, str], Any]:
    found = [o for o in enrich(batch) if o.origin is Origin.DERIVED]
    assert_in_vocabulary(found)
    return {(o.fact, o.subject.id): o.value for o in found}


def node_facts(batch: list[Observation]) -> dict[str, Any]:
    return {f.removeprefix("node.gpus."): v for (f, _), v in derived(batch).items() if f.startswith("node.")}


def test_what_only_the_bus_tells_of_is_not_judged() -> None:
    found = derived([*bus(A), *bus(B, "huawei")])
    assert (found["gpu.vendor", A], found["gpu.vendor", B]) == ("amd", "huawei")
    assert node_facts([*bus(A), *bus(B)]) == {"other": (A, B), "not_judged": (A, B)}


@pytest.mark.parametrize("fact", JUDGED_BY)
def test_one_answer_judges(fact: str) -> None:
    value: Value = 0 if fact == "gpu.ras.uncorrected" else "ok"
    batch = [*bus(A), *bus(B), told(fact, value, gpu(A, "n1"))]
    assert node_facts(batch)["not_judged"] == (B,)


@each("status", [s for s in Status if not s.answered])
def test_no_answer_judges_nothing(status: Status) -> None:
    batch = [*bus(A), told("gpu.ras.uncorrected", None, gpu(A, "n1"), status)]
    assert node_facts(batch)["not_judged"] == (A,)


def test_a_card_without_error_counters_is_judged() -> None:
    batch = [*bus(A), told("gpu.ras.uncorrected", None, gpu(A, "n1"), Status.NOT_APPLICABLE)]
    assert node_facts(batch)["not_judged"] == ()


def test_a_state_that_is_unknown_is_no_answer() -> None:
    assert node_facts([*bus(A), told("gpu.health.state", "unknown", gpu(A, "n1"))])["not_judged"] == (A,)


def test_a_card_for_the_screen_beside_gpus_of_nvidia_is_not_asked_about() -> None:
    screen = bus(A, "amd", class_="VGA compatible controller")
    assert node_facts([*screen, told("node.pci.gpu_count", 8, N)])["not_judged"] == ()
    assert node_facts([*screen, told("node.pci.gpu_count", 0, N)])["not_judged"] == (A,)
    assert node_facts([*bus(A, class_="Processing accelerators"), told("node.pci.gpu_count", 8, N)])["not_judged"] == (
        A,
    )


def test_devices_without_a_driver() -> None:
    assert node_facts([*bus(A, bound=True), *bus(B, bound=False), *bus(C)])["unbound"] == (B,)
    assert "unbound" not in node_facts(bus(A))  # a listing without drivers


def test_what_the_vendors_list_does_not_have() -> None:
    listed = told("gpu.vendor_index", "amd:0", gpu(A, "n1"))
    assert node_facts([*bus(A), *bus(B), listed])["unlisted"] == (B,)
    assert node_facts([*bus(A), *bus(B, "intel"), listed])["unlisted"] == ()  # of another vendor nobody was asked
    assert "unlisted" not in node_facts([*bus(A), *bus(B)])
    assert "unlisted" not in node_facts([told("gpu.vendor", "amd", gpu(A, "n1")), listed])


def test_a_log_tells_whose_a_gpu_is_and_asks_no_health() -> None:
    event = told("amdgpu_lost", Event(None, {"text": "device lost from bus!"}), gpu(A, "n1"))
    assert derived([event]) == {("gpu.vendor", A): "amd"}


def test_a_node_with_nvidia_alone_gets_nothing() -> None:
    batch = [
        told("node.pci.gpu_count", 8, N),
        told("gpu.vendor", "nvidia", gpu(A, "n1")),
        told("gpu.index", 0, gpu(A, "n1")),
    ]
    assert enrich(batch) == batch


def test_that_no_other_gpu_is_there_takes_a_bus_that_was_read_whole() -> None:
    clear, count = told("node.pci.other_gpus", (), N), told("node.pci.gpu_count", 8, N)
    assert derived([clear, count]) == {("node.gpus.other", "n1"): ()}
    for batch in (
        [clear], [count], [clear, told("node.pci.gpu_count", 0, N)], [clear, told("node.gpu.count", 8, N)],
        [told("node.pci.other_gpus", None, N, Status.TIMEOUT), count], [told("node.pci.other_gpus", (A,), N), count],
        [clear, told("node.pci.gpu_count", 8, node("n2"))],
    ):  # fmt: skip
        assert derived(batch) == {}
    assert node_facts([clear, count, *bus(A)])["other"] == (A,), "what is there beats what is not"


def test_a_record_of_the_past_is_no_device() -> None:
    past = told("pci.accelerator", "amd", Subject(Scope.PCI, A, N), call="history:2026-03-03")
    assert enrich([past]) == [past]


def test_two_nodes_are_two() -> None:
    other = [Observation(o.fact, Subject(Scope.PCI, A, node("n2")), o.value, source=o.source) for o in bus(A)]
    found = [o for o in enrich([*bus(A), *other]) if o.fact == "node.gpus.not_judged"]
    assert [(o.subject.host, o.value) for o in found] == [("n1", (A,)), ("n2", (A,))]


PIECES = st.lists(
    st.sampled_from([
        *bus(A, bound=True), *bus(B, bound=False), *bus(C, "intel", class_="VGA compatible controller"),
        told("gpu.vendor_index", "amd:0", gpu(A, "n1")), told("gpu.ras.uncorrected", 0, gpu(A, "n1")),
        told("gpu.ras.uncorrected", None, gpu(B, "n1"), Status.TIMEOUT), told("gpu.health.state", "ok", gpu(C, "n1")),
        told("node.pci.gpu_count", 8, N), told("gpu.vendor", "amd", gpu("amd:3", "n1")), told("node.pci.other_gpus", (), N),
        told("intel_gpu_wedged", Event(None, {"text": "x"}), gpu(C, "n1")),
    ]), max_size=12,
)  # fmt: skip


@given(PIECES)
def test_to_derive_twice_adds_nothing(batch: list[Observation]) -> None:
    once = enrich(batch)
    assert enrich(once) == once
    keys = [(o.fact, o.subject) for o in once if o.origin is Origin.DERIVED]
    assert len(keys) == len(set(keys))


@given(PIECES)
def test_not_judged_are_some_of_the_others(batch: list[Observation]) -> None:
    found = node_facts(batch)
    for name in ("not_judged", "unbound", "unlisted"):
        assert set(found.get(name, ())) <= set(found.get("other", ()))


def test_the_whole_chain_derives_them_too() -> None:
    found = {o.fact for o in derive(bus(A))}
    assert {"gpu.vendor", "node.gpus.other", "node.gpus.not_judged"} <= found
    assert all(vocabulary()[f].derived for f in ("node.gpus.other", "node.gpus.not_judged", "node.gpus.unlisted"))
