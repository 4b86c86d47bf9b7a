"""One secret in each way that a log can hold it, and a look at all that the command line prints or sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.language_model import claims, model
from tests.web.test_no_secret_leaves import LOGS, meanings, secret_of, telling
from torchtriage.cli.main import main

WAYS = {way: secret_of(number) for number, way in enumerate(LOGS)}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns by way the path of a log that nobody has redacted."""
    folder = tmp_path_factory.mktemp("logs")
    paths = {}
    for number, (way, log) in enumerate(LOGS.items()):
        paths[way] = str(folder / f"{number}.log")
        Path(paths[way]).write_bytes(log(WAYS[way]))
    return paths


def leaks(said: str) -> list[str]:
    told = [*meanings(said.encode())]
    return [way for way, secret in WAYS.items() if any(telling(way, secret) in meaning for meaning in told)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["triage"],
        ["triage", "--json"],
        ["triage", "--all"],
        ["triage", "--trace"],
        ["brief"],
        ["brief", "--lang", "zh"],
    ],
    ids=" ".join,
)
def test_the_output_for_any_log(logs: dict[str, str], command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, *logs.values()]) == 0
    said = capsys.readouterr()
    assert said.out.count("WidgetError") >= len(LOGS)
    assert leaks(said.out + said.err) == []


@pytest.mark.parametrize(
    "way", ["a name in an archive", "entities in a line", "escapes of JSON", "percent signs in a line"]
)
def test_why_an_entry_did_not_match(logs: dict[str, str], way: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "why", "--json", "cuda.oom", logs[way]]) == 0
    said = capsys.readouterr().out
    assert '"file":' in said
    assert leaks(said) == []


@pytest.mark.parametrize("way", ["entities in a line", "percent signs in a line", "the message"])
def test_text_to_and_from_a_model(
    logs: dict[str, str], way: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with model() as fake:
        fake.says = lambda _: claims({"says": f"It used {WAYS[way]}."})
        monkeypatch.setenv("TRIAGE_LLM_URL", fake.url)
        monkeypatch.setenv("TRIAGE_LLM_MODEL", "m-1")
        assert main(["explain", logs[way]]) == 0
        assert "WidgetError" in fake.sent
        assert leaks(fake.sent + capsys.readouterr().out) == []
