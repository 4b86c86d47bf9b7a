"""Lists, groups, dashboard, hosts and settings as a browser without script sees them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from tests.storage import values
from tests.web.logs import OOM
from torchtriage.domain.access import Scope
from torchtriage.domain.incident import IncidentFilter, Job
from torchtriage.reading.unpack import Upload
from torchtriage.services import tokens
from torchtriage.services.accept import accept
from torchtriage.services.incidents import every_incident
from torchtriage.services.retention import forget_old
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage import incident_list, incidents
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.storage.tables import IncidentRow
from torchtriage.web.app import create_app

BROWSER = {"accept": "text/html,application/xhtml+xml", "sec-fetch-site": "same-origin"}
UNKNOWN = 'Traceback (most recent call last):\n  File "/work/train.py", line 7, in step\n    turn()\nwidgets.{}: {} <b>jammed</b>\n'
ECC = "Nov 16 10:00:00 gpu-7 kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid=4711, name=python, DBE (double bit error)\n"
EVERY = ("/incidents", "/groups", "/groups/1", "/unexplained", "/dashboard", "/decisions", "/hosts", "/settings", "/changes",
         "/retriage")  # fmt: skip


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(data_dir=tmp_path, workers=0)), headers=BROWSER) as client:
        yield client


@pytest.fixture
def service(client: TestClient) -> Service:
    found = client.app.state.service  # type: ignore[attr-defined]
    assert isinstance(found, Service)
    return found


def given(service: Service, text: str, **job: object) -> str:
    """Returns the id of an incident that is triaged."""
    times = {"gpus": 8, "started_at": "2026-05-01T09:00:00Z", "ended_at": "2026-05-01T10:00:00Z"}
    incident = accept(service, Job(**(times | job)), [Upload("run.log", iter([text.encode()]))]).incident_id  # type: ignore[arg-type]
    triage_incident(service, incident)
    future = service.queue.find(incident)
    if future is not None:
        future.result()
    return incident


def some(service: Service) -> list[str]:
    found = [given(service, OOM, job_id=str(number), cluster="blue", user="ann") for number in range(3)]
    found.append(given(service, UNKNOWN.format("WidgetError", "gear"), job_id="9", cluster="green"))
    found.append(given(service, ECC, job_id="10", cluster="green"))
    found.append(given(service, ECC + "again\n", job_id="11", cluster="green"))
    return found


def group_of(client: TestClient, incident: str) -> str:
    answer = client.get(f"/api/v1/incidents/{incident}").json()
    return str(answer["group"]["id"])


def rows(page: str) -> list[str]:
    return re.findall(r'class="title" href="/incidents/(\d+)"', page)


def table(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"))))


def test_every_page_is_there_before_the_first_incident(client: TestClient) -> None:
    for address in EVERY:
        if address != "/groups/1":
            for lang in ("en", "zh"):
                page = client.get(f"{address}?lang={lang}")
                assert page.status_code == 200, address
                assert not re.search(r"<style|<[^>]*\s(?:style|on\w+)=|<script(?![^>]*\ssrc=)", page.text)


def test_every_page_is_small_and_escapes_what_logs_say(client: TestClient, service: Service) -> None:
    some(service)
    for address in EVERY:
        page = client.get(address)
        assert page.status_code == 200
        assert "<b>jammed" not in page.text
        assert len(page.content) < 100_000


def test_filters_of_days_and_groups(client: TestClient, service: Service) -> None:
    made = some(service)
    today = datetime.now(UTC).date()
    tomorrow = today + timedelta(days=1)
    assert len(rows(client.get(f"/incidents?since={today - timedelta(days=1)}&until={tomorrow}").text)) == len(made)
    assert rows(client.get(f"/incidents?since={tomorrow + timedelta(days=1)}").text) == []
    assert len(rows(client.get("/incidents?since=nonsense").text)) == len(made)
    assert len(rows(client.get(f"/incidents?group={group_of(client, made[0])}&cluster=blue").text)) == 3


def test_every_filter_is_shown_as_a_chip_and_found(client: TestClient, service: Service) -> None:
    some(service)
    given(service, OOM, job_id="12", queue="night", image="img:7", labels={"team": "nlp"})
    for query, count in (("owner=hardware", 2), ("owner=user", 4), ("owner=unknown", 1), ("retry=fix-first", 4),
                         ("queue=night", 1), ("image=img:7", 1), ("label=team:nlp", 1), ("area=cuda", 4),
                         ("area=cuda,xid", 6), ("outcome=failed", 7), ("outcome=failed&owner=nobody", 7)):  # fmt: skip
        page = client.get(f"/incidents?{query}").text
        assert len(rows(page)) == count, query
        assert page.count('class="x"') == query.count("=")
    assert len(client.get("/incidents.json?owner=hardware").json()["items"]) == 2
    assert "无效" in client.get("/incidents?owner=nobody&lang=zh").text


def test_values_of_filters_are_listed_with_counts(client: TestClient, service: Service) -> None:
    some(service)
    client.get("/?lang=en")
    told = client.get("/incidents/values.json").json()
    assert told["cluster"] == [["blue", "blue", 3], ["green", "green", 3]]
    assert ["hardware", "Hardware team", 2] in told["owner"]
    assert told["entry"][0] == ["cuda.oom", "The GPU ran out of memory", 3]
    assert client.get("/incidents/values.json?cluster=blue").json()["user"] == [["ann", "ann", 3]]
    page = client.get("/incidents/values?cluster=blue")
    assert '<a href="/incidents?cluster=blue&amp;user=ann" translate="no">ann</a>' in page.text
    assert "Values of the filters" in page.text


def test_the_palette_leads_to_pages_views_causes_and_numbers(client: TestClient, service: Service) -> None:
    client.post("/incidents/views", data={"name": "the green ones", "query": "cluster=green"})
    assert 'data-go="/dashboard"' in client.get("/palette").text
    assert 'data-go="/incidents?cluster=green"' in client.get("/palette?q=green").text
    assert 'data-go="/knowledge/nccl.timeout"' in client.get("/palette?q=nccl.timeout").text
    numbered = client.get("/palette?q=%2312").text
    assert 'data-go="/incidents/12"' in numbered
    assert 'data-go="/groups/12"' in numbered
    hostile = client.get("/palette?q=%3Cb%3E").text
    assert "&lt;b&gt;" in hostile
    assert 'data-go="/incidents?q=%3Cb%3E"' in hostile


def test_rows_tell_what_happened_to_whom_and_when(client: TestClient, service: Service) -> None:
    incident = given(service, OOM, job_id="1", job_name="night", user="ann")
    client.post(f"/groups/{group_of(client, incident)}", data={"owner": "the storage team"})
    page = client.get("/incidents").text
    row = re.search(r'<li class="row .*?</li>', page, re.S)
    assert row is not None
    for told in ("The GPU ran out of memory", "night", "ann", ">No<", "code author", "the storage team",
                 ">8.0<", "just now", f"#{incident}"):  # fmt: skip
        assert told in row[0], told
    given(service, UNKNOWN.format("WidgetError", "gear"))  # no entry names it
    given(service, ECC)
    page = client.get("/incidents").text
    assert re.findall(r'<span class="retry-(\w+)">([^<]+)</span>', page) == [
        ("elsewhere", "Other hosts"), ("once", "Once"), ("no", "No")]  # fmt: skip
    assert re.search(r'<time datetime="[^"]+" data-ago title="\d{4}-\d\d-\d\d \d\d:\d\d UTC">', row[0])
    assert "刚刚" in client.get("/incidents?lang=zh").text


def test_a_list_can_be_exported_as_csv_and_json(client: TestClient, service: Service) -> None:
    some(service)
    given(service, OOM + "x", job_id="=cmd()", user="@evil", job_name="+1")
    page = client.get("/incidents?entry=cuda.oom").text
    links = dict(re.findall(r'<a href="([^"]+)">(CSV|JSON)</a>', page))
    for address, kind in links.items():
        answer = client.get(address.replace("&amp;", "&"))
        assert answer.status_code == 200
        if kind == "CSV":
            assert "attachment" in answer.headers["content-disposition"]
            names, *lines = table(answer.text)
            assert len(lines) == 4
            assert dict(zip(names, lines[0], strict=True))["job_id"] == "'=cmd()"
            assert dict(zip(names, lines[0], strict=True))["user"] == "'@evil"
        else:
            assert len(answer.json()["items"]) == 4
    for address in ("/groups.csv", "/hosts.csv", "/dashboard.csv?table=causes", "/dashboard.csv?table=by_area"):
        assert len(table(client.get(address).text)) > 1, address
    assert client.get("/dashboard.csv?table=nothing").status_code == 404


def test_no_cell_of_a_table_begins_a_formula(client: TestClient, service: Service) -> None:
    begins = ("=", "+", "-", "@", "\t", "\r", "\n", "\r\n", "＝", "＋", "－", "＠")
    for number, begin in enumerate(begins):
        given(service, OOM + "x" * number, job_name=f"{begin}cmd|' /C calc'!A0")
    names, *lines = table(client.get("/incidents.csv").text)
    assert len(lines) == len(begins)
    for line in lines:
        assert dict(zip(names, line, strict=True))["job_name"].startswith("'")


def test_an_export_holds_all_that_fits_and_not_a_page_of_it(client: TestClient, service: Service) -> None:
    first = given(service, OOM, job_id="first", cluster="blue")
    with service.database.transaction() as session:
        for number in range(230):
            values.added(session, f"log {number}", number, job_id=str(number), cluster="blue")
        values.added(session, "other", 0, job_id="other", cluster="green")
    names, *lines = table(client.get("/incidents.csv?cluster=blue").text)
    ids = [dict(zip(names, line, strict=True))["job_id"] for line in lines]
    assert ids == ["first", *map(str, reversed(range(230)))]
    told = client.get("/incidents.json?cluster=blue")
    assert "attachment" in told.headers["content-disposition"]
    assert told.json()["next"] is None
    assert [item["job"]["job_id"] for item in told.json()["items"]] == ids
    alone = client.get(f"/api/v1/incidents/{first}").json()
    assert told.json()["items"][0] | {"since_good": None} == alone
    assert client.get("/incidents.json?cluster=nowhere").json() == {"items": [], "next": None}
    assert len(table(client.get("/incidents.csv?cluster=nowhere").text)) == 1


def test_an_export_is_read_piece_by_piece(service: Service) -> None:
    with service.database.transaction() as session:
        made = [values.added(session, f"log {number}", number) for number in range(450)]
    found = every_incident(service, IncidentFilter())
    taken = [next(found).id]
    with service.database.transaction() as session:
        incidents.remove(session, made[0])  # stands in the last piece, which is not read yet
    taken += [incident.id for incident in found]
    assert taken == made[:0:-1]


def test_a_list_that_ended_early_leads_on(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = given(service, OOM, job_id="1", user="ann")
    for number in range(4):
        given(service, OOM + str(number), job_id="1", user="bob")
    for name in ("AT_FIRST", "LOOKED_AT"):
        monkeypatch.setattr(incident_list, name, 2)
    monkeypatch.setattr(incident_list, "FEW", 0)
    page = client.get("/incidents?q=ann").text
    assert "older incidents may match" in page
    for _ in range(2):
        older = re.search(r'href="([^"]+)" rel="next"', page)
        assert older is not None
        page = client.get(older[1].replace("&amp;", "&")).text
    assert rows(page) == [old]


def test_a_list_that_is_not_full_though_there_is_more_says_so(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, user in enumerate(("ann", "bob", "bob", "ann")):
        given(service, OOM + str(number), job_id=str(number), user=user)
    assert "keeps searching" not in client.get("/incidents?q=ann").text
    for name in ("AT_FIRST", "LOOKED_AT"):
        monkeypatch.setattr(incident_list, name, 2)
    monkeypatch.setattr(incident_list, "FEW", 0)
    page = client.get("/incidents?q=ann").text
    assert len(rows(page)) == 1
    assert "keeps searching" in page


def test_a_view_is_saved_used_removed_and_brought_back(client: TestClient, service: Service) -> None:
    some(service)
    saved = client.post("/incidents/views", data={"name": " my  cluster ", "query": "cluster=green&evil=1"})
    assert saved.status_code == 200
    assert "View saved" in saved.text
    assert str(saved.url).endswith("/incidents?cluster=green&said=saved")
    page = client.get("/incidents").text
    assert re.search(r'href="/incidents\?cluster=green"[^>]*>my cluster<', page)
    address = re.search(r'action="(/incidents/views/\d+/remove)"', client.get("/incidents?cluster=green").text)
    assert address is not None
    removed = client.post(address[1])
    assert "View my cluster deleted" in removed.text
    assert 'name="query" value="cluster=green"' in removed.text
    assert ">my cluster</a>" not in client.get("/incidents").text
    assert client.post(address[1]).status_code == 404
    for name in ("", " ", "x" * 81):
        assert client.post("/incidents/views", data={"name": name, "query": ""}).status_code == 400
    said = [change.action for change in tokens.changes(service.database, ChangeFilter("view 1"), 9).items]
    assert said == ["remove", "save"]


def test_deleting_several_asks_first(client: TestClient, service: Service) -> None:
    made = some(service)
    chosen = {"incident": made[:2], "here": "cluster=blue", "action": "delete"}
    asked = client.post("/incidents/bulk", data=chosen)
    assert "Delete 2 incidents?" in asked.text
    assert len(client.get("/api/v1/incidents").json()["items"]) == len(made)
    done = client.post("/incidents/bulk", data=chosen | {"action": "forget"})
    assert "Deleted: 2." in done.text
    assert rows(done.text) == [made[2]]
    assert "Deleted: 0." in client.post("/incidents/bulk", data=chosen | {"action": "forget"}).text
    assert "Nothing selected" in client.post("/incidents/bulk", data={"action": "delete"}).text
    assert client.post("/incidents/bulk", data={"incident": made[2], "action": "sell"}).status_code == 400


def test_several_verdicts_get_feedback_at_once(client: TestClient, service: Service) -> None:
    made = some(service)
    client.post("/incidents/bulk", data={"incident": made[:3], "action": "right"})
    client.post("/incidents/bulk", data={"incident": made[0], "action": "wrong"})
    said = client.get(f"/api/v1/incidents/{made[0]}").json()["feedback"]
    assert [one["verdict"] for one in said] == ["right", "wrong"]
    (judged,) = client.get("/api/v1/dashboard").json()["precision"]
    assert judged == {"entry": "cuda.oom", "right": 3, "wrong": 1}
    assert "75 %" in client.get("/dashboard").text


def test_a_retriage_previews_first_and_changes_when_confirmed(client: TestClient, service: Service) -> None:
    made = some(service)
    retriage_jobs = client.app.state.retriage_jobs  # type: ignore[attr-defined]
    page = client.post("/incidents/bulk", data={"incident": made[:2], "action": "retriage"})
    assert str(page.url).endswith("/retriage")
    retriage_jobs.wait()
    assert retriage_jobs.progress.stage == "found"
    assert (retriage_jobs.progress.looked_at, retriage_jobs.progress.found) == (2, 0)
    assert "2 incidents checked: 0 would change" in client.get("/retriage").text
    assert client.post("/retriage", data={"action": "discard"}).status_code == 200
    assert "incidents checked" not in client.get("/retriage").text
    assert client.post("/retriage", data={"action": "apply"}).status_code == 400
    assert client.post("/retriage", data={"action": "sing"}).status_code == 400
    assert "All stored verdicts come from the current knowledge base" in client.get("/retriage").text
    with service.database.transaction() as session:
        session.execute(update(IncidentRow).where(IncidentRow.number == int(made[0])).values(knowledge="older"))
    assert retriage_jobs.older == 1
    asked = client.get("/retriage").text
    assert "older knowledge base: 1." in asked
    assert "Preview the changes" in asked
    assert "Re-run triage (1)" in client.get("/settings").text
    client.post("/retriage/all")
    retriage_jobs.wait()
    assert client.post("/retriage", data={"action": "apply"}).status_code == 200
    retriage_jobs.wait()
    assert "0 verdicts changed" in client.get("/retriage").text


def test_groups_are_found_by_words_and_say_what_happened_last(client: TestClient, service: Service) -> None:
    given(service, OOM, job_name="ft-7b")
    given(service, UNKNOWN.format("AaaError", 1))
    page = client.get("/groups?q=memory").text
    assert re.search(r'class="says">.*GPU', page)
    assert "ft-7b" in page
    assert "AaaError" not in page
    assert 'class="title"' not in client.get("/groups?q=memory&outcome=unexplained").text
    chinese = client.get("/groups", params={"q": "显存"}, headers={"Accept-Language": "zh"}).text
    assert "ft-7b" in chinese
    assert "AaaError" not in chinese
    assert [group["entry"] for group in client.get("/api/v1/groups?q=cuda.oom").json()["items"]] == ["cuda.oom"]


def test_groups_are_sorted_and_paged_both_ways(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("Aaa", "Bbb", "Ccc")):
        for turn in range(number + 1):
            given(service, UNKNOWN.format(f"{name}Error", turn), job_id=f"{name} {turn}", gpus=100 - 40 * number)
    monkeypatch.setattr("torchtriage.web.pages.groups._BATCH_SIZE", 2)

    def order(sort: str) -> list[str]:
        first = client.get(f"/groups?sort={sort}").text
        older = re.search(r'href="([^"]+)" rel="next"', first)
        assert older is not None
        second = client.get(older[1].replace("&amp;", "&")).text
        newer = re.search(r'href="([^"]+)" rel="prev"', second)
        assert newer is not None
        titles = r'class="title" href="/groups/\d+">widgets\.(\w+)Error'
        assert re.findall(titles, client.get(newer[1].replace("&amp;", "&")).text) == re.findall(titles, first)
        return re.findall(titles, first) + re.findall(titles, second)

    assert order("count") == ["Ccc", "Bbb", "Aaa"]
    assert order("cost") == ["Bbb", "Aaa", "Ccc"]
    assert order("last_seen") == ["Ccc", "Bbb", "Aaa"]


def test_several_groups_are_resolved_and_that_is_undone(client: TestClient, service: Service) -> None:
    made = some(service)
    groups = sorted({group_of(client, incident) for incident in made})
    client.post(f"/groups/{groups[0]}", data={"status": "ignored"})
    done = client.post("/groups/bulk", data={"group": groups, "status": "resolved", "here": "sort=count"})
    assert f"Set to Resolved: {len(groups)}." in done.text
    was = re.search(r'name="was" value="([^"]+)"', done.text)
    assert was is not None
    client.post("/groups/undo", data={"was": was[1], "here": ""})
    status = {group["id"]: group["status"] for group in client.get("/api/v1/groups").json()["items"]}
    assert status == {group: "ignored" if group == groups[0] else "open" for group in groups}
    assert client.post("/groups/bulk", data={"group": groups, "status": "gone"}).status_code == 400
    assert client.post("/groups/undo", data={"was": "1:gone"}).status_code == 400


def test_a_group_has_an_owner_a_note_and_silence(client: TestClient, service: Service) -> None:
    some(service)
    page = client.post("/groups/1", data={"owner": " the  storage team ", "note": "see <b>wiki</b>"}).text
    assert 'value="the storage team"' in page
    assert "see &lt;b&gt;wiki" in page
    assert "Muted until" in client.post("/groups/1", data={"mute": "7"}).text
    told = client.get("/api/v1/groups/1").json()
    assert told["owner"] == "the storage team"
    muted = datetime.fromisoformat(told["muted_until"]) - datetime.now(UTC)
    assert timedelta(days=6, hours=23) < muted <= timedelta(days=7)
    assert "Muted until" not in client.post("/groups/1", data={"mute": "0"}).text
    assert client.post("/groups/1", data={}).status_code == 400
    assert client.patch("/api/v1/groups/1", json={"mute_days": 0.5}).json()["muted_until"] is not None


def test_a_group_opens_with_its_answer_and_shows_whom_it_affects_and_what_was_tried(
    client: TestClient, service: Service
) -> None:
    made = [given(service, OOM + f"{at}\n", job_id=str(at), user="ann", image="night:7") for at in range(5)]
    for at in range(20):
        given(service, UNKNOWN.format("WidgetError", at), job_id=f"w{at}", user="bo", image="night:6")
    again = given(service, OOM + "again\n", job_id="0", user="ann", image="night:7")
    client.post(f"/api/v1/incidents/{made[1]}/feedback", json={"verdict": "right", "note": "a smaller <b>batch"})
    group = group_of(client, made[0])
    for lang, out in (("en", "Image"), ("zh", "镜像")):
        page = client.get(f"/groups/{group}?lang={lang}").text
        assert page.index('class="strip three"') < page.index('class="strip group-facts"') < page.index('id="trend"')
        standing = re.search(r'<ul class="standing-out">.*?</ul>', page, re.S)
        assert standing is not None
        assert out in standing[0]
        assert f"/incidents?group={group}&amp;image=night%3A7" in standing[0]
        assert "p &lt; 0.001" in standing[0]
        assert f'href="/incidents/{made[0]}">#{made[0]}</a> → <a href="/incidents/{again}">' in page
        assert "a smaller &lt;b&gt;batch" in page
        today = datetime.now(UTC).date().isoformat()
        assert f'<a href="/incidents?group={group}&amp;day={today}" tabindex="-1">' in page
        assert f'<a href="/incidents?group={group}&amp;day={today}">{today}</a>' in page  # for those who do not point
    assert len(rows(client.get(f"/incidents?group={group}&day={today}").text)) == 6
    assert len(rows(client.get(f"/incidents?group={group}&day={today[:7]}").text)) == 6
    assert rows(client.get(f"/incidents?group={group}&day=2020-01").text) == []


def test_groups_are_merged_and_split_and_both_are_undone(client: TestClient, service: Service) -> None:
    made = [given(service, UNKNOWN.format(f"Widget{name}Error", "gear"), job_id=name, cluster=cluster)
            for name, cluster in (("A", "blue"), ("A2", "green"), ("B", "blue"))]  # fmt: skip
    made.append(given(service, UNKNOWN.format("WidgetAError", "gear"), job_id="other", cluster="green"))
    first, other = group_of(client, made[0]), group_of(client, made[2])
    page = client.get(f"/groups/{first}").text
    assert re.search(rf'name="other" value="{other}"', page)
    merged = client.post(f"/groups/{first}/merge", data={"other": other})
    assert f"Merged: group {other}." in merged.text
    assert group_of(client, made[2]) == first
    led = client.get(f"/groups/{other}")
    assert led.url.path == f"/groups/{first}"
    assert f"Group {other} was merged into this one." in led.text
    client.post(f"/groups/{first}/unmerge", data={"other": other})
    assert group_of(client, made[2]) == other
    split = client.post(f"/groups/{first}/split", data={"part": "cluster=green"})
    own = group_of(client, made[3])
    assert own != first
    assert f'Split off: <a href="/groups/{own}">' in split.text
    client.post(f"/groups/{first}/merge", data={"named": f"#{own}"})
    assert group_of(client, made[3]) == first
    for wrong in ({}, {"named": ""}):
        assert client.post(f"/groups/{first}/merge", data=wrong).status_code == 400
    assert client.post(f"/groups/{first}/merge", data={"named": "999"}).status_code == 404
    assert client.post(f"/groups/{first}/split", data={"part": "colour=red"}).status_code == 400


def test_the_unexplained_come_with_their_line_and_a_draft(client: TestClient, service: Service) -> None:
    some(service)
    page = client.get("/unexplained").text
    assert "widgets.WidgetError: gear &lt;b&gt;jammed&lt;/b&gt;" in page
    assert "cuda.oom" not in page
    address = re.search(r'href="(/drafts/new\?group=\d+)"', page)
    assert address is not None
    draft = client.get(address[1]).text
    assert 'value="new.widget-error"' in draft
    assert "WidgetError: gear &lt;b&gt;jammed&lt;/b&gt;" in draft
    assert client.get("/drafts/new?group=999").status_code == 404
    assert "Not listed here" not in page
    client.post(f"/groups/{address[1].rpartition('=')[2]}", data={"status": "ignored"})
    page = client.get("/unexplained").text
    assert "jammed" not in page
    assert "ignored groups: 1 (incidents: 1)" in page
    assert 'href="/groups?outcome=unexplained&amp;status=ignored"' in page


def test_the_dashboard_counts_what_failed(client: TestClient, service: Service) -> None:
    some(service)
    told = client.get("/api/v1/dashboard").json()
    assert told["count"] == 6
    assert told["gpu_hours_lost"] == 48.0
    assert {row["entry"]: row["count"] for row in told["causes"]}["cuda.oom"] == 3
    assert [(row["cluster"], row["count"]) for row in told["clusters"]] == [("blue", 3), ("green", 3)]
    assert told["hosts"][0]["host"] == "gpu-7"
    assert sum(sum(value for name, value in row.items() if name != "time") for row in told["by_owner"]) == 6
    page = client.get("/dashboard?cluster=green").text
    assert "--exclude=gpu-7" in page
    assert "kubectl cordon gpu-7" in page
    assert client.get("/api/v1/dashboard?cluster=blue").json()["hosts"] == []
    today = datetime.now(UTC).date().isoformat()
    for link, count in ((f"/incidents?day={today}&area=cuda", 3), (f"/incidents?day={today}&owner=hardware", 2),
                        (f"/incidents?day={today}&owner=unknown", 1)):  # fmt: skip
        assert f'href="{link.replace("&", "&amp;")}"' in client.get("/dashboard").text
        assert len(rows(client.get(link).text)) == count
    whole = re.search(r'<strong><a href="([^"]+)">6</a>', client.get("/dashboard").text)
    assert whole is not None
    assert len(rows(client.get(whole[1].replace("&amp;", "&")).text)) == 6
    assert "No failures in this range" in client.get("/dashboard?since=2020-01-01&until=2020-02-01").text
    for strange in ("days=7", "days=365", "days=x", "since=0001-01-01", "until=9999-12-31", "since=2026-13-99"):
        assert client.get(f"/dashboard?{strange}").status_code == 200
        assert client.get(f"/hosts?{strange}").status_code == 200


def test_hosts_tell_what_failed_on_them(client: TestClient, service: Service) -> None:
    some(service)
    page = client.get("/hosts?host=gpu").text
    assert 'href="/hosts/gpu-7"' in page
    host = client.get("/hosts/gpu-7").text
    assert "State=DRAIN" in host
    assert host.index("Slurm, for all jobs:") < host.index("--exclude=gpu-7") < host.index("kubectl cordon")
    assert len(rows(host)) == 2
    assert "Failures per day, last 30 days" in host
    assert 'href="/incidents?host=gpu-7&amp;day=' in host
    assert client.get("/hosts/nowhere").status_code == 404
    given(service, ECC, cluster="green", scheduler="kubernetes")
    host = client.get("/hosts/gpu-7").text
    assert host.index("kubectl cordon") < host.index("State=DRAIN")


def test_of_a_hosts_causes_its_own_faults_come_first(client: TestClient, service: Service) -> None:
    for at in range(2):
        given(service, f"Nov 16 10:00:0{at} gpu-7 kernel: Out of memory: Killed process 4711 (python)\n")
    given(service, ECC)
    page = client.get("/hosts").text
    causes = re.findall(r"/incidents\?host=gpu-7&amp;entry=([\w.-]+)", page)
    assert causes[0] == "xid.48"
    assert len(causes) == 2
    assert '<td class="n"' in page
    assert 'class="n bad"' not in page  # of three failures none is more than chance


def test_hosts_begin_with_those_that_fail_more_than_chance(client: TestClient, service: Service) -> None:
    assert 'class="tag"' not in client.get("/hosts").text
    for number in range(12):
        given(service, ECC, job_id=str(number), cluster="green")
    for number in range(10, 30):
        given(service, ECC.replace("gpu-7", f"gpu-{number}"), job_id=str(number), cluster="green")
    assert "12 runs failed here first, 1.5 expected" in client.get("/hosts/gpu-7").text
    assert "expected" not in client.get("/hosts/gpu-11").text
    page = client.get("/hosts").text
    assert "failed 12 times, 1.5 expected" in page
    assert page.count("more than chance</span>") == 1
    assert 'href="/incidents?host=gpu-7&amp;outcome=failed"' in page
    assert 'href="/incidents?host=gpu-7&amp;entry=xid.48"' in page


def test_empty_lists_say_what_to_do_first(client: TestClient) -> None:
    drafts, alerts = client.get("/drafts").text, client.get("/alerts").text
    assert drafts.count("<li>") >= 4
    assert '<a class="button" href="/unexplained">' in drafts
    assert '<a class="main" href="/connect?from=slack">' in alerts


def test_a_token_is_shown_once_and_revoked(client: TestClient, service: Service) -> None:
    made = client.post("/settings/tokens", data={"name": "ci", "scope": ["submit", "read"], "days": "30"})
    secret = re.search(r"tt_[\w-]{43}", made.text)
    assert secret is not None
    assert made.headers["cache-control"] == "no-store"
    assert secret[0] not in client.get("/settings").text
    caller = tokens.caller_of(service.database, secret[0])
    assert caller is not None
    assert caller.scopes == {Scope.SUBMIT, Scope.READ}
    address = re.search(r'action="(/settings/tokens/\d+/revoke)"', client.get("/settings").text)
    assert address is not None
    assert "Expired or revoked: 1" in client.post(address[1]).text
    assert tokens.caller_of(service.database, secret[0]) is None
    for wrong in ({"name": "", "scope": "read"}, {"name": "x"}, {"name": "x", "scope": "everything"}):
        assert client.post("/settings/tokens", data=wrong).status_code == 400
    refused = client.post("/settings/tokens", data={"name": "nightly", "days": "30"}).text
    assert 'id="w-scope" role="alert">Choose at least one scope.' in refused
    assert 'value="nightly"' in refused
    assert '<option value="30" selected>' in refused
    assert 'value="write" checked' in client.post("/settings/tokens", data={"name": " ", "scope": "write"}).text


def test_the_settings_tell_no_secret(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, workers=0, oidc_client_secret="hush-hush", retention_days=90)
    with TestClient(create_app(settings), headers=BROWSER) as client:
        page = client.get("/settings?check=1").text
    assert "hush-hush" not in page
    assert "TRIAGE_OIDC_CLIENT_SECRET" in page
    assert '<code translate="no">severity=warning</code>' in page
    assert (
        page.index("TRIAGE_RETENTION_DAYS</code></th>")
        < page.index("Options at their default")
        < page.index("TRIAGE_AUTH</code></th>")
    )
    assert "No changes: the service uses what is in the folders" in page


def test_a_held_back_deletion_is_shown_with_the_command_that_runs_it(client: TestClient, service: Service) -> None:
    assert "torchtriage db " not in client.get("/settings").text
    for days in range(400, 600, 100):
        accept(service, Job(), [Upload("log", iter([b"run %d\n" % days]))], datetime.now(UTC) - timedelta(days=days))
    assert forget_old(replace(service, settings=replace(service.settings, retention_days=90))) == 0
    page = client.get("/settings").text
    assert "2 of 2 incidents were due more than a day ago; the clock may be wrong" in page
    assert "torchtriage db forget-old --yes" in page
    assert "2 条故障中有 2 条已过期一天以上" in client.get("/settings?lang=zh").text
    service.counters.set_held_back("logs", 30, "30 of 31 stored logs belong to no incident of this database")
    page = client.get("/settings").text
    assert "保存的 31 份日志中有 30 份不属于本数据库的任何故障" in page
    assert "torchtriage db sweep --yes" in page


def test_an_unknown_channel_is_reported(client: TestClient) -> None:
    answer = client.post("/settings/test", data={"channel": "nowhere"})
    assert answer.status_code == 404
    assert "no such channel" in answer.text


CHANGES = [
    ("/incidents/bulk", Scope.WRITE), ("/incidents/views", Scope.WRITE), ("/incidents/views/1/remove", Scope.WRITE),
    ("/groups/bulk", Scope.WRITE), ("/groups/undo", Scope.WRITE), ("/groups/1", Scope.WRITE),
    ("/groups/1/merge", Scope.WRITE), ("/groups/1/unmerge", Scope.WRITE), ("/groups/1/split", Scope.WRITE),
    ("/retriage", Scope.WRITE), ("/retriage/all", Scope.ADMIN), ("/settings/tokens", Scope.ADMIN),
    ("/settings/tokens/1/revoke", Scope.ADMIN), ("/settings/test", Scope.ADMIN),
]  # fmt: skip


def test_every_change_asks_for_its_scope_and_for_our_own_page(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, workers=0, auth="tokens", host="0.0.0.0")
    with TestClient(create_app(settings)) as client:
        database = client.app.state.service.database  # type: ignore[attr-defined]
        for address, scope in CHANGES:
            others = [other for other in Scope if other not in (scope, Scope.ADMIN)]
            secret, _ = tokens.create(database, "ann", others, None, "a test")
            header = {"authorization": f"Bearer {secret}"}
            assert client.post(address).status_code == 401, address
            assert client.post(address, headers=header).json()["error"]["code"] == "forbidden", address
            foreign = header | {"sec-fetch-site": "cross-site"}
            assert client.post(address, headers=foreign).json()["error"]["code"] == "cross_site", address
        secret, _ = tokens.create(database, "ann", [Scope.READ], None, "a test")
        header = {"authorization": f"Bearer {secret}", "accept": "text/html"}
        assert client.get("/settings", headers=header).status_code == 403
        assert 'href="/settings"' not in client.get("/incidents", headers=header).text
        assert "bulk_" not in client.get("/incidents", headers=header).text
