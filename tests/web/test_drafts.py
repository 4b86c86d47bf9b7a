"""The form of a draft, without script: nothing typed is lost, and the second of two editors is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.drafts import SAYS, SIGN, SOUND, UNKNOWN
from tests.web.test_pages import handed_in
from torchtriage.domain.access import Scope
from torchtriage.services import tokens
from torchtriage.settings import Settings
from torchtriage.web.app import create_app
from torchtriage.web.pages.draft_form import draft_of_form, values_of

FORM = values_of(SOUND)


def test_a_form_says_what_a_draft_is() -> None:
    assert draft_of_form(FORM) == SOUND
    assert draft_of_form({"kind": "odd", "example": "a\r\nb"}).kind == "cause"
    assert draft_of_form({"example": "a\r\nb"}).example == "a\nb"


def test_from_an_unexplained_incident_to_a_draft_that_is_gone_on_with(client: TestClient) -> None:
    incident = handed_in(client, UNKNOWN)
    address = re.search(r'href="(/drafts/new[^"]+)"', client.get(incident).text)
    assert address is not None
    page = client.get(address[1]).text
    assert "ShardTooShort: shard (?P&lt;shard&gt;" in page
    assert "{last_loss}" in page
    assert not client.get("/api/v1/drafts").json()["items"]  # nothing is kept until somebody says so
    kept = client.post("/drafts", data=FORM | {"action": "save", "incident": incident.rpartition("/")[2]}).text
    assert "Saved." in kept
    assert SAYS in kept
    assert "No problems." in kept
    again = client.get(address[1], follow_redirects=False)
    assert (again.status_code, again.headers["location"]) == (303, "/drafts/1")
    assert SOUND.title_en in client.get("/drafts").text
    file = client.get("/drafts/1.yaml")
    assert file.headers["content-disposition"] == 'attachment; filename="shard-too-short.yaml"'
    assert file.text.startswith("id: ourdata.shard-too-short\n")
    assert f"en: '{SAYS}'" in file.text


def test_a_check_keeps_nothing_and_says_at_the_field_what_is_wrong(client: TestClient) -> None:
    page = client.post("/drafts", data=FORM | {"action": "check", "sign": "Shard(?=x)", "title_zh": ""})
    assert page.status_code == 200
    assert re.search(r'name="sign"[^>]*aria-describedby="w-sign"[^>]*aria-invalid="true"', page.text)
    assert re.search(r'id="w-sign"[^>]*><li>RE2 rejects', page.text)
    assert re.search(r'id="w-title_zh"[^>]*><li class="warns">no Chinese yet', page.text)
    assert SOUND.says_en in page.text
    chinese = client.post("/drafts", data=FORM | {"action": "check", "sign": ""}, headers={"Accept-Language": "zh"})
    assert "待填写" in chinese.text
    assert not client.get("/api/v1/drafts").json()["items"]


@pytest.mark.parametrize("changes", [{"entry": ""}, {"says_en": "x" * 20_001}, {"incident": "77"}])
def test_an_invalid_draft_is_shown_in_the_form_again(client: TestClient, changes: dict[str, str]) -> None:
    page = client.post("/drafts", data=FORM | {"action": "save"} | changes)
    assert page.status_code in (400, 404)
    assert 'role="alert"' in page.text
    assert SOUND.says_zh in page.text


def test_a_value_missing_in_the_example_is_reported_at_the_sentence(client: TestClient) -> None:
    typed = FORM | {"action": "check", "says_en": "Shard {shard} was short at step {step}.", "says_zh": ""}
    page = client.post("/drafts", data=typed).text
    told = "the example has no value for {step}; add the line that shows it, or remove the slot"
    assert re.search(rf'id="w-says_en"[^>]*><li>{re.escape(told)}</li></ul>', page)
    assert re.search(r'id="w-example"[^>]*></ul>', page)
    assert "示例里没有 {step}" in client.post("/drafts", data=typed, headers={"Accept-Language": "zh"}).text


def test_what_the_log_tells_and_the_example_does_not_is_marked(client: TestClient) -> None:
    incident = handed_in(client, UNKNOWN).rpartition("/")[2]
    page = client.post("/drafts", data=FORM | {"action": "check", "incident": incident}).text
    absent = re.findall(r'<div class="absent"><dt><button[^>]*data-slot="(\w+)"', page)
    assert "step" in absent
    assert not {"shard", "path", "where", "exception"} & {*absent}
    assert page.index("In the log, not in the example") < page.index('<div class="absent">')


def test_the_second_of_two_editors_sees_both_versions(client: TestClient) -> None:
    client.post("/drafts", data=FORM | {"action": "save"})
    first = client.post("/drafts/1", data=FORM | {"action": "save", "revision": "1", "title_en": "Bob's <title>"})
    assert "Bob&#39;s &lt;title&gt;" in first.text
    second = client.post("/drafts/1", data=FORM | {"action": "save", "revision": "1", "title_en": "Ann's title"})
    assert second.status_code == 409
    assert "Nothing was overwritten" in second.text
    assert "Bob&#39;s &lt;title&gt;" in second.text
    assert "Ann&#39;s title" in second.text
    assert 'name="revision" value="2"' in second.text
    assert client.get("/api/v1/drafts/1").json()["draft"]["title_en"] == "Bob's <title>"
    client.post("/drafts/1", data=FORM | {"action": "save", "revision": "2", "title_en": "Ann's title"})
    assert client.get("/api/v1/drafts/1").json()["draft"]["title_en"] == "Ann's title"


def test_a_draft_is_deleted_by_who_has_seen_its_last_revision(client: TestClient) -> None:
    client.post("/drafts", data=FORM | {"action": "save"})
    assert client.post("/drafts/1", data={"action": "delete", "revision": "7"}).status_code == 409
    assert client.post("/drafts/1", data={"action": "delete", "revision": "1"}).status_code == 200
    assert client.get("/drafts/1").status_code == 404


def finished(client: TestClient, draft: str) -> dict[str, Any]:
    """Returns what the back-test of a draft found, once it has ended."""
    client.app.state.back_tests.wait()  # type: ignore[attr-defined]
    told: dict[str, Any] = client.get(f"/api/v1/drafts/{draft}/back-test").json()
    return told


def test_a_back_test_says_what_would_change_each_a_link(client: TestClient) -> None:
    incident = handed_in(client, UNKNOWN)
    client.post("/drafts", data=FORM | {"action": "save"})
    assert "Not run yet" in client.get("/drafts/1/back-test").text
    started = client.post("/drafts/1/back-test", data={"action": "start"}, follow_redirects=False)
    assert (started.status_code, started.headers["location"]) == (303, "/drafts/1/back-test")
    told = finished(client, "1")
    assert (told["stage"], told["counts"]) == ("done", {"explains": 1})
    page = client.get("/drafts/1/back-test").text
    assert "Incidents checked: 1" in page
    assert "would explain failures that no entry explains today (1), and change nothing else" in page
    assert f'href="{incident}"' in page
    assert "was changed since" not in page
    assert "ends after 3005 records" in page  # what happened there
    assert 'href="/drafts/1">Next: track or approve it' in page
    moved(client, "track")
    moved(client, "take-back")
    assert "was changed since" not in client.get("/drafts/1/back-test").text  # nothing of its words was
    assert "was changed since" not in client.get("/drafts/1").text
    client.post("/drafts/1", data=FORM | {"action": "save", "revision": "3", "retry": "once"})
    stale = client.get("/drafts/1/back-test").text
    assert "was changed since" in stale
    assert "change nothing else" not in stale
    assert 'class="main" href="/drafts/1/back-test"' in client.get("/drafts/1").text
    assert "was changed since" in client.get("/drafts/1").text
    assert client.post("/drafts/1/back-test", data={"action": "cancel"}).status_code == 200
    assert client.post("/drafts/1/back-test", data={"action": "odd"}).status_code == 400
    client.post("/drafts/1", data=FORM | {"action": "save", "revision": "4", "sign": "x(?=y)"})
    refused = client.post("/api/v1/drafts/1/back-test")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_input")
    assert client.delete("/api/v1/drafts/1/back-test").status_code == 204
    assert client.get("/api/v1/drafts/7/back-test").status_code == 404


def moved(client: TestClient, action: str, draft: str = "1") -> str:
    """Returns the draft's page after the action."""
    revision = client.get(f"/api/v1/drafts/{draft}").json()["revision"]
    return client.post(f"/drafts/{draft}/state", data={"action": action, "revision": revision}).text


