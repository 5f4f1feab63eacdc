"""What somebody without the right never sees: other users' names and command lines, wherever they stand; secrets, nobody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from assistant.rights.model import Sight
from assistant.slack.veil import veiled
from knowledge.derive import derive
from knowledge.observation import Event, Observation, Scope, Source, Status, Subject, gpu, node
from probes.base import Context
from probes.parse.processes_snapshot import FORMAT
from tests.probes.parse.test_processes_snapshot import detail, doc, row, torch

KEY = b"test"
ALL = (Sight.USERS, Sight.COMMAND_LINES)
FOLDER = "/scratch/zq-plans/ckpt"


def machine(
    alice: str = "zqalice", argv: Iterable[str] = ("/home/zqalice/env/bin/python", "train.py", "--plan", "zq-merger"),
    title: str = "zq-merger-run",
) -> list[Observation]:  # fmt: skip
    """A job of `alice` with two ranks, and one process of bob, who is uid 70002."""
    env = torch(0, SLURM_JOB_USER=alice, SLURM_JOB_NAME=title, TORCHELASTIC_RUN_ID=f"{alice}-run")
    here: dict[str, Any] = {"cmdline": list(argv), "executable": f"/home/{alice}/bin/zqtool (deleted)",
                            "cgroup": ["0::/slurm/uid_70001/user-70001.slice"]}  # fmt: skip
    text = doc(
        [row(10, "python", uid=70001), row(11, "zq title here", uid=70001), row(20, "python", uid=70002)],
        [
            detail(10, env, **here),
            detail(11, env | {"RANK": "1", "LOCAL_RANK": "1"}, **here),
            detail(20, cmdline=["python", "b.py"]),
        ],
        users={"70001": alice, "70002": "zqbob"},
    )
    at = Subject(Scope.PROCESS, "10", node("n1"))
    more = [
        Observation("process.writing.folder", at, FOLDER, source=Source("x", "/proc/10/fd"), excerpt=f"{FOLDER}/a.pt 4 GiB"),
        Observation("process.writing.largest", at, 4096, excerpt=f"{FOLDER}/a.pt", detail=f"seen in {FOLDER}"),
        Observation("process.name", at, f"/home/{alice}/env/bin/python zq-merger", excerpt=f"/home/{alice}/env/bin/python zq-merger"),
        Observation("fs.mount_point", Subject(Scope.OBJECT, f"/home/{alice}", node("n1")), f"/home/{alice}", source=Source("fs", "/proc/mounts")),
        Observation("process.writes_to", at, f"object:/home/{alice}"),
        Observation("oom_kill", node("n1"), Event(None, {"process": "zq title here", "text": "Killed process 10 (python), UID 70001"}),
                    excerpt="oom-kill:task=python,pid=10,uid=70001", detail=f"of {alice}"),
    ]  # fmt: skip
    return [*FORMAT.parse(text, Context("p.json")), *more]


def seen(found: Iterable[Observation]) -> str:
    return "\n".join(map(repr, found))


def one(found: Iterable[Observation], fact: str, id_: str) -> Any:
    return next(o.value for o in found if o.fact == fact and o.subject.id == id_)


def test_the_machine_has_what_is_to_be_hidden() -> None:
    text = seen(machine())
    for word in ("zqalice", "zqbob", "zq-merger", "zqtool", "70001", "70002", FOLDER, "b.py"):
        assert word in text


def test_without_a_right_the_program_is_shown_and_nothing_else() -> None:
    found = veiled(machine(), (), key=KEY)
    text = seen(found)
    for word in (
        "zqalice",
        "zqbob",
        "zq-merger",
        "zqtool",
        "zq title",
        "zq-plans",
        "70001",
        "70002",
        "b.py",
        "train.py",
        "title here",
    ):
        assert word not in text, next(line for line in text.splitlines() if word in line)
    assert one(found, "process.command", "10") == "python ***"
    assert one(found, "process.comm", "11") == "zq ***"
    assert one(found, "process.name", "10") == "python ***"


@given(
    st.text("abcdefghij0123456789-_", min_size=1, max_size=12).map("zq".__add__),
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=20).map("zq".__add__),
        max_size=4,
    ),
    st.text("abc DEF-_.é中", min_size=1, max_size=20).map("zq".__add__),
)
@example("zq.*", ["zq(", "--x=/home/zq.*/a"], "zq[")
def test_no_name_and_no_argument_gets_through(alice: str, arguments: list[str], title: str) -> None:
    shown = veiled(machine(alice, ("python", *arguments), title), (), key=KEY)
    assert "zq" not in seen(shown).replace("'zq ***'", "").replace("(zq ***)", "").replace("11 zq ***", "")
    assert veiled(shown, (), key=KEY) == shown  # what was veiled once stays as it is


def test_what_is_hidden_does_not_change_what_is_counted() -> None:
    raw = machine()
    shown = veiled(raw, (), key=KEY)
    plain = [o for o in raw if o.fact != "process.owner"] + owners("user zqalice", "user zqbob", "user zqalice")
    hidden = veiled(plain, (), key=KEY)
    assert one(derive([*plain, *contexts()]), "gpu.owners", "0000:3b:00.0") == 2
    assert one(derive([*hidden, *contexts()]), "gpu.owners", "0000:3b:00.0") == 2
    told = {(o.fact, o.status) for o in raw}
    assert {(o.fact, o.status) for o in shown} == told
    names = {o.subject: o.value for o in shown if o.fact == "process.user"}
    assert len(set(names.values())) == 2


def owners(*names: str) -> list[Observation]:
    pids = ("10", "20", "11")
    return [
        Observation("process.owner", Subject(Scope.PROCESS, p, node("n1")), n) for p, n in zip(pids, names, strict=True)
    ]


def contexts() -> list[Observation]:
    card = gpu("0000:3b:00.0", "n1")
    return [
        Observation("process.uses_gpu", Subject(Scope.PROCESS, p, node("n1")), f"gpu:{card.id}")
        for p in ("10", "11", "20")
    ]


def test_relations_still_meet_what_they_point_to() -> None:
    shown = veiled(machine(), (), key=KEY)
    jobs = {f"job:{o.subject.id}" for o in shown if o.subject.scope is Scope.JOB}
    assert {o.value for o in shown if o.fact == "process.in_job" and o.status is Status.OK} <= jobs
    (mount,) = (o.subject.id for o in shown if o.fact == "fs.mount_point")
    assert one(shown, "process.writes_to", "10") == f"object:{mount}"


def test_ones_own_are_shown_and_others_are_not() -> None:
    shown = veiled(machine(), (), "zqbob", key=KEY)
    text = seen(shown)
    assert one(shown, "process.command", "20") == "python b.py"
    assert one(shown, "process.user", "20") == "zqbob"
    assert "zqalice" not in text
    assert "zq-merger" not in text
    mine = seen(veiled(machine(), (), "zqalice", key=KEY))
    assert "zq-merger" in mine
    assert "zqbob" not in mine
    assert "b.py" not in mine


def test_whose_it_is_must_be_told_by_all_who_tell_it() -> None:
    at = Subject(Scope.PROCESS, "20", node("n1"))
    shown = veiled([*machine(), Observation("process.user", at, "zqalice")], (), "zqbob", key=KEY)
    assert one(shown, "process.command", "20") == "python ***"
    unknown = [Observation("process.command", at, "python b.py")]
    assert veiled(unknown, (), "zqbob")[0].value == "python ***"


def test_each_right_shows_its_own() -> None:
    users = seen(veiled(machine(), (Sight.USERS,), key=KEY))
    assert "zqalice" in users
    assert "zq-merger" not in users
    lines = seen(veiled(machine(), (Sight.COMMAND_LINES,), key=KEY))
    assert "zq-merger" in lines
    assert "zqalice" not in lines
    raw = machine()
    assert seen(veiled(raw, ALL, key=KEY)) == seen(raw)
    assert all(a is b for a, b in zip(veiled(raw, ALL), raw, strict=True))


def test_secrets_are_nobodys_to_see() -> None:
    at = Subject(Scope.PROCESS, "20", node("n1"))
    token = "hf_" + "a1B2" * 6
    raw = [
        Observation("process.user", at, "zqbob"),
        Observation(
            "process.command",
            at,
            f"python t.py --token {token} --password=hunter2",
            excerpt=f"python t.py --token {token} --password=hunter2",
        ),
        Observation(
            "python_error",
            node("n1"),
            Event(None, {"message": f"401 for https://u:hunter2@hub with {token}"}),
            excerpt=f"token={token}",
        ),
        Observation(
            "node.nccl.net",
            node("n1"),
            None,
            Status.FAILED,
            Source("x", f"curl -H 'Authorization: Bearer {token}'"),
            detail=f"password: hunter2 {token}",
        ),
    ]
    for sights, viewer in (((), ""), (ALL, ""), (ALL, "zqbob")):
        text = seen(veiled(raw, sights, viewer, key=KEY))
        assert token not in text
        assert "hunter2" not in text
        assert "python t.py" in text or not sights


def test_a_home_names_its_owner_wherever_it_stands() -> None:
    raw = [
        Observation(
            "python_error",
            node("n1"),
            Event(None, {"file": "/home/zqcarol/t.py"}),
            source=Source("log", "/Users/zqcarol/run.log"),
        )
    ]
    assert "zqcarol" not in seen(veiled(raw, (Sight.COMMAND_LINES,), key=KEY))
    assert "t.py" in seen(veiled(raw, (), key=KEY))  # of a log that somebody gave, not of a process
    assert veiled(raw, (), "zqcarol", key=KEY)[0] is raw[0]


def test_what_names_nobody_is_the_same_object() -> None:
    raw = [
        Observation(
            "xid",
            gpu("0000:3b:00.0", "n1"),
            Event(79, {"text": "GPU has fallen off the bus."}),
            excerpt="NVRM: Xid (PCI:0000:3b:00): 79",
        ),
        Observation(
            "node.driver.version", node("n1"), "550.54.15", source=Source("nvml", "/sys/module/nvidia/version")
        ),
        Observation("node.memory.total", node("n1"), 2048, excerpt="MemTotal: 2113929216 kB"),
    ]
    assert all(a is b for a, b in zip(veiled(raw, ()), raw, strict=True))
