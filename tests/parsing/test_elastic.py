from app.domain.line import Line
from app.parsing.elastic import Elastic, exit_text
from tests.logs import agent, report


def read(lines: list[str]) -> Elastic:
    extractor = Elastic()
    for number, text in enumerate(lines, 1):
        extractor.feed(Line(number, text, text, number))
    extractor.close()
    return extractor


def test_the_report_tells_ranks_exit_codes_and_the_first_observed() -> None:
    elastic = read(report((1, -7), [(0, -15)]))
    found = [(event.source, event.rank, event.exit_code, event.text, event.host) for event in elastic.events]
    assert found == [
        ("elastic report", 0, -15, "exitcode -15 SIGTERM rank 0", "gpu-7"),
        ("elastic first", 1, -7, "exitcode -7 SIGBUS rank 1", "gpu-7"),
    ]
    assert elastic.given_up == 1


def test_each_line_of_the_agent_ends_an_attempt() -> None:
    elastic = read([agent(-9), "step 1", agent(1), "step 1", agent(1)])
    assert [event.attempt for event in elastic.events] == [0, 1, 2]
    assert elastic.attempt == 3


def test_a_report_that_the_log_cuts_off_still_counts() -> None:
    lines = report((0, -9))
    assert [event.exit_code for event in read(lines[:-2]).events] == [-9]


def test_what_follows_a_report_is_not_swallowed() -> None:
    elastic = Elastic()
    for number, text in enumerate(report((0, 1)), 1):
        elastic.feed(Line(number, text, text, number))
    assert not elastic.feed(Line(99, "step 1", "step 1", 99))


def test_exit_codes_have_one_form() -> None:
    assert exit_text(-9, 3) == "exitcode -9 SIGKILL rank 3"
    assert exit_text(137, None) == "exitcode 137 SIGKILL"
    assert exit_text(1, 0) == "exitcode 1 rank 0"
