"""Log records for an OTLP endpoint, against a fake that reads them by the protobuf definition."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from hypothesis import given
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from tests.chat.notices import hostile, usual
from tests.http_server import Told
from tests.otlp_endpoint import TOKEN, FakeEndpoint, fake_endpoint
from torchtriage.chat.channels import open_channels
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.otlp import OtlpEndpoint, OtlpLogs
from torchtriage.chat.outbound_http import Answer, Outgoing
from torchtriage.domain.notice import Notice, NoticeKind
from torchtriage.errors import SettingError
from torchtriage.settings import Settings

VERDICT: dict[str, Any] = {
    "root_cause": {"rank": 3, "host": "gpu-021", "confidence": "certain"},
    "answer": {"case": "numbers"},
    "provisional": False,
}


def notice(**verdict: Any) -> Notice:
    incident = {"id": "17", "received_at": "2026-05-01T09:05:11.250Z", "verdict": VERDICT | verdict}
    return usual(kind=NoticeKind.INCIDENT, document={"incident": incident, "group": {"id": "7"}})


def sender(running: FakeEndpoint, *headers: tuple[str, str]) -> OtlpLogs:
    return OtlpLogs(OtlpEndpoint(Outgoing(private=True), f"{running.url}/", headers))


def test_a_record_says_what_failed_in_attributes_that_queries_can_ask_for() -> None:
    with fake_endpoint() as running:
        sender(running).send(notice(), "k")
    (record,) = running.records()
    assert re.fullmatch(r"[0-9a-f-]{36}", record.pop("log.record.uid"))
    assert record == {
        "severity": 17,
        "level": "ERROR",
        "event": "torchtriage.incident",
        "time": 1_777_626_311_250_000_000,
        "body": "Rank 3 asked for 2.00 GiB at train.py:88 and 1.10 GiB were free.",
        "torchtriage.incident": "17",
        "torchtriage.group": "7",
        "torchtriage.outcome": "explained",
        "torchtriage.entry": "cuda.oom",
        "torchtriage.case": "numbers",
        "torchtriage.rank": 3,
        "torchtriage.host": "gpu-021",
        "torchtriage.retry": "no",
        "torchtriage.confidence": "certain",
        "torchtriage.job.id": "4711",
        "torchtriage.job.name": "llama-pretrain",
        "torchtriage.user": "ann",
        "torchtriage.cluster": "blue",
        "torchtriage.url": "https://triage.example.org/incidents/17",
    }


def test_a_run_that_goes_on_is_a_warning_and_a_test_is_none() -> None:
    with fake_endpoint() as running:
        sender(running).send(notice(provisional=True), "k")
        sender(running).send(usual(kind=NoticeKind.TEST, screen=None, document={"incident": None, "group": None}), "t")
    provisional, test = running.records()
    assert (provisional["severity"], provisional["level"]) == (13, "WARN")
    assert (test["severity"], test["event"]) == (9, "torchtriage.test")
    assert test["time"] > 0


def test_a_record_sent_again_has_the_same_uid() -> None:
    with fake_endpoint() as running:
        for key in ("k", "k", "l"):
            sender(running).send(notice(), key)
    first, again, other = (record["log.record.uid"] for record in running.records())
    assert first == again != other


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_temporary_error_is_retried_when_the_endpoint_says(status: int) -> None:
    with fake_endpoint() as running:
        running.refusals = [Told(b'{"message": "slow down"}', status, {"Retry-After": "17"})]
        with pytest.raises(Undelivered, match=f"the OTLP endpoint answered {status}: slow down") as refused:
            sender(running).send(notice(), "k")
        sender(running).send(notice(), "k")
    assert (refused.value.passing, refused.value.wait, len(running.records())) == (True, 17, 1)


@pytest.mark.parametrize("status", [307, 400, 401, 408, 413, 500, 501])
def test_no_other_refusal_is_tried_again(status: int) -> None:
    with fake_endpoint() as running:
        running.refusals = [Told(b"{}", status, {"Retry-After": "17"})]
        with pytest.raises(Undelivered) as refused:
            sender(running).send(notice(), "k")
    assert (refused.value.passing, refused.value.wait) == (False, None)


def test_a_record_that_is_rejected_in_a_partial_success_is_not_sent_again() -> None:
    with fake_endpoint() as running:
        running.partial = {"rejectedLogRecords": "1", "errorMessage": "the tenant has no room"}
        with pytest.raises(Undelivered, match="rejected the log record: the tenant has no room") as refused:
            sender(running).send(notice(), "k")
    assert not refused.value.passing


@pytest.mark.parametrize("partial", [{"errorMessage": "use gzip"}, {"rejectedLogRecords": "many"}])
def test_a_warning_in_a_partial_success_refuses_nothing(partial: dict[str, Any]) -> None:
    with fake_endpoint() as running:
        running.partial = partial
        sender(running).send(notice(), "k")
    assert len(running.records()) == 1


def test_headers_of_the_settings_go_with_each_request(tmp_path: Path) -> None:
    with fake_endpoint(TOKEN) as running:
        known = Settings.from_environment(
            {
                "TRIAGE_DATA_DIR": str(tmp_path),
                "TRIAGE_OTLP_ENDPOINT": running.url,
                "TRIAGE_OTLP_HEADERS": "Authorization=Bearer%20otlp-of-a-test, content-type=text/plain",
                "TRIAGE_ALLOW_PRIVATE_CALLS": "yes",
            }
        )
        assert "otlp-of-a-test" not in repr(known)
        open_channels(known).senders["otlp"].send(notice(), "k")
        with pytest.raises(Undelivered, match="answered 401: Unauthenticated"):
            sender(running, ("Authorization", "Bearer wrong")).send(notice(), "k")
    assert len(running.records()) == 1


def test_a_private_address_is_refused_as_everywhere(tmp_path: Path) -> None:
    with fake_endpoint() as running, pytest.raises(Undelivered):
        open_channels(Settings(data_dir=tmp_path, otlp_endpoint=running.url)).senders["otlp"].send(notice(), "k")
    assert running.asked == []


@pytest.mark.parametrize("text", ["api-key", "=secret", "api key=secret", "a=", "a=sec%0Aret", "a=geheimnis-ä"])
def test_an_invalid_header_prevents_the_start_and_is_not_printed(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingError, match=r"TRIAGE_OTLP_HEADERS: ") as wrong:
        Settings.from_environment({"TRIAGE_DATA_DIR": str(tmp_path), "TRIAGE_OTLP_HEADERS": text})
    assert text not in str(wrong.value)


def test_the_file_of_rules_takes_further_endpoints(tmp_path: Path) -> None:
    rules = tmp_path / "routes.toml"
    with fake_endpoint(TOKEN) as running:
        rules.write_text(f"""
[channels.lake]
kind = "otlp"
url = "{running.url}"
headers = ["authorization={TOKEN}", "x-team=ml"]
[[rules]]
to = ["lake"]
""")
        channels = open_channels(Settings(data_dir=tmp_path, routes_file=rules, allow_private_calls=True))
        channels.senders["lake"].send(notice(), "k")
    assert len(running.records()) == 1


@given(hostile())
def test_whatever_a_log_says_is_taken(given_notice: Notice) -> None:
    class Recorded(Outgoing):
        def post_json(self, url: str, payload: Any, headers: Any = None) -> Answer:
            request = ParseDict(json.loads(json.dumps(payload)), ExportLogsServiceRequest())
            assert len(request.SerializeToString()) < 20_000
            return Answer(200, {}, b"{}")

    OtlpLogs(OtlpEndpoint(Recorded(), "http://a")).send(given_notice, "k")
