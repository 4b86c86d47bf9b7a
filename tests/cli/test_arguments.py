"""What several commands have in common: their own commands, and limits on numbers."""

from __future__ import annotations

import pytest

from torchtriage.cli.main import main


@pytest.mark.parametrize(
    ("words", "listed"),
    [(["kb"], "search"), (["kb", "pack"], "install"), (["db"], "upgrade"), (["token"], "revoke")],
)
def test_a_command_without_its_own_command_lists_them(
    words: list[str], listed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert f"\n    {listed} " in printed.err


@pytest.mark.parametrize("value", ["ten", "-1", "1.5", "0", "9" * 4000])
def test_a_number_outside_its_limits_is_quoted(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["token", "create", "ci", "--scope", "read", f"--days={value}"])
    assert stopped.value.code == 2
    assert f"{value!r} must be a whole number from 1 to 36500" in capsys.readouterr().err
