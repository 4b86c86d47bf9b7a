import json
from pathlib import Path

import pytest

from tests.built_in import built_in_knowledge
from torchtriage.cli.main import main
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.loader import load


@pytest.mark.slow
def test_check_counts_the_entries_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "check", "--json", "checkpoint.size-mismatch"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["entries"], told["problems"]) == (1, [])
    assert told["cases"] >= 1


@pytest.mark.slow
def test_check_counts_the_entries(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["problems"] == []
    assert told["entries"] >= 100


def test_check_of_one_entry_prints_what_its_cases_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "check", "checkpoint.size-mismatch", "--unproved"]) == 0
    told = capsys.readouterr().out
    assert "checkpoint.size-mismatch, the example of case other-number-of-classes:\n  The checkpoint has 1000 " in told
    assert "  2. To test or resume, build the model with 1000 classes, as it was trained." in told
    assert "1 entry and " in told
    assert " matched by no example of their entry" in told


def test_check_of_an_unknown_entry_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "check", "gpu.oom"]) == 2
    assert capsys.readouterr().err.startswith("torchtriage: no entry gpu.oom; similar: cuda.oom")


def test_show_prints_the_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "checkpoint.size-mismatch"]) == 0
    told = capsys.readouterr().out
    assert "Cases (the first that applies is shown)\n  1. " in told
    assert "other number of classes" in told


@pytest.mark.parametrize(("lang", "word"), [("en", "Causes"), ("zh", "原因")])
def test_show_prints_an_entry(lang: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "cuda.oom", "--lang", lang]) == 0
    assert word in capsys.readouterr().out


@pytest.mark.parametrize(("lang", "word"), [("en", "Prevention"), ("zh", "如何预防")])
def test_show_says_how_to_prevent_it(lang: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = built_in_knowledge().entries["cuda.oom"].prevent[0]
    main(["kb", "show", "cuda.oom", "--lang", lang])
    shown = capsys.readouterr().out
    assert word in shown
    assert getattr(told, lang) in shown


def test_an_unknown_entry_is_one_line_with_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "gpu.oom"]) == 2
    assert capsys.readouterr().err.startswith("torchtriage: no entry gpu.oom; similar: cuda.oom, ")


def test_wrong_usage_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["triage", "--nope"])
    assert left.value.code == 2


@pytest.mark.parametrize(("lang", "title"), [("en", "The loss became NaN or infinite"), ("zh", "loss 变成")])
def test_search_lists_entries_best_first(lang: str, title: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "search", "loss", "变成", "nan", "--json", "--lang", lang]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"entry", "title", "score"} == set(found[0])
    assert found[0]["entry"] == "numerics.nan-loss"
    assert found[0]["title"].startswith(title)
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)


def test_search_has_output_for_people_too(capsys: pytest.CaptureFixture[str]) -> None:
    main(["kb", "search", "cuda out of memory"])
    assert "cuda.oom " in capsys.readouterr().out.splitlines()[0]
    main(["kb", "search", "zzzqq"])
    assert "no entry fits" in capsys.readouterr().out
    main(["kb", "search", "zzzqq", "--json"])
    assert json.loads(capsys.readouterr().out) == []


def test_the_schema_is_the_one_that_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "schema"]) == 0
    assert capsys.readouterr().out == (BUILT_IN / "schema.json").read_text(encoding="utf-8")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own knowledge."""
    monkeypatch.setenv("TRIAGE_KNOWLEDGE_DIRS", str(tmp_path))
    return tmp_path


def test_new_writes_a_template_to_fill_in(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "new", "quantum.flux-lost"]) == 0
    path = own / "quantum" / "flux-lost.yaml"
    assert capsys.readouterr().out.startswith(f"{path}:8\n")
    assert load([own]).entries["quantum.flux-lost"].title.en.startswith("TODO")


def test_new_takes_sign_and_example_from_a_log(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = own / "run.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nflux.Lost: tube 17 is empty now\n'
    )
    assert main(["kb", "new", "quantum.flux-lost", "--from", str(log), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entry"] == "quantum.flux-lost"
    case = load([own]).entries["quantum.flux-lost"].cases[0]
    assert case.id == "tube-empty-now"
    assert case.example == log.read_text().strip()
    assert [sign.regex for sign in case.signs] == [r"Lost: tube (?P<tube>\d+) is empty now"]


@pytest.mark.slow
def test_new_adds_a_case_to_a_copy_of_a_built_in_entry(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = own / "run.log"
    log.write_text("step 1 loss 2.0\nworker 3 fell asleep\nflux.Lost: tube 17 is empty now\n")
    add = ["kb", "new", "cuda.oom", "--case", "asleep", "--from", str(log), "--line", "2"]
    assert main(add) == 0
    path = own / "cuda" / "oom.yaml"
    told = capsys.readouterr().out
    assert f"{path} is a copy of the built-in entry and replaces it\n{path}:" in told
    added = [case for case in load([own]).entries["cuda.oom"].cases if case.id == "asleep"]
    assert [(sign.regex, sign.where) for case in added for sign in case.signs] == [
        (r"worker (?P<worker>\d+) fell asleep", "line")
    ]
    assert main(add) == 2
    assert "already has a case 'asleep'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["cuda.oom"], "cuda.oom exists already"),
        (["Cuda/oom"], "is not a valid entry id"),
        (["new.entry", "--from", "/nowhere.log"], "/nowhere.log"),
        (["new.entry", "--line", "3"], "--line needs --from LOG"),
        (["new.entry", "--case", "A b"], "'A b' is not a valid case id"),
    ],
)
def test_new_refuses_in_one_line(
    arguments: list[str], reason: str, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kb", "new", *arguments]) == 2
    told = capsys.readouterr().err
    assert reason in told
    assert told.count("\n") == 1
    assert not list(own.iterdir())


def test_the_roles_of_an_entry_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "nccl.timeout", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["roles"] == ["distributed-symptom", "timeout"]


def test_an_entry_that_names_a_failure_in_a_good_run_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = "step 1 loss 2.5\nstep 2 loss 2.4\ntraining finished\n"
    (tmp_path / "good.log").write_text(good)
    assert main(["kb", "check", "--negative", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "1 run, 0 false alarms\n"
    error = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB."
    (tmp_path / "probed.log").write_text(f"step 1 loss 2.5\n{error}\n")
    assert main(["kb", "check", "--negative", str(tmp_path)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"{tmp_path / 'probed.log'}:2: cuda.oom/")
    assert told[0].endswith(f": {error}")
    assert told[1] == "2 runs, 1 false alarm"
    assert main(["kb", "check", "nccl.timeout", "--negative", str(tmp_path)]) == 0  # cuda.oom is not asked for
    assert main(["kb", "check", "--json", "--negative", str(tmp_path)]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["runs"] == 2


def test_a_folder_of_good_runs_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    assert main(["kb", "check", "--negative", str(tmp_path / "good")]) == 1
    assert "not read: " in capsys.readouterr().out
    assert main(["kb", "check", "--negative", str(tmp_path / "bad")]) == 2
    assert capsys.readouterr().err == f"torchtriage: --negative: {tmp_path / 'bad'}: no such file or folder\n"
