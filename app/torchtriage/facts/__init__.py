"""What a log says about the run itself: launcher, world size, hosts, versions, steps, phase, how it ended."""

from torchtriage.facts.collector import Environment

__all__ = ["Environment"]
