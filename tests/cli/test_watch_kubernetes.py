from __future__ import annotations

from pathlib import Path

import pytest

from torchtriage.cli.main import main

URL = ["--url", "http://127.0.0.1:9"]


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TORCHTRIAGE_URL", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(("arguments", "said"), [
    ([], "TORCHTRIAGE_URL is not set"),
    (["--url", "triage.example.org"], "not a URL that starts with http:// or https://"),
    ([*URL, "--kubeconfig", "missing"], "no cluster to watch: "),
    ([*URL, "--context", "missing"], "no cluster to watch: "),
])  # fmt: skip
def test_a_wrong_setting_is_one_line_and_status_2(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch-kubernetes", "--folder", str(tmp_path), *arguments]) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1
