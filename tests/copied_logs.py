"""Logs that were copied as a whole: quoted as one text, broken between words, put on a page, or mixed with other lines.
See log_wrappings."""

from __future__ import annotations

import html
import json
import quopri
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from tests.log_wrappings import Wrapped, Wrapping, by_line, millis, newest_first, stamp, table, when


def _whole(form: Callable[[str], str]) -> Wrapping:
    """Returns a wrapping that writes the whole text as one line."""
    return lambda lines: (form("\n".join(lines)).encode(), [1] * len(lines))


def _listed(form: Callable[[list[str]], str]) -> Wrapping:
    return lambda lines: (form(list(lines)).encode(), [1] * len(lines))


def _filled(width: int, mark: str = "", hanging: str = "") -> Wrapping:
    """Returns a wrapping that breaks lines between words, as mail programs and editors do."""

    def wrap(lines: Sequence[str]) -> Wrapped:
        written: list[str] = []
        numbers: list[int] = []
        for line in lines:
            numbers.append(len(written) + 1)
            pieces = textwrap.wrap(
                line, width, break_long_words=False, break_on_hyphens=False, replace_whitespace=False,
                subsequent_indent=hanging,
            )  # fmt: skip
            written += [mark + piece for piece in pieces or [line]]
        return ("\n".join(written) + "\n").encode(), numbers

    return wrap


def _between(header: Callable[[int], str], every: int) -> Wrapping:
    """Returns a wrapping that puts a foreign line before some of the lines."""

    def wrap(lines: Sequence[str]) -> Wrapped:
        written: list[str] = []
        numbers: list[int] = []
        for at, line in enumerate(lines):
            written += [header(at)] if at % every == 0 else []
            numbers.append(len(written) + 1)
            written.append(line)
        return ("\n".join(written) + "\n").encode(), numbers

    return wrap


def _inside(above: Sequence[str], form: Callable[[str], str], below: Sequence[str] = ()) -> Wrapping:
    """Returns a wrapping that puts a log in the middle of a document."""

    def wrap(lines: Sequence[str]) -> Wrapped:
        written = [*above, *map(form, lines), *below]
        return ("\n".join(written) + "\n").encode(), [len(above) + at for at in range(1, len(lines) + 1)]

    return wrap


def _in_yaml(at: int, line: str) -> str:
    spelled = line.replace("'", "''")
    return (
        f"---\ninsertId: x{at}\nresource:\n  labels:\n    pod_name: train-worker-0\n  type: k8s_container\n"
        f"severity: ERROR\ntextPayload: '{spelled}'\ntimestamp: '{stamp(at)}'\n"
    )


def _yaml(lines: Sequence[str]) -> Wrapped:
    return "".join(_in_yaml(at, line) for at, line in enumerate(lines)).encode(), [
        9 * at + 8 for at in range(len(lines))
    ]


def _newest_yaml(lines: Sequence[str]) -> Wrapped:
    content = "".join(_in_yaml(at, line) for at, line in reversed(list(enumerate(lines)))).encode()
    return content, [9 * (len(lines) - 1 - at) + 8 for at in range(len(lines))]


def _notebook(lines: Sequence[str]) -> dict[str, Any]:
    said = {"name": "stdout", "output_type": "stream", "text": [f"{line}\n" for line in lines]}
    cell = {"cell_type": "code", "metadata": {}, "outputs": [said], "source": ["!torchrun train.py"]}
    return {"cells": [{"cell_type": "markdown", "source": ["# A run\n", "of ours"]}, cell], "nbformat": 4}


def _in_notebook(lines: Sequence[str]) -> Wrapped:
    written = json.dumps(_notebook(lines), indent=1).split("\n")
    numbers: list[int] = []
    for line in lines:
        spelled = json.dumps(f"{line}\n")
        numbers.append(
            next(at for at in range(numbers[-1] if numbers else 0, len(written)) if spelled in written[at]) + 1
        )
    return "\n".join(written).encode(), numbers


def _quoted_printable(lines: Sequence[str]) -> Wrapped:
    every = [quopri.encodestring(line.encode()) for line in lines]
    numbers = [sum(each.count(b"\n") + 1 for each in every[:at]) + 1 for at in range(len(every))]
    return b"\n".join(every) + b"\n", numbers


def _kibana(at: int) -> str:
    return f"{when(at):%b} {when(at).day}, {when(at):%Y @ %H:%M:%S}.{at * 250 % 1000:03}"


