"""Extracts facts about the run from its lines: launcher, world size, hosts, versions, steps, phase, and how it
ended."""

from torchtriage.facts.collector import CollectedFacts

__all__ = ["CollectedFacts"]
