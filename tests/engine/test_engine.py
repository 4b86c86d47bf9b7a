from collections.abc import Callable
from pathlib import Path

import pytest

from tests.logs import BANNER, PEER_CLOSED, WAITING, agent, report, steps, text, traceback
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes, open_path


def triage(engine: Engine, *parts: str | list[str]) -> Verdict:
    return engine.triage(from_bytes(text(*parts)))


def test_a_healthy_run_stays_healthy(engine: Engine) -> None:
    verdict = triage(engine, BANNER, steps(range(4)), "WARNING: error rate 0.5, errors: none", "training finished")
    assert (verdict.outcome, verdict.root_cause, verdict.action.advice) == ("healthy", None, "none")


def test_the_killed_rank_is_the_cause_and_its_peers_followed(engine: Engine) -> None:
    verdict = triage(engine, BANNER, steps(range(2)), traceback(PEER_CLOSED, WAITING, "[rank0]: "), agent(-9, 1, 71),
                     report((1, -9), [(0, -15)]))  # fmt: skip
    root = verdict.root_cause
    assert root is not None
    assert (root.entry, root.rank, root.host) == ("process.oom-killed", 1, "gpu-7")
    assert "gloo.error" in [cascade.entry for cascade in verdict.cascades]
    assert not any("-15" in line.text for line in root.evidence)


def test_torchruns_first_observed_failure_is_overruled(engine: Engine) -> None:
    out_of_memory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79.15 GiB"
    verdict = triage(engine, BANNER, steps(range(3)), traceback(out_of_memory, prefix="[rank2]: "),
                     traceback(PEER_CLOSED, WAITING, "[rank0]: "), agent(1, 0), report((0, 1), [(2, 1)]))  # fmt: skip
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.root_cause.rank) == ("cuda.oom", 2)
    assert any("torchrun reports rank 0" in reason for reason in verdict.root_cause.reasons)


@pytest.mark.parametrize(
    ("ended", "entry", "rank"), [("09:10:31", "elastic.child-failed", 1), ("09:10:02", "process.oom-killed", 0)]
)
def test_a_process_killed_long_after_the_first_failure_was_killed_by_the_agent(
    engine: Engine,
    ended: str,
    entry: str,
    rank: int,
    decided: Callable[[], set[str]],
) -> None:
    reported = report((1, 1), [(0, -9), (2, -15)])
    killed = reported.index("[1]:") + 1
    reported[killed] = f"  time      : 2026-05-01_{ended}"
    root = triage(engine, BANNER, steps(range(3)), agent(1, 1), reported).root_cause
    assert root is not None
    assert (root.entry, root.rank) == (entry, rank)
    assert "stopped-by-launcher" in decided()
    assert ("killed-by-agent" in decided()) is (entry == "elastic.child-failed")


def test_the_first_attempts_cause_is_the_runs(engine: Engine) -> None:
    corrupt = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
    verdict = triage(engine, BANNER, steps(range(2)), agent(-9, 0), "resuming from last.ckpt", traceback(corrupt, prefix="[rank0]: "),
                     agent(1, 0), report((0, 1)))  # fmt: skip
    assert [(attempt.attempt, attempt.entry) for attempt in verdict.attempts] == [
        (0, "process.oom-killed"),
        (1, "checkpoint.corrupt"),
    ]
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "process.oom-killed"


def test_equal_tracebacks_of_many_ranks_are_one(engine: Engine) -> None:
    ranks = [traceback("KeyError: 'image'", prefix=f"[rank{rank}]: ") for rank in range(16)]
    verdict = triage(engine, BANNER, *ranks, report((0, 1)))
    assert verdict.root_cause is not None
    assert any("0-15" in reason for reason in verdict.root_cause.reasons)
    assert not [cascade for cascade in verdict.cascades if cascade.entry == "usage.python-error"]


