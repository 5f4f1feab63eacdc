"""Names of things as people call them, in both languages."""

from __future__ import annotations

from assistant.render.labels import _LABELS, _SCOPES, known_as, localised, reason_name, subject_name
from assistant.sources import parse_text
from knowledge.facts import vocabulary
from knowledge.observation import Scope, Status, Subject, gpu, node
from rules.factbase import FactBase
from tests.cases import each

LINK = Subject(Scope.LINK, "3", gpu("0000:3b:00.0", "n1"))


@each(
    ("subject", "en", "zh"),
    [
        (node(), "this node", "本节点"),
        (node("n1"), "node n1", "节点 n1"),
        (gpu("0000:3b:00.0"), "GPU 0000:3b:00.0", "GPU 0000:3b:00.0"),
        (gpu("index:0"), "GPU 0", "GPU 0"),
        (gpu("GPU-b9f9e81b"), "GPU-b9f9e81b", "GPU-b9f9e81b"),
        (gpu("unknown:row 0"), "a GPU (the text does not say which)", "某个 GPU（文本未说明是哪个）"),
        (
            Subject(Scope.OBJECT, "unknown:drive"),
            "a drive (the text does not say which)",
            "某块硬盘（文本未说明是哪块）",
        ),
        (Subject(Scope.PORT, "unknown:?"), "one port", "某个端口"),
        (gpu("unknown:row 1"), "GPU no. 2 of the text (it does not say which)", "文本中的第 2 个 GPU（未命名）"),
        (gpu("unknown:..."), "GPU at an unreadable address (...)", "某个 GPU（地址未知）"),
        (LINK, "GPU 0000:3b:00.0 link 3", "GPU 0000:3b:00.0 链路 3"),
        (Subject(Scope.DOCUMENT, "train.log"), "train.log", "train.log"),
    ],
)
def test_names(subject: Subject, en: str, zh: str) -> None:
    assert subject_name(subject, "en") == en
    assert subject_name(subject, "zh") == zh


def test_a_node_that_no_input_names_is_that_of_its_file() -> None:
    """A capture is read on another machine than the one that it was taken on."""
    state = "CA 'mlx5_0'\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n"
    facts = FactBase(parse_text("input", state), vocabulary())
    assert known_as(facts) == {node(): "input"}
    assert subject_name(node(), "en", known_as(facts)) == "the node of input"
    assert subject_name(node(), "zh", known_as(facts)) == "input 的节点"
    assert subject_name(node(), "en", {node(): ""}) == "the node of these files"
    assert (
        localised("1 rail of this node is down", node(), "en", {node(): "a.txt"})
        == "1 rail of the node of a.txt is down"
    )


def test_sentences_get_the_names_of_their_language() -> None:
    assert localised(f"{LINK} 有错误", LINK, "zh") == "GPU 0000:3b:00.0 链路 3 有错误"
    assert localised("this node 应有 8 个 GPU", node(), "zh") == "本节点 应有 8 个 GPU"


def test_every_word_has_both_languages() -> None:
    for text in (*_LABELS.values(), *_SCOPES.values()):
        assert text.en
        assert text.zh
    assert set(_SCOPES) == set(Scope)
    for status in Status:
        if status is not Status.OK:
            assert reason_name(str(status), "zh") != str(status)
    assert reason_name("denied: needs root", "en") == "permission denied (needs root)"
    assert reason_name("only 2 peers with a value", "en") == "only 2 peers with a value"
