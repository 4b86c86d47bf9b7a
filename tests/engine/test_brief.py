from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Iterator
from functools import partial

import pytest

from tests.logs import PEER_CLOSED, WAITING, steps, text, traceback
from torchtriage.answer.brief.brief import Brief, brief, lines_needed
from torchtriage.answer.brief.token_count import MIN_TOKENS, token_count
from torchtriage.domain.entry import Language
from torchtriage.engine import Engine
from torchtriage.reading.reread_lines import reread
from torchtriage.reading.sources import LogFile, Run, from_bytes

SECRET = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
FRAMES = [("/job/train.py", 30, "<module>", "main()"), ("/job/data.py", 7, "load", f'fetch("{SECRET}", batch)')]
RAISED = "KeyError: 'labels'"


def failing(ranks: int = 4, progress: int = 20) -> bytes:
    """Returns a log in which rank 2 fails and the others wait for it."""
    waiting = [
        line for rank in range(ranks) if rank != 2 for line in traceback(PEER_CLOSED, WAITING, f"[rank{rank}]: ")
    ]
    return text(steps(range(ranks), count=progress), traceback(RAISED, FRAMES, "[rank2]: "), waiting)


def brief_of_run(engine: Engine, run: Run, lang: Language = "en", tokens: int = 2000) -> Brief:
    verdict = engine.triage(run, lang)
    return brief(verdict, reread(run, lines_needed(verdict)), lang, tokens)


def section(made: Brief, title: str) -> str:
    return made.text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_it_holds_the_verdict_the_evidence_with_its_surroundings_and_what_became_of_ranks(engine: Engine) -> None:
    log = failing()
    made = brief_of_run(engine, from_bytes(log))
    line = log.decode().split("\n").index(f"[rank2]: {RAISED}") + 1
    verdict = engine.triage(from_bytes(log))
    assert verdict.answer is not None
    assert verdict.answer.says.split(" ")[0] in section(made, "Verdict")
    evidence = section(made, "Evidence").split("\n")
    assert f"> {line} [rank2]: {RAISED}" in evidence
    assert "   80 [rank 3] step 19 loss 0.1500".replace("   80", "  80") in evidence
    ranks = section(made, "First failure of each group of ranks")
    assert "rank 2 · failed first" in ranks
    assert "ranks 0-1, 3 · lost contact with another rank" in ranks
    assert "Connection closed by peer" in ranks
    assert "ranks 0-3 · line 79: `[rank 2] step 19 loss 0.1500`" in section(made, "What ranks did last")
    assert "`labels`" in section(made, "Facts") or "'labels'" in section(made, "Facts")


def test_who_was_behind_when_it_ended_is_apart(engine: Engine) -> None:
    behind = steps([0, 1, 3], first=20, count=3)
    log = text(steps(range(4)), behind, traceback(RAISED, FRAMES, "[rank0]: "))
    last = section(brief_of_run(engine, from_bytes(log)), "What ranks did last")
    assert "rank 0" in last.split("\n")[0]
    assert "step 22" in last.split("\n")[0]
    assert "rank 2 · line 79: `[rank 2] step 19" in last


def test_a_secret_does_not_are_in_it(engine: Engine) -> None:
    made = brief_of_run(engine, from_bytes(failing()))
    assert SECRET not in made.text + "".join(made.lines.values())
    assert "[redacted:" in made.text


def test_a_private_key_above_the_evidence_is_known_though_only_its_end_is_shown(engine: Engine) -> None:
    body = [base64.b64encode(random.Random(number).randbytes(48)).decode() for number in range(50)]
    key = ["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----"]
    log = text(steps(range(4)), key, traceback(RAISED, FRAMES, "[rank2]: "))
    made = brief_of_run(engine, from_bytes(log), tokens=8000)
    assert not [line for line in body if line in made.text or line in made.lines.values()]
    assert "[redacted:private-key]" in made.text


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("tokens", [MIN_TOKENS, 700, 2000, 10_000])
def test_a_brief_stays_within_its_tokens_whatever_the_log(engine: Engine, lang: Language, tokens: int) -> None:
    long = text(steps(range(64), count=400), traceback("ValueError: " + "x, " * 4000, FRAMES, "[rank2]: "))
    for log in (failing(64, 300), long, b"Killed\n", text(steps(range(4))), "汉字 1a2b😀\n".encode() * 3000):
        made = brief_of_run(engine, from_bytes(log), lang, tokens)
        assert token_count(made.text) <= tokens
        assert made.text.startswith("# ")
    assert token_count(brief_of_run(engine, from_bytes(failing(64, 300)), lang, 2000).text) > 1000


def test_what_does_not_fit_is_counted(engine: Engine) -> None:
    short = brief_of_run(engine, from_bytes(failing(64, 300)), tokens=700).text
    assert "lines left out" in short
    assert "省略" in brief_of_run(engine, from_bytes(failing(64, 300)), "zh", 700).text


def test_the_same_log_gives_the_same_brief(engine: Engine) -> None:
    assert brief_of_run(engine, from_bytes(failing())) == brief_of_run(engine, from_bytes(failing()))


def test_of_many_files_the_lines_of_those_that_matter_are_read(engine: Engine) -> None:
    logs = {f"rank_{rank}.log": text(steps([rank])) for rank in range(8)}
    logs["rank_5.log"] += text(traceback(RAISED, FRAMES))
    asked: list[str] = []

    def chunks(name: str) -> Iterator[bytes]:
        asked.append(name)
        yield logs[name]

    def files() -> Iterator[LogFile]:
        return (LogFile(name, partial(chunks, name)) for name in logs)

    run = Run("8 files", files, several=True, names=tuple(logs))
    verdict = engine.triage(run)
    asked.clear()
    made = brief(verdict, reread(run, lines_needed(verdict)))
    assert "rank_5.log:\n" in made.text
    assert f"> 26 {RAISED}" in made.text
    assert "line 20 of rank_5.log" in section(made, "What ranks did last")
    assert "rank_5.log" in asked
    assert len(asked) <= 8


def test_text_of_the_log_is_not_a_markup(engine: Engine) -> None:
    log = text("```", "</code>", traceback("RuntimeError: ![x](http://evil.example/?q) <script>```\x1b[2Jalert\u202e"))
    made = brief_of_run(engine, from_bytes(log)).text
    assert "\x1b" not in made
    assert "\u202e" not in made
    quoted = made.split("```text\n")[1].split("\n```")[0]
    assert all(line[:1] in "> " for line in quoted.split("\n"))
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", made.replace(f"```text\n{quoted}\n```", ""))
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert not re.search(r"(?<!\\)<", outside)


def test_lines_of_a_log_within_json_are_its_evidence_only(engine: Engine) -> None:
    document = json.dumps([{"message": line} for line in failing().decode().split("\n")]).encode()
    made = brief_of_run(engine, from_bytes(document))
    assert '[{"message"' not in made.text
    assert token_count(made.text) <= 2000
