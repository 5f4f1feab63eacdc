"""Dask clusters by one word: ``local:4``, ``tcp://scheduler:8786``, ``ssh:a,b``, ``slurm:16``, ``kubernetes:16``.

What is started here is closed here; a scheduler that was there before stays as it is. SSH, Slurm and Kubernetes take
their own settings (partition, account, image, memory) from Dask's configuration files, as their users know them:
``~/.config/dask/jobqueue.yaml``, ``kubernetes.yaml``. The workers need gpudiag installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from knowledge.errors import UsageError
from knowledge.record import dataclass

FORMS: Final = ("local[:N]", "[tcp://]HOST:PORT", "ssh:HOST,HOST,...", "slurm:N", "kubernetes:N")
_HINT: Final = f"one of: {', '.join(FORMS)}"
_MOST: Final = 4096  # workers: more is a slip of the finger
# The package beside dask[distributed] that each kind needs.
_NEEDS: Final = {"ssh": "asyncssh", "slurm": "dask-jobqueue", "kubernetes": "dask-kubernetes"}

_COMES_UP: Final = {
    "ssh": "ssh HOST true must work without a password, with a known host key, and the same Python must be there"
}


@dataclass(frozen=True, slots=True)
class Where:
    """A place to run, parsed."""

    kind: str  # local, address, ssh, slurm, kubernetes
    workers: int | None = None  # None: as many as a scheduler has that was there before
    address: str = ""
    hosts: tuple[str, ...] = ()


def parse(where: str) -> Where:
    """`where` as the user wrote it. UsageError names the forms that there are."""
    kind, _, rest = where.partition(":")
    if re.fullmatch(r"(?:tcp|tls|ucx|ws|wss)://\S+:\d{1,5}", where):
        return Where("address", address=where)
    if kind == "ssh" and rest and all(re.fullmatch(r"[A-Za-z0-9_][\w.@-]*", h) for h in rest.split(",")):
        return Where("ssh", len(rest.split(",")), hosts=tuple(rest.split(",")))
    if kind in ("local", "slurm", "kubernetes") and (
        re.fullmatch(r"\d{1,4}", rest) or (kind == "local" and where == "local")
    ):
        count = int(rest) if rest else None
        if count is None or 0 < count <= _MOST:
            return Where(kind, count or max(1, len(os.sched_getaffinity(0))))
    if kind not in _STARTS and re.fullmatch(r"[A-Za-z0-9][\w.-]*:\d{1,5}", where):
        return Where("address", address=f"tcp://{where}")
    raise UsageError(f"{where!r} is no place to run", hint=_HINT)


def distributed() -> Any:
    """The package, imported when first needed; it is typed in small parts only."""
    return import_module("distributed")


@contextmanager
def client(where: Where, timeout_s: float) -> Iterator[Any]:
    """A client of the cluster; at the end the client, and a cluster that was started for it, are closed.

    UsageError when a package is missing or nobody answers at an address.
    """
    try:
        dask, package = import_module("dask"), distributed()
    except ImportError as e:
        raise UsageError("Dask is not installed", hint="pip install 'gpudiag[fleet]'") from e
    # Otherwise a trace that kills its worker (memory) takes three more workers with it; who calls tries again.
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.comm.timeouts.connect": f"{timeout_s}s"}
    with dask.config.set(settings):
        cluster = None if where.kind == "address" else _started(where)
        try:
            made = package.Client(where.address or cluster, timeout=timeout_s, set_as_default=False)
        except (OSError, TimeoutError) as e:
            if cluster is not None:
                cluster.close(timeout=timeout_s)
            raise UsageError(f"no Dask scheduler answers at {where.address or where.kind}", hint=str(e)) from e
        try:
            with made.as_current():
                yield made
        finally:
            made.close(timeout=timeout_s)
            if cluster is not None:
                cluster.close(timeout=timeout_s)


def _started(where: Where) -> Any:
    try:
        return _STARTS[where.kind](where)
    except ImportError as e:
        package = _NEEDS.get(where.kind, "dask[distributed]")
        raise UsageError(f"{where.kind} needs the package {package}", hint=f"pip install '{package}'") from e
    except RuntimeError as e:  # what Dask says of a cluster that did not come up, whatever the reason was
        raise UsageError(f"no Dask cluster over {where.kind}: {e}", hint=_COMES_UP.get(where.kind, "")) from e


def _local(where: Where) -> Any:
    """Processes on this machine, one thread each: decoding holds the interpreter's lock."""
    return distributed().LocalCluster(n_workers=where.workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
                        silence_logs="CRITICAL")  # fmt: skip


def _ssh(where: Where) -> Any:
    """A scheduler on the first host, a worker on each, with the user's own keys and known hosts."""
    import_module("asyncssh")  # SSHCluster imports it late, inside its event loop
    return distributed().SSHCluster(
        [where.hosts[0], *where.hosts], worker_options={"nthreads": 1}, scheduler_options={"dashboard": False}
    )


def _slurm(where: Where) -> Any:
    """`where.workers` jobs of one core each; partition, account and walltime from jobqueue.yaml."""
    memory = import_module("dask").config.get("jobqueue.slurm.memory", None) or "4GiB"
    cluster = import_module("dask_jobqueue").SLURMCluster(cores=1, processes=1, memory=str(memory))
    cluster.scale(jobs=where.workers)
    return cluster


def _kubernetes(where: Where) -> Any:
    """Pods by the Dask operator; the image (with gpudiag in it) from kubernetes.yaml."""
    return import_module("dask_kubernetes.operator").KubeCluster(name="gpudiag", n_workers=where.workers)


_STARTS: Final = {"local": _local, "ssh": _ssh, "slurm": _slurm, "kubernetes": _kubernetes}
