"""Whether a line starts a new launch: its text in, yes or no out."""

from __future__ import annotations

from torchtriage.lazy_regex import lazy_regex

# Literals of which the line that begins a launch holds one.
BEGIN_WORDS = ("Setting OMP_NUM_THREADS", "nohup: ignoring", "Script started on", "[runner.py:", "[launch.py:")
_BEGIN = lazy_regex(
    r"Setting OMP_NUM_THREADS environment variable for each process|nohup: ignoring input|^Script started on "
    r"|\[runner\.py:\d+:main\] cmd = |\[launch\.py:\d+:main\] WORLD INFO DICT"
)


# Of these the ones that nothing but a new launch prints, whatever became of the one above.
_BEGINS_ANEW = lazy_regex(r"nohup: ignoring input|^Script started on ")


def begins_anew(text: str) -> bool:
    """-> whether a launch begins with this line even where the one above is not seen to end."""
    return bool(_BEGINS_ANEW.search(text[:400]))


def begins(text: str) -> bool:
    """-> whether a launch begins with this line."""
    return bool(_BEGIN.search(text[:400]))
