"""Finds the line number of a place in an entry's YAML."""

from __future__ import annotations

from functools import lru_cache

import yaml

Path = tuple[int | str, ...]
_Plain = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(_Plain):  # type: ignore[misc, valid-type]
    """A YAML loader that rejects a key that appears twice in a mapping. PyYAML would silently drop the first one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value} appears twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return dict(super().construct_mapping(node, deep))


def line_of(source: bytes, path: Path) -> int:
    """Returns the line number, from 1, of the deepest node on `path` that the file has."""
    node = _composed(source)
    for part in path:
        if isinstance(node, yaml.MappingNode):
            found = next((value for key, value in node.value if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = node.value[part]
        else:
            found = None
        if found is None:
            break
        node = found
    return int(node.start_mark.line) + 1 if node is not None else 1


@lru_cache(maxsize=4)  # a file with one problem often has more
def _composed(source: bytes) -> yaml.Node | None:
    return yaml.compose(source, Loader=Loader)
