"""The command line about another machine, over a real ssh server on loopback: looked at, not reached, broken off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant import machine
from assistant.commands.collect import save
from assistant.config import load as load_settings
from assistant.machine import Wish
from knowledge.observation import Status
from probes.remote.reach import BOOTSTRAP, FLAGS, Reach
from probes.remote.remote_host import RemoteHost
from probes.runner import Progress
from tests.components import component
from tests.conftest import Gpudiag
from tests.probes.remote import kubectl_stand_in
from tests.probes.remote.sshd_lab import Sshd, free_port

SOME = ("--probe", "system", "--probe", "kernel-log", "--probe", "nvml")


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment whose inventory names a machine that is there, and one that is not."""
    folder = tmp_path_factory.mktemp("far")
    sshd = Sshd(folder / "sshd").start()
    path = folder / "inventory.toml"
    path.write_text(f"""
[defaults]
ssh_config = "sshd/ssh_config"
[hosts.gpu-12]
aliases = ["dgx3"]
gpus = 1000
[hosts.gpu-14]
port = {free_port()}
[groups]
all = ["gpu-[12,14]"]
""")
    yield {
        "GPUDIAG_INVENTORY": str(path), "GPUDIAG_HISTORY_URL": f"sqlite:///{folder}/history.db",
        "GPUDIAG_STATE_DIR": str(folder / "state"),
    }  # fmt: skip
    sshd.stop()


