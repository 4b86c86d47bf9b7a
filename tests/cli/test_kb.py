import json

import pytest

from app.cli.main import main


def test_check_counts_the_entries(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["problems"] == []
    assert told["entries"] >= 100


@pytest.mark.parametrize(("lang", "word"), [("en", "Causes"), ("zh", "原因")])
def test_show_prints_an_entry(lang: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "cuda.oom", "--lang", lang]) == 0
    assert word in capsys.readouterr().out


def test_an_unknown_entry_is_one_line_with_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "gpu.oom"]) == 2
    assert capsys.readouterr().err.startswith("torchtriage: no entry gpu.oom; near: cuda.oom, ")


def test_wrong_usage_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["triage", "--nope"])
    assert left.value.code == 2
