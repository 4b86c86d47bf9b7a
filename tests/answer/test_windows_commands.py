"""Answers to logs from Windows show commands that PowerShell runs."""

from __future__ import annotations

import pytest

from tests.built_in import built_in_engine, vocabulary
from torchtriage.answer.localized_verdict import localized
from torchtriage.answer.windows_commands import windows_command
from torchtriage.reading.sources import from_bytes


@pytest.mark.parametrize(
    ("run", "shown"),
    [
        ("export A=1 B=x,y C=2", '$env:A = "1"; $env:B = "x,y"; $env:C = "2"'),
        (
            "CUDA_VISIBLE_DEVICES=0 HF_HUB_OFFLINE=1 python t.py",
            '$env:CUDA_VISIBLE_DEVICES = "0"; $env:HF_HUB_OFFLINE = "1"; python t.py',
        ),
        ("pip list | grep -iE 'hydra|omegaconf'", "pip list | Select-String 'hydra|omegaconf'"),
        ('grep -rnE "rank *==" --include=*.py .', 'Get-ChildItem -Recurse -Filter *.py | Select-String "rank *=="'),
        ("ls -l 'D:\\a b\\c.pt'", None),
        ("ls -l data/c.pt", "Get-ChildItem data/c.pt"),
        ("pip uninstall -y apex && python t.py", "pip uninstall -y apex; python t.py"),
        ("sudo dmesg -T | grep -iE 'xid|NVRM'", None),
        ("df -h /dev/shm; ls -lhS /dev/shm | head", None),
        ("export LD_LIBRARY_PATH=$CONDA_PREFIX/lib:$LD_LIBRARY_PATH", None),
        ("nvidia-smi", "nvidia-smi"),
        ("torch.load(path, weights_only=False)", "torch.load(path, weights_only=False)"),
    ],
)
def test_command_is_written_for_powershell_or_left_out(run: str, shown: str | None) -> None:
    assert windows_command(run, vocabulary()) == shown


def log(train: str, library: str) -> bytes:
    return f"""Traceback (most recent call last):
  File "{train}", line 61, in step
    loss.backward()
  File "{library}", line 525, in backward
    torch.autograd.backward(
RuntimeError: CUDA error: device-side assert triggered
""".encode()


@pytest.mark.parametrize(
    ("train", "library", "run"),
    [
        (r"D:\p\train.py", r"C:\env\lib\site-packages\torch\_tensor.py", '$env:CUDA_LAUNCH_BLOCKING = "1"'),
        ("/p/train.py", "/env/lib/python3.11/site-packages/torch/_tensor.py", "export CUDA_LAUNCH_BLOCKING=1"),
    ],
)
def test_traceback_with_windows_paths_gets_commands_of_windows(train: str, library: str, run: str) -> None:
    engine = built_in_engine()
    verdict = engine.triage(from_bytes(log(train, library)))
    for answer in (verdict.answer, localized(verdict, engine.knowledge, "zh").answer):
        assert answer is not None
        assert run in [step.run for step in answer.steps]
