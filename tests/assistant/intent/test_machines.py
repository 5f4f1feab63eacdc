"""Machines told by their place in a sentence: laws over every frame and every word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.machines import is_strange, means_itself
from assistant.intent.parse import understand
from assistant.intent.times import times
from knowledge.lexicon import lexicon

# a day is a time, whatever a machine is called
EVERYDAY = sorted(
    w for w in lexicon().roles["common"] if w.isascii() and w.isalpha() and not means_itself(w) and not any(times(w))
)
FRAMES = (
    "is {} healthy?", "why is {} slow?", "what about {}", "how about {} now", "and {}?", "what's wrong with {}", "can I still use {}?",
    "please check {}", "tell me whether {} is ok", "is {} up, and why not?", "show me {}'s temperature", "state of {}?", "{} 健康吗",
    "那 {} 呢", "看一下 {}", "{} 为什么这么慢", "{} 上的训练慢", "{} 还能用吗",
)  # fmt: skip
OTHERS = ("login", "gpu-12", "atlas")


@given(st.sampled_from(EVERYDAY), st.sampled_from(FRAMES))
def test_a_machine_called_like_a_word_is_found_where_one_is_asked_about(word: str, frame: str) -> None:
    found = understand(frame.format(word), hosts=(*OTHERS, word))
    assert found.slots.node == (word,)
    assert understand(frame.format(word.title()), hosts=(*OTHERS, word)).slots.node == (word,)


@given(st.sampled_from(EVERYDAY), st.sampled_from(FRAMES))
def test_without_such_a_machine_the_sentence_stays_what_it_was(word: str, frame: str) -> None:
    bare, others = understand(frame.format(word)), understand(frame.format(word), hosts=OTHERS)
    assert others == bare
    assert others.slots.node == ()


@given(
    st.sampled_from(EVERYDAY),
    st.sampled_from(
        ("there is a {} in the log", "does the {} of it matter for nccl?", "training broke like a {} today")
    ),
)
def test_the_word_elsewhere_is_a_word(word: str, frame: str) -> None:
    assert understand(frame.format(word), hosts=(*OTHERS, word)).slots.node == ()


@given(
    st.sampled_from(sorted({"memory", "training", "it", "everything", "this", "driver", "nccl", "cluster", "node"})),
    st.sampled_from(FRAMES),
)
def test_words_of_the_field_mean_themselves(word: str, frame: str) -> None:
    """However strange a site's names are."""
    assert understand(frame.format(word), hosts=OTHERS).slots.node == ()
    assert means_itself(word)


@given(st.sampled_from(("badger", "zarquon", "wotan", "brisket-west", "tuonela")))
def test_a_name_that_nobody_knows_only_where_nothing_else_can_stand(name: str) -> None:
    assert is_strange(name)
    for frame in ("is {} healthy?", "is {} really in good shape now", "is node {} reachable?", "{} 现在健康吗？"):
        assert understand(frame.format(name), hosts=OTHERS).slots.node == (name,), frame
    for frame in (
        "what about {}?",
        "what is {}?",
        "how do I install {}",
        "can I use {}?",
        "is {} better than nccl?",
        "{} 是什么",
    ):
        assert understand(frame.format(name), hosts=OTHERS).slots.node == (), frame


@given(st.sampled_from(("trian", "memroy", "slwo", "helthy", "gups")))
def test_a_machines_name_is_no_slip_of_the_finger(name: str) -> None:
    found = understand(f"is {name} healthy?", hosts=(name,))
    assert (found.slots.node, found.fixed) == ((name,), ())
    assert understand(f"is {name} healthy?").fixed
