"""The command that carries a connection: no name is ever an option, and none means anything to a shell."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.remote.reach import BOOTSTRAP, FLAGS, Reach, Via, argv, pods
from tests.cases import each

WORDS = ("name", "address", "user", "jump", "python", "namespace", "pod", "container", "context", "partition", "account", "job",
         "selector")  # fmt: skip
FILES = ("identity", "ssh_config", "root")
GOOD = Reach("gpu-12")
NASTY = (
    "-oProxyCommand=id",
    "--",
    "a b",
    "a\nb",
    "$(id)",
    "`id`",
    "a;b",
    "a|b",
    "a&b",
    "a'b",
    'a"b',
    "a\x00b",
    "é",
    "a\\b",
    "a>b",
    "a*b",
    "\x1b[1m",
    "%h",
)


def changed(**more: object) -> Reach:
    return replace(GOOD, **more)  # type: ignore[arg-type]


@each("word", WORDS)
@each("nasty", NASTY)
def test_no_such_name(word: str, nasty: str) -> None:
    if nasty == "%h" and word == "address":
        nasty = "%n"  # a zone of IPv6 stands behind a % within an address, never at its beginning
    with pytest.raises(ValueError, match="cannot be"):
        changed(**{word: nasty})


@each("word", FILES)
@each("nasty", ["-x", "a\nb", "%d/key", "\x00"])
def test_no_such_file(word: str, nasty: str) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        changed(**{word: nasty})


@given(st.sampled_from([*WORDS, *FILES]), st.text(max_size=30), st.sampled_from(list(Via)))
def test_whatever_a_name_is(word: str, text: str, via: Via) -> None:
    try:
        reach = changed(**{"pod": "p", "via": via, word: text})
        words = argv(reach)
    except ValueError:
        return
    plain = argv(replace(GOOD, pod="p", via=via))
    for new in set(words) - set(plain):
        assert new.startswith("--") or not new.startswith("-") or new in ("-l", "-i", "-F", "-J", "-o")
        assert not any(c in new for c in "\n\r\x00\x1b")
    if via is Via.SSH:
        assert words[-3] == "--"
        assert words[-1].count("'") == 2
    assert words[-1].rstrip("'").endswith(BOOTSTRAP)


@each(
    "more",
    [
        {"port": 0},
        {"port": 65536},
        {"connect_timeout": 0},
        {"connect_timeout": 1e9},
        {"name": ""},
        {"python": ""},
        {"via": "telnet"},
        {"root": "host"},
    ],
)
def test_no_such_number(more: dict[str, object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - an enum says it in its own words
        changed(**more)


def test_host_keys_are_always_checked() -> None:
    words = argv(Reach("gpu-12", user="me", port=2222, jump="me@gate:22", identity="/keys/a b", sudo=True))
    assert "StrictHostKeyChecking=yes" in words
    assert "BatchMode=yes" in words
    assert words[words.index("-i") + 1] == "/keys/a b"
    assert words[-1].startswith("sudo -n python3 -I ")
    assert sum(w.startswith("StrictHostKeyChecking") for w in words) == 1


def test_srun_and_kubectl() -> None:
    words = argv(Reach("gpu01", Via.SLURM, partition="batch", account="physics"))
    assert words[:2] == ["srun", "--nodelist=gpu01"]
    assert {"--partition=batch", "--account=physics", "--immediate=10"} <= set(words)
    words = argv(Reach("gpu01", Via.SLURM, job="12"))
    assert {"--jobid=12", "--overlap"} <= set(words)
    assert not any(w.startswith("--immediate") for w in words)
    words = argv(Reach("n", Via.KUBERNETES, namespace="tools", pod="gpudiag-x", container="main", context="prod"))
    assert words[:3] == ["kubectl", "--context=prod", "--namespace=tools"]
    assert words[-len(FLAGS) - 3 : -len(FLAGS) - 1] == ["--", "python3"]
    with pytest.raises(ValueError, match="names no pod"):
        argv(Reach("n", Via.KUBERNETES))
    assert "--selector=app=gpudiag" in pods(Reach("n", Via.KUBERNETES, selector="app=gpudiag"))


@pytest.mark.process
@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "csh", "tcsh", "fish", "ksh"])
def test_every_login_shell_hands_the_bootstrap_on(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    command = argv(replace(GOOD, python=sys.executable))[-1]
    packed = zlib.compress(b"print('here')")
    done = subprocess.run(
        [shell, "-c", command], input=b"%d\n" % len(packed) + packed, capture_output=True, check=False
    )
    assert done.stdout == b"here\n", done.stderr
