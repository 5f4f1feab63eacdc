"""What logs cost, next to ripgrep with the same patterns.

    python bench/scan_log.py --mb 1024 --runs 3

writes seeded logs (a training log of dense ``NCCL INFO`` with a fatal XID as its last line, a kernel log of which one line in 25
tells of a link, a system log that hardly matches; bursts of one XID on one GPU and on a hundred), lets ``gpudiag check`` and
``rg -c`` with the triggers of all log formats read each in turn, and prints medians of CPU seconds, their ratio (below 1: cheaper
than ripgrep) and the peak memory. ``gpudiag check`` of a single line is what starting costs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from probes.registry import log_formats  # noqa: E402  the checkout comes first on the path

FATAL = "Aug 27 03:00:01 gpu-009 kernel: NVRM: Xid (PCI:0000:3b:00): 95, pid=4242, name=python, Uncontained: LTC TAG"
XID = "Aug 27 {h:02d}:{m:02d}:{s:02d} gpu-001 kernel: NVRM: Xid (PCI:{d:04x}:{b:02x}:00): 94, pid=4242, name=python, Contained: SM (0x1)"
BURST = 100_000  # lines
POOL = 100_000  # different lines of a log, shuffled over and over
DENSE = (
    "gpu-{n:03d}:{p}:{q} [{g}] NCCL INFO Channel {c:02d}/0 : {r}[{g}] -> {o}[{g}] via P2P/CUMEM/read",
    "gpu-{n:03d}:{p}:{q} [{g}] NCCL INFO AllReduce: opCount {x:x} sendbuff 0x7f{x:010x} count {q} datatype 9 op 0 root 0 comm 0x{x:x} [nranks=512]",
    "gpu-{n:03d}:{p}:{q} [{g}] NCCL INFO NET/IB: NCCL Dev {g} IbDev {g} Port 1 qpn {p} mtu 5 LID {r} subnet-prefix {q}  FIFO RDMA rkey 0x{x:x}",
    "[2026-08-27 01:{m:02d}:{s:02d}] iteration {p:8d}/  500000 | consumed samples: {q} | elapsed time per iteration (ms): {p}.{g} | lm loss: 1.{q}E+00 |",
    "[rank{r}]: {p}-th step tokens/s {q} mfu 0.{c} mem {c}.{g}GiB",
)
DULL = (
    "sshd[{p}]: Accepted publickey for svc-{c} from 10.{c}.{g}.{m} port {p} ssh2: ED25519 SHA256:{x:x}{x:x}",
    "systemd[1]: Started session-{p}.scope - Session {p} of User svc-{c}.",
    "CRON[{p}]: (root) CMD (test -x /usr/sbin/anacron || run-parts --report /etc/cron.hourly)",
    'kernel: [{q}.{m:06d}] audit: type=1400 audit({q}:{p}): apparmor="ALLOWED" operation="open" profile="snap" pid={p} comm="ps"',
    "kernel: [{q}.{m:06d}] docker0: port {c}(veth{x:x}) entered blocking state",
    'kubelet[{p}]: I0817 {p} reconciler.go:245] "VerifyControllerAttachedVolume started" volume="{x:x}" pod="worker-{c}"',
    'containerd[{p}]: time="2026-08-27T00:00:00.{p}Z" level=info msg="shim disconnected" id={x:x}{x:x}{x:x} namespace=k8s.io',
    "slurmd[{p}]: task/affinity: task_p_slurmd_batch_request: task_p_slurmd_batch_request: {p}",
    "postfix/smtpd[{p}]: connect from mail-{c}.example.net[10.{c}.{g}.{m}]",
    "dhclient[{p}]: DHCPACK of 10.{c}.{g}.{m} from 10.0.0.1 (xid=0x{x:x})",
)
LINK = "kernel: mlx5_core 0000:{c:02x}:00.0 ibp{r}s0: Link up"
INCIDENT = (
    "kernel: NVRM: Xid (PCI:0000:{c:02x}:00): 94, pid={p}, name=python3, Ch 0000000{g}",
    "kernel: pcieport 0000:00:01.1: AER: Corrected error received: 0000:00:01.1",
    "kernel: nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 12028, Non-fatal, Link {c} egress non-posted PRIV error (First)",
)


@dataclass(frozen=True, slots=True)
class Run:
    """What one process took: CPU seconds, peak MiB, and what it printed."""

    cpu: float
    memory: float
    said: str


def filled(template: str, rng: random.Random) -> str:
    """One line."""
    q = rng.randrange
    words = {
        "n": q(64),
        "p": q(1000, 99_999),
        "q": q(10**7),
        "g": q(8),
        "c": q(1, 32),
        "r": q(512),
        "o": q(512),
        "m": q(60),
        "s": q(60),
        "x": q(1 << 40),
    }
    return template.format(**words)


def stamped(template: str, rng: random.Random) -> str:
    """One line of a system log."""
    when = f"Aug 27 {rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d} gpu-{rng.randrange(64):03d}"
    return f"{when} {filled(template, rng)}"


def dense(rng: random.Random) -> str:
    """Of a training job."""
    return filled(rng.choice(DENSE), rng)


def kernel(rng: random.Random) -> str:
    """Of a node: one line in 25 tells of a link, one in 20,000 of an incident."""
    lot = rng.random()
    return stamped(rng.choice(INCIDENT) if lot < 1 / 20_000 else LINK if lot < 0.04 else rng.choice(DULL), rng)


def dull(rng: random.Random) -> str:
    """Of a node to which little happens."""
    return stamped(rng.choice(INCIDENT) if rng.random() < 1 / 20_000 else rng.choice(DULL), rng)


def endless(line: Callable[[random.Random], str], size: int) -> Iterator[str]:
    """`size` bytes of a log, about; the same each time."""
    rng = random.Random(7)
    pool = [line(rng) for _ in range(POOL)]
    written = 0
    while written < size:
        rng.shuffle(pool)
        text = "\n".join(pool)
        written += len(text) + 1
        yield text
    yield FATAL


def burst(gpus: int) -> Iterator[str]:
    """One XID again and again, ten a second."""
    for i in range(BURST):
        t, g = i // 10, i % gpus
        yield XID.format(h=t // 3600, m=t // 60 % 60, s=t % 60, d=g // 32, b=16 + g % 32)


def timed(command: Sequence[str], env: dict[str, str]) -> Run:
    """Run a command to its end."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env) as process:
        assert process.stdout is not None
        said = process.stdout.read().strip()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1, 3):
        raise SystemExit(f"{command[0]} ended with status {process.returncode}")
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said)


