"""A prompt stands before what is run in a shell, and before nothing else that a step shows."""

import re

import pytest

from tests.built_in import built_in_knowledge
from torchtriage.answer.shell_prompt import is_shell_command, with_prompt
from torchtriage.client import torchtriage_client

# The first words of most commands, and how Python and settings that are no commands start.
COMMAND = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:pip|export|torchrun|nvidia-smi|grep|sudo|ls|kubectl|ssh|srun|scontrol|docker) "
)
CODE = re.compile(
    r"@|#|\[|\w+ = |[\w.]+\(|[\w.]+\[|(?:with|def|class|lambda|async|await|assert) |(?:if|for) [^;]*:( |$)"
    r"|from [\w.]+ import |import \w|\w+: "
)


def runs() -> list[str]:
    """Returns what the steps, fixes and checks of the knowledge base show."""
    entries = built_in_knowledge().entries.values()
    steps = {step.run for entry in entries for case in entry.cases for step in case.steps if step.run}
    fixes = {command for entry in entries for fix in entry.fixes for command in fix.commands}
    return sorted(steps | fixes | {check for entry in entries for check in entry.checks})


@pytest.mark.parametrize(
    "run",
    [
        "nvidia-smi",
        "hostname",
        "free -g; ulimit -v",
        "ls -l a/b",
        'pip install "x<2"',
        "export A=1",
        "A=1 torchrun … train.py",
        "sort < names",
        "for h in a b; do ssh $h id; done",
        "command -v {program}",
    ],
)
def test_a_shell_command_is_shown_after_a_prompt(run: str) -> None:
    assert with_prompt(run) == f"$ {run}"


@pytest.mark.parametrize(
    "run",
    [
        "print(x.shape)",
        "batch = next(it)",
        "with torch.no_grad():",
        '"offload_optimizer": {"device": "cpu"}',
        "--node_rank 0",
        "fsdp_sync_module_states: true",
        "from a import b",
        "@torch.compiler.disable",
        "Arguments(fp16=True, bf16=False, …)",
        "Loader(…, workers=2)   # as many as cores",
        'with torch.autocast("cuda"): …',
        'mesh["dp"]',
        "model.module.{attribute}",
        "{loader} = iter({loader})",
        "a if b else c",
        "x.step(y) == z",
        "padding=True, max_length=512",
        "def f(x): return x",
        "while True:\n    step()",
        "[part.cpu() for part in parts]",
        "#SBATCH --mem=32G",
        "data.max_length=512 data.truncation=right",
        "+model.layers=0",
        "model/head=linear",
        "SOLVER.LIMIT 2 SOLVER.RATE 0.1",
        "weights: 0.5,0.5",
        "request_memory = 480GB",
        "USER 1000",
    ],
)
def test_code_settings_and_options_are_shown_without_a_prompt(run: str) -> None:
    assert with_prompt(run) == run


@pytest.mark.parametrize("run", ['$env:CUDA_LAUNCH_BLOCKING = "1"', "Get-ChildItem data", "Remove-Item Env:HF_TOKEN"])
def test_a_powershell_command_is_shown_after_its_prompt(run: str) -> None:
    assert with_prompt(run) == f"PS> {run}"


def test_the_prompts_of_the_knowledge_base_are_before_its_commands_only() -> None:
    shown = runs()
    assert [run for run in shown if COMMAND.match(run) and not is_shell_command(run)] == []
    assert [run for run in shown if CODE.match(run) and is_shell_command(run)] == []


def test_the_client_puts_the_same_prompts() -> None:
    shown = [run for run in runs() if "{" not in run]
    assert [run for run in shown if torchtriage_client._prompt(run) + run != with_prompt(run)] == []
