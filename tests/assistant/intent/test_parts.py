"""What stands around the GPUs, as people state it: parts by their names, bits in words, other makers by their own facts."""

from __future__ import annotations

from assistant.diagnosis import diagnose
from assistant.dialogue._pointed import pointed as hinted
from assistant.intent.grammar import words_of
from assistant.intent.parse import understand
from assistant.intent.symptoms import pointed
from knowledge.compiled import shard
from rules.loader import load
from tests.cases import Faults, each

WARNINGS = ("spare", "temperature", "reliability", "read_only", "backup")  # bits 0 to 4 of the NVMe specification


def told(text: str) -> dict[tuple[str, str], object]:
    return {(o.fact, o.subject.id): o.value for o in understand(text).observations}


def test_each_bit_of_a_critical_warning_is_its_own_fact() -> None:
    with Faults() as faults:
        for bits in range(1, 32):
            with faults.of(bits):
                facts = told(f"nvme{bits} critical warning {hex(bits) if bits % 2 else bits}, can I keep using it?")
                said = {name for name in WARNINGS if facts.get((f"drive.warning.{name}", f"nvme{bits}")) is True}
                assert said == {name for n, name in enumerate(WARNINGS) if bits >> n & 1}


def test_words_of_a_hypothesis_point_at_it() -> None:
    with Faults() as faults:
        for h in shard("hypotheses"):
            for phrase in (p for phrases in (h.get("said") or {}).values() for p in phrases):
                with faults.of(f"{h['id']}: {phrase}"):
                    assert h["id"] in pointed(words_of(phrase))


@each("maker", ["amd gpu", "mi300x", "amdgpu: gpu"])
def test_a_gpu_of_another_maker_counts_as_its_maker_counts(maker: str) -> None:
    facts = {name for name, _ in told(f"{maker} 2 has 3 uncorrectable ecc errors, keep going?")}
    assert "gpu.ras.uncorrected" in facts
    assert not [name for name in facts if name.startswith("gpu.ecc.")]


@each(
    ("text", "fact", "part"),
    [
        ("/scratch is at 97% used, ok to start?", "fs.used.share", "/scratch"),
        ("根分区用了99%,能训练吗", "fs.used.share", "/"),
        ("psu 2 of 4 failed, keep the job?", "psu.state", "psu 2"),
        ("lustre mount hangs on node17", "fs.state", "lustre"),
        ("psu 1 failed and psu 3 failed", "psu.state", "unknown:?"),  # of two nobody can tell which
    ],
)
def test_a_part_is_called_by_its_name(text: str, fact: str, part: str) -> None:
    assert part in {subject for name, subject in told(text) if name == fact}


@each(
    ("text", "over"),
    [
        ("got xid 79 on gpu 6, node back up after a reboot, good to go?", True),
        ("gpu 2 xid 119, rebooted and everything is fine since, ok to use?", True),
        ("0号卡报xid79,重启以后又好了,能上任务吗", True),
        ("xid 79 came back after the reboot on gpu 3, good to go?", False),
        ("重启以后又报xid 79了,gpu 3,能上任务吗", False),
        ("xid 79 on gpu 3, should I reboot?", False),
    ],
)
def test_a_reboot_that_is_told_ends_what_a_reboot_cures(text: str, over: bool) -> None:
    query = understand(text)
    roots = diagnose(list(query.observations), load()).roots
    assert [("before the reboot" in f.title.en, str(f.severity) == "critical") for f in roots] == [(over, not over)]
    assert not [clause for clause in query.unread if "reboot" in clause or "重启" in clause] or not over


def test_what_is_denied_points_at_nothing() -> None:
    assert "network-link-down" in hinted(understand("ib端口今天闪断了37次"))
    assert "network-link-down" not in hinted(understand("ib八个口都是400G Active,没有闪断"))
