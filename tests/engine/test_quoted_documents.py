"""Texts that are no logs: nothing failed where a program's source, a manual or other prose speaks of errors."""

from __future__ import annotations

import pytest

from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

SOURCE = '''\
import math

from torch import nn


class Mixer(nn.Module):
    """Mixes two streams.

    Raises:
        ValueError: if ``left`` and ``right`` have different sizes.
        RuntimeError: CUDA out of memory. Tried to allocate more than the limit.
    """

    LIMIT = "FAILED"

    def __init__(self, left, right):
        super().__init__()
        if left != right:
            raise ValueError(
                "left and right cannot differ"
            )
        self.left = left

    def forward(self, x):
        with torch.no_grad():
            message = "Not all ranks joining collective, sequence number: %s"
            return x
'''
LONG_SOURCE = SOURCE + "".join(
    f"\n\ndef part_{number}(x):\n    assert x, 'part {number} failed'\n    return x * {number}\n"
    for number in range(80)
)
PROSE = """\
What is new in this release

The loader now reads shards in the order in which they were written, and it
cannot skip a shard that another process is still writing at the same time.
If the folder does not exist, the loader waits for it up to a minute before it
gives up, because shared file systems show new folders only after some time.
People asked for a way to see which of the workers failed to open a shard, so
every worker now writes the name of the shard that it reads into its own file.

The trainer keeps the newest five checkpoints and removes those that are older,
unless the name of a checkpoint is given as one that should never be removed.
Out of memory errors are now shown together with the size of the largest batch
that was seen before, and with the number of tokens that this batch contained.
We also removed an option that did nothing since the last release, and fixed a
mistake in the example that could not be run on machines with only one device.
A later release will change how ranks are numbered on hosts with two networks,
and we would like to hear from you whether that is a problem for your scripts.
"""
TABLE = """\
# What the client exits with

| status | meaning | what to do |
|---|---|---|
| 10 | the job failed and may be run again | restart |
| 11 | CUDA out of memory, or another error that comes back | stop |
| 12 | the job FAILED for a reason that is not known | look at the log |
"""


def triage(engine: Engine, text: str) -> Verdict:
    return engine.triage(from_bytes(text.encode()))


@pytest.mark.parametrize("text", [SOURCE, LONG_SOURCE, PROSE, TABLE], ids=["source", "long source", "prose", "table"])
def test_errors_that_a_document_quotes_are_no_failure(engine: Engine, text: str) -> None:
    verdict = triage(engine, text)
    assert (verdict.outcome, verdict.root_cause) == ("inconclusive", None)
    assert verdict.answer is not None
    assert "point to a problem" not in verdict.answer.says


@pytest.mark.parametrize(
    "text",
    [
        SOURCE + "\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 79.15 GiB\n",
        "My training stops with this code and I do not know why. Can anybody help me?\n\n" + SOURCE
        + "\nIt says RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        PROSE + "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed.\n",
    ],
    ids=["below the source", "asked about", "below a message of the day"],
)  # fmt: skip
def test_an_error_outside_of_it_still_counts(engine: Engine, text: str) -> None:
    root = triage(engine, text).root_cause
    assert root is not None
    assert root.entry in ("cuda.oom", "slurm.oom")
