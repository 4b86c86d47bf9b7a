import json

import pytest

from tests.logs import traceback
from torchtriage.reading.unwrap import quoted_strings
from torchtriage.reading.unwrap.quoted_strings import is_quoted, lines_in_strings, quoted_lines, unescaped

LINES = ["step 1 of 'vit'", *traceback('ValueError: no "label" in C:\\data\\n7 – é')]
TEXT = "\n".join(LINES)


@pytest.mark.parametrize(
    "content",
    [json.dumps(TEXT), repr(TEXT), repr(TEXT.encode()), json.dumps(LINES), repr(LINES), json.dumps(LINES, indent=1)],
)
def test_the_lines_come_back_as_they_were(content: str) -> None:
    assert is_quoted(content.encode())
    assert [line for _, line in quoted_lines(content.encode()) if line not in ("[", "]")] == LINES


@pytest.mark.parametrize("long", range(1, 40))
def test_a_long_text_is_the_same_in_parts(monkeypatch: pytest.MonkeyPatch, long: int) -> None:
    monkeypatch.setattr(quoted_strings, "_CHUNK_SIZE", long)
    lines = ["C:\\new\\", "\\", "é 😀", "", *LINES]
    assert [line for _, line in quoted_lines(json.dumps("\n".join(lines)).encode())] == lines


def test_what_is_around_a_quotation_stays() -> None:
    content = f"step 1\nCommand failed: stderr: {TEXT.encode()!r}\nsee above"
    lines = [line for _, line in quoted_lines(content.encode())]
    assert lines == ["step 1", "Command failed: stderr:", *LINES, "see above"]


@pytest.mark.parametrize(
    "content", [TEXT, 'print("a\\n")\n' * 3, '"a" is no list\n' * 9, '{"log": "a\\n"}\n' * 9, "C:\\new\\name\n" * 9]
)
def test_other_files_are_not_quoted(content: str) -> None:
    assert not is_quoted(content.encode())


def test_texts_of_a_document() -> None:
    cells = {
        "cells": [{"cell_type": "code", "source": ["raise ValueError\n"] * 5, "outputs": [{"text": ["a\n", "b\n"]}]}]
    }
    assert [*lines_in_strings(cells)] == ["a", "b"]
    assert [*lines_in_strings({"stdout": "a\nb", "stdout_lines": ["a", "b"] * 3, "cmd": ["torchrun", "train.py"]})] == [
        "a",
        "b",
    ]


def test_escaped_characters() -> None:
    assert unescaped("\\u00e9\\ud83d\\ude00\\xe4\\xb8\\xad\\x1b[0m\\\\n\\t\\'") == "é😀中\x1b[0m\\n\t'"
    assert unescaped("\\ud83d alone").endswith(" alone")
