"""Which option gave the path that a message names, in the ways in which programs and launchers print their options."""

import pytest

from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

RAISED = """Traceback (most recent call last):
  File "/job/train.py", line 9, in main
    state = torch.load(where)
FileNotFoundError: [Errno 2] No such file or directory: '{path}'
"""
FAILED = """Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/launch.py", line 231, in main
    cmd=process.args)
subprocess.CalledProcessError: Command '['/opt/venv/bin/python', '-u', 'train.py', '--init_from', 'runs/a/base.pt']' returned non-zero exit status 1.
"""


def facts_of(engine: Engine, text: str) -> dict[str, str | int | float]:
    return {fact.name: fact.value for fact in engine.triage(from_bytes(text.encode())).facts}


@pytest.mark.parametrize(
    ("printed", "option"),
    [
        ("torchrun train.py --init_from runs/a/base.pt --lr 1e-4", "--init_from"),
        ("torchrun train.py --init_from=runs/a/base.pt", "--init_from"),
        ("Namespace(lr=0.1, resume='runs/a/base.pt', seed=1)", "resume"),
        ("{'resume': 'runs/a/base.pt', 'lr': 0.1}", "resume"),
        ("INFO ###### init_from: runs/a/base.pt", "init_from"),
        ("  model.weights ......... runs/a/base.pt", "model.weights"),
        ("Loading checkpoint: runs/a/base.pt", None),  # a sentence, no option
        ("load_state(file='runs/a/base.pt')", None),  # code
        ("torchrun train.py --init_from runs/a/base.pt.old", None),
    ],
)
def test_the_option_whose_value_is_the_path(engine: Engine, printed: str, option: str | None) -> None:
    found = facts_of(engine, f"{printed}\n{RAISED.format(path='runs/a/base.pt')}")
    assert found.get("path_option") == option


def test_a_launcher_shows_the_command_line_below_the_failure(engine: Engine) -> None:
    printed = "INFO ###### init_from: runs/a/base.pt\n"
    assert facts_of(engine, printed + RAISED.format(path="runs/a/base.pt") + FAILED)["path_option"] == "--init_from"


@pytest.mark.parametrize(
    ("printed", "option", "folder"),
    [
        ("train.py --data_root /data/coco --lr 1", "--data_root", "/data/coco"),
        ("train.py --data_root /data/coco/train --data /data/coco", "--data_root", "/data/coco/train"),
        ("train.py --data_root /data", None, None),  # above too much to say anything
    ],
)
def test_an_option_may_give_a_folder_above_it(
    engine: Engine, printed: str, option: str | None, folder: str | None
) -> None:
    found = facts_of(engine, f"{printed}\n{RAISED.format(path='/data/coco/train/7.jpg')}")
    assert (found.get("folder_option"), found.get("folder_given")) == (option, folder)
    assert "path_option" not in found


def test_a_path_that_the_code_writes_itself(engine: Engine) -> None:
    raised = RAISED.format(path="runs/a/base.pt").replace("(where)", "('runs/a/base.pt')")
    assert facts_of(engine, raised)["path_in_code"] == "/job/train.py:9"