def test_a_draft_is_tracked_approved_retriaged_and_undone(client: TestClient) -> None:
    incident = handed_in(client, UNKNOWN)
    client.post("/drafts", data=FORM | {"action": "save"})
    assert "counts the new incidents" in moved(client, "track")
    assert client.post("/drafts/1", data=FORM | {"action": "save", "revision": "2"}).status_code == 409
    client.post("/drafts/1/back-test", data={"action": "start"})
    finished(client, "1")
    page = moved(client, "approve")
    assert "It is in use." in page
    assert "Preview the re-run (1)" in page
    assert "<fieldset disabled>" in page
    assert SOUND.title_en in client.get(f"/knowledge/{SOUND.entry}").text
    assert (
        client.get("/api/v1/knowledge/search", params={"q": SOUND.title_en}).json()["items"][0]["entry"] == SOUND.entry
    )
    assert client.post("/drafts/1/retriage", follow_redirects=False).headers["location"] == "/retriage"
    client.app.state.retriage_jobs.wait()  # type: ignore[attr-defined]
    client.post("/retriage", data={"action": "apply"})
    client.app.state.retriage_jobs.wait()  # type: ignore[attr-defined]
    preview = client.get("/retriage").text
    assert "ends after 3005 records" in preview or SAYS in preview
    assert SOUND.title_en in preview
    assert SAYS in client.get(incident).text
    client.post("/drafts/1/retriage")
    client.app.state.retriage_jobs.wait()  # type: ignore[attr-defined]
    assert "Preview again" not in client.get("/retriage").text
    assert "Tracking only</li>" in (undone := moved(client, "undo"))
    outdated = client.get("/retriage").text
    assert "has changed since this preview" in outdated
    assert 'value="apply"' not in outdated
    assert client.post("/retriage", data={"action": "apply"}).status_code == 409
    client.post("/retriage", data={"action": "again"})
    client.app.state.retriage_jobs.wait()  # type: ignore[attr-defined]
    assert "Apply the changes (1)" in client.get("/retriage").text  # back to what was said without the entry
    assert "undid the approval of" in undone
    assert "undid the approval of" in client.get("/settings").text
    assert 'aria-current="step">Tracking only' in undone
    assert client.get(f"/knowledge/{SOUND.entry}").status_code == 404
    assert "It is not in use yet." in moved(client, "take-back")
    told = client.get("/api/v1/changes", params={"subject": "draft 1"}).json()["items"]
    assert [change["action"] for change in told] == ["take back", "track", "approve", "track", "create"]
    assert client.post("/drafts/1/state", data={"action": "odd", "revision": 1}).status_code == 400
    assert client.post("/drafts/1/state", data={"action": "approve", "revision": 1}).status_code == 409


