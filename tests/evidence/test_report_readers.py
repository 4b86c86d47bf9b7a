"""Reports of tools: what each file is taken for, and what its reader makes of it."""

from __future__ import annotations

import json

import pytest

from tests.evidence import reports
from torchtriage.domain.line import Line, Position
from torchtriage.evidence.reports.readers import READERS, host_in_name, lines_of
from torchtriage.evidence.stacks import doing, read_stack
from torchtriage.reading.file_types import HEAD, FileForm, form_of, is_report

ALL = [(form, text) for form, texts in reports.EVERY.items() for text in texts]
STEPS = "step 1 loss 2.5\nstep 2 loss 2.4\n"
DATED = "2026-05-01 09:00:00,000 INFO: Step 1, loss 2.5\n2026-05-01 09:00:01,000 INFO: Step 2, loss 2.4\n"


def read(form: FileForm, text: str) -> list[Line]:
    lines, warning = lines_of(form, text.encode(), Position(7, 0), "report.txt", None)
    assert warning is None
    return lines


def statements(form: FileForm, text: str) -> list[str]:
    return [line.text for line in read(form, text)]


@pytest.mark.parametrize(("form", "text"), ALL)
def test_a_report_is_known_by_its_text(form: str, text: str) -> None:
    assert form_of(text.encode()) == form
    assert is_report(FileForm(form), text.encode())
    assert form_of(text.replace("\n", "\r\n").encode()) == form


@pytest.mark.parametrize(("form", "text"), [(form, text) for form, text in ALL if text.lstrip()[:1] != "{"])
def test_a_log_that_begins_with_what_a_tool_prints_is_a_log(form: str, text: str) -> None:
    for log in (STEPS, DATED, "Step 1 of 200: loss 2.5\n"):
        assert form_of((text + log).encode()) is FileForm.LOG
        assert not is_report(FileForm(form), (text + log).encode())


@pytest.mark.parametrize(("form", "text"), ALL)
def test_a_log_that_a_tool_prints_into_is_a_log(form: str, text: str) -> None:
    assert form_of((STEPS + text).encode()) is FileForm.LOG


@pytest.mark.parametrize(
    "text",
    [
        STEPS,
        "[Fri May  1 09:05:01 2026] step 1 loss 2.5\n",  # a program's own time
        "[   12.345678] epoch 3 begins\n",
        '{"lr": 0.1, "kind": "Pod racer"}\n' + STEPS,
        '{"MESSAGE":"step 1","__REALTIME_TIMESTAMP":"1777626300440118","_TRANSPORT":"stdout"}\n',
        "May  1 09:05:01 gpu-021 kernel: NVRM: Xid (PCI:0000:3b:00): 79\nMay  1 09:05:02 gpu-021 python[4711]: step 1 loss 2.5\n",
        "May  1 09:05:01 gpu-021 systemd[1]: Started train.service.\n",  # nothing of the kernel
        "kind: experiment\napiVersion: ours/v1\n",
        "",
        "{",
    ],
)  # fmt: skip
def test_other_texts_are_logs(text: str) -> None:
    assert form_of(text.encode()) is FileForm.LOG


def test_a_report_that_is_cut_at_the_bytes_that_are_looked_at_is_one() -> None:
    text = reports.NVIDIA_SMI_Q.format(errors=0, pending="No", failed="No")
    assert form_of((text * 80).encode()[:HEAD]) is FileForm.NVIDIA_SMI


@pytest.mark.parametrize(
    "text",
    [" " * HEAD, "[" * HEAD, "JobID " * 10_000, "JobID|State" * 6_000, "| " * 30_000, "# HELP a" * 8_000, "a{" * 30_000,
     "Thread 1 (" * 6_000, "{" * HEAD, '{"' + '"kind":' * 9_000, "apiVersion: v1\n" + "kind: " * 10_000, "CA '" * 16_000],
)  # fmt: skip
def test_no_text_makes_it_slow_to_say_what_it_is(text: str) -> None:
    patterns_are_linear = form_of(text.encode()[:HEAD])  # a pattern that went back would take minutes here
    assert patterns_are_linear in FileForm


