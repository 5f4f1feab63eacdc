"""Who speaks in a system log: a fault that a program writes about is none; one that a program reports is."""

from __future__ import annotations

from knowledge.observation import Event
from probes.base import Context, lines_of
from probes.parse import cuda_error, kernel_log, torch_oom
from tests.cases import each

HEADS = ("Nov 28 10:00:09 gpu-3 {}: {}", "2026-11-28T10:00:09.120+00:00 gpu-3 {}: {}")
WRITTEN = [
    ("alice[1300]", "reminder: read docs on Xid 79 and 'GPU has fallen off the bus' before the exam"),
    ("pam_motd[7]", 'If nvidia-smi says "Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error", open a ticket'),
    ("node_exporter[9]", 'level=info metric="xid_79_total 0" help="GPU has fallen off the bus count"'),
    ("systemd[1]", "Starting Watch for 'GPU has fallen off the bus'..."),
    ("mattermost[9]", "bob: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus on hgx-7"),
    ("motd-news[9]", '如果 nvidia-smi 报 "GPU is lost" 请提工单'),
    ("slackbot[9]", 'posted: "run 8 died with CUDA out of memory, resubmitted"'),
    ("postfix/cleanup[9]", "header Subject: CUDA error: an illegal memory access was encountered"),
    ("alice[9]", 'reminder: "CUDA out of memory" on rank 0 means a smaller batch'),
]  # fmt: skip
REPORTED = [
    ("healthcheck.sh[9]", "ERROR: Unable to determine the device handle for GPU0000:5D:00.0: Unknown Error"),
    ("slurmd[9]", "error: gpu_p_get_device_count: Failed to get device count: GPU is lost"),
    ("node-check[9]", "check failed: GPU has fallen off the bus"),
    ("vector[9]", "Nov 28 10:00:08 gpu-3 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."),
    ("probe[9]", "error when it was read: Unable to determine the device handle for GPU0000:5D:00.0: Unknown Error"),
    ("probe[9]", "query failed: GPU is lost"),
    ("CRON[9]", "(root) CMDOUT (Unable to determine the device handle for GPU 0000:5D:00.0: GPU is lost.)"),
    ("python3[9]", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
    ("finetune.service[9]", "RuntimeError: CUDA error: an illegal memory access was encountered"),
    ("bash[9]", "RuntimeError: CUDA error: an illegal memory access was encountered"),
    ("containerd[9]", "RuntimeError: CUDA error: device-side assert triggered"),
]  # fmt: skip


def told(text: str) -> set[str]:
    return {
        o.fact
        for module in (kernel_log, torch_oom, cuda_error)
        for o in module.parse(lines_of(text), Context("messages"))
        if isinstance(o.value, Event)
    }


@each("line", [head.format(*line) for head in HEADS for line in WRITTEN])
def test_what_is_written_about_did_not_happen(line: str) -> None:
    assert told(line) == set()


@each("line", [head.format(*line) for head in HEADS for line in REPORTED])
def test_what_a_program_reports_did(line: str) -> None:
    assert len(told(line)) == 1


def test_a_record_of_the_journal_names_its_program() -> None:
    record = '{{"__REALTIME_TIMESTAMP":"1764324009120000","SYSLOG_IDENTIFIER":"{}","MESSAGE":"CUDA out of memory"}}'
    assert (told(record.format("slackbot")), told(record.format("python3"))) == (set(), {"cuda_oom"})
