"""One thing, one name: shapes of addresses, and aliases that tie, but never merge two known GPUs."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.identity import UNKNOWN_PCI, is_pci, normalise_pci, resolve
from knowledge.observation import Event, Observation, Scope, Source, Status, Subject, Value, gpu, node
from tests.cases import each

A, B = "0000:3b:00.0", "0000:86:00.0"
UUID_A, UUID_B = "GPU-aaaaaaaa-0000-4000-8000-000000000001", "GPU-bbbbbbbb-0000-4000-8000-000000000002"


def told(fact: str, value: Value, on: Subject, call: str = "c", status: Status = Status.OK) -> Observation:
    return Observation(fact, on, value, status, Source("p", call))


def names(batch: list[Observation]) -> list[str]:
    """Id of the GPU that each observation is about, in order."""
    return [g.id for o in batch if (g := o.subject.up(Scope.GPU))]


def originals(batch: list[Observation]) -> list[Observation]:
    """What became of each observation: where a UUID is renamed, `resolve` adds one that says so, next to it."""
    after, out = resolve(batch), []
    for o in batch:
        out.append(after.pop(0))
        tie = o.fact in ("gpu.pci", "gpu.uuid", "gpu.index", "gpu.minor") and o.value != o.subject.id
        if tie and o.status is Status.OK and o.subject.id.startswith("GPU-") and is_pci(out[-1].subject.id):
            assert (after[0].fact, after[0].value, after[0].subject) == ("gpu.uuid", o.subject.id, out[-1].subject)
            after.pop(0)
    assert not after
    return out


# --- addresses ----------------------------------------------------------------------------


@each(
    ("text", "expected"),
    [
        ("0000:3b:00.0", "0000:3b:00.0"),  # canonical already
        ("0000:3b:00", "0000:3b:00.0"),  # NVRM's own line
        ("PCI:0000:3b:00", "0000:3b:00.0"),
        ("pci:0000:3b:00.1", "0000:3b:00.1"),
        ("00000000:3B:00.0", "0000:3b:00.0"),  # NVML, eight digits, upper case
        ("00000001:3B:00.0", "0001:3b:00.0"),
        ("0000:3B:00.0", "0000:3b:00.0"),
        ("3b:00.0", "0000:3b:00.0"),  # lspci without a domain
        ("3B:00", "0000:3b:00.0"),
        ("0009:00", "0000:09:00.0"),  # bus:device, drivers before 2011
        ("PCI:0009:00", "0000:09:00.0"),
        ("0018:01:00.0", "0018:01:00.0"),  # Grace: a domain of its own for each GPU
        ("0019:01:00", "0019:01:00.0"),
        ("00000019:01:00.0", "0019:01:00.0"),
        ("PCI:0001:ab:cd", "0001:ab:cd.0"),
        ("10000:01:00.0", "10000:01:00.0"),  # VMD: five digits
        ("00010000:01:00.0", "10000:01:00.0"),
        ("  0000:3b:00.0\n", "0000:3b:00.0"),
    ],
)
def test_every_shape_of_an_address_is_one_name(text: str, expected: str) -> None:
    assert normalise_pci(text) == expected
    assert is_pci(expected)


@each("domain", range(1, 0x20))
def test_a_domain_is_never_lost(domain: int) -> None:
    for width in (4, 8):
        assert normalise_pci(f"{domain:0{width}X}:01:00.0") == f"{domain:04x}:01:00.0"


@each(
    "text",
    ["", "PCI:0000:..:00", "0000:XX:00.0", "[N/A]", "0000:3b:00.0 extra", "0:3b:00.0", "GPU-1234", "000000000:3b:00.0",
     "0000:3b:00.", "0000:3b:00.10", "00:3b:00.0"],
)  # fmt: skip
def test_what_is_no_address_stays_what_it_says(text: str) -> None:
    name = normalise_pci(text)
    assert name.startswith(UNKNOWN_PCI)
    assert not is_pci(name)
    assert normalise_pci(name) == name


def test_two_redacted_addresses_stay_two() -> None:
    assert normalise_pci("PCI:0000:..:00") != normalise_pci("PCI:0001:..:00")


@given(st.text() | st.from_regex(r"(PCI:)?([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(\.[0-7])?", fullmatch=True))
def test_a_name_is_its_own_name(text: str) -> None:
    once = normalise_pci(text)
    assert normalise_pci(once) == once
    assert is_pci(once) != once.startswith(UNKNOWN_PCI)


@given(st.integers(0, 0xFFFF), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_two_devices_never_share_a_name(domain: int, bus: int, device: int, function: int) -> None:
    name = f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
    shapes = {name, name.upper(), f"{domain:08X}:{bus:02X}:{device:02X}.{function}", f"PCI:{name}"}
    assert {normalise_pci(s) for s in shapes} == {name}


# --- aliases ------------------------------------------------------------------------------


def test_the_tie_stays_known() -> None:
    """Another card with the same index, after a swap, is not merged when everything is resolved once more."""
    batch = [
        told("gpu.index", 0, gpu(A, "n1")),
        told("gpu.pci", A, gpu(UUID_A, "n1")),
        told("gpu.index", 0, gpu(UUID_B, "n1")),
    ]
    once = resolve(batch)
    assert told("gpu.uuid", UUID_A, gpu(A, "n1")) in once
    assert set(names(resolve(once))) == {A, UUID_B}


def test_one_host_takes_in_what_names_none() -> None:
    batch = [told("gpu.on_bus", True, gpu(A)), told("node.driver.version", "570.86", node("n1"))]
    assert [o.subject.host for o in resolve(batch)] == ["n1", "n1"]


def test_two_hosts_take_in_nothing() -> None:
    batch = [told("gpu.on_bus", True, gpu(A)), told("x", 1, node("n1")), told("x", 1, node("n2"))]
    assert resolve(batch)[0].subject.host == ""


def test_what_stands_beside_nodes_gets_no_host() -> None:
    rank = Subject(Scope.RANK, "3")
    batch = [told("x", 1, rank), told("x", 1, node("n1"))]
    assert resolve(batch)[0].subject == rank


def test_a_part_of_a_gpu_moves_with_it() -> None:
    link = Subject(Scope.LINK, "3", gpu(UUID_A, "n1"))
    batch = [told("link.errors.crc", 1, link), told("gpu.pci", A, gpu(UUID_A, "n1"))]
    assert resolve(batch)[0].subject == Subject(Scope.LINK, "3", gpu(A, "n1"))


def test_index_to_uuid_to_address() -> None:
    index, uuid = gpu("index:0", "n1"), gpu(UUID_A, "n1")
    batch = [
        told("gpu.utilization", 5, index),
        told("gpu.uuid", UUID_A, index),
        told("gpu.pci", "00000000:3B:00.0", uuid),
    ]
    assert set(names(resolve(batch))) == {A}


def test_an_index_alone_ties_an_address_and_a_uuid() -> None:
    batch = [told("gpu.index", 0, gpu(A, "n1")), told("gpu.index", 0, gpu(UUID_A, "n1"))]
    assert set(names(resolve(batch))) == {A}


@each(
    ("logged", "reported", "one"),
    [
        ([("0000:9b:00.0", 48), ("0000:9b:00.0", 63)], [("GPU-2d9c", 48)], True),
        ([("0000:9b:00.0", 48)], [("GPU-2d9c", 79)], False),  # another XID
        ([("0000:9b:00.0", 48), ("0000:c3:00.0", 94)], [("GPU-2d9c", 48)], False),  # two GPUs had one
        ([("0000:9b:00.0", 48)], [("GPU-2d9c", 48), ("GPU-77aa", 48)], False),
    ],
)
def test_an_xid_that_only_one_gpu_had_ties_its_address_and_its_uuid(
    logged: list[tuple[str, int]], reported: list[tuple[str, int]], one: bool
) -> None:
    batch = [
        *(Observation("xid", gpu(name, "n1"), Event(code, {})) for name, code in logged),
        *(Observation("xid_reported", gpu(name, "n1"), Event(code, {})) for name, code in reported),
    ]
    names = {o.subject.id for o in resolve(batch)}
    assert names == ({"0000:9b:00.0"} if one else {o.subject.id for o in batch})


def test_without_an_address_the_uuid_is_the_name() -> None:
    batch = [told("gpu.utilization", 5, gpu("index:0", "n1")), told("gpu.index", 0, gpu(UUID_A, "n1"))]
    assert set(names(resolve(batch))) == {UUID_A}


def test_a_device_file_is_its_gpu() -> None:
    """/dev/nvidia2 is what the driver gave the minor number 2, whichever index it has."""
    opens = told("process.opens_gpu", "gpu:minor:2", Subject(Scope.PROCESS, "42", node("n1")))
    batch = [
        opens,
        told("x", 1, gpu("minor:2", "n1")),
        told("gpu.minor", 2, gpu(A, "n1")),
        told("gpu.index", 2, gpu(B, "n1")),
    ]
    assert originals(batch)[0].value == f"gpu:{A}"
    assert names(resolve(batch)) == [A, A, B]


def test_a_minor_number_of_two_gpus_is_no_name() -> None:
    opens = told("process.opens_gpu", "gpu:minor:2", Subject(Scope.PROCESS, "42", node("n1")))
    batch = [opens, told("gpu.minor", 2, gpu(A, "n1")), told("gpu.minor", 2, gpu(B, "n1"))]
    assert originals(batch)[0] == opens


def test_an_index_that_moved_is_no_name() -> None:
    index = gpu("index:0", "n1")
    batch = [
        told("gpu.utilization", 5, index),
        told("gpu.index", 0, gpu(A, "n1")),
        told("gpu.index", 0, gpu(B, "n1")),
    ]
    assert names(resolve(batch)) == ["index:0", A, B]


def test_a_card_that_moved_to_another_slot_keeps_both_slots() -> None:
    uuid = gpu(UUID_A, "n1")
    batch = [told("gpu.pci", A, uuid), told("gpu.pci", B, uuid), told("gpu.on_bus", True, gpu(A, "n1"))]
    assert names(resolve(batch)) == [UUID_A, UUID_A, A]


def test_a_slot_that_held_two_cards_keeps_both_cards() -> None:
    batch = [
        told("gpu.uuid", UUID_A, gpu(A, "n1")),
        told("gpu.uuid", UUID_B, gpu(A, "n1")),
        told("x", 1, gpu(UUID_B, "n1")),
    ]
    assert names(resolve(batch)) == [A, A, UUID_B]


def test_the_same_slot_of_two_hosts_is_two_gpus() -> None:
    batch = [told("gpu.index", 0, gpu(A, "n1")), told("x", 1, gpu("index:0", "n2"))]
    assert names(resolve(batch)) == [A, "index:0"]


@each("status", [s for s in Status if s is not Status.OK])
def test_what_was_not_answered_ties_nothing(status: Status) -> None:
    batch = [told("gpu.pci", A, gpu(UUID_A, "n1"), status=status)]
    assert names(resolve(batch)) == [UUID_A]


def test_a_redacted_address_ties_nothing() -> None:
    batch = [told("gpu.pci", "PCI:0000:..:00", gpu(UUID_A, "n1")), told("gpu.pci", "PCI:0000:..:00", gpu(UUID_B, "n1"))]
    assert names(resolve(batch)) == [UUID_A, UUID_B]


def test_the_value_of_a_relation_is_renamed_too() -> None:
    uses = told("process.gpu", f"gpu:{UUID_A}", Subject(Scope.PROCESS, "42", node("n1")))
    batch = [uses, told("gpu.pci", A, gpu(UUID_A, "n1"))]
    assert originals(batch)[0].value == f"gpu:{A}"


# --- laws ---------------------------------------------------------------------------------

_PCI = st.sampled_from((A, B))
_UUID = st.sampled_from((UUID_A, UUID_B))
_HOST = st.sampled_from(("", "n1", "n2"))
_NUMBERED = ("index:0", "index:1", "minor:0", "minor:1")
_IDS = st.one_of(_PCI, _UUID, st.sampled_from(_NUMBERED))


@st.composite
def ties(draw: st.DrawFn) -> Observation:
    """One observation that may tie two names of a GPU, or only uses one."""
    on = gpu(draw(_IDS), draw(_HOST))
    fact = draw(st.sampled_from(("gpu.pci", "gpu.uuid", "gpu.index", "gpu.minor", "gpu.utilization")))
    values: dict[str, st.SearchStrategy[Any]] = {"gpu.pci": _PCI, "gpu.uuid": _UUID}
    value = draw(values.get(fact, st.integers(0, 1)))
    if fact in ("gpu.index", "gpu.minor") and on.id in _NUMBERED:
        fact = f"gpu.{on.id[:5]}"
        value = int(on.id[-1])  # no source calls a GPU index:0 and says in one breath that its index is 1
    return told(fact, value, on)


@given(st.lists(ties(), max_size=8), st.randoms(use_true_random=False))
def test_resolving_is_idempotent_and_free_of_order(batch: list[Observation], random: Any) -> None:
    once = resolve(batch)
    assert resolve(once) == once
    mixed = list(batch)
    random.shuffle(mixed)
    assert sorted(map(repr, resolve(mixed))) == sorted(map(repr, once))


@given(st.lists(ties(), max_size=8))
def test_two_known_gpus_are_never_merged(batch: list[Observation]) -> None:
    """Two addresses, or two UUIDs, on one host are two GPUs; only names of different kinds meet."""
    only = {o.subject.host for o in batch} - {""}
    adopt = next(iter(only)) if len(only) == 1 else ""
    came_from: dict[Subject, set[str]] = {}
    for before, after in zip(batch, originals(batch), strict=True):
        assert after.subject.host == (before.subject.host or adopt)
        came_from.setdefault(after.subject, set()).add(before.subject.id)
    for subject, ids in came_from.items():
        assert len({i for i in ids if is_pci(i)}) <= 1, subject
        assert len({i for i in ids if i.startswith("GPU-")}) <= 1, subject


@given(st.lists(ties(), max_size=8))
def test_an_address_is_never_renamed(batch: list[Observation]) -> None:
    for before, after in zip(batch, originals(batch), strict=True):
        if is_pci(before.subject.id):
            assert after.subject.id == before.subject.id
