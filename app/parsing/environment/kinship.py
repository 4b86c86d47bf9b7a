"""Whether a line is of this field or of another program, and whether a launch begins with it."""

from __future__ import annotations

import re

_BEGIN = re.compile(
    r"Setting OMP_NUM_THREADS environment variable for each process|nohup: ignoring input|^Script started on "
    r"|\[runner\.py:\d+:main\] cmd = |\[launch\.py:\d+:main\] WORLD INFO DICT"
)
FIELD = re.compile(
    r"(?i)\btorch|\bcuda\b|nccl|gloo|\brank\b|\bgpus?\b|slurm|srun:|deepspeed|\bepoch\b|traceback \(|Signals\.|SIG[A-Z]{3,4}\b"
    r"|xid|k8s|kubelet|\bpod\b|megatron|transformers|\bmpi|dataloader|\bhccl|npu|exitcode|\.py\b"
)
# Programs whose logs are not this field's, by the forms that only they print.
FOREIGN = re.compile(
    r"^\s+at [\w$.<>]+\([\w.]+(?::\d+)?\)|\borg\.apache\.(?!spark)|\bnpm (?:ERR!|error|info|verb)|^\d+ (?:verbose|silly|info) "
    r"|^error\[E\d{4}\]|^\s+--> [\w/.-]+\.rs:\d+|^(?:LOG|STATEMENT|DETAIL|HINT):  |\bterraform\b|Terraform|^\d+\.\d+\.\d+\.\d+ - - \["
    r"|^goroutine \d+ \[|\bpanic: runtime error|\bnginx\b|\[maven|\bgradle\b"
)


def begins(text: str) -> bool:
    """-> whether a launch begins with this line."""
    return bool(_BEGIN.search(text[:400]))
