"""torchtriage: finds what failed first in the log of a distributed training run, and says what to do about it."""

__version__ = "0.2.0"
