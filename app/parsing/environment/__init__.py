"""What a log tells of the run itself: launcher, world size, hosts, versions, steps, phase, how it ended."""

from app.parsing.environment.collector import Environment

__all__ = ["Environment"]
