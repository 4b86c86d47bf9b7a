"""The pydantic models of an entry's YAML file, and their conversion to `torchtriage.domain.entry.Entry`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from torchtriage.domain.entry import Advice, Case, Cause, Condition, Entry, Fix, Kind, Rewrite, Role, Sign, Step, Text
from torchtriage.knowledge.folders import FORMS

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*\.[a-z0-9][a-z0-9.-]*$")]
Glob = Annotated[str, Field(pattern=r"^[a-z0-9*][a-z0-9.*-]*$")]
Link = Annotated[str, Field(pattern=r"^https://[a-zA-Z0-9.-]+\.[a-z]{2,}(:\d+)?(/\S*)?$")]
Filled = Annotated[str, Field(min_length=1)]


def _yes_no(value: Any) -> Any:
    """Converts booleans back to `yes` and `no`: YAML 1.1 reads these words as booleans."""
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


YesNo = Annotated[Literal["yes", "no", "once"], BeforeValidator(_yes_no)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class TextForm(_Form):
    """A text in both languages. The Chinese is optional; without it, the English is shown."""

    en: Filled
    zh: Filled | None = None

    def build(self) -> Text:
        return Text(self.en.strip(), (self.zh or "").strip())


class CauseForm(TextForm):
    """A cause of an entry. If the failure's message matches the regex `when_message_has`, this cause comes first, else
    last."""

    when_message_has: Filled | None = None

    def build(self) -> Cause:
        return Cause(self.en.strip(), (self.zh or "").strip(), self.when_message_has)


class SignForm(_Form):
    """A pattern: exactly one of `regex`, `text` and `all`. `search_in` says where to look; `unless` is a regex that
    must not match the same text.

    `severity: warning`: the message also appears in runs that continue. `last_resort`: the sign counts only if no other
    sign matches the same event.
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
    """Advice that replaces the entry's if the failure's message matches the regex `when_message_has`."""

    when_message_has: Filled

    def build(self) -> Advice:
        return Advice(self.advice, self.retry, self.exclude_hosts, self.when_message_has)


Conditions = dict[Annotated[str, Field(pattern=r"^[a-z_]+$")], bool | Filled]


class RewriteForm(_Form):
    """A correction of the user's line of code: the first match of the RE2 regex `find` is replaced by `replace`."""

    find: Filled
    replace: str

    def build(self) -> Rewrite:
        return Rewrite(self.find, self.replace)


class StepForm(_Form):
    """A sentence of at most 20 words, and a command that is shown if all its slots have values. `when` has conditions
    on facts only. A step with `unless` is left out if one of those conditions is met.

    `rewrite`: shows the user's line of code corrected, in place of the command, if the log has that line. `runs_on`:
    the command must run on each host of the job (`every-host`), or on each with all its devices (`every-whole-host`).
    """

    en: Filled
    zh: Filled | None = None
    run: Filled | None = None
    rewrite: RewriteForm | None = None
    runs_on: Literal["every-host", "every-whole-host"] | None = None
    when: Conditions = {}
    unless: Conditions = {}

    @model_validator(mode="after")
    def _runs(self) -> StepForm:
        if self.runs_on and (self.run is None or self.run.startswith("print(")):
            raise ValueError("a step with `runs_on` needs a shell command in `run`")
        return self

    def build(self) -> Step:
        runs_on = self.runs_on.replace("-", "_") if self.runs_on else None
        do = Text(self.en.strip(), (self.zh or "").strip())
        rewrite = self.rewrite.build() if self.rewrite else None
        return Step(do, self.run, _conditions(self.when), runs_on, rewrite, _conditions(self.unless))


class WordingForm(SignForm):
    """One more sign of a case, for another wording of the same failure, with its example."""

    regex: Filled | None = Field(None, alias="sign")
    example: Filled | None = None


