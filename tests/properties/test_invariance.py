"""What says nothing about a failure changes neither the verdict nor the fingerprint."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.logs import text
from tests.properties.conftest import Told
from tests.properties.jobs import FAILURES, JOBS, Blocks, Job, begin
from torchtriage.reading import zstd
from torchtriage.reading.sources import LogFile, Run

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
LOGS = sorted(path.parent.name for path in CORPUS.glob("*/log.txt"))
HEALTHY_LINES = [
    "INFO: reading shard 17 of 128",
    "2026-05-01 09:00:01,120 INFO worker pool of 8 is warm",
    "UserWarning: the default of `antialias` will change",
    "wandb: syncing is set to offline",
    "tokens per second: 10233.1",
    "",
]
# The same examples each time: a test that fails now and then tells nothing. Making a failing one small takes minutes.
fixed = partial(
    settings,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
Tell = Callable[[bytes | Path | Run], Told]
PACKED: dict[str, Callable[[bytes], bytes]] = {"log": bytes, "log.gz": gzip.compress, "log.zst": zstd.compress}
failures = st.sampled_from(sorted(FAILURES))
logs = st.sampled_from(LOGS)


def log_of(job: Job, failure: str) -> bytes:
    return text(*begin(job), *FAILURES[failure](job))


def corpus_log(name: str) -> bytes:
    return (CORPUS / name / "log.txt").read_bytes()


@pytest.mark.parametrize("failure", sorted(FAILURES))
@fixed(max_examples=5)
@given(one=JOBS, other=JOBS)
def test_the_same_failure_of_another_job(tell: Tell, failure: str, one: Job, other: Job) -> None:
    first = tell(log_of(one, failure))
    assert first[0] != "healthy"
    assert tell(log_of(other, failure)) == first


def test_different_failures_have_different_fingerprints(tell: Tell) -> None:
    job = Job(4, 1, "gpu-7", "/job", "/env", 71, 12, 2.0, 9, 20, "a2a6f0c4-0000-4000-8000-000000000000")
    fingerprints = {failure: tell(log_of(job, failure))[2] for failure in FAILURES}
    for one, other in combinations(FAILURES, 2):
        assert fingerprints[one] != fingerprints[other], (one, other)


@fixed(max_examples=30)
@given(failure=failures, job=JOBS, dice=st.randoms(use_true_random=False))
def test_healthy_lines_between(tell: Tell, failure: str, job: Job, dice: random.Random) -> None:
    blocks: Blocks = [*begin(job), *FAILURES[failure](job)]
    plain = tell(text(*blocks))
    for _ in range(dice.randint(1, 12)):
        blocks.insert(dice.randint(0, len(blocks)), [dice.choice(HEALTHY_LINES)])
    assert tell(text(*blocks)) == plain


@fixed(max_examples=24)
@given(failure=failures, job=JOBS, dice=st.randoms(use_true_random=False))
def test_one_file_for_each_rank(tell: Tell, failure: str, job: Job, dice: random.Random) -> None:
    lines = [line for block in [*begin(job), *FAILURES[failure](job)] for line in block]
    files: dict[str, list[str]] = {}
    form = dice.choice(["rank_{}.log", "logs/rank{}/stderr.log", "run_abc/attempt_0/{}/stderr.log", "job_77_{}.out"])
    for line in lines:
        own = re.match(r"\[rank ?(\d+)\](?:: )?(.*)", line)
        name = form.format(own[1]) if own else "launcher.log"
        files.setdefault(name, []).append(own[2] if own else line)
    several = [LogFile(name, partial(iter, [text(part)])) for name, part in sorted(files.items())]
    assert tell(Run("run", lambda: iter(several), several=True)) == tell(text(lines))


def stamped(lines: list[str]) -> list[str]:
    return [f"2026-05-01T09:{n // 60 % 60:02d}:{n % 60:02d}.123456789Z {line}" for n, line in enumerate(lines)]


def podded(lines: list[str]) -> list[str]:
    return [f"[pod/vit-worker-0-x7k2p/pytorch] {line}" for line in lines]


def docked(lines: list[str]) -> list[str]:
    moments = (f"2026-05-01T09:{n // 60 % 60:02d}:{n % 60:02d}.1Z" for n in range(len(lines)))
    return [
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": time})
        for line, time in zip(lines, moments, strict=True)
    ]


def journaled(lines: list[str]) -> list[str]:
    return [f"May  1 09:{n // 60 % 60:02d}:{n % 60:02d} gpu-7 train.sh[4242]: {line}" for n, line in enumerate(lines)]


def contained(lines: list[str]) -> list[str]:
    return [f"2026-05-01T09:{n // 60 % 60:02d}:{n % 60:02d}.1Z stderr F {line}" for n, line in enumerate(lines)]


def coloured(lines: list[str]) -> list[str]:
    return [f"\x1b[33m{line}\x1b[0m" for line in lines]


WRAPPINGS = [stamped, podded, docked, journaled, contained, coloured, lambda lines: stamped(podded(lines))]


@fixed(max_examples=35)
@given(failure=failures, job=JOBS, wrap=st.sampled_from(WRAPPINGS))
def test_prefixes_of_whatever_carried_the_log(
    tell: Tell, failure: str, job: Job, wrap: Callable[[list[str]], list[str]]
) -> None:
    lines = log_of(job, failure).decode().split("\n")[:-1]
    assert tell(text(wrap(lines))) == tell(text(lines))


@pytest.mark.parametrize("wrap", WRAPPINGS[:-1])
@fixed(max_examples=9)
@given(name=logs)
def test_prefixes_on_real_logs(tell: Tell, wrap: Callable[[list[str]], list[str]], name: str) -> None:
    lines = corpus_log(name).decode(errors="replace").replace("\r\n", "\n").split("\n")[:-1]
    assert tell(text(wrap(lines))) == tell(text(lines))


def crlf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def utf16(data: bytes) -> bytes:
    return data.decode(errors="replace").encode("utf-16")


def marked(data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data


@pytest.mark.parametrize("encode", [crlf, utf16, marked])
@fixed(max_examples=10)
@given(name=logs)
def test_line_ends_and_encodings(tell: Tell, encode: Callable[[bytes], bytes], name: str) -> None:
    assert tell(encode(corpus_log(name))) == tell(corpus_log(name))


@fixed(max_examples=9)
@given(name=logs, ending=st.sampled_from(sorted(PACKED)))
def test_compression(tell: Tell, tmp_path: Path, name: str, ending: str) -> None:
    file = tmp_path / f"run.{ending}"
    file.write_bytes(PACKED[ending](corpus_log(name)))
    assert tell(file) == tell(corpus_log(name))


@fixed(max_examples=16)
@given(name=logs, dice=st.randoms(use_true_random=False))
def test_where_the_stream_of_bytes_is_cut(tell: Tell, name: str, dice: random.Random) -> None:
    data = corpus_log(name)
    places = sorted(dice.sample(range(1, len(data)), min(6, len(data) - 1)))
    pieces = [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
    file = LogFile("log", lambda: iter(pieces))
    assert tell(Run("log", lambda: iter((file,)))) == tell(data)


@fixed(max_examples=16)
@given(
    name=logs,
    other=st.sampled_from(["/home/ann/vit", "/scratch/bob/run_12/src", "/tmp/tmpk3v_x9"]),
    number=st.integers(1, 10**6),
)
def test_folders_hosts_and_numbers_of_real_logs(tell: Tell, name: str, other: str, number: int) -> None:
    log = corpus_log(name).decode(errors="replace")
    changed = re.sub(r"/job/", f"{other}/", log)
    changed = changed.replace("/opt/venv/", "/opt/conda/envs/x/").replace("node-a", f"gpu-{number % 100}")
    changed = re.sub(r"pid: \d+", f"pid: {number}", changed)
    changed = re.sub(r"\.py\", line \d+", f'.py", line {number % 3000 + 1}', changed)
    changed = re.sub(r"(?<=Connection closed by peer \[127\.0\.0\.1\]:)\d+", str(number % 65000), changed)
    assert tell(changed.encode()) == tell(log.encode())
