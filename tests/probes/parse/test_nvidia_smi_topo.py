from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Scope, Status
from probes.parse.nvidia_smi_topo import FORMAT
from tests.probes.parse.smi_case import (
    CONTEXT,
    all_of,
    capture,
    check_any,
    check_cut,
    one,
    parse,
    shuffled_lines,
    status,
    value,
)  # fmt: skip

NAMES = ("smi/topo.txt", "smi/topo-p2p.txt")


def test_each_pair_stands_once_under_its_device_names() -> None:
    got = parse(FORMAT, NAMES[0])
    assert {o.subject.id: o.value for o in got if o.fact.endswith(".peer.path")} == {
        "GPU0-GPU1": "nvlink", "GPU0-mlx5_0": "pix", "GPU0-mlx5_bond_1": "sys", "GPU1-mlx5_0": "sys",
        "GPU1-mlx5_bond_1": "sys", "mlx5_0-mlx5_bond_1": "sys",
    }  # fmt: skip
    assert value(got, "gpu.peer.nvlinks", "GPU0-GPU1") == 18
    assert one(got, "gpu.peer.path").subject.scope is Scope.LINK
    assert one(got, "gpu.peer.path").subject.host == "node-a"


def test_affinities_and_the_nearest_adapters() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "gpu.numa", "index:0") == 0
    assert status(got, "gpu.numa", "index:1") is Status.UNSUPPORTED
    assert value(got, "gpu.cpu_affinity", "index:0") == "0-55,112-167"
    assert [o.value for o in all_of(got, "gpu.nearest_nic", "index:0")] == ["nic:mlx5_0"]
    assert {o.value for o in all_of(got, "gpu.nearest_nic", "index:1")} == {"nic:mlx5_0", "nic:mlx5_bond_1"}
    assert value(got, "node.gpu.listed") == 2


def test_peer_access_is_another_matrix() -> None:
    got = parse(FORMAT, NAMES[1])
    assert value(got, "gpu.peer.p2p") == "ok"
    assert not all_of(got, "gpu.peer.path")


def test_a_path_that_is_not_known_is_no_path() -> None:
    got = FORMAT.parse(capture(NAMES[0]).replace("NV18", "QX7"), CONTEXT)
    assert status(got, "gpu.peer.path", "GPU0-GPU1") is Status.FAILED


def test_columns_set_with_blanks() -> None:
    text = capture(NAMES[0]).replace("\x1b[4m", "").replace("\x1b[0m", "").expandtabs(8)
    assert {o.value for o in FORMAT.parse(text, CONTEXT) if o.fact == "gpu.peer.path"} == {"nvlink"}


def test_recognition() -> None:
    assert [FORMAT.sniff(capture(name)) for name in NAMES] == [100, 100]
    for other in ("smi/nvlink-s.txt", "smi/dmon.txt", "smi/hopper-590-sick.txt", "smi/table-590-mig.txt"):
        assert FORMAT.sniff(capture(other)) == 0, other


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
def test_any_cut_is_answered(name: str, at: int) -> None:
    check_cut(FORMAT, name, at)


@given(shuffled_lines(NAMES))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)


def _matrix(*rows: str) -> str:
    """A matrix of GPUs from the words of each row, ``X`` on the diagonal."""
    head = "\t" + "\t".join(f"GPU{i}" for i in range(len(rows)))
    return "\n".join([head, *(f"GPU{i}\t" + "\t".join(row.split()) for i, row in enumerate(rows))]) + "\n"


def test_the_gpu_with_fewer_links_than_most_is_told_and_none_where_nobody_is_odd() -> None:
    def short(*rows: str) -> list[object]:
        return [o.value for o in all_of(FORMAT.parse(_matrix(*rows), CONTEXT), "gpu.peer.nvlinks.short")]

    assert short("X NV18 NV18 NV16", "NV18 X NV18 NV16", "NV18 NV18 X NV16", "NV16 NV16 NV16 X") == [0, 0, 0, 2]
    assert short("X NV4 SYS SYS", "NV4 X SYS SYS", "SYS SYS X NV4", "SYS SYS NV4 X") == [0, 0, 0, 0]  # two bridges
    assert (
        short("X NV4 SYS SYS", "NV4 X SYS SYS", "SYS SYS X PHB", "SYS SYS PHB X") == []
    )  # one bridge, by design or not
    assert short("X NV18", "NV18 X") == []