COPIED: dict[str, Wrapping] = {
    "gcloud, YAML": _yaml,
    "Fluent Bit's output": by_line(
        lambda at, line: f'[{at % 7}] kube.train: [[{millis(at) / 1000:.9f}, {{}}], {{"stream"=>"stderr", "log"=>"{line}"}}]'
    ),
    "Kibana, a table": table(["@timestamp", "message"], lambda at, line: [_kibana(at), line]),
    "a table without names": lambda lines: (
        "".join(f'"{stamp(at)}","gpu-7","{line.replace(chr(34), chr(34) * 2)}"\r\n' for at, line in enumerate(lines)).encode(),
        [*range(1, len(lines) + 1)],
    ),
    "a notebook": _in_notebook,
    "a notebook, one line": _listed(lambda lines: json.dumps(_notebook(lines))),
    "a JSON string": _whole(json.dumps),
    "a JSON string without its quotes": _whole(lambda text: json.dumps(text)[1:-1]),
    "an API's answer": _whole(lambda text: json.dumps({"state": "FAILED", "logs": text})),
    "a list of strings": _listed(json.dumps),
    "a list of strings, one a line": lambda lines: (json.dumps(lines, indent=2).encode(), [*range(2, len(lines) + 2)]),
    "repr of a text": _whole(repr),
    "repr of bytes": _whole(lambda text: repr(text.encode())),
    "repr of a list": _listed(repr),
    "repr of bytes, a line each": by_line(lambda at, line: repr(f"{line}\n".encode())),
    "Ansible": _listed(
        lambda lines: f"fatal: [gpu-7]: FAILED! => {json.dumps({'rc': 1, 'stdout': chr(10).join(lines), 'stdout_lines': lines})}"
    ),
    "carriage returns alone": _whole(lambda text: text.replace("\n", "\r")),
    "Unicode's line ends": _whole(lambda text: text.replace("\n", "\u2028")),
    "blanks for line ends": _whole(lambda text: text.replace("\n", " ")),
    "a page": _inside(["<!DOCTYPE html>", "<html><body><pre>"], html.escape, ["</pre></body></html>"]),
    "a page in one line": _whole(lambda text: f"<html><p>{html.escape(text).replace(chr(10), '<br>')}</p></html>"),
    "a page's table": by_line(lambda at, line: f'<tr><td class="n">{at + 1}</td><td>{html.escape(line)}</td></tr>'),
    "quoted-printable": _quoted_printable,
    "broken at 72": _filled(72),
    "broken at 76, quoted": _filled(74, "> "),
    "broken at 72, hanging": _filled(72, hanging="    "),
    "a chat": _between(lambda at: f"Ann Lee  9:{at % 60:02} AM", 12),
    "a Chinese chat": _between(lambda at: f"张三 2026/5/1 9:41:{at % 60:02}", 12),
    "more": _between(lambda at: f"--More--({at}%)", 9),
    "supervisord": _between(lambda at: f"2026-05-01 09:00:{at % 60:02},123 DEBG 'train' stderr output:", 1),
    "a block of YAML": _inside(["job: 4711", "log: |"], lambda line: f"  {line}"),
    "diff -u": _inside(["--- a.log", "+++ b.log", "@@ -0,0 +1,99 @@"], lambda line: f"+{line}"),
    "seconds since the start": by_line(lambda at, line: f"[{at * 0.25:10.3f}s] {line}"),
    "backslashes": by_line(lambda at, line: f"{line}\\"),
    "colours without their escape": by_line(lambda at, line: f"[31m{line}[0m"),
    "ligatures": by_line(lambda at, line: line.replace("fi", "ﬁ").replace("fl", "ﬂ")),
    "a job's label and a host's": by_line(lambda at, line: f"[train] node-{at % 2}: {line}"),
}  # fmt: skip
COPIED_NEWEST_FIRST: dict[str, Wrapping] = {
    "gcloud, YAML": _newest_yaml,
    "nothing but the lines": lambda lines: (
        "".join(f"{line}\n" for line in reversed(lines)).encode(), [*range(len(lines), 0, -1)]
    ),
    "Kibana, a table": newest_first(
        table(["@timestamp", "message"], lambda _, line: [_kibana(int(line[:6])), line[7:]])
    ),
    "Kibana, a table of one second": newest_first(
        table(["@timestamp", "message"], lambda _, line: [_kibana(0), line[7:]])
    ),
}  # fmt: skip
