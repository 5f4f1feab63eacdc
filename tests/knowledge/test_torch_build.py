"""Code and GPUs that run it, what PyTorch's builds hold, and what DCGM and the device plugin need."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from knowledge.compatibility import (
    architecture,
    device_plugin,
    driver_for_dcgm,
    numbers,
    published_architectures,
    runs_on,
)  # fmt: skip
from knowledge.compiled import shard
from knowledge.derive import derive
from knowledge.observation import Observation, Scope, Source, Status, Subject, gpu, node
from tests.cases import each

FACT = "gpu.torch.has_kernels"
HOST = "n1"
B200, H200 = gpu("0000:3b:00.0", HOST), gpu("0000:5d:00.0", HOST)
BOARDS = {"5.3", "6.2", "7.2", "8.7", "10.1", "11.0"}
majors, minors = st.integers(5, 13), st.integers(0, 9)


@each(
    ("architectures", "capability", "expected"),
    [
        (("sm_80",), "8.0", True),
        (("sm_80",), "8.9", True),  # its minor number and later ones
        (("sm_86",), "8.0", False),
        (("sm_50", "sm_80", "sm_90"), "10.0", False),
        (("sm_90", "compute_90"), "10.0", True),  # PTX is translated
        (("sm_90", "compute_90"), "8.9", False),  # but not back
        (("sm_90a",), "9.0", True),
        (("sm_90a", "compute_90a"), "10.0", False),  # a: that one alone
        (("sm_100f",), "10.3", True),
        (("sm_100f",), "12.0", False),
        (("sm_120",), "12.1", True),
        (("sm_80",), "8.7", None),  # a board
        (("sm_87",), "8.7", True),
        (("sm_87",), "8.9", False),
        (("gfx90a",), "9.0", None),
        (("sm_80", "gfx90a"), "8.6", True),
        ((), "9.0", None),
        (("sm_90",), "", None),
        (("sm_90",), "9", None),
    ],
)
def test_what_code_runs_on(architectures: Sequence[str], capability: str, expected: bool | None) -> None:
    assert runs_on(architectures, capability) is expected


@given(majors, minors)
def test_code_for_a_gpu_runs_on_it(major: int, minor: int) -> None:
    for word in ("sm_{}{}", "compute_{}{}", "sm_{}{}a"):
        assert runs_on([word.format(major, minor)], f"{major}.{minor}") is True


@given(
    st.lists(st.tuples(majors, minors), min_size=1, max_size=6), st.tuples(majors, minors), st.tuples(majors, minors)
)
def test_more_code_runs_on_no_fewer_gpus(
    have: list[tuple[int, int]], more: tuple[int, int], on: tuple[int, int]
) -> None:
    built, capability = [f"sm_{a}{b}" for a, b in have], f"{on[0]}.{on[1]}"
    if runs_on(built, capability):
        assert runs_on([*built, "compute_{}{}".format(*more)], capability)


@given(st.lists(st.text(max_size=12), max_size=4), st.text(max_size=6))
def test_words_that_mean_nothing_decide_nothing(words: list[str], capability: str) -> None:
    if not any(w.startswith(("sm_", "compute_")) for w in words):
        assert runs_on(words, capability) is None


def test_published_lists_are_of_releases_only() -> None:
    volta = published_architectures("2.8.0+cu128", "12.8")
    assert volta is not None
    assert runs_on(volta, "7.0")
    assert not runs_on(published_architectures("2.7.1", "12.6") or (), "12.0")
    for version in ("2.6.0a0+df5bbc09d1.nv24.12", "2.6.0+git1234", "2.99.0", "", "2.6"):
        assert published_architectures(version, "12.4") is None
    assert published_architectures("2.6.0", "99.1") is None
    assert published_architectures("2.6.0", "12") is None


def test_rows_for_pytorch_agree_with_what_cuda_can_compile() -> None:
    rows = [row for row in shard("compatibility") if row["kind"] == "torch"]
    assert len(rows) > 10
    for row in rows:
        for word in row["architectures"]:
            digits = word.partition("_")[2]
            known = architecture(f"{digits[:-1]}.{digits[-1]}")
            assert known is None or numbers(known.cuda) <= numbers(row["cuda"]), (row["id"], word)


def test_dcgm_and_the_device_plugin() -> None:
    assert driver_for_dcgm("3.1.6") == "450.80.02"
    assert driver_for_dcgm("4.5.2") == "450"
    assert driver_for_dcgm("2.4.7") == "418"
    assert driver_for_dcgm("3.9.9") is driver_for_dcgm("") is None
    plugin = device_plugin("v0.17.1")
    assert plugin is not None
    assert (plugin.driver, plugin.toolkit) == ("384.81", "1.7.0")
    assert device_plugin("1.0.0-beta4") is None


def seen(fact: str, value: object, on: Subject, status: Status = Status.OK) -> Observation:
    return Observation(fact, on, value, status, Source("stack-snapshot", "maps"))  # type: ignore[arg-type]


def process(pid: int) -> Subject:
    return Subject(Scope.PROCESS, str(pid), node(HOST))


def job(pid: int, *architectures: str, uses: Subject = B200) -> list[Observation]:
    return [
        seen("process.uses_gpu", f"gpu:{uses.id}", process(pid)),
        seen("process.torch.architectures", architectures, process(pid)),
    ]


def answers(*batch: Observation) -> dict[str, object]:
    gpus = [seen("gpu.compute_capability", "10.0", B200), seen("gpu.name", "NVIDIA H200", H200)]
    return {o.subject.id: o.value for o in derive([*gpus, *batch]) if o.fact == FACT}


def test_a_program_is_held_against_the_gpu_that_it_uses_and_no_other() -> None:
    assert answers(*job(7, "sm_80", "sm_90")) == {B200.id: False}
    assert answers(*job(7, "sm_80", "sm_90", uses=H200)) == {H200.id: True}


def test_one_build_without_the_gpu_is_enough() -> None:
    both = [*job(7, "sm_90", "sm_100"), *job(8, "sm_90")]
    assert answers(*both) == {B200.id: False}
    shown = next(o for o in derive([seen("gpu.compute_capability", "10.0", B200), *both]) if o.fact == FACT)
    assert shown.excerpt == "process 8: sm_90; this GPU: 10.0"


def test_an_environment_that_was_shown_is_held_against_all_gpus() -> None:
    here = node(HOST)
    assert answers(seen("node.torch.architectures", ("sm_90", "sm_100"), here)) == {B200.id: True, H200.id: True}
    assert answers(seen("node.torch.architectures", ("sm_90",), here)) == {B200.id: False, H200.id: True}


def test_a_published_list_can_say_no_and_never_yes() -> None:
    here = node(HOST)
    release = [seen("node.torch.version", "2.6.0+cu124", here), seen("node.torch.cuda", "12.4", here)]
    assert answers(*release) == {B200.id: False}
    own = seen("node.torch.architectures", ("sm_90", "sm_100"), here)
    assert answers(*release, own) == {B200.id: True, H200.id: True}, "what the build says counts"


@each(
    "batch",
    [
        [seen("process.torch.architectures", ("sm_90",), process(7))],  # which GPU it uses is not known
        [seen("process.uses_gpu", f"gpu:{B200.id}", process(7))],
        [seen("process.uses_gpu", f"gpu:{B200.id}", process(7)),
         seen("process.torch.architectures", None, process(7), Status.DENIED)],
        [seen("node.torch.version", "2.6.0+cu124", node(HOST))],
        [seen("node.torch.architectures", ("gfx942",), node(HOST))],
    ],
    ids=["no relation", "no PyTorch", "denied", "no CUDA", "ROCm"],
)  # fmt: skip
def test_what_is_missing_decides_nothing(batch: list[Observation]) -> None:
    assert answers(*batch) == {}
