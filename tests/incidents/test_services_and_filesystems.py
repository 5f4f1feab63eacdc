"""Stories in which a service or a file system is the cause: the rest of what is seen folds under it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import Gpudiag

NFS = "43 27 0:52 / /data rw,relatime - nfs4 filer-1:/data rw,vers=4.2,hard"
DISK = "43 27 8:1 / /var rw,relatime - ext4 /dev/sdb1 "
ROOM = {"frsize": 4096, "blocks": 10**8, "bfree": 5 * 10**7, "bavail": 5 * 10**7, "files": 10**6, "ffree": 9 * 10**5,
        "favail": 9 * 10**5, "flag": 0}  # fmt: skip
FULL = ROOM | {"bfree": 10, "bavail": 0}
AT = 1795245330 * 10**9


def snapshot(schema: str, **content: Any) -> str:
    return json.dumps({"schema": f"gpudiag/{schema}/1", "host": "n1", "at_ns": AT, **content}, indent=1)


def filesystems(line: str, answer: Any) -> str:
    return snapshot("filesystems", table="/proc/self/mountinfo", mounts=[{"line": line, "statvfs": answer}])


def unit(name: str, active: str, sub: str, restarts: int = 0) -> list[str]:
    return [f"Id={name}.service", "LoadState=loaded", f"ActiveState={active}", f"SubState={sub}", "Result=exit-code",
            f"NRestarts={restarts}", ""]  # fmt: skip


def services(*units: list[str], **more: Any) -> str:
    text = [line for one in units for line in one]
    return snapshot("services", uptime_s=90000.0, systemctl={"call": "systemctl show", "exit": 0, "text": text}, **more)


def check(gpudiag: Gpudiag, folder: Path, **inputs: str) -> dict[str, tuple[str, list[str]]]:
    """Role and causes of each finding."""
    for name, text in inputs.items():
        (folder / name).write_text(text)
    answer = gpudiag("check", "--host", "n1", "--format", "json", *map(str, sorted(folder.iterdir())))
    findings = json.loads(answer.out)["findings"]
    return {f["rule"]: (f["role"], [cause.partition("@")[0] for cause in f["explained_by"]]) for f in findings}


def test_a_dead_file_server_explains_what_waits_for_it(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log = (
        "Nov 21 07:10:00 n1 kernel: nfs: server filer-1 not responding, still trying\n"
        "Nov 21 07:12:01 n1 kernel: INFO: task python3:4242 blocked for more than 120 seconds.\n"
    )
    found = check(gpudiag, tmp_path, fs=filesystems(NFS, {"hung": "statvfs(/data)", "seconds": 1.0}), kern=log)
    assert found["filesystem-does-not-answer"] == ("root", [])
    assert found["file-system-stalled"] == ("symptom", ["filesystem-does-not-answer"])
    assert found["task-hung"][0] == "symptom"


def test_a_full_disk_explains_the_agent_that_does_not_start(gpudiag: Gpudiag, tmp_path: Path) -> None:
    found = check(
        gpudiag,
        tmp_path,
        fs=filesystems(DISK + "rw", FULL),
        services=services(unit("kubelet", "activating", "auto-restart", 9)),
    )
    assert found["filesystem-full"] == ("root", [])
    assert found["filesystem-nearly-full"] == ("symptom", ["filesystem-full"])
    assert found["job-agent-failed"] == ("symptom", ["filesystem-full"])
    assert found["service-restart-loop"] == ("symptom", ["job-agent-failed"])


def test_another_version_of_the_fabric_manager_explains_why_cuda_does_not_start(
    gpudiag: Gpudiag, tmp_path: Path
) -> None:
    driver = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31"
    smi = (
        "\n==============NVSMI LOG==============\n\nTimestamp                                 : Sat Nov 21 07:10:00 2026\n"
        "Driver Version                            : 550.90.07\nCUDA Version                              : 12.4\n\n"
        "Attached GPUs                             : 1\nGPU 00000000:3B:00.0\n"
        "    Product Name                          : NVIDIA H100 80GB HBM3\n    Persistence Mode                      : Enabled\n"
        "    Fabric\n        State                             : In Progress\n        Status                            : N/A\n"
    )
    error = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    torch.cuda.init()\n'
    found = check(
        gpudiag, tmp_path, smi=smi, services=services(unit("nvidia-fabricmanager", "failed", "failed"), driver=driver),
        version="Fabric Manager version is : 550.54.15\n", job=error + "RuntimeError: CUDA error: system not yet initialized\n",
    )  # fmt: skip
    assert found["fabric-manager-version-differs"] == ("root", [])
    assert found["fabric-manager-not-running"] == ("symptom", ["fabric-manager-version-differs"])
    for effect in ("fabric-not-ready", "cuda-system-not-ready"):
        assert found[effect][0] == "symptom"


def test_a_healthy_node_is_silent(gpudiag: Gpudiag, tmp_path: Path) -> None:
    text = services(
        unit("slurmd", "active", "running"),
        unit("chronyd", "active", "running"),
        clock={"status": 1, "maxerror_us": 900},
    )
    assert check(gpudiag, tmp_path, fs=filesystems(DISK + "rw", ROOM), services=text) == {}
