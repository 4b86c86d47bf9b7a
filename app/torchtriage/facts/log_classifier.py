"""Whether a log is one of this field: what it tells of its run and, of a short text, who wrote it in; yes or no out."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from torchtriage.domain.line import Line
from torchtriage.facts import Environment

_UNTOLD = 7  # lines with words; of so few, none need say that they are of training,
_HINTED = 40  # and of so few one is enough;
_PLAIN = 3  # so many are enough for any log
_WORDS = re.compile(r"[^\W\d_]{3}")
_FEWEST = 2  # lines that only a person writes
# What people write around an error when they ask for help, and programs do not: themselves, a greeting, a request, the
# headings of a form for bug reports.
_PERSON = re.compile(
    r"\bI(?:['’](?:m|ve|d|ll)|(?= [a-z]))\b|(?i:\bmy (?!name\b)[a-z]|\b(?:thanks|thank you|thx)\b"
    r"|\bany (?:ideas?|help|hints?|suggestions?)\b|\b(?:please|pls) (?:help|advise)"
    r"|\b(?:any|some)(?:one|body) (?:else|know|have|has|help|explain|tell)"
    r"|^\W{0,3}(?:hi|hello|hey|dear|good morning|greetings|(?:best|kind) regards)\b"
    r"|\bhow (?:can|do|should|to) (?:I|we|you|fix|solve)\b"
    r"|^(?:#{1,4} |\*\*)(?:describe the|(?:steps )?to reproduce|steps to|reproduc|expected|actual|current"
    r"|environment|additional context|system info|what happened|bug description|relevant log))"
    r"|请问|大家好|各位|大佬|求助|求教|谢谢|麻烦|怎么(?:办|解决)|如何解决|我[^\W\d_]?(?:在|的|用|们|检查|尝试|试)"
)
# What they speak of when it is about something else.
_ELSEWHERE = re.compile(
    r"(?i)\b(?:web ?(?:site|app|page|shop|hook|server)s?|browser|django|flask|wordpress|php|laravel|rails|mysql"
    r"|postgres(?:ql)?|mongo(?:db)?|redis|nginx|tomcat|android|ios app|xcode|minecraft|discord|telegram|raspberry"
    r"|arduino|home ?assistant|selenium|scrap(?:er|ing)|pygame|tkinter|excel|trading|lambda function|airflow|jenkins"
    r"|ansible|terraform|npm|gradle|maven)\b|网站|网页|浏览器|小程序|爬虫"
)


def is_of_training(environment: Environment, paste: Sequence[Line] | None, claimed: Collection[int]) -> bool:
    """-> whether the log is one of a training run, or a paste that may well be: so short that it need not say so, or
    what somebody wrote who asks for help. `paste` holds the lines of a short text, `claimed` the orders of those that
    belong to tracebacks and reports."""
    sure = environment.surely_of_field
    if environment.foreign or (sure and environment.of_field + environment.around >= _PLAIN):
        return sure and not environment.of_another_program
    if paste is None:
        return False
    told = [line.text for line in paste if line.order not in claimed and _WORDS.search(line.text)]
    return len(told) <= (_HINTED if sure else _UNTOLD) or _asks_for_help(told, sure)


def is_by_a_person(paste: Sequence[Line]) -> bool:
    """-> whether somebody wrote in a paste, beside what programs printed."""
    return any(_PERSON.search(line.text) for line in paste)


def _asks_for_help(texts: Sequence[str], sure: bool) -> bool:
    """-> whether a person wrote the text, and not about another field. `sure`: a line speaks of this one."""
    if sum(bool(_PERSON.search(text)) for text in texts) < _FEWEST:
        return False
    return sure or not any(map(_ELSEWHERE.search, texts))
