"""The shipped files, used: the unit under a real systemd, the DaemonSet's situation, and what their comments promise."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.assistant.watch.systemd_lab import ROOT, UNIT, lab, until
from tests.components import cannot
from tests.conftest import Gpudiag
from tests.probes.live.machine import in_own_mounts, need_mounts
from tests.probes.live.test_kernel_log_probe import export

DEPLOY = ROOT / "assistant" / "deploy"
CAPABILITIES = {"SYSLOG", "SYS_PTRACE", "DAC_READ_SEARCH"}


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def compiled(gpudiag: Gpudiag, environment: dict[str, str]) -> Path:
    """A folder with the compiled data."""
    gpudiag("check", "--probe", "kernel-log", "--no-history")
    return Path(environment["GPUDIAG_CACHE_DIR"])


def test_systemd_runs_it_as_shipped(tmp_path: Path, gpudiag: Gpudiag, clean_environment: dict[str, str]) -> None:
    port = free_port()
    with lab(tmp_path, port, compiled(gpudiag, clean_environment)) as systemd:

        def why() -> str:
            return (
                systemd.log()
                + (tmp_path / "systemd.log").read_text()
                + systemd.run("systemctl", "status", "gpudiag-watch")
            )

        def get(path: str) -> str:
            return systemd.run(
                sys.executable, "-c",
                f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{port}{path}', timeout=5).read().decode())",
            )  # fmt: skip

        until(lambda: systemd.shows("ActiveState") == "active", 60, why)  # Type=notify: READY has come
        assert "gpudiag_verdict" in get("/metrics")
        assert 'gpudiag_probe_up{probe="system"} 1.0' in get("/metrics")
        until(lambda: systemd.shows("StatusText"), 20, why)
        first = int(systemd.shows("MainPID"))
        status = systemd.run("cat", f"/proc/{first}/status")
        assert re.search(r"^CapBnd:\t0*400080004$", status, re.MULTILINE), status
        assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
        kept = json.loads(systemd.run("cat", "/var/lib/gpudiag/watch.json"))
        assert kept["schema"] == "gpudiag/watch/1"

        systemd.run("kill", "-STOP", str(first))  # hangs: the watchdog ends it, and systemd starts another
        until(lambda: int(systemd.shows("MainPID")) not in (0, first), 40, why)
        until(lambda: systemd.shows("ActiveState") == "active", 60, why)
        assert int(systemd.shows("NRestarts")) == 1

        systemd.run("systemctl", "stop", "gpudiag-watch")
        assert systemd.shows("Result") == "success", why()
        assert "Traceback" not in systemd.log()


@pytest.mark.process
def test_systemd_finds_no_fault_in_the_unit(require: Callable[[str], str]) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        cannot("systemd", "systemd-analyze is not installed")
        raise AssertionError
    done = subprocess.run([analyze, "verify", str(UNIT)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    argv = [analyze, "security", "--offline=yes", "--threshold=50", str(UNIT)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if "unrecognized option" in done.stderr:
        cannot("systemd", "systemd-analyze is too old to judge a file")
    assert done.returncode == 0, done.stdout[-300:]


@pytest.mark.parametrize(
    ("name", "part"), [("systemd", "[Service]"), ("kubernetes", "DaemonSet"), ("container", "FROM ")]
)
def test_the_files_are_printed(gpudiag: Gpudiag, name: str, part: str) -> None:
    answer = gpudiag("watch", "--print", name)
    assert (answer.code, answer.err) == (0, "")
    assert part in answer.out


# --- Kubernetes ---------------------------------------------------------------------------


def manifests() -> dict[str, dict[str, Any]]:
    documents = yaml.safe_load_all((DEPLOY / "daemonset.yaml").read_text())
    return {d["kind"]: d for d in documents}


def test_the_daemonset_keeps_what_its_comments_promise() -> None:
    kinds = manifests()
    pod = kinds["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    security = container["securityContext"]
    assert pod["tolerations"] == [{"operator": "Exists"}], "every taint, whatever its effect"
    assert security["capabilities"] == {"drop": ["ALL"], "add": security["capabilities"]["add"]}
    assert set(security["capabilities"]["add"]) == CAPABILITIES
    assert security["privileged"] is False
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert pod["automountServiceAccountToken"] is False
    assert kinds["ServiceAccount"]["automountServiceAccountToken"] is False
    assert not {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} & set(kinds), "no access to the API"
    assert pod["hostPID"] is True
    assert "hostNetwork" not in pod
    mounts = {m["name"]: m for m in container["volumeMounts"]}
    volumes = {v["name"]: v for v in pod["volumes"]}
    assert mounts.keys() == volumes.keys()
    assert mounts["host"]["readOnly"] is True
    writable = [volumes[name] for name, m in mounts.items() if not m.get("readOnly")]
    assert [v.get("hostPath", {}).get("path") for v in writable] == ["/var/lib/gpudiag", None]
    selector = kinds["DaemonSet"]["spec"]["selector"]["matchLabels"]
    assert kinds["DaemonSet"]["spec"]["template"]["metadata"]["labels"].items() >= selector.items()
    port = {p["name"]: p["containerPort"] for p in container["ports"]}[container["livenessProbe"]["httpGet"]["port"]]
    assert container["args"][container["args"].index("--listen") + 1].endswith(f":{port}")
    assert str(port) == kinds["DaemonSet"]["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"]


def test_its_arguments_and_variables_exist(gpudiag: Gpudiag) -> None:
    (container,) = manifests()["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    known = gpudiag("watch", "--help").out
    assert all(word in known for word in container["args"] if word.startswith("--"))
    ours = {e["name"]: e.get("value", "x") for e in container["env"] if e["name"].startswith("GPUDIAG_")}
    assert "unknown" not in gpudiag("config", "show", env=ours).err


CONTAINER = """
root=$1; shift
mount -t tmpfs -o mode=755 none "$root"
for place in usr bin sbin lib lib64 etc; do
    [ -e "/$place" ] || continue
    if [ -L "/$place" ]; then ln -s "$(readlink "/$place")" "$root/$place"; continue; fi
    mkdir -p "$root/$place"; mount --rbind "/$place" "$root/$place"
