"""The audit log as Settings shows it, in both languages."""

from __future__ import annotations

import ast
import html
import re
from datetime import UTC, datetime
from pathlib import Path

from fastapi.testclient import TestClient

import torchtriage
from tests.web.logs import OOM
from torchtriage.domain.access import Change
from torchtriage.web.pages.audit_log import change_lines
from torchtriage.web.pages.translations import catalogue

AT = datetime(2026, 11, 22, tzinfo=UTC)
WRITERS = {"Change": 2, "_audit": 2, "_make": 3}  # by which argument each is told what was done


def written() -> set[str]:
    """Returns every action that the code writes into the trail."""
    found = set()
    for file in Path(torchtriage.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WRITERS:
                told = node.args[WRITERS[node.func.id] :][:1]
                found |= {one.value for one in told if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return found


def test_everything_that_is_written_down_has_its_words() -> None:
    actions = written()
    assert {"create", "merge", "regress", "send again"} <= actions
    assert [action for action in actions if f"did_{action.replace(' ', '_')}" not in catalogue()] == []


def test_a_change_is_shown_in_the_readers_language() -> None:
    merged = Change(AT, "ann", "merge", "group 7", {})
    english, chinese = change_lines([merged], "en")[0], change_lines([merged], "zh")[0]
    assert (english.did, english.thing, english.address) == ("merged others into", "group 7", "/groups/7")
    assert (chinese.did, chinese.thing, chinese.address) == ("合并", "分组 7", "/groups/7")


def test_deleted_or_unknown_subjects_have_no_link() -> None:
    gone, odd = change_lines(
        [Change(AT, "ann", "forget", "incident 3", {}), Change(AT, "ann", "paint", "shed", {})], "zh"
    )
    assert (gone.did, gone.thing, gone.address) == ("删除", "故障 3", None)
    assert (odd.did, odd.thing, odd.address) == ("paint", "shed", None)


def test_settings_tell_changes_in_chinese(client: TestClient) -> None:
    address = client.post("/", files={"log": ("run.log", OOM.encode())}).url.path
    client.post(f"{address}/feedback", data={"verdict": "right"})
    page = client.get("/settings", headers={"Accept-Language": "zh"}).text
    assert f'<td>反馈“正确” <a href="{address}">故障 {address.rsplit("/", 1)[1]}</a></td>' in page


def test_the_audit_log_has_pages(client: TestClient) -> None:
    address = client.post("/", files={"log": ("run.log", OOM.encode())}).url.path
    for number in range(20):
        client.post(f"{address}/feedback", data={"verdict": "right", "note": f"note {number}"})
    first = client.get("/settings").text
    assert first.count("gave the feedback") == 15
    older = re.search(r'href="([^"]+#changes)" rel="next"', first)
    assert older is not None
    second = client.get(html.unescape(older[1])).text
    assert second.count("gave the feedback") == 5
    assert 'href="/settings#changes"' in second
    assert client.get("/settings?changes=nonsense").status_code == 400
