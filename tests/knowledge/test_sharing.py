"""Shares of GPUs: sizes and settings as the sharing systems write them, and who takes most."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive.sharing import enrich, percent, size_mib
from knowledge.observation import Observation, Scope, Source, Status, Subject, node
from tests.cases import each
from tests.probes.parse.vocabulary_check import faults_of

NODE = node("n1")
GPU = Subject(Scope.GPU, "0000:01:00.0", NODE)


def seen(fact: str, value: Any, pid: int | None = None) -> Observation:
    subject = GPU if pid is None else Subject(Scope.PROCESS, str(pid), NODE)
    return Observation(fact, subject, value, source=Source("test"))


def program(pid: int, *env: str, owner: str = "", **told: Any) -> list[Observation]:
    """A process on the GPU."""
    out = [seen("process.uses_gpu", f"gpu:{GPU.id}", pid), seen("process.env", env, pid)]
    out += [seen("process.owner", owner, pid)] if owner else []
    return out + [seen(f"process.{name}", value, pid) for name, value in told.items()]


def derived(*observations: Observation) -> dict[tuple[str, str], Any]:
    """What is added, by fact and subject."""
    found = enrich(observations)[len(observations) :]
    assert not faults_of(found, [o.fact for o in found])
    return {(o.fact, o.subject.id): o.value if o.status is Status.OK else o.status for o in found}


@each(
    ("text", "mib"),
    [("4096m", 4096), ("1g", 1024), ("2G", 2048), ("1073741824", 1024), ("1048576k", 1024), ("1.5g", 1536), ("3 GiB", 3072),
     ("0", None), ("", None), ("many", None), ("-1g", None), ("1gg", None)],
)  # fmt: skip
def test_sizes(text: str, mib: float | None) -> None:
    assert size_mib(text) == mib


@given(st.text(max_size=20))
def test_no_text_breaks_a_size_or_a_share(text: str) -> None:
    assert (size_mib(text) or 1) > 0
    assert 0 < (percent(text) or 1) < 100


def test_each_system_is_known_by_its_settings() -> None:
    found = derived(
        *program(1, "CUDA_DEVICE_MEMORY_LIMIT_0=4g", "CUDA_DEVICE_SM_LIMIT=30", gpu_memory=1024),
        *program(2, "ALIYUN_COM_GPU_MEM_CONTAINER=4", "ALIYUN_COM_GPU_MEM_DEV=16"),
        *program(3, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2G,1=3G", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25"),
        *program(4, "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-a,GPU-b"),
        *program(5, "NCCL_DEBUG=INFO"),
        seen("gpu.memory.total", 16384),
    )
    assert [found.get(("process.share.by", str(pid))) for pid in range(1, 6)] == [
        ("hami",),
        ("cgpu",),
        ("mps",),
        ("slice",),
        None,
    ]
    assert [found.get(("process.share.memory_limit", str(pid))) for pid in range(1, 6)] == [
        4096,
        4096,
        2048,
        None,
        None,
    ]
    assert [found.get(("process.share.compute_limit", str(pid))) for pid in range(1, 6)] == [30, None, 25, None, None]
    assert found["process.share.memory_used", "1"] == 25
    assert found["process.visible_gpus.repeated", "4"] == 1
    assert found["gpu.sharing", GPU.id] == ("cgpu", "hami", "mps", "slice")


def test_a_cgpu_share_without_the_memory_of_the_card_is_not_guessed() -> None:
    found = derived(*program(2, "ALIYUN_COM_GPU_MEM_CONTAINER=4", "ALIYUN_COM_GPU_MEM_DEV=16"))
    assert ("process.share.memory_limit", "2") not in found


def test_the_processes_of_a_container_have_one_limit() -> None:
    limit = "CUDA_DEVICE_MEMORY_LIMIT_0=8g"
    mine = [*program(1, limit, owner="pod a/x"), *program(2, limit, owner="pod a/x"), seen("gpu.memory.total", 16384)]
    assert derived(*mine)["gpu.share.memory_promised", GPU.id] == 50
    both = [*mine, *program(3, limit, owner="pod a/y")]
    assert derived(*both)["gpu.share.memory_promised", GPU.id] == 100


@given(st.dictionaries(st.sampled_from(["pod a", "pod b", "job 7", "user ann"]), st.integers(0, 100), min_size=2))
def test_the_busiest_is_who_has_most(shares: dict[str, int]) -> None:
    observations = [
        o for pid, (name, use) in enumerate(shares.items()) for o in program(pid, owner=name, gpu_utilization=use)
    ]
    found = derived(*observations)
    if not sum(shares.values()):
        assert ("gpu.neighbour.name", GPU.id) not in found
        return
    assert shares[found["gpu.neighbour.name", GPU.id]] == max(shares.values())
    assert found["gpu.neighbour.share", GPU.id] == round(100 * max(shares.values()) / sum(shares.values()), 1)
    assert 0 <= found["gpu.neighbour.busy", GPU.id] <= 100


def test_who_is_not_known_or_works_on_several_gpus_is_not_blamed() -> None:
    known = program(1, owner="pod a", gpu_utilization=90)
    assert ("gpu.neighbour.name", GPU.id) not in derived(*known, *program(2, gpu_utilization=5))
    two = [*program(2, owner="pod b", gpu_utilization=5), seen("process.uses_gpu", "gpu:0000:02:00.0", 2)]
    assert ("gpu.neighbour.name", GPU.id) not in derived(*known, *two)


def test_the_server_of_mps_is_no_neighbour_and_no_client() -> None:
    server = [*program(9, comm="nvidia-cuda-mps", owner="user root", gpu_utilization=90)]
    client = program(1, "CUDA_MPS_PIPE_DIRECTORY=/tmp/m", owner="pod a", gpu_utilization=10)
    found = derived(*server, *client)
    assert found["process.mps.served", "1"] is True
    assert found["process.mps.served", "9"] is Status.NOT_APPLICABLE
    assert ("gpu.neighbour.name", GPU.id) not in found
    assert ("gpu.mps.bypassed", GPU.id) not in found, "kinds of context are not known"
    past = program(2, gpu_contexts=("compute",))
    assert derived(*server, *past)["gpu.mps.bypassed", GPU.id] == 1


def test_nothing_is_added_where_nothing_is_shared() -> None:
    alone = derived(*program(1, owner="job 7", gpu_utilization=99, gpu_memory=70_000), seen("gpu.memory.total", 81_920))
    assert not [key for key, value in alone.items() if not isinstance(value, Status)]
