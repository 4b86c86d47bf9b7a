"""Returns a stored verdict in the reader's language.

Titles, causes, fixes and the answer come from the current knowledge base. If it no longer has the entry, the stored
texts are used.
"""

from __future__ import annotations

from dataclasses import replace

from torchtriage.answer import inconclusive_answer
from torchtriage.answer.action import advise, after_earlier_runs, explained, healthy_action, inconclusive_action
from torchtriage.answer.answer_text import MAX_STEPS, write_answer
from torchtriage.answer.failure_facts.frames import short_path
from torchtriage.answer.reasons import reason_sentences
from torchtriage.answer.windows_commands import for_operating_system
from torchtriage.domain.entry import Entry, KnowledgeBase, Language
from torchtriage.domain.verdict import Action, Answer, AnswerStep, Candidate, RootCause, Verdict


def localized(verdict: Verdict, knowledge: KnowledgeBase, lang: Language) -> Verdict:
    """Returns the verdict in this reader's language."""
    root = verdict.root_cause
    entry = knowledge.entries.get(root.entry) if root and root.entry else None
    if root and root.because:
        root = replace(root, reasons=reason_sentences(root.because, lang))
    versions = verdict.run.versions_inferred | verdict.run.versions
    if root and entry:
        root = explained(root, entry, versions, lang)
    candidates = tuple(_candidate(candidate, knowledge, lang) for candidate in verdict.candidates)
    action = _action(verdict, entry, knowledge, lang)
    if root:
        answer: Answer | None = _answer(verdict.answer, root, entry, knowledge, versions, lang)
    else:
        answer = inconclusive_answer.in_language(verdict.answer, lang) if verdict.answer else None
    return replace(verdict, root_cause=root, candidates=candidates, action=action, answer=answer)


def title_of(entry: str | None, knowledge: KnowledgeBase, lang: Language, stored: str | None = None) -> str | None:
    """Returns the entry's current title, or else the stored title, or else the entry's id."""
    known = knowledge.entries.get(entry) if entry else None
    return known.title.in_(lang) if known else stored or entry


def _candidate(candidate: Candidate, knowledge: KnowledgeBase, lang: Language) -> Candidate:
    return replace(candidate, title=title_of(candidate.entry, knowledge, lang, candidate.title) or candidate.entry)


def _action(verdict: Verdict, entry: Entry | None, knowledge: KnowledgeBase, lang: Language) -> Action:
    """Returns the stored action. Only its sentence is updated, if nothing else about the action has changed."""
    stored, root = verdict.action, verdict.root_cause
    if root is None:
        today = inconclusive_action(lang) if verdict.outcome == "inconclusive" else healthy_action(lang)
    elif root.entry and entry is None:
        return stored
    else:
        form = knowledge.form(verdict.answer.form) if verdict.answer else None
        today = advise(entry, root.words, stored.exclude_hosts, lang, verdict.answer, form)
        today = after_earlier_runs(verdict.earlier_runs, root.entry, today, lang)
    return replace(stored, reason=today.reason) if today.advice == stored.advice else stored


def _answer(
    stored: Answer | None,
    root: RootCause,
    entry: Entry | None,
    knowledge: KnowledgeBase,
    versions: dict[str, str],
    lang: Language,
) -> Answer:
    """Returns the answer with the text of the current knowledge base. A verdict that was stored before answers existed
    gets an answer from what can be said without the log."""
    if entry is not None or root.entry is None:
        form = knowledge.form(stored.form) if stored else None
        answer = write_answer(stored or Answer(None, "", values=_values(root)), root, entry, versions, lang, form)
        return for_operating_system(answer, knowledge.vocabulary)
    if stored is not None:
        return stored
    steps = (AnswerStep(fix.title, next(iter(fix.commands), None)) for fix in root.fixes[: MAX_STEPS - 1])
    return Answer(None, root.title, tuple(steps), values=_values(root))


def _values(root: RootCause) -> dict[str, str]:
    """Returns the values of an answer's sentences that the root cause itself contains."""
    found = dict(root.captured)
    if root.exception is None:
        return found
    frames = [frame for frame in root.exception.frames if frame.file]
    own = next((frame for frame in reversed(frames) if frame.user_code), None)
    if own is not None:
        found |= {"where": f"{short_path(own.file)}:{own.line}", "code": own.code.strip()}
    elif frames:
        found["library_frame"] = f"{short_path(frames[-1].file)}:{frames[-1].line}"
    message = next((line.strip() for line in root.exception.message.split("\n") if line.strip()), "")
    found |= {"exception": root.exception.type.rpartition(".")[2], "message": message}
    return {name: value for name, value in found.items() if value}
