"""What can be found: one document for each thing that `gpudiag explain` has a page about, and each symptom.

Read when the index is built, never when it is asked: from the plain data of the shards, not through the pages,
which would load the engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from knowledge.compiled import shard, shard_files
from knowledge.language import Text

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLACES = re.compile(r"\{[^}]*\}|%[0-9]*[a-z]")


class Doc(NamedTuple):
    """One topic with the texts by which it is found, in both languages."""

    id: str  # "xid 79"
    title: Text
    names: tuple[str, ...] = ()  # codes, symbols, spellings: each alone names the topic
    said: tuple[str, ...] = ()  # phrases that people use for it
    body: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """``xid`` of ``xid 79``."""
        return self.id.partition(" ")[0]


def documents() -> list[Doc]:
    """Every document, in an order that does not change: by kind, then as the data has them."""
    return [doc for kind in sorted(_KINDS) for doc in _KINDS[kind]()]


def _both(*texts: Any) -> tuple[str, ...]:
    """English and Chinese of plain ``{en, zh}`` data."""
    return tuple(s for t in map(Text.of, texts) for s in (t.en, t.zh) if s)


def _spread(name: str) -> str:
    """``cudaErrorNoDevice`` -> ``cuda Error No Device``: the words within a symbol."""
    return _CAMEL.sub(" ", name).replace("_", " ").replace("-", " ").replace(".", " ")


def _symbols(names: Iterable[str | None]) -> tuple[str, ...]:
    """Each name as it is written, and as words."""
    return tuple(dict.fromkeys(s for name in names if name for s in (name, _spread(name))))


def _optional(name: str) -> list[dict[str, Any]]:
    return shard(name) if shard_files(name) else []


def _xid() -> Iterator[Doc]:
    for e in shard("xid"):
        code = e["code"]
        body = _both(e["description"], *e.get("workflow", ()), *e.get("confirm", ()))
        names = (f"xid {code}", str(code), *_symbols((e["mnemonic"], e.get("driver_name"))))
        yield Doc(f"xid {code}", Text.of(e["title"]), names, body=(*body, *e.get("causes", ())))


def _sxid() -> Iterator[Doc]:
    for e in shard("sxid"):
        code = e["code"]
        names = (f"sxid {code}", str(code), *_symbols((e["mnemonic"], e.get("guide_name"))))
        yield Doc(f"sxid {code}", Text.of(e["title"]), names, body=(_PLACES.sub(" ", e.get("text") or ""),))


def _cuda() -> Iterator[Doc]:
    for e in shard("cuda"):
        code = str(e["code"])
        numbers = (code, f"cuda {code}", f"cuda error {code}") if e["api"].startswith("cuda") else ()
        names = (*_symbols((e["name"], e.get("driver_name"))), *numbers)
        body = _both(e["cause"], e.get("check"))
        yield Doc(f"cuda {e['name']}", Text.of(e["title"]), names, tuple(e.get("messages", ())), body)


def _signatures(family: str) -> Callable[[], Iterator[Doc]]:
    def read() -> Iterator[Doc]:
        for e in shard(family):
            names = _symbols((e.get("symbol"), e["id"]))
            body = (*_both(e["cause"], e["check"]), *e.get("environment", ()), e["sample"])
            yield Doc(f"{family} {e['id']}", Text.of(e["title"]), names, body=body)

    return read


def _clock() -> Iterator[Doc]:
    for e in shard("clock_events"):
        keys = ("id", "nvml", "nvml_old", "smi", "smi_old", "xml", "xml_old")
        names = (e["label"], *_symbols(e.get(k) for k in keys))
        body = _both(e["meaning"], e.get("fault_when"), e.get("check"))
        yield Doc(f"clock {e['id']}", Text(e["label"], e["label"]), names, body=body)


def _status() -> Iterator[Doc]:
    for e in shard("nv_status"):
        if e.get("title"):
            names = (e["name"], f"status 0x{e['code']:x}", f"0x{e['code']:08x}")
            yield Doc(f"status {e['name']}", Text.of(e["title"]), names)


def _dcgm() -> Iterator[Doc]:
    for e in (*shard("dcgm_fields"), *shard("dcgm_errors")):
        name = e["name"].replace("{n}", "0")  # one entry for a field of each link: its page is that of the first
        aliases = [a["name"].replace("{n}", "0") for a in e.get("aliases", ())]
        number = e.get("id")
        numbers = (f"dcgm {number}", f"dcgm field {number}", f"field {number}") if number is not None else ()
        names = (*_symbols((name, *aliases)), *numbers)
        meaning = Text.of(e["meaning"])
        yield Doc(f"dcgm {name}", meaning, names, body=_both(e["meaning"], e.get("traps")))


def _gpu() -> Iterator[Doc]:
    # The page answers these questions; the entry itself holds only figures.
    about = (
        "GPU model memory size bandwidth peak TFLOPS power TDP NVLink specification",
        "型号 规格 显存大小 带宽 峰值算力 功耗",
    )
    for e in shard("gpus"):
        names = (e["title"], e["id"].replace("-", " "))
        yield Doc(f"gpu {e['id']}", Text(e["title"], e["title"]), names, body=(*about, e["family"], e["architecture"]))


def _action() -> Iterator[Doc]:
    for e in shard("buckets"):
        yield Doc(
            f"action {e['name']}", Text.of(e["text"]), _symbols((e["name"],)), body=_both(e["text"], e.get("until"))
        )


def _term() -> Iterator[Doc]:
    for e in shard("glossary"):
        names = (*_symbols((e["id"],)), *e.get("also", ()))
        yield Doc(f"term {e['id']}", Text.of(e["term"]), names, body=_both(e["text"]))


def _fact() -> Iterator[Doc]:
    for e in shard("facts"):
        yield Doc(f"fact {e['name']}", Text.of(e["meaning"]), _symbols((e["name"],)), body=_both(e["meaning"]))


def _rule() -> Iterator[Doc]:
    from rules.loader import shipped
    from rules.model import bare_title

    for name, (file, e) in shipped().items():
        area = file.rsplit("/", 2)[-2] if "/" in file else ""
        codes = e.get("xid") or ()
        codes = codes if isinstance(codes, list | tuple) else (codes,)
        body = (*_both(e["why"], e["false_positives"]), area, *e.get("symptoms", ()), *(f"xid {c}" for c in codes))
        yield Doc(f"rule {name}", bare_title(Text.of(e["title"]), name), (name, _spread(name)), body=body)


def _runbook() -> Iterator[Doc]:
    from knowledge.runbook import all_runbooks

    for b in all_runbooks():
        names = (b.id, _spread(b.id), f"{_spread(b.id)} runbook")
        steps = (s for step in b.steps for s in (step.title.en, step.title.zh))
        body = (b.summary.en, b.summary.zh, b.body.en, b.body.zh, *steps, *b.applies)
        yield Doc(f"runbook {b.id}", b.title, names, body=body)


def _symptom() -> Iterator[Doc]:
    titles = {h["id"]: h["title"] for h in _optional("hypotheses")}
    for e in _optional("symptoms"):
        phrases = tuple(s for lang in ("en", "zh") for s in e["said"][lang])
        body = _both(e["text"], *(titles.get(name) for name in e["hypotheses"]))
        yield Doc(f"symptom {e['id']}", Text.of(e["title"]), _symbols((e["id"],)), phrases, body)


def _howto() -> Iterator[Doc]:
    for e in _optional("howto"):
        steps = [s for step in e["steps"] for s in (*_both(step["do"], step.get("note")), step.get("command") or "")]
        asks = tuple(s for lang in ("en", "zh") for s in e["ask"][lang])
        yield Doc(f"howto {e['id']}", Text.of(e["title"]), _symbols((e["id"],)), asks, (*steps, *_both(e.get("about"))))


def _range() -> Iterator[Doc]:
    for e in _optional("ranges"):
        names = (*_symbols((e["id"],)), *(a for lang in ("en", "zh") for a in e["aliases"][lang]))
        bands = _both(*(b["text"] for b in e.get("bands", ())))
        said = (f"good {Text.of(e['title']).en}", f"{Text.of(e['title']).zh}多少正常")
        yield Doc(f"range {e['id']}", Text.of(e["title"]), names, said, (*_both(e["about"], e.get("depends")), *bands))


def _advice() -> Iterator[Doc]:
    for e in _optional("advice"):
        yield Doc(f"advice {e['id']}", Text.of(e["title"]), _symbols((e["id"],)))


_KINDS: Mapping[str, Callable[[], Iterator[Doc]]] = {
    "xid": _xid, "sxid": _sxid, "cuda": _cuda, "nccl": _signatures("nccl"), "pytorch": _signatures("pytorch"),
    "clock": _clock, "status": _status, "dcgm": _dcgm, "gpu": _gpu, "action": _action, "term": _term, "fact": _fact, "rule": _rule,
    "runbook": _runbook, "symptom": _symptom, "howto": _howto, "range": _range, "advice": _advice,
}  # fmt: skip


def spellings() -> list[tuple[str, ...]]:
    """Groups of words that mean the same: the glossary's other spellings, and everyday ones (`data/synonyms.yaml`)."""
    groups = []
    for e in shard("glossary"):
        term = Text.of(e["term"])
        groups.append(tuple(dict.fromkeys(s for s in (term.en, term.zh, *e.get("also", ())) if s)))
    groups += [(*e["en"], *e["zh"]) for e in _optional("synonyms")]
    return [g for g in groups if len(g) > 1]
