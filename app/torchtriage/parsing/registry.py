"""Lists all extractors, in the order in which they read a line.

To add one, write a class in its own file and add one line here. The prefilter, the scan of blocks and the reader of
runs take the words, anchors and bits of the extractors from this tuple.
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

# torchelastic's report comes first: it says which attempt a line belongs to, and which tracebacks it quotes.
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
