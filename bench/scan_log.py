"""How fast the log scanner is, next to ripgrep with the same patterns.

    python bench/scan_log.py --mb 1024 --runs 5

writes that much mixed system log (seeded, one incident in about two megabytes), then lets our
scanner and ``rg -c`` read it in turn, and prints medians, the ratio of throughputs (above 1:
faster than ripgrep) and the peak memory of each.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from probes.base import LogFormat  # noqa: E402  the checkout comes first on the path
from probes.parse import fabricmanager_log, kernel_log  # noqa: E402

FORMATS: tuple[LogFormat, ...] = (kernel_log.FORMAT, fabricmanager_log.FORMAT)
SCAN = (
    "import sys; from probes.scan import scan; from probes.parse import kernel_log, fabricmanager_log; "
    "r = scan([sys.argv[1]], [kernel_log.FORMAT, fabricmanager_log.FORMAT], engine=sys.argv[2]); "
    "print(r.inputs[0].matches, len(r.observations))"
)
DULL = (
    "sshd[{p}]: Accepted publickey for svc-{u} from 10.{a}.{b}.{c} port {p} ssh2: ED25519 SHA256:{x}{x}",
    "systemd[1]: Started session-{p}.scope - Session {p} of User svc-{u}.",
    "systemd[1]: logrotate.service: Deactivated successfully.",
    "CRON[{p}]: (root) CMD (test -x /usr/sbin/anacron || run-parts --report /etc/cron.hourly)",
    'kernel: [{s}] audit: type=1400 audit({s}:{p}): apparmor="ALLOWED" operation="open" profile="snap" pid={p} comm="ps"',
    "kernel: [{s}] IPv6: ADDRCONF(NETDEV_CHANGE): cali{x}: link becomes ready",
    "kernel: [{s}] docker0: port {a}(veth{x}) entered blocking state",
    "kernel: [{s}] EXT4-fs (sda{a}): mounted filesystem with ordered data mode. Quota mode: none.",
    'kubelet[{p}]: I0817 {p} reconciler.go:245] "VerifyControllerAttachedVolume started" volume="{x}" pod="worker-{a}"',
    'containerd[{p}]: time="2025-01-01T00:00:00.{p}Z" level=info msg="shim disconnected" id={x}{x}{x} namespace=k8s.io',
    "slurmd[{p}]: task/affinity: task_p_slurmd_batch_request: task_p_slurmd_batch_request: {p}",
    'dockerd[{p}]: {{"level":"warn","msg":"request timed out","id":"{x}","took":{s}}}',
    "postfix/smtpd[{p}]: connect from mail-{u}.example.net[10.{a}.{b}.{c}]",
    "dhclient[{p}]: DHCPACK of 10.{a}.{b}.{c} from 10.0.0.1 (xid=0x{x})",
)
INCIDENT = (
    "kernel: [{s}] NVRM: GPU at PCI:0000:{a:02x}:00: GPU-00000000-0000-4000-8000-0000{x}",
    "kernel: [{s}] NVRM: Xid (PCI:0000:{a:02x}:00): 94, pid={p}, name=python3, Ch 0000000{a}",
    "kernel: [{s}] pcieport 0000:00:01.1: AER: Corrected error received: 0000:00:01.1",
    "kernel: [{s}] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 12028, Non-fatal, Link {a} egress non-posted PRIV error (First)",
)


@dataclass(frozen=True, slots=True)
class Run:
    """What one process took: seconds of wall clock and CPU, peak MiB, and what it printed."""

    wall: float
    cpu: float
    memory: float
    said: str


def write_log(path: Path, size: int, seed: int) -> None:
    """`size` bytes of system log, about; the same for the same seed."""
    rng = random.Random(seed)

    def line(template: str) -> str:
        words = {
            "p": rng.randrange(1000, 99999), "u": rng.randrange(99), "a": rng.randrange(1, 29), "b": rng.randrange(255),
            "c": rng.randrange(255), "x": f"{rng.getrandbits(32):08x}", "s": f"{rng.random() * 1e6:.6f}",
        }  # fmt: skip
        when = f"Aug {rng.randrange(10, 28)} {rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"
        return f"{when} gpu-{rng.randrange(8):03d} {template.format(**words)}"

    pool = [line(rng.choice(DULL)) for _ in range(16_000)]  # about two megabytes
    written = 0
    with path.open("w", encoding="utf-8") as out:
        while written < size:
            rng.shuffle(pool)
            at = rng.randrange(len(pool))
            text = "\n".join([*pool[:at], *(line(template) for template in INCIDENT), *pool[at:]]) + "\n"
            out.write(text)
            written += len(text)


def timed(command: Sequence[str]) -> Run:
    """Run a command to its end."""
    start = perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        said = process.stdout.read().strip()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} ended with status {process.returncode}")
    return Run(perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=1024, help="size of the log in MB (1024)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each program (5)")
    parser.add_argument("--seed", type=int, default=7, help="of the log (7)")
    parser.add_argument("--engine", choices=("re2", "hyperscan", "auto"), default="re2", help="search engine (re2)")
    parser.add_argument("--folder", type=Path, help="where the log is written (a temporary folder)")
    options = parser.parse_args()
    rg = shutil.which("rg")
    if rg is None:
        print("rg is not installed (Debian package ripgrep): there is nothing to compare with", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        log = Path(folder) / "mixed.log"
        write_log(log, options.mb * 10**6, options.seed)
        megabytes = log.stat().st_size / 1e6
        patterns = [word for f in FORMATS for trigger in f.triggers for word in ("-e", trigger)]
        ours, theirs = [], []
        for _ in range(options.runs):
            ours.append(timed([sys.executable, "-c", SCAN, str(log), options.engine]))
            theirs.append(timed([rg, "-c", *patterns, str(log)]))
    print(f"log: {megabytes:.0f} MB, {len(patterns) // 2} patterns, {options.runs} runs each, engine {options.engine}")
    print(f"lines that match: gpudiag {ours[0].said.split()[0]}, rg {theirs[0].said}")
    print(f"{'median of':<12}{'wall s':>9}{'CPU s':>9}{'MB/s':>9}{'peak MiB':>10}")
    for name, runs in (("gpudiag", ours), ("rg -c", theirs)):
        wall, cpu = median([r.wall for r in runs]), median([r.cpu for r in runs])
        print(f"{name:<12}{wall:>9.2f}{cpu:>9.2f}{megabytes / wall:>9.0f}{max(r.memory for r in runs):>10.0f}")
    print(f"throughput ratio gpudiag/rg: wall {ratio([r.wall for r in theirs], [r.wall for r in ours]):.2f}, "
          f"CPU {ratio([r.cpu for r in theirs], [r.cpu for r in ours]):.2f}")  # fmt: skip
    return 0


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """How many times faster ours is."""
    return median(theirs) / median(ours)


if __name__ == "__main__":
    raise SystemExit(main())
