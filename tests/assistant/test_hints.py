"""What is said beside an answer: expired site entries, origins of settings, hints, the order of actions."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.commands.explain import page
from knowledge.errors import UnknownNameError
from tests.assistant.stories import DBE, write
from tests.conftest import Gpudiag
from tests.diagnoses import incident

ENTRY = "- {rule: gpu-fell-off-bus, disable: true, reason: known, owner: ops, expires: '2020-01-31'}\n"


def test_an_expired_entry_is_told(gpudiag: Gpudiag, tmp_path: Path) -> None:
    site, log = write(tmp_path, "site.yaml", ENTRY), write(tmp_path, "kern.log", DBE)
    sentence = "rule gpu-fell-off-bus: entry expired on 2020-01-31 and no longer counts"
    assert sentence in " ".join(gpudiag("check", "--log", log, "--site", site).out.split())
    linted = gpudiag("rules", "lint", site)
    assert linted.code == 0
    assert f"{sentence} [warning]" in linted.out


def test_the_setting_that_names_a_missing_file_is_named(gpudiag: Gpudiag, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent.yaml")
    assert "named by --site" in gpudiag("rules", "list", "--site", absent).err
    assert "named by GPUDIAG_SITE_FILE" in gpudiag("rules", "list", env={"GPUDIAG_SITE_FILE": absent}).err
    config = tmp_path / "gpudiag" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'rule_packs = ["{absent}"]\n', encoding="utf-8")
    said = gpudiag("rules", "list", env={"XDG_CONFIG_HOME": str(tmp_path)}).err
    assert f"named by rule_packs in {config}" in said


def test_a_faulty_site_file_names_its_setting(gpudiag: Gpudiag, tmp_path: Path) -> None:
    site = write(tmp_path, "site.yaml", "- {rule: nope}\n")
    said = gpudiag("rules", "list", env={"GPUDIAG_SITE_FILE": site}).err
    assert "named by GPUDIAG_SITE_FILE" in said


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["cuda", "99999"], "nearest codes are"),
        (["cuda", "zzz"], "cudaErrorNoDevice"),
        (["sxid", "99999"], "the nearest codes of "),
    ],
)
def test_a_wrong_code_brings_its_neighbours(words: list[str], hint: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        page(words, "en")
    assert hint in caught.value.hint
    assert "allowed" not in caught.value.hint


def test_a_wrong_id_says_where_the_right_ones_are(gpudiag: Gpudiag) -> None:
    assert "gpudiag rules list" in gpudiag("rules", "show", "nope").err
    assert "gpudiag runbook list" in gpudiag("runbook", "show", "nope").err


def test_a_workflow_of_a_code_is_its_page() -> None:
    assert page(["action", "WORKFLOW_XID_48"], "en").title == page(["xid", "48"], "en").title


def test_the_sample_line_of_a_fatal_code_says_so(gpudiag: Gpudiag) -> None:
    from knowledge.catalog.sxid import all_sxids

    fatal = next(e for e in all_sxids() if e.fatal() is True)
    assert f"{fatal.code}, Fatal, Link" in gpudiag("explain", "sxid", str(fatal.code)).out


def test_the_first_action_is_the_verdicts(gpudiag: Gpudiag) -> None:
    import json

    for name in ("off-the-bus", "double-bit-error", "power-brake"):
        first = json.loads(gpudiag("demo", name, "--format", "json").out)["findings"][0]["action"]["bucket"]
        steps = gpudiag("demo", name).out.partition("Do next\n")[2]
        assert steps.startswith(f"  1. {first}  ")


def test_nagios_names_a_gpu_as_text_does(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log = write(tmp_path, "kern.log", DBE)
    said = gpudiag("check", "--log", log, "--nagios").out
    assert said.startswith("GPUDIAG CRITICAL - GPU 0000:3b:00.0: Uncorrectable memory error (double-bit ECC). "), said


NAMES = ("RESTART_FM", "INSPECT_NETWORK")


@pytest.mark.parametrize(("names", "lang", "line"), [
    (NAMES, "en", "2 more: RESTART_FM, INSPECT_NETWORK (--verbose)"),
    (NAMES, "zh", "另有 2 项：RESTART_FM, INSPECT_NETWORK（--verbose）"),
    ((), "en", ""),
])  # fmt: skip
def test_actions_that_are_not_shown_are_named_in_every_format(names: tuple[str, ...], lang: str, line: str) -> None:
    from dataclasses import replace

    from assistant.render import html, markdown, text
    from assistant.render.cells import Paint
    from assistant.render.view import view

    answer = replace(view(incident("off-the-bus"), lang), more_steps=names)
    escaped = line.replace("_", r"\_")
    for said, shown in ((text.render(answer, 100, Paint(False)), line), (markdown.render(answer), escaped),
                        (html.render(answer), line)):  # fmt: skip
        assert ("--verbose" in said) is bool(line)
        assert shown in said


def test_json_carries_no_command_that_waits_to_be_filled_in(gpudiag: Gpudiag, tmp_path: Path) -> None:
    import json

    log = write(
        tmp_path, "kern.log", "NVRM: Xid (PCI:...): 119, pid=1, name=a, Timeout after 6s of waiting for RPC response!\n"
    )
    nowhere = json.loads(gpudiag("check", "--log", log, "--format", "json").out)["findings"][0]["action"]
    assert nowhere["command"] is None
    assert "{gpu_pci}" in nowhere["command_template"]
    log = write(tmp_path, "dbe.log", DBE)
    known = json.loads(gpudiag("check", "--log", log, "--format", "json").out)["findings"][0]["action"]
    assert "0000:3b:00.0" in known["command"]
    assert known["command_template"] is None
