"""The runtime's own state of a container: how it ended, and what is no trouble."""

from __future__ import annotations

import json
from typing import Any

from knowledge.observation import Event, Status
from probes import registry
from probes.base import Context
from probes.parse import docker_ps
from probes.parse.container_inspect import FORMAT
from tests.cases import each


def shown(**state: Any) -> str:
    whole = {"Status": "exited", "Running": False, "OOMKilled": False, "Pid": 0, "ExitCode": 0, "Error": "", **state}
    return json.dumps([{"Id": "8f1b2c3d4e5f6a7b", "Name": "/train", "State": whole}], indent=4)


def reasons(text: str) -> list[object]:
    assert registry.sniff(text) is FORMAT
    found = FORMAT.parse(text, Context("x", "n1"))
    assert found
    return [o.value.fields["reason"] for o in found if o.status is Status.OK and isinstance(o.value, Event)]


@each(
    "state, reason",
    [
        ({"OOMKilled": True, "ExitCode": 137}, "oom_killed"),
        ({"ExitCode": 137}, "killed"),
        ({"ExitCode": 139}, "segfault"),
        ({"ExitCode": 1}, "exit_code"),
        ({"ExitCode": 127, "Error": "exec: python4: not found"}, "exit_code"),
    ],
)
def test_a_container_that_ended_with_an_error(state: dict[str, Any], reason: str) -> None:
    assert reasons(shown(**state)) == [reason]


@each("state", [{}, {"ExitCode": 143}, {"Status": "running", "Running": True, "Pid": 7}, {"ExitCode": "x"}])
def test_one_that_runs_ended_well_or_was_asked_to(state: dict[str, Any]) -> None:
    assert reasons(shown(**state)) == []


def test_what_is_cut_tells_nothing() -> None:
    text = shown(ExitCode=139)
    assert FORMAT.parse(text[: len(text) // 2], Context("x")) == []


def listed(*states: str) -> str:
    rows = "".join(
        f'{i:012x}   pytorch:24.05-py3   "/opt/nvidia/nvidia_…"   2 hours ago    {state:<34}             c{i}\n'
        for i, state in enumerate(states)
    )
    return f"CONTAINER ID   IMAGE   COMMAND   CREATED   STATUS{' ' * 30}NAMES\n{rows}"


@each(
    "state, reason",
    [
        ("Restarting (139) 12 seconds ago", "segfault"), ("Exited (137) 4 minutes ago", "killed"), ("Exited (1) About a minute ago", "exit_code"),
        ("Exited (137) 3 weeks ago", None), ("Exited (0) 4 minutes ago", None), ("Exited (143) 4 minutes ago", None), ("Up 2 hours", None),
        ("Up 2 hours (healthy)", None), ("Up 2 hours (unhealthy)", None),
    ],
)  # fmt: skip
def test_containers_of_a_list(state: str, reason: str | None) -> None:
    text = listed(state, "Up 3 days")
    assert registry.sniff(text) is docker_ps.FORMAT
    found = docker_ps.FORMAT.parse(text, Context("x", "n1"))
    told = [o.value.fields["reason"] for o in found if isinstance(o.value, Event)]
    assert told == ([reason] if reason else [])
    assert [number for number, _ in docker_ps.unread(text)] == ([2] if "unhealthy" in state else [])
