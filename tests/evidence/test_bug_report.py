"""What nvidia-bug-report.sh writes: taken apart into the kernel's log and nvidia-smi's tree, through the whole engine."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.evidence import reports
from tests.evidence.test_reports import LOST, NCCL, STEPS, root_of
from torchtriage.domain.evidence import Source
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.evidence.reports import bug_report
from torchtriage.evidence.reports.bug_report import BugReport
from torchtriage.reading.file_types import FileForm, form_of
from torchtriage.reading.sources import open_path

BOOT = "[    0.000000] Linux version 5.15.0-105-generic (buildd@lcy02) #115-Ubuntu SMP"
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the bus."
SINCE_BOOT = f"[131912.440118] {XID}"
AT, BEFORE = "May  1 09:05:01 gpu-021 kernel: ", "Apr 29 09:05:01 gpu-021 kernel: "


def report(journal: str = "", dmesg: str = "", **smi: object) -> str:
    given = {"errors": 0, "pending": "No", "failed": "No"} | smi
    return reports.BUG_REPORT.format(journal=journal, dmesg="\n".join([BOOT, dmesg]), **given)


def triaged(engine: Engine, folder: Path, content: bytes, name: str = "nvidia-bug-report.log") -> Verdict:
    (folder / "train.log").write_text("\n".join([*STEPS, *NCCL, *LOST]) + "\n")
    (folder / name).write_bytes(content)
    return engine.triage(open_path(folder))


def in_members(text: str) -> bytes:
    """Returns the report as the script writes it, with each section compressed separately."""
    sections = text.split("\n\n____")
    return b"".join(
        gzip.compress((part if at == 0 else "\n\n____" + part).encode()) for at, part in enumerate(sections)
    )


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    ("parts", "entry", "line"),
    [
        ({"dmesg": SINCE_BOOT}, "xid.79", SINCE_BOOT),
        ({"journal": AT + XID}, "xid.79", AT + XID),
        ({"pending": "Yes"}, "cuda.ecc", "Pending                           : Yes"),
    ],
)
def test_each_section_is_read_by_the_reader_of_its_form(
    engine: Engine, tmp_path: Path, parts: dict[str, str], entry: str, line: str, zipped: bool
) -> None:
    text = report(**parts)
    name = "nvidia-bug-report.log.gz" if zipped else "nvidia-bug-report.log"
    verdict = triaged(engine, tmp_path, in_members(text) if zipped else text.encode(), name)
    root = root_of(verdict)
    assert (root.entry, root.host) == (entry, "gpu-021")
    assert verdict.run.sources[0] == Source("nvidia-bug-report.log", "NVIDIA bug report")
    (first, *_) = root.evidence
    assert (first.text.strip(), text.split("\n")[first.line - 1].strip()) == (line, line)


def test_a_report_of_a_host_without_a_fault_is_not_a_cause(engine: Engine, tmp_path: Path) -> None:
    verdict = triaged(engine, tmp_path, report().encode())
    assert str(root_of(verdict).entry).startswith("nccl.")
    assert verdict.warnings == ()


def test_a_message_that_the_systems_log_dates_is_not_a_undated_one_of_dmesg(engine: Engine, tmp_path: Path) -> None:
    verdict = triaged(engine, tmp_path, report(journal=BEFORE + XID, dmesg=SINCE_BOOT).encode())
    assert str(root_of(verdict).entry).startswith("nccl.")  # dmesg alone would count as of this time


@pytest.mark.parametrize("heading", ["dmesg:\n", "Scanning kernel log files for NVIDIA kernel messages:\n", "*** /var/log/dmesg"])  # fmt: skip
def test_a_piece_of_a_report_is_one(engine: Engine, tmp_path: Path, heading: str) -> None:
    piece = f"{'_' * 44}\n\n{heading}\n{BOOT}\n{SINCE_BOOT}\n"
    assert form_of(piece.encode()) is FileForm.BUG_REPORT
    assert root_of(triaged(engine, tmp_path, piece.encode())).entry == "xid.79"


@pytest.mark.parametrize(
    "text", ["_" * 44 + "\n\nepoch 3\n", "_" * 44 + "\n\nModel summary\ndmesg:\n", "*** /etc/issue\n"]
)
def test_other_lines_of_underscores_are_a_logs(text: str) -> None:
    assert form_of(text.encode()) is FileForm.LOG


def test_what_is_hostile_in_a_report_costs_a_warning_at_most(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bug_report, "MAX_BYTES", 6 << 20)
    begin, end = (
        report(dmesg=SINCE_BOOT).encode().split(b"____________________________________________\n\n*** /proc", 1)
    )
    binary = bytes(range(256)) * 4096 + b"a" * (5 << 20)  # a line of its own, longer than any that is kept
    verdict = triaged(engine, tmp_path, begin + binary + b"\n*** /proc" + end)
    assert root_of(verdict).entry == "xid.79"
    assert verdict.warnings == ("nvidia-bug-report.log: NVIDIA bug report: only its first 256 MB were read",)


def test_numbers_hold_after_a_line_that_is_cut() -> None:
    text = b"\n".join([b"_" * 44, b"a" * (9 << 20), b"", SINCE_BOOT.encode(), b"b", b"====NVSMI LOG====", b"c"])
    read = BugReport(iter([text[at : at + 65536] for at in range(0, len(text), 65536)]), "report")
    assert b"".join(read.kernel_lines()).split(b"\n")[3] == SINCE_BOOT.encode()
    assert (read.smi_from, read.smi) == (6, b"====NVSMI LOG====\nc")


def test_what_nvidia_smi_printed_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bug_report, "_MAX_SMI", 1000)
    read = BugReport(iter([b"====NVSMI LOG====\n" + b"    a : b\n" * 10_000]), "report")
    assert b"".join(read.kernel_lines()).strip() == b""
    assert len(read.smi) <= 1000 + len(b"    a : b\n")