def test_nvidia_smi_names_the_gpu_and_the_section_of_each_value() -> None:
    lines = read(FileForm.NVIDIA_SMI, reports.NVIDIA_SMI_Q.format(errors=4, pending="Yes", failed="No"))
    texts = [line.text for line in lines]
    assert "nvidia-smi: GPU 00000000:3B:00.0: Remapped Rows: Pending : Yes" in texts
    assert not any("86:00.0: Remapped Rows" in text for text in texts)  # nothing is wrong there
    assert "nvidia-smi: GPU 00000000:3B:00.0: ECC Errors: Volatile: DRAM Uncorrectable : 4" in texts
    pending = lines[texts.index("nvidia-smi: GPU 00000000:3B:00.0: Remapped Rows: Pending : Yes")]
    assert (pending.number, pending.raw.strip()) == (26, "Pending                           : Yes")


def test_of_a_report_without_end_the_beginning_is_read_with_a_warning() -> None:
    text = reports.NVIDIA_SMI_Q.format(errors=4, pending="Yes", failed="No") * 10_000
    lines, warning = lines_of(FileForm.NVIDIA_SMI, text.encode(), Position(1, 0), None, None)
    assert (len(lines), warning) == (40_000, "nvidia-smi: only its first 40,000 statements were read")


def test_the_table_of_nvidia_smi_names_the_gpu_of_each_cell() -> None:
    texts = statements(FileForm.NVIDIA_SMI, reports.NVIDIA_SMI_TABLE.format(errors="ERR!", state="GPU is lost"))
    assert "nvidia-smi: GPU 00000000:3B:00.0: Volatile Uncorr. ECC : ERR!" in texts
    assert any(text.startswith("nvidia-smi: GPU 00000000:3B:00.0: ") and "GPU is lost" in text for text in texts)
    assert not any("python" in text for text in texts)


@pytest.mark.parametrize("text", [reports.DCGM_HEALTH, reports.DCGM_HEALTH_JSON])
def test_dcgm_health_says_what_is_wrong_with_which_gpu(text: str) -> None:
    (line,) = read(FileForm.DCGM, text)
    wanted = (
        "dcgmi health: GPU 3: Memory system: Failure: GPU 3 had uncorrectable memory errors and row remapping failed."
    )
    assert line.text.startswith(wanted)
    assert "GPU 3 had uncorrectable" in line.raw


def test_dcgm_diag_joins_what_its_table_cut() -> None:
    assert statements(FileForm.DCGM, reports.DCGM_DIAG) == [
        "dcgmi diag: Page Retirement/Row Remap: Fail",
        "dcgmi diag: Page Retirement/Row Remap: Fail: GPU 3 A GPU row remap is pending. Reset the GPU.",
        "dcgmi diag: GPU Memory: Fail - GPU: 3",
    ]


def test_dcgm_diag_says_which_gpu_failed_below_those_that_passed() -> None:
    rows = [
        "+---------------------------+------------------------------------------------+",
        "| Diagnostic                | Result                                         |",
        "+===========================+================================================+",
        "|-----  Deployment  --------+------------------------------------------------|",
        "| Error                     | GPU 3 has uncorrectable memory errors and row  |",
        "|                           |  remappings are pending                        |",
        "+-----  Hardware  ----------+------------------------------------------------+",
        "| GPU Memory                | Pass - GPUs: 1, 2, 3                           |",
        "|                           | Fail - GPU: 0                                  |",
        "| Warning                   | GPU 0 Error using CUDA API cuCtxCreate Check   |",
        "|                           | DCGM and system logs for errors. Reset GPU. R  |",
        "|                           | estart DCGM.                                   |",
        "| Info                      | GPU 1 Allocated 76000 MB                       |",
        "+-----  Stress  ------------+------------------------------------------------+",
        "| memory                    | Fail                                           |",
        "|                           | GPU0: Pass                                     |",
        "|                           | GPU3: Fail                                     |",
        "| Warning: GPU3             | GPU 3 is hot                                   |",
        "+---------------------------+------------------------------------------------+",
    ]
    assert statements(FileForm.DCGM, "\n".join(rows)) == [
        "dcgmi diag: Deployment: Fail: GPU 3 has uncorrectable memory errors and row remappings are pending",
        "dcgmi diag: GPU Memory: Fail - GPU: 0",
        "dcgmi diag: GPU Memory: Fail: GPU 0 Error using CUDA API cuCtxCreate Check DCGM and system logs for errors. Reset "
        "GPU. Restart DCGM.",
        "dcgmi diag: memory: Fail",
        "dcgmi diag: memory: GPU3: Fail",
        "dcgmi diag: GPU3: memory: Fail: GPU 3 is hot",
    ]


