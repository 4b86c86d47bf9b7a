import json

import pytest

from tests.copied_logs import COPIED, COPIED_NEWEST_FIRST
from tests.log_wrappings import NEWEST_FIRST, WRAPPINGS, Wrapping
from tests.logs import BANNER, NO_FAILURE, agent, report, steps, text, traceback
from tests.surrounded_lines import SURROUNDED
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79.15 GiB"
)
LOG = [
    BANNER,
    *steps(range(4), count=10),
    *traceback(OUT_OF_MEMORY, [("/job/model.py", 44, "forward", 'x = self.attention(x, "full")')], "[rank2]: "),
    *steps([0, 1, 3], first=10, count=1),
    agent(1, 2),
    *report((2, 1)),
]
HEALTHY = [
    BANNER,
    *steps(range(2), count=8),
    "WARNING: bad sample 17, skipped: ValueError: no such label",
    "Error rate 0.25, 3 retries, 0 failures",
    *steps(range(2), first=8, count=12),
    "Training completed.",
]
CULPRIT = next(at for at, line in enumerate(LOG) if OUT_OF_MEMORY in line)


@pytest.mark.parametrize("form", WRAPPINGS)
def test_a_log_means_the_same_in_every_form(engine: Engine, form: str) -> None:
    content, numbers = WRAPPINGS[form](LOG)
    verdict = engine.triage(from_bytes(content))
    root = verdict.root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("cuda.oom", 2)
    assert root.exception is not None
    assert [frame.code for frame in root.exception.frames] == ['x = self.attention(x, "full")']
    first = root.evidence[0]
    assert first.line == numbers[CULPRIT]
    assert OUT_OF_MEMORY in first.text
    assert verdict.warnings == ()


@pytest.mark.parametrize("form", [*SURROUNDED, *COPIED])
def test_a_log_means_the_same_whatever_surrounds_its_lines(engine: Engine, form: str) -> None:
    content, numbers = {**SURROUNDED, **COPIED}[form](LOG)
    root = engine.triage(from_bytes(content)).root_cause
    assert root is not None
    assert (root.entry, root.rank, root.evidence[0].line) == ("cuda.oom", 2, numbers[CULPRIT])
    plain = engine.triage(from_bytes(text(LOG)))
    assert plain.root_cause is not None
    assert root.exception is not None
    assert root.exception.message == plain.root_cause.exception.message  # type: ignore[union-attr]
    assert engine.triage(from_bytes(content)).fingerprint == plain.fingerprint


@pytest.mark.parametrize("expected", [HEALTHY, HEALTHY[:-1]], ids=["to its end", "still going on"])
@pytest.mark.parametrize("form", [*WRAPPINGS, *SURROUNDED, *COPIED])
def test_a_healthy_log_is_healthy_in_every_form(engine: Engine, form: str, expected: list[str]) -> None:
    content, _ = {**WRAPPINGS, **SURROUNDED, **COPIED}[form](expected)
    assert engine.triage(from_bytes(content)).outcome == "healthy"


@pytest.mark.parametrize(
    "wrapping", [*NEWEST_FIRST.values(), *COPIED_NEWEST_FIRST.values()], ids=[*NEWEST_FIRST, *COPIED_NEWEST_FIRST]
)
def test_an_export_that_begins_with_the_newest_line_is_read_from_its_end(engine: Engine, wrapping: Wrapping) -> None:
    content, numbers = wrapping(LOG)
    verdict = engine.triage(from_bytes(content))
    root = verdict.root_cause
    assert root is not None
    assert (root.entry, root.rank, root.evidence[0].line) == ("cuda.oom", 2, numbers[CULPRIT])
    assert verdict.warnings == ("the newest lines stand first: read from the end",)


@pytest.mark.parametrize("quoted", [False, True])
def test_what_json_spells_otherwise_is_found_far_from_both_ends_of_a_log(engine: Engine, quoted: bool) -> None:
    healthy = [json.dumps({"event": f"step {at} loss 0.5", "level": "info", "rank": 3}) for at in range(20_000)]
    said = (
        'invalid "world"\nRuntimeError: CUDA error: an illegal memory access was encountered'
        if quoted
        else OUT_OF_MEMORY
    )
    failed = json.dumps({"event": said, "level": "error", "rank": 3})
    verdict = engine.triage(
        from_bytes(
            text(
                healthy[:10_000],
                failed,
                healthy[10_000:10_002],
                *([json.dumps({"event": "waiting", "level": "info"})] * 9000),
            )
        )
    )
    root = verdict.root_cause
    assert root is not None
    assert (root.entry, root.rank, root.evidence[0].line) == (
        "cuda.illegal-access" if quoted else "cuda.oom",
        3,
        10_001,
    )


def test_a_table_of_a_row_that_holds_a_traceback(engine: Engine) -> None:
    raised = "\n".join(traceback(OUT_OF_MEMORY, prefix="[rank2]: "))
    content = f'Date,Host,Message\n2026-05-01T09:00:00Z,gpu-7,step 1\n2026-05-01T09:00:01Z,gpu-7,"{raised.replace(chr(34), chr(34) * 2)}"\n'
    root = engine.triage(from_bytes(content.encode())).root_cause
    assert root is not None
    assert (root.entry, root.rank, root.host, root.evidence[0].line) == ("cuda.oom", 2, "gpu-7", 3)


def test_powershell_puts_its_own_lines_into_a_traceback(engine: Engine) -> None:
    head, *rest = traceback("KeyError: 'image'")
    own = ["At line:1 char:1", "+ python train.py 2>&1", "+ ~~~~~~~~~~~~~~~~~~~~",
           "    + CategoryInfo          : NotSpecified: (Traceback (most recent call last)::String) [], RemoteException",
           "    + FullyQualifiedErrorId : NativeCommandError", " "]  # fmt: skip
    content = "\r\n".join(["step 1", f"python : {head}", *own, *rest, ""]).encode("utf-16")
    root = engine.triage(from_bytes(content)).root_cause
    assert root is not None
    assert root.exception is not None
    assert (root.exception.type, root.evidence[0].line) == ("KeyError", 11)


def test_a_traceback_after_two_prefixes_is_one_failure(engine: Engine) -> None:
    lines = [f"[default1]:step {number} loss 2.0" for number in range(20)]
    lines += traceback("KeyError: 'x'", prefix="[default1]:[rank13]: ")
    verdict = engine.triage(from_bytes(text(lines)))
    assert verdict.root_cause is not None
    assert (verdict.root_cause.rank, verdict.cascades) == (13, ())


def test_a_sentence_about_tracebacks_begins_none(engine: Engine) -> None:
    lines = ["model output: Traceback (most recent call last) is how Python errors begin", "step 1 loss 2.0"] * 20
    assert engine.triage(from_bytes(text(lines))).outcome in NO_FAILURE


def test_what_nccl_puts_before_its_lines_is_a_host_and_no_label(engine: Engine) -> None:
    said = [
        "transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.2.0.5<33092> with error 12, opcode 0, len 0",
        *(f"NCCL INFO transport/net.cc:{line} -> 6" for line in range(1134, 1140)),
    ]
    root = engine.triage(from_bytes(text([f"gpu-node-2:5776:5902 [3] {line}" for line in said]))).root_cause
    assert root is not None
    assert (root.entry, root.rank, root.host) == ("nccl.ib", None, "gpu-node-2")
