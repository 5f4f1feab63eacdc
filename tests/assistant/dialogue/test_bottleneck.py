"""What a trace is asked by name: yes with how much, no with the value, and what it does not tell."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from assistant.diagnosis import Diagnosis, diagnose
from assistant.dialogue import answerer
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.reply import Reply
from assistant.sources import read
from knowledge.bottlenecks import bottlenecks
from tests import story_traces
from tests.assistant.dialogue.talk import ask, query, rules, said, turn
from tests.cases import each
from tests.conftest import Gpudiag
from tests.diagnoses import incident
from tests.trace_files import Job, comm_bound, compute_bound, data_bound, launch_bound, sync_bound

JOBS: dict[str, Callable[[], Job]] = {
    "data": data_bound, "launch": launch_bound, "comm": comm_bound, "sync": sync_bound, "compute": compute_bound,
}  # fmt: skip


@cache
def job(name: str) -> Diagnosis:
    """The diagnosis of a job of a known ailment."""
    from probes.trace.verdict.digest import NEEDS, digest
    from probes.trace.verdict.facts import observations
    from tests.trace_files import read as trace

    return diagnose(observations([digest(trace(JOBS[name](), NEEDS))]), rules())


def asked(d: Diagnosis, sentence: str) -> Reply:
    """A sentence, understood and answered."""
    q = understand(sentence)
    return answerer(q.intent).answer(turn(d, q))


@pytest.mark.slow
@each(
    ("of", "sentence", "begins"),
    [
        ("data", "is the data loader the problem?", "Yes. "),
        ("data", "is it data bound?", "Yes. "),
        ("data", "is it communication bound?", "No: communication that nothing hides takes 0 %"),
        ("data", "why not communication bound?", "Because communication that nothing hides takes 0 %"),
        ("data", "would more workers help?", "Yes, it can help, at most 59.8 % of"),
        ("data", "would CUDA graphs help?", "It would hardly help: gaps within"),
        ("data", "how much of the time is communication?", "Communication that nothing hides takes 0 %"),
        ("comm", "is it compute bound or communication bound?", "Communication: "),
        ("comm", "is the data loader the problem?", "No: "),
        ("comm", "does communication overlap with compute?", "Computing hides 0 % of the communication"),
        ("launch", "are we launch bound?", "Yes. "),
        ("launch", "how much would CUDA graphs gain?", "Yes, it can help, at most "),
        ("launch", "is it compute bound or communication bound?", "Neither computing nor communication."),
        ("sync", "are there synchronizations?", "Yes. "),
        ("sync", "what if I used CUDA graphs?", "It would hardly help: "),
        ("compute", "which kernel is the worst?", "The longest kernel is sm90_xmma_gemm"),
        ("compute", "is there a pipeline bubble?", "The trace does not tell about the pipeline's bubble"),
        ("data", "是不是数据加载的问题", "是：“"),
        ("data", "为什么不是通信受限", "因为未被掩盖的通信占窗口的 0 %"),
        ("launch", "CUDA graph 能提升多少", "有用，至多占采集窗口的"),
        ("launch", "是通信受限还是计算受限", "既不是通信，也不是计算。"),
    ],
)
def test_a_question_by_name_is_answered_with_the_value(of: str, sentence: str, begins: str) -> None:
    reply = asked(job(of), sentence)
    assert reply.headline.startswith(begins), reply.headline


def test_a_no_names_what_was_found_instead_and_the_talk_goes_on_about_it() -> None:
    d = job("data")
    reply = asked(d, "is it communication bound?")
    assert "Something else was found. Trace trace: " in said(reply)
    assert reply.focus == d.roots[0].id
    assert reply.data["asked"][0]["holds"] == "no"


def test_every_value_stands_with_its_fact() -> None:
    from knowledge.compiled import shard

    told = 0
    for b in shard("bottlenecks"):
        reply = ask(job("comm"), query(Intent.DIAGNOSE, f"is it {b['said']['en'][0]}?"))
        for entry in reply.data.get("asked", ()):
            told += len(entry["measured"])
            assert {m["fact"] for m in entry["measured"]} <= set(bottlenecks()[entry["id"]].facts)
    assert told > 30


@pytest.mark.slow
def test_the_late_rank_is_named_and_another_one_is_not(tmp_path: Path) -> None:
    story_traces.late_rank(tmp_path / "job")
    d = diagnose(read([], [str(tmp_path / "job")]).observations, rules())
    assert asked(d, "which rank is the straggler?").headline.startswith("Rank 2 makes the others wait")
    assert asked(d, "why is rank 2 slow?").headline.startswith("Rank 2 makes the others wait")
    assert asked(d, "is rank 3 the straggler?").headline == "It is not rank 3: rank 2 makes the others wait."
    assert asked(d, "is it communication bound?").headline.startswith("Yes. 3 ranks: ")


def test_without_a_trace_the_same_words_are_about_the_machine() -> None:
    d = incident("overheating")
    for sentence in ("is the data loader the problem?", "why not communication-bound?", "would CUDA graphs help?"):
        assert asked(d, sentence).data.get("answer") != "bottleneck"


@pytest.mark.parametrize("share", ["2", "0", "60"])
def test_what_if_a_share_moves_what_it_is_a_part_of(share: str) -> None:
    d = job("data")
    reply = asked(d, f"what if the data loader share were {share} %?")
    assert reply.hypothetical
    gone = {f["rule"] for f in reply.data["vanish"]}
    if share == "60":
        assert "trace-data-bound" not in gone
    else:
        assert {"trace-data-bound", "input-bound-job"} <= gone
        assert not reply.data["appear"]


def test_a_first_sentence_about_given_files_may_ask_why_not(gpudiag: Gpudiag, tmp_path: Path) -> None:
    path = data_bound().save(tmp_path / "t.json")
    told = gpudiag("ask", "--new", "--input", path, "why not communication-bound?")
    assert told.out.startswith("Because communication that nothing hides takes 0 %"), told.out
    assert "no answer yet" not in gpudiag("ask", "--new", "--input", path, "what should I change first?").out


def test_a_folder_without_traces_is_refused(gpudiag: Gpudiag, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    told = gpudiag("ask", "--new", "--input", str(tmp_path / "empty"), "why is training slow?")
    assert "is a directory" in told.err
