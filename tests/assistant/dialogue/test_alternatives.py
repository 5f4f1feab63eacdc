"""What else could it be: open, ruled out, mistaken for; the differential table of a complaint."""

from __future__ import annotations

import pytest

from assistant.dialogue.alternatives import MOST
from assistant.differential import SHUT
from assistant.intent.query import Intent, Slots
from assistant.render.sheet import Table
from tests.assistant.dialogue.talk import OFF_BUS, ask, log, query, said, texts
from tests.diagnoses import incident


def test_what_is_ruled_out_and_why() -> None:
    reply = ask(incident("off-the-bus"), query(Intent.ALTERNATIVES))
    states = {o["id"]: o["state"] for o in reply.data["others"]}
    ruled_out = next(o for o in reply.data["others"] if o["state"] == "ruled_out")
    assert ruled_out["id"].startswith("gpu-lost-without-xid@")
    assert "79" in ruled_out["why"]
    assert len(states) <= MOST
    assert "Mistaken for it" in texts(reply)


@pytest.mark.slow
def test_the_order() -> None:
    order = ("beside", "possible", "open", "ruled_out")
    for name in ("off-the-bus", "double-bit-error", "left-behind", "power-brake", "driver-hangs", "nfs-hung"):
        found = [order.index(o["state"]) for o in ask(incident(name), query(Intent.ALTERNATIVES)).data["others"]]
        assert found == sorted(found)


def test_what_is_found_beside_it_is_counted_in_the_first_line() -> None:
    reply = ask(incident("left-behind"), query(Intent.ALTERNATIVES, slots=Slots(job=("127.0.0.1:29500",))))
    assert "found beside it" in said(reply)
    still = [o for o in reply.data["others"] if o["state"] != "ruled_out"]
    assert reply.headline.startswith(f"{len(still)} other explanation")


def test_nothing_else() -> None:
    reply = ask(log(OFF_BUS), query(Intent.ALTERNATIVES))
    assert (
        reply.headline
        == "Nothing else speaks up: no other rule is open. GPU 0000:3b:00.0 has fallen off the bus (probable)."
    )
    assert ask(incident("healthy"), query(Intent.ALTERNATIVES)).headline.startswith("Nothing was found")
    zh = ask(log(OFF_BUS), query(Intent.ALTERNATIVES, lang="zh"))
    assert zh.headline == "没有其他可能：“GPU 0000:3b:00.0：从总线上掉线”很可能，没有其他规则悬而未决。"


def test_a_complaint_gets_its_differential_table() -> None:
    base = query(Intent.DIAGNOSE, "training is slow", symptoms=("slow-training",))
    reply = ask(incident("nfs-hung"), query(Intent.ALTERNATIVES), base=base)
    table = reply.parts[0]
    assert isinstance(table, Table)
    assert 1 <= len(table.rows) <= MOST + SHUT
    assert reply.data["rows"][0]["state"] == "for"
    assert "storage is slow" in reply.headline
