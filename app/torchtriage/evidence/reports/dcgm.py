"""DCGM: reads the problems that `dcgmi health -c` and `dcgmi diag` found, from their tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from torchtriage.evidence.reports.report_line import ReportLine
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.whole_files import NotRead

_MAX_OPENED = 200_000  # lists and objects in JSON
# |-----  Deployment  --------+---…| · +-----  Integration  -------+---…+
_SECTION = lazy_regex(r"[|+]-+ {1,4}(\S.{0,30}?) {1,4}-+")
_WELL = ("pass", "skip", "healthy", "not run")
# keys of a test's message; the last one is used by tests of the installation
_WORDS_OF = ("warning", "error", "warnings")
_TEXT = lazy_regex(r"(?i)(?:warning|(error)|info)\b")  # labels of rows that continue the test above
_SECTION_MARK = "--"  # prefix of the name of a section of tests
_MAX_TEXT = 1000  # characters
_PADDING = 2  # spaces after a value that fills its cell


class _Row(NamedTuple):
    number: int
    depth: int
    label: str
    value: str


def lines(text: str) -> Iterator[ReportLine]:
    """Yields `dcgmi diag: GPU 3: memory: Fail: …` for each test or device system with a problem, with DCGM's words.
    Raises NotRead if the JSON is invalid."""
    if text.lstrip()[:1] == "{":
        yield from _of_json(text)
        return
    if "Health Monitor Report" in text[:1000]:
        yield from _health(list(_rows(text, within_words=False)))
    else:
        yield from _diagnosis(list(_rows(text, within_words=True)))


def _rows(text: str, within_words: bool) -> Iterator[_Row]:
    """Yields the rows of a table with two columns. A value that continues over several rows is joined. If
    `within_words` is true, a row that is filled to its end was cut inside a word."""
    open_: _Row | None = None
    cut = False
    for number, line in enumerate(text.split("\n"), 1):
        if section := _SECTION.match(line):
            if open_ is not None:
                yield open_
            open_, cut = _Row(number, 0, _SECTION_MARK + section[1], ""), False
        if section or not line.startswith("|"):
            continue
        first, _, second = line.rstrip().strip("|").partition("|")
        label, value = first.strip(), second[1:].rstrip()
        value += "" if within_words and len(second) - len(second.rstrip(" ")) <= _PADDING else " "
        if not label and open_ is not None and value.strip():
            if not open_.value or not cut:
                yield open_
                open_ = _Row(number, open_.depth + 1, "", value)
            elif len(open_.value) < _MAX_TEXT:
                open_ = open_._replace(value=open_.value + value)
        else:
            if open_ is not None:
                yield open_
            open_ = _Row(number, len(first) - len(first.lstrip(" ")), label, value)
        # The states of single GPUs are in separate rows without a label.
        cut = bool(open_.value.strip()) and (_TEXT.match(open_.label) is not None or not (open_.label or within_words))
    if open_ is not None:
        yield open_


def _health(rows: list[_Row]) -> Iterator[ReportLine]:
    """Yields the problems below `-> 3 | Failure`, `-> Errors` and `-> Memory system | Failure`."""
    kind = device = system = state = ""
    for row in rows:
        label = row.label.removeprefix("->").strip()
        if row.label and row.depth <= 1 and not row.label.startswith("->"):
            kind, system = label, ""
        elif row.label and label.isdecimal():
            device, system = label, ""
        elif row.label and label != "Errors":
            system, state = label, row.value.strip()
        elif not row.label and system and not _is_ok(state):
            yield ReportLine(row.number, _statement("health", f"{kind} {device}", system, state, row.value))


def _diagnosis(rows: list[_Row]) -> Iterator[ReportLine]:
    """Yields the problems at `GPU Memory | Fail - GPU: 0` and `Warning | …`. An error can also follow the name of a
    section, before any test."""
    test = status = ""
    for row in rows:
        message = _TEXT.match(row.label)
        if row.label.startswith(_SECTION_MARK):
            test, status = row.label.removeprefix(_SECTION_MARK), ""
        elif message and (message[1] or not _is_ok(status)) and not row.label.lower().startswith("info"):
            device = row.label.partition(":")[2].strip()
            yield ReportLine(row.number, _statement("diag", device, test, "Fail", row.value))
        elif not message:
            test, status = row.label or test, row.value.strip()
            if "fail" in status.lower():
                yield ReportLine(row.number, f"dcgmi diag: {test}: {' '.join(status.split())}")


def _of_json(text: str) -> Iterator[ReportLine]:
    if text.count("[") + text.count("{") > _MAX_OPENED:
        raise NotRead(f"more than {_MAX_OPENED:,} lists")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotRead("incomplete JSON") from error
    where = _Numbers(text)
    for run in [data, *_list(data, "iterations")]:
        hosts = [str(host.get("hostname", ""))[:255] for host in _list(run, "hosts")]
        for diagnosis in [run, *run.values()]:
            yield from _failed_tests(diagnosis, hosts, where)
    body = data.get("body")
    for kind, devices in body.items() if isinstance(body, dict) else ():
        yield from _device_errors(str(kind), devices, where)


def _failed_tests(diagnosis: Any, hosts: list[str], where: _Numbers) -> Iterator[ReportLine]:
    """Yields the tests that failed. `hosts` are the hosts of a test over several hosts, in the order of their numbers.
    Problems that belong to no device are in a test's summary, which may repeat the problem of a device."""
    for category in _list(diagnosis, "test_categories"):
        for test in _list(category, "tests"):
            name = str(test.get("name", ""))
            reported: set[str] = set()
            for result in _list(test, "results"):
                number = result.get("host_id")
                host = hosts[number] if isinstance(number, int) and 0 <= number < len(hosts) else None
                for line in _result(name, result, where):
                    reported.update(_messages_of(result))
                    yield line._replace(host=host)
            summary = test.get("test_summary")
            if isinstance(summary, dict) and (
                left := [message for message in _messages_of(summary) if message not in reported]
            ):
                yield from _result(name, {"status": summary.get("status"), "warnings": left}, where)


