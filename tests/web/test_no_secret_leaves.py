"""One secret through each way in, and a look at each way out: blobs, database, API, pages, exports, MCP, chats, model."""

from __future__ import annotations

import base64
import gzip
import html
import io
import json
import quopri
import re
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import pytest
from fastapi.testclient import TestClient

from tests.http_server import Asked, Told, serving
from torchtriage.chat.dingtalk import DingTalk
from torchtriage.chat.feishu import Feishu
from torchtriage.chat.slack import SlackBot
from torchtriage.chat.wecom import WeCom
from torchtriage.services import outbox
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service
from torchtriage.settings import Settings
from torchtriage.web.app import create_app

Log = Callable[[str], bytes]
CHAINED = """\
2026-05-01T09:05:00Z step 41 loss 2.1
Traceback (most recent call last):
  File "/job/hub.py", line 3, in fetch_{name}
    open_hub({first})
hubs.HubError: refused{second}

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/job/train.py", line 12, in <module>
    frobnicate(batch{third})
widgets.WidgetError: the widget {name} jammed{fourth}
"""


def text(secret: str, *, frame: bool = False, first: bool = False, inner: bool = False, message: bool = False) -> str:
    """Returns the log of a failure that no entry names, with the secret in one place of it; in all of them without one."""
    every = not (frame or first or inner or message)
    return CHAINED.format(
        name=names(secret),
        first=f'token="{secret}"' if first or every else "",
        second=f' {{"token": "{secret}"}}' if inner or every else "",
        third=f', "{secret}"' if frame or every else "",
        fourth=f" at https://hub.local/?token={secret}" if message or every else "",
    )


def failure(secret: str) -> bytes:
    """Returns the same without the secret."""
    return CHAINED.format(name=names(secret), first="", second="", third="", fourth="").encode()


def names(secret: str) -> str:
    """Returns a word that tells the failures of the ways apart, and so their groups."""
    return re.sub(r"\d", lambda digit: "qrstuvwxyz"[int(digit[0])], secret[-6:]).lower()


def escaped(secret: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in secret)


def spelled(form: str) -> Callable[[str], str]:
    return lambda secret: "".join(form.format(ord(char)) for char in secret)