def test_an_id_that_is_none_goes_into_no_header_and_no_path(client: TestClient) -> None:
    client.post("/drafts", data=FORM | {"action": "save", "entry": '../../x"\r\nSet-Cookie: a=b; 中'})
    file = client.get("/drafts/1.yaml")
    assert file.headers["content-disposition"] == 'attachment; filename="draft-1.yaml"'
    assert "set-cookie" not in file.headers
    assert client.get("/drafts/1.patch").status_code == 400


def test_the_api_moves_a_draft_too(client: TestClient) -> None:
    client.post("/drafts", data=FORM | {"action": "save"})
    told = client.put("/api/v1/drafts/1/state", json={"state": "applied", "revision": 1}).json()
    assert (told["state"], told["approved_by"], told["revision"]) == ("applied", "anyone", 2)
    assert client.get(f"/api/v1/knowledge/{SOUND.entry}").status_code == 200
    again = client.put("/api/v1/drafts/1/state", json={"state": "draft", "revision": 1})
    assert again.json()["error"]["code"] == "edited_meanwhile"
    patch = client.get("/drafts/1.patch")
    assert patch.headers["content-disposition"] == 'attachment; filename="shard-too-short.patch"'
    assert "+++ b/knowledge_base/ourdata/shard-too-short.yaml" in patch.text


