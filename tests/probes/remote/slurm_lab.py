"""A real Slurm of two nodes on loopback, which are this machine; as root, in a folder of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.probes.remote.sshd_lab import free_port


@dataclass
class Slurm:
    """munged, slurmctld and a slurmd for each of gpu01 and gpu02. The tools find it through SLURM_CONF."""

    folder: Path

    def start(self) -> Slurm:
        """Start it and wait for its nodes. Needs root, and what `components` lists of Slurm."""
        folder, host = self.folder, socket.gethostname()
        for name in ("state", "spool", "munge"):
            (folder / name).mkdir(parents=True)
        os.chmod(folder, 0o755)  # noqa: PTH101 - munge wants to know that nobody else may write here
        key = folder / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        munge = [f"--{n}-file={folder}/munge/{n}" for n in ("key", "pid", "log", "seed")]
        subprocess.run(["munged", "--force", *munge, f"--socket={folder}/munge/sock"], check=True, capture_output=True)
        first, second = free_port(), free_port()
        (folder / "slurm.conf").write_text(
            f"ClusterName=lab\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nAuthType=auth/munge\nCredType=cred/munge\n"
            f"AuthInfo=socket={folder}/munge/sock\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool/%n\n"
            f"SlurmctldPort={free_port()}\nSlurmctldPidFile={folder}/ctld.pid\nSlurmdPidFile={folder}/slurmd.%n.pid\n"
            f"SlurmctldLogFile={folder}/ctld.log\nSlurmdLogFile={folder}/slurmd.%n.log\nProctrackType=proctrack/linuxproc\n"
            "TaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSchedulerType=sched/builtin\n"
            "SwitchType=switch/none\nMpiDefault=none\nReturnToService=2\nAccountingStorageType=accounting_storage/none\n"
            "JobAcctGatherType=jobacct_gather/none\n"
            f"NodeName=gpu01 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=1\n"
            f"NodeName=gpu02 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=1\n"
            "PartitionName=batch Nodes=ALL Default=YES State=UP\n"
        )
        for words in (["slurmctld", "-i"], ["slurmd", "-N", "gpu01"], ["slurmd", "-N", "gpu02"]):
            subprocess.run(words, check=True, capture_output=True, env=self.env)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if self.told("sinfo", "-h", "-N", "-o", "%T").split() == ["idle", "idle"]:
                return self
            time.sleep(0.1)
        raise RuntimeError((folder / "ctld.log").read_text()[-2000:])

    @property
    def env(self) -> dict[str, str]:
        """An environment in which the tools find it."""
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def told(self, *words: str) -> str:
        """What a tool of Slurm's prints."""
        return subprocess.run(words, capture_output=True, text=True, env=self.env, check=False, timeout=20).stdout

    def end(self, name: str) -> None:
        """End one daemon: ctld, slurmd.gpu01, slurmd.gpu02, munge/pid."""
        file = self.folder / (f"{name}.pid" if "/" not in name else name)
        with suppress(OSError, ValueError):
            os.kill(int(file.read_text()), signal.SIGTERM)

    def stop(self) -> None:
        """End all of it, and what still runs."""
        self.told("scancel", "--user=root")
        until = time.monotonic() + 10
        while self.told("squeue", "-h").strip() and time.monotonic() < until:
            time.sleep(0.1)
        for name in ("slurmd.gpu01", "slurmd.gpu02", "ctld", "munge/pid"):
            self.end(name)
