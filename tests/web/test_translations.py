from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

from torchtriage.web.pages import translations


def test_a_key_stands_in_one_file() -> None:
    files = (Path(translations.__file__).parent / "translations").glob("*.toml")
    keys = Counter(key for file in files for key in tomllib.loads(file.read_text("utf-8")))
    assert keys
    assert [key for key, count in keys.items() if count > 1] == []
