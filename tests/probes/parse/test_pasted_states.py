"""What people paste of a host: ``systemctl --failed`` and ``/proc/mdstat``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.parse import mdstat, systemctl_list
from probes.parse._systemctl import mount_point, role_of
from tests.cases import each
from tests.probes.parse.smi_case import CONTEXT, capture, check_cut

FORMS = {
    "drives/mdstat.txt": mdstat.FORMAT,
    "other/systemctl-failed.txt": systemctl_list.FORMAT,
}


def values(name: str, fact: str) -> dict[str, object]:
    return {o.subject.id: o.value for o in FORMS[name].parse(capture(name), CONTEXT) if o.fact == fact}


def test_the_array_that_lacks_a_member() -> None:
    assert values("drives/mdstat.txt", "raid.members.missing") == {"md127": 0, "md3": 1}
    assert values("drives/mdstat.txt", "raid.action") == {"md3": "recover"}


def test_services_that_failed() -> None:
    assert values("other/systemctl-failed.txt", "service.state") == {
        "home-data.mount": "failed",
        "nvidia-dcgm.service": "failed",
        "slurmd.service": "failed",
    }


@each(
    ("unit", "role", "point"),
    [
        ("data-image\\x2dnet.mount", "mount", "/data/image-net"), ("data.automount", "mount", "/data"), ("-.mount", "", "/"),
        ("boot-efi.mount", "", "/boot/efi"), ("docker.socket", "", ""), ("docker.service", "docker", ""),
    ],
)  # fmt: skip
def test_what_a_unit_does(unit: str, role: str, point: str) -> None:
    assert (role_of(unit), mount_point(unit)) == (role, point)


NONE, HINT = "0 loaded units listed.", "0 loaded units listed. Pass --all to see loaded but inactive units, too."
HEADING = "  UNIT LOAD ACTIVE SUB DESCRIPTION"


@each(
    ("text", "answered"),
    [
        (f"{HEADING}\n{NONE}", True), (NONE, True), (f"ops@n7:~$ systemctl --failed\n{HEADING}\n{HINT}", True),
        (f"{HEADING}\n{HINT}", False), (f"# systemctl list-units 'nvidia*'\n{NONE}", False), (HEADING, False),
        (f"{HEADING}\n  dev-sda.device loaded failed failed /dev/sda\n\n1 loaded units listed.", False),
    ],
)  # fmt: skip
def test_no_unit_failed(text: str, answered: bool) -> None:
    got = systemctl_list.FORMAT.parse(text, CONTEXT)
    assert [(o.fact, o.status) for o in got] == [("service.state", Status.NONE_SEEN)] * answered


@each("name", sorted(FORMS))
def test_recognition(name: str) -> None:
    assert FORMS[name].sniff(capture(name)) == 94
    for other in (
        "UNIT LOAD\n",
        "md0 : active raid1\n",
        "sshd.service - OpenSSH\n",
        "Active: failed (Result: x)\n",
        "",
    ):
        assert FORMS[name].sniff(other) == 0


@given(st.sampled_from(sorted(FORMS)), st.integers(0, 700))
def test_cut_anywhere(name: str, at: int) -> None:
    check_cut(FORMS[name], name, at)
