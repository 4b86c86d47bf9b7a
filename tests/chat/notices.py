"""Notices for tests of the messages: one as it usually is, and all that a hostile log could make."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from torchtriage.domain.first_screen import FirstScreen
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.notice import Notice, NoticeKind
from torchtriage.domain.verdict import AnswerStep, Evidence

SCREEN = FirstScreen(
    what="Rank 3 asked for 2.00 GiB at train.py:88 and 1.10 GiB were free.",
    where=("rank 3", "gpu-021", "2026-05-01 09:05:11", "train.py:88"),
    why=Evidence(48211, "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
    steps=(
        AnswerStep("See what else holds memory on gpu-021.", "nvidia-smi"),
        AnswerStep("Halve the batch and accumulate gradients over 2 steps."),
    ),
    retry="no",
    because="The same job fails again until the cause is removed.",
    sure="certain",
    unknown="Which process held the rest this log does not show.",
)

USUAL: dict[str, Any] = {
    "kind": NoticeKind.NEW,
    "lang": "en",
    "title": "The GPU ran out of memory",
    "outcome": "explained",
    "url": "https://triage.example.org/incidents/17",
    "incident": "17",
    "group": "7",
    "group_url": "https://triage.example.org/groups/7",
    "entry": "cuda.oom",
    "screen": SCREEN,
    "job_name": "llama-pretrain",
    "job_id": "4711",
    "user": "ann",
    "cluster": "blue",
    "evidence": "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "line": 48211,
    "count": 7,
    "recent": 5,
    "gpu_hours": 512.25,
    "status": GroupStatus.OPEN,
    "document": {"incident": {"id": "17"}, "group": {"id": "7"}},
}

_NASTY = st.sampled_from(
    ["<!channel>", "<!here|x>", "@here", "@channel", "<@U123>", "```", "`", "*", "_", "~", "&", "<", ">", "&amp;",
     ":rotating_light:", "\u202e", "\u200b", "\x00", "\x1b[31m", "\r\n", "\n", "\ud800", "😀", "👩‍👩‍👧", "<at user_id=\"all\">", "<@all>",
     "![](http://x/y)", "[a](http://b)", "http://evil.example/?a=b", "CUDA out of memory", "显存不足", "{title}", "{", "%s"]
)  # fmt: skip
HOSTILE = st.one_of(
    st.lists(_NASTY, max_size=12).map("".join),
    st.text(max_size=200),
    st.tuples(_NASTY, st.integers(1, 30_000)).map(lambda given: given[0] * given[1]),
)


def usual(**other: Any) -> Notice:
    return Notice(**(USUAL | other))


def _screens() -> st.SearchStrategy[FirstScreen]:
    some = st.none() | HOSTILE
    return st.builds(
        FirstScreen,
        what=HOSTILE,
        where=st.lists(HOSTILE, max_size=5).map(tuple),
        why=st.none() | st.builds(Evidence, line=st.integers(1, 10**9), text=HOSTILE),
        steps=st.lists(st.builds(AnswerStep, do=HOSTILE, run=some), max_size=3).map(tuple),
        retry=st.sampled_from([None, "yes", "no", "once", "elsewhere"]),
        because=HOSTILE,
        exclusion=HOSTILE,
        sure=st.sampled_from([None, "certain", "possible"]),
        unknown=some,
    )


def hostile() -> st.SearchStrategy[Notice]:
    """Returns notices of which every part that a log, a job or a host decides is anything."""
    some = st.none() | HOSTILE
    return st.builds(
        usual,
        kind=st.sampled_from([kind for kind in NoticeKind if kind is not NoticeKind.TEST]),
        lang=st.sampled_from(["en", "zh"]),
        title=HOSTILE,
        outcome=st.sampled_from(["explained", "unexplained"]),
        entry=st.none() | st.just("cuda.oom"),
        screen=st.none() | _screens(),
        job_name=some,
        job_id=some,
        user=some,
        cluster=some,
        evidence=some,
        count=st.integers(0, 10**9),
        recent=st.integers(0, 10**9),
        gpu_hours=st.none() | st.floats(0, 1e9),
        status=st.sampled_from(GroupStatus),
        muted_until=st.none() | st.just(datetime(2026, 5, 1, tzinfo=UTC)),
        over=st.sampled_from([{}, {"count": 100.0}, {"cost": 1000.0}]),
    )
