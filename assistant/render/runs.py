"""What logs of programs tell of their work where nothing is wrong with it, in a sentence: what was read, and how it went."""

from __future__ import annotations

from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.observation import Status, Subject
from rules.factbase import FactBase

TOLD = 3  # sentences: what more there is stands in the page


def at_work(facts: FactBase) -> Text | None:
    """``Training came to step 51200, at 4.1 s a step.`` How many lines told so is not said: of a long log a sample is read."""
    said = [
        say(facts, subject)
        for fact, say in (("training.lines", _training), ("serving.log.lines", _serving))
        for subject in sorted({k.inner.subject for k in facts.observations if k.fact == fact}, key=str)
    ][:TOLD]
    return Text(" ".join(t.en for t in said), "".join(t.zh for t in said)) if said else None


def _training(facts: FactBase, log: Subject) -> Text:
    last, pace = (_value(facts, f"training.{name}", log) for name in ("step.last", "pace"))
    how = (f", at {pace} a step", f"，每步 {pace}") if str(pace).endswith(" s") else (f", at {pace}", f"，速度 {pace}")
    how = how if pace is not None else ("; its lines tell no times", "；其中没有时间")
    to = ("", "读到训练步") if last is None else (f" came to step {last}", f"已到第 {last} 步")
    return Text(f"Training{to[0] or ' went on'}{how[0]}.", f"训练：{to[1]}{how[1]}。")


def _serving(facts: FactBase, server: Subject) -> Text:
    lines, waiting, cache = (
        _value(facts, f"serving.log.{name}", server) for name in ("lines", "waiting.most", "kv_cache.most")
    )
    wait = (f", at most {waiting} waiting", f"，最多 {waiting} 个请求排队") if waiting is not None else ("", "")
    full = (
        (f", KV cache at most {cache:g} % full", f"，KV 缓存最高 {cache:g}%") if isinstance(cache, float) else ("", "")
    )
    called, _, rest = server.id.partition(" ")
    label = vocabulary()["serving.engine"].labels.get(called)
    name = f"{label.en if label else called} {rest}".rstrip()
    return Text(
        f"{name}: {lines} lines of statistics{wait[0]}{full[0]}.",
        f"{name}：读取 {lines} 行统计{wait[1]}{full[1]}。",
    )


def _value(facts: FactBase, name: str, subject: Subject) -> object:
    o = facts.current(name, subject)
    return o.value if o is not None and o.status is Status.OK else None
