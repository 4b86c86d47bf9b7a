from tests.logs import PEER_CLOSED, WAITING, text, traceback
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

RAISED = "KeyError: 'image'"


def test_tail_of_several_files_shows_whose_lines_follow(engine: Engine) -> None:
    lost = traceback(PEER_CLOSED, WAITING)
    log = text("==> logs/rank_0.log <==", "step 1 loss 0.5", lost, "", "==> logs/rank_3.log <==", traceback(RAISED))
    root = engine.triage(from_bytes(log)).root_cause
    assert root is not None
    assert (root.rank, root.evidence[0].text) == (3, RAISED)


def test_composers_blocks_of_a_rank_far_from_both_ends_of_a_log(engine: Engine) -> None:
    filler = [f"row {at} of a long report that says nothing of the run" for at in range(9000)]
    log = text(filler, "----------Begin global rank 2 STDERR----------", "a warning", ["padding"] * 40,
               traceback(RAISED), "----------End global rank 2 STDERR----------", filler)  # fmt: skip
    root = engine.triage(from_bytes(log)).root_cause
    assert root is not None
    assert root.rank == 2


def test_what_is_after_a_block_is_not_its_ranks(engine: Engine) -> None:
    blocks = [(f"----------Begin global rank {rank} STDERR----------", "a warning",
               f"----------End global rank {rank} STDERR----------") for rank in (2, 3)]  # fmt: skip
    log = text(*(line for block in blocks for line in block), traceback(RAISED))
    root = engine.triage(from_bytes(log)).root_cause
    assert root is not None
    assert root.rank is None


def test_a_heading_that_names_no_rank_shows_none(engine: Engine) -> None:
    root = engine.triage(from_bytes(text("==> train.log <==", traceback(RAISED)))).root_cause
    assert root is not None
    assert root.rank is None
