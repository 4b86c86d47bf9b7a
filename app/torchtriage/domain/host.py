"""What a host can be called: any text in, a host's name or nothing out."""

from __future__ import annotations

from collections.abc import Iterable

from torchtriage.lazy_regex import lazy_regex

# RFC 1123's letters, underscores, which clusters use too, and IPv6 addresses; at most 253 characters, as DNS has it.
# Python's \w would take any alphabet.
_NAME = lazy_regex(r"(?!.{254})(?:[A-Za-z0-9_]|::)[A-Za-z0-9_.:-]{0,252}")


def host_name(text: str | None) -> str | None:
    """-> `text` where it is a host's name or address, else None. It is never shortened: part of a name is another
    host's."""
    return text if text is not None and _NAME.fullmatch(text) else None


def exclusion(hosts: Iterable[object]) -> str:
    """-> the option of sbatch and srun that leaves these hosts out; empty where none of them has a host's name."""
    names = [host for host in hosts if isinstance(host, str) and host_name(host)]
    return f"--exclude={','.join(names)}" if names else ""
