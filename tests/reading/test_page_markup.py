"""Lines that went through a page, a mail or an editor."""

import pytest

from torchtriage.reading.prefixes.page_markup import is_set, printed

FRAME = '  File "/job/a.py", line 3, in <module>'


@pytest.mark.parametrize(
    "line",
    [
        "  File &quot;/job/a.py&quot;, line 3, in &lt;module&gt;",
        "  File &#34;/job/a.py&#34;, line 3, in &lt;module&gt;",
        '<div class="line"><span>  File &quot;/job/a.py&quot;, line 3, in &lt;module&gt;</span></div>',
        "&nbsp; File &quot;/job/a.py&quot;, line 3, in &lt;module&gt;<br/>",
        "\u00a0\u00a0File\u00a0\"/job/a.py\",\u00a0line\u00a03,\u00a0in\u00a0<module>",
        "\u3000\u3000File \"/job/a.py\", line 3, in <module>",
        "\u200b  File “/job/a.py”, line 3, in <module>",
    ],
)  # fmt: skip
def test_a_line_is_read_as_it_was_printed(line: str) -> None:
    assert is_set([line, line])
    assert printed(line) == FRAME


@pytest.mark.parametrize(
    "line", [FRAME, "a < b && c > d", "loss 损失 0.5", "module <class 'torch.nn.Linear'>", "tokens “quoted”"]
)
def test_other_lines_are_no_pages(line: str) -> None:
    assert not is_set([line] * 9)
