import gzip
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.logs import BANNER, agent, report, steps, text, traceback
from torchtriage.cli.main import main
from torchtriage.reading.zstd import ZstdFile

FAILED = text(BANNER, steps([0]), traceback("KeyError: 'image'", prefix="[rank0]: "), agent(1), report((0, 1)))
HEALTHY = text(BANNER, steps([0]), "training finished")


def write(path: Path, data: bytes) -> Path:
    if path.name.endswith(".tar.gz"):
        plain = write(path.parent / "run.log", data)
        with tarfile.open(path, "w:gz") as archive:
            archive.add(plain, "run.log")
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(data))
    elif path.suffix == ".zst":
        with ZstdFile(path, "w") as file:
            file.write(data)
    else:
        path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["run.log", "run.log.gz", "run.log.zst", "run.tar.gz"])
def test_each_form_gives_the_same_verdict(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / name, FAILED)
    assert main(["triage", "--json", str(path)]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["source"], verdict["root_cause"]["entry"]) == (str(path), "usage.python-error")


def test_the_json_has_every_name_of_the_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["triage", "--json", str(write(tmp_path / "run.log", FAILED))])
    verdict = json.loads(capsys.readouterr().out)
    assert set(verdict) >= {"source", "outcome", "signature", "fingerprint", "root_cause", "candidates", "cascades", "action",
                            "run", "attempts", "earlier_runs", "warnings", "stats", "engine", "knowledge"}  # fmt: skip
    assert set(verdict["root_cause"]) >= {"entry", "title", "confidence", "score", "rank", "local_rank", "host", "attempt", "time",
                                          "evidence", "exception", "causes", "fixes", "references", "reasons"}  # fmt: skip
    assert set(verdict["action"]) == {"retry", "advice", "exclude_hosts", "reason"}
    assert set(verdict["run"]) >= {
        "launcher",
        "world_size",
        "hosts",
        "attempts",
        "phase",
        "step",
        "versions",
        "started",
        "ended",
        "exit_code",
    }
    assert verdict["root_cause"]["time"] is None or "T" in verdict["root_cause"]["time"]
    assert verdict["run"]["started"] == "2026-05-01T09:00:00.100000"


def test_prevention_is_shown_to_people_and_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path / "run.log", text(BANNER, steps([0]), "torch.OutOfMemoryError: CUDA out of memory.")))
    main(["triage", "--json", path])
    prevent = json.loads(capsys.readouterr().out)["root_cause"]["prevent"]
    assert prevent
    main(["triage", path])
    assert prevent[0] not in capsys.readouterr().out
    main(["triage", "--all", path])
    shown = capsys.readouterr().out
    assert "Prevention" in shown
    assert prevent[0] in shown


def test_all_is_for_people(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["triage", "--all", "--json", str(write(tmp_path / "run.log", FAILED))])
    assert ended.value.code == 2


def test_several_paths_have_a_first_screen_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(write(tmp_path / name, log)) for name, log in (("a.log", FAILED), ("b.log", HEALTHY))]
    main(["triage", *paths])
    first, second = capsys.readouterr().out.split("\n\n", 1)
    assert first.startswith(paths[0])
    assert second.startswith(f"{paths[1]}\nThe log shows no failure.\n")