def test_dcgm_diag_as_json_leaves_out_what_passed() -> None:
    (line,) = read(FileForm.DCGM, reports.DCGM_DIAG_JSON.replace("WORDS", "GPU 3 is bad."))
    assert (line.text, line.number) == ("dcgmi diag: GPU 3: memory: Fail: GPU 3 is bad.", 27)


def test_older_dcgm_has_its_warnings_as_text() -> None:
    text = (
        '{"DCGM GPU Diagnostic": {"test_categories": [{"category": "Integration", "tests": [{"name": "PCIe", "results": '
        '[{"gpu_ids": "0,1", "status": "Fail", "warnings": "replays"}, {"gpu_id": "2", "status": "Skip"}]}]}]}}'
    )
    assert form_of(text.encode()) is FileForm.DCGM
    assert statements(FileForm.DCGM, text) == ["dcgmi diag: GPU 0,1: PCIe: Fail: replays"]


def test_ibstat_gives_a_line_a_port() -> None:
    lines = read(FileForm.INFINIBAND, reports.IBSTAT)
    assert [line.text for line in lines] == [
        "ibstat: mlx5_0 port 1: State: Active, Physical state: LinkUp, Rate: 400, Link layer: InfiniBand",
        "ibstat: mlx5_3 port 1: State: Down, Physical state: Polling, Rate: 40, Link layer: InfiniBand",
    ]
    assert lines[1].raw.strip() == "State: Down"
    (line,) = read(FileForm.INFINIBAND, reports.IBSTATUS)
    assert line.text.startswith("ibstat: mlx5_3 port 1: State: Down, Physical state: Polling, rate: 10 Gb/sec")


def test_ibdiagnet_gives_its_errors_with_the_host() -> None:
    error, stage = read(FileForm.INFINIBAND, reports.IBDIAGNET)
    assert (error.host, stage.text) == ("gpu-021", "ibdiagnet: Port Counters: 1 errors")
    assert error.text.startswith('ibdiagnet: gpu-021/U1/P1 - "link_down_counter" increased')


def test_sacct_is_read_by_its_columns_and_without_steps() -> None:
    (line,) = read(FileForm.SLURM_JOB, reports.SACCT_P.format(state="TIMEOUT", end="2026-05-01T09:05:11"))
    assert line.text.startswith("sacct: JobID=4711 JobName=train State=TIMEOUT ExitCode=0:0 ")
    assert line.time == "2026-05-01T09:05:11"
    assert not any("CANCELLED" in text for text in statements(FileForm.SLURM_JOB, reports.SACCT))


def test_scontrol_shows_when_the_job_ended() -> None:
    assert {line.time for line in read(FileForm.SLURM_JOB, reports.SCONTROL)} == {"2026-05-01T09:05:23"}


def test_a_pod_shows_node_and_time_of_each_state() -> None:
    by_text = {line.text: line for line in read(FileForm.KUBERNETES, reports.POD)}
    killed, waits = by_text['"reason": "OOMKilled",'], by_text['"reason": "CrashLoopBackOff"']
    assert (killed.host, killed.time) == ("gpu-021", "2026-05-01T09:05:11Z")
    assert waits.time is None


def test_an_event_becomes_one_line_as_in_the_table() -> None:
    wanted = (
        "Warning   Evicted   pod/train-worker-0   The node was low on resource: memory. Threshold quantity: 100Mi, "
        "available: 80Mi."
    )
    folded = reports.EVENTS_YAML.replace("memory. Threshold", "memory.\n    Threshold")
    as_json = json.dumps(
        {
            "apiVersion": "v1",
            "items": [_event("Scheduled", "Normal", "to gpu-021"), _event("Evicted", "Warning", "low")],
        },
        indent=4,
    )
    for text in (reports.EVENTS_YAML, folded):
        (line,) = read(FileForm.KUBERNETES, text)
        assert (line.text, line.time, "message:" in line.raw) == (wanted, "2026-05-01T09:05:11Z", True)
    assert form_of(as_json.encode()) is FileForm.KUBERNETES
    assert statements(FileForm.KUBERNETES, as_json) == [
        "Normal   Scheduled   pod/a   to gpu-021",
        "Warning   Evicted   pod/a   low",
    ]
    assert statements(FileForm.KUBERNETES, " ".join(as_json.split())) == statements(FileForm.KUBERNETES, as_json)


