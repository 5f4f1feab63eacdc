"""The inventory file: what it says, and everything that is wrong with one at once, with its line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.commands._recording import named_in, names_of
from assistant.inventory.document import LIMIT
from assistant.inventory.model import REACH, Hosts, Node
from assistant.inventory.parse import parse, read
from assistant.session.nodeset import expand
from knowledge.errors import FaultsError, InputError, UnknownNameError, UsageError
from tests.cases import each

OURS = """
[defaults]
user = "ops"
labels = {site = "north"}

[hosts.gpu-12]
address = "10.0.3.12"
aliases = ["dgx3", "rack3-12"]
gpus = 8
identity = "keys/ops"
labels = {rack = "3"}

[hosts."gpu[001-064]"]
via = "slurm"
partition = "gpu"
gpus = 4

[hosts.gpu007]
via = "ssh"
address = "{name}.lab.example"
gpus = 2

[hosts.vllm-0]
via = "kubernetes"
namespace = "serving"
gpus = 1

[groups]
training = ["gpu[001-032]", "@spare", "dgx3"]
spare = "gpu-12"
"""


def ours() -> Hosts:
    return parse(OURS, "/etc/gpudiag/inventory.toml")


def faults(text: str) -> list[str]:
    with pytest.raises(FaultsError) as caught:
        parse(text, "i.toml")
    return [str(f) for f in caught.value.faults]


def test_machines_sets_and_groups() -> None:
    hosts = ours()
    assert list(hosts.nodes) == ["gpu-12", *expand("gpu[001-064]"), "vllm-0"]
    twelve, seven, eight = (hosts.nodes[n] for n in ("gpu-12", "gpu007", "gpu008"))
    assert (twelve.reach.user, twelve.reach.target, twelve.gpus) == ("ops", "10.0.3.12", 8)
    assert twelve.reach.identity == "/etc/gpudiag/keys/ops"
    assert (seven.via, seven.reach.target, seven.gpus) == ("ssh", "gpu007.lab.example", 2)
    assert "partition" not in seven.how  # of another way to it
    assert (eight.via, eight.reach.partition, eight.reach.user, eight.gpus) == ("slurm", "gpu", "", 4)
    assert hosts.nodes["vllm-0"].reach.pod == "vllm-0"
    assert twelve.labels == {"site": "north", "rack": "3"}
    assert twelve.place == "/etc/gpudiag/inventory.toml:6"
    assert hosts.groups == {"training": (*expand("gpu[001-032]"), "gpu-12"), "spare": ("gpu-12",)}


@each(
    ("said", "name"),
    [
        ("gpu-12", "gpu-12"),
        ("DGX3", "gpu-12"),
        ("gpu13", "gpu013"),
        ("gpu-014", "gpu014"),
        ("gpu[007]", "gpu007"),
        ("dgx3.lab", "gpu-12"),
    ],
)
def test_a_machine_by_any_way_of_calling_it(said: str, name: str) -> None:
    assert ours().find(said).name == name


@each(
    "said",
    [
        "gpu-99",
        "spare",
        "@training",
        "gpu[001-002]",
        "gpu12",
        "gpu[9-1]",
        "-oProxyCommand=x",
        "$(reboot)",
        "",
        "a" * 9999,
    ],
)
def test_what_is_no_one_machine(said: str) -> None:
    with pytest.raises((UnknownNameError, UsageError)) as caught:
        ours().find(said)
    assert len(str(caught.value)) < 600


def test_near_names_are_told() -> None:
    with pytest.raises(UnknownNameError, match="did you mean dgx3") as caught:
        ours().find("dgx4")
    assert "gpudiag config hosts" in caught.value.hint


@each(
    ("text", "fault"),
    [
        ("[host.a]", "i.toml:1:1: unknown key 'host' (did you mean hosts?)"),
        ("hosts = 3", "i.toml:1:1: hosts is a table, not 3"),
        ("[hosts]\na = 3", "i.toml:2:1: hosts.a is a table, not 3"),
        ("[hosts.a]\n\nadress = 'x'", "i.toml:3:1: unknown key 'adress' (did you mean address?)"),
        ("[hosts.a]\nport = 0", "i.toml:2:1: port is a whole number from 1 to 65535, not 0"),
        ("[hosts.a]\nport = true", "i.toml:2:1: port is a whole number from 1 to 65535, not True"),
        ("[hosts.a]\nport = '22'", "i.toml:2:1: port is a whole number from 1 to 65535, not '22'"),
        ("[hosts.a]\nconnect_timeout = nan", "i.toml:2:1: connect_timeout is a number of seconds from 0.1 to 600, not nan"),
        ("[hosts.a]\nvia = 'shh'", "i.toml:2:1: via is 'shh' (did you mean ssh?)"),
        ("[hosts.a]\nvia = ['ssh']", "i.toml:2:1: via is ['ssh'] (did you mean ssh?)"),
        ("[hosts.a]\nsudo = 'yes'", "i.toml:2:1: sudo is true or false, not 'yes'"),
        ("[hosts.a]\naddress = '-oProxyCommand=x'", "i.toml:2:1: address cannot be '-oProxyCommand=x'"),
        ("[hosts.a]\naddress = 'a b'", "i.toml:2:1: address cannot be 'a b'"),
        ("[hosts.a]\nuser = ''", "i.toml:2:1: user is a word, not ''"),
        ("[hosts.a]\npython = 'python3 -c x'", "i.toml:2:1: python cannot be 'python3 -c x'"),
        ("[hosts.a]\nidentity = '~nobody-of-that-name/x'", "i.toml:2:1: '~nobody-of-that-name/x' begins with nobody's home"),
        ("[hosts.a]\ngpus = -1", "i.toml:2:1: gpus is a whole number from 0 to 1024, not -1"),
        ("[hosts.a]\nlabels = 'x'", "i.toml:2:1: labels is a table of words, not 'x'"),
        ("[hosts.a]\naliases = 'x'", "i.toml:2:1: aliases is a list of names, not 'x'"),
        ("[hosts.a]\naliases = ['b']\n[hosts.b]", "i.toml:2:1: 'b' is a name of b already"),
        ("[hosts.a]\naliases = ['here']", "i.toml:2:1: 'here' means the machine that asks, whatever stands here"),
        ("[hosts.a]\naliases = ['a;b']", "i.toml:2:1: 'a;b' is no name: letters, digits, dots, dashes and underscores"),
        ("[hosts.localhost]", "i.toml:1:1: 'localhost' means the machine that asks, whatever stands here"),
        ("[hosts.'a b']", "i.toml:1:1: 'a b' is no name: letters, digits, dots, dashes and underscores"),
        ("[hosts.'g[1-2]']\naliases = ['x']", "i.toml:2:1: an alias is another name of one machine, and these are several"),
        ("[hosts.'g[2-1]']", "i.toml:1:1: 2-1 is no range of at most 4096 nodes"),
        ("[hosts.a]\nvia = 'kubernetes'\nport = 22", "i.toml:3:1: port is about ssh, and this is reached through kubernetes"),
        ("[groups]\na = 3", "i.toml:2:1: a group is a set of machines or a list of them, not 3"),
        ("[hosts.gpu-12]\n[groups]\na = ['gpu-21']", "i.toml:3:1: there is no machine and no group 'gpu-21' (did you mean gpu-12?)"),
        ("[groups]\na = '@b'\nb = '@a'", "i.toml:3:1: groups within groups have no end: a > b > a"),
        ("[hosts.a]\n[groups]\na = 'a'", "i.toml:3:1: 'a' is the name of a machine already"),
        ("[hosts.a\n", "i.toml:1:9: it is no TOML: Expected ']' at the end of a table declaration"),
    ],
)  # fmt: skip
def test_a_fault_has_its_place(text: str, fault: str) -> None:
    assert faults(text)[0] == fault


def test_all_faults_at_once_and_each_once() -> None:
    found = faults(
        "[hosts.'n[1-500]']\nvia = 'slurm'\nport = 22\nuser = 3\n[hosts.a]\nvai = 'ssh'\n[groups]\nx = ['b', 'c']\n"
    )
    assert [line.partition(" ")[0] for line in found] == [
        "i.toml:3:1:",
        "i.toml:4:1:",
        "i.toml:6:1:",
        "i.toml:8:1:",
        "i.toml:8:1:",
    ]


def test_groups_without_end() -> None:
    chain = "\n".join(f"g{i} = '@g{i + 1}'" for i in range(3000))
    assert any("have no end" in f for f in faults(f"[groups]\n{chain}\ng3000 = []"))


def test_too_many_machines() -> None:
    assert any(
        "more than 20000 machines" in f
        for f in faults("[hosts]\n" + "".join(f"'n{i}-[1-4000]' = {{}}\n" for i in range(6)))
    )


@given(st.text("[]hosts.groups=abv\"' \n-1@,{}", max_size=80))
def test_any_text_is_an_inventory_or_its_faults(text: str) -> None:
    try:
        hosts = parse(text, "i.toml")
    except FaultsError as error:
        found = error.faults
        hosts = Hosts()
        assert [f for f in found if f.line < 1 or f.column < 1 or not f.message] == []
    for node in hosts.nodes.values():
        assert node.reach.name == node.name
        assert all(node.via in REACH[key].vias for key in node.how)


def test_a_file_is_read_with_care(tmp_path: Path) -> None:
    path = tmp_path / "inventory.toml"
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read(path)
    path.write_bytes(b"\xef\xbb\xbf[hosts.a]\r\n")
    assert list(read(path).nodes) == ["a"]
    path.chmod(0o666)
    with pytest.raises(InputError, match="can be written by anybody"):
        read(path)
    path.chmod(0o644)
    path.write_bytes(b"\xff")
    with pytest.raises(FaultsError, match="no UTF-8"):
        read(path)
    path.write_bytes(b" " * (LIMIT + 1))
    with pytest.raises(InputError, match="longer than"):
        read(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="it is no file"):  # nobody waits for whoever writes to it
        read(tmp_path / "pipe")


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,3}-?[0-9]{0,3}", fullmatch=True),
        st.tuples(st.integers(0, 3), st.none() | st.integers(0, 9)),
        max_size=9,
    )
)
def test_a_conversation_keeps_which_machines_there_were(machines: dict[str, tuple[int, int | None]]) -> None:
    nodes = {
        name: Node(name, aliases=tuple(f"{name}.{i}" for i in range(aliases)), gpus=gpus)
        for name, (aliases, gpus) in machines.items()
    }
    assert named_in(names_of(Hosts(nodes))).nodes == nodes
