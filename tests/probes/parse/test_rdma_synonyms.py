"""RDMA counters of drivers other than mlx5: the same facts under other names."""

from __future__ import annotations

import json

from knowledge.observation import Status
from probes.base import Context
from probes.parse._rdma_counters import HARDWARE, SYNONYMS
from probes.parse.rdma_snapshot import FORMAT
from tests.cases import each
from tests.probes.parse.smi_case import all_of, status


def document(**counters: str) -> str:
    reading = {"monotonic_ns": 10**9, "until_ns": 1, "ports": {"1": {"counters": {}, "hw_counters": counters}}}
    port = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "link_layer": "Ethernet"}
    adapters = {"bnxt_re0": {"ports": {"1": port}, "readings": [reading]}}
    return json.dumps(
        {"schema": "gpudiag/rdma/1", "at_ns": 10**18, "monotonic_ns": 10**9, "host": "n7", "adapters": adapters}
    )


@each(("listed", "name"), [(listed, name) for listed, names in SYNONYMS.items() for name in names])
def test_another_name_is_the_same_fact(listed: str, name: str) -> None:
    got = FORMAT.parse(document(**{name: "41"}), Context("x"))
    (found,) = all_of(got, HARDWARE[listed])
    assert (found.value, found.excerpt) == (41, f"{name} 41")
    assert str(found.source).endswith(f"/hw_counters/{name}")


def test_the_name_of_mlx5_comes_first_and_what_is_not_counted_is_told_once() -> None:
    got = FORMAT.parse(document(np_cnp_sent="5", tx_cnp_pkts="7"), Context("x"))
    assert [o.value for o in all_of(got, "port.counters.np_cnp_sent")] == [5]
    assert status(got, "port.counters.rp_cnp_handled") is Status.UNSUPPORTED


def test_names_mean_one_thing() -> None:
    names = [name for names in SYNONYMS.values() for name in names]
    assert len(names) == len(set(names))
    assert not set(names) & set(HARDWARE)
    assert set(SYNONYMS) <= set(HARDWARE)
