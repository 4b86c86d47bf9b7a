"""The pages as a browser without script sees them."""

from __future__ import annotations

import io
import re
import string
import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.web.logs import OOM
from torchtriage.answer.labels import LABELS
from torchtriage.answer.localized_verdict import localized
from torchtriage.domain.byte_sizes import limit_text, size_text
from torchtriage.domain.incident import Job
from torchtriage.reading.unpack import Upload
from torchtriage.services.accept import accept
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service
from torchtriage.settings import Settings
from torchtriage.storage import verdicts
from torchtriage.web.app import create_app
from torchtriage.web.pages.log_window import Wanted, log_piece
from torchtriage.web.pages.sanitize import visible
from torchtriage.web.pages.translations import catalogue

WEB = Path(__file__).resolve().parents[2] / "app" / "torchtriage" / "web"
BROWSER = {"accept": "text/html,application/xhtml+xml", "sec-fetch-site": "same-origin"}
UNKNOWN = (
    "Traceback (most recent call last):\n"
    '  File "/work/train.py", line 7, in <module>\n'
    "    widget.turn()\n"
    "widgets.WidgetJammed: \x1b[31m<script>alert('owned')</script>\x1b[0m \u202egnp.exe {{ 7*7 }} \x07\n"
)

TIMEOUT_RANK_RULES = (
    "[rank{0}]:[E810 03:04:11.061727749 ProcessGroupNCCL.cpp:683] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600096 milliseconds"
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(data_dir=tmp_path_factory.mktemp("pages"))), headers=BROWSER) as client:
        yield client


@pytest.fixture(scope="module")
def service(client: TestClient) -> Service:
    found = client.app.state.service  # type: ignore[attr-defined]
    assert isinstance(found, Service)
    return found


