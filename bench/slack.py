"""How soon Slack has its acknowledgement while many people ask at once: ours, and a bare Bolt app that does nothing but acknowledge.

    python bench/slack.py [--users 50] [--rounds 20] [--pause 1.0]

Both run as processes of their own over Socket Mode against `tests.slack_lab`, one after the other, in turns. In each round all
users ask within the same moment: commands, mentions, pasted logs and pressed buttons, a quarter each. Ours answers them
meanwhile (looks into knowledge, diagnoses the logs, writes what it heard to disk); the lab takes its messages in the same
process that measures, on the same cores. Seconds count from the lab's sending to the acknowledgement.

Wanted: 99 of 100 within 500 ms with 50 users (Slack gives up after 3 s).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests import slack_payloads as sent  # noqa: E402
from tests.slack_lab import NotAcknowledged, Slack  # noqa: E402

WANTED = 0.5  # s, of the 99th percentile
TURNS = 2  # how often each of the two has its turn
POLICY = """
channels = ["C1", "direct"]
[roles.all]
groups = ["S1"]
[grants.looks]
roles = ["all"]
run = ["*"]
nodes = ["gpu-12"]
cost = "cheap"
"""
LOG = "[ 1042.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus."
ASKED = ("explain xid 79", "help", "what is nvlink?", "explain xid 48")


def bare(base: str, token: str, app_token: str) -> None:
    """The other one: every listener acknowledges and returns."""
    import re

    from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
    from slack_bolt.async_app import AsyncApp
    from slack_sdk.web.async_client import AsyncWebClient

    async def run() -> None:
        app = AsyncApp(client=AsyncWebClient(token=token, base_url=base))

        async def only_ack(ack):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - Bolt looks at the names
            await ack()

        anything = re.compile(".*")
        for listen in (app.command(anything), app.event("app_mention"), app.event("message"), app.action(anything)):
            listen(only_ack)
        web = AsyncWebClient(token=app_token, base_url=base)
        await AsyncSocketModeHandler(app, app_token, web_client=web).start_async()

    asyncio.run(run())


@contextmanager
def listening(kind: str, slack: Slack, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One of the two, connected."""
    env = {
        **os.environ, "GPUDIAG_SLACK_API": slack.base_url, "GPUDIAG_SLACK_BOT_TOKEN": slack.bot_token,
        "GPUDIAG_SLACK_APP_TOKEN": slack.app_token, "GPUDIAG_STATE_DIR": str(folder / "state"),
        "GPUDIAG_POLICY_FILE": str(folder / "policy.toml"), "GPUDIAG_INVENTORY": str(folder / "inventory.toml"),
        "GPUDIAG_HISTORY_URL": f"sqlite:///{folder}/history.db",
    }  # fmt: skip
    (folder / "policy.toml").write_text(POLICY)
    (folder / "inventory.toml").write_text("")
    ours = [sys.executable, "-m", "assistant", "slack"]
    other = [sys.executable, __file__, "--bare", slack.base_url, slack.bot_token, slack.app_token]
    with Path(folder, f"{kind}.log").open("wb") as log:
        child = subprocess.Popen(ours if kind == "ours" else other, env=env, cwd=ROOT, stdout=log, stderr=log)
        try:
            slack.wait(lambda: slack.connected or child.poll() is not None, 60)
            if child.poll() is not None:
                sys.exit(Path(folder, f"{kind}.log").read_text())
            yield child
        finally:
            child.terminate()
            child.wait(30)
            slack.wait(lambda: not slack.connected, 30)


def payload(n: int, user: str) -> tuple[str, sent.Payload]:
    """What one user does: a command, a mention, a pasted log, a pressed button."""
    match n % 4:
        case 0:
            return "slash_commands", sent.slash_command("/gpudiag", ASKED[n // 4 % len(ASKED)], user=user)
        case 1:
            return "events_api", sent.app_mention(ASKED[n // 4 % len(ASKED)], user=user)
        case 2:
            return "events_api", sent.app_mention(f"what is wrong?\n```{LOG}\n{LOG}```", user=user)
        case _:
            return "interactive", sent.block_actions("gpudiag.why", "nobody-issued-this", user=user)


async def asked(slack: Slack, users: int, rounds: int, pause: float) -> tuple[list[float], int]:
    """Seconds of each acknowledgement, and how many never came."""
    took: list[float] = []
    lost = 0
    for number in range(rounds):
        sends = [slack.envelope(*payload(n + number, f"U{n}")) for n in range(users)]
        for one in await asyncio.gather(*sends, return_exceptions=True):
            if isinstance(one, NotAcknowledged):
                lost += 1
            elif isinstance(one, BaseException):
                raise one
            else:
                took.append(one.seconds)
        await asyncio.sleep(pause)
    return took, lost


def lab(users: int) -> Slack:
    slack = Slack()
    slack.add_channel("C1")
    for n in range(users):
        slack.add_user(f"U{n}", locale="zh-CN" if n % 5 == 0 else "en-US")
    slack.add_group("S1", [f"U{n}" for n in range(users)])
    return slack


def cpu(pid: int) -> float:
    """Seconds of processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def at(took: list[float], share: float) -> float:
    return sorted(took)[min(len(took) - 1, int(len(took) * share))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=20, help="of each turn; each of the two has two turns")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two rounds")
    parser.add_argument("--bare", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.bare:
        bare(*args.bare)
        return
    took: dict[str, list[float]] = {"ours": [], "bare": []}
    lost, spent, said = {"ours": 0, "bare": 0}, {"ours": 0.0, "bare": 0.0}, 0
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(TURNS):
            for kind in ("bare", "ours"):
                home = Path(folder, f"{kind}{turn}")
                home.mkdir()
                with lab(args.users) as slack, listening(kind, slack, home) as child:
                    slack.send_envelope(*payload(0, "U0"))  # what is loaded at the first question
                    time.sleep(2.0)
                    before = cpu(child.pid)
                    seconds, missing = asyncio.run(asked(slack, args.users, args.rounds, args.pause))
                    spent[kind] += cpu(child.pid) - before
                    took[kind] += seconds
                    lost[kind] += missing
                    said += len(slack.messages) if kind == "ours" else 0
    print(f"{args.users} users at once, {TURNS} x {args.rounds} rounds, {os.cpu_count()} cores")
    for kind, name in (("bare", "Bolt, acknowledging only"), ("ours", "gpudiag slack")):
        t = [s * 1000 for s in took[kind]]
        print(f"{name:26} p50 {statistics.median(t):6.1f} ms   p99 {at(t, 0.99):6.1f} ms   longest {max(t):6.1f} ms   "
              f"lost {lost[kind]}   {spent[kind]:.1f} s of processor")  # fmt: skip
    ours, other = at(took["ours"], 0.99), at(took["bare"], 0.99)
    print(
        f"p99 {ours / other:.1f} times Bolt's own; wanted: at most {WANTED * 1000:.0f} ms. {said} messages were said meanwhile."
    )


if __name__ == "__main__":
    main()
