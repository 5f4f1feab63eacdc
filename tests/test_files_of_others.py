"""Files that people write for gpudiag, mutilated as captures are in their tests: a file, or its faults with their places; never more.

Rules with patterns, site files, runbooks, inventories and policies. What the command makes of a GpudiagError is exit code 2 and
its sentence (tests/assistant/test_cli.py).
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assistant.inventory.parse import parse as inventory
from assistant.rights.parse import parse as policy
from knowledge import runbook
from knowledge.errors import GpudiagError
from rules.loader import _apply_site, _site_entries, load, read_file, shipped

ROOT = Path(__file__).parent.parent
RULES = sorted(ROOT.glob("rules/catalog/*/*.yaml"))[::40]
PAGES = sorted(ROOT.glob("knowledge/runbooks/*.md"))[::12]
SITE = """\
- {rule: row-remap-pending, severity: error, reason: we drain early, owner: ann, expires: '2030-01-31'}
- rule: gpu-fell-off-bus
  suppress_hosts: [n1]
  reason: tested elsewhere
  owner: ann
  expires: '2030-01-31'
"""
INVENTORY = """\
[hosts."gpu-[1-4]"]
via = "ssh"
port = 22
[hosts.head]
via = "kubernetes"
namespace = "gpu"
aliases = ["dgx1"]
[groups]
training = ["gpu-[1-2]"]
"""
POLICY = """\
channels = ["C1", "direct"]
[roles.oncall]
users = ["U1"]
[grants.looks]
roles = ["oncall"]
run = ["*", "step:gpu-off-bus/*"]
nodes = ["gpu-*"]
cost = "heavy"
[people]
ann = ["U1", "ann"]
"""
# What stands where something else is expected: types, sizes, signs of the formats, bytes that are no text, patterns that blow up.
ODD = (
    "", "null", "[]", "{}", "{a: {a: {a: 1}}}", "-1", "1e999", "9" * 400, "0x10", "2026-13-45", "12:30:45", "yes", "!!python/object:os.system x",
    "&a [*a, *a]", "*nobody", "<<: *x", "'", '"', "\x00", "\ud800", "\u202e", "\ufeff", "é" * 300, "(a+)+$", "(?P<x>", "[", "((((((((((" * 30,
    "a{1000}{1000}", "\\1", "(?=a)", "---", "...", "...\n---", "\t", "# ", ": ", "- - - -", "[[", "[x]\n[x]", "x = 1\nx = 2", "1979-05-27T07:32:00Z",
)  # fmt: skip


def mutilated(text: str, seed: int, count: int) -> str:
    """`text` with so many lines and values cut, doubled, swapped, indented or replaced by `ODD`."""
    source = random.Random(seed)
    lines = text.split("\n")
    for _ in range(count):
        at, other = source.randrange(len(lines)), source.randrange(len(lines))
        match source.randrange(8):
            case 0:
                del lines[at : at + source.randrange(1, 4)]
            case 1:
                lines.insert(other, lines[at])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = "  " * source.randrange(3) + lines[at]
            case 4:
                lines[at] = lines[at][: source.randrange(len(lines[at]) + 1)]
            case 5:
                lines.insert(at, source.choice(ODD))
            case _:
                head, sign, _ = lines[at].partition(source.choice((":", "=", " ")))
                lines[at] = head + sign + " " + source.choice(ODD)
        lines = lines or [""]
    return "\n".join(lines)


def written(text: str, name: str) -> Path:
    path = Path(tempfile.mkdtemp(dir=FOLDER.name)) / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


FOLDER = tempfile.TemporaryDirectory(prefix="gpudiag-others-")


def rule(text: str) -> None:
    document, found = read_file(written(text, "x.yaml"))
    assert (found is None) == bool(document.faults)
    assert all(f.line >= 1 and f.message for f in document.faults)


plain = cache(shipped)


def site(text: str) -> None:
    """As `load` takes one, which reads all rules anew each time."""
    entries, _ = _site_entries(written(text, "site.yaml"), plain(), "2026-01-01")
    _apply_site(load().rules, entries, "")


READERS: dict[str, tuple[tuple[str, ...], Callable[[str], object]]] = {
    "rule": (tuple(p.read_text(encoding="utf-8") for p in RULES), rule),
    "site": ((SITE,), site),
    "runbook": (
        tuple(p.read_text(encoding="utf-8") for p in PAGES),
        lambda text: runbook.lint(written(text, "x.md").parent),
    ),
    "inventory": ((INVENTORY,), lambda text: inventory(text, "hosts.toml")),
    "policy": ((POLICY,), lambda text: policy(text, "policy.toml")),
}


@pytest.mark.parametrize("kind", list(READERS))
@given(seed=st.integers(0, 2**32), count=st.integers(0, 6), which=st.integers(0, 99))
@example(seed=0, count=0, which=0)
@settings(max_examples=40, deadline=None)
def test_a_file_or_its_faults(kind: str, seed: int, count: int, which: int) -> None:
    texts, read = READERS[kind]
    with suppress(GpudiagError):
        read(mutilated(texts[which % len(texts)], seed, count))


@pytest.mark.parametrize("kind", list(READERS))
def test_each_odd_thing_alone_and_behind_each_key(kind: str) -> None:
    """All of `ODD` once, in the place of one line's value: what a random draw may miss."""
    texts, read = READERS[kind]
    lines = texts[0].split("\n")
    for number, odd in enumerate(ODD):
        at = number % len(lines)
        head = lines[at].partition(":")[0] if ":" in lines[at] else lines[at].partition("=")[0] + "="
        for text in (
            odd,
            "\n".join([*lines[:at], f"{head}: {odd}" if ":" in lines[at] else f"{head} {odd}", *lines[at + 1 :]]),
        ):
            with suppress(GpudiagError):
                read(text)
