"""The form in which somebody hands a log in: a view for Slack to open, and what comes back from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slack_sdk.models.blocks import ContextBlock, InputBlock, PlainTextInputElement, PlainTextObject
from slack_sdk.models.blocks.block_elements import FileInputElement
from slack_sdk.models.views import View

from app.chat.wording import word
from app.domain.entry import Language

CALLBACK = "triage_log"
MOST_FILES = 10
_TEXT, _FILES = "text", "files"
_MOST_TEXT = 3000


@dataclass(frozen=True, slots=True)
class Submitted:
    """`where` is what the form was opened with."""

    text: str
    files: tuple[str, ...]
    where: str


def view(lang: Language, page: str, where: str) -> dict[str, Any]:
    """-> the form; `where` comes back with it. Slack takes 3000 characters in a text, so that longer logs are files."""
    text = PlainTextInputElement(action_id=_TEXT, multiline=True, max_length=_MOST_TEXT)
    files = FileInputElement(action_id=_FILES, max_files=MOST_FILES)
    made = View(
        type="modal",
        callback_id=CALLBACK,
        private_metadata=where,
        title=_plain(lang, "modal_title"),
        submit=_plain(lang, "modal_send"),
        close=_plain(lang, "modal_close"),
        blocks=[
            InputBlock(block_id=_TEXT, label=_plain(lang, "modal_text"), element=text, optional=True),
            InputBlock(block_id=_FILES, label=_plain(lang, "modal_files"), element=files, optional=True),
            ContextBlock(elements=[PlainTextObject(text=word(lang, "modal_page", url=page)[:2000], emoji=False)]),
        ],
    )
    return made.to_dict()


def submitted(given: dict[str, Any]) -> Submitted:
    """-> what somebody filled into the form."""
    values = (given.get("state") or {}).get("values") or {}
    text = ((values.get(_TEXT) or {}).get(_TEXT) or {}).get("value") or ""
    files = ((values.get(_FILES) or {}).get(_FILES) or {}).get("files") or []
    ids = tuple(str(file["id"]) for file in files if isinstance(file, dict) and file.get("id"))
    return Submitted(str(text), ids[:MOST_FILES], str(given.get("private_metadata") or ""))


def empty(lang: Language) -> dict[str, Any]:
    """-> the answer to a form with nothing in it."""
    return {"response_action": "errors", "errors": {_TEXT: word(lang, "modal_empty")}}


def _plain(lang: Language, key: str) -> PlainTextObject:
    return PlainTextObject(text=word(lang, key), emoji=False)
