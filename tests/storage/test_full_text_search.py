from __future__ import annotations

import pytest

from tests.storage import values
from torchtriage.domain.incident import IncidentFilter
from torchtriage.storage import full_text_search, incidents
from torchtriage.storage.database import Database

TEXT = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: rank_3 of gpu-021\nGPU 显存不足, café 12.4"


def found(database: Database, query: str) -> bool:
    with database.reading() as session:
        return bool(incidents.listed(session, IncidentFilter(q=query), 9, None).items)


@pytest.mark.parametrize(
    "query",
    [
        "ChildFailedError", "childfailed", "child failed error", "torch.distributed", "rank_3", "gpu-021",
        "显存", "显存不足", "存不", "足", "显", "CAFE", "café", "ＧＰＵ", "12.4", "ann", "team-x",
        '"', "***", "", "AND", "NOT OR", "near(", "child AND",
    ],
)  # fmt: skip
def test_both_databases_find(database: Database, query: str) -> None:
    with database.transaction() as session:
        values.triaged(
            session, found=values.summary(text=TEXT + " and or not near"), user="ann", labels={"t": "team-x"}
        )
    assert found(database, query)


@pytest.mark.parametrize(
    "query", ["ildfailed", "memory", "child memory", "足不", "不存", "021x", "'; DROP TABLE x", "\0x"]
)
def test_both_databases_do_not_find(database: Database, query: str) -> None:
    with database.transaction() as session:
        values.triaged(session, found=values.summary(text=TEXT))
    assert not found(database, query)


def test_a_job_is_found_before_its_triage(database: Database) -> None:
    with database.transaction() as session:
        values.added(session, job_name="llama-pretrain")
    assert found(database, "llama")


@pytest.mark.parametrize(
    "text", ["\0\ud800 x", "a" * 100_000, "中" * 30_000, "\\'\"&|!:*()<->", " \t\n", "🙂 ½ ² ß İ ﬁ"]
)
def test_any_text_can_be_put_and_asked(database: Database, text: str) -> None:
    with database.transaction() as session:
        values.triaged(session, found=values.summary(text=text))
    found(database, text)


def test_words_of_a_text() -> None:
    assert full_text_search.words("OutOfMemoryError") == {"outofmemoryerror", "out", "of", "memory", "error"}
    assert full_text_search.words("显存不足") == {"显存", "存不", "不足", "足"}
    assert full_text_search.asked("显存不足") == ["显存", "存不", "不足"]
