"""Who waits for whom, on the incident's page."""

from __future__ import annotations

import re
from dataclasses import replace

from fastapi.testclient import TestClient

from tests.storage.values import verdict as stored_verdict
from tests.web.test_api_incidents import SLOW, URL
from tests.web.test_evidence import dumps
from torchtriage.domain.evidence import RankState
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import Verdict
from torchtriage.storage.verdict_json import from_stored, to_stored
from torchtriage.web.pages.wait_diagram import wait_diagram


def state(ranks: str, kind: str = "waits", waits_for: str = "", suspect: bool = False) -> RankState:
    return RankState(
        RankSet.from_json(ranks), kind, "all_reduce 7", "data", RankSet.from_json(waits_for), suspect=suspect
    )


def of(*states: RankState) -> Verdict:
    told = stored_verdict()
    return replace(told, run=replace(told.run, waits=states))


def test_lines_lead_along_the_chain_of_waiting() -> None:
    picture = wait_diagram(
        of(state("3", "missing", suspect=True), state("0-1", waits_for="2"), state("2", waits_for="3"))
    )
    assert picture is not None
    assert [str(box.state.ranks) for box in (*picture.left, *picture.right)] == ["0-1", "2", "3"]
    first, second = (box.y + picture.box_height // 2 for box in picture.left)
    assert [(line.y1, line.y2, line.to_right) for line in picture.lines] == [
        (first, second, False),
        (second, first, True),
    ]


def test_ten_thousand_ranks_are_a_few_boxes() -> None:
    picture = wait_diagram(of(state("5603", "absent", suspect=True), state("0-5602,5604-9999", waits_for="5603")))
    assert picture is not None
    assert (len(picture.left), len(picture.right), len(picture.lines)) == (1, 1, 1)
    many = wait_diagram(of(state(",".join(map(str, range(0, 10_000, 2))))))
    assert many is not None
    assert len(many.left[0].label) <= 32


def test_an_older_verdict_has_no_picture_and_stays_readable() -> None:
    old = to_stored(of(state("0")))
    del old["run"]["waits"]
    assert wait_diagram(from_stored(old)) is None
    kept = from_stored(to_stored(of(state("0-2", waits_for="3"))))
    assert kept.run.waits == (state("0-2", waits_for="3"),)


def test_the_page_draws_it_and_says_the_same_in_a_table(both: TestClient) -> None:
    archive, bad = dumps()
    headers = {"content-type": "application/gzip"}
    incident = both.post(URL, content=archive, params=SLOW, headers=headers).json()
    for lang, title in (("en", "Who waits for whom"), ("zh", "谁在等谁")):
        page = both.get(f"/incidents/{incident['id']}", params={"lang": lang}).text
        section = page.partition('id="waits"')[2].partition("</section>")[0]
        assert title in section
        picture, _, table = section.partition("</svg>")
        assert f'suspect"><b>rank <span translate="no">{bad}</span>' in picture
        assert "marker-end" in picture
        rows = [re.sub(r"<[^>]*>", " ", row).split() for row in re.findall("<tr.*?</tr>", table, re.DOTALL)[1:]]
        assert rows[0][0] == str(bad)
        assert len(rows) == picture.count("<foreignObject")
        assert "style=" not in section
