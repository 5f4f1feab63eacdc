"""Laws of the parsers behind the `pci` and `rdma` collectors: whatever a document holds, they say only what stands in it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Scope, Status, Subject, gpu, node
from probes.base import Context, DocumentFormat, best
from probes.parse import pci_snapshot, rdma_snapshot
from probes.registry import formats
from tests.cases import each
from tests.probes.collectors.collecting import collect
from tests.probes.collectors.sysfs_tree import healthy
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

pytestmark = pytest.mark.process


FORMATS = {"pci": pci_snapshot.FORMAT, "rdma": rdma_snapshot.FORMAT}
CONTEXT = Context("-", "gpu-1")
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=30), st.just([]), st.just({}),
    st.lists(st.integers(), max_size=3), st.just({"error": "EACCES: Permission denied"}), st.just({"error": 7}),
    st.just({"skipped": "asleep"}), st.just("\x1b[31m\u202e63"), st.just("-1"), st.just("99999999999999999999999999"),
)  # fmt: skip


@cache
def text_of(name: str) -> str:
    """What the collector prints of a healthy node."""
    with TemporaryDirectory() as folder:
        machine = healthy(Path(folder))
        return collect(name, machine.root, *(("--window", "0.05") if name == "rdma" else ()))


def small(name: str) -> dict[str, Any]:
    """The document with one switch, its GPU and its adapter: quick to parse again and again."""
    data = json.loads(text_of(name))
    if name == "pci":
        data["devices"] = {k: v for k, v in data["devices"].items() if k.startswith("0000:1")}
    else:
        data["adapters"] = {"mlx5_0": data["adapters"]["mlx5_0"]}
    assert isinstance(data, dict)
    return data


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, child in items for p in places(child, (*path, key)))]


def parse(form: DocumentFormat, data: Any) -> list[Observation]:
    return form.parse(json.dumps(data), CONTEXT)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_any_part_may_be_anything(name: str, data: st.DataObject) -> None:
    document = small(name)
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from([p for p in places(document) if p and p != ("schema",)]))
        here = document
        for step in way:
            here = here[step]
        if data.draw(st.booleans()):
            del here[last]
        else:
            here[last] = data.draw(JUNK)
    assert_in_vocabulary(parse(FORMATS[name], document), FORMATS[name])


@pytest.mark.parametrize("name", FORMATS)
@given(share=st.floats(0, 1))
def test_a_document_that_is_cut_says_nothing(name: str, share: float) -> None:
    text = text_of(name)
    assert FORMATS[name].parse(text[: int(share * (len(text) - 3))], CONTEXT) == []


@pytest.mark.parametrize("name", FORMATS)
@given(seed=st.randoms(use_true_random=False))
def test_the_order_of_a_document_says_nothing(name: str, seed: Any) -> None:
    def shuffled(value: Any) -> Any:
        if not isinstance(value, dict):
            return [shuffled(v) for v in value] if isinstance(value, list) else value
        keys = list(value)
        seed.shuffle(keys)
        return {key: shuffled(value[key]) for key in keys}

    form, document = FORMATS[name], small(name)
    other = {"schema": document["schema"], **shuffled({k: v for k, v in document.items() if k != "schema"})}
    assert set(map(repr, parse(form, other))) == set(map(repr, parse(form, document)))


@pytest.mark.parametrize("name", FORMATS)
def test_who_reads_it(name: str) -> None:
    head = text_of(name)[: 64 << 10]
    chosen = best(formats(), head)
    assert chosen is not None
    assert chosen.name == FORMATS[name].name
    assert [f.name for f in formats() if f.sniff(head) == 100] == [name]
    assert FORMATS[name].sniff(head.replace(f"gpudiag/{name}/1", f"gpudiag/{name}/2")) == 0


@pytest.mark.parametrize("name", FORMATS)
def test_the_host_of_the_document_counts_when_nobody_tells_another(name: str) -> None:
    document = small(name) | {"host": "node-7"}
    assert {o.subject.host for o in FORMATS[name].parse(json.dumps(document), Context("-"))} == {"node-7"}
    assert {o.subject.host for o in parse(FORMATS[name], document)} == {"gpu-1"}


def test_an_error_is_told_with_its_remedy() -> None:
    document = small("pci")
    address = next(k for k, v in document["devices"].items() if v["class"] == "0x030200")
    document["devices"][address]["config"] = {"error": "EACCES: Permission denied"}
    document["devices"][address]["aer_dev_fatal"] = {"error": "EIO: Input/output error"}
    found = {(o.fact, o.subject): o for o in parse(pci_snapshot.FORMAT, document)}
    denied = found["gpu.on_bus", gpu(address, "gpu-1")]
    assert (denied.status, denied.detail) == (Status.DENIED, "EACCES: Permission denied: run sudo gpudiag check")
    assert found["pci.aer.count.fatal", Subject(Scope.PCI, address, node("gpu-1"))].status is Status.FAILED


def test_of_a_device_that_did_not_answer_errors_are_not_known_and_of_one_without_counters_there_are_none() -> None:
    document = small("pci")
    address = next(k for k, v in document["devices"].items() if v["class"] == "0x030200")
    device, counts = document["devices"][address], {f"pci.aer.count.{s}" for s in ("correctable", "nonfatal", "fatal")}
    for name in [n for n in device if n.startswith("aer_dev_")]:
        del device[name]
    told = {o.fact for o in parse(pci_snapshot.FORMAT, document) if o.subject.id == address}
    assert counts.isdisjoint(told)
    device["hung"] = f"/sys/bus/pci/devices/{address}/aer_dev_fatal"
    found = [o for o in parse(pci_snapshot.FORMAT, document) if o.subject.id == address and o.fact in counts]
    assert {o.fact for o in found} == counts
    assert {o.status for o in found} == {Status.TIMEOUT}


def others(document: dict[str, Any]) -> Observation:
    (found,) = (o for o in parse(pci_snapshot.FORMAT, document) if o.fact == pci_snapshot.OTHERS)
    return found


def test_that_no_gpu_of_another_vendor_is_there_takes_every_class() -> None:
    assert (others(small("pci")).status, others(small("pci")).value) == (Status.OK, ())
    for change in (["0000:7f:00.0"], "junk", 7):
        document = small("pci")
        document["bus"]["unclassed"] = change
        assert others(document).status is Status.FAILED, "what it is nobody knows"
    document = small("pci")
    address = next(iter(document["devices"]))
    document["devices"][address]["vendor"] = {"error": "EIO: Input/output error"}
    assert (others(document).status, address in others(document).detail) == (Status.FAILED, True)
    document = small("pci")
    document["bus"] = {"hung": "/sys/bus/pci/devices"}
    assert others(document).status is Status.TIMEOUT


def test_a_card_that_nothing_computes_on_may_be_one() -> None:
    document = small("pci")
    screen = {"class": "0x030000", "vendor": "0x1a03", "device": "0x2000", "path": ["0000:7e:00.0"]}
    document["devices"] |= {"0000:7e:00.0": screen, "0000:7d:00.0": screen | {"vendor": "0x1002", "device": "0x73bf"}}
    document["bus"]["unclassed"] = ["0000:7f:00.0"]
    assert others(document).value == ("0000:7d:00.0",), "one is enough, whatever else is not told"


def test_the_collector_names_what_tells_no_class(tmp_path: Path) -> None:
    machine = healthy(tmp_path)
    (machine.pci(machine.nics[0]) / "class").unlink()
    document = json.loads(collect("pci", machine.root))
    assert document["bus"]["unclassed"] == [machine.nics[0]]
    assert others(document).status is Status.FAILED


def test_an_adapter_that_hung_between_its_readings_is_no_adapter_that_does_not_count() -> None:
    document = small("rdma")
    adapter = document["adapters"]["mlx5_0"]
    del adapter["readings"][1]
    del adapter["readings"][0]["until_ns"]
    adapter["readings"][0]["ports"]["1"]["hw_counters"] = {}
    adapter["hung"] = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_buffer"
    subject = Subject(Scope.PORT, "mlx5_0/1", node("gpu-1"))
    found = {(o.fact, o.subject): o for o in parse(rdma_snapshot.FORMAT, document)}
    assert found["port.counters.out_of_buffer", subject].status is Status.TIMEOUT
    assert found["port.counters.symbol_error", subject].value == 0
    assert found["port.traffic.rx", subject].status is Status.TIMEOUT


@each(
    ("text", "value"),
    [("5 GT/s", 5.0), ("16.0 GT/s PCIe", 16.0), ("2.5 GT/s PCIe", 2.5), ("Unknown", None), ("64.0 GT/s PCIe", 64.0)],
)
def test_speeds_as_kernels_print_them(text: str, value: float | None) -> None:
    document = small("pci")
    address = next(k for k, v in document["devices"].items() if v["class"] == "0x030200")
    document["devices"][address]["current_link_speed"] = text
    facts = {(o.fact, o.subject): o.value for o in parse(pci_snapshot.FORMAT, document)}
    assert facts["pci.link.speed", Subject(Scope.PCI, address, node("gpu-1"))] == value