def _messages_of(result: dict[str, Any]) -> list[str]:
    """Returns the messages of a result. They are plain text (DCGM 2), or objects whose text has one of several keys (3
    and 4)."""
    messages = result.get("warnings") or result.get("errors") or []
    every = messages if isinstance(messages, list) else [messages]
    words = (
        next((each[key] for key in _WORDS_OF if each.get(key)), "") if isinstance(each, dict) else each
        for each in every
    )
    return [str(word) for word in words if word]


def _result(test: str, result: dict[str, Any], where: _Numbers) -> Iterator[ReportLine]:
    status = str(result.get("status") or "")
    if _is_ok(status):
        return
    entity = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids")))
    device = f"{result.get('entity_group', 'GPU')} {entity}" if entity is not None else ""
    messages = _messages_of(result)
    for message in messages:
        yield ReportLine(where.of(message), _statement("diag", device, test, status, message))
    if not messages and status.lower().startswith("fail"):
        yield ReportLine(where.of(status), ": ".join(part for part in ("dcgmi diag", device, test, status) if part))


def _device_errors(kind: str, devices: Any, where: _Numbers) -> Iterator[ReportLine]:
    for device, tree in _children(devices):
        for name, errors in _children(tree):
            for system, errors_of in _children(errors) if name == "Errors" else ():
                state = str(errors_of.get("value", ""))
                for _, error in _children(errors_of) if not _is_ok(state) else ():
                    message = str(error.get("value", ""))
                    yield ReportLine(
                        where.of(message), _statement("health", f"{kind} {device}", system, state, message)
                    )


def _children(tree: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    inner = tree.get("children") if isinstance(tree, dict) else None
    for name, each in inner.items() if isinstance(inner, dict) else ():
        if isinstance(each, dict):
            yield str(name), each


def _list(owner: Any, key: str) -> Iterator[dict[str, Any]]:
    found = owner.get(key) if isinstance(owner, dict) else None
    yield from (each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()


def _is_ok(state: str) -> bool:
    return not state or state.lower().startswith(_WELL)


def _statement(command: str, device: str, test: str, state: str, message: str) -> str:
    what = ": ".join(part for part in (device.strip(), test, state) if part)
    return f"dcgmi {command}: {what}: {' '.join(message.split())[:_MAX_TEXT]}"


class _Numbers:
    """Finds the line numbers of a document's texts, which must be requested in order."""

    def __init__(self, text: str) -> None:
        self._text, self._from, self._number = text, 0, 1

    def of(self, value: str) -> int:
        """Returns the number of the next line that contains a value, or of the last line found."""
        at = self._text.find(json.dumps(value)[1:-1], self._from)
        if at >= 0:
            self._number += self._text.count("\n", self._from, at)
            self._from = at
        return self._number
