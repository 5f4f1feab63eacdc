"""What there is to say about the way to another machine, beside what that machine told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knowledge.language import Text
from knowledge.observation import Status
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.machine import Look
    from probes.remote.remote_host import RemoteHost

# Seconds between two clocks that are worth a line. NTP keeps a machine within milliseconds (RFC 5905), so a second is a clock
# that nobody keeps; below it the order of what two machines logged is seldom asked about.
CLOCKS = 1.0


def remarks(far: RemoteHost, look: Look) -> list[Text]:
    """That the connection broke and how far the look was by then, that its clock goes wrong, and who we were there."""
    said = []
    name = excerpt(far.name, 100)
    if look.broken:
        done, total = finished(look)
        said.append(Text(
            f"{name}: the connection broke after {done} of {total} probes ({excerpt(look.broken, 200)}): what follows is of what came until then",
            f"{name}：连接在完成 {total} 个探针中的 {done} 个之后中断（{excerpt(look.ended.in_('zh'), 200)}）：以下内容仅基于此前收到的数据",
        ))  # fmt: skip
    said += _clock(far, name)
    said += _rights(far, look, name)
    return said


def finished(look: Look) -> tuple[int, int]:
    """How many of the probes had told all when the connection broke, and how many there are."""
    cut = sum(any(look.broken in o.detail for o in r.observations) or look.broken in r.detail for r in look.results)
    return len(look.results) - cut if look.broken else len(look.results), len(look.results)


def _clock(far: RemoteHost, name: str) -> list[Text]:
    """Times of another machine are of its own clock."""
    offset, error = far.clock_offset.ns / 1e9, far.clock_offset.error / 1e9
    if abs(offset) <= CLOCKS + error:
        return []
    seconds = f"{abs(offset):.0f} s" if abs(offset) >= 10 else f"{abs(offset):.1f} s"
    way = Text("ahead of", "快") if offset > 0 else Text("behind", "慢")
    return [Text(f"{name}: its clock is {seconds} {way.en} this machine's: times are its own",
                 f"{name}：其时钟比本机{way.zh} {seconds}：所示时间为其自身时间")]  # fmt: skip


def _rights(far: RemoteHost, look: Look, name: str) -> list[Text]:
    """Who we are there, where that kept something from us."""
    who = far.whoami
    said = []
    denied = any(o.status is Status.DENIED for r in look.results for o in r.observations)
    if denied and not who.root:
        user = excerpt(who.user, 60) or "?"
        said.append(Text(
            f"{name}: looked at as {user}, who may not see everything; sudo = true in the inventory uses `sudo -n` there",
            f"{name}：以 {user} 身份查看，并非所有内容可见；在清单中设置 sudo = true 则在该机使用 `sudo -n`",
        ))  # fmt: skip
    if who.container:
        said.append(
            Text(f"{name}: what is seen is seen from within a container there", f"{name}：所见内容为从该机容器内部所见")
        )
    return said
