"""The audit log as Settings shows it, in both languages."""

from __future__ import annotations

import ast
import html
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi.testclient import TestClient

import torchtriage
from tests.web.logs import OOM
from torchtriage.domain.access import AuditLine, Scope
from torchtriage.domain.group import GroupChange, GroupFilter, GroupStatus
from torchtriage.services import tokens
from torchtriage.services.groups import change_group, list_groups
from torchtriage.services.service import Service
from torchtriage.web.pages import audit_log
from torchtriage.web.pages.audit_log import change_lines
from torchtriage.web.pages.changes import known
from torchtriage.web.pages.translations import catalogue

AT = datetime(2026, 11, 22, tzinfo=UTC)
WRITERS = {"AuditLine": 2, "_audit": 2, "_make": 3}  # by which argument each is told what was done


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
    assert actions <= set(known("act_"))
    assert {name.removeprefix("thing_") for name in catalogue() if name.startswith("thing_")} == set(known("kind_of_"))
    assert {f"detail_{name}" for name in audit_log.SHOWN} <= set(catalogue())


def test_a_change_is_shown_in_the_readers_language() -> None:
    merged = AuditLine(AT, "ann", "merge", "group 7", {})
    english, chinese = change_lines([merged], "en")[0], change_lines([merged], "zh")[0]
    assert (english.did, english.thing, english.address) == ("merged others into", "group 7", "/groups/7")
    assert (chinese.did, chinese.thing, chinese.address) == ("合并", "分组 7", "/groups/7")


def test_deleted_or_unknown_subjects_have_no_link() -> None:
    gone, odd = change_lines(
        [AuditLine(AT, "ann", "forget", "incident 3", {}), AuditLine(AT, "ann", "paint", "shed", {})], "zh"
    )
    assert (gone.did, gone.thing, gone.address) == ("删除", "故障 3", None)
    assert (odd.did, odd.thing, odd.address) == ("paint", "shed", None)


def test_settings_tell_changes_in_chinese(client: TestClient) -> None:
    address = client.post("/", files={"log": ("run.log", OOM.encode())}).url.path
    client.post(f"{address}/feedback", data={"verdict": "right"})
    page = client.get("/settings", headers={"Accept-Language": "zh"}).text
    assert f'<td>反馈“正确” <a href="{address}">故障 {address.rsplit("/", 1)[1]}</a></td>' in page


def test_the_audit_log_has_pages(client: TestClient) -> None:
    assert '<div class="empty">' in client.get("/changes").text
    address = client.post("/", files={"log": ("run.log", OOM.encode())}).url.path
    for number in range(60):
        client.post(f"{address}/feedback", data={"verdict": "right", "note": f"note {number}"})
    assert client.get("/settings").text.count("gave the feedback") == 8
    first = client.get("/changes?kind=incident").text
    assert first.count("gave the feedback") == 50
    older = re.search(r'href="([^"]+)" rel="next"', first)
    assert older is not None
    second = client.get(html.unescape(older[1])).text
    assert second.count("gave the feedback") == 10
    assert 'href="/changes?kind=incident"' in second
    assert client.get("/changes?cursor=nonsense").status_code == 400


def test_the_audit_log_is_filtered(both: TestClient) -> None:
    taken = both.post("/api/v1/incidents?wait=60", content=OOM.encode()).json()
    address = f"/incidents/{taken['id']}"
    both.post(f"{address}/feedback", data={"verdict": "right", "note": "a smaller batch"})
    service: Service = both.app.state.service  # type: ignore[attr-defined]
    tokens.create(service.database, "ci", [Scope.READ, Scope.SUBMIT], None, "ann")
    (group,) = list_groups(service, GroupFilter()).items
    change_group(service, group.id, GroupChange(status=GroupStatus.RESOLVED), "bo_")

    def shown(query: str) -> list[str]:
        page = both.get(f"/changes?{query}").text
        listed = both.get(html.unescape(re.findall(r'href="(/api/v1/changes[^"]*)"', page)[0])).json()["items"]
        assert page.count("<time") == len(listed)  # the API lists the same
        return [one["action"] for one in listed]

    today = datetime.now(UTC).date()
    assert shown("") == ["change", "create", "feedback"]
    assert shown("by=ann") == ["create"]
    assert shown("by=bo%25") == []
    assert shown("action=feedback") == ["feedback"]
    assert shown("kind=group") == ["change"]
    assert shown(f"kind=group&name={group.id}") == ["change"]
    assert shown(f"kind=group&name={group.id}1") == []
    assert shown(f"since={today - timedelta(days=1)}&until={today + timedelta(days=1)}") == shown("")
    assert shown(f"until={today - timedelta(days=2)}") == []
    assert shown(f"since={today + timedelta(days=2)}") == []
    page = both.get("/changes?lang=zh").text
    for words in ("状态：待处理 → 已解决", "备注：a smaller batch", "名称：ci；权限：read, submit"):
        assert words in page
    assert "No change matches these filters." in both.get("/changes?by=nobody&lang=en").text


def test_a_filter_that_cannot_be_used_is_reported_at_its_field_and_kept(client: TestClient) -> None:
    page = client.get("/changes?since=yesterday&until=2026-13-01&name=7&by=ann").text
    for name, words in (("since", "Write the day as"), ("until", "Write the day as"), ("kind", "Choose what this")):
        assert f'aria-describedby="p-{name}"' in page
        assert re.search(rf'id="p-{name}" role="alert">{words}', page)
    for kept in ("yesterday", "2026-13-01", "7", "ann"):
        assert f'value="{kept}"' in page
    assert "before the first one" in client.get("/changes?since=2026-05-02&until=2026-05-01").text
