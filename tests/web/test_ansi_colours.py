from __future__ import annotations

import pytest

from torchtriage.web.pages.sanitize import coloured


@pytest.mark.parametrize(
    ("line", "html"),
    [
        ("plain <b>", "plain &lt;b&gt;"),
        ("\x1b[1;31mred\x1b[0m done", '<span class="c-red bold">red</span> done'),
        ("\x1b[38;5;2mgreen\x1b[39m on", '<span class="c-green">green</span> on'),
        ("\x1b[38;2;250;10;240mpink", '<span class="c-magenta">pink</span>'),
        ("\x1b[48;5;1mground", "ground"),
        ("\x1b[2Kcleared \x1b]0;title\x07 after", "cleared  after"),
        ("\x1b[31m<script>\x1b[4m\x07", '<span class="c-red">&lt;script&gt;</span><span class="c-red underline">'
         "<span class=ctl>^G</span></span>"),
        ("\x1b[999;;38;5m\x1b[38mx", '<span class="c-soft">x</span>'),
    ],
)  # fmt: skip
def test_colours_become_classes_and_nothing_else(line: str, html: str) -> None:
    assert coloured(line) == html


def test_search_words_are_marked_in_any_case() -> None:
    assert coloured("An <Error> here", "<error>") == "An <mark>&lt;Error&gt;</mark> here"
