"""One part of a verdict has one label, wherever it is shown."""

from __future__ import annotations

import inspect
from pathlib import Path

import torchtriage.chat
from torchtriage.answer.brief.wording import WORDS
from torchtriage.answer.labels import LABELS
from torchtriage.client import torchtriage_client
from torchtriage.web.pages.translations import catalogue


def test_a_page_and_a_brief_take_their_labels_from_the_table() -> None:
    for name, label in LABELS.items():
        assert catalogue()[name] == label
        assert (WORDS["en"][name], WORDS["zh"][name]) == (label.en, label.zh)


def test_the_client_which_imports_nothing_writes_the_same_labels() -> None:
    source = inspect.getsource(torchtriage_client)
    for name in ("confidence", "not_in_log"):
        assert f'"  {LABELS[name].en.lower()}: ' in source


def test_no_label_is_written_a_second_time() -> None:
    package = Path(torchtriage.chat.__file__).parent.parent
    texts = [path for path in package.rglob("*") if path.suffix in (".py", ".toml", ".html")]
    assert len(texts) > 500
    for name in ("confidence", "not_in_log", "followed", "considered"):
        written = [path.name for path in texts if f'"{LABELS[name].en}"' in path.read_text("utf-8")]
        assert written == ["labels.py"], name
