"""Strips the prefixes of a line, and returns their values: rank, local rank, host and time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.custom_labels import CLOCK, custom_label, writer_in
from torchtriage.reading.prefixes.known import (
    FIELDS,
    HOSTS,
    LOCAL_RANKS,
    NODES,
    PASSED_ON,
    RANKS,
    STREAMS,
    prefix_of,
)
from torchtriage.reading.prefixes.learned import FORMS, OF_HOSTS, Labels, learned_label
from torchtriage.reading.prefixes.margins_and_markup import edges_of, without_edges
from torchtriage.reading.prefixes.paths import FileOrigins
from torchtriage.reading.prefixes.times import iso, time_in, with_year

ANSI = lazy_regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]_P^][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-B0-2]|[=>])")
OWN_RANK = lazy_regex(
    r"(?i)^(?:\[(?!rank)[^\]\n]{0,80}\][ :]*){1,6}\[?rank[ =:_]{0,2}(\d{1,6})\b"  # [time] [level] [file] [Rank 3]
    r"|^\W{0,3}(?:[\w:.,/ -]{0,60}[\[(| ])?rank[ =:_]?(\d{1,6})\b"
)
_NCCL = lazy_regex(r"([A-Za-z][\w.-]*):\d+:\d+ \[(?:\d+)\] NCCL ")
_LABEL = lazy_regex(r'(\w+)="([^"]*)"')  # of Loki
_KEY = lazy_regex(r"(\w+)[=:]([\w.-]+)")
# After a line, Ray prints how many processes wrote it. The first time, it adds a hint.
_REPEATED = lazy_regex(r"\s*\[repeated \d{1,9}x across cluster\](?: \(Ray deduplicates logs [^\n]{0,400}\))?\s*$")
_NODE_LABELS = ("node_name", "kubernetes_node_name", "kubernetes_host", "node", "nodename", "hostname", "host",
                "instance")  # fmt: skip
_POD_LABELS = ("pod", "pod_name", "kubernetes_pod_name", "k8s_pod_name")
_MAX_ROUNDS = 4  # nested labels
_LEARNING = Labels(learning=True)


class PrefixValues(NamedTuple):
    """The values of a line's prefixes, and the remaining text."""

    text: str
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    time: str | None = None
    stream: str = ""
    pod: str | None = None
    node: int | None = None


UNKNOWN = PrefixValues("")
_NOTHING = UNKNOWN[1:]


def learn_labels(sample: Sequence[str]) -> Labels:
    """Returns the labels of nearly all of a file's first lines, including nested ones."""
    known = Labels(edges=edges_of(sample), learning=True)
    for _ in range(_MAX_ROUNDS):
        texts = [strip_prefixes(line, known).text for line in sample] if known != _LEARNING else sample
        if more := learned_label(texts):
            known = known._replace(forms=(*known.forms, more))
        elif known.custom is None and (more := custom_label(texts)):
            known = known._replace(custom=re.compile(more))
        else:
            break
    return known._replace(learning=False)


def may_be_passed_on(text: str) -> bool:
    """Returns whether a logger may have passed on a worker's line with its label."""
    return "]:" in text and PASSED_ON.match(text) is not None


def strip_prefixes(raw: str, known: Labels, outer: PrefixValues = UNKNOWN) -> PrefixValues:
    """Returns the origin of a line and its text without prefixes. `raw` is one line without its line end. `outer` is
    what is already known about it."""
    text = ANSI.sub("", raw) if "\x1b" in raw else raw
    if known.edges is not None:
        text = without_edges(text, known.edges)
    # There are many lines, and `tuple.__new__` takes a third of the time.
    origin = tuple.__new__(PrefixValues, (text, *_NOTHING)) if outer is UNKNOWN else outer._replace(text=text)
    left = list(known.forms) if known.forms else None
    custom = known.custom
    # The text that a logger puts before a worker's label is handled last, because a host name can be between them.
    while found := (
        (left and _take_label(origin, left))
        or _take_known(origin)
        or (custom and _take_custom(origin, custom))
        or ("]:" in origin.text and not known.learning and _take_passed_on(origin))
    ):
        origin = found
    return _with_own_words(origin)


def _with_own_words(origin: PrefixValues) -> PrefixValues:
    """Returns the origin with rank, host and time from the line's own text."""
    text = origin.text
    rank, host = origin.rank, origin.host
    if rank is None and ("ank" in text or "RANK" in text) and (own := OWN_RANK.match(text)):
        rank = int(own[1] or own[2])
    if host is None and "] NCCL " in text and (nccl := _NCCL.match(text)):
        host = nccl[1]
    time = origin.time
    if time is None or time[:1] == "-":
        inside = time_in(text) if text.count(":", 0, 120) > 1 else None  # like a clock time
        time = with_year(time, inside) if time else inside
    if rank == origin.rank and host == origin.host and time == origin.time:
        return origin
    return PrefixValues(text, rank, origin.local_rank, host, time, origin.stream, origin.pod, origin.node)


def _take_label(origin: PrefixValues, left: list[str]) -> PrefixValues | None:
    """Returns the origin without the first of the labels in `left`, which is removed from the list, or None."""
    for at, name in enumerate(left):
        found = FORMS[name].match(origin.text)
        if found is None or not found.end():
            continue
        del left[at]
        return _with_label(origin, found, name)
    return None


