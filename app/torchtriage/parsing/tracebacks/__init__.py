"""Python tracebacks: chained, grouped, boxed by rich, without a head, cut into one another by several ranks."""

from torchtriage.parsing.tracebacks.extractor import Tracebacks
from torchtriage.parsing.tracebacks.restored_frames import LeftOut

__all__ = ["LeftOut", "Tracebacks"]
