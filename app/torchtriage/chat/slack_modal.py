"""The form for submitting a log in Slack: builds the view and reads what a person filled in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchtriage.chat.slack_payload import Form, FormField, Part
from torchtriage.chat.wording import word
from torchtriage.domain.entry import Language

if TYPE_CHECKING:
    from slack_sdk.models.blocks import PlainTextObject

CALLBACK = "triage_log"
MAX_FILES = 10
_TEXT, _FILES = "text", "files"
_MAX_TEXT = 3000


class Place(Part):
    """Where a form was opened. Slack returns it with the form."""

    channel: str = ""
    url: str = ""
    user: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Submitted:
    """The content of a form: pasted text and the ids of files."""

    text: str
    files: tuple[str, ...]
    place: Place


def view(lang: Language, page: str, place: Place) -> dict[str, Any]:
    """Returns the form. Slack allows 3000 characters of text, so longer logs must be files."""
    # Imported here, because the routes also exist without the extra `slack`.
    from slack_sdk.models.blocks import ContextBlock, InputBlock, PlainTextInputElement, PlainTextObject
    from slack_sdk.models.blocks.block_elements import FileInputElement
    from slack_sdk.models.views import View

    text = PlainTextInputElement(action_id=_TEXT, multiline=True, max_length=_MAX_TEXT)
    files = FileInputElement(action_id=_FILES, max_files=MAX_FILES)
    made = View(
        type="modal",
        callback_id=CALLBACK,
        private_metadata=place.model_dump_json(),
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


def submitted(given: Form) -> Submitted:
    """Returns the content of a form. Raises BadInput if it is not a form of this service."""
    fields = given.state.values
    text = fields.get(_TEXT, {}).get(_TEXT, FormField()).value
    files = fields.get(_FILES, {}).get(_FILES, FormField()).files
    ids = tuple(file.id for file in files if file.id)
    return Submitted(text, ids[:MAX_FILES], Place.read(given.private_metadata or "{}"))


def empty(lang: Language) -> dict[str, Any]:
    """Returns the answer to a form without content."""
    return {"response_action": "errors", "errors": {_TEXT: word(lang, "modal_empty")}}


def _plain(lang: Language, key: str) -> PlainTextObject:
    from slack_sdk.models.blocks import PlainTextObject

    return PlainTextObject(text=word(lang, key), emoji=False)
