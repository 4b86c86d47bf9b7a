from tests.collected import Collected
from tests.logs import agent, report
from torchtriage.domain.event import EventSource, Where
from torchtriage.domain.line import Line, Position
from torchtriage.parsing.torchelastic import TorchElastic, exit_text


def read(lines: list[str]) -> Collected:
    extractor = Collected(TorchElastic())
    for number, text in enumerate(lines, 1):
        extractor.feed(Line(number, text, text, Position(1, number)))
    extractor.close()
    return extractor


def test_the_report_shows_ranks_exit_codes_and_the_first_observed() -> None:
    elastic = read(report((1, -7), [(0, -15)]))
    found = [(event.source, event.rank, event.exit_code, event.text, event.host) for event in elastic.events]
    assert found == [
        (EventSource.OTHER_FAILURE, 0, -15, "exitcode -15 SIGTERM rank 0", "gpu-7"),
        (EventSource.FIRST_FAILURE, 1, -7, "exitcode -7 SIGBUS rank 1", "gpu-7"),
    ]
    assert elastic.given_up == 1


def test_a_worker_that_ended_with_0_did_not_fail() -> None:
    elastic = read([agent(0), *report((1, -7), [(0, 0)])])
    assert [(event.rank, event.exit_code) for event in elastic.events] == [(1, -7)]


def test_each_line_of_the_agent_ends_an_attempt() -> None:
    elastic = read([agent(-9), "step 1", agent(1), "step 1", agent(1)])
    assert [event.attempt for event in elastic.events] == [0, 1, 2]
    assert elastic.attempt == 3


def test_the_agents_line_counts_without_its_pid() -> None:
    quoted = "it says: ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) local_rank: 0"
    assert [event.exit_code for event in read([quoted]).events] == [-11]


def test_a_report_that_the_log_cuts_off_still_counts() -> None:
    lines = report((0, -9))
    assert [event.exit_code for event in read(lines[:-2]).events] == [-9]


def test_what_follows_a_report_is_not_swallowed() -> None:
    elastic = Collected(TorchElastic())
    for number, text in enumerate(report((0, 1)), 1):
        elastic.feed(Line(number, text, text, Position(1, number)))
    assert not elastic.feed(Line(99, "step 1", "step 1", Position(1, 99)))


def test_exit_codes_have_one_form() -> None:
    assert exit_text(-9, 3) == "exitcode -9 SIGKILL rank 3"
    assert exit_text(137, None) == "exitcode 137 SIGKILL"
    assert exit_text(1, 0) == "exitcode 1 rank 0"


def test_a_traceback_inside_of_a_report_is_that_of_the_items_rank() -> None:
    elastic = Collected(TorchElastic())
    open_report = [agent(1), "Root Cause (first observed failure):", "[0]:", "  rank      : 3 (local_rank: 1)"]
    for number, text in enumerate(open_report, 1):
        elastic.feed(Line(number, text, text, Position(1, number)))
    line = Line(9, "x", "x", Position(1, 9))
    assert (elastic.with_attempt(line).rank, elastic.with_attempt(line).attempt) == (3, 0)
    assert elastic.with_attempt(Line(9, "x", "x", Position(1, 9), stream="other")) == Line(
        9, "x", "x", Position(1, 9), stream="other", attempt=1
    )


def test_the_json_that_torch_1_9_prints_shows_the_ranks_exception() -> None:
    item = ["Other Failures:", "[1]:", "  rank: 1 (local_rank: 1)", "  exitcode: 1 (pid: 71)", "  msg: ", "    {"]
    elastic = read([*item, r'      "message": "ValueError: no \"split\" of that name\n",', "    }"])
    raised = next(event for event in elastic.events if event.where is Where.EXCEPTION)
    assert (raised.rank, raised.text) == (1, 'ValueError: no "split" of that name\n')


def test_numbers_beyond_all_runs_are_not_numbers() -> None:
    huge = "9" * 5000
    assert not read([f"failed (exitcode: {huge}) local_rank: {huge} (pid: 1)"]).events


def test_items_that_a_viewer_wrote_into_one_line_each() -> None:
    item = "[{}]: time : 2026-05-01_09:10:00 host : algo-2 rank : {} (local_rank: {}) exitcode : {} (pid: 18{}) error_file: <N/A> traceback : x"
    lines = [
        "Failures:",
        item.format(1, 3, 1, -15, 3),
        "Root Cause (first observed failure):",
        item.format(0, 2, 0, -6, 2),
    ]
    items = [(event.source, event.rank, event.local_rank, event.exit_code, event.host) for event in read(lines).events]
    assert items == [(EventSource.OTHER_FAILURE, 3, 1, -15, "algo-2"), (EventSource.FIRST_FAILURE, 2, 0, -6, "algo-2")]


def test_a_report_whose_head_was_cut_off_shows_the_rest() -> None:
    lines = report((3, -11))
    at = next(number for number, line in enumerate(lines) if line.startswith("  rank "))
    found = [(event.source, event.rank, event.exit_code) for event in read(lines[at:]).events]
    assert found == [(EventSource.OTHER_FAILURE, 3, -11)]


def test_the_agents_words_may_are_in_another_order() -> None:
    translated = (
        "[ERROR] failed (exitcode: -9) for binary located at /env/bin/python with local_rank: 2 (process ID: 71)"
    )
    assert [(event.exit_code, event.local_rank) for event in read([translated]).events] == [(-9, 2)]
