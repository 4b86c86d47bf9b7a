"""What `torchfrtrace` prints of dumps: who is named, and that a log with such words stays a log."""

from __future__ import annotations

import pytest

from tests.logs import steps
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.evidence.fr_trace import read_trace
from torchtriage.reading.file_types import FileForm, form_of
from torchtriage.reading.sources import from_bytes
from torchtriage.reading.whole_files import NotRead

NO_ERROR = (
    "No errors found for this collective entry, There could be some other reasons why we see collective timeout.\n"
)


def missing(sequence: int, operation: str, group: str, expected: str, absent: str) -> str:
    return (
        f"Not all ranks joining collective, sequence number: {sequence}\ninternal record id: {sequence + 4}\n"
        f"group info: 7:{group}\ncollective: nccl:{operation}\nmissing ranks: {{{absent}}}\ninput sizes: [[16]]\n"
        f"output sizes: [[16]]\nworld size: {expected.count(',') + 1}\nexpected ranks: {{{expected}}}\n"
        "collective state: scheduled\ncollective stack trace: \n forward at /job/train.py:30\n wait at"
        " /usr/lib/python3.11/site-packages/torch/distributed/c10d.py:40\n"
    )


def mismatch_report(said: str, operation: str = "all_reduce") -> str:
    return (
        f"Collective sequence number: 12 has errors\ninternal record id: 16\ngroup info: 0:default_pg\n"
        f"collective: gloo:{operation}\ninput sizes: [[16]]\noutput sizes: [[16]]\nworld size: 4\n"
        f"expected ranks: {{0, 1, 2, 3}}\ncollective state: scheduled\nerror msg: {said}\ncollective stack trace: \n \n"
    )


def triaged(engine: Engine, text: str) -> tuple[str | None, tuple[int, ...], str]:
    verdict: Verdict = engine.triage(from_bytes(text.encode()))
    answer = verdict.answer
    assert answer is not None
    return answer.case, tuple(verdict.run.suspect_ranks), answer.says


def test_of_those_called_missing_only_who_waits_nowhere_is_named(engine: Engine) -> None:
    text = (
        missing(4, "all_reduce", "tensor", "2, 3", "3")
        + NO_ERROR
        + missing(9, "all_to_all", "expert", "0, 1, 2, 3", "1")
    )
    case, suspects, says = triaged(engine, text)
    assert (case, suspects) == ("missing", (1,))
    assert says == "Rank 1 never entered all_to_all 9 of the group expert. 3 other ranks waited."


def test_the_others_of_a_send_are_not_missing(engine: Engine) -> None:
    text = missing(2, "recv 3<-0", "pipeline", "2, 6, 10, 14", "2, 6, 10") + missing(
        9, "barrier", "all", "0, 14, 15", "15"
    )
    assert triaged(engine, text)[:2] == ("missing", (15,))


def test_ranks_that_wait_for_one_another_are_not_named(engine: Engine) -> None:
    text = missing(4, "all_reduce", "a", "0, 1", "1") + missing(4, "all_reduce", "b", "0, 1", "0")
    assert triaged(engine, text)[1] == ()


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (
            "Culprit rank 2; Error type: COLLECTIVE_TYPE_MISMATCH, Expected collective type: 'all_reduce' does not match"
            " found collective type: 'broadcast'",
            "Rank 2 called broadcast while the other ranks called all_reduce (all_reduce 12 of the group default_pg).",
        ),
        (
            "Culprit rank 2; Error type: SIZE_OR_SYNTAX_MISMATCH, Expected input sizes: '[[16]]' does not match found "
            "input sizes: '[[32]]'",
            "Rank 2 called all_reduce [32] while the other ranks called all_reduce [16] (all_reduce 12 of the group",
        ),
    ],
)
def test_who_called_something_else_is_named(engine: Engine, said: str, says: str) -> None:
    case, suspects, found = triaged(engine, mismatch_report(said))
    assert (case, suspects) == ("other-call", (2,))
    assert found.startswith(says)


def test_where_as_many_ranks_differ_as_agree_no_one_is_named(engine: Engine) -> None:
    one = "Culprit rank {}; Error type: COLLECTIVE_TYPE_MISMATCH, Expected collective type: 'all_reduce' does not match found "
    both = ", ".join(one.format(rank) + "collective type: 'broadcast'" for rank in (2, 3))
    assert triaged(engine, mismatch_report(both))[1] == ()


def test_the_tables_of_the_debug_server_say_the_same(engine: Engine) -> None:
    row = "   0          {}  True       {}             0        91931  {}:{}    nccl:{}    [[4096, 5120]]     [[4064]]     {}  scheduled  []   {}"
    text = "\n".join(
        [
            "=== FR Trace ===", "--- Groups ---", "id   desc   size", "1    expert   4", "--- Collectives ---",
            "  id    group_id  pass_check    collective_seq_id    p2p_seq_id    record_id  pg_desc  collective_name ...",
            row.format(74, 20947, 74, "expert", "all_to_all", "{12, 13, 14, 15}", "{15}"),
            row.format(42, 43672, 42, "tensor", "_reduce_scatter_base", "{14, 15}", "{15}"),
            row.format(42, 43671, 42, "tensor", "_reduce_scatter_base", "{14, 15}", ""),
            "--- NCCL Calls ---", "   0                           74             12               0  nccl:all_to_all",
        ]
    )  # fmt: skip
    assert form_of(text.encode()) is FileForm.FR_TRACE
    assert triaged(engine, text)[:2] == ("missing", (15,))


def test_a_log_below_such_output_stays_a_log(engine: Engine) -> None:
    text = missing(4, "all_reduce", "tensor", "2, 3", "3") + "\n".join(steps(range(4)))
    with pytest.raises(NotRead):
        read_trace(text.encode(), None, 1)
    assert [source.taken_for for source in engine.triage(from_bytes(text.encode())).run.sources] == ["log"]


def test_a_hostile_list_of_ranks_costs_little() -> None:
    text = missing(4, "all_reduce", "tensor", ", ".join(map(str, range(100_000))), "3" * 50_000)
    assert len(read_trace(text.encode(), None, 1)[0].expected) == 65_536
