"""What the prefilter leaves out must tell nothing: held against asking every sign and every extractor about every line."""

from pathlib import Path

import pytest

from tests.facts import line_regexes, prefilter
from tests.properties.pieces import LINES
from torchtriage.domain.line import Line, Position
from torchtriage.facts.line_facts import MAX_LENGTH
from torchtriage.parsing.extractor import NOTHING, SharedState
from torchtriage.parsing.registry import EXTRACTORS
from torchtriage.reading.prefixes.learned import Labels
from torchtriage.reading.prefixes.strip import strip_prefixes

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
TOLD = (
    "训练已完成",
    "第 12 步 损失：0.5",
    "第 3 轮",
    "Container rank 4 status failed cmd ['python'] code -9 log log/workerlog.4",
    "the trainer process with rank=[3] was aborted",
    "worker-3 exited with code 137",
    "Rank 5 crashed with exit code -6",
    "Main process exited, code=killed, status=9/KILL",
    "srun: error: gpu-01: task 3: Killed",
    "x" * MAX_LENGTH + " step 5 loss 0.5",
)


def texts() -> list[str]:
    """Returns different lines of genuine logs, without their prefixes, and some that are made up."""
    files = sorted(CORPUS.glob("*/log.txt"))[::7]
    raw = (line for file in files for line in file.read_text(encoding="utf-8", errors="replace").split("\n")[:120])
    return list(dict.fromkeys([*(strip_prefixes(line, Labels()).text for line in raw), *LINES, *TOLD]))


def test_the_facts_of_a_line_are_those_that_each_sign_finds_by_itself() -> None:
    lines = texts()
    seen = prefilter().hints(lines)
    for line in lines:
        found = {number for number, regex in enumerate(line_regexes().all) if regex.matches(line[:MAX_LENGTH])}
        listed = set(seen[line].facts) if line in seen else set()
        assert listed - line_regexes().enough.keys() == found - line_regexes().enough.keys(), line
        alone = prefilter().hints([line])
        assert (set(alone[line].facts) if line in alone else set()) == found, line


def test_what_nearly_every_line_shows_is_reported_of_the_first_ones_and_not_where_it_is_known() -> None:
    lines = [f"a line of no interest {number}" for number in range(100)]
    lines += [f'File "/usr/lib/python3.11/torch/cuda/{number}.py"' for number in range(1000)]
    seen = prefilter().hints(lines)
    for number, enough in line_regexes().enough.items():
        items = [line for line in lines if line in seen and number in seen[line].facts]
        assert enough <= len(items) < 200
        assert items == lines[100 : 100 + len(items)]
    assert all(
        line_regexes().enough.keys().isdisjoint(items.facts)
        for items in prefilter().hints(lines, frozenset(line_regexes().enough)).values()
    )


@pytest.mark.parametrize(
    ("above", "line"),
    [
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "  host      : gpu-7"),
        ("java.io.IOException: No space left on device", "\tat java.base/sun.nio.ch.IOUtil.write(IOUtil.java:65)"),
    ],
)
def test_a_line_shows_its_facts_whatever_is_above_it(above: str, line: str) -> None:
    assert prefilter().hints([above, line])[line].facts == prefilter().hints([line])[line].facts


def test_no_extractor_would_read_a_line_at_which_it_does_not_begin() -> None:
    lines = texts()
    seen = prefilter().hints(lines)
    for at, extractor in enumerate(EXTRACTORS):
        for line in lines:
            if line in seen and seen[line].begins & 1 << at:
                continue
            alone = extractor.for_run(SharedState())
            assert alone.feed(Line(1, line, line, Position(1, 1))) == NOTHING, line
            assert not alone.continues(""), line