def bundle(secret: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for rank in range(2):
            data = failure(secret)
            member = tarfile.TarInfo(f"{secret}/rank{rank}.log")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def page(secret: str) -> bytes:
    lines = html.escape(text(secret)).replace(secret, spelled("&#{};")(secret))
    return f"<html><body><pre>\n{lines}</pre></body></html>\n".encode()


def key(secret: str) -> bytes:
    """A private key in the message: its lines tell nothing of themselves but what stands around them."""
    body = base64.b64encode(secret.encode() * 8).decode()
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----"
    return CHAINED.format(name=names(secret), first="", second="", third="", fourth=f": {pem}").encode()


def mail(secret: str) -> bytes:
    wide = "".join(f"x{number}={number:0150d}\n" for number in range(20))
    return quopri.encodestring((wide + text(secret)).encode())


def records(secret: str) -> bytes:
    lines = text(secret).splitlines()
    return "".join(json.dumps({"time": "2026-05-01T09:05:11Z", "log": f"{line}\n"}) + "\n" for line in lines).encode()


LOGS: dict[str, Log] = {
    "a frame": lambda secret: text(secret, frame=True).encode(),
    "a frame of the first exception": lambda secret: text(secret, first=True).encode(),
    "the message of the first exception": lambda secret: text(secret, inner=True).encode(),
    "the message": lambda secret: text(secret, message=True).encode(),
    "a private key": key,
    "a name in an archive": bundle,
    "records": records,
    "base64": lambda secret: base64.b64encode(text(secret).encode()),
    "base64 in lines": lambda secret: base64.encodebytes(text(secret).encode()),
    "base64 of gzip": lambda secret: base64.b64encode(gzip.compress(text(secret).encode())),
    "base64 in a document": lambda secret: json.dumps(
        {"status": "ok", "data": {"log": base64.b64encode(text(secret).encode()).decode()}}
    ).encode(),
    "base64 of gzip in a document": lambda secret: json.dumps(
        {"data": {"log": base64.b64encode(gzip.compress((text(secret) + str(list(range(400)))).encode())).decode()}}
    ).encode(),
    "percent signs": lambda secret: quote(text(secret)).replace(secret, spelled("%{:02x}")(secret)).encode(),
    "percent signs in a line": lambda secret: text(secret).replace(secret, spelled("%{:02X}")(secret)).encode(),
    "UTF-16": lambda secret: text(secret).encode("utf-16"),
    "UTF-32": lambda secret: text(secret).encode("utf-32"),
    "UTF-32 without a mark": lambda secret: text(secret).encode("utf-32-be"),
    "nul bytes": lambda secret: text(secret).replace(secret, "\0".join(secret)).encode(),
    "backspaces": lambda secret: text(secret).replace(secret, "".join(f"x\x08{char}" for char in secret)).encode(),
    "entities": page,
    "entities in a line": lambda secret: text(secret).replace(secret, spelled("&#x{:x};")(secret)).encode(),
    "a mail": mail,
    "escapes of JSON": lambda secret: json.dumps({"log": text(secret)}).replace(secret, escaped(secret)).encode(),
    "escapes in records": lambda secret: records(secret).replace(secret.encode(), escaped(secret).encode()),
    "escapes of Python": lambda secret: repr(text(secret)).replace(secret, spelled("\\x{:02x}")(secret)).encode(),
}
JOB = ("job_name", "user", "queue", "cluster", "image", "commit", "state")  # what is said of a job


@dataclass
class Place:
    """The service with chats and a model beside it, all of which were told of everything."""

    client: TestClient
    service: Service
    folder: Path
    asked: list[Asked]
    secrets: dict[str, str]
    incidents: dict[str, str]
    answers: dict[str, str] = field(default_factory=dict)


def secret_of(way: int) -> str:
    return f"hf_AbCdEfGhIjKlMnOpQrStUvWxYz{way:03d}{chr(65 + way % 26) * 5}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    asked: list[Asked] = []
    answer = {"code": 0, "errcode": 0, "ok": True, "ts": "1", "channel": "C1"}
    answer |= {"choices": [{"message": {"content": '{"claims": [{"says": "It drifted."}]}'}}]}

    def hear(one: Asked) -> Told:
        asked.append(one)
        return Told(json.dumps(answer).encode())

    folder = tmp_path_factory.mktemp("data")
    with serving(hear) as url, pytest.MonkeyPatch.context() as patch:
        for sender in (DingTalk, Feishu, SlackBot, WeCom):
            patch.setattr(sender, "pace", 0.0)  # the others' limits on messages a minute
        settings = Settings(
            data_dir=folder,
            workers=0,
            allow_private_calls=True,
            slack_bot_token="xoxb-of-the-service",
            slack_channel="C1",
            slack_api_url=f"{url}/slack/",
            feishu_webhook_url=f"{url}/feishu",
            dingtalk_webhook_url=f"{url}/dingtalk",
            wecom_webhook_url=f"{url}/wecom",
            webhook_url=f"{url}/webhook",
            otlp_endpoint=f"{url}/otlp",
            llm_url=f"{url}/v1",
            llm_model="m-1",
        )
        with TestClient(create_app(settings)) as client:
            yield told_of_everything(client, folder, asked)


def told_of_everything(client: TestClient, folder: Path, asked: list[Asked]) -> Place:
    service = client.app.state.service  # type: ignore[attr-defined]
    place = Place(client, service, folder, asked, {}, {})
    ways: dict[str, tuple[Log, dict[str, Any]]] = {way: (log, {}) for way, log in LOGS.items()}
    for name in JOB:
        ways[f"job: {name}"] = failure, {name: "{}"}
    ways["job: url"] = failure, {"url": "https://x.local/?token={}"}
    ways["job: a label"] = failure, {"label": "team:{}"}
    ways["job: a label's name"] = failure, {"label": "{}:team"}
    for number, (way, (log, query)) in enumerate(ways.items()):
        secret = secret_of(number)
        place.secrets[way] = secret
        given = {name: value.format(secret) for name, value in query.items()}
        answer = client.post(
            "/api/v1/incidents", params={"job_id": f"j{number}", "wait": "30"} | given, content=log(secret)
        )
        assert answer.status_code == 201, (way, answer.text)
        place.incidents[way] = answer.json()["id"]
        place.answers[way] = answer.text
        client.post(f"/incidents/{place.incidents[way]}/explain")
        if not query:
            answer = client.post("/api/v1/triage", content=log(secret))
            place.answers[way] += answer.text
    deadline = time.monotonic() + 60
    while {state for _, state in outbox.count_outbox(service)} != {"sent"} and time.monotonic() < deadline:
        time.sleep(0.05)
    return place


WAYS = [*LOGS, *(f"job: {name}" for name in (*JOB, "url", "a label", "a label's name"))]
# What is kept is asked of all. What is answered comes from there, so of most it is asked in the slow suite.
SAMPLED = [way if number % 4 == 0 else pytest.param(way, marks=pytest.mark.slow) for number, way in enumerate(WAYS)]


def meanings(data: bytes) -> Iterator[bytes]:
    """Yields what bytes say as they stand, and as whoever shows them could read them."""
    yield data
    shown = data.replace(b"\0", b"")
    for _ in range(40):
        if b"\x08" not in shown:
            break
        shown = re.sub(rb"[^\x08]\x08", b"", shown)
    yield shown
    yield unquote_to_bytes(shown)
    yield html.unescape(shown.decode("utf-8", "replace")).encode()
    yield re.sub(rb"\\+(?:u00|x)([0-9a-fA-F]{2})", lambda found: bytes.fromhex(found[1].decode()), shown)
    yield quopri.decodestring(shown)
    for run in (*re.findall(rb"[A-Za-z0-9+/]{60,}={0,2}", shown), b"".join(shown.split())):
        try:
            opened = base64.b64decode(run)
            yield gzip.decompress(opened) if opened[:2] == b"\x1f\x8b" else opened
        except (ValueError, OSError, EOFError):
            continue


def telling(way: str, secret: str) -> bytes:
    """Returns what gives the secret of a way away."""
    return base64.b64encode(secret.encode() * 8)[64:104] if way == "a private key" else secret.encode()


def holds(data: bytes, way: str, secret: str) -> bool:
    return any(telling(way, secret) in meaning for meaning in meanings(data))


@pytest.mark.parametrize("way", WAYS)
def test_no_secret_is_kept(place: Place, way: str) -> None:
    incident = read_incident(place.service, place.incidents[way])
    for file in incident.log.files:
        content = b"".join(place.service.blobs.chunks(file.sha256))
        assert not holds(content, way, place.secrets[way]), content
        assert b"WidgetError" in b"".join(meanings(content))  # the log is still one
        assert not holds(file.name.encode(), way, place.secrets[way])


def test_no_secret_is_on_disk(place: Place) -> None:
    files = [path for path in place.folder.rglob("*") if path.is_file()]
    assert len(files) > 1  # the database and the logs
    for path in files:
        content = path.read_bytes()
        assert [way for way, secret in place.secrets.items() if secret.encode() in content] == [], path


@pytest.mark.parametrize("way", SAMPLED)
def test_no_secret_is_answered(place: Place, way: str) -> None:
    answers = place.answers[way]
    assert "widgets.WidgetError" in answers
    assert not holds(answers.encode(), way, place.secrets[way])
    incident = place.incidents[way]
    group = place.client.get(f"/api/v1/incidents/{incident}").json()["group"]["id"]
    addresses = [
        f"/api/v1/incidents/{incident}",
        f"/api/v1/incidents/{incident}/brief",
        f"/api/v1/incidents/{incident}/log",
        f"/api/v1/groups/{group}",
        f"/incidents/{incident}",
        f"/incidents/{incident}?lang=zh",
        f"/incidents/{incident}.md",
        f"/incidents/{incident}/why?entry=cuda.oom",
        f"/incidents/{incident}/log",
        f"/incidents/{incident}/log.txt",
        f"/incidents/{incident}/log.txt?line=1-100",
        f"/groups/{group}",
        f"/drafts/new?group={group}",
    ]
    for address in addresses:
        answer = place.client.get(address, headers={"accept": "text/html"})
        assert answer.status_code == 200, address
        assert not holds(answer.content, way, place.secrets[way]), address


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/incidents?limit=200",
        "/api/v1/groups?limit=200",
        "/incidents",
        "/incidents.csv",
        "/incidents.json",
        "/groups",
        "/groups.csv",
        "/unexplained",
        "/dashboard",
    ],
)
def test_no_secret_is_listed(place: Place, address: str) -> None:
    answer = place.client.get(address, headers={"accept": "text/html"})
    assert answer.status_code == 200
    told = [*meanings(answer.content)]
    for secret in place.secrets.values():
        assert not any(secret.encode() in meaning for meaning in told)


@pytest.mark.parametrize("way", SAMPLED)
def test_no_secret_reaches_an_agent(place: Place, way: str) -> None:
    for tool in ("read_incident", "read_brief", "read_log", "similar_incidents"):
        question = {"name": tool, "arguments": {"incident": place.incidents[way]}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": question}
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        answer = place.client.post("/mcp", json=asked, headers=headers)
        assert answer.status_code == 200
        assert not holds(answer.content, way, place.secrets[way]), tool


def test_no_secret_leaves_for_a_chat_a_webhook_or_a_model(place: Place) -> None:
    assert {one.path for one in place.asked} >= {
        "/slack/chat.postMessage",
        "/feishu",
        "/dingtalk",
        "/wecom",
        "/webhook",
        "/otlp/v1/logs",
        "/v1/chat/completions",
    }
    for path in ("/webhook", "/v1/chat/completions"):
        bodies = [one.body for one in place.asked if one.path == path]
        assert len(bodies) == len(WAYS)
        assert [body for body in bodies if b"HubError" not in body] == []
    for one in place.asked:
        told = [*meanings(one.body)]
        for way, secret in place.secrets.items():
            assert not any(secret.encode() in meaning for meaning in told), (one.path, way)
