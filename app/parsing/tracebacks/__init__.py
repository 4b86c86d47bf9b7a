"""Python tracebacks: chained, grouped, boxed by rich, without a head, cut into one another by several ranks."""

from app.parsing.tracebacks.extractor import Tracebacks
from app.parsing.tracebacks.left_out import LeftOut

__all__ = ["LeftOut", "Tracebacks"]
