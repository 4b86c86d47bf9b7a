"""What a second look at a short log takes for a failure, and what it passes over."""

import pytest

from app.domain.verdict import Verdict
from app.reading.sources import from_bytes
from app.triage.engine import Engine
from tests.logs import text


def triage(engine: Engine, *parts: str | list[str]) -> Verdict:
    return engine.triage(from_bytes(text(*parts)))


@pytest.mark.parametrize(
    "line",
    [
        "INFO:jax._src.xla_bridge:Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object file: No such file or directory",
        "I0104 23:49:02.451212 14001 xla_bridge.py:230] Unable to initialize backend 'tpu': INVALID_ARGUMENT: TpuPlatform is not available.",
        "The attention mask is not set and cannot be inferred from input because pad token is same as eos token.As a consequence, you may observe unexpected behavior.",
    ],
    ids=["logger", "glog", "hedged"],
)
def test_what_a_library_tells_in_passing_is_no_failure(engine: Engine, line: str) -> None:
    assert (
        triage(engine, line, "Loading checkpoint shards: 100%|████| 4/4 [00:02<00:00,  1.50it/s]").outcome == "healthy"
    )


def test_an_exception_that_a_quiet_level_tells_is_still_read(engine: Engine) -> None:
    line = "2026-05-01 09:00:00,120 - trainer - INFO - torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    found = triage(engine, line).root_cause
    assert found is not None
    assert found.entry == "cuda.oom"
