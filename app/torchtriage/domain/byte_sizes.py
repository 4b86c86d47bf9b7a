"""Numbers of bytes as text for people."""

from __future__ import annotations

_DECIMAL = ("kB", "MB", "GB", "TB")
_BINARY = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_MOST_UNITS = 10_000  # 16 MB is also 15625 KiB, but nobody says so


def size_text(count: int) -> str:
    """Formats a number of bytes in powers of 1000: 100000 gives `100 kB`."""
    value, unit = float(count), "B"
    for larger in _DECIMAL:
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{count} B" if unit == "B" else f"{value:.3g} {unit}"


def limit_text(count: int) -> str:
    """Formats a limit in bytes in the units that it was set in: 10485760 gives `10 MiB`, 1500000 `1.5 MB`."""
    for unit, size in _BINARY:
        if count >= size and count % size == 0 and count // size < _MOST_UNITS:
            return f"{count // size} {unit}"
    return size_text(count)
