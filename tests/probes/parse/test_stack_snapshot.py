"""The collector and the parser of the driver stack: trees of nodes, broken documents, and this machine."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.compatibility import architecture, branch_ended, driver_for_cuda, numbers
from knowledge.derive import derive
from knowledge.observation import Observation, Status
from probes.base import Context
from probes.collectors.stack import Node, compiled_for
from probes.live import driver_stack
from probes.parse.stack_snapshot import FORMAT, _order, parse
from tests.cases import each
from tests.probes.collectors.collecting import collect, document, read
from tests.probes.parse.smi_case import status, value
from tests.probes.parse.vocabulary_check import faults_of

pytestmark = pytest.mark.process


RUNNING = "6.8.0-45-generic"


def tree(root: Path, newest: str = "6.8.0-51-generic", built: bool = True) -> Path:
    """A node with two kernels and a driver that dkms built."""
    for release, module in ((RUNNING, True), (newest, built)):
        lines = "kernel/fs/ext4/ext4.ko.zst:\n" + (
            "updates/dkms/nvidia.ko.zst: kernel/drivers/video/video.ko\n" if module else ""
        )
        write(root, f"lib/modules/{release}/modules.dep", lines)
        write(root, f"boot/vmlinuz-{release}", "")
    write(root, "proc/sys/kernel/osrelease", f"{RUNNING}\n")
    write(root, "proc/sys/kernel/hostname", "gpu-1\n")
    write(root, "sys/module/nvidia/version", "550.90.07\n")
    libraries = root / "usr/lib/x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    (libraries / "libcuda.so.550.90.07").touch()
    (libraries / "libcuda.so.1").symlink_to("libcuda.so.550.90.07")
    write(root, "lib/firmware/nvidia/550.90.07/gsp_ga10x.bin", "")
    write(root, "usr/local/cuda-12.4/version.json", json.dumps({"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}))
    (root / "usr/local/cuda").symlink_to("cuda-12.4")
    return root


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_node_in_order(tmp_path: Path) -> None:
    found = read(FORMAT, collect("stack", tree(tmp_path)))
    assert value(found, "node.driver.loaded_version") == "550.90.07"
    assert value(found, "node.driver.library_version") == "550.90.07"
    assert value(found, "node.kernel.newest") == "6.8.0-51-generic"
    assert value(found, "node.kernel.newest.has_driver") is True
    assert value(found, "node.cuda.toolkit.version") == "12.4.1"
    assert value(derive(found), "node.cuda.toolkit.driver_needed") == "525"
    assert status(found, "node.driver.installed_version") is Status.UNSUPPORTED  # the tree holds no real module
    assert not faults_of(found, FORMAT.provides)


def test_a_kernel_that_nobody_built_the_driver_for(tmp_path: Path) -> None:
    found = read(FORMAT, collect("stack", tree(tmp_path, built=False)))
    assert value(found, "node.kernel.newest.has_driver") is False


def test_kernels_that_cannot_be_booted_do_not_count(tmp_path: Path) -> None:
    tree(tmp_path, built=False)
    (tmp_path / "boot/vmlinuz-6.8.0-51-generic").unlink()
    found = read(FORMAT, collect("stack", tmp_path))
    assert value(found, "node.kernel.newest") == RUNNING
    assert value(found, "node.kernel.newest.has_driver") is True


def test_a_driver_that_a_container_brought_says_nothing_of_kernels(tmp_path: Path) -> None:
    tree(tmp_path, built=False)
    write(tmp_path, f"lib/modules/{RUNNING}/modules.dep", "kernel/fs/ext4/ext4.ko.zst:\n")
    found = read(FORMAT, collect("stack", tmp_path))
    assert status(found, "node.kernel.newest.has_driver") is Status.NOT_APPLICABLE
    assert status(found, "node.driver.firmware_present") is Status.NOT_APPLICABLE


def test_a_node_without_anything(tmp_path: Path) -> None:
    found = read(FORMAT, collect("stack", tmp_path))
    assert {o.status for o in found} <= {Status.UNSUPPORTED, Status.NOT_APPLICABLE}
    assert {o.fact for o in found} >= set(driver_stack.MAIN)


def job(*libraries: str, **packages: str) -> list[Observation]:
    """What the parser says of one process."""
    text = json.dumps(
        {
            "schema": "gpudiag/stack/1",
            "host": "gpu-1",
            "processes": [{"pid": 42, "libraries": list(libraries), "packages": packages}],
        }
    )
    return [o for o in parse(text, Context()) if o.fact.startswith("process.")]


SITE = "/opt/venv/lib/python3.11/site-packages"


def test_versions_come_from_the_package_or_from_the_name_of_the_file() -> None:
    found = job(
        f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12", f"{SITE}/nvidia/nccl/lib/libnccl.so.2",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.550.90.07",
        torch="2.4.0+cu124", nvidia_cuda_runtime_cu12="12.4.127", nvidia_nccl_cu12="2.20.5",
    )  # fmt: skip
    assert value(found, "process.cuda.version") == "12.4.127"
    assert value(found, "process.nccl.version") == "2.20.5"
    assert value(found, "process.torch.version") == "2.4.0+cu124"
    assert value(found, "process.driver_library.version") == "550.90.07"
    own = job(
        "/usr/local/cuda-12.4/lib64/libcudart.so.12.4.127", "/opt/nccl/libnccl.so.2.26.2", nvidia_nccl_cu12="2.20.5"
    )
    assert value(own, "process.nccl.version") == "2.26.2"  # what is mapped counts, not what lies beside it
    assert value(own, "process.cuda.version") == "12.4.127"
    bare = job("/opt/x/libnccl.so.2", "/opt/x/libcudart-d0da41ae.so.11.0")
    assert status(bare, "process.nccl.version") is Status.UNSUPPORTED
    assert value(bare, "process.cuda.version") == "11.0"


def test_several_drivers_in_one_process_are_no_answer() -> None:
    found = job("/a/libcuda.so.550.90.07", "/b/libcuda.so.535.54.03")
    assert [o.fact for o in found] == ["process.gpu_interposers"]
    assert status(found, "process.gpu_interposers") is Status.NONE_SEEN


def test_libraries_that_enforce_a_share() -> None:
    found = job("/usr/local/vgpu/libvgpu.so", "/usr/lib/x86_64-linux-gnu/libcuda.so.550.90.07")
    assert value(found, "process.gpu_interposers") == ("libvgpu.so",)


def test_what_hangs_is_said() -> None:
    text = json.dumps(
        {"schema": "gpudiag/stack/1", "processes": [{"pid": 42, "hung": "/proc/42/maps"}, {"pid": True}, 7]}
    )
    found = parse(text, Context())
    assert status(found, "process.nccl.version") is Status.TIMEOUT


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda s: (
            st.lists(s, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "kernels",
                        "module",
                        "loaded",
                        "libraries",
                        "firmware",
                        "toolkits",
                        "reboot",
                        "processes",
                        "torch",
                        "architectures",
                        "pid",
                        "path",
                        "version",
                        "error",
                        "link",
                    ]
                ),
                s,
                max_size=5,
            )
        ),
        max_leaves=25,
    )
)
def test_no_document_breaks_the_parser(content: Any) -> None:
    body = {**(content if isinstance(content, dict) else {"kernels": content})}
    found = parse(json.dumps({"schema": "gpudiag/stack/1"} | body), Context())
    assert not faults_of(found, FORMAT.provides)


@given(
    st.lists(
        st.tuples(st.integers(4, 7), st.integers(0, 20), st.integers(0, 20), st.integers(1, 99)), min_size=1, max_size=6
    )
)
def test_kernels_sort_as_their_numbers(found: list[tuple[int, int, int, int]]) -> None:
    names = {"{}.{}.{}-{}-generic".format(*n): n for n in found}
    assert names[max(names, key=_order)] == max(found)


@given(st.text(max_size=30), st.integers(0, 1 << 62))
def test_tables_have_no_answer_for_what_they_do_not_know(text: str, at: int) -> None:
    driver_for_cuda(text), architecture(text), branch_ended(text, at)
    assert driver_for_cuda("99.1") is None
    assert architecture("9.9") is None
    assert branch_ended("9.9", at) is None
    assert numbers("12.4.1+cu") == (12, 4, 1)


def test_a_branch_ends_after_its_last_day() -> None:
    day = 86_400 * 10**9
    last = 1_782_777_600 * 10**9  # 2026-06-30T00:00:00Z
    assert branch_ended("535.183.01", last + day - 1) == 0
    assert branch_ended("535.183.01", last + day) == 1
    assert branch_ended("535.183.01", last + 10 * day) == 10


def test_only_processes_that_hold_a_device_are_looked_into(tmp_path: Path) -> None:
    tree(tmp_path)
    line = "7f0000000000-7f0000001000 r-xp 00000000 08:01 12 {}\n"
    for pid, device in ((41, "/dev/nvidia0"), (42, "/dev/null")):
        write(tmp_path, f"proc/{pid}/maps", line.format(f"{SITE}/nvidia/nccl/lib/libnccl.so.2") + line.format("[heap]"))
        (tmp_path / f"proc/{pid}/fd").mkdir()
        (tmp_path / f"proc/{pid}/fd/3").symlink_to(device)
    write(tmp_path, f"proc/41/root{SITE}/nvidia_nccl_cu12-2.21.5.dist-info/METADATA", "")
    write(tmp_path, f"proc/41/root{SITE}/secret_project-1.0.dist-info/METADATA", "")
    text = collect("stack", tmp_path)
    assert [p["pid"] for p in document(text)["processes"]] == [41]
    assert value(read(FORMAT, text), "process.nccl.version") == "2.21.5"
    assert "secret" not in text


def program(root: Path, pid: int, *paths: str) -> None:
    """A process of the tree that holds a GPU and has files mapped."""
    line = "7f0000000000-7f0000001000 r-xp 00000000 08:01 12 {}\n"
    write(root, f"proc/{pid}/maps", "".join(line.format(path) for path in paths))
    (root / f"proc/{pid}/fd").mkdir()
    (root / f"proc/{pid}/fd/3").symlink_to("/dev/nvidia0")


TORCH = f"{SITE}/torch/lib/libtorch_python.so"
VERSION_PY = """from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.6.0+cu124'
debug = False
cuda: Optional[str] = '12.4'
git_version = '2236df1770800ffea5697b11b0bb0d910b2e59e1'
hip: Optional[str] = None
"""


def built(root: Path, *pids: int, version: str = VERSION_PY, library: bytes = b"") -> dict[str, Observation]:
    """What is told of a PyTorch that processes have mapped; its files lie below the root of each."""
    for pid in pids:
        program(root, pid, TORCH)
        write(root, f"proc/{pid}/root{SITE}/torch/version.py", version)
        place = root / f"proc/{pid}/root{TORCH}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(library)
    found = read(FORMAT, collect("stack", root))
    assert not faults_of(found, FORMAT.provides)
    return {o.fact: o for o in found if o.fact.startswith("process.torch.")}


@each("before", [0, 5000, (1 << 20) - 20, (1 << 20) - 1, 3 << 20])
def test_architectures_are_read_from_the_library_wherever_they_stand(tmp_path: Path, before: int) -> None:
    text = b"\0sm_50 sm_80 sm_90 compute_90\0"
    found = built(
        tmp_path, 41, library=b"\x7fELF" + b"x" * before + text + b"sm_75 sm_75 in a sentence\0" + b"y" * 4000
    )
    assert found["process.torch.architectures"].value == ("sm_50", "sm_80", "sm_90", "compute_90")
    assert found["process.torch.cuda"].value == "12.4"


@each(
    ("version", "library", "cuda", "architectures"),
    [
        (VERSION_PY.replace("'12.4'", "None"), b"", Status.NOT_APPLICABLE, Status.NOT_APPLICABLE),
        (VERSION_PY, b"\x7fELF no list", Status.OK, Status.UNSUPPORTED),
        (VERSION_PY, b"\0sm_80\0 \0sm_90\0", Status.OK, Status.FAILED),
        ("import os\n", b"\0sm_80\0", Status.FAILED, Status.OK),
    ],
    ids=["for the CPU", "no list", "two lists", "another file"],
)
def test_a_build_that_does_not_tell_says_why(
    tmp_path: Path, version: str, library: bytes, cuda: Status, architectures: Status
) -> None:
    found = built(tmp_path, 41, version=version, library=library)
    assert (found["process.torch.cuda"].status, found["process.torch.architectures"].status) == (cuda, architectures)


def test_a_pytorch_whose_files_are_gone(tmp_path: Path) -> None:
    program(tmp_path, 41, TORCH)
    found = read(FORMAT, collect("stack", tmp_path))
    assert status(found, "process.torch.cuda") is Status.UNSUPPORTED
    assert status(found, "process.torch.architectures") is Status.UNSUPPORTED


def test_the_library_of_ranks_that_share_it_is_read_once(tmp_path: Path) -> None:
    node = Node("", time.monotonic() + 60)
    library = tmp_path / "torch/lib/libtorch_python.so"
    write(tmp_path, "torch/version.py", VERSION_PY)
    library.parent.mkdir()
    library.write_bytes(b"\0sm_80\0")
    assert node.torch(str(library))["architectures"] == ["sm_80"]
    library.write_bytes(b"\0sm_90\0")  # the same file, as its number says
    assert node.torch(str(library)) == {"version": VERSION_PY, "architectures": ["sm_80"]}


def test_a_library_that_is_not_read_in_time_says_so(tmp_path: Path) -> None:
    library = tmp_path / "libtorch_python.so"
    library.write_bytes(b"\0sm_80\0")
    text = json.dumps(
        {
            "schema": "gpudiag/stack/1",
            "processes": [{"pid": 1, "torch": {"architectures": compiled_for(str(library), 0.0)}}],
        }
    )
    assert status(parse(text, Context()), "process.torch.architectures") is Status.TIMEOUT


def test_dcgm_is_told_by_the_name_of_its_library(tmp_path: Path) -> None:
    program(tmp_path, 41, "/usr/lib/x86_64-linux-gnu/libdcgm.so.3.3.9")  # in a container
    assert value(read(FORMAT, collect("stack", tmp_path)), "node.dcgm.version") == "3.3.9"
    write(tmp_path, "usr/lib/x86_64-linux-gnu/libdcgm.so.4.2.3", "")
    (tmp_path / "usr/lib/x86_64-linux-gnu/libdcgm.so.4").symlink_to("libdcgm.so.4.2.3")
    assert value(read(FORMAT, collect("stack", tmp_path)), "node.dcgm.version") == "4.2.3", "the node's own first"
    write(tmp_path, "usr/lib64/libdcgm.so.3.1.7", "")
    assert status(read(FORMAT, collect("stack", tmp_path)), "node.dcgm.version") is Status.FAILED


def test_this_machine() -> None:
    text = collect("stack", None)
    read(FORMAT, text)
    assert document(text)["kernel"] == os.uname().release
