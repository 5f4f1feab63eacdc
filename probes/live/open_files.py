"""Files that processes with a GPU write: where checkpoints go, and whether they move."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document
from probes.parse import open_files_snapshot

DEVICES = ("/dev/nvidia[0-9]*", "/dev/kfd", "/dev/davinci[0-9]*", "/dev/dri/renderD*")
MAIN = ("node.gpu_writers",)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the snapshot; a machine without device files of a GPU is not asked further."""
    if not any(host.files(pattern) for pattern in DEVICES):
        return absent(MAIN, host, "/proc/net/dev", open_files_snapshot.FORMAT, "there is no device file of a GPU here")
    reply = host.snapshot("open_files", deadline=request.deadline)
    return document(reply, host, open_files_snapshot.FORMAT, MAIN)


PROBE = ProbeSpec(
    name="open-files",
    title=Text("files that GPU processes write (/proc)", "GPU 进程正在写的文件（/proc）"),
    provides=open_files_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(files=DEVICES, privileges=("root, for processes of other users",)),
    cost=Cost.CHEAP,
    deadline=5.0,
)