def test_a_handled_error_that_the_run_survived_is_left_out(engine: Engine) -> None:
    handled = traceback("ConnectionError: tracker is away")
    verdict = triage(engine, BANNER, steps(range(2)), handled, steps(range(2), 20, 200), "training finished")
    assert verdict.outcome == "healthy"


def test_an_unknown_failure_abstains_and_says_where(engine: Engine) -> None:
    raised = "frobnicate.errors.WidgetJammed: spindle 4 reports 17"
    verdict = triage(
        engine, BANNER, steps([0]), traceback(raised, [("/job/widgets.py", 12, "turn", "spin()")], "[rank0]: ")
    )
    root = verdict.root_cause
    assert verdict.outcome == "unexplained"
    assert root is not None
    assert root.entry is None
    assert root.exception is not None
    assert root.exception.type == "frobnicate.errors.WidgetJammed"
    assert root.rank == 0
    assert root.evidence


def test_the_last_of_several_runs_in_one_file(engine: Engine) -> None:
    verdict = triage(engine, BANNER, steps([0]), traceback("KeyError: 'lr'"), agent(1), report((0, 1)),
                     BANNER, steps([0]), agent(-9), report((0, -9)))  # fmt: skip
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "process.oom-killed"
    assert [(run.outcome, run.entry) for run in verdict.earlier_runs] == [("explained", "usage.python-error")]


def test_evidence_is_verbatim_with_its_line_number(engine: Engine) -> None:
    data = text(BANNER, steps([0]), traceback("KeyError: 'image'", prefix="[rank0]: "))
    verdict = engine.triage(from_bytes(data))
    assert verdict.root_cause is not None
    first = verdict.root_cause.evidence[0]
    assert data.decode().split("\n")[first.line - 1] == first.text == "[rank0]: KeyError: 'image'"


def test_fingerprints_ignore_what_differs_from_job_to_job(engine: Engine) -> None:
    def of(message: str, file: str, line: int, rank: int) -> str | None:
        return triage(engine, BANNER, traceback(message, [(file, line, "load", "x")], f"[rank{rank}]: ")).fingerprint

    first = of("ValueError: bad sample 17 in /data/a.tar", "/home/ann/job/data.py", 10, 3)
    assert first == of("ValueError: bad sample 4 in /mnt/b/c.tar", "/scratch/bob/job/data.py", 14, 0)
    assert first != of("ValueError: unknown optimizer", "/home/ann/job/data.py", 10, 3)


def test_a_log_dir_tree_gives_ranks_and_files(engine: Engine, tmp_path: Path) -> None:
    for rank, raised in enumerate(["NameError: name 'x' is not defined", PEER_CLOSED]):
        folder = tmp_path / "none_abc" / "attempt_0" / str(rank)
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_bytes(text(traceback(raised)))
        (folder / "stdout.log").write_bytes(text(steps([rank])))
    root = engine.triage(open_path(tmp_path)).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("usage.python-error", 0)
    assert root.evidence[0].file == "none_abc/attempt_0/0/stderr.log"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_verdict_speaks_the_readers_language(engine: Engine, lang: str) -> None:
    verdict = engine.triage(from_bytes(text(traceback("KeyError: 'x'"))), lang)  # type: ignore[arg-type]
    assert verdict.root_cause is not None
    chinese = any(
        "\u4e00" <= letter <= "\u9fff" for letter in "".join(verdict.root_cause.causes + verdict.root_cause.reasons)
    )
    assert chinese is (lang == "zh")


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\0" * 100])
def test_an_empty_log_is_inconclusive(engine: Engine, data: bytes) -> None:
    verdict = engine.triage(from_bytes(data, "x.log"))
    assert (verdict.outcome, verdict.root_cause) == ("inconclusive", None)
    assert verdict.answer is not None
    assert verdict.answer.says == "The log is empty: the run wrote nothing to it."
    assert verdict.answer.values["missing"] == "empty"
    killed = engine.triage(from_bytes(data, "x.log"), known={"exit_code": "137", "job": "4711"})
    assert killed.answer is not None
    assert killed.answer.says == "The log shows no failure; exit 137 is SIGKILL."
    assert "sacct -j 4711 " in "".join(step.run or "" for step in killed.answer.steps)


