"""Which module an import did not find."""

import pytest

from tests.logs import text, traceback
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes


def facts(engine: Engine, module: str, file: str = "/job/tools/train.py") -> dict[str, object]:
    lines = traceback(f"ModuleNotFoundError: No module named '{module}'", [(file, 3, "<module>", f"import {module}")])
    verdict = engine.triage(from_bytes(text("W launcher starts 2 workers, world_size=2", lines)))
    return {fact.name: fact.value for fact in verdict.facts}


@pytest.mark.parametrize(
    ("module", "package"),
    [("cv2", "opencv-python-headless"), ("PIL.Image", "pillow"), ("google.protobuf", "protobuf"), ("einops", "einops")],
)
def test_a_known_module_is_reported_by_the_name_that_pip_knows(engine: Engine, module: str, package: str) -> None:
    found = facts(engine, module)
    assert (found["module"], found["package"], "own_module" in found) == (module, package, False)


@pytest.mark.parametrize("module", ["utils.dist", "job.data"])
def test_a_module_of_the_project_is_not_a_package(engine: Engine, module: str) -> None:
    found = facts(engine, module)
    assert (found["own_module"], "package" in found) == (module, False)


def test_the_folder_that_holds_an_own_module_is_put_on_the_path(engine: Engine) -> None:
    lines = traceback(
        "ModuleNotFoundError: No module named 'fitkit'",
        [("/home/ada/llm/src/fitkit/launch.py", 3, "<module>", "from fitkit.train import run")],
    )
    verdict = engine.triage(from_bytes(text("W launcher starts 2 workers, world_size=2", lines)))
    assert {fact.name: fact.value for fact in verdict.facts}["own_root"] == "/home/ada/llm/src"
    assert verdict.answer is not None
    assert verdict.answer.steps[0].run == "export PYTHONPATH=/home/ada/llm/src:$PYTHONPATH"


SITE = "/opt/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("message", "file", "damaged"),
    [
        (f"cannot import name 'is_npu' from 'accelerate.utils' ({SITE}/accelerate/utils.py)", "accelerate/state.py", True),
        ("module 'accelerate.utils' has no attribute 'is_npu'", "accelerate/state.py", True),
        (f"cannot import name 'is_npu' from 'accelerate.utils' ({SITE}/accelerate/utils.py)", "trl/core.py", False),
        ("cannot import name 'a' from partially initialized module 'accelerate.utils'", "accelerate/state.py", False),
    ],
)  # fmt: skip
def test_a_package_whose_own_files_do_not_fit_is_damaged(
    engine: Engine, message: str, file: str, damaged: bool
) -> None:
    kind = "ImportError" if message.startswith("cannot") else "AttributeError"
    lines = traceback(
        f"{kind}: {message}",
        [("/job/train.py", 3, "<module>", "import accelerate"), (f"{SITE}/{file}", 9, "<module>", "from .utils import is_npu")],
    )  # fmt: skip
    verdict = engine.triage(from_bytes(text("W launcher starts 2 workers, world_size=2", lines)))
    found = {fact.name: fact.value for fact in verdict.facts}
    assert (found.get("damaged_package") == "accelerate") == damaged
    assert verdict.answer is not None
    assert (verdict.answer.case == "files-of-two-releases") == damaged


def test_who_asked_a_module_for_a_name_is_not_the_function_that_looks_it_up(engine: Engine) -> None:
    frames = [
        (f"{SITE}/ray/tune/logger.py", 24, "<module>", "np.bool9"),
        (f"{SITE}/numpy/__init__.py", 410, "__getattr__", 'raise AttributeError("module {!r} has no attribute "'),
    ]
    lines = traceback("AttributeError: module 'numpy' has no attribute 'bool9'", frames)
    verdict = engine.triage(from_bytes(text("W launcher starts 2 workers, world_size=2", lines)))
    assert "damaged_package" not in {fact.name for fact in verdict.facts}


