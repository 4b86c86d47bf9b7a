"""Arranges the cascades of a verdict as a tree: what followed from what."""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.domain.verdict import Cascade, Verdict

_MAX_COUNT = 60  # branches that a page shows


@dataclass(frozen=True, slots=True)
class Branch:
    """An event and its consequences."""

    cascade: Cascade
    then: tuple[Branch, ...] = ()


def cascade_tree(verdict: Verdict) -> tuple[Branch, ...]:
    """Returns the consequences of the root cause, each with its own consequences. A cascade whose cause is not in the
    verdict is placed below the root cause."""
    cascades = verdict.cascades[:_MAX_COUNT]
    root = verdict.root_cause.entry if verdict.root_cause else None
    known = {cascade.entry for cascade in cascades if cascade.entry}
    below: dict[str | None, list[Cascade]] = {}
    for cascade in cascades:
        cause = cascade.because_of
        behind = cause if cause in known and cause not in (root, cascade.entry) else None
        below.setdefault(behind, []).append(cascade)
    placed: set[int] = set()

    def grown(cause: str | None) -> tuple[Branch, ...]:
        branches = []
        for cascade in below.get(cause, ()):
            if id(cascade) not in placed:
                placed.add(id(cascade))
                branches.append(Branch(cascade, grown(cascade.entry) if cascade.entry else ()))
        return tuple(branches)

    tree = grown(None)
    # Two that explain one another hang on no branch.
    return tree + tuple(Branch(cascade) for cascade in cascades if id(cascade) not in placed)
