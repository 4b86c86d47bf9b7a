"""torchtriage: finds what failed first in a distributed training log, and says what to do about it."""

__version__ = "0.2.0"
