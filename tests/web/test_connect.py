"""Connect your cluster: commands with this server's address that run as they are, and a light for what arrives."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.services.logs import OUT_OF_MEMORY
from tests.web.test_authentication import guarded, service_of, token  # noqa: F401 - a fixture
from torchtriage.domain.access import Scope
from torchtriage.services import tokens
from torchtriage.web.pages.connect import _guides, is_loopback

PEOPLE = {"accept": "text/html"}
KINDS = ("slurm", "kubernetes", "ray", "skypilot", "airflow", "argo", "otel", "slack", "curl")
DOCS = Path(__file__).resolve().parents[2] / "docs"


def commands(page: str) -> list[str]:
    return [
        html.unescape(text) for text in re.findall(r'class="command"><code translate="no">(.*?)</code>', page, re.S)
    ]


def test_every_kind_has_commands_with_the_address_in_both_languages(client: TestClient) -> None:
    assert tuple(_guides()) == KINDS
    told = []
    for lang in ("en", "zh"):
        for kind in KINDS:
            page = client.get(f"/connect?from={kind}&lang={lang}").text
            assert "http://127.0.0.1:8000" in page, kind
            assert not re.search(r"[{]\w+[}]", " ".join(commands(page))), kind  # nothing is left to be filled in
            assert "tt_" not in page
            told.append(page)
            named = re.findall(r'href="/guides/([\w-]+)"', page)
            assert named, kind
            assert all((DOCS / f"{name}.md").exists() for name in named), kind
    assert len(set(told)) == 2 * len(KINDS)
    kubernetes = client.get("/connect?from=kubernetes").text
    assert 'href="/guides/kubernetes-jobs">Kubernetes' in kubernetes
    assert '<a href="/connect?from=slurm" aria-current="true">' in client.get("/connect?from=nobody").text


def test_an_address_that_no_node_can_reach_is_reported(client: TestClient) -> None:
    page = client.get("/connect").text
    assert "use http://127.0.0.1:8000, which other machines cannot reach" in page
    assert "TRIAGE_PUBLIC_URL" in page
    assert "TRIAGE_PUBLIC_URL" in client.get("/connect?lang=zh").text
    assert all(map(is_loopback, ("http://localhost:1", "http://[::1]:8000", "http://0.0.0.0:8000", "http://127.1.2.3")))
    assert not any(map(is_loopback, ("https://triage.example.org", "http://10.0.0.7:8000", "http://[fd00::1]:8000")))


def test_the_light_is_on_where_a_report_has_arrived(client: TestClient) -> None:
    assert client.get("/connect/light?from=ray").json() == {"incident": None}
    assert "No report yet" in client.get("/connect?from=ray&lang=en").text
    first = client.post("/api/v1/incidents?scheduler=ray", content=OUT_OF_MEMORY).json()["id"]
    client.post("/api/v1/incidents?scheduler=slurm&label=source:slack", content=OUT_OF_MEMORY + b"1")
    assert client.get("/connect/light?from=ray").json() == {"incident": first, "ago": "just now"}
    assert f'href="/incidents/{first}">#{first}</a>' in client.get("/connect?from=ray").text
    assert client.get("/connect/light?from=slack").json()["incident"] is not None
    assert client.get("/connect/light?from=slurm").json() == {"incident": None}  # it came by way of Slack


def test_an_administrator_makes_a_token_that_the_commands_show_once(guarded: TestClient) -> None:  # noqa: F811
    admin, reader = token(guarded, Scope.ADMIN), token(guarded, Scope.READ)
    page = guarded.get("/connect?from=curl", headers=PEOPLE | admin).text
    assert "Bearer tt_…" in html.unescape(page)
    assert "Create a token" in page
    assert "Create a token" not in guarded.get("/connect?from=curl", headers=PEOPLE | reader).text
    assert guarded.post("/connect", data={"kind": "curl"}, headers=PEOPLE | reader).status_code == 403
    assert guarded.post("/connect", data={"kind": "x"}, headers=PEOPLE | admin).status_code == 400
    made = guarded.post("/connect", data={"kind": "curl"}, headers=PEOPLE | admin)
    assert made.headers["cache-control"] == "no-store"
    (secret,) = set(re.findall(r"Bearer (tt_[\w-]+)", html.unescape(made.text)))
    sent = guarded.post("/api/v1/incidents", content=OUT_OF_MEMORY, headers={"authorization": f"Bearer {secret}"})
    assert sent.status_code == 201
    (known,) = [one for one in tokens.listed(service_of(guarded).database) if one.name == "connect: curl"]
    assert known.scopes == {Scope.SUBMIT, Scope.READ}
    assert known.expires_at is not None
    assert secret not in guarded.get("/connect?from=curl", headers=PEOPLE | admin).text


@pytest.mark.skipif(shutil.which("curl") is None, reason="the commands begin with curl")
def test_the_commands_run_as_they_are_shown(live_server: object, tmp_path: Path) -> None:
    from urllib.request import urlopen

    url = live_server.url  # type: ignore[attr-defined]

    def page(kind: str) -> str:
        return str(urlopen(f"{url}/connect?from={kind}").read().decode())

    def ran(command: str, **variables: str) -> None:
        surroundings = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)} | variables
        subprocess.run(["bash", "-c", command], cwd=tmp_path, env=surroundings, check=False, timeout=120)

    def lit(kind: str) -> bool:
        return b'"incident":null' not in urlopen(f"{url}/connect/light?from={kind}").read()

    assert not lit("curl")
    ran(commands(page("curl"))[-1])
    assert lit("curl")
    get, _, fail = commands(page("slurm"))
    wrapped = re.fullmatch(r'sbatch --wrap "(.*)"', fail)
    assert wrapped is not None
    as_slurm_runs_it = wrapped[1].replace('\\"', '"').replace("srun ", "")
    ran(f"{get}\n{as_slurm_runs_it}", SLURM_JOB_ID="4711")
    assert lit("slurm")
    dags = tmp_path / "dags"
    dags.mkdir()
    get, export, _, fail = commands(page("airflow"))
    assert get.startswith("cp deploy/airflow/*.py $AIRFLOW_HOME/dags/\n")
    ran("\n".join([get.partition("\n")[2], export, fail]), AIRFLOW_HOME=str(tmp_path))
    assert lit("airflow")
    ran(commands(page("argo"))[-1])
    assert lit("argo")
