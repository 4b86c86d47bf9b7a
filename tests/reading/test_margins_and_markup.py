"""What stands at the edges of lines, and what only looks like it."""

import pytest

from tests.logs import steps, traceback
from torchtriage.reading.prefixes.margins_and_markup import has_markup, margins, tails, without_markup

LINES = ["begin", *traceback("KeyError: 'image'"), *steps(range(2), count=3), "end"]


def bare(lines: list[str]) -> list[str]:
    for margin in margins(lines):
        lines = [margin.sub("", line, count=1) for line in lines]
    return lines


@pytest.mark.parametrize("mark", ["> ", "> > ", "    ", "\t", "- ", "+", "* ", "`", ": "])
def test_a_mark_before_every_line_comes_off_and_an_indent_inside_stays(mark: str) -> None:
    assert bare([(mark + line).rstrip() for line in [*LINES, ""]]) == [*LINES, ""]


@pytest.mark.parametrize("form", ["{:6}\t{}", "{:4} {}", "{}: {}", "{}. {}", "{:4} │ {}", "L{}: {}", "> {:3}| {}"])
def test_numbers_that_count_the_lines_come_off(form: str) -> None:
    assert bare([form.format(at, line) for at, line in enumerate(LINES, 41)]) == LINES


@pytest.mark.parametrize(
    "lines",
    [
        LINES,
        [f"{rank}: step 3 loss 0.5" for rank in range(40)],  # of ranks that all say the same
        [f"{rank}: {line}" for line in LINES for rank in range(4)],
        ["- one", "- two", "three", "- four", "- five"],
        [f"{step} 0.5 0.25" for step in range(0, 400, 10)],
        ["[rank0]: a", "[rank1]: b", "[rank0]: c", "[rank1]: d"],
        [],
    ],
)
def test_what_belongs_to_the_lines_stays(lines: list[str]) -> None:
    assert margins(lines) == ()


def test_marks_at_the_ends() -> None:
    assert tails([f"| {line} |" for line in LINES]) == ("|",)
    assert tails([f"| `{line}` |" for line in LINES]) == ("|", "`")
    assert tails(LINES) == ()


def test_a_log_in_a_document_loses_the_documents_indent() -> None:
    document = ["job: 4711", "log: |", *(f"    {line}" for line in LINES), "state: FAILED"]
    assert bare(document) == ["job: 4711", "log: |", *LINES, "state: FAILED"]
    assert margins(["Traceback (most recent call last):", *LINES[2:5] * 4]) == ()


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
def test_a_line_is_read_as_it_was_without_markup(line: str) -> None:
    assert has_markup([line, line])
    assert without_markup(line) == FRAME


@pytest.mark.parametrize(
    "line", [FRAME, "a < b && c > d", "loss 损失 0.5", "module <class 'torch.nn.Linear'>", "tokens “quoted”"]
)
def test_other_lines_are_not_pages(line: str) -> None:
    assert not has_markup([line] * 9)
