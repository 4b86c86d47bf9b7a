"""Reads the parts of Slack's requests that are used. A field that is missing or null becomes empty."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError, model_validator

from torchtriage.errors import BadInput
from torchtriage.lazy_regex import lazy_regex

_BLOCK = lazy_regex(r"```\n?(.*?)\n?```", re.DOTALL)
_LINK = lazy_regex(r"<((?:https?|mailto|ftp)[^|>]*)(?:\|([^>]*))?>")
_MENTION = lazy_regex(r"<([@#!])([^|>]*)(?:\|([^>]*))?>")
_ADDRESSED = lazy_regex(r"^\s*<@[^>]*>\s*")


def _writable(text: str) -> str:
    """Returns the text without NUL and unpaired surrogates, which databases reject."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


_Text = Annotated[str, AfterValidator(_writable)]
_Id = Annotated[_Text, StringConstraints(max_length=300)]  # for ids and names, which are stored in an index
_Url = Annotated[_Text, StringConstraints(max_length=3000)]


class Part(BaseModel):
    """An object in a request of Slack."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, found: Any) -> Any:
        return {name: part for name, part in found.items() if part is not None} if isinstance(found, dict) else found

    @classmethod
    def of(cls, found: Any) -> Self:
        """Parses decoded JSON. Raises BadInput if it is invalid."""
        with _validation_errors():
            return cls.model_validate(found)

    @classmethod
    def read(cls, text: str) -> Self:
        """Parses JSON text. Raises BadInput if it is invalid."""
        with _validation_errors():
            return cls.model_validate_json(text)


class Command(Part):
    """A slash command. `text` is what the user typed after it."""

    text: _Text = ""
    user_id: _Id = ""
    user_name: _Id = ""
    channel_id: _Id = ""
    channel_name: _Id = ""
    trigger_id: _Id = ""
    response_url: _Url = ""


class Person(Part):
    id: _Id = ""
    username: _Id = ""
    name: _Id = ""

    @property
    def called(self) -> str:
        return self.username or self.name or self.id


class Channel(Part):
    id: _Id = ""
    name: _Id = ""


class File(Part):
    id: _Id = ""


class Message(Part):
    ts: _Id = ""
    thread_ts: _Id = ""
    text: _Text = ""
    files: tuple[File, ...] = ()


class Button(Part):
    action_id: _Id = ""
    value: _Id = ""


class FormField(Part):
    """What a person filled into one field of a form."""

    value: _Text = ""
    files: tuple[File, ...] = ()


class FormState(Part):
    values: dict[str, dict[str, FormField]] = {}


class Form(Part):
    """A submitted form. `private_metadata` is the text with which it was opened."""

    state: FormState = FormState()
    private_metadata: _Text = ""


class Interaction(Part):
    """A click on a button, a shortcut, or a submitted form."""

    callback_id: _Id = ""
    user: Person = Person()
    channel: Channel = Channel()
    message: Message = Message()
    message_ts: _Id = ""
    view: Form = Form()
    actions: tuple[Button, ...] = ()
    response_url: _Url = ""
    trigger_id: _Id = ""


class Kind(Part):
    """The type of an event. For most types nothing else is read."""

    type: _Text = ""


class Event(Message):
    """A shared file, or a message to the bot. Depending on the event, Slack uses one or the other field for user and
    channel."""

    user: _Id = ""
    user_id: _Id = ""
    channel: _Id = ""
    channel_id: _Id = ""
    bot_id: _Id = ""
    file_id: _Id = ""


class Authorization(Part):
    user_id: _Id = ""
    is_bot: bool = False


class Delivery(Part):
    """An event, or the challenge with which Slack verifies this URL."""

    event_id: _Id = ""
    challenge: _Text = ""
    authorizations: tuple[Authorization, ...] = ()


@contextmanager
def _validation_errors() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"])) or "it"
        raise BadInput(f"not a valid Slack request: {place[:100]}: {problem['msg']}") from None


def log_in(text: str) -> str:
    """Returns the code blocks of a message, joined; or the whole message if it has none."""
    text = _ADDRESSED.sub("", text)
    blocks = _BLOCK.findall(text)
    return "\n".join(map(unescaped, blocks)) if any(map(str.strip, blocks)) else unescaped(text).strip()


def unescaped(text: str) -> str:
    """Returns the text as the user typed it, without Slack's escapes."""
    text = _LINK.sub(lambda found: found[2] if found[1].startswith("mailto:") and found[2] else found[1], text)
    text = _MENTION.sub(lambda found: found[1] + (found[3] or found[2]), text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
