"""What a program printed above its failure is kept, wherever in the log that stands."""

from tests.built_in import built_in_knowledge
from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.verdict import root_cause
from torchtriage.answer.verdict_run import run_facts
from torchtriage.causality.fallbacks import completed
from torchtriage.causality.root_cause import choose, with_attempts
from torchtriage.domain.line import Line, Position
from torchtriage.knowledge.cache import cache_folder
from torchtriage.matching.matcher import Matcher
from torchtriage.matching.patterns import Patterns
from torchtriage.reading.sources import from_bytes
from torchtriage.runs.context_lines import ABOVE, MAX_LENGTH, ContextLines
from torchtriage.runs.read_runs import read_runs


def printed(log: str) -> list[str]:
    patterns = Patterns(built_in_knowledge(), cache_folder())
    matcher = Matcher(patterns)
    *_, last = completed(read_runs(from_bytes(log.encode()), patterns, matcher))
    reading = with_attempts(last.matched())
    choice = choose(reading)
    assert choice.root is not None
    root, _ = root_cause(choice, reading, {}, str)
    return [line.text for line in Failure(choice.root, root, choice, reading, run_facts(reading, choice)).printed]


def test_forty_lines_above_a_failure_in_the_middle_of_a_long_log() -> None:
    healthy = "".join(f"worker heartbeat {number}\n" for number in range(20_000))
    above = "".join(f"[data] shard {number} has {number * 7} samples\n" for number in range(36))
    failed = 'Traceback (most recent call last):\n  File "/job/train.py", line 4, in <module>\n    run()\nValueError: too short\n'
    found = printed(f"num_shards: 64\n{healthy}{above}{failed}{healthy}")
    assert found[0] == "num_shards: 64"
    assert found[-36:] == above.splitlines()


def test_memory_stays_within_bounds() -> None:
    def line(number: int, text: str) -> Line:
        return Line(number, text, text, Position(1, number))

    kept = ContextLines()
    for number in range(1, 30_000):
        kept.feed([line(number, f"{number} " + "x" * 9000)])
        if number % 10 == 0:
            kept.mark(Position(1, number))
    lines = [one for each in kept.kept().values() for one in each] + kept.opening
    assert len(lines) <= 64 * ABOVE + 1600
    assert max(len(one.text) for one in lines) <= MAX_LENGTH