def handed_in(client: TestClient, text: str) -> str:
    """Returns the address of the incident that a pasted log led to."""
    answer = client.post("/", files={"pasted": (None, text), "log": ("", b"")}, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return _triaged(client, answer.headers["location"])


def _triaged(client: TestClient, location: str) -> str:
    while client.get(f"/api/v1{location}").json()["state"] in ("received", "triaging"):
        time.sleep(0.05)  # a busy machine triages later
    return location


def test_the_form_needs_no_script_and_leads_to_the_verdict(client: TestClient) -> None:
    start = client.get("/")
    assert 'method="post" action="/" enctype="multipart/form-data"' in start.text
    assert 'name="pasted"' in start.text
    page = client.get(handed_in(client, OOM))
    assert page.status_code == 200
    for expected in ("cuda.oom", "rank 3", "Will a retry help?", "What to do", "CUDA out of memory. Tried", 'id="L4"'):
        assert expected in page.text


@pytest.mark.parametrize(("spoke", "sought"), [((1, 2, 3, 5, 6, 7), "Check ranks 0,4 first"), ((1, 4), "")])
def test_the_ranks_for_which_the_others_waited_come_first(
    client: TestClient, spoke: tuple[int, ...], sought: str
) -> None:
    page = client.get(handed_in(client, "\n".join(TIMEOUT_RANK_RULES.format(rank) for rank in spoke)))
    assert "Not in the log" in page.text
    assert sought in page.text
    assert ("Check ranks" in page.text) == bool(sought)


def test_several_files_are_one_run(client: TestClient) -> None:
    files = [("log", ("rank_2.log", b"step 1\n")), ("log", ("rank_3.log", OOM.encode()))]
    taken = client.post("/", files=files, follow_redirects=False)
    page = client.get(_triaged(client, taken.headers["location"]))
    assert 'href="#L4"' in page.text
    log = client.get(f"{page.url.path}/log")
    assert '<option value="rank_3.log" selected>' in log.text
    assert "step 1" in client.get(f"{page.url.path}/log?file=rank_2.log").text


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b\x08broken"])
def test_a_file_that_is_no_log_is_reported_above_the_form(client: TestClient, content: bytes) -> None:
    answer = client.post("/", files={"log": ("run.log.gz", content)})
    assert answer.status_code == 422
    assert re.search(r'role="alert">[^<]{10,}', answer.text)
    assert 'name="pasted"' in answer.text


def test_foreign_text_is_shown_and_does_nothing(client: TestClient) -> None:
    page = client.get(handed_in(client, UNKNOWN)).text
    assert "&lt;script&gt;alert(&#39;owned&#39;)&lt;/script&gt;" in page
    assert "{{ 7*7 }}" in page
    assert "<span class=ctl>&lt;U+202E&gt;</span>gnp.exe" in page
    assert "<span class=ctl>^G</span>" in page
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", page)
    assert len(re.findall('<script(?! type="module" src=)', page)) == 0


def test_hostile_job_fields_and_names_are_escaped(client: TestClient, service: Service) -> None:
    evil = '"><img src=x onerror=alert(1)>'
    job = Job(job_name=evil, user=evil, cluster=evil, url="javascript:alert(1)", labels={evil: evil})
    uploads = [Upload(f"{evil}.log", iter([OOM.encode()])), Upload("b.log", iter([b"fine\n"]))]
    incident_id = accept(service, job, uploads).incident_id
    for address in (f"/incidents/{incident_id}", "/incidents", f"/incidents?q={evil}&user={evil}"):
        page = client.get(address).text
        assert "<img src=x" not in page
        assert "javascript:" not in page


def test_filters_live_in_the_address(client: TestClient) -> None:
    oom, unknown = handed_in(client, OOM + "filtered\n"), handed_in(client, UNKNOWN + "filtered\n")
    listed = client.get("/incidents?outcome=unexplained&q=WidgetJammed").text
    assert f'href="{unknown}"' in listed
    assert f'href="{oom}"' not in listed
    assert 'href="/incidents?outcome=unexplained"' in listed
    assert f'href="{oom}"' in client.get("/incidents?entry=cuda.oom").text
    assert "No incident matches" in client.get("/incidents?host=nowhere&state=nonsense&cluster=%00").text


def test_the_list_is_paged(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        handed_in(client, f"{OOM}page {number}\n")
    monkeypatch.setattr("torchtriage.web.pages.incidents._BATCH_SIZE", 2)
    first = client.get("/incidents?entry=cuda.oom").text
    older = re.search(r'href="([^"]+)" rel="next"', first)
    assert older is not None
    second = client.get(older[1].replace("&amp;", "&")).text
    ids = [set(re.findall(r'class="title" href="/incidents/(\d+)"', page)) for page in (first, second)]
    assert [len(page) for page in ids] == [2, 2]
    assert not ids[0] & ids[1]
    assert client.get("/incidents?cursor=nonsense").status_code == 400


def test_a_group_is_decided_by_a_plain_form(client: TestClient) -> None:
    page = client.get(handed_in(client, OOM)).text
    address = re.search(r'href="(/groups/\d+)"', page)
    assert address is not None
    assert "Resolve" in client.get(address[1]).text
    decided = client.post(address[1], data={"status": "resolved"})
    assert decided.status_code == 200
    assert "status resolved" in decided.text
    assert address[1] in client.get("/groups?status=resolved").text
    assert address[1] not in client.get("/groups?status=open").text
    assert client.post(address[1], data={"status": "gone"}).status_code == 400
    assert client.post("/groups/999999", data={"status": "open"}).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "", "origin": "https://elsewhere.example"},
    ],
)
def test_forms_of_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    for address in ("/", "/groups/1"):
        answer = client.post(address, content=b"", headers=headers)
        assert answer.status_code == 403


def test_knowledge_is_browsed_by_area(client: TestClient) -> None:
    whole = client.get("/knowledge").text
    assert 'href="/knowledge?area=cuda"' in whole
    assert 'href="/knowledge/cuda.oom"' in whole
    big, others = whole.split('<p class="areas">')[1:3]
    assert len(re.findall("<a ", big)) == 10
    assert len(re.findall(r"<a [^>]*area=", others)) > 20
    for lang in ("en", "zh"):
        page = client.get("/knowledge", headers={"Accept-Language": lang}).text
        names = re.findall(r'<h2 id="[\w-]+"><a [^>]*>(.*?) <span class="quiet">', page)
        assert len(names) > 30
        assert names == sorted(names, key=str.casefold)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_knowledge_is_found_by_symptom_best_first(client: TestClient, lang: str) -> None:
    asked = {"q": "显存 higher on gpu0 than others"}
    found = client.get("/knowledge", params=asked, headers={"Accept-Language": lang}).text
    first, *others = re.findall(r'<li><a href="/knowledge/([a-z0-9.-]+)"', found)
    assert first in ("checkpoint.load-on-gpu0", "cuda.context-on-gpu0")
    assert 3 <= len(others) < 20
    assert 'href="/knowledge?area=cuda"' not in found


