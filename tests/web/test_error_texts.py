"""What pages tell of errors, in both languages: every message that a page can show has its sentence."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import torchtriage
from torchtriage.settings import Settings
from torchtriage.settings.options import PREFIX
from torchtriage.web.pages.error_texts import problem_text
from torchtriage.web.pages.settings import option_sentences

ROOT = Path(torchtriage.__file__).parent
# Where messages are raised that a page shows; what is raised elsewhere is for programs and the command line.
SHOWN = ("web/pages", "web/authentication.py", "web/security.py", "web/rate_limits.py", "web/api/request_body.py", "web/api/multipart.py",
         "web/api/upload_lanes.py", "web/api/request_spool.py",
         "services/accept.py", "services/back_test.py", "services/draft_approval.py", "services/drafts.py", "storage/drafts.py", "services/groups.py", "services/incidents.py", "services/outbox.py", "services/retriage_job.py",
         "services/stats.py", "services/saved_views.py", "services/explain_match.py", "services/line_patterns.py", "storage/blob_writer.py", "storage/blobs.py",
         "storage/database.py",
         "storage/feedback.py", "storage/group_merging.py", "storage/groups.py", "storage/incidents.py", "storage/tokens.py",
         "storage/saved_views.py", "storage/pagination.py", "reading/unpack.py", "reading/blocks.py",
         "queue/subprocess_calls.py")  # fmt: skip
ERRORS = {"BadInput", "Busy", "BackTestRuns", "AnotherMustApprove", "InUse", "EditedMeanwhile", "EntryTaken", "NotFound", "UnreadableLog", "LogTooLarge", "StorageUnavailable", "BadCursor", "CannotRegroup",
          "DamagedLog", "Forbidden", "Unauthorized", "TooMany", "TooSlow", "UnsupportedBody", "BadForm", "CrossSite",
          "LoginRefused", "CallFailed", "Killed", "NotStarted"}  # fmt: skip


def told(argument: ast.expr) -> list[str]:
    """Returns the message that an error is raised with, or the two of which it is one."""
    match argument:
        case ast.Constant(value=text):
            return [str(text)]
        case ast.JoinedStr(values=parts):
            return ["".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts)]
        case ast.IfExp(body=one, orelse=other):
            return [*told(one), *told(other)]
    return []


def messages() -> list[str]:
    """Returns the messages of all errors that these files raise, an open place as `7`."""
    files = [file for name in SHOWN for file in ([ROOT / name] if name.endswith(".py") else (ROOT / name).glob("*.py"))]
    found = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS and node.args:
                found += told(node.args[0])
    return found


@pytest.mark.parametrize("message", sorted(set(messages()) - {"7: 7"}))  # a file's name and the system's own words
def test_a_message_has_its_sentence_in_chinese(message: str) -> None:
    assert problem_text("en", message) == message
    assert problem_text("zh", message) != message, f"{message!r} does not stand in problems.toml"


def test_values_in_messages_are_filled_in() -> None:
    assert problem_text("zh", "group 4 is merged into group 17") == "分组 4 已并入分组 17"
    assert problem_text("zh", "run.gz: a broken archive: it ends in the middle") == "run.gz：压缩包不完整，中途结束"
    assert problem_text("zh", "weights.bin: binary data, not a log") == "weights.bin：是二进制数据，不是日志"
    pickled = problem_text("zh", "a.pkl: a pickle, but no dump of the flight recorder")
    assert pickled == "a.pkl：是 pickle 文件，但不是 flight recorder 的 dump"


def test_an_unknown_message_stays_as_it_is() -> None:
    assert problem_text("zh", "the moon is full") == "the moon is full"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("Slack answered 404: no_service", "Slack 返回 404：no_service"),
        ("The webhook answered 500: nothing", "Webhook 返回 500：（没有内容）"),
        (
            "127.0.0.1: only https:// URLs are allowed; TRIAGE_ALLOW_PRIVATE_CALLS lifts that",
            "127.0.0.1：只访问 https:// 地址；TRIAGE_ALLOW_PRIVATE_CALLS 可放开",
        ),
        ("hooks.example can't be reached: timed out", "无法连接 hooks.example：timed out"),
        ("left out: node-1.gz: a broken archive: it ends in the middle", "未读取：node-1.gz：压缩包不完整，中途结束"),
        ("run.log: the newest lines stand first: read from the end", "run.log：最新的行在最前面，已从末尾读起"),
        ("17 of very many alike lines were passed over", "大量相似的行中略过了 17 行"),
    ],
)
def test_messages_from_chats_and_verdicts_are_translated_to_chinese(told: str, expected: str) -> None:
    assert problem_text("zh", told) == expected


def test_pages_tell_errors_in_the_readers_language(client: TestClient) -> None:
    chinese = {"Accept": "text/html", "Accept-Language": "zh"}
    assert "没有这个分组" in client.get("/groups/77", headers=chinese).text
    assert "日志是空的" in client.post("/", files={"log": ("run.log", b"")}, headers=chinese).text
    tried = client.post("/knowledge/cuda.oom/try", data={"text": " "}, headers=chinese)
    assert "请先填写要试的文本" in tried.text
    made = client.post("/settings/tokens", data={"name": "x"}, headers=chinese)
    assert "请至少选择一项权限" in made.text


@pytest.mark.parametrize(
    ("lang", "said"), [("en", "the log is larger than the limit of 1 MB"), ("zh", "日志超过上限（1 MB）")]
)
def test_a_log_that_is_too_large_is_refused_with_the_limit_in_its_units(
    client: TestClient, lang: str, said: str
) -> None:
    log = {"log": ("run.log", b"x\n" * 600_000)}
    page = client.post("/", files=log, headers={"Accept": "text/html", "Accept-Language": lang})
    assert page.status_code == 413
    assert said in page.text
    error = client.post("/api/v1/incidents", files=log).json()["error"]
    assert error == {
        "code": "log_too_large",
        "message": "the log is larger than the limit of 1 MB",
        "detail": {"limit": 1_000_000},
    }


def test_an_invalid_filter_is_reported(client: TestClient) -> None:
    page = client.get("/incidents?since=yesterday&state=odd", headers={"Accept-Language": "zh"}).text
    assert page.count("无效，已忽略") == 2


def test_an_incidents_number_leads_to_it(client: TestClient) -> None:
    answer = client.get("/incidents", params={"q": "#12"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/incidents/12")


def test_every_option_has_its_sentence_in_chinese() -> None:
    assert set(option_sentences()) == {f"{PREFIX}{option.name.upper()}" for option in fields(Settings)}