def _event(reason: str, kind: str, message: str) -> dict[str, object]:
    subject = {"apiVersion": "v1", "kind": "Pod", "name": "a"}
    return {
        "apiVersion": "v1",
        "involvedObject": subject,
        "kind": "Event",
        "message": message,
        "reason": reason,
        "type": kind,
    }


def test_a_pod_in_one_line_is_read_too() -> None:
    short = " ".join(reports.POD.split())
    assert form_of(short.encode()) is FileForm.KUBERNETES
    assert '"reason": "OOMKilled",' in statements(FileForm.KUBERNETES, short)


def test_metrics_give_what_is_not_zero() -> None:
    lines = read(FileForm.METRICS, reports.METRICS)
    assert [line.text for line in lines] == [
        "DCGM_FI_DEV_XID_ERRORS: Xid (PCI:00000000:3B:00.0): 79, GPU lost",
        "metrics: GPU 3: DCGM_FI_DEV_GPU_TEMP = 41",
    ]
    assert {line.host for line in lines} == {"gpu-021"}


def test_gdb_shows_where_the_main_thread_stood() -> None:
    stack = read_stack(reports.GDB.format(function="c10d::Work::wait").encode(), None, 1, 3)
    assert [frame.function for frame in stack.frames] == ["c10d::Work::wait", "fit", "main"]
    assert doing(stack) == "c10d::Work::wait (libtorch_cpu.so), called by fit (train.py:30)"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (FileForm.DCGM, '{"DCGM Diagnostic": {' + '"a": {' * 100_000),
        (FileForm.DCGM, '{"DCGM Diagnostic": ' + "[" * 300_000),
        (FileForm.KUBERNETES, '{"apiVersion": "v1", "kind": "Pod", "a": ' + "[" * 600_000),
        (FileForm.KUBERNETES, '{"apiVersion": "v1", "kind": "Pod", "status"'),
    ],
)
def test_broken_json_is_read_line_by_line_with_a_warning(form: FileForm, text: str) -> None:
    lines, warning = lines_of(form, text.encode(), Position(1, 0), None, None)
    assert warning is not None
    assert warning.startswith(str(form))
    assert lines[0].raw == text[: len(lines[0].raw)]


@pytest.mark.slow
@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize(
    "text",
    ["", "\n" * 1000, "|" * 100_000, "GPU 3 " * 50_000, "a{" * 50_000, "JobID|State\n" + "|" * 100_000,
     '{"body": {"GPU": {"children": []}}, "header": 3, "DCGM Diagnostic": {"test_categories": [3, {"tests": {}}]}}',
     "CA 'x'\n" + "\tState: Down\n" * 1000, "\0\xff\ufffd" * 1000,
     # What is joined, line by line, would take minutes if there were no limit.
     "CA 'x'\n\tState: Down\n" + "\tRate: 1\n" * 80_000, "NVSMI LOG=\n" + "".join(" " * at + "a\n" for at in range(3000)),
     "| Diagnostic |\n| Warning | a |\n" + "| | b |\n" * 80_000,
     "apiVersion: v1\nkind: Event\nmessage: a\n" + "  b\n" * 80_000],
)  # fmt: skip
def test_no_text_breaks_a_reader(form: FileForm, text: str) -> None:
    lines_of(form, text.encode("utf-8", "surrogatepass"), Position(1, 0), None, None)


@pytest.mark.parametrize(
    ("name", "host"),
    [("dmesg.gpu-021.txt", "gpu-021"), ("a/nvidia-smi-q.ip-10-0-0-3.txt", "ip-10-0-0-3"), ("dmesg.txt", None),
     ("dmesg.before.txt", None), ("report.2026.txt", None)],
)  # fmt: skip
def test_the_host_is_in_the_name(name: str, host: str | None) -> None:
    assert host_in_name(FileForm.KERNEL_LOG, name) == host
    assert host_in_name(FileForm.SLURM_JOB, name) is None


