"""What frameworks around torch refuse, how inference engines and Ray tell of failures, and whose lines they are."""

import pytest

from tests.logs import text, traceback
from torchtriage.domain.verdict import RootCause
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

SITE = "/env/lib/python3.12/site-packages"
MAIN = ("/job/train.py", 30, "<module>", "main()")
REFUSED = "RuntimeError: the planner has no room for this"
MESSAGES = {
    "RuntimeError: expected input to be on cuda": "usage.device-mismatch",
    "RuntimeError: A tensor was not the same size as the first tensor": "usage.shape-mismatch",
    "FloatingPointError: Predicted boxes or scores contain Inf/NaN. Training has diverged.": "numerics.nan-loss",
    "AssertionError: Dataset 'birds_train' is empty!": "data.missing-file",
    "KeyError: \"Dataset 'birds' is not registered! Available datasets are: coco_2017_train\"": "usage.config",
    "ValueError: Column to remove ['raw'] not in the dataset. Current columns in the dataset: ['ids']": "hf.datasets",
    "ValueError: you need to add an explicit nodesplitter to your input pipeline for multi-node training": "usage.config",
    "AssertionError: real_train_batch_size (48) must be divisible by minimal possible batch size (32)": "usage.config",
    "KeyError: \"class `LoopA` in mmengine/runner/loops.py: 'dataset'\"": "usage.config",
    "NotImplementedError: Loading a dataset cached in a LocalFileSystem is not supported.": "env.version-conflict",
    "TypeError: AsyncEngineArgs.__init__() got an unexpected keyword argument 'worker_use_ray'": "vllm.engine",
    "AttributeError: 'NoneType' object has no attribute 'cquantize_blockwise_fp16_nf4'": "quantization.bitsandbytes",
    "ValueError: Unrecognized model in /models/a. Should have a `model_type` key in its config.json": "checkpoint.format",
    "AssertionError: param 7 already assigned swap buffer id 3": "deepspeed.config",
    "requests.exceptions.JSONDecodeError: Expecting value: line 1 column 1 (char 0)": "network.http-service",
    "OSError: (External)  Nccl error, invalid data type, detail: Resource temporarily unavailable": "nccl.shm",
    "AttributeError: 'Qwen2Config' object has no attribute 'max_window_layers'": "env.version-conflict",
    "TypeError: Net.forward() got an unexpected keyword argument 'num_items_in_batch'": "env.version-conflict",
    "RuntimeError: CUDA Error: invalid argument at /build/csrc/cumem_allocator.cpp:119": "vllm.engine",
    "AssertionError: Expects tensor to be on the compute device cuda:0, was on cpu": "fsdp.error",
    "AssertionError: bad header, cannot read: /data/corpus_text_document.idx": "data.corrupt",
    "FatalError: `Segmentation fault` is detected by the operating system.": "process.sigsegv",
    "FatalError: `Access to an undefined portion of a memory object` is detected by the operating system.": "process.sigbus",
    "ImportError: cannot import name 'load_dataset' from 'datasets' (/job/datasets/__init__.py)": "env.import-error",
    "ImportError: cannot import name 'nn' from 'torch' (unknown location)": "env.import-error",
    "ImportError: cannot import name 'x' from 'datasets' (/env/site-packages/datasets/a.py)": "env.version-conflict",
    "TypeError: __init__() got an unexpected keyword argument 'evaluation_strategy'": "env.version-conflict",
    "ValueError: expected sequence of length 12 at dim 1 (got 9)": "dataloader.collate",
    "AssertionError: Micro batch size per gpu: 0 has to be greater than 0": "deepspeed.config",
    "AssertionError: rollout world_size: 3 is not divisible by infer_tp: 2": "usage.config",
    "RuntimeError: the free version does not support multi GPU setups": "usage.config",
    "ValueError: remaining_argv: ['--tuner', 'lora']": "usage.config",
    "urllib.error.HTTPError: HTTP Error 503: Slow Down": "storage.object-store",
    "RocksIOError: b'IO error: While appending to file: /nas/run/7.log: Input/output error'": "storage.io-error",
    "IndexError: Relative sample index 7 is not present in the 1/shard.00003.mds file.": "data.corrupt",
    "AssertionError: One or several timestamps unexpectedly violate the tolerance": "data.corrupt",
    "RuntimeError: Backend \"sox_io\" is not one of available backends: ['soundfile']": "env.import-error",
    "NotImplementedError: fp8 is not supported for CUDA below version 12": "env.version-conflict",
    "FatalError: `Process abort signal` is detected by the operating system.": "process.sigabrt",
}


def final_group(engine: Engine, *parts: str | list[str]) -> RootCause:
    root = engine.triage(from_bytes(text("step 3 loss 2.1", *parts))).root_cause
    assert root is not None
    return root


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("verl/workers/fsdp_workers.py", "usage.config"),
        ("slime/backends/megatron_utils/actor.py", "usage.config"),
        ("openrlhf/trainer/ray/launcher.py", "usage.config"),
        ("colossalai/booster/plugin/gemini_plugin.py", "usage.config"),
        ("mmengine/runner/runner.py", "usage.config"),
        ("torchtitan/distributed/parallel_dims.py", "usage.config"),
        ("llamafactory/hparams/parser.py", "usage.config"),
        ("swift/llm/train/sft.py", "usage.config"),
        ("ray/train/v2/api.py", "usage.config"),
        ("transformers/models/llama/modeling_llama.py", "hf.trainer"),
        ("torchao/quantization/quant_api.py", "quantization.bitsandbytes"),
    ],
)
@pytest.mark.parametrize("raised", [REFUSED, "ValueError: no such plan", "AssertionError"])
def test_a_framework_that_refuses_shows_where_to_look(engine: Engine, file: str, expected: str, raised: str) -> None:
    code = "assert plan.fits(room)" if raised == "AssertionError" else "raise refused(plan)"
    root = final_group(engine, traceback(raised, [MAIN, (f"{SITE}/{file}", 70, "plan", code)]))
    assert (root.entry, root.confidence) == (expected, "likely")


