"""`/knowledge/{entry}`: a whole entry with its history in this service, and a form to test a text against it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from torchtriage.answer.explain_match import Why
from torchtriage.answer.templates import with_open_slots
from torchtriage.domain.entry import Case, Entry, KnowledgeBase, Language
from torchtriage.domain.entry_history import EntryHistory
from torchtriage.errors import BadInput, NotFound
from torchtriage.knowledge import BUILT_IN
from torchtriage.services.entry_history import entry_history
from torchtriage.services.explain_match import MAX_TEXT, explain_text
from torchtriage.services.service import Service
from torchtriage.services.service_info import folder_of
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.charts import Drawn, spark
from torchtriage.web.pages.error_page import wants_page
from torchtriage.web.pages.form_data import read_form
from torchtriage.web.pages.groups import last_days
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import GroupItem, IncidentItem, group_items, incident_items
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.sign_descriptions import SignPart, signs_in_words

router = APIRouter()
_DAYS = 90
_MAX_LENGTH = 1_200_000  # bytes of the form: a character can take nine of them, most take one
FEW = 5  # people who said whether verdicts were right; a share of fewer tells nothing


@dataclass(frozen=True, slots=True)
class Source:
    """The file of an entry. `folder` is None if the folder no longer exists. `replaces`: the entry replaces a built-in
    entry with the same id."""

    folder: str | None
    file: str
    built_in: bool
    replaces: bool


@dataclass(frozen=True, slots=True)
class CaseItem:
    """A case as text for any log, with … in place of values. `retry` is None if the case uses the entry's advice."""

    id: str
    says: str
    unknown: str | None
    steps: tuple[str, ...]
    retry: str | None
    source: str
    example: str | None
    pack: str


@dataclass(frozen=True, slots=True)
class EntryPage:
    """`trend` covers the last `days`. `few`: too few people gave feedback to show a percentage. `samples` are example
    messages of the entry and its cases."""

    entry: Entry
    samples: tuple[str, ...]
    cases: tuple[CaseItem, ...]
    signs: tuple[tuple[SignPart, ...], ...]
    related: Related
    history: EntryHistory
    trend: Drawn
    days: int
    few: bool
    recent: tuple[IncidentItem, ...]
    groups: tuple[GroupItem, ...]
    source: Source
    most_text: int


@dataclass(frozen=True, slots=True)
class TryPage:
    """`why` is None if nothing was tried yet, or if `problem` says what is wrong with the text. `root` is the title of
    the text's root cause, if that is another entry."""

    entry: Entry
    text: str
    why: Why | None
    root: str | None
    problem: str | None
    most_text: int


@router.get("/knowledge/{entry_id}")
def entry(request: Request, service: ServiceDep, entry_id: str) -> Response:
    found, lang = _entry(service, entry_id), language(request)
    history = entry_history(service, found.id, _DAYS)
    page = EntryPage(
        entry=found,
        samples=found.match_examples + tuple(case.example for case in found.cases if case.example),
        cases=tuple(_case(case, lang) for case in found.cases),
        signs=signs_in_words(found),
        related=related(found, service.knowledge),
        history=history,
        trend=spark(history.by_day, last_days(_DAYS)),
        days=_DAYS,
        few=history.precision.right + history.precision.wrong < FEW,
        recent=incident_items(history.incidents, service.knowledge, lang),
        groups=group_items(history.groups, service.knowledge, lang),
        source=_source(service, found),
        most_text=MAX_TEXT,
    )
    return render(request, "entry.html", page)


@router.get("/knowledge/{entry_id}/try")
def ask(request: Request, service: ServiceDep, entry_id: str) -> Response:
    """Shows only the form."""
    return render(request, "entry_try.html", TryPage(_entry(service, entry_id), "", None, None, None, MAX_TEXT))


@router.post("/knowledge/{entry_id}/try")
async def try_text(request: Request, service: ServiceDep, entry_id: str) -> Response:
    """Shows why the entry does or does not match the submitted text, which is not stored."""
    found, lang, text, status = _entry(service, entry_id), language(request), "", 200
    why, problem = None, None
    try:
        text = (await read_form(request, _MAX_LENGTH)).get("text", "")
        why = await to_thread.run_sync(explain_text, service, text, found.id, lang)
    except BadInput as error:
        if not wants_page(request):
            raise
        problem, status = error.message, error.status
    root = service.knowledge.entries.get(why.root_cause or "") if why else None
    title = root.title.in_(lang) if root and root.id != found.id else None
    page = TryPage(found, text[:MAX_TEXT], why, title, problem, MAX_TEXT)
    return await to_thread.run_sync(render, request, "entry_try.html", page, status)


def _case(case: Case, lang: Language) -> CaseItem:
    return CaseItem(
        id=case.id,
        says=with_open_slots(case.says.in_(lang)),
        unknown=with_open_slots(case.unknown.in_(lang)) if case.unknown else None,
        steps=tuple(with_open_slots(step.do.in_(lang)) for step in case.steps),
        retry=case.action.retry_word if case.action else None,
        source=case.source,
        example=case.example,
        pack=case.pack,
    )


def _entry(service: Service, entry_id: str) -> Entry:
    found = service.knowledge.entries.get(entry_id)
    if found is None:
        raise NotFound("no such entry", entry=entry_id[:100])
    return found


def _source(service: Service, found: Entry) -> Source:
    folder = folder_of(service, found)
    built_in = folder == BUILT_IN
    replaces = folder is not None and not built_in and (BUILT_IN / found.file).exists()
    return Source(folder.name if folder else None, found.file, built_in, replaces)


@dataclass(frozen=True, slots=True)
class Related:
    """`explains` and `explained_by` are entries, by id."""

    explains: tuple[Entry, ...]
    explained_by: tuple[Entry, ...]


def related(entry: Entry, knowledge: KnowledgeBase) -> Related:
    others = [other for _, other in sorted(knowledge.entries.items()) if other.id != entry.id]
    return Related(
        tuple(other for other in others if _explains(entry, other)),
        tuple(other for other in others if _explains(other, entry)),
    )


def _explains(cause: Entry, effect: Entry) -> bool:
    return any(fnmatchcase(effect.id, pattern) for pattern in cause.explains)
