"""What the lists of the vocabulary say of known facts and of frameworks: lines as real runs print them."""

import pytest

from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

RAISED = (
    'Traceback (most recent call last):\n  File "train.py", line 9, in main\n    y = net(x)\n'
    '  File "/env/lib/python{python}/site-packages/torch/nn/modules/module.py", line 1110, in _call_impl\n'
    "    return forward_call(*input, **kwargs)\n"
    "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
)


def facts_of(engine: Engine, *lines: str) -> dict[str, object]:
    return {fact.name: fact.value for fact in engine.triage(from_bytes("".join(lines).encode())).facts}


@pytest.mark.parametrize(
    ("card", "python", "needs", "index", "pin"),
    [
        ("NVIDIA RTX A6000 with CUDA capability sm_86 is", "3.8", "11.1", "cu118", "torch==2.4.1"),
        ("NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is", "3.11", "12.8", "cu128", "torch"),
        ("NVIDIA H100 80GB HBM3 with CUDA capability sm_90 is", "3.11", "11.8", "cu126", "torch"),
    ],
)
def test_the_build_that_runs_on_a_card_and_a_python(
    engine: Engine, card: str, python: str, needs: str, index: str, pin: str
) -> None:
    warned = f"UserWarning: \n{card} not compatible with the current PyTorch installation.\n"
    found = facts_of(engine, warned, RAISED.format(python=python))
    assert (found["needs_cuda"], found["wheel_index"], found["torch_pin"]) == (needs, index, pin)


def test_no_build_is_named_where_none_runs_on_the_card_and_the_python(engine: Engine) -> None:
    warned = "UserWarning: \nNVIDIA H100 with CUDA capability sm_90 is not compatible with the current PyTorch installation.\n"
    assert "wheel_index" not in facts_of(engine, warned, RAISED.format(python="3.7"))


def test_a_card_is_known_by_its_name_alone(engine: Engine) -> None:
    assert facts_of(engine, "GPU: Tesla T4\n", RAISED.format(python="3.11"))["gpu_arch"] == "sm_75"


def test_the_driver_and_the_build_are_compared_in_versions_of_cuda(engine: Engine) -> None:
    found = facts_of(
        engine,
        "pod-7:118:118 [0] NCCL INFO cudaDriverVersion 11020\nNCCL version 2.18.5+cuda11.8\n",
        "RuntimeError: CUDA error: API call is not supported in the installed CUDA driver\n",
    )
    assert (found["driver_cuda"], found["driver_of_cuda"]) == ("11.2", "520.61.05")


def options(engine: Engine, *lines: str) -> dict[str, str]:
    verdict = engine.triage(from_bytes("".join(lines).encode()))
    assert verdict.answer is not None
    assert not [fact for fact in verdict.facts if fact.name.endswith("_option")], "no line of the log tells an option"
    return verdict.answer.values


def test_the_options_are_those_of_the_framework_in_the_log(engine: Engine) -> None:
    found = options(engine, "[INFO|trainer.py:2409] >>   Num Epochs = 3\n", RAISED.format(python="3.11"))
    assert (found["timeout_option"], found["batch_option"]) == ("--ddp_timeout 7200", "per_device_train_batch_size")
    assert "timeout_option" not in options(engine, RAISED.format(python="3.11"))


def test_a_front_end_names_its_own_option_and_those_of_the_library_below(engine: Engine) -> None:
    begun = "[INFO|trainer.py:2409] >>   Num Epochs = 3\n/work/LLaMA-Factory/src/llamafactory/launcher.py 4\n"
    found = options(engine, begun, RAISED.format(python="3.11"))
    assert (found["length_option"], found["workers_option"]) == ("cutoff_len", "dataloader_num_workers")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("srun: error: node7: task 3: Exited with exit code 1\n", 'int(os.environ["SLURM_LOCALID"])'),
        ("mpirun noticed that process rank 3 ended\n", 'int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])'),
        ("torchrun --nproc-per-node 8 train.py\n", 'int(os.environ["LOCAL_RANK"])'),
        ("", 'int(os.environ["LOCAL_RANK"])'),
    ],
)
def test_the_local_rank_is_read_where_the_launcher_puts_it(engine: Engine, line: str, code: str) -> None:
    assert options(engine, line, RAISED.format(python="3.11"))["local_rank_code"] == code
