"""What a line of Python calls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.capture.stacks.source_lines import LONGEST, calls
from tests.cases import each


@each(
    ("line", "there", "absent"),
    [
        ("loss.item()", {"loss.item", ".item"}, set()),
        ("x = self.model(a).cpu().tolist()  # y.item()", {"self.model", ".cpu", ".tolist"}, {".item"}),
        ('"x.item()"', set(), {".item"}),
        ("log('x.item()')", {"log"}, {".item"}),
        ('print(f"loss {loss.item():.3f} {{x.cpu()}}")', {"print", ".item"}, {".cpu"}),
        ('print(f"{d["a"].item()}")', {"print", ".item"}, set()),  # Python 3.12
        ("rf'{x.cpu()!r}'", {".cpu"}, set()),
        ("b = f'{a}' '{x.item()}'", set(), {".item"}),
        ('y = x.to("cpu")', {".to", ".to(cpu)"}, set()),
        ('y = x.to(device="cpu", non_blocking=True)', {".to(cpu)"}, set()),
        ('y = x.to(torch.device("cpu"))', {".to", "torch.device"}, {".to(cpu)"}),
        ('y = x.to("cuda")', {".to"}, {".to(cpu)"}),
        (
            "return torch.nn.functional.relu(x) @ w",
            {"torch.nn.functional.relu", "torch.*", "torch.nn.*", ".relu", "@"},
            {"return"},
        ),
        ("@torch.no_grad()", {"torch.no_grad"}, {"@"}),
        ("def item(self): return self.x.item()", {".item"}, {"item"}),
        ("class Net(nn.Module):", set(), {"Net"}),
        ("for batch in loader:", set(), {"for"}),
        ("if (x):", set(), {"if"}),
        ("total += float(self.loss)", {"float", "float(loss)"}, set()),
        ("x[0].item()", {".item"}, set()),
        ("time.sleep(0.1)", {"time.sleep", ".sleep"}, set()),
        ("from time import sleep; sleep(1)", {"sleep"}, set()),
        ("out = torch.nn.functional.cross_entropy(", {"torch.nn.functional.cross_entropy"}, set()),
        ("    y).item()", {".item"}, set()),
        ("x = 1.5.real", set(), {".real"}),
        ("'unterminated x.item()", set(), {".item"}),
        ("损失.item()", {"损失.item", ".item"}, set()),
    ],
)
def test_calls_of_a_line(line: str, there: set[str], absent: set[str]) -> None:
    found = calls(line)
    assert there <= found
    assert not absent & found


@given(st.text(max_size=300))
def test_any_text_is_answered(text: str) -> None:
    assert all(isinstance(c, str) and c for c in calls(text))


@given(st.text(alphabet="abc.()[]{}'\"f \\@#=,", max_size=120))
def test_a_comment_adds_nothing(text: str) -> None:
    code = "x = 1"
    assert calls(f"{code}  # {text}") == calls(code)


@given(st.text(alphabet=st.characters(exclude_characters="'\\\n{}"), max_size=100))
def test_a_string_is_no_code(text: str) -> None:
    assert calls(f"x = '{text}'") == frozenset()


def test_only_the_head_of_a_line_is_looked_at() -> None:
    assert calls(" " * LONGEST + "x.item()") == frozenset()
    calls("(" * 10_000)
    calls("f'" + '{f"' * 5_000)
