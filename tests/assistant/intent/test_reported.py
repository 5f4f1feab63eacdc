"""What sounds like a fault and is none, or is past, gets its entry; with trouble beside it, it gets none."""

from __future__ import annotations

from assistant.intent.parse import understand
from tests.cases import each


@each(
    ("said", "page"),
    [
        ("gpu 2 is idle, pcie gen 1 of 5, bad riser?", "idle-pcie-generation"),
        ("空闲的卡 pcie gen 1，最大 4，正常吗", "idle-pcie-generation"),
        ("nvidia-smi says Gen1 x16 for pcie at idle, broken?", "idle-pcie-generation"),
        ("persistence mode won't stay on after reboot", "settings-after-reboot"),
        ("功率限制重启后又变回默认", "settings-after-reboot"),
        ("显存没释放 nvidia-smi 看不到进程", "memory-without-process"),
        ("after enabling mig pytorch only sees one gpu", "mig-one-device"),
        ("fan N/A on an H100 SXM, failed?", "fan-zero"),
        ("27 correctable errors, 0 uncorrectable, worry?", "corrected-ecc-rate"),
        ("step times: 1.1 1.1 1.2 6.4 1.1", "step-time-outliers"),
        ("iteration took 410ms, 412ms, 409ms, 411ms", "step-variance"),
        ("xid 79 on monday, gone after a reboot, can I use it?", "gone-after-a-reset"),
        ("gpu 6 is 1.7x slower than the other seven", "one-gpu-slower"),
    ],
)
def test_it_is_answered_by_its_entry(said: str, page: str) -> None:
    assert understand(said).page == f"advice {page}"


@each(
    "said",
    [
        "idle gpu, pcie gen 1, x4 of x16, ok?",
        "pcie gen 1 of 5 under load, ok?",
        "fan 0% on an RTX 4090 at 88 C, broken?",
        "27 correctable errors per hour, 0 uncorrectable, worry?",
        "27 correctable errors, 2 uncorrectable, worry?",
        "xid 79 on monday, gone after a reboot, but back today, can I use it?",
        "xid 64 gone after a reboot, can I use it?",
        "xid 48 not gone after the reset, can I use it?",
    ],
)
def test_trouble_beside_it_is_looked_at(said: str) -> None:
    assert not understand(said).page.startswith("advice ")
