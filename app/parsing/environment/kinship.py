"""Whether a line is of this field or of another program, and whether a launch begins with it."""

from __future__ import annotations

import re

from app.parsing.environment.signs import Sign

_BEGIN = re.compile(
    r"Setting OMP_NUM_THREADS environment variable for each process|nohup: ignoring input|^Script started on "
    r"|\[runner\.py:\d+:main\] cmd = |\[launch\.py:\d+:main\] WORLD INFO DICT"
)
FIELD = Sign(
    r"(?i)\btorch|\bcuda\b|nccl|gloo|\brank\b|\bgpus?\b|slurm|srun:|deepspeed|\bepoch\b|traceback \(|Signals\.|SIG[A-Z]{3,4}\b"
    r"|xid|k8s|kubelet|\bpod\b|megatron|transformers|\bmpi|dataloader|\bhccl|npu|exitcode|\.py\b"
)
# Programs whose logs are not this field's, by the forms that only they print.
FOREIGN = Sign(
    r"^\s+at [\w$.<>/]+\((?:[\w.]+(?::\d+)?|Native Method)\)|^\s+at [\w.<>`]+\(.{0,200}\) in .{1,200}:line \d+|\borg\.apache\.(?!spark)|\bnpm (?:ERR!|error|info|verb)|^\d+ (?:verbose|silly|info) "
    r"|^error\[E\d{4}\]|^\s+--> [\w/.-]+\.rs:\d+|^(?:LOG|STATEMENT|DETAIL|HINT):  |\bterraform\b|Terraform|^\d+\.\d+\.\d+\.\d+ - - \["
    r"|^goroutine \d+ \[|\bpanic: runtime error|\bnginx\b|\[maven|\bgradle\b"
    r"|\[\d+\](?: [\w@]+)? (?:LOG|ERROR|FATAL|PANIC|STATEMENT|DETAIL|HINT):  \S|^\d+:[MSCX] \d\d \w{3} \d{4} "  # PostgreSQL, Redis
    r"|^Unhandled exception\. System\.|^error: could not compile `|^ +Compiling [\w-]+ v\d"  # .NET, cargo
    # Builds in which no line speaks of this field: make and CMake around a compiler.
    r"|^\[ {0,2}\d+%\] (?:Building|Linking|Generating|Built target) |^make(?:\[\d+\])?: \*\*\* "
    r"|^-- (?:The C(?:XX)? compiler identification|Configuring incomplete)|^c\+\+: fatal error: Killed signal"
)


def begins(text: str) -> bool:
    """-> whether a launch begins with this line."""
    return bool(_BEGIN.search(text[:400]))
