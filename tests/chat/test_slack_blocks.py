from __future__ import annotations

import json
import unicodedata

from hypothesis import given

from tests.chat.notices import HOSTILE, hostile, usual
from tests.slack import buttons, pings, problem_with, texts
from torchtriage.chat.slack_blocks import message, note
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.notice import Notice, NoticeKind


@given(hostile())
def test_whatever_the_log_holds_slack_takes_it_and_nobody_is_pinged(notice: Notice) -> None:
    payload = message(notice)
    assert problem_with(payload) is None
    assert pings(payload) == []
    shown = texts(payload)
    assert len(shown) + len(payload["text"]) < 4000
    hidden = {char for char in shown if unicodedata.category(char) in ("Cc", "Cf", "Cs") and char != "\n"}
    assert not hidden
    json.dumps(payload, ensure_ascii=False).encode()


@given(HOSTILE)
def test_a_short_note_is_taken_too(text: str) -> None:
    payload = note(text)
    assert pings(payload) == []
    assert problem_with(payload) is None


def test_it_has_the_parts_of_a_good_alert() -> None:
    shown = texts(message(usual()))
    for part in (
        "New failure: The GPU ran out of memory",
        "Rank 3 asked for 2.00 GiB at train.py:88",
        "rank 3 · gpu-021 · 2026-05-01 09:05:11 · train.py:88 · job llama-pretrain (4711) · user ann · cluster blue",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "1. See what else holds memory",
        "nvidia-smi",
        "2. Halve the batch",
        "Retry will not help. The same job fails again",
        "Which process held the rest",
        "certain",
        "seen 7 times, 5 in 7 days",
        "512 GPU hours lost",
    ):
        assert part in shown, part


def test_it_speaks_chinese() -> None:
    shown = texts(message(usual(lang="zh", title="GPU 显存不足")))
    assert "新故障：GPU 显存不足" in shown
    assert "共出现 7 次，近 7 天 5 次" in shown


def test_its_buttons_are_those_that_make_sense() -> None:
    def actions(notice: Notice, reachable: bool = True) -> list[str]:
        return [button["action_id"] for button in buttons(message(notice, reachable))]

    assert actions(usual()) == ["open", "mute", "resolve", "right", "wrong"]
    assert actions(usual(status=GroupStatus.RESOLVED)) == ["open", "mute", "right", "wrong"]
    assert actions(usual(entry=None)) == ["open", "mute", "resolve"]
    assert actions(usual(), reachable=False) == ["open"]
    assert actions(usual(kind=NoticeKind.TEST, group=None, incident=None)) == ["open"]


def test_the_threshold_is_named() -> None:
    assert "100 times" in texts(message(usual(kind=NoticeKind.COUNT, count=104, over={"count": 100.0})))
    assert "1,000 GPU hours lost" in texts(message(usual(kind=NoticeKind.COST, over={"cost": 1000.0})))
