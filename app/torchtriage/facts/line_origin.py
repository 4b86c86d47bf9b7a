"""Whether a launch begins with a line: its text in, yes or no out."""

from __future__ import annotations

import re

# Literals of which the line that begins a launch holds one.
BEGIN_WORDS = ("Setting OMP_NUM_THREADS", "nohup: ignoring", "Script started on", "[runner.py:", "[launch.py:")
_BEGIN = re.compile(
    r"Setting OMP_NUM_THREADS environment variable for each process|nohup: ignoring input|^Script started on "
    r"|\[runner\.py:\d+:main\] cmd = |\[launch\.py:\d+:main\] WORLD INFO DICT"
)


def begins(text: str) -> bool:
    """-> whether a launch begins with this line."""
    return bool(_BEGIN.search(text[:400]))