class CaseForm(WordingForm):
    """One case: an optional sign (`sign`, `text` or `all`, with the keys of SignForm), conditions (`when`), a sentence
    (`says`) and steps (`do`).

    `also` has further signs, each with its own example. A case without a sign is selected by `when`; with neither, it
    applies to all remaining messages. The signs in `signs` find the entry, but do not decide which case is selected.
    `exclude_hosts` and `advice` default to those of the entry. `expect` is the case's answer to its example.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    also: list[WordingForm] = []
    signs: list[WordingForm] = []
    when: Conditions = {}
    says: TextForm
    unknown: TextForm | None = None
    do: Annotated[list[StepForm], Field(max_length=6)] = []  # three are shown; of alternatives, only one
    retry: YesNo | None = None
    advice: Literal["retry", "retry-elsewhere", "fix-first", "none"] | None = None
    exclude_hosts: bool | None = None
    telling: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    source: Filled | None = None
    expect: TextForm | Filled | None = None

    @model_validator(mode="after")
    def _one_pattern(self) -> CaseForm:
        if sum((self.regex is not None, self.text is not None, bool(self.all))) > 1:
            raise ValueError("a case has at most one of sign, text and all")
        if self.also and not self.has_sign:
            raise ValueError("a case with `also` needs `sign`, `text` or `all`")
        if self.signs and self.has_sign:
            raise ValueError("a case has either `signs` or its own sign; put further wordings of that into `also`")
        return self

    @property
    def has_sign(self) -> bool:
        return self.regex is not None or self.text is not None or bool(self.all)

    def case(self, entry: Advice) -> Case:
        """Returns the case. `entry` is the advice of its entry, used for keys that the case omits."""
        retry = self.retry or entry.retry
        advice = self.advice or (entry.advice if retry in (entry.retry, "once") else _ADVICE[retry])
        hosts = entry.exclude_hosts if self.exclude_hosts is None else self.exclude_hosts
        action = Advice(advice, retry, hosts)
        expect = TextForm(en=self.expect) if isinstance(self.expect, str) else self.expect
        return Case(
            id=self.id,
            says=self.says.build(),
            signs=(self.build(), *(wording.build() for wording in self.also)) if self.has_sign else (),
            finding_signs=tuple(wording.build() for wording in self.signs),
            when=_conditions(self.when),
            unknown=self.unknown.build() if self.unknown else None,
            steps=tuple(step.build() for step in self.do),
            action=action if {self.retry, self.advice, self.exclude_hosts} != {None} else None,
            telling=self.telling,
            source=self.source or "",
            example=self.example,
            other_examples=tuple(wording.example or "" for wording in (*self.also, *self.signs)),
            expect=expect.build() if expect else None,
        )


class MessageForm(CaseForm):
    """A message form: answers a message that many libraries use, whatever entry matches. It has no sign, but a
    condition on the message."""

    when: Annotated[Conditions, Field(min_length=1)]
    retry: YesNo = "no"
    example: Filled
    expect: TextForm | Filled

    @model_validator(mode="after")
    def _of_any_entry(self) -> MessageForm:
        if self.has_sign or self.exclude_hosts is not None:
            raise ValueError("a message form has neither sign nor exclude_hosts; it applies to any entry")
        return self


class MessageForms(_Form):
    """A file of message forms, in the order in which they are tried."""

    title: TextForm
    purpose: Filled
    cases: Annotated[list[MessageForm], Field(min_length=1)]

    def build(self, file: str) -> Entry:
        """Returns an entry that has these cases and no signs."""
        action = Advice("fix-first", "no", False)
        return Entry(
            id=f"{FORMS}.{PurePath(file).stem}",
            kind=Kind.ADVICE,
            area=FORMS,
            owner="",
            title=self.title.build(),
            signs=(),
            action=action,
            causes=(),
            fixes=(),
            cases=tuple(form.case(action) for form in self.cases),
            file=file,
        )


_ADVICE = {"yes": "retry", "no": "fix-first"}  # advice for a case's own `retry`; `once` keeps the entry's advice


def _conditions(when: Conditions) -> tuple[Condition, ...]:
    return tuple(
        Condition(fact, known=asked) if isinstance(asked, bool) else Condition(fact, regex=asked)
        for fact, asked in when.items()
    )


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
    """An entry's whole file."""

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
    causes: list[CauseForm] = []
    fixes: list[FixForm] = []
    checks: list[Filled] = []
    prevent: list[TextForm] = []
    versions: VersionsForm = VersionsForm()
    references: list[Link] = []
    cases: list[CaseForm] = []
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
                raise ValueError("an entry of kind advice needs asks, because nothing else finds it")
        elif not self.signs and not any(case.has_sign or case.signs for case in self.cases):
            raise ValueError(f"an entry of kind {self.kind} needs signs")
        elif not self.examples.match and not any(case.example for case in self.cases):
            raise ValueError("an entry with signs needs examples that match")
        if not self.causes and not self.cases:
            raise ValueError("an entry needs causes, or cases that say what happened")
        if not self.fixes and not any(case.do for case in self.cases):
            raise ValueError("an entry needs fixes, or cases with steps in do")
        return self

    def build(self, file: str, area_roles: Iterable[Role]) -> Entry:
        asks = [(lang, words) for ask in self.asks for lang, words in (("en", ask.en), ("zh", ask.zh)) if words]
        action = self.action.build()
        cases = tuple(case.case(action) for case in self.cases)
        return Entry(
            id=self.id,
            kind=self.kind,
            area=self.area,
            owner=self.owner,
            title=self.title.build(),
            signs=(*(sign.build() for sign in self.signs), *(sign for case in cases for sign in case.all_signs)),
            case_of_signs=(*(None for _ in self.signs), *(at for at, case in enumerate(cases) for _ in case.all_signs)),
            action=action,
            cases=cases,
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


class AddedCases(_Form):
    """A file that adds cases to an entry of another folder. They are tried before the entry's own cases."""

    adds_to: Identifier
    cases: Annotated[list[CaseForm], Field(min_length=1)]
    examples: ExamplesForm = ExamplesForm()

    @model_validator(mode="after")
    def _proved(self) -> AddedCases:
        if not all(case.has_sign and case.example for case in self.cases):
            raise ValueError("an added case needs a sign and an example")
        return self

    def build(self, file: str) -> Entry:
        action = Advice("fix-first", "no")
        cases = tuple(case.case(action) for case in self.cases)
        return Entry(
            id=self.adds_to,
            kind=Kind.CAUSE,
            area=self.adds_to.partition(".")[0],
            owner="user",
            title=Text(self.adds_to, ""),
            signs=tuple(sign for case in cases for sign in case.signs),
            case_of_signs=tuple(at for at, case in enumerate(cases) for _ in case.signs),
            action=action,
            causes=(),
            fixes=(),
            cases=cases,
            no_match_examples=tuple(self.examples.no_match),
            file=file,
            addition=True,
        )


def json_schema() -> str:
    """Returns the JSON Schema of an entry's file for editors, as in `knowledge_base/schema.json`."""
    return json.dumps(EntryForm.model_json_schema(by_alias=True), indent=2, ensure_ascii=False) + "\n"
