"""Searching a stored log on its page: expressions, lists of hits, and what the address keeps."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from torchtriage.services.line_patterns import line_pattern, spans
from torchtriage.web.pages.sanitize import coloured

LOG = "".join(f"[rank {line % 2}] step {line} took {line * 3} ms\n" for line in range(1000)) + "Traceback ends\n"


@pytest.fixture
def home(client: TestClient) -> str:
    """The path of an incident."""
    return f"/incidents/{client.post('/api/v1/incidents?wait=60', content=LOG).json()['id']}"


def test_all_hits_are_counted_and_the_first_listed(client: TestClient, home: str) -> None:
    told = client.get(f"{home}/log/hits?q=took").text
    assert 'data-count="1000"' in told
    assert told.count("<li>") == 200
    told = client.get(f"{home}/log/hits?q=step+99%5Cd+&regex=1&rank=1").text
    assert 'data-count="5"' in told
    assert "<mark>step 993</mark>" in told
    assert 'data-count="1"' in client.get(f"{home}/log/hits?q=step+999+&from=900").text
    assert 'data-count="0" data-looked="1001" data-ended="1"' in client.get(f"{home}/log/hits?q=took&from=1002").text


def test_a_hit_does_not_go_over_the_end_of_its_line(client: TestClient, home: str) -> None:
    assert 'data-count="0"' in client.get(f"{home}/log/hits?q=ms%5Cs%5C%5Brank&regex=1").text
    assert 'data-count="100"' in client.get(f"{home}/log/hits?q=%5E.rank.*0+ms%24&regex=1").text


def test_words_are_no_expression_unless_asked(client: TestClient, home: str) -> None:
    assert 'data-count="0"' in client.get(f"{home}/log/hits?q=step+99.").text


def test_an_invalid_expression_is_reported_and_stays_in_the_field(client: TestClient, home: str) -> None:
    told = client.get(f"{home}/log?q=(open&regex=1&go=next")
    assert told.status_code == 400
    assert 'value="(open"' in told.text
    assert "missing ): (open" in told.text
    chinese = client.get(f"{home}/log?q=(open&regex=1&go=all&lang=zh").text
    assert "无法使用这个正则表达式" in chinese
    assert (
        client.get(f"{home}/log/find?q=(open&regex=1&go=next", headers={"Accept": "application/json"}).status_code
        == 400
    )


def test_an_expression_that_would_take_too_much_memory_is_refused(client: TestClient, home: str) -> None:
    told = client.get(f"{home}/log/hits?q=((x{{100}}){{100}}){{100}}&regex=1", headers={"Accept": "application/json"})
    assert told.status_code == 400


def test_addresses_keep_how_one_searches_and_reads(client: TestClient, home: str) -> None:
    told = client.get(f"{home}/log?q=st.p&regex=1&wrap=0&from=300").text
    assert "q=st.p&amp;regex=1&amp;wrap=0" in told
    assert 'class="viewer unwrapped"' in told


def test_more_hits_than_a_page_lists_lead_on(client: TestClient, home: str) -> None:
    told = client.get(f"{home}/log?q=took&go=all").text
    assert "hits=201" in told
    told = client.get(f"{home}/log?q=took&go=all&hits=801").text
    assert "hits=" not in told.partition('id="found"')[2].partition("</ol>")[2].partition("</div>")[0]


def test_marks_stand_where_the_expression_hits() -> None:
    assert coloured("step 12 of 99", r"\d+", True) == "step <mark>12</mark> of <mark>99</mark>"
    assert coloured("a+b <i>", "A+B") == "<mark>a+b</mark> &lt;i&gt;"
    assert spans("abc", "x*", True) == []
    assert spans("abc", "(", True) == []
    assert line_pattern("b$", True).search(b"ab\ncd") is not None