def test_the_api_does_the_same(client: TestClient) -> None:
    body = {name: value for name, value in FORM.items() if not name.startswith("step")}
    body |= {"steps": [{"en": FORM["step1_en"], "zh": FORM["step1_zh"], "run": FORM["step1_run"]}]}  # type: ignore[dict-item]
    checked = client.post("/api/v1/drafts/check", json=body).json()
    assert (checked["problems"], checked["says"]["en"]) == ([], SAYS)
    wrong = client.post("/api/v1/drafts/check?lang=zh", json=body | {"sign": SIGN + "(?=x)"}).json()["problems"]
    assert wrong[0]["field"] == "sign"
    assert "RE2 不接受" in wrong[0]["message"]
    made = client.post("/api/v1/drafts", json=body)
    assert (made.status_code, made.headers["location"]) == (201, "/api/v1/drafts/1")
    changed = client.put("/api/v1/drafts/1", json=body | {"revision": 1, "retry": "once"})
    assert (changed.json()["draft"]["retry"], changed.json()["revision"]) == ("once", 2)
    assert client.put("/api/v1/drafts/1", json=body | {"revision": 1}).json()["error"]["code"] == "edited_meanwhile"
    assert client.post("/api/v1/drafts", json=body).json()["error"]["code"] == "entry_taken"
    assert client.put("/api/v1/drafts/1", json=body).status_code == 422
    assert client.get("/api/v1/drafts/7").status_code == 404


def test_the_api_proves_the_other_cases_of_an_entry_where_it_is_asked(client: TestClient) -> None:
    body = {name: value for name, value in CASE.items() if not name.startswith("step")}
    body |= {"steps": [{"en": CASE["step1_en"], "zh": "", "run": ""}]}  # type: ignore[dict-item]
    body |= {"sign": r"FileExistsError: \[Errno 17\]", "near_miss": "FileExistsError: [Errno 13]"}

    def wrong(query: str) -> list[str]:
        told = client.post(f"/api/v1/drafts/check{query}", json=body).json()["problems"]
        return [problem["message"] for problem in told if not problem["warning"]]

    assert wrong("") == []
    assert wrong("?whole=true")[0].startswith("another case would lose its example: ")


def test_a_reader_sees_the_draft_and_no_button(tmp_path: Path) -> None:
    with TestClient(create_app(Settings(data_dir=tmp_path, auth="tokens", workers=0))) as client:
        secrets = {}
        for scope in (Scope.READ, Scope.WRITE):
            scopes = frozenset({Scope.READ, scope})
            secrets[scope], _ = tokens.create(client.app.state.service.database, scope.value, scopes, None, "root")  # type: ignore[attr-defined]
        reader, writer = ({"Authorization": f"Bearer {secrets[scope]}"} for scope in (Scope.READ, Scope.WRITE))
        assert client.post("/drafts", data=FORM | {"action": "save"}, headers=reader).status_code == 403
        assert client.post("/drafts", data=FORM | {"action": "save"}, headers=writer).status_code == 200
        page = client.get("/drafts/1", headers=reader).text
        assert "<fieldset disabled>" in page
        assert 'name="action"' not in page
        assert client.get("/drafts/new?incident=1", headers=reader).status_code == 403
        assert client.post("/api/v1/drafts/check", json={}, headers=reader).status_code == 403
        foreign = {"Sec-Fetch-Site": "cross-site"}
        assert client.post("/drafts", data=FORM | {"action": "save"}, headers=writer | foreign).status_code == 403


LOCKED = UNKNOWN.replace(
    UNKNOWN.splitlines()[-1], "[rank2]: FileExistsError: [Errno 17] File exists: 'frobnicator.lock'"
)
CASE = FORM | {
    "entry": "storage.output-path/frobnicator-lock",
    "title_en": "",
    "title_zh": "",
    "sign": r"FileExistsError: \[Errno 17\] File exists: 'frobnicator\.lock'",
    "says_en": "Another run of the frobnicator left its lock.",
    "says_zh": "上一次 frobnicator 运行留下了锁文件。",
    "step1_en": "Remove the lock.",
    "step1_zh": "删除锁文件。",
    "step1_run": "",
    "example": LOCKED.partition("lr 0.0003\n[")[2].strip().join(["[", ""]),
    "near_miss": "FileExistsError: [Errno 17] File exists: 'frobnicator.out'",
}


