"""Finds the parts of a wait graph that wait for no other part."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def sinks(edges: Mapping[Node, Iterable[Node]]) -> list[frozenset[Node]]:
    """Returns the sets of nodes that reach each other and nothing else, the smallest first. Most have one node. `edges`
    maps each node to the nodes that it points to."""
    group_of: dict[Node, int] = {}
    groups: list[frozenset[Node]] = []
    for group in _components(edges):
        for node in group:
            group_of[node] = len(groups)
        groups.append(group)
    leaving = {
        group_of[node] for node, others in edges.items() for other in others if group_of[other] != group_of[node]
    }
    return sorted((group for at, group in enumerate(groups) if at not in leaving), key=len)


def _components(edges: Mapping[Node, Iterable[Node]]) -> list[frozenset[Node]]:
    """Returns the strongly connected components by Tarjan's algorithm. It is iterative, because a chain can be as long
    as there are ranks."""
    found: list[frozenset[Node]] = []
    index: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    for start in edges:
        if start in index:
            continue
        work = [(start, iter(edges.get(start, ())))]
        index[start] = lowest[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, others = work[-1]
            other = next(others, None)
            if other is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == index[node]:
                    found.append(_popped(node, stack, on_stack))
            elif other not in index:
                index[other] = lowest[other] = len(index)
                stack.append(other)
                on_stack.add(other)
                work.append((other, iter(edges.get(other, ()))))
            elif other in on_stack:
                lowest[node] = min(lowest[node], index[other])
    return found


def _popped(node: Node, stack: list[Node], on_stack: set[Node]) -> frozenset[Node]:
    at = len(stack) - 1
    while stack[at] != node:
        at -= 1
    group = frozenset(stack[at:])
    del stack[at:]
    on_stack.difference_update(group)
    return group
