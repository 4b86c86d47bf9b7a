"""All readers of reports, by the form of the file. Turns the bytes of a report into lines of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType

from torchtriage.domain.host import host_name
from torchtriage.domain.line import Line, Position
from torchtriage.evidence.reports import dcgm, infiniband, kubernetes, metrics, nccl_diagnostics, nvidia_smi, slurm_job
from torchtriage.evidence.reports.report_line import ReportLine
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.file_types import FileForm
from torchtriage.reading.record_lines import MAX_TEXT_LENGTH
from torchtriage.reading.whole_files import NotRead

MAX_BYTES = 8 << 20  # bytes of a report; larger files are read as logs
_MAX_LINES = 40_000  # statements of one file; `nvidia-smi -q` prints about 40 per GPU


# dmesg.gpu-021.txt, nvidia-smi-q.gpu-021.txt
_HOST_IN_NAME = lazy_regex(r"\.([A-Za-z][\w-]{0,60}\d[\w-]{0,60})\.(?:txt|log|json|out)$")
_OF_NO_HOST = (FileForm.SLURM_JOB, FileForm.KUBERNETES, FileForm.NCCL_DIAGNOSTICS)


def host_in_name(form: FileForm, name: str) -> str | None:
    """Returns the host of a report if it is in the file's name, else None."""
    found = None if form in _OF_NO_HOST else _HOST_IN_NAME.search(name)
    return found[1] if found else None


def _plain_lines(text: str) -> Iterator[ReportLine]:
    yield from (ReportLine(number, line.rstrip()) for number, line in enumerate(text.split("\n"), 1))


READERS: Mapping[FileForm, Callable[[str], Iterator[ReportLine]]] = MappingProxyType(
    {
        FileForm.NVIDIA_SMI: nvidia_smi.lines,
        FileForm.DCGM: dcgm.lines,
        FileForm.INFINIBAND: infiniband.lines,
        FileForm.SLURM_JOB: slurm_job.lines,
        FileForm.KUBERNETES: kubernetes.lines,
        FileForm.METRICS: metrics.lines,
        FileForm.NCCL_DIAGNOSTICS: nccl_diagnostics.lines,
        FileForm.NATIVE_STACKS: _plain_lines,  # for the debugger's messages before the stacks
    }
)


def lines_of(
    form: FileForm, data: bytes, above: Position, file: str | None, host: str | None, first: int = 1
) -> tuple[list[Line], str | None]:
    """Returns the statements of a report, one line each. If the report cannot be parsed, returns its own lines and a
    warning. `raw` of a line is the file's own text. `above` is the position before the first line, `host` is from the
    file's name, `first` is the number of the first line in the file."""
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    own = text.split("\n")
    made: list[Line] = []
    warning = None
    try:
        every = list(islice(READERS[form](text), _MAX_LINES + 1))
    except NotRead as reason:
        every, warning = list(islice(_plain_lines(text), _MAX_LINES)), f"{form}: {reason}, so read line by line"
    every = every or [ReportLine(1, f"{form}: nothing to report")]
    if len(every) > _MAX_LINES:
        warning = f"{form}: only its first {_MAX_LINES:,} statements were read"
    for statement in every[:_MAX_LINES]:
        raw = own[statement.number - 1][:MAX_TEXT_LENGTH]
        place = host_name(statement.host) or host
        made.append(
            Line(
                statement.number + first - 1,
                raw,
                statement.text[:MAX_TEXT_LENGTH],
                above.down(len(made) + 1),
                file,
                host=place,
                time=statement.time,
            )
        )
    return made, warning
