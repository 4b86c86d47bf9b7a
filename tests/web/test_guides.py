"""The pages of docs/ that the service shows of itself."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from torchtriage.web.pages.guide_markdown import to_html
from torchtriage.web.pages.guides import guide_names, guide_page, is_guide, listed, typed

ROOT = Path(__file__).parents[2]


def html(text: str) -> str:
    return str(to_html(text, lambda address: address, lambda code: f"<pre>{code}</pre>").html)


def test_the_guides_named_on_the_connect_page_exist(client: TestClient) -> None:
    for sender in ("slurm", "kubernetes", "curl"):
        page = client.get("/connect", params={"from": sender}).text
        found = re.findall(r'href="(/guides/[a-z-]+)"', page)
        assert found
        for address in found:
            assert "<h1>" in client.get(address).text


def test_a_guide_is_shown_with_its_parts(client: TestClient) -> None:
    page = client.get("/guides/slurm").text
    assert "<h1>Slurm</h1>" in page
    assert re.search(r'<td></td>\s*<th scope="col">who sets it up</th>', page)
    assert 'href="/guides/client#several-nodes"' in page
    assert '<a href="#around-srun">Around srun</a>' in page
    assert '<h2 id="around-srun">' in page
    assert "```" not in page
    assert "**" not in re.sub(r"<code.*?</code>", "", page, flags=re.DOTALL)
    assert "本页为英文" in client.get("/guides/slurm", headers={"Accept-Language": "zh"}).text


def test_commands_can_be_copied_also_in_lists() -> None:
    text = "1. Start it:\n   ```sh\n   make serve <&\n   ```\n2. Look.\n"
    made = to_html(text, lambda address: address, lambda code: f"<button>{code}</button>")
    assert "<ol>\n<li>Start it:<button>make serve <&</button></li>" in made.html


def test_of_a_session_only_the_commands_are_copied(client: TestClient) -> None:
    assert typed("$ requeue 4711\njob requeued\n$ requeue 4712") == "requeue 4711\nrequeue 4712"
    assert typed("srun $HOME/x") == ""
    assert 'data-text="requeue-on-advice 4711\nrequeue-on-advice 4712"' in client.get("/guides/slurm").text


def test_the_list_says_where_to_start(client: TestClient) -> None:
    first = client.get("/guides").text.partition("Start here")[2].partition("guide-parts")[0]
    assert re.findall(r'href="/guides/([\w-]+)"', first) == ["client", "ui", "operating"]


def test_the_buttons_are_in_the_readers_language(client: TestClient) -> None:
    assert re.search(r'<code translate="no">.*?srun .*?</code><button[^>]*><span aria-hidden="true">复制', client.get(
        "/guides/slurm", headers={"Accept-Language": "zh"}).text, re.DOTALL)  # fmt: skip


def test_links_lead_to_pages_entries_and_the_web(client: TestClient) -> None:
    assert 'href="/knowledge/xid.48"' in client.get("/guides/coverage").text
    assert 'href="/guides/entries"' in client.get("/guides/knowledge-base").text
    assert 'href="/guides/knowledge-base"' in client.get("/guides/entries").text
    assert 'href="/guides/decisions/0031-extras"' in client.get("/guides/decisions/README").text
    operating = client.get("/guides/operating").text
    assert '(<code translate="no">deploy/kubernetes/network.yaml</code>)' in operating  # a file that is not shown
    assert "../" not in re.sub(r"<code.*?</code>", "", operating, flags=re.DOTALL)


@pytest.mark.parametrize("name", ["nope", "..%2fREADME", "coverage.yaml", "decisions", "decisions/nope", "README"])
def test_an_unknown_guide_is_not_found(client: TestClient, name: str) -> None:
    assert client.get(f"/guides/{name}").status_code == 404


def test_the_list_names_every_page_of_docs_once(client: TestClient) -> None:
    names = [name for _, part in listed() for name in part]
    assert sorted(names) == sorted({*(name for name in guide_names() if "/" not in name), "decisions/README"})
    page = client.get("/guides").text
    assert all(f'href="/guides/{name}"' in page for name in names)
    assert "所有 TRIAGE_ 变量及默认值" in client.get("/guides", headers={"Accept-Language": "zh"}).text


class Reader(HTMLParser):
    """Notes ids, links and the number of cells of each row."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.rows: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given["href"] or ""] if tag == "a" else []
        if tag == "tr":
            self.rows.append(0)
        elif tag in ("td", "th"):
            self.rows[-1] += 1


def read(name: str) -> Reader:
    reader = Reader()
    reader.feed(guide_page(name, "en").html)
    return reader


@pytest.mark.parametrize("name", [*guide_names()])
def test_every_guide_can_be_shown_and_its_links_lead_somewhere(name: str) -> None:
    made, reader = guide_page(name, "en"), read(name)
    assert made.html.startswith("<h1>")
    assert made.title
    assert "&lt;!--" not in made.html
    assert len(reader.ids) == len(set(reader.ids))
    for link in reader.links:
        path, _, anchor = link.partition("#")
        if path.startswith("/guides/") or not path:
            target = path.removeprefix("/guides/") or name
            assert is_guide(target), link
            assert not anchor or anchor in read(target).ids, link
        elif path.startswith("/knowledge/"):
            area, _, entry = path.removeprefix("/knowledge/").partition(".")
            assert (ROOT / "knowledge_base" / area / f"{entry}.yaml").is_file(), link
        else:
            assert link.startswith("https://")


def test_nothing_of_a_text_becomes_html() -> None:
    made = html(
        '<b> `<i>` **<u>** [<s>](javascript:x) [y](https://example.org/?a="b)\n\n<script>x</script>\n\n<!-- no -->'
    )
    assert made.replace("\n", "") == (
        '<p>&lt;b&gt; <code translate="no">&lt;i&gt;</code> <strong>&lt;u&gt;</strong> [&lt;s&gt;](javascript:x) '
        '<a href="https://example.org/?a=%22b" rel="noreferrer">y</a></p>&lt;script&gt;x&lt;/script&gt;'
    )
