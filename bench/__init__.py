"""Benchmarks: scripts that create logs and print tables."""