def _take_custom(origin: PrefixValues, form: re.Pattern[str]) -> PrefixValues | None:
    """Returns the origin without an unknown label, or None."""
    found = form.match(origin.text)
    if found is None or not found.end():  # a label of blanks may match an empty text
        return None
    label, text = found[0], origin.text[found.end() :]
    clock = CLOCK.search(label)
    if clock is not None:  # it is not part of the writer's name, and is not a task number
        origin = origin._replace(time=origin.time or time_in(label))
        label = CLOCK.sub("", label)
    for name, number in found.groupdict().items() if found.re.groupindex else ():
        label = label.replace(number, "", 1) if name.startswith("count") and number else label
    writer = writer_in(label)
    if writer is not None:
        return _with_label(origin, writer[1], writer[0])._replace(text=text)
    return origin._replace(text=text, stream=f"{origin.stream}{label.strip()}/")


def _with_label(origin: PrefixValues, found: re.Match[str], name: str) -> PrefixValues:
    """Returns the origin without the label that was found."""
    part = found.groupdict()
    task = part.get("task")
    rank, local, pod, time = part.get("rank") or task, part.get("local_rank"), part.get("pod"), part.get("time")
    if "file" in part or "line" in part:
        return _with_path(origin._replace(text=origin.text[found.end() :]), part.get("file"))
    writer = "" if time else pod or part.get("host") or part.get("stream") or f"r{rank or local}"
    return origin._replace(
        text=origin.text[found.end() :],
        rank=origin.rank if origin.rank is not None or rank is None else int(rank),
        local_rank=origin.local_rank if origin.local_rank is not None or local is None else int(local),
        host=(part.get("host") if name in OF_HOSTS else None) or origin.host or part.get("host") or pod,
        time=origin.time or (iso(time) if time else time_in(found[0]) if name == "logged" else None),
        pod=origin.pod or pod,
        node=int(task) if task else origin.node,
        stream=f"{origin.stream}{writer}/" if writer else origin.stream,
    )


def _with_path(origin: PrefixValues, name: str | None) -> PrefixValues:
    """Returns the origin with the values of the path that grep printed before a line."""
    if name is None:
        return origin
    where = FileOrigins().of(name, several=True)
    return origin._replace(
        rank=where.rank if origin.rank is None else origin.rank,
        local_rank=where.local_rank if origin.local_rank is None else origin.local_rank,
        host=origin.host or where.host,
        pod=origin.pod or where.pod,
        stream=f"{origin.stream}{name}/",
    )


def _take_known(origin: PrefixValues) -> PrefixValues | None:
    """Returns the origin without a known prefix, or None."""
    text = origin.text
    found = prefix_of(text)
    end = found.end() if found is not None else 0
    if found is None or not end:
        return None
    fields, text = FIELDS[found.lastgroup], text[end:]
    last, group = fields[-1] if fields else ("", "")
    if last == "torch_rank":
        rank = found[group]
        stream = f"{origin.stream}{rank}/"
        node = origin.node if origin.rank is None else None  # a task with a known rank need not be a node
        return PrefixValues(text, int(rank), origin.local_rank, origin.host, origin.time, stream, origin.pod, node)
    if last == "time":
        return origin._replace(text=text, time=_outer_clock(origin, iso(found[group])))
    return _with_fields(origin._replace(text=text), {name: found[group] for name, group in fields if found[group]})


def _take_passed_on(origin: PrefixValues) -> PrefixValues | None:
    """Returns the origin without the text that a logger put before the label of the worker whose line it passed on, or
    None."""
    found = PASSED_ON.match(origin.text)
    if found is None or not found.end():
        return None
    text = origin.text[found.end() :]
    return origin._replace(text=text, time=_outer_clock(origin, time_in(found[0])))


def _outer_clock(origin: PrefixValues, time: str | None) -> str | None:
    """Returns the time of a line that contains `time`. The outermost clock is used, because it is on every line."""
    return with_year(origin.time, time) if origin.time else time


def _with_fields(origin: PrefixValues, fields: dict[str, str]) -> PrefixValues:
    """Returns the origin with the values of a prefix, by their names in the table of known prefixes."""

    def first(names: frozenset[str]) -> str | None:
        return next((value for name, value in fields.items() if name in names), None)

    rank, local_rank, pod, host, node = first(RANKS), first(LOCAL_RANKS), fields.get("pod"), first(HOSTS), first(NODES)
    if "labels" in fields:
        labels = dict(_LABEL.findall(fields["labels"]))
        pod = next((labels[name] for name in _POD_LABELS if labels.get(name)), None)
        host = next((labels[name] for name in _NODE_LABELS if labels.get(name)), pod)
    elif "keys" in fields:
        keys = dict(_KEY.findall(fields["keys"]))
        rank, local_rank, node = (
            keys.get("rank") or keys.get("global_rank"),
            keys.get("local_rank"),
            keys.get("node_rank"),
        )
        host = keys.get("host") or keys.get("hostname")
    pid, time = fields.get("pid"), fields.get("time")
    actor = f"{fields.get('actor', '')} {pid}" if pid else None
    text = _REPEATED.sub("", origin.text) if pid and "x across cluster]" in origin.text else origin.text
    stream = first(STREAMS)
    streams = filter(None, (pod, stream if stream != pod else None, actor, rank, local_rank))
    # After torchrun's label of the local rank, the rank of an outer task is the node.
    outer_rank = None if "torchrun_local_rank" in fields and origin.node is not None else origin.rank
    return PrefixValues(
        text,
        int(rank) if rank else outer_rank,
        int(local_rank) if local_rank else origin.local_rank,
        host or origin.host,
        _outer_clock(origin, iso(time) if time else None),
        origin.stream + "".join(f"{name}/" for name in streams),
        pod or origin.pod,
        int(node) if node else origin.node,
    )