@pytest.mark.parametrize(
    ("module", "file", "damaged"),
    [
        ("accelerate.tracking.board", "accelerate/state.py", True),
        ("accelerate.tracking.board", "trl/core.py", False),
        ("accelerate", "accelerate/state.py", False),
    ],
)
def test_a_package_that_lacks_a_module_of_its_own_is_damaged(
    engine: Engine, module: str, file: str, damaged: bool
) -> None:
    lines = traceback(
        f"ModuleNotFoundError: No module named '{module}'",
        [("/job/train.py", 3, "<module>", "import accelerate"), (f"{SITE}/{file}", 9, "<module>", "from .tracking import board")],
    )  # fmt: skip
    verdict = engine.triage(from_bytes(text("W launcher starts 2 workers, world_size=2", lines)))
    assert ("damaged_package" in {fact.name for fact in verdict.facts}) == damaged
    assert verdict.answer is not None
    assert (verdict.answer.case == "own-part-missing") == damaged


def test_of_any_other_module_nothing_is_claimed(engine: Engine) -> None:
    found = facts(engine, "fastlib_kernels")
    assert (found["module"], "package" in found, "own_module" in found) == ("fastlib_kernels", False, False)


def test_the_worker_that_raised_is_a_fact(engine: Engine) -> None:
    inner = traceback("KeyError: 7", [("/job/data.py", 9, "__getitem__", "return self.names[label]")])
    outer = traceback(
        "KeyError: Caught KeyError in DataLoader worker process 3.\nOriginal " + "\n".join(inner),
        [("/job/train.py", 30, "<module>", "for batch in loader:")],
    )
    verdict = engine.triage(from_bytes(text("epoch 1 step 3 loss 2.1", outer)))
    assert {fact.name: fact.value for fact in verdict.facts}["worker"] == "3"
    assert verdict.answer is not None
    assert "in DataLoader worker 3" in verdict.answer.says


def test_where_no_entry_knows_the_failure_the_line_to_look_at_is_named(engine: Engine) -> None:
    lines = traceback(
        "ShardError: shard 3 has a bad header",
        [
            ("/job/train.py", 30, "<module>", "rows = load(3)"),
            ("/job/shards.py", 7, "load", "raise ShardError(f'shard {i} has a bad header')"),
        ],
    )
    answer = engine.triage(from_bytes(text("epoch 1 step 3 loss 2.1", lines))).answer
    assert answer is not None
    assert answer.says.startswith("ShardError: shard 3 has a bad header. Raised at /job/shards.py:7, called from")
    assert [step.do for step in answer.steps] == [
        "Read the condition above /job/shards.py:7; the call was `rows = load(3)` at /job/train.py:30."
    ]


@pytest.mark.parametrize(
    ("message", "files", "folder", "above"),
    [
        ("No module named 'boxops._C'", ["/home/ada/src/boxops/__init__.py"], "/home/ada/src/boxops", "/home/ada/src"),
        ("No module named 'boxops._C'", ["/job/train.py", f"{SITE}/boxops/ops.py"], f"{SITE}/boxops", SITE),
        ("cannot import name '_C' from 'boxops'", ["/job/train.py", "boxops/__init__.py"], "boxops", "."),
        ("No module named 'boxops._C'", ["/home/ada/boxops/train.py"], None, None),  # a script, imported from nowhere
    ],
)
def test_the_folder_out_of_which_a_package_is_taken(
    engine: Engine, message: str, files: list[str], folder: str | None, above: str | None
) -> None:
    frames = [(file, 3, "<module>", "import boxops._C") for file in files]
    verdict = engine.triage(
        from_bytes(text("W launcher starts 2 workers", traceback(f"ImportError: {message}", frames)))
    )
    found = {fact.name: fact.value for fact in verdict.facts}
    assert (found.get("imported_from"), found.get("imported_above")) == (folder, above)
