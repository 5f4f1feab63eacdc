"""``dcgmi diag``: results of DCGM's diagnostic, as JSON (``-j``, DCGM 1 to 4) or as its table.

Tests that were skipped or did not run are told as such; a diagnostic in which nothing ran has
no result of pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from knowledge.observation import Event, Observation, Scalar, Status, gpu
from knowledge.record import dataclass
from knowledge.text import clean
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._dcgmi import ERROR, between, documents, rows
from probes.parse._smi_emit import Emitter
from probes.parse._smi_values import Reading, absent, text_value

NAME, REVISION = "dcgmi-diag", 3
_TITLES = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_TABLE = re.compile(r"\|\s*Diagnostic\s{1,60}\|\s*Result\s{1,80}\|")
# |-----  Metadata  ----------+--------------------|        +-----  Integration  -------+--------------------+
_SECTION = re.compile(r"[|+]-{2,10}\s{1,4}(.{1,40}?)\s{1,4}-{1,40}\+-{5,120}[|+]")
# Pass - All | Fail - GPU: 0, 3 | Skip - GPUs: 1 | GPU2: Fail
_CELL = re.compile(r"(pass|fail|warn|warning|skip|skipped|not run)(?:\s{1,4}-\s{1,4}(.{1,200}))?", re.IGNORECASE)
_PER_GPU = re.compile(r"GPU\s?(\d{1,3}): (pass|fail|warn|warning|skip|skipped|not run)", re.IGNORECASE)
_STATUS = {"pass": "pass", "passed": "pass", "fail": "fail", "failed": "fail", "warn": "warn", "warning": "warn",
           "skip": "skip", "skipped": "skip", "not run": "not_run", "not_run": "not_run", "notrun": "not_run"}  # fmt: skip
_WORST = ("fail", "warn", "pass")
_METADATA = {"dcgm version": "node.dcgm.version", "driver version detected": "node.driver.version"}
PROVIDES = (
    "dcgm_diag", "dcgm_diag_node", "node.dcgm.diag.result", "node.dcgm.diag.tests_failed",
    "node.dcgm.diag.tests_warned", "node.dcgm.diag.tests_skipped", "node.dcgm.diag.tests_passed",
    "node.dcgm.version", "node.driver.version", "gpu.serial",
)  # fmt: skip


@dataclass(slots=True)
class _Tally:
    """Worst status of each test."""

    tests: dict[str, list[str]] = field(default_factory=dict)

    def note(self, test: str, status: str) -> None:
        self.tests.setdefault(test, []).append(status)

    def emit(self, emit: Emitter) -> None:
        worst = {name: next((w for w in _WORST if w in seen), "skip") for name, seen in self.tests.items()}
        if not worst:
            return
        counts = {word: sum(w == word for w in worst.values()) for word in ("fail", "warn", "pass", "skip")}
        result = next((word for word in _WORST if counts[word]), "not_run")
        shown = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
        emit.add("node.dcgm.diag.result", emit.node, result, None, shown)
        for word, name in (("fail", "failed"), ("warn", "warned"), ("pass", "passed"), ("skip", "skipped")):
            emit.add(f"node.dcgm.diag.tests_{name}", emit.node, counts[word], None, shown)


def sniff(head: str) -> int:
    """100 on the JSON title or the table's headings."""
    if any(f'"{title}"' in head for title in _TITLES) or _TABLE.search(head):
        return 100
    return 60 if '"test_categories"' in head else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one diagnostic."""
    emit, tally = Emitter(context, NAME, REVISION), _Tally()
    for document in documents(text):
        _document(emit, document, tally)
    if not tally.tests and _TABLE.search(text):
        _table(emit, lines_of(text), tally)
    tally.emit(emit)
    if not tally.tests and not any(o.fact == "node.dcgm.diag.result" for o in emit.out):
        _without(emit, text)
    return emit.finish()


def _without(emit: Emitter, text: str) -> None:
    found = ERROR.search(clean(text))
    if found is not None:
        reading = Reading(None, Status.FAILED, found[0].strip()[:300])
    elif any(f'"{title}"' in text for title in _TITLES):
        reading = Reading(None, Status.FAILED, "the JSON document is cut or holds no test results")
    else:
        return
    emit.add("node.dcgm.diag.result", emit.node, reading, None, reading.detail)


def _document(emit: Emitter, document: Mapping[str, Any], tally: _Tally) -> None:
    body = next((document[t] for t in _TITLES if isinstance(document.get(t), dict)), document)
    failure = body.get("runtime_error") or document.get("runtime_error")
    if failure:
        reading = Reading(None, Status.FAILED, clean(str(failure))[:300])
        emit.add("node.dcgm.diag.result", emit.node, reading, None, str(failure))
    _metadata(emit, document, body)
    for category in _dicts(body.get("test_categories")):
        for test in _dicts(category.get("tests")):
            _test(emit, test, tally)


def _metadata(emit: Emitter, document: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    meta = document.get("metadata")
    sources = [s for s in (meta, body, document) if isinstance(s, dict)]
    for name, fact in (("version", "node.dcgm.version"), ("Driver Version Detected", "node.driver.version")):
        value = next((s[name] for s in sources if isinstance(s.get(name), str)), None)
        if value:
            emit.add(fact, emit.node, text_value(value), None, f"{name}: {value}")
    for group in _dicts(document.get("entity_groups")):
        if str(group.get("entity_group")) == "GPU":
            for entity in _dicts(group.get("entities")):
                serial, index = entity.get("serial_num"), entity.get("entity_id")
                if isinstance(serial, str) and serial and isinstance(index, int):
                    subject = gpu(f"index:{index}", emit.host)
                    emit.add("gpu.serial", subject, text_value(serial), None, f"serial_num: {serial}")


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _test(emit: Emitter, test: Mapping[str, Any], tally: _Tally) -> None:
    name = clean(str(test.get("name", ""))).strip() or "unnamed"
    results = _dicts(test.get("results"))
    summary = test.get("test_summary")
    if not results and isinstance(summary, dict):
        results = [summary]
    for result in results:
        printed = clean(str(result.get("status", ""))).strip()
        status = _STATUS.get(printed.lower())
        messages = list(_messages(result))
        quoted = f"{name}: {printed} " + " ".join(str(m["message"]) for m in messages)
        for index in _gpus(result):
            _result(emit, index, name, status, printed, messages, None, quoted)
        if status is not None:
            tally.note(name, status)


def _gpus(result: Mapping[str, Any]) -> list[int | None]:
    """GPU numbers of a result; ``[None]`` when it is about the node."""
    if "entity_id" in result and str(result.get("entity_group", "GPU")) == "GPU":
        value = result["entity_id"]
        return [value] if isinstance(value, int) and not isinstance(value, bool) else [None]
    named = result.get("gpu_ids", result.get("gpu_id"))
    numbers = [int(word) for word in re.findall(r"\d{1,3}", str(named))] if named is not None else []
    return [*numbers] or [None]


def _messages(result: Mapping[str, Any]) -> Iterator[dict[str, Scalar]]:
    """Warnings of a result; without any, its information texts together."""
    warnings = result.get("warnings", result.get("warning"))
    found = False
    for item in warnings if isinstance(warnings, list) else [warnings]:
        if isinstance(item, dict):
            found = True
            yield {
                "message": clean(str(item.get("warning", item.get("message", "")))).strip()[:400],
                **{name: item[name] for name in ("error_id", "error_category", "error_severity")
                   if isinstance(item.get(name), int) and not isinstance(item.get(name), bool)},
            }  # fmt: skip
        elif isinstance(item, str) and item.strip():
            found = True
            number = result.get("error_id")
            extra = {"error_id": number} if isinstance(number, int) and not isinstance(number, bool) else {}
            yield {"message": clean(item).strip()[:400], **extra}
    info = result.get("info")
    texts = info if isinstance(info, list) else [info]
    if not found and (shown := "; ".join(clean(t).strip() for t in texts if isinstance(t, str) and t.strip())):
        yield {"message": shown[:400]}


def _result(
    emit: Emitter, index: int | None, name: str, status: str | None, printed: str,
    messages: Sequence[Mapping[str, Scalar]], line: int | None, quoted: str,
) -> None:  # fmt: skip
    fact = "dcgm_diag" if index is not None else "dcgm_diag_node"
    subject = gpu(f"index:{index}", emit.host) if index is not None else emit.node
    if status is None:
        reading = absent(printed) or Reading(None, Status.FAILED, f"{name}: status {printed[:40]!r} not understood")
        emit.add(fact, subject, reading, line, quoted)
        return
    for message in messages or ({},):
        emit.event(fact, subject, Event(None, {"test": name, "status": status, **message}), line, quoted)


# -- the table ---------------------------------------------------------------------------------


def _table(emit: Emitter, lines: Sequence[Line], tally: _Tally) -> None:
    """Rows of results; rows called Warning, Error or Info, and rows without a name, belong to the row above."""
    current: _Row | None = None
    section = ""
    sections = {line.number: found[1] for line in lines if (found := _SECTION.fullmatch(clean(line.text).strip()))}
    for left, right, line in rows([x for x in lines if x.number not in sections]):
        section = next((sections[n] for n in reversed(sections) if n < line.number), section)
        name, word = left.strip(), right.strip()
        if name.lower() in _METADATA:
            emit.add(_METADATA[name.lower()], emit.node, text_value(word), line.number, line.text)
        elif name == "Diagnostic" or section.lower() == "metadata":
            continue
        elif name.lower().startswith(("warning", "error", "info")) and current is not None:
            current.messages.append(word)
            current.last = line.text
        elif not name:
            if current is not None:
                current.more(word, line.text)
        else:
            _close(emit, current, tally)
            current = _Row(name, word, line)
    _close(emit, current, tally)


@dataclass(slots=True)
class _Row:
    name: str
    word: str
    line: Line
    messages: list[str] = field(default_factory=list)
    each: dict[int, str] = field(default_factory=dict)
    last: str = ""  # the line that its last message has come to
    also: list[str] = field(default_factory=list)  # further results: ``Pass - GPU: 1`` and below it ``Fail - GPU: 0``

    def more(self, word: str, line: str) -> None:
        """A continuation: the status of one GPU, or the rest of a message."""
        if found := _PER_GPU.fullmatch(word):
            self.each[int(found[1])] = found[2]
        elif _CELL.fullmatch(word):
            self.also.append(word)
        elif self.messages:
            self.messages[-1] += f"{between(self.last, line)}{word}"
            self.last = line


def _close(emit: Emitter, row: _Row | None, tally: _Tally) -> None:
    if row is None:
        return
    for word in (row.word, *row.also):
        mine = not row.also or not word.lower().startswith("pass")  # a message is about what did not pass
        _told(emit, row, word, row.messages if mine else (), tally)


def _told(emit: Emitter, row: _Row, word: str, said: Sequence[str], tally: _Tally) -> None:
    found = _CELL.fullmatch(word)
    status = _STATUS.get(found[1].lower()) if found else None
    messages: Iterable[dict[str, Scalar]] = [{"message": m[:400]} for m in said]
    quoted = f"{row.name}: {word} {' '.join(said)}"
    numbers = [int(n) for n in re.findall(r"\d{1,3}", found[2])] if found and found[2] else []
    if row.each:
        for index, printed in row.each.items():
            one = _STATUS.get(printed.lower())
            told = [m for m in messages if one != "pass" and _about(str(m["message"]), index)]
            _result(emit, index, row.name, one, printed, told, row.line.number, quoted)
    else:
        everyone: list[int | None] = [*numbers] or [None]
        for number in everyone:
            _result(emit, number, row.name, status, word, list(messages), row.line.number, quoted)
    if status is not None:
        tally.note(row.name, status)


def _about(message: str, index: int) -> bool:
    """True when a message names this GPU, or no GPU at all."""
    named = {int(n) for n in re.findall(r"GPU\s?(\d{1,3})", message)}
    return not named or index in named


FORMAT = DocumentFormat(NAME, "dcgmi diag", REVISION, PROVIDES, sniff, parse)
