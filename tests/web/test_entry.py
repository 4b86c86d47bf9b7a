"""A text tried against an entry, asked as a browser and as a program ask."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml
from fastapi.testclient import TestClient

from tests.yaml_files import read_yaml
from torchtriage.knowledge import BUILT_IN
from torchtriage.services.explain_match import MAX_TEXT
from torchtriage.settings import Settings
from torchtriage.web.app import create_app

BROWSER = {"accept": "text/html"}
TRY = "/knowledge/cuda.oom/try"


def test_an_invalid_text_is_reported_above_the_form(client: TestClient) -> None:
    for text, said in (("  \n", "no text to match"), ("x" * (MAX_TEXT + 1), "the text is longer than 200000")):
        page = client.post(TRY, data={"text": text}, headers=BROWSER)
        assert page.status_code == 400
        assert said in page.text
    huge = client.post(TRY, data={"text": "é" * MAX_TEXT}, headers=BROWSER)
    assert huge.status_code == 400
    assert "the form is too long" in huge.text
    assert client.post(TRY, data={"text": ""}).json()["error"]["code"] == "bad_input"


def test_a_tried_text_is_neither_stored_nor_rendered_as_html(client: TestClient) -> None:
    page = client.post(TRY, data={"text": "RuntimeError: CUDA out of memory. <script>x</script>"}, headers=BROWSER)
    assert page.status_code == 200
    assert "<script>x" not in page.text
    assert client.get("/api/v1/incidents").json()["items"] == []


def test_a_page_of_another_site_can_try_nothing(client: TestClient) -> None:
    answer = client.post(TRY, data={"text": "x"}, headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403


def test_an_unknown_entry_is_not_found(client: TestClient) -> None:
    assert client.get("/knowledge/no.entry/try", headers=BROWSER).status_code == 404
    assert client.post("/knowledge/no.entry/try", data={"text": "x"}, headers=BROWSER).status_code == 404


@pytest.fixture(scope="module")
def service_with_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A service with a folder of its own that has a new entry, and one in the place of a built-in."""
    folder = tmp_path_factory.mktemp("own")
    own = folder / "our-knowledge"
    (own / "cuda").mkdir(parents=True)
    data = read_yaml(BUILT_IN / "cuda" / "oom.yaml")
    for fix in data["fixes"]:
        fix["when_message_has"] = "nothing says this"
    data["fixes"][-1]["when_message_has"] = r"of memory|cublas(Create|Alloc)\d?"
    (own / "cuda" / "oom.yaml").write_text(yaml.safe_dump(data, allow_unicode=True), "utf-8")
    (own / "warp").mkdir()
    (own / "warp" / "drive.yaml").write_text(yaml.safe_dump(data | {"id": "warp.drive", "area": "warp"}), "utf-8")
    settings = Settings(data_dir=folder / "data", knowledge_dirs=(own,), workers=0)
    with TestClient(create_app(settings)) as client:
        yield client


@pytest.fixture
def with_own(service_with_own: TestClient) -> TestClient:
    """The same service, asked by somebody who has chosen no language yet."""
    service_with_own.cookies.clear()
    return service_with_own


def test_an_entry_says_which_file_it_is_from(with_own: TestClient) -> None:
    page = with_own.get("/knowledge/cuda.oom").text
    assert "our-knowledge/cuda/oom.yaml" in page
    assert "overrides the built-in entry" in page
    assert "Built in." in with_own.get("/knowledge/nccl.timeout").text
    assert "From a folder of TRIAGE_KNOWLEDGE_DIRS.</p>" in with_own.get("/knowledge/warp.drive").text


def test_areas_have_names_and_those_of_own_entries_their_ids(with_own: TestClient) -> None:
    page = with_own.get("/knowledge?lang=zh").text
    assert "昇腾 NPU" in page
    assert '<h2 id="warp"><a href="/knowledge?area=warp">warp ' in page


def test_a_step_says_for_which_words_it_is_meant(with_own: TestClient) -> None:
    page = with_own.get("/knowledge/cuda.oom").text
    assert "If the log says, for example, <code" in page
    assert ">of memory</code>" in page
    assert "If the log says <code" in page  # where no example says it
    assert "or 1 more</span></span>: No</span>" in with_own.get("/knowledge/nccl.ib").text


def test_the_step_for_this_message_comes_first(with_own: TestClient) -> None:
    entry = with_own.get("/api/v1/knowledge/cuda.oom").json()
    log = b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
    made = with_own.post("/api/v1/triage", content=log).json()
    assert made["root_cause"]["fixes"][0]["title"] == entry["fixes"][-1]["title"]["en"]
    assert made["root_cause"]["fixes"][1]["title"] == entry["fixes"][0]["title"]["en"]


def test_the_cases_of_an_entry_are_listed_with_their_examples(client: TestClient) -> None:
    page = client.get("/knowledge/checkpoint.size-mismatch", headers=BROWSER)
    assert page.status_code == 200
    assert "Answers by message" in page.text
    assert "The checkpoint has … outputs in `…`, the model …" in page.text.replace("<code>", "`").replace(
        "</code>", "`"
    )
    assert "other-number-of-classes" in page.text
    assert "from torch 2.6" in page.text
    assert "{saved}" not in page.text
    chinese = client.get("/knowledge/checkpoint.size-mismatch", headers=BROWSER, params={"lang": "zh"})
    assert "类别数不同" in chinese.text


def test_a_command_names_what_it_needs_as_a_place(client: TestClient) -> None:
    page = client.get("/knowledge/cuda.oom").text
    without_button = '>export <mark class="put-in">ALLOC_VARIABLE</mark>=expandable_segments:True</code><span'
    assert without_button in page
    assert "Fill in the marked part" in page
    assert "nvidia-smi</code><button" in page
    commands = re.findall(r'class="command(?: open)?"><code translate="no">(.*?)</code>', page, re.DOTALL)
    assert not any("{alloc_variable}" in command for command in commands)
