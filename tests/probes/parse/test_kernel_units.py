"""Services in the journal: what failed and stayed so is told; what was stopped on request, came back or ended with a boot is not."""

from __future__ import annotations

from assistant.sources import parse_text
from knowledge.observation import Scope, Status
from tests.cases import each

AT = "Mar  3 12:00:0{} n1 systemd[1]: "
KILLED = "slurmd.service: Main process exited, code=killed, status=9/KILL\nslurmd.service: Failed with result 'signal'."
AGAIN = "docker.service: Failed with result 'exit-code'.\ndocker.service: Scheduled restart job, restart counter is at {}.\nStarted docker.service - Docker."


def states(text: str, ahead: str = AT) -> dict[str, str]:
    log = "\n".join(f"{ahead.format(i)}{line}" for i, line in enumerate(text.splitlines()))
    found = parse_text("kmsg", log)
    return {o.subject.id: str(o.value) for o in found if o.fact == "service.state" and o.subject.scope is Scope.OBJECT}


@each(
    ("text", "expected"),
    [
        (KILLED, {"slurmd.service": "failed"}),
        ("kubelet.service: Start request repeated too quickly.", {"kubelet.service": "failed"}),
        ("home.mount: Failed with result 'exit-code'.\nFailed to mount /home.", {"home.mount": "failed"}),
        (AGAIN.format(4), {"docker.service": "restarting"}),
        (AGAIN.format(1), {"docker.service": "running"}),
        (f"{KILLED}\nStarted Slurm node daemon.", {"slurmd.service": "running"}),
        (f"{KILLED}\nStopped Slurm node daemon.", {"slurmd.service": "stopped"}),
        ("home.mount: Failed with result 'timeout'.\nMounted /home.", {"home.mount": "running"}),
        ("slurmd.service: Main process exited, code=killed, status=15/TERM\nslurmd.service: Succeeded.", {}),
        ("slurmd.service: Main process exited, code=exited, status=0/SUCCESS", {}),
        ("fwupd-refresh.service: Failed with result 'exit-code'.", {}),
    ],
)  # fmt: skip
def test_the_last_word_about_a_unit_counts(text: str, expected: dict[str, str]) -> None:
    assert states(text) == expected


def test_a_boot_ends_what_a_unit_was() -> None:
    before = "\n".join(f"{AT.format(i)}{line}" for i, line in enumerate(KILLED.splitlines()))
    assert not states(f"{before}\nMar  3 12:09:00 n1 kernel: Linux version 5.15.0-124-generic (x@y)", "")


def test_a_daemon_tells_why_it_found_no_driver() -> None:
    said = "Mar  3 12:00:01 n1 slurmd[7]: error: Failed to initialize NVML: Driver/library version mismatch"
    told = [o.value for o in parse_text("kmsg", said) if o.fact == "node.driver.state"]
    assert told == ["library_mismatch"]


def test_a_container_tells_of_the_driver_until_it_is_loaded() -> None:
    line = 'Mar  3 12:00:01 n1 containerd[9]: level=error msg="nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown"'
    loaded = "Mar  3 12:05:01 n1 kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024"
    for text, expected in ((line, ["not_loaded"]), (f"{line}\n{loaded}", [])):
        found = parse_text("kmsg", text)
        assert [o.value for o in found if o.fact == "node.driver.state" and o.status is Status.OK] == expected