def test_an_unknown_symptom_is_reported(client: TestClient) -> None:
    page = client.get("/knowledge", params={"q": "<zzzqq>"}).text
    assert "Nothing found" in page
    assert "<zzzqq>" not in page


@pytest.mark.parametrize("step", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_every_entry_has_its_page(client: TestClient, service: Service, step: int) -> None:
    for entry in list(service.knowledge.entries.values())[::step]:
        for lang in ("en", "zh"):
            page = client.get(f"/knowledge/{entry.id}?lang={lang}")
            assert page.status_code == 200, entry.id
            assert visible(entry.title.in_(lang)) in page.text
    client.cookies.clear()


def test_an_incident_says_how_to_prevent_the_next(client: TestClient, service: Service) -> None:
    address = handed_in(client, OOM)
    told = service.knowledge.entries["cuda.oom"].prevent[0]
    for lang in ("en", "zh"):
        assert visible(told.in_(lang)) in client.get(f"{address}?lang={lang}").text
    client.cookies.clear()


def test_the_language_is_asked_for_or_preferred_and_kept(client: TestClient) -> None:
    address = handed_in(client, OOM)
    try:
        preferred = client.get(address, headers={"accept-language": "fr, zh-CN;q=0.9, en;q=0.8"})
        assert "重试有用吗" in preferred.text
        assert 'lang="zh-Hans"' in preferred.text
        asked = client.get(f"{address}?lang=zh")
        assert "HttpOnly" in asked.headers["set-cookie"]
        assert "samesite=lax" in asked.headers["set-cookie"].lower()
        assert "显存" in client.get(address).text
        assert "Will a retry help?" in client.get(f"{address}?lang=en").text
    finally:
        client.cookies.clear()


def test_a_verdict_without_its_entry_is_shown_as_it_was_stored(client: TestClient, service: Service) -> None:
    found = read_incident(service, handed_in(client, OOM).rsplit("/", 1)[1])
    assert found.verdict is not None
    less = replace(service.knowledge, entries={})
    verdict = localized(found.verdict, less, "zh")
    assert verdict.root_cause is not None
    assert found.root_cause is not None
    assert verdict.root_cause.title == found.root_cause.title
    assert verdict.action.reason == found.verdict.action.reason


def test_an_incident_without_a_verdict_says_so(client: TestClient, service: Service) -> None:
    received = accept(replace(service, queue=Asleep()), Job(), [Upload("run.log", iter([b"no verdict yet\n"]))])  # type: ignore[arg-type]
    page = client.get(f"/incidents/{received.incident_id}").text
    assert '<noscript><meta http-equiv="refresh"' in page
    assert "no verdict yet" in page
    with service.database.transaction() as session:
        verdicts.save_failure(session, received.incident_id, "the triage failed: <b>", datetime.now(UTC))
    failed = client.get(f"/incidents/{received.incident_id}").text
    assert "the triage failed: &lt;b&gt;" in failed
    assert "http-equiv" not in failed
    assert "Not triaged" in client.get("/incidents?state=failed").text


def test_a_long_log_opens_at_the_evidence_and_is_paged(client: TestClient, service: Service) -> None:
    before = "".join(f"step {number} loss 0.1\n" for number in range(5000))
    address = handed_in(client, before + OOM + "cleaning up\n" * 5000)
    page = client.get(address).text
    assert 'id="L5004" class="evidence"' in page
    assert 'href="#L5004"' in page
    assert 'id="L1"' not in page
    log = f"{address}/log"
    assert 'id="L5004" class="evidence"' in client.get(log).text
    assert 'id="L1"' in client.get(f"{log}?from=1").text
    assert 'id="L9000" class="focus"' in client.get(f"{log}?line=9000").text
    for strange in ("from=0", "from=999999999", "line=-1", "line=x", "file=nothing", "from=" + "9" * 40, "before=0",
                    "before=99999999", "rank=x", "rank=3&before=1", "rank=3&from=99999", "go=next", "go=x&q=%00"):  # fmt: skip
        assert client.get(f"{log}?{strange}").status_code == 200
    incident = read_incident(service, address.rsplit("/", 1)[1])
    pieces, first = [], 1
    while True:
        piece = log_piece(service, incident, None, Wanted(first=first, whole=True))
        pieces += [row.number for row in piece.rows]
        if piece.later() is None:
            break
        first = piece.last + 1
    assert pieces == list(range(1, incident.log.lines + 1))


def test_the_excerpt_joins_what_ranks_repeat_and_links_lead_into_it(client: TestClient) -> None:
    waiting = "".join(
        f"[rank{rank}]:[E501 09:12:00.{rank}00000 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 60001{rank} milliseconds "
        f"before timing out.\n"
        for rank in range(1, 9)
    )
    address = handed_in(client, waiting + "the last words\n")
    page = client.get(address).text
    assert "7 similar lines of ranks 2-8, 2–8" in page
    assert "the last words" in page
    assert all(f'id="{line}"' in page for line in re.findall(r'href="#(L\d+)"', page))
    assert "similar lines" not in client.get(f"{address}/log").text  # the whole log is as it was written


def test_lines_that_a_page_without_a_log_names_are_on_the_logs_page(client: TestClient) -> None:
    address = handed_in(client, OOM)
    page = client.get(f"{address}/why?entry=cuda.oom").text
    assert re.search(rf'href="{address}/log\?line=\d+#L\d+"', page)
    assert 'href="#L' not in page


def test_an_unexplained_incident_links_to_similar_ones_and_a_draft(client: TestClient) -> None:
    page = client.get(handed_in(client, UNKNOWN)).text
    found = re.search(r'href="(/knowledge\?q=[^"]+)"', page)
    assert found is not None
    assert client.get(found[1]).status_code == 200
    draft = re.search(r'href="(/drafts/new\?incident=\d+)"', page)
    assert draft is not None
    form = client.get(draft[1]).text
    assert "WidgetJammed" in form
    assert "&lt;script&gt;alert(&#39;owned&#39;)&lt;/script&gt;" in form
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", form)


def test_facts_missing_in_the_log_take_no_space(client: TestClient) -> None:
    page = client.get(handed_in(client, "it said something about CUDA out of memory\n")).text
    assert "The GPU ran out of memory" in page
    assert 'id="run"' not in page
    assert "1 line<" in page
    cancelled = "".join(f"{rank}: step 7 loss 2.1\n" for rank in range(8))
    cancelled += "slurmstepd: error: *** JOB 33972 ON node-5 CANCELLED AT 2026-10-24T00:05:27 ***\n"
    page = client.get(handed_in(client, cancelled)).text
    assert "The log shows no failure of the job; run it again." in page
    assert "Log continued for" not in page
    assert "Ranks as a table" not in page  # no rank showed anything


@pytest.mark.slow
def test_long_lines_do_not_make_the_page_heavy(client: TestClient) -> None:
    wide = "".join(f"{number} " + "x" * 15_000 + "\n" for number in range(200))
    page = client.get(handed_in(client, wide + OOM + wide))
    assert 'id="L204" class="evidence"' in page.text
    needed = [path for path in (WEB / "static").iterdir() if path.name in page.text]
    assert len(needed) > 3, needed
    size = len(page.content) + sum(path.stat().st_size for path in needed)
    assert size < 100 << 10  # bytes, before they are compressed


def test_the_log_that_is_gone_leaves_the_verdict(client: TestClient, service: Service) -> None:
    address = handed_in(client, OOM + "gone\n")
    service.blobs.remove(read_incident(service, address.rsplit("/", 1)[1]).log.files[0].sha256)
    page = client.get(address)
    assert page.status_code == 200
    assert "The verdict and its evidence stay on the incident" in page.text


@pytest.mark.parametrize("address", ["/nothing", "/incidents/999999", "/groups/x", "/knowledge/no.entry"])
def test_not_found_is_a_page_for_people_and_json_for_programs(client: TestClient, address: str) -> None:
    page = client.get(address)
    assert page.status_code == 404
    assert "Not found" in page.text
    assert f'<code translate="no">{address}</code>' in page.text
    assert client.get(address, headers={"accept": "*/*"}).json()["error"]["code"] == "not_found"
    assert client.get(f"/api/v1{address}").headers["content-type"] == "application/json"


@pytest.mark.parametrize("address", ["/", "/incidents", "/nothing", "/api/v1/incidents", "/static/page.js"])
def test_every_answer_carries_the_policy(client: TestClient, address: str) -> None:
    answer = client.get(address)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_pages_hold_no_inline_script_or_style(client: TestClient) -> None:
    for address in ("/", "/incidents", "/groups", "/knowledge", handed_in(client, OOM)):
        page = client.get(address).text
        assert not re.search(r"<style|<[^>]*\s(?:style|on\w+)=|<script(?![^>]*\ssrc=)", page)


def test_static_files_are_kept_by_the_browser_while_they_stay_the_same(client: TestClient) -> None:
    for address in re.findall(r'(?:href|src)="(/static/[^"]+)"', client.get("/").text):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]


