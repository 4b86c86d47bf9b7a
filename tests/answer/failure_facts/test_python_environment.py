"""In what the program ran, as its frames show."""

from tests.logs import text, traceback
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

SITE = "/home/ada/miniconda3/envs/fit/lib/python3.11/site-packages"


def facts(engine: Engine, lines: list[str]) -> dict[str, object]:
    verdict = engine.triage(from_bytes(text("epoch 1 step 3 loss 2.1", lines)))
    return {fact.name: fact.value for fact in verdict.facts}


def test_frameworks_environment_and_python_are_in_the_paths(engine: Engine) -> None:
    found = facts(
        engine,
        traceback(
            "KeyError: 'labels'",
            [
                ("/job/train.py", 30, "<module>", "trainer.train()"),
                (f"{SITE}/transformers/trainer.py", 2052, "train", "return inner_training_loop("),
                (f"{SITE}/deepspeed/runtime/engine.py", 1846, "forward", "loss = self.module(*inputs, **kwargs)"),
                ("/job/model.py", 71, "forward", 'return self.loss(out, batch["labels"])'),
            ],
        ),
    )
    assert found["frameworks"] == "DeepSpeed, Trainer"
    assert (found["environment"], found["python_version"]) == ("/home/ada/miniconda3/envs/fit", "3.11")


def test_what_pip_installed_for_a_user_contains_no_python(engine: Engine) -> None:
    user_site = "/home/ada/.local/lib/python3.8/site-packages"
    frames = [
        ("/job/train.py", 30, "<module>", "model = torch.hub.load(REPO, NAME)"),
        (f"{user_site}/torch/hub.py", 587, "_load_local", "model = entry(*args, **kwargs)"),
    ]
    found = facts(engine, traceback("RuntimeError: no such model", frames))
    assert ("environment" in found, found["python_version"]) == (False, "3.8")


def test_a_program_that_pip_installed_is_not_the_users(engine: Engine) -> None:
    found = facts(
        engine,
        traceback(
            "ValueError: bad setting",
            [
                ("/home/ada/miniconda3/envs/fit/bin/accelerate", 8, "<module>", "sys.exit(main())"),
                (f"{SITE}/accelerate/commands/accelerate_cli.py", 50, "main", "args.func(args)"),
            ],
        ),
    )
    assert "where" not in found


def test_a_line_that_only_raises_is_not_code_to_show(engine: Engine) -> None:
    found = facts(
        engine,
        traceback(
            "ValueError: unknown optimizer lion",
            [
                ("/job/train.py", 30, "<module>", "optimizer = build(args.optimizer)"),
                ("/job/optim.py", 7, "build", 'raise ValueError(f"unknown optimizer {name}")'),
            ],
        ),
    )
    assert "code" not in found
    assert (found["where"], found["caller_code"]) == ("/job/optim.py:7", "optimizer = build(args.optimizer)")


def test_the_environment_in_which_a_package_is_built_is_not_the_jobs(engine: Engine) -> None:
    build = "/home/ada/.cache/uv/builds-v0/.tmpEHrRRA/lib/python3.11/site-packages/setuptools/build_meta.py"
    overlay = "/tmp/pip-build-env-k2v0p3ab/overlay/lib/python3.11/site-packages/setuptools/build_meta.py"
    for path in (build, overlay):
        lines = traceback("ModuleNotFoundError: No module named 'torch'", [(path, 512, "run_setup", "exec(code)")])
        assert "environment" not in facts(engine, lines)


def test_a_command_after_variables_is_of_the_environment_too(engine: Engine) -> None:
    lines = traceback(
        "ImportError: /opt/venv/lib/python3.10/site-packages/deepspeed/ops/lamb/fused_lamb_op.cpython-310-x86_64-linux-gnu.so: "
        "undefined symbol: _ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
        [("/job/train.py", 3, "<module>", "engine, *_ = deepspeed.initialize(config=config)")],
    )
    answer = engine.triage(from_bytes(text("DeepSpeed info: version=0.17.2, git-hash=unknown", lines))).answer
    assert answer is not None
    assert (answer.steps[0].run or "").startswith("DS_BUILD_OPS=0 /opt/venv/bin/pip install ")
