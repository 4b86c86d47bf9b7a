"""A failure of the program itself that several ranks show: the answer says how far it reaches."""

from collections.abc import Callable

import pytest

from tests.logs import text, traceback
from torchtriage.answer.first_screen import first_screen
from torchtriage.client import torchtriage_client
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

FRAMES = [("/job/train.py", 30, "<module>", "main()"), ("/job/loader.py", 61, "main", "if self.proba.sum() != 1:")]
LIST_HAS_NO_SUM = "AttributeError: 'list' object has no attribute 'sum'"
START = "Initializing process group with world_size=4"


def answer_text(engine: Engine, raised: str, prefixes: list[str], start: str = "", lang: str = "en") -> str:
    traces = [traceback(raised, FRAMES, prefix) for prefix in prefixes]
    verdict = engine.triage(from_bytes(text(start, *traces)), lang="zh" if lang == "zh" else "en")
    assert verdict.answer is not None
    return verdict.answer.says


@pytest.mark.parametrize("prefix", ["[rank{}]: ", "[default{}]:", "[gpu-7:{}]"])
def test_ranks_that_failed_in_the_same_way_are_named(
    engine: Engine, prefix: str, decided: Callable[[], set[str]]
) -> None:
    prefixes = [prefix.format(rank) for rank in range(3)]
    assert answer_text(engine, LIST_HAS_NO_SUM, prefixes).endswith("Ranks 0-2 failed in the same way.")
    assert "local-rank-on-one-host" in decided() or "default" not in prefix


@pytest.mark.parametrize(
    ("ranks", "where"),
    [((0, 1, 2), ("ranks 0-2 (rank 0 first)", "rank 0-2（rank 0 最先）")), ((2,), ("rank 2", "rank 2"))],
    ids=["several", "one"],
)
def test_the_place_names_all_ranks_that_failed_alike(
    engine: Engine, ranks: tuple[int, ...], where: tuple[str, str]
) -> None:
    traces = [traceback(LIST_HAS_NO_SUM, FRAMES, f"[rank{rank}]: ") for rank in ranks]
    verdict = engine.triage(from_bytes(text(*traces)))
    assert (first_screen(verdict, "en").where[0], first_screen(verdict, "zh").where[0]) == where
    said = torchtriage_client._where(verdict.as_dict()["root_cause"], verdict.as_dict()["answer"]["values"])
    assert said.startswith(where[0])


def test_all_ranks_of_the_run_are_reported_as_all(engine: Engine) -> None:
    prefixes = [f"[rank{rank}]: " for rank in range(4)]
    assert answer_text(engine, LIST_HAS_NO_SUM, prefixes, START).endswith("All 4 ranks failed in the same way.")
    assert answer_text(engine, LIST_HAS_NO_SUM, prefixes, START, "zh").endswith("全部 rank 以同样的方式失败。")


def test_of_one_rank_nothing_is_said(engine: Engine) -> None:
    assert "same way" not in answer_text(engine, LIST_HAS_NO_SUM, ["[rank2]: "], START)


def test_ranks_that_only_lost_a_peer_did_not_fail_in_the_same_way(engine: Engine) -> None:
    lost = "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"
    assert "same way" not in answer_text(engine, lost, [f"[rank{rank}]: " for rank in range(3)])
