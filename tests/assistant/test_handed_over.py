"""Text around a tool's output changes nothing of what it says: prompts, quotes, line numbers, fences, marks, colours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.sources import read
from probes import registry
from probes.around import bare
from probes.base import DocumentFormat
from tests.cases import each

CAPTURES = Path(__file__).parent.parent / "captures"
TEXTS = [
    p
    for p in sorted(CAPTURES.rglob("*"))
    if p.is_file() and p.suffix in (".txt", ".csv") and p.stat().st_size < 200_000
]
Wrap = Callable[[str], str]


def _lines(text: str, each_line: Callable[[int, str], str]) -> str:
    return "\n".join(each_line(i, line) for i, line in enumerate(text.split("\n"), 1))


WRAPS: dict[str, Wrap] = {
    "prompts": lambda t: f"ana@n1:~$ tool --all\n{t}\nana@n1:~$ ",
    "root": lambda t: f"[root@n1 ~]# tool\n{t}\n[root@n1 ~]# exit",
    "mail": lambda t: _lines(t, lambda _, line: f"> {line}" if line.strip() else ">"),
    "fence": lambda t: f"```text\n{t}\n```\n",
    "numbers": lambda t: _lines(t, lambda i, line: f"{i:6}\t{line}"),
    "pager": lambda t: f"{t}\n(END)\n",
    "colours": lambda t: _lines(t, lambda i, line: f"\x1b[1m{line}\x1b[0m" if i % 3 == 0 else line),
}


def told(folder: Path, name: str, text: str) -> list[tuple[str, str, str]]:
    path = folder / name
    path.write_text(text)
    return sorted((str(o.subject), o.fact, f"{o.status} {o.value}") for o in read([], [str(path)]).observations)


@pytest.mark.slow
@each("path", TEXTS, ids=lambda p: p.name)
def test_what_stands_around_a_document_changes_nothing(path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, text = tmp_path_factory.mktemp("around"), path.read_text(errors="replace")
    if bare(text).found["prompt"] > 1:
        return  # a whole session at a shell: its prompts tell what was asked
    if not text.startswith("$ "):
        assert not bare(text).found or "\x1b[" in text, "nothing stands around it, and something was taken"
    found = registry.sniff(text[:65_536])
    if not isinstance(found, DocumentFormat) or found.files is not None:
        return  # a log, or what is read by its path
    plain = told(folder, path.name, text)
    for name, wrap in WRAPS.items():
        assert told(folder, path.name, wrap(text)) == plain, name


@each(
    "line",
    [
        "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).", "Reason=bad [root@2026-11-20T03:14:15]", "0, NVIDIA A100, 3, 41",
        "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |", "GPU0\t X \tNV18",
        "    HW Slowdown                       : Active", "<gpu id=\"00000000:1B:00.0\">", "a < b", "$value = 3",
    ],
)  # fmt: skip
def test_what_tools_print_is_left_alone(line: str) -> None:
    assert bare(f"{line}\n{line}\n").text == f"{line}\n{line}\n"


def test_a_mark_behind_a_value_is_no_part_of_it() -> None:
    assert bare("Pending : Yes   <=== look here\nother : No ← fine\n").text == "Pending : Yes\nother : No\n"


@given(st.text(max_size=300))
def test_the_number_of_lines_stays(text: str) -> None:
    assert bare(text).text.count("\n") == text.count("\n")
