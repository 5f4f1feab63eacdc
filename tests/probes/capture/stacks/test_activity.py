"""What a stack means: one activity each, whatever the frames are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.activities import activities
from probes.capture.stacks.activity import Frame, Kind, State, classify, function, known, runs_training
from tests.cases import each

SITE = "/opt/env/lib/python3.11/site-packages/"
LIB = "/usr/lib/python3.12/"
MAIN = ("main", "/home/ana/train.py", 10)


def torch(path: str, name: str, line: int = 1) -> Frame:
    return (name, f"{SITE}torch/{path}", line)


def lib(path: str, name: str, line: int = 1) -> Frame:
    return (name, f"{LIB}{path}", line)


LOADER = torch("utils/data/dataloader.py", "_BaseDataLoaderIter.__next__")
FETCH = torch("utils/data/_utils/fetch.py", "_MapDatasetFetcher.fetch")
CALL = torch("nn/modules/module.py", "Module._call_impl")
DECODE = ("Pictures.__getitem__", "/home/ana/data.py", 7)
STEP = torch("optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper")
ADAM = torch("optim/adam.py", "Adam.step")

CASES: list[tuple[str, list[Frame], State | None, str, str, str]] = [
    # name, frames below main, state, line, activity, function that is blamed
    ("a worker is waited for", [LOADER, torch("utils/data/dataloader.py", "_try_get_data"), lib("queue.py", "get"), lib("threading.py", "wait")], State.LOCK, "", "data_wait", "main"),
    ("batches are made here", [LOADER, FETCH, DECODE], State.CPU, "", "data_work", "Pictures.__getitem__"),
    ("a file is read for a batch", [LOADER, FETCH, DECODE, ("open", SITE + "PIL/Image.py", 3)], State.DISK, "", "data_work", "Pictures.__getitem__"),
    ("Hugging Face datasets", [("Dataset.__getitem__", SITE + "datasets/arrow_dataset.py", 3)], State.CPU, "", "data_work", "main"),
    ("DALI", [("DALIGenericIterator.__next__", SITE + "nvidia/dali/plugin/pytorch/__init__.py", 3)], None, "", "data_wait", "main"),
    ("a program's own folder called datasets", [("load", "/home/ana/datasets/load.py", 3)], State.CPU, "", "python", "load"),
    ("all_reduce", [torch("distributed/c10d_logger.py", "wrapper"), torch("distributed/distributed_c10d.py", "all_reduce")], State.POLL, "", "collective", "main"),
    ("a handle is waited for", [], State.LOCK, "handle.wait()", "collective", "main"),
    ("a collective of a checkpoint", [torch("distributed/checkpoint/state_dict_saver.py", "save"), torch("distributed/distributed_c10d.py", "all_gather")], State.LOCK, "", "checkpoint", "main"),
    ("item", [], State.CPU, "total += loss.item()", "sync", "main"),
    ("item in a module", [CALL, ("Net.forward", "/home/ana/net.py", 9)], State.CPU, "if x.max().item() > 0:", "sync", "Net.forward"),
    ("item in an f-string", [], State.CPU, 'print(f"{loss.item():.3f}")', "sync", "main"),
    ("item in a comment", [], State.CPU, "x = y  # loss.item()", "python", "main"),
    ("float of a loss", [], State.CPU, "running += float(loss)", "sync", "main"),
    ("float of anything", [], State.CPU, "x = float(text)", "python", "main"),
    ("synchronize", [torch("cuda/__init__.py", "synchronize")], State.CPU, "", "sync", "main"),
    ("a tensor is printed", [torch("_tensor.py", "Tensor.__repr__"), torch("_tensor_str.py", "_str")], State.CPU, "", "sync", "main"),
    ("the scaler looks for inf", [torch("amp/grad_scaler.py", "GradScaler.step"), torch("amp/grad_scaler.py", "GradScaler._maybe_opt_step")], State.CPU, "", "sync", "main"),
    ("linear", [CALL, ("Net.forward", "/home/ana/net.py", 9), CALL, torch("nn/modules/linear.py", "Linear.forward")], State.CPU, "", "operator", "Net.forward"),
    ("an operator that has no frame", [], State.CPU, "y = torch.relu(x)", "operator", "main"),
    ("a product", [], State.CPU, "y = a @ b", "operator", "main"),
    ("Python in a module", [CALL, ("Net.forward", "/home/ana/net.py", 9)], State.CPU, "for i in range(n):", "python", "Net.forward"),
    ("an operator that waits for the lock", [CALL, torch("nn/modules/linear.py", "Linear.forward")], State.GIL, "", "gil_wait", "main"),
    ("compiled code", [torch("_dynamo/eval_frame.py", "_fn"), ("call", "/tmp/torchinductor_ana/ab/cab.py", 44)], State.CPU, "", "operator", "main"),
    ("compiling", [torch("_dynamo/eval_frame.py", "_fn"), torch("_dynamo/convert_frame.py", "__call__"), torch("_inductor/compile_fx.py", "compile_fx"), lib("subprocess.py", "wait")], State.POLL, "", "compile", "main"),
    ("backward", [torch("_tensor.py", "Tensor.backward"), torch("autograd/__init__.py", "backward"), torch("autograd/graph.py", "_engine_run_backward")], State.LOCK, "", "backward", "main"),
    ("the optimizer", [STEP, ADAM], State.CPU, "", "optimizer", "main"),
    ("a closure within the optimizer", [STEP, ADAM, ("closure", SITE + "lightning/pytorch/loops/optimization/closure.py", 1), ("training_step", "/home/ana/net.py", 30)], State.CPU, "", "python", "training_step"),
    ("backward in a closure", [STEP, ADAM, ("closure", "/home/ana/net.py", 3), torch("autograd/graph.py", "_engine_run_backward")], State.CPU, "", "backward", "closure"),
    ("torch.save", [torch("serialization.py", "save"), torch("serialization.py", "_save")], State.READ, "", "checkpoint", "main"),
    ("activation checkpointing is none", [torch("utils/checkpoint.py", "checkpoint"), CALL, torch("nn/modules/linear.py", "Linear.forward")], State.CPU, "", "operator", "main"),
    ("a log record", [lib("logging/__init__.py", "info"), lib("logging/__init__.py", "emit")], State.READ, "", "logging", "main"),
    ("print", [], State.READ, "print(step, rate)", "logging", "main"),
    ("tqdm around a loader", [("tqdm.__iter__", SITE + "tqdm/std.py", 1178), LOADER], State.LOCK, "", "data_wait", "main"),
    ("tqdm draws", [("tqdm.__iter__", SITE + "tqdm/std.py", 1178), ("tqdm.refresh", SITE + "tqdm/std.py", 1)], State.CPU, "", "logging", "main"),
    ("wandb", [("log", SITE + "wandb/sdk/wandb_run.py", 1), lib("json/encoder.py", "encode")], State.CPU, "", "logging", "main"),
    ("import", [("<module>", "/home/ana/net.py", 1), ("_find_and_load", "<frozen importlib._bootstrap>", 1), ("get_data", "<frozen importlib._bootstrap_external>", 1)], State.READ, "", "import", "<module>"),
    ("a module that trains when it is imported", [("_call_with_frames_removed", "<frozen importlib._bootstrap>", 1), ("<module>", "/home/ana/run.py", 1), ("train", "/home/ana/run.py", 9)], State.CPU, "", "python", "train"),
    ("sleep", [], State.SLEEP, "time.sleep(1)", "sleep", "main"),
    ("sleep when nobody looked", [], None, "time.sleep(1)", "sleep", "main"),
    ("a queue of its own", [lib("queue.py", "Queue.get"), lib("threading.py", "Condition.wait")], State.LOCK, "", "sleep", "main"),
    ("a queue in Python is not waited for by who runs below it", [lib("queue.py", "Queue.get"), ("hook", "/home/ana/q.py", 2)], State.CPU, "", "python", "hook"),
    ("a lock", [], State.LOCK, "", "sleep", "main"),
    ("a read", [], State.READ, "data = f.read()", "io", "main"),
    ("a read that is on the CPU", [], State.CPU, "data = f.read()", "python", "main"),
    ("a page that is fetched in an operator", [], State.DISK, "y = torch.relu(x)", "io", "main"),
    ("pandas", [("read_csv", SITE + "pandas/io/parsers/readers.py", 9)], State.DISK, "", "io", "main"),
    ("gc", [], State.CPU, "gc.collect()", "gc", "main"),
    ("jax waits", [("block_until_ready", SITE + "jax/_src/array.py", 5)], State.LOCK, "", "sync", "main"),
    ("a library that nobody knows", [("tokenize", SITE + "nltk/tokenize.py", 5)], State.CPU, "", "python", "main"),
    ("megatron around the program", [("train_step", "/work/Megatron-LM/megatron/training/training.py", 5), ("loss_func", "/home/ana/pretrain.py", 8)], State.CPU, "", "python", "loss_func"),
    ("ipykernel around a cell", [("run_code", SITE + "IPython/core/interactiveshell.py", 3), ("<module>", "/tmp/ipykernel_11/99.py", 3)], State.CPU, "", "python", "<module>"),
]  # fmt: skip


@each(("frames", "state", "line", "activity", "blamed"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_stack_is_what_people_would_call_it(
    frames: list[Frame], state: State | None, line: str, activity: str, blamed: str
) -> None:
    stack = [MAIN, *frames]
    found = classify(stack, state, line)
    assert found.activity == activity
    assert stack[found.blamed][0] == blamed


@each("version", ["3.8", "3.10"])
def test_functions_without_their_class_mean_the_same(version: str) -> None:
    for _, frames, state, line, activity, _ in CASES:
        stack = [MAIN, *((function(n), f.replace("3.11", version).replace("3.12", version), at) for n, f, at in frames)]
        assert classify(stack, state, line).activity == activity


@each(
    ("file", "kind"),
    [
        ("/home/ana/train.py", Kind.USER),
        ("train.py", Kind.USER),
        ("<string>", Kind.USER),
        ("<stdin>", Kind.USER),
        ("/home/ana/torch/train.py", Kind.USER),
        ("/home/ana/logging/setup.py", Kind.USER),
        ("/home/ana/queue.py", Kind.USER),
        ("/srv/lib/python3.11/site-packages/nltk/x.py", Kind.LIBRARY),
        ("/usr/lib/python3/dist-packages/nltk/x.py", Kind.LIBRARY),
        ("/home/ana/.local/lib/python3.9/site-packages/x.egg/nltk/x.py", Kind.LIBRARY),
        ("/opt/env/bin/torchrun", Kind.LIBRARY),
        ("<decorator-gen-12>", Kind.LIBRARY),
        ("/usr/lib/python3.12/json/decoder.py", Kind.STDLIB),
        ("/opt/conda/lib/python311.zip/json/decoder.py", Kind.STDLIB),
        ("/usr/lib/python3.13t/heapq.py", Kind.STDLIB),
        ("<frozen abc>", Kind.STDLIB),
        ("/opt/env/lib/python3.11/site-packages/torch/nn/functional.py", Kind.KNOWN),
        ("/src/pytorch/torch/optim/adam.py", Kind.KNOWN),
        ("<eval_with_key>.12", Kind.KNOWN),
        ("/opt/env/lib/python3.11/site-packages/lightning/pytorch/trainer/trainer.py", Kind.WRAPPER),
        ("<frozen runpy>", Kind.WRAPPER),
    ],
)
def test_whose_code_a_file_is(file: str, kind: Kind) -> None:
    assert known("f", file).kind is kind


def test_a_server_without_a_program_of_its_own_is_blamed_on_its_loop() -> None:
    loop = ("EngineCoreProc.run_busy_loop", SITE + "vllm/v1/engine/core.py", 1)
    schedule = ("Scheduler.schedule", SITE + "vllm/v1/core/sched/scheduler.py", 2)
    wait = [lib("queue.py", "Queue.get"), lib("threading.py", "Condition.wait")]
    start = [("_run_module_as_main", "<frozen runpy>", 1), lib("threading.py", "Thread.run")]
    for frames, activity, blamed in (
        ([*start, loop, *wait], "sleep", loop),
        ([*start, loop, schedule], "python", schedule),
        ([*start, *wait], "sleep", wait[-1]),
    ):
        found = classify(frames)
        assert (found.activity, frames[found.blamed]) == (activity, blamed)


def test_no_frames_are_no_activity() -> None:
    assert classify([]) == ("unknown", -1, -1)


def test_only_a_thread_that_trains_runs_training() -> None:
    assert runs_training([MAIN, LOADER])
    assert not runs_training([MAIN, lib("threading.py", "Event.wait")])


PARTS = st.sampled_from([f for _, frames, *_ in CASES for f in frames] + [MAIN])
ANY = st.tuples(st.text(max_size=30), st.text(max_size=60), st.integers(-5, 10**7))


@given(st.lists(PARTS | ANY, max_size=12), st.sampled_from([None, *State]), st.text(max_size=60))
def test_every_stack_has_exactly_one_activity_and_blames_a_frame_of_its_own(
    frames: list[Frame], state: State | None, line: str
) -> None:
    found = classify(frames, state, line)
    assert found.activity in activities()
    assert found.activity != "wrapper"
    assert (found.blamed == -1) is (not frames)
    assert -1 <= found.decided < max(len(frames), 1)
    if state is State.GIL and frames:
        assert found.activity == "gil_wait"
    if found.activity == "io":
        assert state is not State.CPU
