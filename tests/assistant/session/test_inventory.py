"""Names of nodes: what is known, what a name means, what it may have meant."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.config import Settings
from assistant.config import load as load_settings
from assistant.diagnosis import diagnose
from assistant.session.inventory import Inventory, Known, Unknown, hosts_known, known, nearest, other, resolve
from assistant.session.nodeset import expand
from assistant.session.processes import on_gpus, pid_known, pid_suggestions
from knowledge.facts import vocabulary
from knowledge.observation import Observation, Source, Subject
from knowledge.observation import Scope as S
from rules.factbase import FactBase
from rules.loader import load as load_rules
from tests.cases import each

NODES = Inventory(
    ("gpu-007.lab.example", "gpu-012", "gpu-013", "GPU-021", "dgx-a.lab.example", "dgx-b.lab.example", "10.0.3.4"),
    "gpu-007.lab.example",
    ("gpu-007",),
)


@each(
    ("said", "meant"),
    [
        ("gpu-012", "gpu-012"),
        ("GPU-012", "gpu-012"),
        ("gpu-021", "GPU-021"),
        ("gpu-012.lab.example", "gpu-012"),
        ("dgx-a", "dgx-a.lab.example"),
        ("dgx-a.", "dgx-a.lab.example"),
        ("gpu-12", "gpu-012"),
        ("gpu12", "gpu-012"),
        ("gpu_0013", "gpu-013"),
        ("ｇｐｕ－１３", "gpu-013"),
        ("10.0.3.4", "10.0.3.4"),
        ('"gpu-012"', "gpu-012"),
        ("gpu-007", "gpu-007.lab.example"),
        ("gpu-7", "gpu-007.lab.example"),
        ("localhost", "gpu-007.lab.example"),
        ("LOCAL", "gpu-007.lab.example"),
        ("this node", "gpu-007.lab.example"),
        ("本机", "gpu-007.lab.example"),
        ("gpu-\u200b012", "gpu-012"),
    ],
)
def test_a_node_by_any_way_of_calling_it(said: str, meant: str) -> None:
    assert resolve(said, NODES) == Known(meant)
    assert NODES.is_here(said) == (meant == NODES.here)


@each(
    ("said", "near"),
    [
        ("gpu-01", ()),
        ("gpu-014", ("gpu-012", "gpu-013")),
        ("dgx-c", ()),
        ("pgu-012", ("gpu-012",)),
        ("10", ()),
        ("10.0.3.5", ("10.0.3.4",)),
        ("printer", ()),
        ("", ()),
        ("gpu-1-2", ("gpu-012",)),
        ("$(reboot)", ()),
        ("../../etc", ()),
    ],
)
def test_a_name_that_no_node_has(said: str, near: tuple[str, ...]) -> None:
    found = resolve(said, NODES)
    assert isinstance(found, Unknown)
    assert found.suggestions[: len(near)] == near
    assert not NODES.is_here(said)


def test_what_several_nodes_may_mean_is_asked() -> None:
    two = Inventory(("login", "gpu-3.rack1", "gpu-3.rack2", "gpu-03"), "login")
    assert resolve("gpu-3", two) == Unknown("gpu-3", ("gpu-3.rack1", "gpu-3.rack2"))
    assert resolve("gpu-3.rack2", two) == Known("gpu-3.rack2")
    assert resolve("gpu-03", two) == Known("gpu-03")


def test_another_node_with_nearly_this_ones_name_is_another_node() -> None:
    here = Inventory(("gpu-03", "gpu-3"), "gpu-03")
    assert (here.is_here("gpu-03"), here.is_here("gpu-3"), here.is_here("gpu-003")) == (True, False, False)
    assert resolve("gpu-3", here) == Known("gpu-3")


def test_sets_of_nodes() -> None:
    assert resolve("gpu-[012-013]", NODES) == Known("gpu-[012-013]")
    assert resolve("gpu-[012]", NODES) == Known("gpu-012")
    assert resolve("gpu-[012-014]", NODES) == Unknown("gpu-014", ("gpu-012", "gpu-013", "GPU-021"))
    assert isinstance(resolve("gpu-[9-1]", NODES), Unknown)
    assert isinstance(resolve("gpu-[1-999999999]", NODES), Unknown)


@each(
    ("text", "names"),
    [
        ("gpu[001-003]", ("gpu001", "gpu002", "gpu003")),
        ("gpu[9-11]", ("gpu9", "gpu10", "gpu11")),
        ("r[1-2]n[1,3]", ("r1n1", "r1n3", "r2n1", "r2n3")),
        ("a1, b[2-3].x c", ("a1", "b2.x", "b3.x", "c")),
        ("gpu[1,1-2]", ("gpu1", "gpu2")),
        ("gpu[ 1 - 2 , 4 ]", ("gpu1", "gpu2", "gpu4")),
        ("gpu-12", ("gpu-12",)),
    ],
)
def test_a_set_is_what_it_says(text: str, names: tuple[str, ...]) -> None:
    assert expand(text) == names


@each("text", ["", " , ", "gpu[", "gpu[a-b]", "gpu[]", "gpu[3-1]", "gpu[1-99999]", "a[1-99]b[1-99]"])
def test_what_is_no_set_or_too_large(text: str) -> None:
    with pytest.raises(ValueError, match=r"node|set|list|range"):
        expand(text)


@given(st.text("gpu[]0123456789-, ", max_size=60), st.integers(1, 50))
def test_a_set_is_never_larger_than_allowed(text: str, limit: int) -> None:
    try:
        names = expand(text, limit)
    except ValueError:
        return
    assert 1 <= len(names) <= limit
    assert len(set(names)) == len(names)


@given(st.text(max_size=300))
def test_any_text_is_known_or_not(text: str) -> None:
    found = resolve(text, NODES)
    assert isinstance(found, Unknown) or found.name in NODES.hosts or "[" in found.name
    assert NODES.is_here(text) == (found == Known(NODES.here))


@given(st.sampled_from(NODES.hosts), st.data())
def test_one_slip_of_the_finger_is_forgiven(host: str, data: st.DataObject) -> None:
    """A letter that is wrong in a long name suggests the node, or means it."""
    at = data.draw(st.integers(0, len(host) - 1))
    slip = host[:at] + "x" + host[at + 1 :]
    assert host in nearest(slip, NODES.hosts, limit=9)


def test_the_other_node() -> None:
    two = Inventory(("gpu-1", "gpu-2"), "gpu-1", ("gpu-1.lab",))
    assert [other(two, n) for n in ("", "gpu-1", "local", "gpu-1.lab", "gpu-2", "gpu-02")] == [
        "gpu-2", "gpu-2", "gpu-2", "gpu-2", "gpu-1", "gpu-1",
    ]  # fmt: skip
    assert other(NODES, "gpu-012") == ""
    assert other(Inventory(("gpu-1",), "gpu-1"), "gpu-1") == ""


@pytest.mark.slow
def test_ten_thousand_nodes_and_a_name_that_none_has() -> None:
    many = Inventory(tuple(f"rack{r:02}-gpu{n:03}" for r in range(20) for n in range(500)), "login")
    assert resolve("rack7-gpu12", many) == Known("rack07-gpu012")
    assert resolve("rack7-gpu[12-499]", many) == Known("rack7-gpu[12-499]")
    assert isinstance(resolve("x" * 100_000, many), Unknown)
    found = resolve("rakc07-gpu012", many)
    assert isinstance(found, Unknown)
    assert found.suggestions[0] == "rack07-gpu012"


# --- where names come from ----------------------------------------------------------------


def settings(tmp_path: Path, **more: str) -> Settings:
    url = f"sqlite:///{tmp_path / 'history.db'}"
    return load_settings({}, {"GPUDIAG_HISTORY_URL": url, **more}, ())


def test_names_of_this_machine_come_once(tmp_path: Path) -> None:
    own = os.uname().nodename
    assert hosts_known(settings(tmp_path)) == (own,)
    named = known(settings(tmp_path, GPUDIAG_HOST_NAME="front-1.lab"))
    assert named.here == "front-1.lab"
    assert named.hosts == ("front-1.lab",)
    assert all(named.is_here(n) for n in ("front-1", "FRONT-1.lab", own, "local"))


def test_names_of_the_history_and_of_what_is_given(tmp_path: Path) -> None:
    from assistant.store import remember

    here = settings(tmp_path, GPUDIAG_HOST_NAME="front-1")
    for host in ("gpu-2", "front-1"):
        seen = Observation("node.gpu.count", Subject(S.NODE, host), 8, source=Source("nvml", "nvml"), at=10**18)
        assert remember(here.history.url, host, diagnose([seen], load_rules(), as_of=10**18)) is None
    given = diagnose(
        [Observation("node.gpu.count", Subject(S.NODE, "gpu-9"), 8, source=Source("x", "x"))], load_rules()
    )
    assert hosts_known(here, given) == ("front-1", "gpu-9", "gpu-2")
    assert hosts_known(load_settings({}, {"GPUDIAG_HISTORY_URL": "off"}, ()), given)[1:] == ("gpu-9",)


@each("content", [b"", b"no database" * 500])
def test_a_history_that_is_none_tells_no_names(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "history.db").write_bytes(content)
    assert len(hosts_known(settings(tmp_path))) == 1
    (tmp_path / "history.db").unlink()
    with sqlite3.connect(tmp_path / "history.db") as strange:
        strange.execute("CREATE TABLE node (name TEXT)")
    assert len(hosts_known(settings(tmp_path))) == 1


def test_a_server_is_asked_only_for_a_strange_name() -> None:
    asked = []

    def more() -> list[str]:
        asked.append(1)
        return ["gpu-77"]

    lazy = Inventory(("gpu-1", "gpu-2"), "gpu-1", (), more)
    assert resolve("gpu-2", lazy) == Known("gpu-2")
    assert asked == []
    assert resolve("gpu-77", lazy) == Known("gpu-77")
    assert resolve("gpu-77x", lazy) == Unknown("gpu-77x", ("gpu-77",))
    assert asked == [1]


# --- processes ----------------------------------------------------------------------------


def test_processes_on_gpus_are_suggested() -> None:
    def of(pid: int, fact: str, value: str | int) -> Observation:
        return Observation(
            fact, Subject(S.PROCESS, str(pid), Subject(S.NODE, "n")), value, source=Source("nvml", "nvml")
        )

    facts = FactBase(
        [
            of(10, "process.uses_gpu", "gpu:0000:3b:00.0"), of(10, "process.gpu_memory", 100), of(10, "process.comm", "small"),
            of(20, "process.uses_gpu", "gpu:0000:3b:00.0"), of(20, "process.gpu_memory", 70_000),
            of(20, "process.name", "/usr/bin/py\x1b[31mthon"), of(30, "process.comm", "sshd"),
        ],
        vocabulary(),
    )  # fmt: skip
    assert pid_known(facts, 30)
    assert not pid_known(facts, 40)
    assert [p.pid for p in on_gpus(facts)] == [20, 10]
    assert pid_suggestions(facts) == ("20 (python)", "10 (small)")
    assert pid_suggestions(facts, 1) == ("20 (python)",)