def patterns() -> list[str]:
    """The triggers of all log formats as ripgrep takes them: each in a group of its own, so that its flags end with it."""
    return [f"(?:{trigger})".replace('\\"', '"') for f in log_formats() for trigger in f.triggers]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=1024, help="size of a log in MB (1024)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each program (3)")
    parser.add_argument("--folder", type=Path, help="where the logs are written (a temporary folder)")
    options = parser.parse_args()
    rg = shutil.which("rg")
    if rg is None:
        print("rg is not installed (Debian package ripgrep): there is nothing to compare with", file=sys.stderr)
        return 2
    logs = {
        "one line": iter([FATAL]), "dense NCCL INFO": endless(dense, options.mb * 10**6),
        "4 % matching": endless(kernel, options.mb * 10**6), "hardly matching": endless(dull, options.mb * 10**6),
        "burst, 1 GPU": burst(1), "burst, 100 GPUs": burst(100),
    }  # fmt: skip
    check = [
        sys.executable,
        "-c",
        "import sys; from assistant.cli import main; sys.exit(main())",
        "check",
        "--no-history",
        "--format",
        "json",
    ]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        env = {**os.environ, "XDG_CACHE_HOME": folder, "XDG_STATE_HOME": folder}
        given = Path(folder) / "patterns"
        given.write_text("\n".join(patterns()), encoding="utf-8")
        print(
            f"{'log':<18}{'MB':>6}{'gpudiag CPU s':>15}{'rg -c CPU s':>13}{'ratio':>7}{'peak MiB':>10}{'events':>9}  last line"
        )
        for name, lines in logs.items():
            log = Path(folder) / "bench.log"
            with log.open("w", encoding="utf-8") as out:
                out.writelines(f"{line}\n" for line in lines)
            timed([*check, "--log", str(log)], env)  # what is compiled once is there from then on
            ours, theirs = [], []
            for _ in range(options.runs):
                ours.append(timed([*check, "--log", str(log)], env))
                theirs.append(timed([rg, "-c", "-f", str(given), str(log)], env))
            cpu, other = (statistics.median(run.cpu for run in runs) for runs in (ours, theirs))
            answer = json.loads(ours[0].said)
            events = sum(event.get("times", 1) for event in answer["events"])
            found = any(f["xid"] in (94, 95) for f in answer["findings"])
            print(f"{name:<18}{log.stat().st_size / 1e6:>6.0f}{cpu:>15.2f}{other:>13.2f}{cpu / other:>7.2f}"
                  f"{max(run.memory for run in ours):>10.0f}{events:>9}  {'found' if found else 'LOST'}", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