def test_an_error_that_a_framework_only_passes_on_is_not_a_refusal(engine: Engine) -> None:
    frames = [MAIN, (f"{SITE}/verl/workers/fsdp_workers.py", 70, "plan", "return rooms[plan]")]
    assert final_group(engine, traceback("KeyError: 'plan'", frames)).entry == "usage.python-error"


@pytest.mark.parametrize(("message", "entry"), MESSAGES.items())
def test_the_message_of_a_framework_is_known(engine: Engine, message: str, entry: str) -> None:
    assert final_group(engine, traceback(message)).entry == entry


def test_a_run_that_ends_in_an_uncaught_error_is_not_healthy_because_its_message_is_an_echo(engine: Engine) -> None:
    raised = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    assert final_group(engine, traceback(raised, [MAIN])).entry == "vllm.engine"


def test_the_error_in_an_envelope_of_ray_is_the_cause(engine: Engine) -> None:
    envelope = traceback(
        "ray.exceptions.UnserializableException: Failed to deserialize exception. Refer to the documentation.", [MAIN]
    )
    inner = "httpx.HTTPStatusError: Server error '503 Service Unavailable' for url 'http://10.2.1.5:3201/generate'"
    assert final_group(engine, envelope, "Original exception:", inner).entry in ("vllm.engine", "network.http-service")


@pytest.mark.parametrize(
    "expected",
    [
        "- (node_id=f5369ec1, ip=10.9.101.240, pid=3124) world_rank=5, local_rank=5, node_rank=0",
        "The actor died because of an error raised in its creation task, "
        "ray::policy:Worker.__init__() (pid=3124, ip=10.9.101.240, actor_id=0a, repr=Worker[rank=5])",
    ],
)
def test_ray_shows_which_rank_a_process_is(engine: Engine, expected: str) -> None:
    label = "(Worker pid=3124, ip=10.9.101.240) "
    root = final_group(engine, expected, traceback("NameError: name 'nett' is not defined", [MAIN], label))
    assert (root.entry, root.rank) == ("usage.python-error", 5)


def test_two_processes_of_one_number_are_not_rank(engine: Engine) -> None:
    lines = [f"- (node_id=f{rank}, ip=10.9.1.{rank}, pid=3124) world_rank={rank}, local_rank=0" for rank in (5, 6)]
    root = final_group(engine, lines, traceback("NameError: name 'nett' is not defined", [MAIN], "(Worker pid=3124) "))
    assert root.rank is None


def test_the_label_of_a_logger_is_that_of_the_traceback_below_it(engine: Engine) -> None:
    others = [f"[2026-02-26 12:01:5{rank} TP{rank}] Init torch distributed begin." for rank in (0, 1, 3)]
    first, *rest = traceback(
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)", [MAIN]
    )
    root = final_group(engine, others, f"[2026-02-26 12:01:56 TP2] Scheduler hit an exception: {first}", rest)
    assert (root.entry, root.rank) == ("nccl.unhandled-system-error", 2)


def test_the_access_lines_of_an_inference_engine_are_of_training(engine: Engine) -> None:
    access = [f'INFO:     10.0.0.{n}:41174 - "POST /update_weights_from_distributed HTTP/1.1" 200 OK' for n in range(9)]
    failed = "Failed to update parameter online: start out of range (expected to be in range of [-8, 8], but got 9)."
    verdict = engine.triage(from_bytes(text(access, failed)))
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "vllm.engine"


def test_a_reason_for_a_setting_is_not_what_went_wrong(engine: Engine) -> None:
    said = "因为显存不足，我打开了 ZeRO3 切分参数，但是训练进程在前向计算时卡住"
    root = engine.triage(from_bytes(text("ZeRO3 训练卡住", said))).root_cause
    assert root is not None
    assert root.entry == "perf.hang"


def test_a_hang_that_someone_describes_above_a_log_is_heard(engine: Engine) -> None:
    said = "Training got stuck in the first validation and nothing is printed any more."
    lines = [f"worker-{n}.out|loading part {n} of the model" for n in range(8)]
    root = engine.triage(from_bytes(text(said, lines))).root_cause
    assert root is not None
    assert root.entry == "perf.hang"


def test_a_watchdogs_line_comes_before_what_someone_said_of_the_hang(engine: Engine) -> None:
    line = "[rank3]:[E1 ProcessGroupNCCL.cpp:1484] [Rank 3] ProcessGroupNCCL's watchdog got stuck for 480 seconds"
    root = engine.triage(from_bytes(text("with 8 cards the training got stuck midway.", line))).root_cause
    assert root is not None
    assert (root.entry, root.rank, root.evidence[0].text) == ("perf.hang", 3, line)


@pytest.mark.parametrize("function", ["__post_init__", "check_sizes", "_validate"])
def test_a_programs_own_check_of_its_settings_is_one_of_the_settings(engine: Engine, function: str) -> None:
    frames = [MAIN, ("/job/options.py", 12, function, "assert sizes")]
    assert final_group(engine, traceback("AssertionError: sizes must be even", frames)).entry == "usage.config"
    refused = "train.py: error: argument --bf16: Truthy value expected: got 7"
    assert final_group(engine, "usage: train.py [-h]", refused).entry == "usage.config"
