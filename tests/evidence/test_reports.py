"""Reports of tools beside a log, through the whole engine: which of them is the cause, and which is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evidence import reports
from tests.logs import traceback
from torchtriage.causality.tool_reports import between
from torchtriage.domain.verdict import RootCause, Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import open_path

STEPS = [f"[rank0]: 2026-05-01 09:{at // 60:02}:{at % 60:02},000 INFO step {at} loss 2.5" for at in range(300)]
NCCL = [
    "[rank8]:[E501 09:15:02.178000000 ProcessGroupNCCL.cpp:616] [Rank 8] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=300, OpType=ALLREDUCE, NumelIn=16, NumelOut=16, Timeout(ms)=600000) ran for 600411 milliseconds "
    "before timing out.",
]
LOST = [
    "[rank8]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/ProcessGroupNCCL.cpp:1970, remote process "
    "exited or there was a network error, NCCL version 2.21.5",
    "[rank8]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
]
OOM = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", prefix="[rank0]: ")
AT, BEFORE, AFTER = "Fri May  1 09:05:01 2026", "Thu Apr 30 21:05:01 2026", "Fri May  1 11:05:01 2026"
PENDING = reports.NVIDIA_SMI_Q.format(errors=0, pending="Yes", failed="No")
WORDS = "GPU 3 had uncorrectable memory errors and row remapping failed. Run a field diagnostic on the GPU."
XML = {"reset": "No", "action": "None", "errors": 0, "pending": "No", "failed": "No"}
WELL = reports.NVIDIA_SMI_Q.format(errors=0, pending="No", failed="No")


def triaged(engine: Engine, folder: Path, log: list[str] | None, **texts: str) -> Verdict:
    """Returns the verdict on a folder with a log and reports, whose names say nothing."""
    if log is not None:
        (folder / "train.log").write_text("\n".join([*STEPS, *log]) + "\n")
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return engine.triage(open_path(folder))


def root_of(verdict: Verdict) -> RootCause:
    assert verdict.root_cause is not None
    return verdict.root_cause


def rules_of(verdict: Verdict) -> set[str]:
    return {str(reason.values["rule"]) for reason in root_of(verdict).because if "rule" in reason.values}


@pytest.mark.parametrize(
    ("text", "entry", "case"),
    [
        (PENDING, "cuda.ecc", "pending-remap-reported"),
        (reports.NVIDIA_SMI_Q.format(errors=0, pending="No", failed="Yes"), "cuda.ecc", "remap-failed"),
        (reports.NVIDIA_SMI_Q.format(errors=4, pending="No", failed="No"), "cuda.ecc", "uncorrected-count"),
        (reports.NVIDIA_SMI_TABLE.format(errors=4, state="1MiB /  81559MiB"), "cuda.ecc", "uncorrected-count"),
        (reports.NVIDIA_SMI_TABLE.format(errors="ERR!", state="GPU is lost"), "hw.pcie", "lost-for-nvidia-smi"),
        (WELL.replace("    MIG Mode", "    GPU Recovery Action                   : Reboot\n    MIG Mode"), "xid.other",
         "recovery-action-reported"),
        (reports.NVIDIA_SMI_Q_580.format(errors=0, pending="Yes", failed="No"), "cuda.ecc", "pending-remap-reported"),
        (WELL.replace("    MIG Mode", "    GPU Recovery Action                   : GPU_RESET\n    MIG Mode"), "xid.other",
         "recovery-action-reported"),
        (WELL.replace("    Remapped", "        Aggregate\n            SRAM Threshold Exceeded       : Yes\n    Remapped"),
         "cuda.ecc", "sram-threshold-reported"),
        (reports.NVIDIA_SMI_XML.format(**XML | {"pending": "Yes"}), "cuda.ecc", "pending-remap-reported"),
        (reports.NVIDIA_SMI_XML.format(**XML | {"errors": 4}), "cuda.ecc", "uncorrected-count"),
        (reports.NVIDIA_SMI_XML.format(**XML | {"action": "Drain P2P"}), "xid.other", "recovery-action-reported"),
        (reports.NVIDIA_SMI_XML.format(**XML | {"reset": "Yes"}), "xid.other", "recovery-action-reported"),
        (reports.DCGM_HEALTH, "cuda.ecc", "remap-failed"),
        (reports.DCGM_DIAG_JSON_3.replace("WORDS", WORDS), "cuda.ecc", "remap-failed"),
        (reports.DCGM_DIAG_JSON_TWICE.replace("WORDS", WORDS), "cuda.ecc", "remap-failed"),
        (reports.DCGM_DIAG_JSON_SUMMARY.replace("WORDS", WORDS), "cuda.ecc", "remap-failed"),
        (reports.DCGM_DIAG_JSON_NODES.replace("WORDS", WORDS), "cuda.ecc", "remap-failed"),
        (reports.DCGM_DIAG_JSON_3.replace("WORDS", ""), "hw.gpu-test-failed", "device-test-alone"),
        (reports.DCGM_HEALTH_JSON, "cuda.ecc", "remap-failed"),
        (reports.DCGM_DIAG, "cuda.ecc", "pending-remap-unnamed"),
        (reports.DCGM_DIAG_JSON.replace("WORDS", "Something of this GPU is wrong."), "hw.gpu-test-failed", "device-and-test"),
        (reports.NCCL_DIAGNOSTICS.format(said="Xid 79 detected 1 time on host gpu-021. For the recommended response, see"),
         "xid.other", "seen-by-nccl"),
        (reports.NCCL_DIAGNOSTICS.format(said="ECC: uncorrected volatile errors on rank(s) {11} (worst=4) across 16 ranks"),
         "cuda.ecc", "counted-by-nccl"),
        (reports.IBSTAT, "network.link-flap", "port-not-active"),
        (reports.IBDIAGNET, "network.link-flap", "counted-by-ibdiagnet"),
        (reports.METRICS, "xid.79", "on-gpu"),
        (reports.DMESG.format(time=AT), "xid.79", "on-gpu"),
        (reports.JOURNAL, "xid.79", "on-gpu"),
        (reports.DMESG_OOM.format(time=AT), "process.oom-killed", "kernel-slurm-limit"),
        (reports.SACCT, "slurm.node-fail", "a-node-failed"),
        (reports.POD, "k8s.oom-killed", "container-oom-killed"),
        (reports.PODS, "k8s.oom-killed", "pod-oom-killed"),
        (reports.EVENTS, "k8s.evicted", "node-short-of"),
        (reports.EVENTS_YAML, "k8s.evicted", "node-short-of"),
    ],
)  # fmt: skip
def test_a_tools_report_is_the_cause_when_peers_only_lost_connections(
    engine: Engine, tmp_path: Path, text: str, entry: str, case: str
) -> None:
    verdict = triaged(engine, tmp_path, [*NCCL, *LOST], report=text)
    root = root_of(verdict)
    assert verdict.answer is not None
    assert (root.entry, root.rank, verdict.answer.case) == (entry, None, case)
    assert root.evidence[0].file == "report.txt"
    assert root.evidence[0].text in text
    assert "nccl.timeout" in {cascade.entry for cascade in verdict.cascades}
    assert verdict.run.started == "2026-05-01T09:00:00.000"  # and no time of the report's
    assert [source.taken_for for source in verdict.run.sources if source.file == "train.log"] == ["log"]


@pytest.mark.parametrize(
    ("text", "entry", "rule"),
    [
        (reports.SACCT, "slurm.node-fail", "report-explains-failure"),
        (reports.IBSTAT, "network.link-flap", "report-beside-symptoms"),
    ],
)
def test_a_report_is_preferred_because_it_explains_the_failure_or_the_log_shows_only_symptoms(
    engine: Engine, tmp_path: Path, text: str, entry: str, rule: str
) -> None:
    verdict = triaged(engine, tmp_path, [*NCCL, *LOST], report=text)
    assert (root_of(verdict).entry, rule in rules_of(verdict)) == (entry, True)


@pytest.mark.parametrize(
    "text",
    [
        WELL,
        reports.NVIDIA_SMI_Q_580.format(errors=0, pending="No", failed="No"),
        reports.METRICS.replace("} 79", "} 0"),
    ],
)
def test_a_report_alone_without_a_fault_says_so(engine: Engine, tmp_path: Path, text: str) -> None:
    verdict = triaged(engine, tmp_path, None, report=text)
    assert verdict.outcome == "inconclusive"
    assert verdict.answer is not None
    assert verdict.answer.says == "Only reports of tools were given, and no log. They contain no known fault."
    assert verdict.answer.values["missing"] == "reports-alone"


def test_a_count_in_a_report_alone_is_reported_though_the_report_continues(engine: Engine, tmp_path: Path) -> None:
    verdict = triaged(engine, tmp_path, None, report=reports.NVIDIA_SMI_Q.format(errors=4, pending="No", failed="No"))
    assert root_of(verdict).entry == "cuda.ecc"


def test_a_state_is_at_most_likely_and_a_dated_report_certain(engine: Engine, tmp_path: Path) -> None:
    assert root_of(triaged(engine, tmp_path, NCCL, report=PENDING)).confidence == "likely"
    assert root_of(triaged(engine, tmp_path, NCCL, report=reports.DMESG.format(time=AT))).confidence == "certain"


def test_a_dated_report_next_to_a_log_without_times_is_at_most_likely(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 1 loss 2.5\nstep 2 loss 2.4\n" + "\n".join(LOST) + "\n")
    (tmp_path / "dmesg.txt").write_text(reports.DMESG.format(time=AT))
    root = root_of(engine.triage(open_path(tmp_path)))
    assert (root.entry, root.confidence) == ("xid.79", "likely")


def test_a_count_that_may_be_old_is_not_a_more_than_possible(engine: Engine, tmp_path: Path) -> None:
    counted = reports.NVIDIA_SMI_Q.format(errors=4, pending="No", failed="No")
    assert root_of(triaged(engine, tmp_path, NCCL, report=counted)).confidence == "possible"


@pytest.mark.parametrize("name", ["a", "z"])  # before the log and behind it
@pytest.mark.parametrize("text", [PENDING, reports.DMESG.format(time=AT), reports.IBSTAT, reports.DCGM_HEALTH])
def test_an_error_of_the_program_stays_the_cause_and_the_verdict_says_what_differs(
    engine: Engine, tmp_path: Path, name: str, text: str
) -> None:
    verdict = triaged(engine, tmp_path, OOM, **{name: text})
    root = root_of(verdict)
    assert (root.entry, root.rank, root.confidence) == ("cuda.oom", 0, "certain")
    differs = [reason.values["file"] for reason in root.because if reason.name == "report_differs"]
    assert differs == ([] if text is reports.IBSTAT else [f"{name}.txt"])


@pytest.mark.parametrize(("time", "rule"), [(BEFORE, "recorded-before-the-run"), (AFTER, "recorded-after-the-failure")])
def test_a_report_of_another_time_is_set_aside(engine: Engine, tmp_path: Path, time: str, rule: str) -> None:
    verdict = triaged(engine, tmp_path, NCCL, report=reports.DMESG.format(time=time))
    assert (root_of(verdict).entry, rule in rules_of(verdict)) == ("nccl.timeout", True)


@pytest.mark.parametrize(("host", "entry"), [("gpu-022", "cuda.launch-failure"), ("gpu-021", "xid.79")])
def test_a_report_of_another_host_is_set_aside(engine: Engine, tmp_path: Path, host: str, entry: str) -> None:
    error = traceback("torch.AcceleratorError: CUDA error: unspecified launch failure", prefix="[rank3]: ")
    (tmp_path / host).mkdir()
    (tmp_path / host / "train.log").write_text("\n".join([*STEPS, *error]) + "\n")
    (tmp_path / "journal.json").write_text(reports.JOURNAL)
    verdict = engine.triage(open_path(tmp_path))
    assert (root_of(verdict).entry, root_of(verdict).host) == (entry, host)
    assert ("of-another-host" in rules_of(verdict)) == (host != "gpu-021")


def test_an_xid_before_an_unknown_error_is_its_cause(engine: Engine, tmp_path: Path) -> None:
    error = traceback("acme.DeviceGone: handle 7 does not answer", prefix="[rank0]: 2026-05-01 09:05:03,000 ERROR ")
    verdict = triaged(engine, tmp_path, error, report=reports.DMESG.format(time=AT))
    assert (root_of(verdict).entry, "host-failed-first" in rules_of(verdict)) == ("xid.79", True)


@pytest.mark.parametrize(
    ("first", "last", "seconds"),
    [
        ("2026-05-01T09:00:00", "2026-05-01T09:01:00", (60, 60)),
        ("2026-05-01T09:00:00+02:00", "2026-05-01T08:00:00Z", (3600, 3600)),
        ("2026-05-01T09:00:00+02:00", "2026-05-01T09:01:00", (60, 7260)),  # the log's clock is the host's, or UTC
        ("2026-05-01T09:01:00", "2026-05-01T09:00:00-05:00", (-60, 17940)),
        ("2026-05-01T09:00:00+00:00", "2026-05-01T09:01:00", (60, 60)),
        ("2026-05-01T09:00:00Z", "2026-05-01T09:01:00", (60 - 50400, 60 + 50400)),
        ("2026-05-01T09:00:00", None, None),
        ("--05-01T09:00:00", "2026-05-01T09:00:00Z", None),
        ("soon", "2026-05-01T09:00:00Z", None),
    ],
)  # fmt: skip
def test_times_with_and_without_an_offset_are_as_far_apart_as_they_may_be(
    first: str, last: str | None, seconds: tuple[float, float] | None
) -> None:
    assert between(first, last) == seconds


@pytest.mark.parametrize(("day", "entry"), [("2026-04-27", "nccl.timeout"), ("2026-05-01", "xid.79")])
def test_an_old_xid_of_a_clock_with_an_offset_is_set_aside(
    engine: Engine, tmp_path: Path, day: str, entry: str
) -> None:
    line = "T09:05:01,440118+00:00 NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.\n"
    assert root_of(triaged(engine, tmp_path, NCCL, report=day + line)).entry == entry


def test_no_xid_explains_a_mistake_in_the_program(engine: Engine, tmp_path: Path) -> None:
    mistake = traceback("KeyError: 'image'", prefix="[rank0]: 2026-05-01 09:05:03,000 ERROR ")
    verdict = triaged(engine, tmp_path, mistake, report=reports.DMESG.format(time=AT))
    assert root_of(verdict).entry == "usage.python-error"
    assert "report_differs" in {reason.name for reason in root_of(verdict).because}


def test_the_reasons_name_both_causes(engine: Engine, tmp_path: Path) -> None:
    root = root_of(triaged(engine, tmp_path, NCCL, report=reports.DMESG.format(time=AT)))
    assert (
        "report.txt (recognized as kernel log) shows this cause; the log alone points to nccl.timeout (line 301), "
        "which is a consequence"
    ) in root.reasons


@pytest.mark.parametrize("log", [[], ["training finished"]])
@pytest.mark.parametrize(
    "text",
    [WELL, PENDING, reports.IBSTAT, reports.DCGM_HEALTH, reports.METRICS, reports.DMESG.format(time=BEFORE),
     reports.DMESG.format(time="Fri May  1 08:59:30 2026"), reports.GDB.format(function="c10d::Work::wait")],
)  # fmt: skip
def test_no_state_of_a_host_makes_a_good_run_a_failed_one(
    engine: Engine, tmp_path: Path, text: str, log: list[str]
) -> None:
    alone = triaged(engine, tmp_path, log)
    assert alone.outcome == "healthy"
    assert triaged(engine, tmp_path, log, report=text).outcome == "healthy"


@pytest.mark.parametrize(
    ("state", "entry"),
    [("TIMEOUT", "slurm.time-limit"), ("OUT_OF_MEMORY", "slurm.oom"), ("NODE_FAIL", "slurm.node-fail"),
     ("PREEMPTED", "slurm.preempted"), ("BOOT_FAIL", "slurm.node-fail")],
)  # fmt: skip
def test_the_schedulers_record_is_the_cause_when_a_log_stops(
    engine: Engine, tmp_path: Path, state: str, entry: str
) -> None:
    record = reports.SACCT_P.format(state=state, end="2026-05-01T09:05:11")
    verdict = triaged(engine, tmp_path, [], report=record)
    assert (root_of(verdict).entry, "record-of-the-job" in rules_of(verdict)) == (entry, True)


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "RUNNING"])
def test_states_that_show_no_cause_show_none(engine: Engine, tmp_path: Path, state: str) -> None:
    record = reports.SACCT_P.format(state=state, end="2026-05-01T09:05:11")
    assert root_of(triaged(engine, tmp_path, NCCL, report=record)).entry == "nccl.timeout"


def test_a_limit_that_came_long_after_the_ranks_had_timed_out_is_not_a_cause(engine: Engine, tmp_path: Path) -> None:
    record = reports.SACCT_P.format(state="TIMEOUT", end="2026-05-01T11:05:11")
    root = root_of(triaged(engine, tmp_path, NCCL, report=record))
    assert (root.entry, "report_differs" in {reason.name for reason in root.because}) == ("nccl.timeout", True)


def test_the_kernels_report_is_the_cause_when_a_process_was_killed(engine: Engine, tmp_path: Path) -> None:
    killed = "E0501 09:05:04.321000 16260 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9) local_rank: 2 (pid: 2211) of binary: /usr/bin/python"  # fmt: skip
    verdict = triaged(engine, tmp_path, [killed], report=reports.DMESG_OOM.format(time=AT))
    assert verdict.answer is not None
    assert verdict.answer.case == "kernel-slurm-limit"
    assert "report-tells-more" in rules_of(verdict)


def test_an_xid_is_the_cause_when_the_log_stops_at_its_time(engine: Engine, tmp_path: Path) -> None:
    xid = reports.DMESG.format(time="Fri May  1 09:05:00 2026")
    verdict = triaged(engine, tmp_path, ["[rank0]: saving the che"], report=xid)
    assert (root_of(verdict).entry, "stopped-the-run" in rules_of(verdict)) == ("xid.79", True)


def test_the_host_of_a_report_is_left_out(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "dmesg.worker-17.txt").write_text(reports.DMESG.format(time=AT))
    verdict = triaged(engine, tmp_path, NCCL)
    assert (root_of(verdict).host, verdict.action.exclude_hosts) == ("worker-17", ("worker-17",))


def test_reports_alone_are_read_as_before(engine: Engine, tmp_path: Path) -> None:
    verdict = triaged(engine, tmp_path, None, dmesg=reports.DMESG.format(time=AT), smi=WELL)
    assert (root_of(verdict).entry, root_of(verdict).confidence) == ("xid.79", "certain")
    assert {source.taken_for for source in verdict.run.sources} == {"kernel log", "nvidia-smi"}


def test_gdb_stacks_alone_name_the_rank_that_is_elsewhere(engine: Engine, tmp_path: Path) -> None:
    for rank in range(4):
        stack = reports.GDB.format(function="__lll_lock_wait" if rank == 2 else "c10d::Work::wait")
        (tmp_path / f"gdb_rank_{rank}.txt").write_text(stack)
    verdict = triaged(engine, tmp_path, None)
    assert verdict.run.suspect_ranks == (2,)
    assert verdict.answer is not None
    assert "__lll_lock_wait" in verdict.answer.says


def test_what_cuda_gdb_caught_is_the_cause_of_what_peers_lost(engine: Engine, tmp_path: Path) -> None:
    root = root_of(triaged(engine, tmp_path, NCCL, report=reports.CUDA_GDB))
    assert (root.entry, root.confidence) == ("cuda.illegal-access", "likely")


def test_a_hostile_file_costs_a_warning(engine: Engine, tmp_path: Path) -> None:
    deep = '{"DCGM Diagnostic": {' + '"a": {' * 100_000
    verdict = triaged(engine, tmp_path, OOM, report=deep)
    assert root_of(verdict).entry == "cuda.oom"
    assert any("report.txt: DCGM: " in warning for warning in verdict.warnings)
