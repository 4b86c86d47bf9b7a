"""What an answer says of a failure that came when training had ended."""

import pytest

from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

FAILED = 'Traceback (most recent call last):\n  File "/job/train.py", line 88, in main\n    report(model)\n'
LAST = "step 120/120 loss 0.31\nSaved checkpoint to /ckpt/step_120.pt\n"


def says(engine: Engine, above: str) -> str:
    answer = engine.triage(from_bytes(f"{above}{FAILED}KeyError: 'accuracy'\n".encode())).answer
    assert answer is not None
    return answer.says


@pytest.mark.parametrize(
    "ended",
    [
        "Training complete.",
        "`Trainer.fit` stopped: `max_epochs=3` reached.",
        "{'train_runtime': 5120.4, 'train_samples_per_second': 3.1, 'epoch': 3.0}",
    ],
)
def test_what_failed_after_the_end_of_training(engine: Engine, ended: str) -> None:
    sentence = says(engine, f"{LAST}{ended}\n")
    assert "Training had already finished, at step 120; its newest checkpoint is /ckpt/step_120.pt." in sentence
    assert "The run was at" not in sentence


def test_another_stage_that_trains_again_is_not_an_end(engine: Engine) -> None:
    sentence = says(engine, f"{LAST}Training complete.\nStarting training of stage 2\nstep 7/90 loss 2.4\n")
    assert "had ended" not in sentence


def test_destroying_the_group_alone_is_not_an_end(engine: Engine) -> None:
    assert "had ended" not in says(engine, f"{LAST}calling destroy_process_group\n")
