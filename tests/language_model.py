"""A fake language model on loopback with an OpenAI-compatible API. Tests set its answers."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.http_server import Asked, Told, serving

Claims = list[dict[str, Any]]


@dataclass
class Model:
    """`says` makes the text of an answer from the question. `status` and `body` replace the whole answer."""

    url: str = ""
    says: Callable[[str], str] = lambda _: "{}"
    status: int = 200
    body: bytes | None = None
    hangs: bool = False
    asked: list[tuple[Asked, dict[str, Any]]] = field(default_factory=list)
    go_on: threading.Event = field(default_factory=threading.Event)

    def answer(self, asked: Asked) -> Told:
        question = json.loads(asked.body)
        self.asked.append((asked, question))
        if self.hangs:
            self.go_on.wait(30)
        text = self.says(question["messages"][1]["content"])
        told = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
        return Told(told if self.body is None else self.body, self.status)

    @property
    def sent(self) -> str:
        """All text sent to the model."""
        return "".join(json.dumps(question, ensure_ascii=False) for _, question in self.asked)


@contextmanager
def model() -> Iterator[Model]:
    made = Model()
    with serving(made.answer) as url:
        made.url = f"{url}/v1"
        try:
            yield made
        finally:
            made.go_on.set()


def claims(*made: dict[str, Any]) -> str:
    return json.dumps({"claims": list(made)})


def honest(brief: str) -> str:
    """Returns a claim that cites the last line that the brief marks as evidence."""
    line, quote = re.findall(r"^> +(\d+) (.*)$", brief, re.MULTILINE)[-1]
    return claims({"says": "The line names the failure.", "file": None, "line": int(line), "quote": quote})
