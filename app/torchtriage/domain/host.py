"""Checks whether a text is the name of a host."""

from __future__ import annotations

from collections.abc import Iterable

from torchtriage.lazy_regex import lazy_regex

# RFC 1123's letters, underscores, which clusters use too, and IPv6 addresses; at most 253 characters, as DNS has it.
# Python's \w would take any alphabet.
_NAME = lazy_regex(r"(?!.{254})(?:[A-Za-z0-9_]|::)[A-Za-z0-9_.:-]{0,252}")


def host_name(text: str | None) -> str | None:
    """Returns `text` if it is a host's name or address, else None. It is never shortened, because a part of a name
    belongs to another host."""
    return text if text is not None and _NAME.fullmatch(text) else None


def exclusion(hosts: Iterable[object]) -> str:
    """Returns the option of sbatch and srun that leaves these hosts out, or an empty text if none of them has the name
    of a host."""
    names = [host for host in hosts if isinstance(host, str) and host_name(host)]
    return f"--exclude={','.join(names)}" if names else ""
