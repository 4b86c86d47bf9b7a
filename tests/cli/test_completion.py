from __future__ import annotations

import subprocess

import pytest

from torchtriage.cli.main import COMMANDS, main

BASH = """
source /dev/stdin
COMP_WORDS=({words}) COMP_CWORD={at}
_shtab_torchtriage
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_knows_every_command_and_option(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = script(shell, capsys)
    assert not [name for name in (*COMMANDS, "search", "dry-run", "no-redact") if name not in printed]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["torchtriage", "tri"], {"triage", "triage-archive"}),
        (["torchtriage", "kb", "s"], {"search", "show", "schema"}),
        (["torchtriage", "triage", "--no"], {"--no-redact"}),
    ],
)
def test_bash_completes(words: list[str], expected: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = BASH.format(words=" ".join(words), at=len(words) - 1)
    done = subprocess.run(
        ["bash", "--norc", "-c", code], input=script("bash", capsys), capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == expected


def test_a_path_is_completed_with_file_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert "_shtab_torchtriage_triage_pos_0_COMPGEN=_shtab_compgen_files" in script("bash", capsys)


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "csh"])
    assert ended.value.code == 2
    assert "invalid choice" in capsys.readouterr().err
