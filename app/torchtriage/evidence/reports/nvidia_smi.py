"""Reads the table of nvidia-smi and the tree of `nvidia-smi -q`, also as XML. Yields each value with its GPU and
section."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.evidence.reports.report_line import ReportLine
from torchtriage.lazy_regex import lazy_regex

# GPU 00000000:3B:00.0
_GPU = lazy_regex(r"GPU ([\dA-Fa-f]{4,8}:[\dA-Fa-f]{2}:[\dA-Fa-f]{2}\.\d)\s*$")
#             DRAM Uncorrectable            : 4
_VALUE = lazy_regex(r"( *)(\S.{0,60}?) +: (.{1,200}?)\s*$")
# |   3  NVIDIA H100 80GB HBM3          On  |   00000000:3B:00.0 Off |                    4 |
_ROW = lazy_regex(r"\| +(\d{1,3}) .*\| +([\dA-Fa-f]{4,8}:[\dA-Fa-f]{2}:[\dA-Fa-f]{2}\.\d)[^|]*\| *([^|]*?) *\|")
_PROCESSES = "| Processes:"
# <gpu id="00000000:3B:00.0"> · <remapped_rows> · </remapped_rows> · <remapped_row_pending>Yes</remapped_row_pending>
_XML_GPU = lazy_regex(r'\s*<gpu id="([\dA-Fa-f:.]{7,20})">')
_XML_TAG = lazy_regex(r"\s*<(/?)(\w{1,60})(?: [^>\n]{0,200})?(/?)>(?:([^<\n]{0,200})</\w{1,60}>)?\s*$")
# XML names that differ from the lower-case names of the tree.
_XML_NAMES = {
    "gpu_recovery_action": "GPU Recovery Action", "gpu_reset_status": "GPU Reset Status", "ecc_errors": "ECC Errors",
    "dram_uncorrectable": "DRAM Uncorrectable", "sram_uncorrectable": "SRAM Uncorrectable",
    "sram_uncorrectable_parity": "SRAM Uncorrectable Parity", "sram_uncorrectable_secded": "SRAM Uncorrectable SEC-DED",
    "sram_threshold_exceeded": "SRAM Threshold Exceeded", "remapped_row_pending": "Pending",
    "remapped_row_failure": "Remapping Failure Occurred", "remapped_row_unc": "Uncorrectable Error",
    "remapped_row_corr": "Correctable Error", "pending_blacklist": "Pending Page Blacklist",
    "pending_retirement": "Pending", "drain_and_reset_recommended": "Drain and Reset Recommended",
}  # fmt: skip
_MAX_DEPTH = 8  # nested sections
_NOTHING = frozenset({"N/A", "None", "No", "0", "Not Active", "Enabled", "Disabled"})  # values that report no problem


def lines(text: str) -> Iterator[ReportLine]:
    """Yields `nvidia-smi: GPU 00000000:3B:00.0: Remapped Rows: Pending : Yes`. Yields lines outside the tree or table
    unchanged."""
    if text.lstrip()[:1] == "<":
        yield from _xml(text)
    else:
        yield from _tree(text) if "NVSMI LOG=" in text[:200] else _table(text)


def _xml(text: str) -> Iterator[ReportLine]:
    """Yields the values of GPUs with the names of the tree. The program prints one element per line."""
    gpu = ""
    sections: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if found := _XML_GPU.match(line):
            gpu, sections = f"GPU {found[1]}: ", []
        elif (tag := _XML_TAG.match(line)) and gpu and not tag[3]:
            if tag[1]:
                del sections[-1:]
            elif tag[4] is None:
                sections = [*sections[:_MAX_DEPTH], _XML_NAMES.get(tag[2]) or tag[2].replace("_", " ").title()]
            elif (value := tag[4].strip()) and value not in _NOTHING:
                path = "".join(f"{name}: " for name in sections)
                name = _XML_NAMES.get(tag[2]) or tag[2].replace("_", " ").title()
                yield ReportLine(number, f"nvidia-smi: {gpu}{path}{name} : {value}")


def _tree(text: str) -> Iterator[ReportLine]:
    gpu = ""
    sections: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if found := _GPU.match(line):
            gpu, sections = f"GPU {found[1]}: ", []
            continue
        depth = len(line) - len(line.lstrip(" "))
        value = _VALUE.match(line)
        if depth == 0:
            if line.strip():
                yield ReportLine(number, line.rstrip())
            continue
        sections = [each for each in sections if each[0] < depth]
        if value is None and len(sections) < _MAX_DEPTH:
            sections.append((depth, line.strip()[:60]))
        elif gpu and value is not None and value[3] not in _NOTHING:
            path = "".join(f"{name}: " for _, name in sections)
            yield ReportLine(number, f"nvidia-smi: {gpu}{path}{value[2]} : {value[3]}")


def _table(text: str) -> Iterator[ReportLine]:
    gpu = ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(_PROCESSES):
            return
        if row := _ROW.match(line):
            gpu = f"GPU {row[2]}"
            yield ReportLine(number, f"nvidia-smi: {gpu}: Volatile Uncorr. ECC : {row[3]}")
        elif line.startswith("+"):
            gpu = ""
        elif gpu and line.startswith("|"):
            cells = (" ".join(cell.split()) for cell in line.strip("| \r").split("|"))
            yield ReportLine(number, f"nvidia-smi: {gpu}: {' | '.join(cells)}")
        elif line.strip() and not line.startswith("|"):
            yield ReportLine(number, line.rstrip())
