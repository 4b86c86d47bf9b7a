"""The state of network ports: reads ibstat, ibstatus, and the problems that ibdiagnet found in a fabric."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.evidence.reports.report_line import ReportLine
from torchtriage.lazy_regex import lazy_regex

_CARD = lazy_regex(r"CA '([\w.:-]{1,40})'")
_PORT = lazy_regex(r"\s+Port (\d{1,3}):")
# Infiniband device 'mlx5_0' port 1 status:
_STATUS = lazy_regex(r"Infiniband device '([\w.:-]{1,40})' port (\d{1,3}) status:")
#   State: Down ·   state:           1: DOWN
_FIELD = lazy_regex(r"\s+([A-Za-z ]{2,20}):\s+(?:\d{1,2}: )?(\S.{0,60}?)\s*$")
_MAX_TEXT = 400  # characters of a message about a port
_SHOWN = ("physical state", "phys state", "rate", "link layer", "link_layer")
# -E- gpu-021/U1/P1 - "link_down_counter" increased during the run (difference value=3, …) · -E- gpu-7 mlx5_2/U1/P1 - …
_ERROR = lazy_regex(r"-E- +(?:(\S{1,64}?)(?: \S{1,40}?)?/\S{0,40} - )?(.{1,300})")
# -I- Port Counters             0          1
_STAGE = lazy_regex(r"-I- (\S.{0,40}?) {2,}(\d{1,9}) +(\d{1,9})\b")
# ibdiagnet 1, where the errors of a stage come first: -W- lid=0x0007 guid=0x001e8cffff4c3a1c dev=26428 gpu-07/U1/P1 /
# link_down_counter : 0x3 (Increase by …)
_OF_PORT = lazy_regex(r"-[WE]- lid=\S+ guid=\S+ dev=\S+ ((?:(\S{1,64}?)/)?\S{0,40})")
_COUNTER = lazy_regex(r"\s+(\w{3,60}) +: 0x[0-9a-fA-F]{1,16} \(Increase by (\d{1,12}) ")
_OLD_STAGES = lazy_regex(r"\s+STAGE +Errors +Warnings")
_OLD_STAGE = lazy_regex(r"\s+(\S.{0,40}?) {2,}(\d{1,9}) +\d{1,9}\s*$")


def lines(text: str) -> Iterator[ReportLine]:
    """Yields `ibstat: mlx5_3 port 1: State: Down, Physical state: Polling, Rate: 40, Link layer: InfiniBand`, at the
    line of the state, and `ibdiagnet: …` for each error."""
    yield from _ports(text) if text.lstrip()[:4] in ("CA '", "Infi") else _fabric(text)


def _ports(text: str) -> Iterator[ReportLine]:
    card = port = ""
    open_: ReportLine | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if head := _CARD.match(line) or _PORT.match(line) or _STATUS.match(line):
            if open_ is not None:
                yield open_
            open_ = None
            if head.re.groups == 2:
                card, port = head[1], head[2]
            elif line[:1].isspace():
                port = head[1]
            else:
                card = head[1]
        elif found := _FIELD.match(line):
            name, value = found[1].strip(), found[2]
            if name.lower() == "state":
                open_ = ReportLine(number, f"ibstat: {card} port {port}: State: {value.capitalize()}")
            elif open_ is not None and name.lower() in _SHOWN and len(open_.text) < _MAX_TEXT:
                open_ = open_._replace(text=f"{open_.text}, {name.replace('phys ', 'Physical ')}: {value}")
    if open_ is not None:
        yield open_


def _fabric(text: str) -> Iterator[ReportLine]:
    port: re.Match[str] | None = None
    old = False
    for number, line in enumerate(text.split("\n"), 1):
        if not line[:1].isspace():
            port = _OF_PORT.match(line)
        if port is not None:
            if counter := _COUNTER.match(line):
                grown = f'"{counter[1]}" increased during the run (difference value={counter[2]})'
                yield ReportLine(number, f"ibdiagnet: {port[1]} - {grown}", port[2])
        elif found := _ERROR.match(line):
            yield ReportLine(number, f"ibdiagnet: {line[4:300].strip()}", found[1])
        elif old or _OLD_STAGES.match(line):
            stage = _OLD_STAGE.match(line) if old else None
            old = True
            if stage and stage[2] != "0":
                yield ReportLine(number, f"ibdiagnet: {stage[1]}: {stage[2]} errors")
        elif (stage := _STAGE.match(line)) and stage[3] != "0":
            yield ReportLine(number, f"ibdiagnet: {stage[1]}: {stage[3]} errors")
