"""What Slack sends, as far as it is read: decoded JSON in, its parts out; empty where Slack writes null or nothing."""

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
    """-> the text without what a database does not keep: NUL, and a lone half of a character's pair."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


_Text = Annotated[str, AfterValidator(_writable)]
_Id = Annotated[_Text, StringConstraints(max_length=300)]  # of what is kept in an index: names, too
_Url = Annotated[_Text, StringConstraints(max_length=3000)]


class Part(BaseModel):
    """An object of Slack's."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, found: Any) -> Any:
        return {name: part for name, part in found.items() if part is not None} if isinstance(found, dict) else found

    @classmethod
    def of(cls, found: Any) -> Self:
        """Raises BadInput for what Slack would not send."""
        with _told():
            return cls.model_validate(found)

    @classmethod
    def read(cls, text: str) -> Self:
        """The same, of a JSON text."""
        with _told():
            return cls.model_validate_json(text)


class Command(Part):
    """A slash command, with what follows it as `text`."""

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
    """What somebody filled into one field of a form."""

    value: _Text = ""
    files: tuple[File, ...] = ()


class FormState(Part):
    values: dict[str, dict[str, FormField]] = {}


class Form(Part):
    """A form that was filled in; `private_metadata` is what it was opened with."""

    state: FormState = FormState()
    private_metadata: _Text = ""


class Interaction(Part):
    """Of a button, a shortcut or a form."""

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
    """What an event is; of most kinds no more is read."""

    type: _Text = ""


class Event(Message):
    """A file that was shared, or a message that speaks to the bot. Slack names user and channel by either name."""

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
    """An event, or the question whether this address is ours."""

    event_id: _Id = ""
    challenge: _Text = ""
    authorizations: tuple[Authorization, ...] = ()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"])) or "it"
        raise BadInput(f"not a valid Slack request: {place[:100]}: {problem['msg']}") from None


def log_in(text: str) -> str:
    """-> the code blocks of a message, one after the other; the whole message where there is none."""
    text = _ADDRESSED.sub("", text)
    blocks = _BLOCK.findall(text)
    return "\n".join(map(unescaped, blocks)) if any(map(str.strip, blocks)) else unescaped(text).strip()


def unescaped(text: str) -> str:
    """-> a text as it was typed."""
    text = _LINK.sub(lambda found: found[2] if found[1].startswith("mailto:") and found[2] else found[1], text)
    text = _MENTION.sub(lambda found: found[1] + (found[3] or found[2]), text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
