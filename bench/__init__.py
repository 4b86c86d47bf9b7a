"""Benchmarks: scripts that make their own logs and print tables."""