def test_one_line_a_path_in_order_and_the_others_are_still_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, gone, fine = write(tmp_path / "a.log", FAILED), tmp_path / "gone.log", write(tmp_path / "b.log", HEALTHY)
    assert main(["triage", "--json", str(good), str(gone), str(fine)]) == 2
    captured = capsys.readouterr()
    assert [json.loads(line)["outcome"] for line in captured.out.splitlines()] == ["explained", "healthy"]
    assert captured.err == f"torchtriage: {gone}: no such file or folder\n"


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("core.bin", bytes(range(256)) * 100, "binary data"),
        ("cut.log.gz", cut(gzip.compress(FAILED)), "ends in the middle"),
        ("no.log.gz", b"not gzip", "not a .gz archive"),
        ("no.log.zst", b"not zstd", "not a .zst archive"),
        ("no.tar.gz", b"not a tar", "not a .gz archive"),
    ],
)
def test_bad_input_is_one_line_that_names_path_and_reason(
    name: str, data: bytes, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert main(["triage", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"torchtriage: {path}: ")
    assert reason in line


def test_a_folder_without_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triage", str(tmp_path)]) == 2
    assert "no logs in this folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "status"), [(HEALTHY, 0), (FAILED, 11), (text(BANNER, steps([0]), agent(-9), report((0, -9))), 10)]
)
def test_the_verdict_as_an_exit_status(data: bytes, status: int, tmp_path: Path) -> None:
    assert main(["triage", "--exit-code", str(write(tmp_path / "run.log", data))]) == status


@pytest.mark.parametrize(("lang", "words"), [("en", "Do          1. "), ("zh", "怎么办   1. ")])
def test_the_page_for_people(lang: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["triage", "--lang", lang, str(write(tmp_path / "run.log", FAILED))])
    page = capsys.readouterr().out
    assert words in page
    assert "[rank0]: KeyError: 'image'" in page
    assert "\x1b" not in page


def test_own_knowledge_beside_the_built_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kb" / "site"
    folder.mkdir(parents=True)
    (folder / "jammed.yaml").write_text(
        "id: site.jammed\nkind: cause\narea: site\nowner: user\ntitle: {en: The widget jammed, zh: 部件卡住}\n"
        "signs: [{text: WidgetJammed}]\naction: {advice: fix-first, retry: no}\n"
        "causes: [{en: It jammed., zh: 卡住了。}]\nfixes: [{title: {en: Free it, zh: 松开它}}]\n"
        "examples: {match: ['WidgetJammed: spindle']}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("TRIAGE_KNOWLEDGE_DIRS", str(tmp_path / "kb"))
    path = write(tmp_path / "run.log", text(BANNER, traceback("frob.WidgetJammed: spindle 4")))
    main(["triage", "--json", str(path)])
    assert json.loads(capsys.readouterr().out)["root_cause"]["entry"] == "site.jammed"


def test_a_start_loads_nothing_of_the_service(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "run.log", HEALTHY)
    assert main(["triage", str(path)]) == 0  # so that the knowledge base is in the cache

    code = "import sys; from torchtriage.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    told = subprocess.run([sys.executable, "-c", code, "triage", str(path)], capture_output=True, text=True, check=True)

    loaded = {name.partition(".")[0] for name in told.stderr.split()}
    heavy = {"fastapi", "sqlalchemy", "pydantic", "yaml", "jinja2", "obstore", "psycopg", "concurrent", "rapidfuzz"}
    assert "hyperscan" in loaded
    assert loaded & heavy == set()


TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
LEAKING = f'Traceback (most recent call last):\n  File "/job/train.py", line 3, in <module>\n    login("{TOKEN}")\nRuntimeError: no {TOKEN}\n'


@pytest.mark.parametrize("form", [["--json"], []])
def test_the_output_contains_no_secret(form: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path / "run.log", LEAKING.encode()))
    assert main(["triage", *form, path]) == 0
    told = capsys.readouterr()
    assert "[redacted" in told.out
    assert TOKEN not in told.out
    assert told.err == ""
    assert main(["triage", *form, "--no-redact", path]) == 0
    told = capsys.readouterr()
    assert TOKEN in told.out
    assert told.err.count("\n") == 1
    assert "WARNING" in told.err
    assert "--no-redact" in told.err


@pytest.mark.parametrize("path", [[], ["-"]])
def test_a_closed_standard_input_is_one_line(
    path: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # what Python makes of `<&-`
    assert main(["triage", *path]) == 2
    assert capsys.readouterr().err == "torchtriage: -: standard input is closed\n"
