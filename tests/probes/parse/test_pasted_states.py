"""What people paste of a host: ``systemctl --failed``, ``/proc/mdstat``, ``mdadm --detail``, ``lfs df``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.base import Context, DocumentFormat, best
from probes.parse import lfs, mdadm_detail, mdstat, systemctl_list
from probes.parse._systemctl import mount_point, role_of
from probes.registry import document_formats
from tests.cases import each
from tests.probes.parse.smi_case import CONTEXT, capture, check_cut
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

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


DETAIL = (
    "/dev/md0:\n           Version : 1.2\n        Raid Level : raid1\n      Raid Devices : 2\n     Total Devices : 2\n"
    "             State : clean, degraded, recovering \n    Active Devices : 1\n\n    Number   Major   Minor   RaidDevice State\n"
    "       0     259        2        0      active sync   /dev/nvme0n1p2\n       -       0        0        1      removed\n"
)
TARGETS = (
    "UUID                       bytes        Used   Available Use% Mounted on\n"
    "scratch-MDT0000_UUID        2.9T      812.2G        2.1T  28% /scratch[MDT:0]\n"
    "scratch-OST0000_UUID      412.1T      412.0T       80.0G 100% /scratch[OST:0]\n"
    "OST0001             : inactive device\nOST0002             : Resource temporarily unavailable\n\n"
    "filesystem_summary:       824.2T      622.8T      201.2T  76% /scratch\n"
)


@each(
    "form, text, expected",
    [
        (mdadm_detail.FORMAT, DETAIL, {("raid.members.missing", "md0"): 1, ("raid.action", "md0"): "recover", ("raid.state", "md0"): "active",
                                       ("raid.level", "md0"): "raid1"}),
        (mdadm_detail.FORMAT, DETAIL.replace(", degraded, recovering", "").replace("Active Devices : 1", "Active Devices : 2"),
         {("raid.members.missing", "md0"): 0, ("raid.state", "md0"): "active", ("raid.level", "md0"): "raid1"}),
        (lfs.FORMAT, TARGETS, {
            ("fs.target.size", "scratch-OST0000"): round(412.1 * 2**20), ("fs.target.available", "scratch-OST0000"): 80 * 1024,
            ("fs.target.used.share", "scratch-OST0000"): 100.0, ("fs.target.active", "scratch-OST0001"): False,
            ("fs.target.state", "scratch-OST0002"): "disconnected"}),
        (lfs.FORMAT, "lfs-OST0000-osc-ffff9a1c81234000 active.\nlfs-MDT0000-mdc-ffff9a1c81234000 active.\n",
         {("fs.target.state", "lfs-OST0000"): "connected", ("fs.target.state", "lfs-MDT0000"): "connected"}),
        (lfs.FORMAT, "error: check: 'lfs-OST0001-osc-ffff9a1c81234000': Resource temporarily unavailable (11)\n",
         {("fs.target.state", "lfs-OST0001"): "disconnected"}),
    ],
)  # fmt: skip
def test_arrays_and_targets_as_their_tools_show_them(
    form: DocumentFormat, text: str, expected: dict[tuple[str, str], object]
) -> None:
    assert best(document_formats(), text) is form
    found = form.parse(text, Context("x", "n1"))
    assert {(o.fact, o.subject.id): o.value for o in found} == expected
    assert_in_vocabulary(found, form)
