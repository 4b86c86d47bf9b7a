"""nvidia-smi: its table, and the tree of `nvidia-smi -q`; each value with the GPU and the section that it stands in."""

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
_DEEPEST = 8  # sections inside one another
_NOTHING = frozenset(
    {"N/A", "None", "No", "0", "Not Active", "Enabled", "Disabled"}
)  # values that say nothing is wrong


def lines(text: str) -> Iterator[ReportLine]:
    """-> `nvidia-smi: GPU 00000000:3B:00.0: Remapped Rows: Pending : Yes`, and what stands outside of the tree or table
    as it is."""
    yield from _tree(text) if "NVSMI LOG=" in text[:200] else _table(text)


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
        if value is None and len(sections) < _DEEPEST:
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