def test_every_word_is_there_in_both_languages_and_used() -> None:
    texts = catalogue()
    sources = "".join(path.read_text() for path in (WEB / "templates").glob("*.html"))
    code = "".join(path.read_text() for path in (WEB / "pages").glob("*.py"))
    for key, text in texts.items():
        assert text.en.strip(), key
        assert text.zh.strip(), key
        names = [{part[1] for part in string.Formatter().parse(words) if part[1]} for words in (text.en, text.zh)]
        assert names[0] == names[1], key
        begins = [key[: place + 1] for place, letter in enumerate(key) if letter == "_"]
        written = [f"'{key}'" in sources, f'"{key}"' in code]
        written += [f"'{begin}' " in sources or f'f"{begin}{{' in code or f'"{begin}"' in code for begin in begins]
        assert key in LABELS or any(written), f"{key} is used nowhere"  # other screens use the labels too
    used = set(re.findall(r"\bt\('([\w-]+)'[,)]", sources))
    assert used <= set(texts), used - set(texts)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1.02 kB"),
        (999, "999 B"),
        (100_000, "100 kB"),
        (999_999, "1 MB"),
        (1_234_567, "1.23 MB"),
        (5 * 10**12, "5 TB"),
    ],
)
def test_size(count: int, shown: str) -> None:
    assert size_text(count) == shown


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        (700, "700 B"), (64 << 10, "64 KiB"), (10 << 20, "10 MiB"), (1536 << 20, "1536 MiB"), (20 << 30, "20 GiB"),
        (1_500_000, "1.5 MB"), (16_000_000, "16 MB"), (500_000_000, "500 MB"), (10_000_000_000, "10 GB"),
    ],
)  # fmt: skip
def test_a_limit_is_given_in_the_units_that_it_was_set_in(limit: int, shown: str) -> None:
    assert limit_text(limit) == shown


