"""The form of an entry's YAML file, and its translation to `torchtriage.domain.entry.Entry`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from torchtriage.domain.entry import Advice, Cause, Entry, Fix, Kind, Role, Sign, Text

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*\.[a-z0-9][a-z0-9.-]*$")]
Glob = Annotated[str, Field(pattern=r"^[a-z0-9*][a-z0-9.*-]*$")]
Link = Annotated[str, Field(pattern=r"^https://[a-zA-Z0-9.-]+\.[a-z]{2,}(:\d+)?(/\S*)?$")]
Filled = Annotated[str, Field(min_length=1)]


def _yes_no(value: Any) -> Any:
    """YAML 1.1 reads bare `yes` and `no` as booleans."""
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


YesNo = Annotated[Literal["yes", "no", "once"], BeforeValidator(_yes_no)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class TextForm(_Form):
    en: Filled
    zh: Filled

    def build(self) -> Text:
        return Text(self.en.strip(), self.zh.strip())


class CauseForm(_Form):
    """`when_message_has`: a regex; where the failure's own words hold it, this cause comes first, elsewhere last."""

    en: Filled
    zh: Filled
    when_message_has: Filled | None = None

    def build(self) -> Cause:
        return Cause(self.en.strip(), self.zh.strip(), self.when_message_has)


class SignForm(_Form):
    """One of `regex`, `text`, `all`; where to look (`search_in`); what must not be in the same text (`unless`).

    `severity: warning`: runs that go on print it too. `last_resort`: counts where no other sign matches the same event.
    """

    regex: Filled | None = None
    text: Filled | None = None
    all: list[SignForm] = []
    where: Literal["any", "exception", "line", "exit", "frame"] = Field("any", alias="search_in")
    unless: Filled | list[Annotated[str, Field(min_length=1, max_length=200)]] | None = None
    severity: Literal["error", "warning"] = "error"
    last_resort: bool = False

    @model_validator(mode="after")
    def _one_pattern(self) -> SignForm:
        if sum((self.regex is not None, self.text is not None, bool(self.all))) != 1:
            raise ValueError("a sign has exactly one of regex, text and all")
        return self

    def build(self) -> Sign:
        return Sign(
            regex=self.regex,
            text=self.text,
            all=tuple(part.build() for part in self.all),
            where=self.where,
            unless="|".join(self.unless) if isinstance(self.unless, list) else self.unless,
            weak=self.severity == "warning",
            broad=self.last_resort,
        )


class FixForm(_Form):
    title: TextForm
    detail: TextForm | None = None
    commands: list[Filled] = []
    applies: Filled = "any"
    when_message_has: Filled | None = None

    def build(self) -> Fix:
        detail = self.detail.build() if self.detail else None
        return Fix(self.title.build(), detail, tuple(self.commands), self.applies, self.when_message_has)


class ActionForm(_Form):
    advice: Literal["retry", "retry-elsewhere", "fix-first", "none"]
    retry: YesNo
    exclude_hosts: bool = False

    def build(self) -> Advice:
        return Advice(self.advice, self.retry, self.exclude_hosts)


class OtherActionForm(ActionForm):
    """What is advised instead where the failure's own words hold the regex `when_message_has`."""

    when_message_has: Filled

    def build(self) -> Advice:
        return Advice(self.advice, self.retry, self.exclude_hosts, self.when_message_has)


class VersionsForm(_Form):
    affected: str | None = None
    fixed: str | None = None


class AskForm(_Form):
    en: Filled | None = None
    zh: Filled | None = None

    @model_validator(mode="after")
    def _one_language(self) -> AskForm:
        if self.en is None and self.zh is None:
            raise ValueError("an ask has en, zh or both")
        return self


class ExamplesForm(_Form):
    match: list[Filled] = []
    no_match: list[Filled] = []


class EntryForm(_Form):
    """The whole file."""

    id: Identifier
    kind: Kind
    title: TextForm
    area: Filled
    owner: Literal["user", "framework", "platform", "hardware"]
    signs: list[SignForm] = []
    fallback: bool = False
    needs_training_log: bool = False
    roles: list[Role] = []
    capture: dict[Annotated[str, Field(pattern=r"^[a-z_]+$")], Filled] = {}
    explains: list[Glob] = []
    action: ActionForm
    action_when: list[OtherActionForm] = []
    causes: Annotated[list[CauseForm], Field(min_length=1)]
    fixes: Annotated[list[FixForm], Field(min_length=1)]
    checks: list[Filled] = []
    prevent: list[TextForm] = []
    versions: VersionsForm = VersionsForm()
    references: list[Link] = []
    asks: list[AskForm] = []
    examples: ExamplesForm = ExamplesForm()

    @model_validator(mode="after")
    def _whole(self) -> EntryForm:
        if self.id.split(".")[0] != self.area:
            raise ValueError(f"area {self.area!r} is not the first part of the id {self.id!r}")
        if self.kind is Kind.ADVICE:
            if self.signs:
                raise ValueError("an entry of kind advice has no signs")
            if not self.asks:
                raise ValueError("an entry of kind advice needs asks, or nobody finds it")
        elif not self.signs:
            raise ValueError(f"an entry of kind {self.kind} needs signs")
        elif not self.examples.match:
            raise ValueError("an entry with signs needs examples that match")
        return self

    def build(self, file: str, area_roles: Iterable[Role]) -> Entry:
        asks = [(lang, words) for ask in self.asks for lang, words in (("en", ask.en), ("zh", ask.zh)) if words]
        return Entry(
            id=self.id,
            kind=self.kind,
            area=self.area,
            owner=self.owner,
            title=self.title.build(),
            signs=tuple(sign.build() for sign in self.signs),
            action=self.action.build(),
            other_actions=tuple(action.build() for action in self.action_when),
            causes=tuple(cause.build() for cause in self.causes),
            fixes=tuple(fix.build() for fix in self.fixes),
            explains=tuple(self.explains),
            capture=tuple(self.capture.items()),
            checks=tuple(self.checks),
            prevent=tuple(item.build() for item in self.prevent),
            affected=self.versions.affected,
            fixed=self.versions.fixed,
            references=tuple(self.references),
            asks=tuple(asks),  # type: ignore[arg-type]
            match_examples=tuple(self.examples.match),
            no_match_examples=tuple(self.examples.no_match),
            catch_all=self.fallback,
            general=self.needs_training_log,
            roles=frozenset((*self.roles, *area_roles)),
            file=file,
        )


def json_schema() -> str:
    """-> the JSON Schema of an entry's file, for editors; `knowledge_base/schema.json` holds it."""
    return json.dumps(EntryForm.model_json_schema(by_alias=True), indent=2, ensure_ascii=False) + "\n"
