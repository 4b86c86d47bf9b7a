"""Commands that drain hosts, ready to paste into a shell."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator

from torchtriage.domain.host import host_name
from torchtriage.lazy_regex import lazy_regex

_NUMBERED = lazy_regex(r"(.*?)(\d+)")


def commands(hosts: Iterable[str], scheduler: str | None = None) -> dict[str, str]:
    """Returns the commands by their program or option, the scheduler's own first. Empty if no host has a name that is
    safe to paste."""
    first = "kubectl" if scheduler == "kubernetes" else "scontrol"
    names = sorted(set(filter(host_name, hosts)))
    if not names:
        return {}
    folded = shlex.quote(hostlist(names))  # the brackets mean something to the shell, too
    by_scheduler = {
        "scontrol": f'scontrol update NodeName={folded} State=DRAIN Reason="hardware failures (torchtriage)"',
        "sbatch": f"--exclude={folded}",
        "kubectl": f"kubectl cordon {' '.join(names)}",
    }
    return {name: by_scheduler[name] for name in sorted(by_scheduler, key=lambda name: name != first)}


def hostlist(names: Iterable[str]) -> str:
    """Returns the names in Slurm's hostlist form: gpu-007, gpu-008 and gpu-010 become `gpu-[007-008,010]`."""
    numbered: dict[tuple[str, int], list[int]] = defaultdict(list)
    plain = []
    for name in names:
        found = _NUMBERED.fullmatch(name)
        if found:
            numbered[found[1], len(found[2])].append(int(found[2]))
        else:
            plain.append(name)
    folded = [
        prefix + (f"{numbers[0]:0{width}}" if len(numbers) == 1 else f"[{','.join(_ranges(sorted(numbers), width))}]")
        for (prefix, width), numbers in numbered.items()
    ]
    return ",".join([*folded, *plain])


def _ranges(numbers: list[int], width: int) -> Iterator[str]:
    first = last = numbers[0]
    for number in [*numbers[1:], None]:
        if number == last + 1:
            last = number
            continue
        yield f"{first:0{width}}" if first == last else f"{first:0{width}}-{last:0{width}}"
        first = last = number if number is not None else last
