"""GPU models: the figures agree with each other, and no lookup guesses between variants."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge import gpus
from knowledge.gpus import Certainty, Dtype, GpuSpec
from tests.cases import each

of_each = each("model", gpus.all_specs, ids=lambda m: m.id)


def get(identifier: str) -> GpuSpec:
    found = gpus.spec(identifier)
    assert found is not None
    return found


@of_each
def test_the_figures_of_a_model_agree(model: GpuSpec) -> None:
    p = model.peak
    fp32, half = p("fp32"), p("fp16")
    # A shorter format is never slower (FP8 of a GPU with it, against its half precision, and so on).
    ladder = [v for v in (p("tf32"), half, p("fp8"), p("fp4")) if v is not None]
    assert ladder == sorted(ladder)
    if model.architecture not in ("cdna",):
        assert p("bf16") in (None, half)
    if p("fp8") is not None and half is not None:
        assert p("fp8") == pytest.approx(2 * half, rel=0.03)
    if p("tf32") is not None and half is not None and model.architecture != "cdna3":
        assert half == pytest.approx(2 * (p("tf32") or 0), rel=0.06)
    if fp32 is not None and p("fp64") is not None:
        assert (p("fp64") or 0) <= fp32
    if model.nvlink:  # GB/s of a link, both directions; the bridges of workstation cards run at 28.125
        per_link = {1: (40,), 2: (50,), 3: (50, 28.125), 4: (50,), 5: (100,)}[model.nvlink.generation]
        assert model.nvlink.gbs / model.nvlink.links in per_link
    if model.bandwidth_low_gbs is not None:
        assert model.bandwidth_gbs is not None
        assert model.bandwidth_low_gbs < model.bandwidth_gbs
    assert model.sources
    assert re.fullmatch(r"\d+\.\d", model.compute_capability or "0.0")
    assert (model.compute_capability is None) == (model.vendor == "amd")
    assert set(model.peaks) == set(Dtype)


def test_dense_peaks_of_the_reference_table() -> None:
    table = {  # FP32, TF32, BF16 or FP16, FP8, FP4, GB/s
        "v100-sxm2-16": (15.7, None, 125, None, None, 900),
        "a100-sxm-80": (19.5, 156, 312, None, None, 2039),
        "h100-sxm": (67, 494.7, 989.4, 1979, None, 3350),
        "h100-pcie": (51, 378, 756, 1513, None, 2000),
        "h200-sxm": (67, 494.7, 989.4, 1979, None, 4800),
        "b200": (75, 1125, 2250, 4500, 9000, 8000),
        "l40s": (91.6, 183, 362, 733, None, 864),
        "a10": (31.2, 62.5, 125, None, None, 600),
        "t4": (8.1, None, 65, None, None, 320),
        "mi300x": (163.4, 653.7, 1307.4, 2614.9, None, 5300),
    }
    for identifier, figures in table.items():
        m = get(identifier)
        assert (
            m.peak("fp32"),
            m.peak("tf32"),
            m.peak("fp16"),
            m.peak("fp8"),
            m.peak("fp4"),
            m.bandwidth_gbs,
        ) == figures
    assert get("a100-sxm-40").bandwidth_gbs == 1555
    assert get("b200").bandwidth_low_gbs == 7700
    assert get("t4").bandwidth_low_gbs == 300
    assert get("h800-sxm").peak("bf16") == get("h100-sxm").peak("bf16")


@each(
    ("identifier", "dtype", "knee"),
    [("v100-sxm2-16", "fp16", 139), ("a100-sxm-80", "bf16", 153), ("h100-sxm", "bf16", 295), ("h100-pcie", "bf16", 378),
     ("h200-sxm", "bf16", 206), ("b200", "bf16", 281), ("l40s", "bf16", 419), ("a10", "bf16", 208), ("mi300x", "bf16", 247)],
)  # fmt: skip
def test_the_knee_is_peak_over_bandwidth(identifier: str, dtype: str, knee: int) -> None:
    assert round(get(identifier).knee(dtype) or 0) == knee


def test_successors_are_not_slower_than_what_they_replace() -> None:
    bandwidth = [
        get(i).bandwidth_gbs or 0
        for i in ("v100-sxm2-32", "a100-sxm-40", "a100-sxm-80", "h100-sxm", "h200-sxm", "b200")
    ]
    assert bandwidth == sorted(bandwidth)
    for small, large in (("h100-pcie", "h100-nvl"), ("h100-nvl", "h100-sxm"), ("h20", "h100-sxm"), ("l40", "l40s"), ("h200-nvl", "h200-sxm"),
                         ("b200", "gb200"), ("mi300a", "mi300x")):  # fmt: skip
        assert (get(small).peak("bf16") or 0) < (get(large).peak("bf16") or 0)
    assert (get("h800-sxm").nvlink or gpus.Nvlink(0, 0, 0)).gbs < (get("h100-sxm").nvlink or gpus.Nvlink(0, 0, 0)).gbs


@each(
    ("name", "mib", "identifier"),
    [
        ("NVIDIA H100 80GB HBM3", 81559, "h100-sxm"), ("NVIDIA H100 PCIe", 81559, "h100-pcie"), ("NVIDIA H100 NVL", 95830, "h100-nvl"),
        ("NVIDIA H200", 143771, "h200-sxm"), ("NVIDIA H200 NVL", None, "h200-nvl"), ("NVIDIA A100-SXM4-40GB", 40960, "a100-sxm-40"),
        ("NVIDIA A100-SXM4-80GB", 81920, "a100-sxm-80"), ("NVIDIA A100 80GB PCIe", 81920, "a100-pcie-80"),
        ("A100-PCIE-40GB", None, "a100-pcie-40"), ("Tesla V100-SXM2-32GB", 32510, "v100-sxm2-32"),
        ("Tesla V100-PCIE-16GB", 16160, "v100-pcie-16"), ("Tesla T4", 15109, "t4"), ("NVIDIA A10", 23028, "a10"),
        ("NVIDIA A10G", 23028, "a10g"), ("NVIDIA L40S", 46068, "l40s"), ("NVIDIA L4", 23034, "l4"), ("NVIDIA B200", 183359, "b200"),
        ("NVIDIA GeForce RTX 4090", 24564, "rtx-4090"), ("nvidia  geforce rtx 3090", 24576, "rtx-3090"),
        ("NVIDIA GH200 480GB", 97871, "gh200-96"), ("NVIDIA H20", 97871, "h20"), ("NVIDIA H20", 143771, "h20-141"),
        ("AMD Instinct MI300X OAM", 196592, "mi300x"), ("AMD Instinct MI325X", None, "mi325x"),
    ],
)  # fmt: skip
def test_driver_names_find_their_model(name: str, mib: float | None, identifier: str) -> None:
    found = gpus.find(name, mib)
    assert found is not None
    assert found.id == identifier


@each(
    ("name", "mib", "expected"),
    [
        ("H100", None, {"h100-sxm", "h100-pcie", "h100-nvl"}),
        ("h100", 95830, {"h100-nvl"}),
        ("A100", 40960, {"a100-sxm-40", "a100-pcie-40"}),
        ("our A100 nodes", 81920, {"a100-sxm-80", "a100-pcie-80"}),
        ("NVIDIA H20", None, {"h20", "h20-141"}),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4864, {"a100-sxm-40"}),
        ("RTX 6000 Ada", None, {"rtx-6000-ada"}),
        ("NVIDIA GeForce GT 1030", None, set()),
        ("GRID T4-4Q", 4096, set()),
        ("", None, set()),
    ],
)
def test_what_is_not_certain_is_never_guessed(name: str, mib: float | None, expected: set[str]) -> None:
    assert gpus.find(name, mib) is None
    assert {m.id for m in gpus.candidates(name, mib)} == expected


def test_a_memory_size_that_does_not_fit_refuses_the_name() -> None:
    assert gpus.find("NVIDIA H100 80GB HBM3", 40960) is None
    assert gpus.find("NVIDIA A100-SXM4-40GB", 81920) is None


def test_the_collection_is_large_and_honest() -> None:
    assert len(gpus.all_specs()) >= 30
    assert len({m.id for m in gpus.all_specs()}) == len(gpus.all_specs())
    checked = {m.id for m in gpus.all_specs() if m.certainty is Certainty.CHECKED}
    assert {"h100-sxm", "h200-sxm", "a100-sxm-80", "b200", "mi300x"} <= checked
    # Nobody has cross-checked these.
    assert not checked & {"a10", "t4", "v100-sxm2-16", "h100-pcie"}
    assert all(len(m.sources) > 1 or "cross-checked" in m.sources[0] for m in gpus.all_specs() if m.id in checked)


@given(st.text(max_size=80), st.none() | st.floats(0, 1e7))
def test_any_name_is_answered_and_find_agrees_with_candidates(name: str, mib: float | None) -> None:
    found, several = gpus.find(name, mib), gpus.candidates(name, mib)
    assert found is None or several == (found,)


@given(st.deferred(lambda: st.sampled_from(gpus.all_specs())))
def test_the_reported_size_of_a_model_fits_it(model: GpuSpec) -> None:
    assert model.memory_gib is not None
    assert model.fits(model.memory_gib * 1024)
    assert not model.fits(model.memory_gib * 512)
