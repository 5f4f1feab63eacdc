"""collect_env, the configuration and the list of architectures of a PyTorch, from pieces of their own format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.base import Context, best
from probes.parse.torch_env import FORMAT, parse, sniff
from probes.registry import formats
from tests.cases import each
from tests.probes.parse.smi_case import all_of, one, status, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary, faults_of

ENV = """Collecting environment information...
PyTorch version: 2.6.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.4 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Python version: 3.11.9 (main, Apr  6 2024, 17:59:24) [GCC 11.4.0] (64-bit runtime)
Is CUDA available: True
CUDA runtime version: 12.4.131
CUDA_MODULE_LOADING set to: LAZY
GPU models and configuration:
GPU 0: NVIDIA H100 80GB HBM3
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-0a1b2c3d-0000-1111-2222-333344445555)

Nvidia driver version: 550.90.07
cuDNN version: Could not collect
Is XNNPACK available: True

CPU:
Architecture:                         x86_64
GPU 7: no GPU, whatever stands below
"""
LIST = "2.6.0+cu124 12.4 ['sm_50', 'sm_60', 'sm_90', 'sm_120', 'compute_120']\n"
CONFIG = """PyTorch built with:
  - GCC 9.3
  - C++ Version: 201703
  - CUDA Runtime 12.4
  - NVCC architecture flags: -gencode;arch=compute_50,code=sm_50;-gencode;arch=compute_90,code=sm_90;-gencode;arch=compute_90,code=compute_90
  - CuDNN 90.1
"""


def test_an_environment() -> None:
    found = parse(ENV, Context("env.txt", "n1"))
    assert_in_vocabulary(found, FORMAT)
    assert value(found, "node.torch.version") == "2.6.0+cu124"
    assert value(found, "node.torch.cuda") == "12.4"
    assert value(found, "node.torch.for_cpu") is False
    assert value(found, "node.driver.version") == "550.90.07"
    assert value(found, "node.cuda.toolkit.version") == "12.4.131"
    assert value(found, "node.gpu.count") == 2
    assert [(o.subject.id, o.value) for o in all_of(found, "gpu.name")] == [
        ("index:0", "NVIDIA H100 80GB HBM3"), ("index:1", "NVIDIA H100 80GB HBM3")
    ]  # fmt: skip
    assert not all_of(found, "node.torch.architectures"), "collect_env does not print them"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LIST, ("sm_50", "sm_60", "sm_90", "sm_120", "compute_120")),
        (ENV + LIST, ("sm_50", "sm_60", "sm_90", "sm_120", "compute_120")),
        (CONFIG, ("sm_50", "sm_90", "compute_90")),
    ],
    ids=["list", "both", "configuration"],
)
def test_architectures(text: str, expected: tuple[str, ...]) -> None:
    found = parse(text, Context("x"))
    assert value(found, "node.torch.architectures") == expected
    chosen = best(formats(), text)
    assert chosen is not None
    assert chosen.name == FORMAT.name


def test_the_cuda_of_a_configuration() -> None:
    assert value(parse(CONFIG, Context("x")), "node.torch.cuda") == "12.4"


@pytest.mark.parametrize(
    ("rocm", "for_cpu"), [("N/A", True), ("6.2.41133-dd7f95766", None)], ids=["for the CPU", "for ROCm"]
)
def test_builds_without_cuda(rocm: str, for_cpu: bool | None) -> None:
    text = ENV.replace("PyTorch: 12.4", "PyTorch: None").replace(
        "ROCM used to build PyTorch: N/A", f"ROCM used to build PyTorch: {rocm}"
    )
    found = parse(text, Context("x"))
    assert status(found, "node.torch.cuda") is Status.NOT_APPLICABLE
    told = all_of(found, "node.torch.for_cpu")
    assert [o.value for o in told] == ([] if for_cpu is None else [for_cpu])


def test_what_it_could_not_collect_is_no_version() -> None:
    found = parse(ENV.replace("550.90.07", "Could not collect").replace("12.4.131", "No CUDA"), Context("x"))
    assert status(found, "node.driver.version") is Status.UNSUPPORTED
    assert one(found, "node.cuda.toolkit.version").detail == "CUDA runtime version: No CUDA"


def test_an_environment_that_is_cut_tells_what_it_has() -> None:
    found = parse(ENV[: ENV.index("ROCM")], Context("x"))
    assert value(found, "node.torch.cuda") == "12.4"
    assert not all_of(found, "node.gpu.count")


@each(
    "text",
    [
        "",
        "PyTorch version: 2.6.0\n",
        "the list was ['sm_x', 'sm_y']\n",
        "step 1\n" * 100 + LIST,  # a log that prints it
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n",
    ],
)
def test_what_is_something_else(text: str) -> None:
    assert sniff(text) == 0


@given(st.text(max_size=60), st.integers(0, len(ENV + CONFIG)))
def test_no_text_breaks_it(noise: str, cut: int) -> None:
    whole = ENV + CONFIG
    assert not faults_of(parse(whole[:cut] + noise + whole[cut:], Context("x")), FORMAT.provides)
