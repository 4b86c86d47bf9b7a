"""All extractors, in the order in which they read a line.

A new one is a class in a file of its own and one line here; the prefilter, the scan of blocks and the reading of runs
take its words, anchors and bit from this tuple.
"""

from __future__ import annotations

from torchtriage.parsing.collectives import Collectives
from torchtriage.parsing.device_errors import DeviceErrors
from torchtriage.parsing.extractor import Extractor
from torchtriage.parsing.horovod import Horovod
from torchtriage.parsing.nccl import Nccl
from torchtriage.parsing.process_exits import ProcessExits
from torchtriage.parsing.slurm import Slurm
from torchtriage.parsing.torchelastic import TorchElastic
from torchtriage.parsing.tracebacks import Tracebacks

Kinds = tuple[type[Extractor], ...]

# torchelastic's report comes first: it says to which attempt a line belongs, and which tracebacks are quoted in it.
EXTRACTORS: Kinds = (
    TorchElastic,
    Tracebacks,
    DeviceErrors,
    Collectives,
    Nccl,
    ProcessExits,
    Slurm,
    Horovod,
)