class Asleep:
    """A queue that never works."""

    def put(self, *_: object) -> None:
        pass


def test_the_knowledge_page_opens_with_the_entries_most_frequent_here(client: TestClient) -> None:
    handed_in(client, OOM)
    page = client.get("/knowledge").text
    seen = page[page.index('id="seen"') : page.index('<div class="knowledge')]
    assert re.search(r'<a href="/incidents\?entry=cuda\.oom"[^>]*>\d+</a> <a href="/knowledge/cuda\.oom">', seen)
    assert 'id="seen"' not in client.get("/knowledge?area=cuda").text


def test_a_healthy_run_says_how_far_it_came(client: TestClient) -> None:
    steps = "".join(
        f"2026-05-01 10:{minute:02}:00 | step {minute} | loss {3 - minute / 100:.4f}\n" for minute in range(50)
    )
    page = client.get(
        handed_in(client, steps + "2026-05-01 10:50:00 | Training completed, model saved to /ckpt\n")
    ).text
    assert "Healthy" in page
    assert re.search(r"Last step</dt><dd><strong>49<", page)
    assert re.search(r"The log covers</dt><dd><strong>50 min<", page)


def test_a_file_that_is_no_log_is_reported_once(client: TestClient) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in (("run.log", OOM.encode()), ("core.bin", bytes(range(256)) * 40)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    taken = client.post("/api/v1/incidents?wait=60", content=packed.getvalue()).json()
    page = client.get(f"/incidents/{taken['id']}").text
    assert page.count("binary data, not a log") == 1
    assert "Left out" not in page
    assert "是二进制数据，不是日志" in client.get(f"/incidents/{taken['id']}?lang=zh").text
