"""Python tracebacks: chained, grouped, boxed by rich, without a head, cut into one another by several ranks."""

from torchtriage.parsing.tracebacks.extractor import Tracebacks

__all__ = ["Tracebacks"]
