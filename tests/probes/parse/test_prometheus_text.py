from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from probes.base import lines_of
from probes.parse._prometheus import exposition
from tests.cases import each

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", fullmatch=True)
LABELS = st.dictionaries(
    st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True),
    st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20),
    max_size=4,
)


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@given(NAMES, LABELS, st.floats(allow_nan=False), st.none() | st.integers(0, 2 * 10**12))
def test_what_was_written_is_read(name: str, labels: dict[str, str], value: float, stamp: int | None) -> None:
    inner = ",".join(f'{k}="{escaped(v)}"' for k, v in labels.items())
    line = f"{name}{{{inner}}} {value!r}" + (f" {stamp}" if stamp is not None else "")
    page = exposition(lines_of(line.replace("\n", "\\n")))
    if any("\x0b" <= c <= "\x1f" or c in "\x85\u2028\u2029" for v in labels.values() for c in v):
        return  # other line ends are not in the format
    assert not page.malformed
    sample = page.samples[0]
    assert (sample.name, dict(sample.labels), float(sample.value)) == (name, labels, value)
    assert sample.at == (None if stamp is None else stamp * 10**6)


@each(
    ("text", "value"),
    [("a 1", 1), ("a{} 1.5", 1.5), ("a +Inf", math.inf), ("a -Inf", -math.inf), ("a 9223372036854775794", 9223372036854775794),
     ('a{b="c",} 2e3', 2000.0), ('a{ b = "c" } .5', 0.5), ('a{b="x} y"} 7', 7), ("a\t3", 3)],
)  # fmt: skip
def test_values(text: str, value: float) -> None:
    page = exposition(lines_of(text))
    assert [s.value for s in page.samples] == [value]
    assert isinstance(page.samples[0].value, type(value))


def test_not_a_number_is_a_value_of_its_own() -> None:
    assert math.isnan(exposition(lines_of("a NaN")).samples[0].value)


@each(
    "text",
    ["a", "a{", 'a{b="c"', 'a{b="c} 1', 'a{b="\\x"} 1', "a{b=c} 1", 'a{b="1",b="2"} 1', "1a 1", "a one", "a 1 2 3", "a 1 soon",
     'a{b="c"}', "a1", "a 0x10", "a 1_000", 'a{,} 1', 'a{"b"="c"} 1'],
)  # fmt: skip
def test_lines_that_are_no_samples(text: str) -> None:
    page = exposition(lines_of("good 1\n" + text + "\n"))
    assert [s.name for s in page.samples] == ["good"]
    assert [line.number for line in page.malformed] == [2]


def test_comments_times_and_exemplars() -> None:
    page = exposition(
        lines_of('# HELP a What a is.\n# TYPE a counter\n# else\na 1 # {id="x"} 0.5\na 2 1.5 # {} 1\n# EOF\n')
    )
    assert (page.helps, page.types) == ({"a": "What a is."}, {"a": "counter"})
    assert [(s.value, s.at) for s in page.samples] == [(1, None), (2, 1_500_000_000)]  # OpenMetrics: seconds
    assert not page.malformed


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    lines = lines_of(text)
    page = exposition(lines)
    assert len(page.samples) + len(page.malformed) <= len(lines)
