"""The forms of lines that tell facts: each is proved by its examples, and lines of progress cost nothing."""

from __future__ import annotations

import pytest

from tests.built_in import vocabulary
from tests.facts import line_regexes, prefilter
from tests.yaml_files import read_yaml
from torchtriage.domain.line import Line, Position
from torchtriage.facts import line_forms
from torchtriage.facts.line_forms import LISTS, KeptLines, LineForms, fact_names
from torchtriage.knowledge import BUILT_IN

FORMS = LineForms(vocabulary())
PROVED = [
    (pattern["regex"], example)
    for path in sorted(BUILT_IN.glob(f"_vocabulary/{LISTS}*.yaml"))
    for pattern in read_yaml(path)["patterns"]
    for example in pattern["examples"]
]
PROGRESS = (
    "step 5 | loss 2.31 | lr 3.0e-04 | grad norm 0.812 | tokens/s 10231",
    "{'loss': 0.512, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.31}",
    "  3%|▎         | 30/1000 [00:12<06:28,  2.50it/s]",
    "Epoch: [3][ 50/5005]  Time 0.31 (0.33)  Data 0.01 (0.02)  Loss 2.31e+00 (2.4e+00)  Acc@1 12.0",
    "iteration       43/  311541 | elapsed time per iteration (ms): 6703.7 | learning rate: 5.997E-05 | lm loss: 2.6 |",
    'File "/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1750, in _call_impl',
    "return self._call_impl(*args, **kwargs)",
)


@pytest.mark.parametrize(("regex", "example"), PROVED, ids=[f"{n}" for n in range(len(PROVED))])
def test_the_scan_points_at_each_example_and_it_shows_something_that_is_listed(regex: str, example: str) -> None:
    result = FORMS.read_by(regex, example)
    assert result
    assert {value.name for value in result} <= fact_names(vocabulary()).keys()
    pointed = FORMS.pointed([example])[0]
    assert any(FORMS.read(form, example) == result for form in pointed)


@pytest.mark.parametrize("text", PROGRESS)
def test_lines_of_progress_and_frames_are_not_kept_while_a_log_is_scanned(text: str) -> None:
    number = [fact.name for fact in line_regexes().line_facts].index(line_forms.NAME)
    seen = prefilter().hints([text]).get(text)
    assert seen is None or not seen.line_facts >> number & 1


def test_pointers_take_all_digits_alike() -> None:
    """So of lines that differ in digits only, one is scanned."""
    assert not [pointer for pointer in FORMS.pointers if _digits(pointer)]


def _digits(pointer: str) -> str:
    plain = pointer.replace("0-9", "").replace("(*UTF8)", "")
    outside, depth = "", 0
    for char in plain:
        depth += char == "{"
        outside += char if not depth else ""
        depth -= char == "}"
    return "".join(filter(str.isdigit, outside))


def test_of_too_many_lines_the_first_and_the_newest_are_kept_and_equal_ones_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line_forms, "MAX_LINES", 3)
    kept = KeptLines()
    for number in range(1, 11):
        kept.add(Line(number, f"line {number}", f"line {number}", Position(1, number)))
        kept.add(Line(number, "same", "same", Position(1, number)))
    assert [line.text for line in kept] == ["line 1", "same", "line 2", "line 8", "line 9", "line 10"]
    assert next(line for line in kept if line.text == "same").number == 10
