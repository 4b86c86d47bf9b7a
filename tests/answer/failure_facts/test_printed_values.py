"""What programs printed above a failure, in logs of real runs: names of the failing line, and ranks beside one another."""

from pathlib import Path

import pytest

from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes, open_path

LOGS = Path(__file__).parent / "logs"
RAISED = 'Traceback (most recent call last):\n  File "/job/train.py", line 9, in main\n    {code}\n{message}\n'


def triaged(engine: Engine, name: str) -> Verdict:
    return engine.triage(open_path(LOGS / f"{name}.txt"))


def facts_of(verdict: Verdict) -> dict[str, str | int | float]:
    return {fact.name: fact.value for fact in verdict.facts}


def of_text(engine: Engine, text: str) -> dict[str, str | int | float]:
    return facts_of(engine.triage(from_bytes(text.encode())))


def test_shapes_of_all_ranks_are_next_to_one_another(engine: Engine) -> None:
    verdict = triaged(engine, "shapes")
    found = facts_of(verdict)
    assert found["printed_by_rank"] == "rank 0: [4, 128]; ranks 1-3: [4, 96]"
    assert (found["printed_by_rank_words"], found["printed_by_rank_line"]) == ("x.shape", 4)
    assert found["printed_shapes"] == "x [4, 96]"
    assert verdict.answer is not None
    assert "rank 0: [4, 128]; ranks 1-3: [4, 96]" in verdict.answer.says


def test_counts_of_a_rank_that_had_fewer_batches(engine: Engine) -> None:
    verdict = triaged(engine, "counts")
    assert facts_of(verdict)["printed_by_rank"] == "rank 2: 80 samples, 5 batches; ranks 0-1,3: 96 samples, 6 batches"
    assert verdict.answer is not None
    assert "rank 2: 80 samples, 5 batches" in verdict.answer.says


def test_the_option_that_the_assertion_is_about(engine: Engine) -> None:
    verdict = triaged(engine, "opts")
    found = facts_of(verdict)
    assert (found["printed_name"], found["printed_value"], found["printed_line"]) == ("embed_dim", "96", 1)
    assert verdict.answer is not None
    assert "The log printed embed_dim = 96 (line 1)." in verdict.answer.says


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("num_classes: 37", "37"),
        ("num_classes=37, lr=0.1", "37"),
        ('  "num_classes": 37,', "37"),
        ("torchrun train.py --num_classes 37 --lr 1", "37"),
        ("train.py --num-classes=37", "37"),
        ("  num_classes ................. 37", "37"),
        ("Namespace(a=1, num_classes=None)", "None"),
        ("num_classes: 11\nnum_classes: 37", "37"),
        ("model.num_classes: 37", "37"),
        ("model.num_classes: 37\nloss.num_classes: 10", None),  # of which one nobody knows
        ("max_num_classes: 37", None),
        ("num_classes_total=37", None),
        ("num_classes: the number of classes", None),
        ("usage: train.py [-h] [--num_classes NUM_CLASSES]", None),
        ("epoch 3 step 7 loss 0.5 num_classes 37", None),
    ],
)
def test_names_are_exact_and_the_last_print_counts(engine: Engine, printed: str, value: str | None) -> None:
    raised = RAISED.format(code="net = build(args.num_classes)", message="ValueError: num_classes does not fit")
    assert of_text(engine, f"{printed}\n{raised}").get("printed_value") == value


def test_what_is_printed_below_the_failure_does_not_count(engine: Engine) -> None:
    raised = RAISED.format(code="net = build(args)", message="ValueError: num_classes does not fit")
    assert "printed_value" not in of_text(engine, f"{raised}num_classes: 37\n")


def test_a_number_of_each_process_says_nothing(engine: Engine) -> None:
    lines = "".join(f"[rank {rank}] worker pid {4000 + rank * 7} has shape [4, 4]\n" for rank in range(4))
    raised = RAISED.format(
        code="y = fc(x)", message="RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x4 and 3x4)"
    )
    assert "printed_by_rank" not in of_text(engine, lines + raised)


def test_messages_of_ranks_next_to_one_another(engine: Engine) -> None:
    raised = "".join(
        "".join(
            f"[rank{rank}]: {line}\n"
            for line in RAISED.format(
                code="check(batch)", message=f"ValueError: batch holds {count} samples, expected 8"
            ).splitlines()
        )
        for rank, count in ((0, 5), (1, 7), (2, 7))
    )
    assert of_text(engine, raised)["by_rank"] == "rank 0: 5 samples; ranks 1-2: 7 samples"


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("FutureWarning: call setup(init_group=True) first", None),
        ("mesh.py:12: in setup(backend, init_group=True)", None),
        ("Namespace(lr=0.1, init_group=True)", "True"),
        ("init_group: True", "True"),
    ],
)
def test_an_argument_in_code_was_not_printed(engine: Engine, printed: str, value: str | None) -> None:
    message = "ValueError: `init_group` must be set before"
    raised = RAISED.format(code="mesh.start()", message=message)
    assert of_text(engine, f"{printed}\nepoch 1 loss 2.1\n{raised}").get("printed_value") == value


@pytest.mark.parametrize(
    "library",
    [
        "/opt/aws_neuronx_venv/lib64/neuronxcc/driver/CommandDriver.py",
        "C:\\Users\\li\\run\\venv\\Lib\\site-packages\\torch\\nn\\module.py",
        "C:\\Python311\\Lib\\threading.py",
    ],
)
def test_frames_of_compilers_and_of_windows_are_not_code_of_the_user(engine: Engine, library: str) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "train.py", line 9, in main\n    go()\n'
        f'  File "{library}", line 30, in run\n    raise ValueError(text)\nValueError: a bolt is loose\n'
    )
    assert of_text(engine, raised)["where"] == "train.py:9"


def test_the_port_of_a_host_is_not_a_value_of_its_name(engine: Engine) -> None:
    message = (
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to"
        " (train-job-master-0, 23456)."
    )
    warned = "[W218 11:22:13.104 TCPStore.cpp:358] [c10d] TCP client failed to connect to train-job-master-0:23456 - timed out\n"
    found = of_text(engine, warned + RAISED.format(code='dist.init_process_group("nccl")', message=message))
    assert "printed_name" not in found


def test_the_identity_of_an_object_is_not_a_setting(engine: Engine) -> None:
    above = "worker started: actor_id=2dbcd32867b5c511f131cbb201000000 batch_size=4\n"
    message = "RuntimeError: actor_id and batch_size do not match"
    found = of_text(engine, above + RAISED.format(code="check(actor_id, batch_size)", message=message))
    assert (found["printed_name"], "other_printed_name" in found) == ("batch_size", False)