@pytest.mark.parametrize(
    "paste",
    [
        "> `ModuleNotFoundError: No module named 'einops'`",
        "1. ModuleNotFoundError: No module named 'einops'",
        "训练时报错：ModuleNotFoundError: No module named 'einops'，怎么办？",
        "I keep getting `ModuleNotFoundError: No module named 'einops'` on two machines.",
        "E   ModuleNotFoundError: No module named 'einops'",
        "Traceback (most recent call last): File \"train.py\", line 3, in <module> import einops ModuleNotFoundError: No module named 'einops'",
    ],
)
def test_a_message_is_found_however_it_was_pasted(engine: Engine, paste: str) -> None:
    root = engine.triage(from_bytes(paste.encode())).root_cause
    assert root is not None
    assert root.entry == "env.import-error"
    assert "einops" in root.evidence[0].text


def test_a_code_fence_is_not_evidence(engine: Engine) -> None:
    paste = "training dies with\n```\nModuleNotFoundError: No module named\n'einops'\n```\n"
    root = engine.triage(from_bytes(paste.encode())).root_cause
    assert root is not None
    assert not [line.text for line in root.evidence if "```" in line.text]


def test_a_sentence_in_a_run_that_continues_is_not_a_failure(engine: Engine) -> None:
    line = "note: an earlier job died of ModuleNotFoundError: No module named 'einops', fixed since"
    assert triage(engine, BANNER, line, steps(range(2)), "training finished").outcome == "healthy"


def test_a_traceback_whose_end_is_cut_off_is_a_failure_without_a_name(engine: Engine) -> None:
    verdict = triage(engine, traceback("x", [("/job/train.py", 7, "main", "step()")])[:-1])
    assert verdict.outcome == "unexplained"


def test_what_was_logged_gives_way_to_what_was_not_caught(engine: Engine) -> None:
    logged = [
        "2026-05-01 09:00:01,000 ERROR tracker is away, trying again",
        *traceback("ConnectionError: tracker is away"),
    ]
    verdict = triage(
        engine,
        BANNER,
        steps([0]),
        logged,
        steps([0], 20, 2),
        traceback("TypeError: unsupported operand", prefix="[rank0]: "),
    )
    assert verdict.root_cause is not None
    assert verdict.root_cause.exception is not None
    assert verdict.root_cause.exception.type == "TypeError"


def test_an_exception_raised_while_a_probe_was_answered_is_the_cause(engine: Engine) -> None:
    probe = traceback("FileNotFoundError: [Errno 2] No such file or directory: 'cache.pt'")
    then = traceback(
        "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        [("/job/train.py", 9, "build", "total = 1 + name")],
    )
    verdict = triage(engine, probe, "", "During handling of the above exception, another exception occurred:", "", then)
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "usage.python-error"


def test_a_lookup_that_ends_the_program_is_the_failure(engine: Engine) -> None:
    lookup = traceback(
        "KeyError: 'total_iters'",
        [("/job/megatron/training/checkpointing.py", 1715, "load_checkpoint", "iteration = state_dict['total_iters']")],
    )
    then = traceback("SystemExit", [("/job/megatron/training/checkpointing.py", 1719, "load_checkpoint", "sys.exit()")])
    verdict = triage(
        engine, lookup, "", "During handling of the above exception, another exception occurred:", "", then
    )
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "checkpoint.resume-state"


