"""What could not be seen: one line for each thing that a person can do, however many facts it hides."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.diagnosis import Diagnosis, diagnose
from assistant.render.gaps import remedy
from assistant.render.json_ import plain
from assistant.render.view import UNDECIDED, View, view
from assistant.sources import tells
from knowledge.facts import Kind, vocabulary
from knowledge.observation import Observation, Scope, Source, Status, Subject, gpu, node
from rules.loader import load
from tests.cases import each

HERE = node("n1")
GPUS = [gpu(f"0000:{bus:02x}:00.0", "n1") for bus in range(0x10, 0x18)]
ROOT = "needs root: run sudo gpudiag check"
OF_GPUS = [s.name for s in vocabulary() if s.scope is Scope.GPU and s.kind is not Kind.EVENT and not s.derived]


def lacks(fact: str, on: Subject, status: Status, detail: str = "") -> Observation:
    return Observation(fact, on, status=status, detail=detail, source=Source("nvml", "nvml"))


def page(observations: list[Observation], verbose: bool = False, lang: str = "en") -> tuple[Diagnosis, View]:
    d = diagnose(observations, load())
    return d, view(d, lang, tells, verbose)


# --- the command in a reason --------------------------------------------------------------


@each(
    ("reason", "command"),
    [
        ("needs root: run sudo gpudiag check", "sudo gpudiag check"),
        ("dmesg: read failed; the ring buffer needs CAP_SYSLOG: run sudo gpudiag check", "sudo gpudiag check"),
        ("/dev/kmsg: Operation not permitted: run as root to see it; /var/log/syslog: no file", "sudo gpudiag check"),
        ("did not answer for 5 s: run gpudiag check --again", "gpudiag check --again"),
        ("EIO: Input/output error", ""),
        ("the test was not run as rooted", ""),
        ("", ""),
    ],
)
def test_the_command_that_would_help(reason: str, command: str) -> None:
    assert remedy(reason) == command


# --- an ordinary user on a big node -------------------------------------------------------


def test_a_node_seen_by_an_ordinary_user_fits_a_screen() -> None:
    world = [Observation("gpu.name", g, "NVIDIA H100 80GB HBM3", source=Source("nvml", "nvml")) for g in GPUS]
    world += [lacks(f, g, Status.UNSUPPORTED) for f in OF_GPUS if f != "gpu.name" for g in GPUS]
    world += [lacks(f, HERE, Status.DENIED, ROOT) for f in ("log.kernel.readable", "xid", "sxid", "aer")]
    for pid in range(40):
        world += [lacks(f, Subject(Scope.PROCESS, str(pid), HERE), Status.DENIED, f"/proc/{pid}: {ROOT}")
                  for f in ("process.name", "process.gpu_memory")]  # fmt: skip
    d, said = page(world)
    assert len(d.coverage.denied) == 84
    assert len(said.undecided) + len(said.unseen) <= 2 * UNDECIDED
    assert len(said.unseen) == 1, "one command would show it all"
    assert said.unseen[0].startswith("sudo gpudiag check shows: ")
    assert "kernel log" in said.unseen[0]
    assert "运行 sudo gpudiag check 可看到：" in page(world, lang="zh")[1].unseen[0]
    assert all(len(line) < 400 for line in (*said.undecided, *said.unseen))


def test_what_can_be_helped_stands_before_what_cannot() -> None:
    world = [
        lacks(f"gpu.clock.{c}", GPUS[0], Status.FAILED, f"EIO on {c}") for c in ("sm", "memory", "graphics", "video")
    ]
    world += [lacks("gpu.utilization.core", GPUS[0], Status.FAILED, "EIO"), lacks("xid", HERE, Status.DENIED, ROOT)]
    said = page(world)[1]
    assert said.unseen[0].startswith("sudo gpudiag check shows")
    assert (len(said.unseen), said.unseen_more) == (UNDECIDED, 2)
    assert {key: more for key, _, more in said.lists}["could_not_see"] == "2 more with --verbose"
    assert len(page(world, verbose=True)[1].unseen) == 6


def test_rules_that_wait_for_the_same_thing_are_one_line() -> None:
    world = [Observation(fact, g, value, source=Source("nvml", "nvml")) for g in GPUS
             for fact, value in (("gpu.name", "NVIDIA H100 80GB HBM3"), ("gpu.utilization.core", 100))]  # fmt: skip
    d, said = page(world, verbose=True)
    needs = [line.rpartition("; needs ")[2] for line in said.undecided]
    assert len(needs) == len(set(needs)) < len({u.rule.id for u in d.undecided})
    assert all(any(u.rule.title.en in line for line in said.undecided) for u in d.undecided)


def test_what_the_device_does_not_have_is_not_asked_for_again() -> None:
    world = [Observation("gpu.name", GPUS[0], "NVIDIA H100 80GB HBM3", source=Source("nvml", "nvml"))]
    world += [Observation("gpu.nvlink.active", GPUS[0], 0, source=Source("nvml", "nvml"))]
    world += [lacks("gpu.index", GPUS[0], Status.UNSUPPORTED)]
    (down,) = (line for line in page(world)[1].undecided if "Every NVLink" in line)
    assert down.endswith("; not reported by this device or driver: gpu.index")


def test_a_lesser_matter_that_no_device_tells_is_left_to_verbose() -> None:
    world = [Observation("gpu.name", GPUS[0], "NVIDIA T4", source=Source("nvml", "nvml")),
             Observation("gpu.utilization.core", GPUS[0], 100, source=Source("nvml", "nvml")),
             Observation("gpu.clock.event.sw_power_cap", GPUS[0], True, source=Source("nvml", "nvml"))]  # fmt: skip
    world += [lacks(f, GPUS[0], Status.UNSUPPORTED) for f in OF_GPUS if f not in {o.fact for o in world}]
    d, said = page(world)
    lesser = [u for u in d.undecided if u.rule.severity.rank < 2]
    assert lesser, "else this shows nothing"
    assert not [u for u in lesser if any(u.rule.title.en in line for line in said.undecided)]
    everything = page(world, verbose=True)[1].undecided
    assert all(any(u.rule.title.en in line for line in everything) for u in lesser)


# --- laws ---------------------------------------------------------------------------------

STATES = st.sampled_from((Status.DENIED, Status.TIMEOUT, Status.FAILED))
REASONS = st.sampled_from((ROOT, "EIO", "", "run as root to see it", "did not answer in 2 s"))


@given(st.lists(st.tuples(st.sampled_from(OF_GPUS), st.sampled_from(GPUS), STATES, REASONS), max_size=30))
def test_nothing_that_was_not_seen_is_lost(told: list[tuple[str, Subject, Status, str]]) -> None:
    world = [lacks(*one) for one in told]
    d, everything = page(world, verbose=True)
    short = page(world)[1]
    missing = {g.fact for g in (*d.coverage.denied, *d.coverage.failed)}
    assert missing <= {name for line in everything.unseen for name in re.findall(r"[a-z0-9_]+(?:\.[a-z0-9_]+)+", line)}
    assert len(short.unseen) <= UNDECIDED
    assert short.unseen_more == max(0, len(everything.unseen) - UNDECIDED)
    gaps = [*plain(d)["coverage"]["denied"], *plain(d)["coverage"]["failed"]]
    assert all((g["remedy"] == "sudo gpudiag check") is ("root" in g["detail"]) for g in gaps)


# --- what is not decided, as data ---------------------------------------------------------


@given(st.sets(st.sampled_from(OF_GPUS), min_size=1), st.sampled_from([Status.DENIED, Status.FAILED, Status.TIMEOUT]))
@settings(max_examples=10, deadline=None)
def test_a_rule_that_lacks_facts_is_named_with_what_it_lacks_and_its_proof_only_when_asked(
    facts: set[str], status: Status
) -> None:
    d = diagnose([lacks(f, GPUS[0], status, "no") for f in sorted(facts)], load())
    short, long = (plain(d, verbose=verbose)["undecided"] for verbose in (False, True))
    assert [(u["rule"], u["missing"]) for u in short] == [(u["rule"], u["missing"]) for u in long]
    assert {u["rule"] for u in short} == {u.rule.id for u in d.undecided}
    assert all(u["missing"] and u["proof"] is None and not u["because"] for u in short)
    assert all(u["proof"] for u in long)
