"""Runs each command of the READMEs as written, in a folder with the files that it names."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_process import command
from tests.logs import steps, text, traceback

ROOT = Path(__file__).resolve().parents[1]
READMES = ("README.md", "README.zh.md")
OUT_OF_MEMORY = text(
    steps(range(2)), traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
)
GOOD = text(steps(range(2)), "Training finished")


def shown(readme: str, beginning: str) -> list[str]:
    """Returns the commands in a README's code blocks that begin with `beginning`, without comments."""
    blocks = re.findall(r"^```\n(.*?)^```$", (ROOT / readme).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith(beginning)]
    return [re.sub(r"\s+# .*", "", line) for line in lines]


COMMANDS = sorted({line for readme in READMES for line in shown(readme, ".venv/bin/torchtriage ")})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with the files and programs that the commands name."""
    (tmp_path / "slurm-4711.out").write_bytes(OUT_OF_MEMORY)
    (tmp_path / "slurm-4702.out").write_bytes(GOOD)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/rank0.log").write_bytes(OUT_OF_MEMORY)
    (tmp_path / "run.log.gz").write_bytes(gzip.compress(OUT_OF_MEMORY))
    (tmp_path / "train.py").write_text("print('step 1 loss 2.1')\n")
    program = tmp_path / "bin/torchrun"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_readme_runs(folder: Path, line: str) -> None:
    words = [sys.executable, "-m", "torchtriage.cli.main", *shlex.split(line)[1:]]
    environment = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("readme", READMES)
def test_the_curl_command_submits_a_log(folder: Path, readme: str) -> None:
    (line,) = shown(readme, "curl ")
    with command("serve", folder / "data") as server:
        words = shlex.split(line.replace(":8000", f":{server.port}"))
        done = subprocess.run([*words, "-sS"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert '"id":"1"' in done.stdout


def test_both_readmes_show_the_same_commands_and_existing_make_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    ours = [[line.replace(" --lang zh", "") for line in shown(readme, ".venv/")] for readme in READMES]
    assert ours[0] == ours[1]
    for readme in READMES:
        named = {line.split()[1] for line in shown(readme, "make ")}
        assert named == {"serve", "test"}
        assert named <= targets


@pytest.mark.parametrize("readme", READMES)
def test_every_page_that_a_readme_links_to_exists(readme: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / readme).read_text("utf-8"))
    assert len(links) > 10
    assert not [link for link in links if not (ROOT / link).exists()]