@pytest.mark.parametrize(
    ("text", "where"), [(reports.IBDIAGNET_NAMED, "gpu-021 mlx5_2/U1/P1"), (reports.IBDIAGNET_1, "gpu-021/U1/P1")]
)
def test_ibdiagnet_names_the_host_of_a_port(text: str, where: str) -> None:
    (first, *_) = read(FileForm.INFINIBAND, text)
    assert first.text.startswith(
        f'ibdiagnet: {where} - "link_down_counter" increased during the run (difference value=3'
    )
    assert first.host == "gpu-021"


def test_the_stages_of_ibdiagnet_1_that_found_errors_are_reported() -> None:
    assert statements(FileForm.INFINIBAND, reports.IBDIAGNET_1)[1:] == ["ibdiagnet: Link State Active Check: 2 errors"]


@pytest.mark.parametrize(
    ("text", "wanted", "number"),
    [
        (reports.SACCT_JSON, "sacct: JobID=4711 JobName=train State=TIMEOUT Reason=TimeLimit ExitCode=0:15 NodeList=gpu-[021-022]", 4),
        (reports.SCONTROL_JSON, "sacct: JobID=4711 JobName=train State=NODE_FAIL Reason=NodeDown ExitCode=1:0 NodeList=gpu-021", 3),
    ],
)  # fmt: skip
def test_a_job_of_slurm_s_json_is_a_line(text: str, wanted: str, number: int) -> None:
    (line,) = read(FileForm.SLURM_JOB, text)
    assert (line.text, line.number, line.time) == (wanted, number, "2026-05-01T09:05:11Z")


@pytest.mark.parametrize("text", ['{"jobs": [{"job_id": 1, "exit_code": ', '{"jobs": ' + "[" * 600_000])
def test_json_of_slurm_that_is_none_is_read_line_by_line(text: str) -> None:
    _, warning = lines_of(FileForm.SLURM_JOB, text.encode(), Position(1, 0), None, None)
    assert warning is not None
    assert warning.endswith("so read line by line")


def test_the_host_of_an_xid_is_not_the_one_that_reports_it() -> None:
    said_of_it = (
        "Xid 79 detected 1 time on host gpu-021.example.org. For the recommended response, see https://docs.nvidia.com"
    )
    (line,) = read(FileForm.NCCL_DIAGNOSTICS, reports.NCCL_DIAGNOSTICS.format(said=said_of_it))
    assert (line.host, line.text) == ("gpu-021.example.org", f"NCCL DIAG [INFO] {said_of_it}")


@pytest.mark.parametrize(
    "table",
    [
        "State|ExitCode|JobID|End\nTIMEOUT|0:0|4711|2026-05-01T09:05:23\nCANCELLED|0:15|4711.batch|2026-05-01T09:05:23\n",
        "       JobID      State ExitCode                 End \n------------ ---------- -------- ------------------- \n"
        "4711            TIMEOUT      0:0 2026-05-01T09:05:23 \n4711.batch    CANCELLED     0:15 2026-05-01T09:05:23 \n",
    ],
)
def test_sacct_says_the_same_in_any_order_and_in_columns(table: str) -> None:
    assert form_of(table.encode()) is FileForm.SLURM_JOB
    (line,) = read(FileForm.SLURM_JOB, table)
    assert (line.time, set(line.text.split())) == (
        "2026-05-01T09:05:23",
        {"sacct:", "JobID=4711", "State=TIMEOUT", "ExitCode=0:0", "End=2026-05-01T09:05:23"},
    )


def test_an_event_of_the_newer_api_is_reported_as_the_older_one() -> None:
    event = """{
    "apiVersion": "events.k8s.io/v1",
    "deprecatedLastTimestamp": "2026-05-01T09:05:11Z",
    "kind": "Event",
    "note": "The node was low on resource: memory.",
    "reason": "Evicted",
    "regarding": {
        "kind": "Pod",
        "name": "train-worker-0"
    },
    "type": "Warning"
}
"""
    (line,) = read(FileForm.KUBERNETES, event)
    assert line.text == "Warning   Evicted   pod/train-worker-0   The node was low on resource: memory."
    assert line.time == "2026-05-01T09:05:11Z"
