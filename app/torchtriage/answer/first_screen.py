"""Builds the parts of the first screen, which every interface shows first, from a verdict in one language."""

from __future__ import annotations

from dataclasses import replace

from torchtriage.answer.answer_text import MAX_STEPS
from torchtriage.answer.inconclusive_answer import last_line, says_beside
from torchtriage.domain.entry import Language
from torchtriage.domain.first_screen import FirstScreen
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.timestamps import log_time
from torchtriage.domain.verdict import Evidence, RootCause, Verdict
from torchtriage.lazy_regex import lazy_regex

_HEALTHY = ("The log shows no failure.", "日志中没有失败的迹象。")
_ELSEWHERE = (
    "If the run did fail, the reason is not in this log. Check the other ranks’ logs and the scheduler.",
    "如果运行确实失败了，原因不在这份日志里：查看其他 rank 的日志和调度器记录。",
)
_SEEN = {"one": ("seen on rank {}", "见于 rank {}"), "several": ("seen on ranks {}", "见于 rank {}")}
_ALIKE = ("ranks {} (rank {} first)", "rank {}（rank {} 最先）")
_FIRST = {"one": ("check rank {} first", "先检查 rank {}"), "several": ("check ranks {} first", "先检查 rank {}")}
# A progress bar on which another process wrote: 0%|          | 0/1620 [00:00<?, ?it/s]/opt/conda/conda-bld/…
_BAR_BEFORE = lazy_regex(r"^[^|\n]{0,80}\d{1,3}%\|[^|\n]{0,400}\| ?\d{1,9}/\d{1,9} \[[^\]\n]{1,80}\](?=.{20})")
# The folder in which a library was compiled: /opt/conda/conda-bld/pytorch_1595629427478/work/aten/src/THC/…
_BUILD_FOLDER = lazy_regex(r"(?<![\w.])/(?:[\w.+-]+/){3,20}(?=[\w.+-]+\.(?:cu|cuh|cpp|cc|h|hpp):\d)")


def first_screen(verdict: Verdict, lang: Language) -> FirstScreen:
    """Returns the parts from the verdict, which must already be in this language."""
    root, answer, chinese = verdict.root_cause, verdict.answer, lang == "zh"
    if root is None:
        what, unknown = (answer.says, answer.unknown) if answer else (_HEALTHY[chinese], _ELSEWHERE[chinese])
        return FirstScreen(
            what,
            why=last_line(answer) if answer else None,
            steps=answer.steps[:MAX_STEPS] if answer else (),
            unknown=unknown,
            because=verdict.action.reason if answer else "",
            beside=says_beside(answer, lang) if answer else None,
        )
    action, values = verdict.action, answer.values if answer else {}
    # It is not known which of these ranks failed first.
    seen_on = values.get("exited_ranks") or (values.get("ranks") if root.rank is None else None)
    frame = values.get("where") or values.get("library_frame")
    return FirstScreen(
        what=answer.says if answer and answer.says else root.title,
        where=_where(root, seen_on, values.get("ranks"), None if verdict.never_arrived else root.time, frame, chinese),
        seen_on=seen_on,
        frame=frame,
        why=_shortened(root.evidence[0]) if root.evidence else None,
        steps=answer.steps[:MAX_STEPS] if answer else (),
        retry=action.retry_word,
        because=action.reason,
        exclusion=action.exclusion,
        sure=root.confidence if root.entry else None,
        unknown=answer.unknown if answer else None,
    )


def _shortened(line: Evidence) -> Evidence:
    """Returns the key line without a progress bar before it, and without the folder in which a library was compiled."""
    return replace(line, text=_BUILD_FOLDER.sub("", _BAR_BEFORE.sub("", line.text)))


def _where(
    root: RootCause, seen_on: str | None, same: str | None, time: str | None, frame: str | None, chinese: bool
) -> tuple[str, ...]:
    """Returns the rank or the ranks that show the failure, the host, the time, the user's line of code, and other ranks
    to check. `same` are the ranks that failed in the same way as the root's."""
    if seen_on:
        rank = _of_ranks(_SEEN, seen_on, chinese)
    elif root.rank is not None and same and _is_among(root.rank, same):
        rank = _ALIKE[chinese].format(same, root.rank)
    else:
        rank = f"rank {root.rank}" if root.rank is not None else ""
    parts = [rank, root.host or "", log_time(time) or "", frame or ""]
    parts.append(_of_ranks(_FIRST, root.suspects, chinese) if root.suspects else "")
    return tuple(part for part in parts if part)


def _is_among(rank: int, ranks: str) -> bool:
    """Returns whether a rank is one of several ranks, such as `0-3`. An entry may capture other words as `ranks`."""
    try:
        several = RankSet.from_json(ranks)
    except ValueError:
        return False
    return len(several) > 1 and any(first <= rank <= last for first, last in several.ranges)


def _of_ranks(words: dict[str, tuple[str, str]], ranks: str, chinese: bool) -> str:
    return words["one" if ranks.isdecimal() else "several"][chinese].format(ranks)
