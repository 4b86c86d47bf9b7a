"""The labels of a verdict's parts in each language, the same on the terminal and the pages, in briefs and in chats."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from torchtriage.domain.entry import Text
from torchtriage.domain.rank_set import RankSet

LABELS: Mapping[str, Text] = MappingProxyType(
    {
        "confidence": Text("Confidence", "置信度"),
        "certain": Text("certain", "确定"),
        "likely": Text("likely", "很可能"),
        "possible": Text("possible", "可能"),
        "not_in_log": Text("Not in the log", "日志未说明"),
        "followed": Text("What followed", "连带后果"),
        "considered": Text("Also considered", "其他候选"),
        "several_ranks": Text("ranks", "rank"),
    }
)


def ranks_named(ranks: RankSet | str, several: str) -> str:
    """Returns the ranks in words: `rank 3`, `ranks 0-1, 3`. `several` is the word for more than one rank."""
    text = str(ranks).replace(",", ", ")
    return f"{'rank' if text.isdecimal() else several} {text}"