def test_an_error_that_the_clean_up_raises_after_a_failure_is_not_the_cause(engine: Engine) -> None:
    failed = traceback("KeyError: 'labels'", [("/job/train.py", 80, "main", 'target = batch["labels"]')])
    then = traceback(
        "AssertionError",
        [
            ("/job/train.py", 90, "main", "dist.destroy_process_group()"),
            (
                "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",
                2155,
                "destroy_process_group",
                "assert pg is not None",
            ),
        ],
    )
    verdict = triage(
        engine, failed, "", "During handling of the above exception, another exception occurred:", "", then
    )
    assert verdict.root_cause is not None
    assert verdict.root_cause.exception is not None
    assert verdict.root_cause.exception.type == "KeyError"


def test_the_import_that_failed_is_the_cause_of_an_error_whose_raise_shows_its_last_line_alone(engine: Engine) -> None:
    failed = "ImportError: /job/ops/_ext.cpython-36m-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC1ENS_14SourceLocationERKSs"
    probe = traceback(failed, [("/job/ops/utils.py", 20, "<module>", "import ops._ext as _ext")])
    then = traceback(
        "ImportError: Could not import the extension.\nSee the README",
        [("/job/ops/utils.py", 24, "<module>", '"Could not import the extension.\\n"')],
    )
    verdict = triage(engine, probe, "", "During handling of the above exception, another exception occurred:", "", then)
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "cuda.mismatched-extension"


def test_a_run_that_recovered_is_healthy_and_its_attempt_is_listed(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    verdict = triage(engine, BANNER, steps(range(2)), agent(-9, 0), steps(range(2), 20, 40), "training finished")
    assert verdict.outcome == "healthy"
    assert [(attempt.attempt, attempt.entry) for attempt in verdict.attempts] == [(0, "process.oom-killed")]
    assert {"ended-a-process", "ended-well-below-a-process"} <= decided()


def test_who_waited_for_a_missing_rank_did_not_fail_first(engine: Engine) -> None:
    waits = [
        f"[rank{rank}]:[E501 09:20:00.1 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600029 milliseconds"
        for rank in (0, 1, 3)
    ]
    root = triage(engine, "world_size=4", waits).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("nccl.timeout", 2)


@pytest.mark.parametrize(("missing", "rank"), [("Ranks 4, 5", None), ("Rank 5", 5)])
@pytest.mark.parametrize("bare", [True, False])
def test_who_names_the_missing_ranks_at_a_barrier_is_none_of_them(
    engine: Engine, missing: str, rank: int | None, bare: bool
) -> None:
    raised = f"RuntimeError: [Rank 0]: {missing} failed to pass monitoredBarrier in 2000 ms"
    root = triage(engine, raised if bare else traceback(raised, prefix="[rank0]: ")).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("gloo.timeout", rank)


def test_a_paste_with_an_unknown_error_is_unexplained(engine: Engine, decided: Callable[[], set[str]]) -> None:
    verdict = triage(engine, "starting frobnicator 3", "frobnicator: fatal: the spindle does not turn")
    assert verdict.outcome == "unexplained"
    assert verdict.root_cause is not None
    assert verdict.root_cause.evidence[0].line == 2
    assert {"alarming lines"} <= decided()


@pytest.mark.parametrize(
    "line", ["build finished with 0 errors", "error rate 0.3 after evaluation", "WARNING: failed to find ninja"]
)
def test_calm_words_do_not_make_a_failure(engine: Engine, line: str) -> None:
    assert triage(engine, "starting", line, "done").outcome == "healthy"


def test_thousands_of_different_failures_are_reported_and_the_end_is_still_heard(engine: Engine) -> None:
    letters = "abcdefghij"
    names = ("".join(letters[n // 10**place % 10] for place in range(4)) for n in range(5000))
    noise = [f"WidgetError: spindle {name}" for name in names]
    verdict = triage(engine, BANNER, noise, agent(-9, 0), report((0, -9)))
    assert any("near-duplicate lines skipped" in warning for warning in verdict.warnings)
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "process.oom-killed"