def test_a_machine_is_checked_and_its_bundle_gives_the_same_answer(
    gpudiag: Gpudiag, inventory: dict[str, str], tmp_path: Path
) -> None:
    bundle = str(tmp_path / "node.tar.gz")
    live = gpudiag("check", "--host", "dgx3", "--record", bundle, "--format", "json", *SOME, env=inventory)
    found = json.loads(live.out)
    assert live.code in (0, 1, 3), live.err
    assert found["coverage"]["answered"] > 20
    hosts = {f["subject"]["host"] for f in found["findings"]} | {f["subject"]["id"] for f in found["findings"]}
    assert not found["findings"] or "gpu-12" in hosts
    again = gpudiag("check", "--bundle", bundle, "--expect-gpus", "1000", "--format", "json", env=inventory)
    assert json.loads(again.out)["findings"] == found["findings"]
    kept = gpudiag("history", "--format", "json", env=inventory)
    assert "gpu-12" in kept.out, kept.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("check", "--host", "gpu-14"), 3, "refuses connections"),
        (("check", "--host", "gpu-14", "--since-last"), 3, "refuses connections"),
        (("collect", "--host", "gpu-14", "-o", "gone.tar.gz"), 2, "refuses connections"),
        (("check", "--host", "gpu-15"), 2, "did you mean gpu-12, gpu-14?"),
        (("check", "--host", "@all"), 2, "all is a group of 2 machines (gpu-[12,14])"),
        (("check", "--host", "gpu-[12-14]"), 2, "names 3 machines"),
        (("check", "--host", "-oProxyCommand=x", "--via", "ssh"), 2, ""),
        (("check", "--host=-oProxyCommand=touch", "--via", "ssh"), 2, "name cannot be"),
        (("check", "--via", "ssh"), 2, "none was given"),
        (("check", "--via", "ssh", "--host", "gpu-12", "kern.log"), 2, "but files were given"),
        (("collect", "--host", "gpu-12", "--for", "5s", "-o", "x.zip"), 2, "those of gpu-12"),
        (("check", "--inventory", "none.toml", "--host", "gpu-12"), 2, "none.toml cannot be read"),
        (("ask", "--host", "gpu-15", "is it healthy?"), 2, "did you mean"),
    ],
)
def test_what_cannot_be_looked_at_is_said(
    gpudiag: Gpudiag, inventory: dict[str, str], tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    answer = gpudiag(*words, env=inventory, cwd=tmp_path)
    assert answer.code == code, answer.err
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert not list(tmp_path.iterdir())


def test_of_a_machine_that_is_not_reached_nothing_is_concluded(
    gpudiag: Gpudiag, inventory: dict[str, str], tmp_path: Path
) -> None:
    bundle = tmp_path / "node.tar.gz"
    answer = gpudiag("check", "--host", "gpu-14", "--record", str(bundle), "--format", "json", env=inventory)
    found = json.loads(answer.out)
    assert (found["verdict"]["state"], found["verdict"]["usable"], found["findings"]) == ("unknown", "unknown", [])
    assert found["coverage"]["answered"] == 0
    assert not bundle.exists()
    nagios = gpudiag("check", "--host", "gpu-14", "--nagios", env=inventory)
    assert nagios.code == 3
    assert nagios.out.startswith("GPUDIAG UNKNOWN - gpu-14 was not looked at: gpu-14 refuses connections")
    assert '"gpu-14"' not in gpudiag("history", "--format", "json", env=inventory).out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("check", "--host", "gpu-14"), 3),
        (("ask", "--host", "gpu-14", "它健康吗？"), 3),
        (("ask", "gpu-14 健康吗？"), 3),
        (("collect", "--host", "gpu-14", "-o", "gone.tar.gz"), 2),
        (("doctor", "--host", "gpu-14"), 1),
        (("watch", "--host", "gpu-14", "--rounds", "1", "--interval", "0.2", "--probe", "system"), 3),
    ],
)
def test_in_chinese_the_reason_is_chinese_too(
    gpudiag: Gpudiag, inventory: dict[str, str], tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    answer = gpudiag(*words, "--lang", "zh", env=inventory | {"GPUDIAG_STATE_DIR": str(tmp_path)}, cwd=tmp_path)
    assert answer.code == code, answer.err
    said = "".join(answer.out.split()) + "".join(answer.err.split())  # however wide the lines are
    assert "gpu-14拒绝连接：该处没有ssh服务监听" in said
    assert "refuses connections" not in answer.out + answer.err
    assert words[0] == "watch" or "sshd是否在运行？端口是否正确？" in said


def test_a_name_of_ssh_needs_no_entry(gpudiag: Gpudiag, inventory: dict[str, str]) -> None:
    answer = gpudiag(
        "check", "--host", "gpu-77", "--via", "ssh", "--probe", "system", "--format", "json", env=inventory
    )
    assert json.loads(answer.out)["coverage"]["answered"] > 20, answer.err


def test_a_pod_of_a_node_is_looked_into(gpudiag: Gpudiag, tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{kubectl_stand_in.__file__}" "$@"\n')
    program.chmod(0o755)
    path = tmp_path / "i.toml"
    path.write_text(
        '[hosts.serving-1]\nvia = "kubernetes"\nnamespace = "tools"\naddress = "gpu-13"\nselector = "app=gpudiag"\n'
    )
    words = ("--inventory", str(path), "--probe", "system", "--format", "json")
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GPUDIAG_HISTORY_URL": "off"}
    found = json.loads(gpudiag("check", "--host", "serving-1", *words, env=env).out)
    assert found["coverage"]["answered"] > 20
    assert any("within a container" in note for note in found["notes"])
    gone = gpudiag("check", "--host", "job-9", "--via", "kubernetes", *words, env=env)
    assert (gone.code, json.loads(gone.out)["verdict"]["state"]) == (3, "unknown"), gone.err


def test_a_machine_is_collected_without_names(gpudiag: Gpudiag, inventory: dict[str, str], tmp_path: Path) -> None:
    bundle = str(tmp_path / "node.zip")
    assert gpudiag("collect", "--host", "gpu-12", "-o", bundle, "--redact", *SOME, env=inventory).code == 0
    answer = gpudiag("check", "--bundle", bundle, "--format", "json", env=inventory)
    assert json.loads(answer.out)["coverage"]["answered"] > 20
    assert "gpu-12" not in answer.out


def test_a_talk_about_two_machines(gpudiag: Gpudiag, inventory: dict[str, str], tmp_path: Path) -> None:
    env = inventory | {"GPUDIAG_STATE_DIR": str(tmp_path)}
    first = gpudiag("ask", "--thread", "t", "is dgx3 healthy?", "--format", "json", *SOME, env=env)
    found = json.loads(first.out)
    assert found["query"]["slots"]["node"] == ["gpu-12"], first.err
    assert found["coverage"]["answered"] > 20
    # whatever the talk was about before, "it" is the machine that --host names
    there = gpudiag("ask", "--thread", "t", "is it healthy?", "--host", "gpu-14", env=env)
    assert there.out.startswith("gpu-14 was not looked at"), there.out
    here = gpudiag("ask", "--thread", "t", "is it healthy?", "--host", "localhost", "--format", "json", *SOME, env=env)
    assert json.loads(here.out)["query"]["slots"].get("node", []) == [], here.out
    second = gpudiag("ask", "--thread", "t", "what about gpu-14?", env=env)
    assert second.code == 3
    assert second.out.startswith("gpu-14 was not looked at: gpu-14 refuses connections")
    third = gpudiag("ask", "--thread", "t", "why?", "--format", "json", env=env)
    assert third.code in (0, 3), third.err


def test_a_conversation_about_another_machine_is_held_again(
    gpudiag: Gpudiag, inventory: dict[str, str], tmp_path: Path
) -> None:
    said = "is gpu-12 healthy?\nwhy?\nis dgx3 healthy?\n"
    made = gpudiag("chat", "--record", "talk.txt", "--host", "gpu-12", env=inventory, cwd=tmp_path, stdin=said)
    assert made.code == 0, made.err
    again = gpudiag("chat", "--replay", "talk.txt", cwd=tmp_path)  # where no inventory is
    assert (again.code, again.out) == (0, "")


def test_a_machine_is_examined(gpudiag: Gpudiag, inventory: dict[str, str]) -> None:
    answer = gpudiag("doctor", "--host", "gpu-12", "--format", "json", *SOME, env=inventory)
    found = json.loads(answer.out)
    assert found["host"] == "gpu-12"
    assert [r["name"] for r in found["installation"]] == ["reached", "itself", "python", "clock", "tools"]
    assert {r["name"] for r in found["probes"]} >= {"system", "kernel-log", "nvml"}
    gone = gpudiag("doctor", "--host", "gpu-14", "--format", "json", env=inventory)
    assert (gone.code, json.loads(gone.out)["ok"]) == (1, False)
    assert json.loads(gone.out)["installation"][0]["fix"]


def test_the_inventory_is_shown(gpudiag: Gpudiag, inventory: dict[str, str], tmp_path: Path) -> None:
    found = json.loads(gpudiag("config", "hosts", "--format", "json", env=inventory).out)
    assert [h["name"] for h in found["hosts"]] == ["gpu-12", "gpu-14"]
    assert found["groups"] == {"all": ["gpu-12", "gpu-14"]}
    assert gpudiag("config", "hosts", "--names", "@all", "dgx3", env=inventory).out == "gpu-12\ngpu-14\n"
    assert "There is no inventory" in gpudiag("config", "hosts").out
    bad = tmp_path / "bad.toml"
    bad.write_text("[hosts.a]\nadress = 'x'\n")
    answer = gpudiag("config", "hosts", "--inventory", str(bad))
    assert (answer.code, "bad.toml:2:1: unknown key 'adress' (did you mean address?)" in answer.err) == (2, True)
    asked = gpudiag(
        "ask", "--new", "what is xid 79?", env={"GPUDIAG_INVENTORY": str(bad), "GPUDIAG_STATE_DIR": str(tmp_path)}
    )
    assert (asked.code, "unknown key 'adress'" in asked.err, "79" in asked.out) == (0, True, True)


def test_tab_completes_the_names_of_machines(
    gpudiag: Gpudiag, inventory: dict[str, str], clean_environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(gpudiag("completion", "bash").out)
    program = tmp_path / "gpudiag"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m assistant "$@"\n')
    program.chmod(0o755)
    typed = (
        f'source "{script}"; COMP_WORDS=(gpudiag check --host g); COMP_CWORD=3\n'
        '_shtab_gpudiag gpudiag g --host; echo "${COMPREPLY[@]}"\n'
    )
    env = clean_environment | inventory | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([component("bash"), "-c", typed], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["gpu-12", "gpu-14"], done.stderr


def test_a_machine_is_watched(gpudiag: Gpudiag, inventory: dict[str, str], tmp_path: Path) -> None:
    env = inventory | {"GPUDIAG_STATE_DIR": str(tmp_path), "GPUDIAG_HISTORY_URL": f"sqlite:///{tmp_path}/h.db"}
    words = ("--interval", "0.2", "--probe", "system")
    there = gpudiag("watch", "--host", "gpu-12", "--rounds", "1", *words, env=env)
    assert there.code in (0, 1, 3), there.err
    assert (tmp_path / "watch-gpu-12.json").exists()
    assert '"gpu-12"' in gpudiag("history", "--format", "json", env=env).out
    gone = gpudiag("watch", "--host", "gpu-14", "--rounds", "2", *words, env=env)
    assert gone.code == 3
    assert gone.err.count("refuses connections") == 1  # said once an hour
    assert gpudiag("watch", "--host", "gpu-12", "--profile", "train.py", env=env).code == 2


@pytest.mark.process
def test_a_line_that_breaks_leaves_what_came(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    far_side = "import os,sys;open(sys.argv[1],'w').write(str(os.getpid()));os.execv(sys.argv[2],sys.argv[2:])"
    command = [sys.executable, "-c", far_side, str(pid), sys.executable, *FLAGS, BOOTSTRAP]

    def cut(progress: Progress) -> None:
        if progress.done:
            os.kill(int(pid.read_text()), signal.SIGKILL)

    wish = Wish(only=("system", "versions"), without=())
    with RemoteHost(Reach("gpu-9"), budget=20, command=command) as far:
        look = machine.over(far, wish, cut)
        broken = machine.over(far, wish)
    assert look.host == "gpu-9"
    assert look.broken.startswith("the connection to gpu-9 broke")
    assert len(look.remarks) >= 1
    assert "after" in look.remarks[0]
    assert all(o.status is not Status.NONE_SEEN for o in broken.observations)
    assert [n for n in broken.notes if "gpu-9" in n] == list(broken.remarks)
    save(broken, str(tmp_path / "part.tar.gz"))
    _, again = machine.bundle(str(tmp_path / "part.tar.gz"))
    assert again.observations == broken.observations


@pytest.mark.process
def test_what_hung_on_another_machine_is_remembered_apart(tmp_path: Path) -> None:
    settings = load_settings({}, {"GPUDIAG_STATE_DIR": str(tmp_path)}, ())
    with (
        pytest.raises(Exception, match="gpu-8"),
        machine.line(settings, Reach("gpu-8", port=free_port(), address="127.0.0.1"), 5),
    ):
        pass
    assert not list(tmp_path.iterdir())
