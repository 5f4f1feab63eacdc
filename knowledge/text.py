"""Text from logs, tools and people is written by strangers: make it safe to show and to match."""

from __future__ import annotations

from knowledge.lazy import lazy

# CSI (7-bit and 8-bit) and OSC sequences, then other two-character escapes.
_ANSI = lazy("(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\\\)|\x1b[@-Z\\\\-_]")
# Controls except tab and newline; C1 controls; zero-width, bidi, tag and other invisible format characters;
# line separators that only some screens break at; halves of a surrogate pair, which cannot be written anywhere.
_INVISIBLE = lazy(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

# What opens a sentence and is typed as it stands. A word that English has too ("watch", "free", "kill") is a command where an
# option or a path follows it.
_NAMES = (
    "cat chronyc cpupower crictl curl dcb dcgmi devlink df dkms dmesg dmidecode docker du echo env ethtool "
    "export fuser gdb gpudiag grep hostnamectl ibdiagnet iblinkinfo ibnetdiscover ibqueryerrors ibstat "
    "ibstatus iostat iotop ip ipmitool journalctl kubectl lctl lfs ls lsblk lsmod lsof lspci mdadm mlxconfig "
    "mlxfwmanager mlxfwreset mlxlink mmgetstate mmlsdisk mmmount modinfo modprobe mokutil mpirun ncu "
    "nfsiostat nfsstat nproc nstat nsys numactl nvidia nvlink nvme nvsm perf perfquery pidstat pip podman "
    "promtool ps python rdma rm rmmod sacct scontrol sh sinfo slurmd smartctl sminfo squeue srun ss ssh sudo "
    "sysctl systemctl taskset torchfrtrace torchrun trtexec ulimit umount uname uptime vmstat"
)
_COMMANDS = frozenset(_NAMES.split())
_OPENS = lazy(r"([a-z]{1,20})(?=[ ,;]|:(?!:)|$)(?! --?[A-Za-z]| /)")


def opened(text: str) -> str:
    """A sentence with a capital letter; a name, a path or a command that opens it stays as it is."""
    found = _OPENS.match(text)
    return text if found is None or found[1] in _COMMANDS else text[:1].upper() + text[1:]


def clean(text: str) -> str:
    """`text` without ANSI escapes, control characters and invisible formatting."""
    if text.isascii() and text.isprintable():
        return text
    return _INVISIBLE.sub("", _ANSI.sub("", text))


def digits(text: str, most: int = 18) -> int | None:
    """The number that ASCII digits spell. None for anything else, and for more than `most` digits: no counter has so many."""
    return int(text) if len(text) <= most and text.isascii() and text.isdigit() else None


# What may be lost at a cut, in characters and of what there is room for: an item of a list, else a word.
_CUTS = ((", ", 45, 2), (" ", 25, 3))
_NUMBER = "0123456789."  # one that is cut reads as another


def _until_item(head: str) -> str:
    """`head` without its last character, and without what that cuts: an item behind a comma, a word, a number."""
    for mark, most, part in _CUTS:
        at = head.rfind(mark)
        if at > 0 and len(head) - at <= min(most, len(head) // part):
            return head[:at].rstrip(" ,")
    return head[:-1].rstrip(_NUMBER) if head[-1] in _NUMBER else head[:-1]


def _from_item(tail: str) -> str:
    """`tail` without its first character, and without what that cuts."""
    for mark, most, part in _CUTS:
        at = tail.find(mark)
        if 0 <= at < min(most, len(tail) // part):
            return tail[at + len(mark) :].lstrip()
    return tail[1:].lstrip(_NUMBER) if tail[0] in _NUMBER else tail[1:]


def excerpt(text: str, limit: int = 400) -> str:
    """One clean line of at most `limit` characters, cut in the middle when longer, between items or words."""
    line = " ".join(clean(text).split()) if "\n" in text else clean(text).strip()
    if len(line) <= limit:
        return line
    if limit < 20:  # no room for two ends
        return line[:limit]
    half = (limit - 5) // 2
    return f"{_until_item(line[: half + 1])} ... {_from_item(line[-half - 1 :])}"