@pytest.mark.slow
def test_a_case_is_added_to_an_entry_that_ships_and_taken_out_again(client: TestClient) -> None:
    incident = handed_in(client, LOCKED)
    before = client.get(f"/api/v1{incident}").json()["verdict"]
    assert before["root_cause"]["entry"] == "storage.output-path"
    address = re.search(r'href="(/drafts/new[^"]+case=1)"', client.get(incident).text)
    assert address is not None
    form = client.get(address[1].replace("&amp;", "&")).text
    assert 'value="storage.output-path/' in form
    assert 'name="owner" value=' in form
    assert 'id="d-owner"' not in form
    kept = client.post("/drafts", data=CASE | {"action": "save", "incident": incident.rpartition("/")[2]}).text
    assert '<p class="count">No problems.</p>' in kept
    assert "all cases of storage.output-path are checked first" in kept
    assert 'data-whole="/api/v1/drafts/check?whole=true' in kept
    near = client.post(
        "/drafts",
        data=CASE | {"action": "check", "near_miss": "FileExistsError: [Errno 17] File exists: 'frobnicator.lock'"},
    ).text
    assert re.search(r'id="w-near_miss"[^>]*><li>the sign matches it', near)
    assert client.get("/drafts/1.yaml").text.startswith("adds_to: storage.output-path\ncases:\n")
    client.post("/drafts/1/back-test", data={"action": "start"})
    told = finished(client, "1")
    assert (told["counts"], told["overrides"][0]["case"]) == ({"overrides": 1}, before["answer"]["case"])
    page = client.get("/drafts/1/back-test").text
    assert "Would take from other cases" in page
    assert f'href="{incident}"' in page
    assert 'href="/knowledge/storage.output-path#case-exists-race"' in page
    assert 'id="case-exists-race"' in client.get("/knowledge/storage.output-path").text
    assert "将取代其他 case" in client.get("/drafts/1/back-test", headers={"Accept-Language": "zh"}).text
    assert "It is in use." in moved(client, "approve")
    own = client.get("/api/v1/knowledge/storage.output-path").json()
    assert own["owner"] == "user"
    answered = client.get(f"/api/v1{handed_in(client, LOCKED + 'again')}").json()["verdict"]
    assert answered["root_cause"]["entry"] == "storage.output-path"
    assert answered["answer"]["case"] == "frobnicator-lock"
    assert CASE["says_en"] in answered["answer"]["says"]
    assert "It is not in use yet." in moved(client, "undo")
    after = client.get(f"/api/v1{handed_in(client, LOCKED + 'once more')}").json()["verdict"]
    assert after["answer"]["case"] == before["answer"]["case"]


def retriaged(client: TestClient) -> str:
    """Returns the preview of what the draft changes in stored incidents, which is applied then."""
    jobs = client.app.state.retriage_jobs  # type: ignore[attr-defined]
    assert client.post("/drafts/1/retriage", follow_redirects=False).headers["location"] == "/retriage"
    jobs.wait()
    page = client.get("/retriage").text
    client.post("/retriage", data={"action": "apply"})
    jobs.wait()
    return page


@pytest.mark.slow
def test_stored_answers_follow_a_case_that_is_added_and_taken_back(client: TestClient) -> None:
    incident = handed_in(client, LOCKED)
    unlike = handed_in(client, LOCKED.replace("frobnicator.lock", "frobnicator.out"))
    client.post("/drafts", data=CASE | {"action": "save", "incident": incident.rpartition("/")[2]})
    client.post("/drafts/1/back-test", data={"action": "start"})
    finished(client, "1")
    assert "Preview the re-run (1)" in moved(client, "approve")
    page = retriaged(client)
    assert "1 incidents checked: 1 would change" in page
    assert "Of these, 1 keep their cause and get another case" in page
    cells = re.findall(r'#case-([^"]+)" translate="no">(storage\.output-path/[^<]+)</a>', page)
    both = ("exists-race", "frobnicator-lock")
    assert cells == [(case, f"storage.output-path/{case}") for case in both]
    assert CASE["says_en"] in client.get(incident).text
    assert CASE["says_en"] not in client.get(unlike).text
    assert "Preview the re-run (1)" in (undone := moved(client, "undo"))
    assert 'aria-current="step">Draft' in undone
    assert re.findall(r"#case-([^\"]+)\"", retriaged(client)) == [*reversed(both)]
    assert CASE["says_en"] not in client.get(incident).text
    assert client.get(f"/api/v1{incident}").json()["verdict"]["answer"]["case"] == "exists-race"
    assert "Preview the re-run" not in client.get("/drafts/1").text
    assert client.post("/drafts/1/retriage").status_code == 400
    told = client.get("/api/v1/changes", params={"subject": "draft 1"}).json()["items"]
    assert [change["action"] for change in told] == ["take back", "approve", "create"]
    told = client.get("/api/v1/changes", params={"subject": "incidents"}).json()["items"]
    assert [(change["action"], change["detail"]["changed"]) for change in told] == [("retriage", 1), ("retriage", 1)]
    shown = client.get("/drafts/1").text
    assert re.findall(r"<li>anyone ([a-z ]+) draft 1 <span", shown) == ["undid the approval of", "approved", "created"]
