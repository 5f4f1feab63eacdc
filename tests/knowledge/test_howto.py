"""Tasks: enough of them, sourced, with commands that say what they cost."""

from __future__ import annotations

import re
import shlex

import pytest

from assistant.topics import topic
from knowledge.errors import UnknownNameError
from knowledge.howto import howtos
from knowledge.runbook import Risk, all_runbooks, placeholders
from tests.cases import each

HOWTOS = howtos()
# Commands that change something for running work, or lose something: never marked as safe.
RISKY = re.compile(
    r"--gpu-reset|^systemctl (?:stop|restart|reboot)|^kill |state=(?:drain|resume)|kubectl (?:drain|cordon|uncordon)| -mig [01]|mig .*-d[cg]i"
    r"| -pl | -lgc | -p 0$|dcgmi diag -r [2-4]|all_reduce_perf"
)


def test_enough() -> None:
    assert len(HOWTOS) >= 35


@each("name", sorted(HOWTOS))
def test_a_task(name: str) -> None:
    h = HOWTOS[name]
    assert all(source.startswith("https://") for source in h.sources)
    assert not h.runbook or h.runbook in {b.id for b in all_runbooks()}
    for step in h.steps:
        if step.command:
            assert shlex.split(step.command)  # one argument list, quoted as a shell wants it
            assert not re.search(r"[|;&><]", step.command) or step.command.startswith(
                ("sh -c ", "python -c ", "journalctl ")
            )
            if RISKY.search(step.command):
                assert step.risk is not Risk.SAFE, step.command
    assert any(s.command for s in h.steps) or name in {"memory-snapshot", "raise-nccl-timeout"}
    for lang in ("en", "zh"):
        assert "  " not in h.about.in_(lang)
        assert h.about.in_(lang).endswith((".", "。"))


@each("name", sorted(HOWTOS))
def test_its_page(name: str) -> None:
    for lang in ("en", "zh"):
        sheet = topic("howto").sheet([name], lang)
        assert sheet.title == HOWTOS[name].title.in_(lang)
    assert topic("howto").sheet([HOWTOS[name].title.en], "en").title == HOWTOS[name].title.en
    assert topic("howto").sheet([HOWTOS[name].ask[-1]], "zh").title


def test_the_worst_step_is_the_risk_of_the_task() -> None:
    assert HOWTOS["read-xids"].risk is Risk.SAFE
    assert HOWTOS["enable-ecc"].risk is Risk.DISRUPTIVE
    assert HOWTOS["kill-stuck-process"].risk is Risk.DESTRUCTIVE


def test_phrases_belong_to_one_task() -> None:
    owners: dict[str, str] = {}
    for h in HOWTOS.values():
        for phrase in h.ask:
            assert owners.setdefault(phrase.casefold(), h.id) == h.id, phrase


def test_placeholders_are_filled() -> None:
    from assistant.topics.howto import page

    open_ = {p for s in HOWTOS["enable-ecc"].steps for p in placeholders(s.command)}
    assert open_ == {"gpu_index", "gpu_pci"}
    shown = str(
        [
            getattr(p, "lines", "")
            for p in page(HOWTOS["enable-ecc"], "en", {"gpu_index": 3, "gpu_pci": "0000:3b:00.0"}).parts
        ]
    )
    assert "-i 3 -e 1" in shown
    assert "{" not in shown


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as error:
        topic("howto").sheet(["enable-eec"], "en")
    assert "enable-ecc" in str(error.value)
