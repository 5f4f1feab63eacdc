"""What it costs to look at another machine: a check over ssh on loopback against the same check of this machine.

    python bench/remote.py [--runs 5] [--python PATH]

Prints the wall seconds of all default probes here and over ssh (with the connection), their difference (wanted: at
most 1.5 s), the bytes that are sent (at most 300 KB) and come back, and the memory that everything of ours takes on
the other side at its highest, as shared out among those who share it (PSS; at most 60 MB). Here both sides share two
machines' work: on a real network the far side's half of the handshake is the other machine's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from probes.live_host import LiveHost  # noqa: E402
from probes.remote.remote_host import RemoteHost  # noqa: E402
from probes.runner import run, select  # noqa: E402
from tests.probes.remote.sshd_lab import Sshd  # noqa: E402

JOBS = 16  # as assistant.machine.JOBS


def family(pid: int) -> list[int]:
    """A process and all that it started, as far as they are there."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    out = [pid]
    for one in out:
        out += parents.get(one, [])
    return out


def memory(pid: int) -> int:
    """KiB of a process and all that it started, shared pages counted by share."""
    total = 0
    for one in family(pid):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except (OSError, StopIteration):
            continue
    return total


def here() -> float:
    """Seconds of a check of this machine."""
    begun = time.perf_counter()
    with LiveHost() as host:
        run(host, select(), budget=30, jobs=JOBS)
    return time.perf_counter() - begun


def there(server: Sshd, python: str, watch: bool) -> tuple[float, float, tuple[int, int], int]:
    """Seconds of the connection and of all, bytes both ways, and the highest memory in KiB (0 unless it is watched)."""
    begun = time.perf_counter()
    with RemoteHost(server.reach(python=python), budget=30) as host:
        connected = time.perf_counter() - begun
        peak, over = [0], threading.Event()
        if watch:
            pid = int(host.run(["sh", "-c", "echo $PPID"], deadline=5).text)

            def look() -> None:
                while not over.wait(0.01):
                    peak[0] = max(peak[0], memory(pid))

            threading.Thread(target=look, daemon=True).start()
        run(host, select(), budget=30, jobs=JOBS)
        over.set()
        traffic = host.traffic
    return connected, time.perf_counter() - begun, traffic, peak[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="the interpreter on the other side")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Sshd(Path(folder)).start()
        try:
            local, remote, connections = [], [], []
            traffic = (0, 0)
            for _ in range(args.runs):
                local.append(here())
                connected, took, traffic, _ = there(server, args.python, watch=False)
                remote.append(took)
                connections.append(connected)
            peak = there(server, args.python, watch=True)[3]
        finally:
            server.stop()
    a, b = statistics.median(local), statistics.median(remote)
    print(f"check here      {a:6.2f} s")
    print(
        f"check over ssh  {b:6.2f} s   {b - a:+.2f} s (wanted: at most 1.5), of which connection {statistics.median(connections):.2f}"
    )
    print(f"sent            {traffic[0] / 1000:6.0f} KB  (wanted: at most 300); came back {traffic[1] / 1000:.0f} KB")
    print(f"memory there    {peak / 1000:6.1f} MB  (wanted: at most 60), all processes together")


if __name__ == "__main__":
    main()
