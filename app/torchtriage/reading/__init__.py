"""Reads the log of a run: sources, blocks of bytes, the scan, windows around hits, and lines without their prefixes."""
