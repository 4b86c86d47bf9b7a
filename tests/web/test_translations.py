from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

from torchtriage.knowledge import BUILT_IN
from torchtriage.web.pages import translations
from torchtriage.web.pages.translations import catalogue


def test_a_key_is_in_only_one_file() -> None:
    files = (Path(translations.__file__).parent / "translations").glob("*.toml")
    keys = Counter(key for file in files for key in tomllib.loads(file.read_text("utf-8")))
    assert keys
    assert [key for key, count in keys.items() if count > 1] == []


def test_each_area_that_ships_has_a_name() -> None:
    areas = {file.parent.name for file in BUILT_IN.glob("[!_]*/*.yaml")}
    assert {area for area in areas if f"area_{area}" not in catalogue()} == set()