done
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/host" "$root/var/lib/gpudiag"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
for device in null zero urandom; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
mount --rbind / "$root/host"
mount -o remount,bind,ro "$root/host"
mount -t tmpfs -o nodev none "$root/host/dev"  # the devices of the node are not given to a container
mknod "$root/host/dev/kmsg" c 1 11
[ -z "$JOURNAL" ] || mount --bind "$JOURNAL" "$root/host/var/log"
mount -t tmpfs none "$root/tmp"
mount -t tmpfs none "$root/var/lib/gpudiag"
echo "$OURS" | while read -r place; do  # the checkout and its Python, wherever they lie
    [ -e "$root$place" ] || { mkdir -p "$root$place"; mount --bind "$place" "$root$place"; }
done
mkdir -p "$root/tmp/gpudiag"; cp -r "$CACHE/." "$root/tmp/gpudiag/"
mount -o remount,bind,ro "$root"
cd /
exec chroot "$root" setpriv --bounding-set=-all,+syslog,+sys_ptrace,+dac_read_search --inh-caps=-all \
    --no-new-privs --reuid=0 --clear-groups "$@"
"""


class Container:
    """The DaemonSet's container, made with what is here: its root, its mounts, its capabilities, its variables."""

    def __init__(self, folder: Path, cache: Path) -> None:
        (container,) = manifests()["DaemonSet"]["spec"]["template"]["spec"]["containers"]
        self._folder, self._cache = folder, cache
        self._env = [f"{e['name']}={e['value']}" for e in container["env"] if "value" in e]

    def run(self, *words: str, journal: str = "") -> subprocess.CompletedProcess[str]:
        inside = [
            "env", "-i", *self._env, "GPUDIAG_HOST_NAME=node-7", f"PATH={os.environ['PATH']}", f"PYTHONPATH={ROOT}",
            sys.executable, "-B", "-m", "assistant", *words, "--no-history",
        ]  # fmt: skip
        root = self._folder / "root"
        root.mkdir(exist_ok=True)
        ours = "\n".join(dict.fromkeys((str(ROOT), sys.base_prefix, sys.prefix)))
        script = f"CACHE={self._cache}\nJOURNAL={journal}\nOURS='{ours}'\n{CONTAINER}"
        done = in_own_mounts(script, str(root), *inside, timeout=90)
        assert "Traceback" not in done.stderr
        assert "this is a bug" not in done.stderr, done.stderr
        return done


@pytest.fixture
def container(tmp_path: Path, gpudiag: Gpudiag, clean_environment: dict[str, str]) -> Container:
    need_mounts()
    return Container(tmp_path, compiled(gpudiag, clean_environment))


def answers(document: dict[str, Any], fact: str) -> list[dict[str, Any]]:
    return [o for o in document["observations"] if o["fact"] == fact]


def test_a_container_like_the_daemonsets_watches(container: Container) -> None:
    done = container.run("watch", "--interval", "0.5", "--rounds", "2", "--listen", "127.0.0.1:0")
    assert done.returncode in (0, 1, 3), done.stderr
    assert "cannot be" not in done.stderr


def test_in_a_container_the_ring_buffer_is_asked_for_by_system_call(container: Container) -> None:
    done = container.run("check", "--probe", "kernel-log", "--format", "json")
    answer = json.loads(done.stdout)
    assert answer["verdict"]["state"] in ("ok", "degraded", "unhealthy")
    assert "dmesg -x" in done.stdout, "no device of the node can be opened, and there is no journal of this container"


def test_in_a_container_the_journal_of_the_machine_is_read(
    container: Container, tmp_path: Path, require: Callable[[str], str]
) -> None:
    require("journalctl")
    folder = tmp_path / "log" / "journal" / ("1" * 32)
    folder.mkdir(parents=True)
    now = time.time_ns()
    lines = [
        (now - 3600 * 10**9, "2" * 32, "kernel", "Linux version 5.15.0-100-generic"),
        (
            now - 60 * 10**9,
            "2" * 32,
            "kernel",
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=train, GPU has fallen off the bus.",
        ),
    ]
    (tmp_path / "export").write_bytes(export(lines))
    argv = [require("journal-remote"), "-o", str(folder / "system.journal"), str(tmp_path / "export")]
    subprocess.run(argv, check=True, capture_output=True, timeout=30)
    done = container.run("check", "--probe", "kernel-log", "--format", "json", journal=str(tmp_path / "log"))
    answer = json.loads(done.stdout)
    assert "gpu-fell-off-bus" in [f["rule"] for f in answer["findings"]]
    assert "journalctl" in done.stdout
