"""The engine says no secret, also where its log was never redacted and was decoded by itself."""

from __future__ import annotations

import json
import re
import textwrap

import pytest

from tests.built_in import built_in_engine, built_in_knowledge
from tests.web.test_no_secret_leaves import LOGS, bundle, names, secret_of, text
from torchtriage.engine import Engine
from torchtriage.reading.redaction.redact import redact
from torchtriage.reading.redaction.redact_values import without_secrets
from torchtriage.reading.sources import LogFile, Run, from_bytes

SECRET = secret_of(7)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return built_in_engine()


@pytest.mark.parametrize("way", sorted(set(LOGS) - {"a name in an archive", "a private key"}))
def test_what_a_verdict_says_holds_no_secret(engine: Engine, way: str) -> None:
    run = from_bytes(LOGS[way](SECRET), name=f"{SECRET}.log")
    dumped = json.dumps(engine.triage(run).as_dict())
    assert "hubs.HubError" in dumped
    assert SECRET not in dumped
    assert re.search(r'"source": "\[redacted[^\]]*\].log"', dumped)
    assert SECRET in json.dumps(engine.triage(run, redacting=False).as_dict())


def test_a_private_key_in_several_lines_of_evidence_is_not_one(engine: Engine) -> None:
    lines = LOGS["a private key"](SECRET).decode()
    body = lines.partition("PRIVATE KEY-----\n")[2][:40]
    dumped = json.dumps(engine.triage(from_bytes(lines.encode())).as_dict())
    assert "hubs.HubError" in dumped
    assert body not in dumped


def test_a_name_of_a_file_holds_no_secret(engine: Engine) -> None:
    content = text(SECRET).encode()
    files = [LogFile(f"{SECRET}/rank{rank}.log", lambda: iter([content]), member=True) for rank in range(2)]
    verdict = engine.triage(Run("logs", lambda: iter(files), True, tuple(file.name for file in files)))
    assert verdict.root_cause is not None
    assert re.fullmatch(r"\[redacted[^\]]*\]/rank0.log", verdict.root_cause.evidence[0].file or "")
    assert SECRET not in json.dumps(verdict.as_dict())
    assert bundle(SECRET)  # the same as an upload


def test_a_secret_that_a_terminal_tore_is_none_when_it_is_joined(engine: Engine) -> None:
    torn = "\n".join(part for line in text(SECRET).splitlines() for part in textwrap.wrap(line, 60) or [""])
    log = "\n".join(f"step {number} " + "x" * 49 for number in range(10, 30)) + "\n" + torn
    assert SECRET not in json.dumps(engine.triage(from_bytes(log.encode())).as_dict())


def test_half_a_secret_is_none_where_a_line_is_cut(engine: Engine) -> None:
    lines = "".join(
        f"[rank{rank}]: RuntimeError: NCCL communicator was aborted on rank {rank}. {'x' * width} {SECRET}\n"
        for rank, width in enumerate(range(180, 260, 4))
    )
    dumped = json.dumps(engine.triage(from_bytes((text(SECRET) + lines).encode())).as_dict())
    assert not any(SECRET[:length] in dumped for length in (12, 20))


def test_what_is_captured_is_known_by_the_name_before_it(engine: Engine) -> None:
    line = "FileNotFoundError: [Errno 2] No such file or directory: '/data/x?api_key=Xk29fjQ8zLw0pTq7'\n"
    dumped = json.dumps(engine.triage(from_bytes(line.encode())).as_dict())
    assert "data.missing-file" in dumped
    assert "Xk29fjQ8" not in dumped


def test_a_near_message_says_no_part_of_a_secret(engine: Engine) -> None:
    near = (
        "RuntimeError: Expected all tensors to be on the same devices, but found at leest two devices, "
        f"cuda:0 and cpu! password=Xk29fjQ8zLw0pTq7 {SECRET}"
    )
    verdict = engine.triage(from_bytes(near.encode()))
    dumped = json.dumps(verdict.as_dict())
    assert SECRET[:12] not in dumped
    assert "Xk29fjQ8" not in dumped


def test_why_an_entry_did_not_match_says_no_secret(engine: Engine) -> None:
    line = f"torch.OutOfMemoryError: CUDA out of {SECRET} memory password=Xk29fjQ8zLw0pTq7\n"
    dumped = json.dumps(engine.why(from_bytes(line.encode()), "cuda.oom").as_dict("en"))
    assert "out of" in dumped
    assert SECRET[:12] not in dumped
    assert "Xk29fjQ8" not in dumped


def test_what_entries_say_themselves_is_not_a_secret() -> None:
    for entry in built_in_knowledge().entries.values():
        commands = [command for fix in entry.fixes for command in fix.commands]
        said = "\n".join([entry.title.en, *(cause.en for cause in entry.causes), *commands, *entry.checks])
        assert redact(said) == said, entry.id


def test_an_answer_without_secrets_is_the_very_same() -> None:
    answer = {"a": [1, None, ("b", 2.5)], "text": "nothing here"}
    assert without_secrets(answer) is answer
    mark = redact(SECRET)
    result = without_secrets({SECRET: (SECRET, [1, {"x": f"say {SECRET}"}])})
    assert result == {mark: (mark, [1, {"x": f"say {mark}"}])}
    assert names(SECRET)
