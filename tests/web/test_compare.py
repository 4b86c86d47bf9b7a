"""Two stored runs side by side, in the API and on the page."""

from __future__ import annotations

from fastapi.testclient import TestClient

from tests.logs import text, traceback

STEPS = [f"step {step} loss {3 / (step + 1):.4f}" for step in range(30)]
GOOD = text("Namespace(lr=0.1, workers=8)", STEPS, "Training finished")
BAD = text("Namespace(lr=0.1, workers=2)", STEPS, traceback("KeyError: 'labels'"))


def kept(client: TestClient, log: bytes, name: str, job: int, **told: str) -> str:
    query = {"wait": "30", "job_name": name, "job_id": str(job), **told}
    return str(client.post("/api/v1/incidents", params=query, content=log).json()["id"])


def test_the_api_returns_what_changed(client: TestClient) -> None:
    good, bad = (
        kept(client, GOOD, "bert-large_v2/a", 1, image="train:3"),
        kept(client, BAD, "bert-large_v2/a", 2, image="train:4"),
    )
    told = client.get(f"/api/v1/incidents/{bad}/compare/{good}").json()
    assert (told["before"], told["now"], told["partly"], told["same"]) == (good, bad, False, 1)
    assert [(change["name"], change["before"], change["now"]) for change in told["changes"]] == [
        ("image", "train:3", "train:4"),
        ("workers", "8", "2"),
    ]
    assert client.get(f"/api/v1/incidents/{bad}/compare/999").status_code == 404


def test_the_page_takes_the_last_good_run_of_the_job_by_itself(client: TestClient) -> None:
    kept(client, GOOD.replace(b"workers=8", b"workers=6"), "bert-large_v2/a", 1)
    good = kept(client, GOOD, "bert-large_v2/a", 2)
    kept(client, GOOD.replace(b"workers=8", b"workers=4"), "gpt", 3)
    bad = kept(client, BAD, "bert-large_v2/a", 4)
    later = kept(client, GOOD.replace(b"workers=8", b"workers=5"), "bert-large_v2/a", 5)
    assert "What changed since it worked" in client.get(f"/incidents/{bad}").text
    page = client.get(f"/incidents/{bad}/compare").text
    assert f'href="/incidents/{good}"' in page
    assert f'href="/incidents/{later}"' not in page
    assert "A Python error in the script" in page or "labels" in page  # what happened then
    assert '<code translate="no">8</code>' in page


def test_another_run_can_be_chosen_and_an_unknown_one_is_reported_at_the_field(client: TestClient) -> None:
    other, bad = kept(client, GOOD, "gpt", 1), kept(client, BAD, "bert-large_v2/a", 2)
    assert "Compare with another run" in client.get(f"/incidents/{bad}").text
    assert "No run of this job name" in client.get(f"/incidents/{bad}/compare").text
    assert f'href="/incidents/{other}"' in client.get(f"/incidents/{bad}/compare?with=%23{other}").text
    wrong = client.get(f"/incidents/{bad}/compare?with=nothing")
    assert wrong.status_code == 200
    assert 'aria-invalid="true"' in wrong.text
    assert 'value="nothing"' in wrong.text
    assert client.get("/incidents/999/compare").status_code == 404
