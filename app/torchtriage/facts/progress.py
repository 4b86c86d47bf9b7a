"""Reads the progress of a run from its lines: whether they show progress, their steps and epochs. Keeps lines for a
curve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from torchtriage.domain.line import Line, Position
from torchtriage.facts.scan_regex import MatchedRegexes, ScanRegex
from torchtriage.lazy_regex import lazy_regex

# `epoch 3`, `step: 120/1000`, `iteration 5/ 100 |`, `| 12/100 [`, `loss 0.5`; not `epochs: 300`, which is a setting.
PROGRESS = ScanRegex(
    r"(?i)(?:\b|_)(?:step|iter|iteration|epoch|batch|update|it)\b['\"]?(?:[ :=\[#/]{0,4}| {5,12})(\d+)"
    r"|\b(?:steps|iters|epochs)\b[ :=]{0,3}(\d+) ?/ ?\d+"
    r"|\d+%(?:\|[^|\n]{0,400}\|)? ?(\d+)/\d+ \["
    r"|\b(?:eval_|[dg]_)?loss(?:_[dg])?['\"]?[ :=]{1,3}-?\d"
    r"|\btotal_timesteps {0,20}\| ?\d"
    r"|\btrial \d+ (?:finished with values?:|pruned\.)"
    r"|第 ?\d{1,9} ?(?:步|轮|次迭代|个 ?(?:epoch|batch))|(?:损失|步数|轮次)(?:值|函数)?[ :：=]{1,3}-?\d"
)
_BATCH_SIZE = 16  # lines kept for the curve, of those that are added together
_MAX_COUNT = 1024  # lines kept of a run
# Texts with step numbers, the most reliable first. Epochs do not count as steps. The patterns are searched in
# lower-case text and begin with a literal; what may come before it is a look-behind. This is many times as fast.
BAR = "%|"  # every bar contains this
_NUMBER = r"(\d{1,3}(?:,\d{3})+|\d{1,9})\b(?!\.(?!0\b)\d|%)"  # 120 · 1,200 · 119.0; not 0.12, not 2%
_STEPS = (
    lazy_regex(rf"global(?<!\wglobal)[_ ]?steps?['\"]?[ :=]{{0,3}}{_NUMBER}"),
    lazy_regex(
        r"(?:step(?<![^\W_]step)|iteration(?<![^\W_]iteration)(?<!skipped iteration)(?<!nan iteration)"
        r"|iter(?<![^\W_]iter)|update(?<![^\W_]update))s?\b"
        rf"['\"]?[ :=\[#/'\"]{{0,12}}{_NUMBER}"
    ),
    # Epoch: [3][ 50/5005] · Epoch(train) [1][50/1000] · Train: 3 [ 50/1251 ( 4%)]; `Train Epoch: 3 [1280/60000` counts
    # images
    lazy_regex(r"(?:(?<!train )epoch|train)(?:\(train\))?:?\s{0,4}\[?\d+\]?\s{0,4}\[ *(\d{1,9})/ *\d+"),
    # [3/25][ 50/1583] Loss_D: 0.26 Loss_G: 2.31: epochs and steps of a GAN
    lazy_regex(r"\]\[ *(\d{1,9})/ *\d+\]\s{0,8}loss_"),
    # | total_timesteps | 3584 |, of stable-baselines
    lazy_regex(rf"total_timesteps['\"]?[ :=|]{{1,24}}{_NUMBER}"),
    lazy_regex(r"iter\(train\)\s{0,4}\[ *(\d{1,9})/ *\d+"),
    lazy_regex(r"\| *(\d{1,9})/ *\d+ batches"),
    # `batch=8` alone is a setting.
    lazy_regex(
        rf"(?:batch(?<!\wbatch)|it(?<!\wit))\b['\"]?(?:[ :\[#/]{{0,4}}|=(?=\d{{1,9}}/|.{{0,200}}loss)){_NUMBER}"
    ),
)
# HF's Trainer prints fractions of epochs. `epoch:  38%|███▊ | 30/80 [` is a bar of epochs, and 38 none of them.
_EPOCH = lazy_regex(r"(?i)epoch[ :=\[#/'\"]{0,4}(\d{1,6}(?:\.\d{1,6})?)(?![\d.]*%)")
_EPOCH_BAR = lazy_regex(r"(?i)\bepochs?:? *\d{1,3}%\|[^|\n]{0,400}\| ?(\d{1,6})/\d{1,6} \[")
_OF_EPOCHS = lazy_regex(r"(?i)(?:.*\W)?epochs?:? *$")
# Steps of an evaluation are not training steps.
_EVALUATED = lazy_regex(r"\b(?:eval|val|valid|validation|evaluation|test)[ _/](?:step|iter|iteration|batch)s?\b")
# a bar of one item is not a loop
_BAR = lazy_regex(r"([^|\r\n]{0,160}?)\d{1,3}%(?:\|[^|\n]{0,400}\|)? ?(\d{1,9})/(?!1 )\d+ \[")
_BAR_COUNT = lazy_regex(r"\d%(?:\|[^|\n]{0,400}\|)? ?(\d{1,9}/\d{1,9}) \[")
_COUNTED_BAR = lazy_regex(r"[^|\r\n]{0,160}?\d{1,3}%\|[^|\n]{0,400}\| ?\d{1,9}/\d{1,9} \[")
_ELAPSED = lazy_regex(r"\d%\|[^|\n]{0,400}\| ?\d{1,9}/\d{1,9} \[([\d:]{5,12})<")
_MAX_TIME_LENGTH = 12  # characters of hours, minutes and seconds
_FULL_BAR = lazy_regex(r"([^|\r\n]{0,160}?)100%(?:\|[^|\n]{0,400}\|)? ?(\d{1,9})/\2 \[")
_OTHER_BAR = lazy_regex(
    r"(?i)load|download|fetch|map|filter|token|generat|extract|sav|valid|eval|test|cast|prepro|cach|shard|captur|compil|sanity|predict|index|scann"
)
# Bars that are shown before the first step.
_PREPARING = ScanRegex(
    r"(?i)(?:load|download|fetch|map|filter|tokeni[sz]|generating \w+ split|extract|prepro|cach|shard|capture|compil|sanity|scann)"
    r"[^|\n]{0,80}\d%(?:\|[^|\n]{0,400}\|| \d+/\d+ \[)"
)
# A person's description of a run: `it dies in epoch 4`, `crashed after step 200`.
_IN_WORDS = ScanRegex(
    r"(?i)\b(?:in|until|till|during) (?:the )?epoch \d+"
    r"|\b(?:dies|died|crash(?:es|ed)?|hangs?|hung|fails|stops|stopped|killed|stuck)\b.{0,40}\b(?:at|after|on) (?:the )?(?:epoch|step|iteration) \d+"
)
# Steps of a saved checkpoint are from another time: `last/epoch=0-step=5000.ckpt`, `loading checkpoint from ckpt at
# iteration 100`.
_OF_A_FILE = ScanRegex(
    r"(?:^|(?<=\s))\S*(?:/[^\s/]*[a-z][=_-]\d|epoch=\d+-step=\d)\S*"
    r"|\b[Ll]oading (?:\w+ )?checkpoint from \S+ at iteration +\d+"
    r"|\btrained to step \d+"
)
# Trial 3 failed with parameters: {'batch': 64} because …: the parameters of a trial are settings.
_TRIAL = "parameters: {"
_OF_A_TRIAL = lazy_regex(r"\bparameters: \{[^}\n]{0,400}\}")
# [rank 3] step 20 · Rank=3 epoch 1: prefixes that scripts print
_WRITER = lazy_regex(r"(?i)\W{0,3}rank[ =:]{0,2}(\d{1,6})\b")
# The summary of an experiment tracker, which is printed after failures too.
_SUMMARY = ScanRegex(r"^wandb: ")
# A scheduler's steps are steps of the job.
_SCHEDULER = ScanRegex(r"\*\*\* (?:STEP|JOB) |\bjob step\b|StepId=")
_COUNTING = (PROGRESS, _SCHEDULER, _PREPARING, _OF_A_FILE, _IN_WORDS, _SUMMARY)
_IN_PART = (_PREPARING, _OF_A_FILE, _IN_WORDS)  # forms that cover only part of a line; the rest may show progress
REGEXES = _COUNTING
_MAX_LENGTH = 2000  # characters that are read
# "warm_step": 30000 in a configuration; {'seed': 0, 'first_step': 8}, settings printed by a script; Warmup steps:
# 30000; warmup iters: 5 iters: 20 at the start of a benchmark; `--batch 16` of a command; total number of steps 64,
# a count and not a current step.
_A_SETTING = lazy_regex(
    r"\s*\"[\w.-]+\": [^{]{0,80}$|\s*\{(?=['\"])(?![^\n]{0,1500}?['\"_](?:loss|lr|learning_rate|epoch|reward|acc|grad_norm))|(?:.{0,200}\W)?[A-Za-z]\w* steps: ?\d+$|.{0,300}\bwarmup iters: ?\d+ iters: ?\d"
    r"|(?:.{0,400}\s)?--(?:batch|step|iter|iteration|update)s? \d"
    r"|.{0,200}\b[Nn](?:umber|um) of (?:[a-z]{1,20} )?(?:steps|iterations|iters|updates)\b"
)


def counting(text: str) -> MatchedRegexes:
    """Returns the regexes that a piece of a log matches, of those that `counts` uses."""
    return frozenset(regex for regex in _COUNTING if regex.matches(text))


def counts(matched: MatchedRegexes) -> tuple[bool, bool]:
    """Returns whether texts that match these regexes may show that the training loop continues, and whether all of them
    do."""
    can = PROGRESS in matched and _SCHEDULER not in matched and _SUMMARY not in matched
    return can, can and matched.isdisjoint(_IN_PART)


def progressed(text: str) -> bool:
    """Returns whether a text that may show progress of the training loop does show it."""
    for regex in _IN_PART:
        text = regex.compiled.sub(" ", text)
    if _TRIAL in text:
        text = _OF_A_TRIAL.sub(" ", text)
    return bool(PROGRESS.compiled.search(text))


def writer(text: str) -> int | None:
    """Returns the rank at the start of a progress line, or None."""
    found = _WRITER.match(text) if "rank" in text[:7].lower() else None
    return int(found[1]) if found else None


def newest(text: str) -> str:
    """Returns the last state of a progress bar that was redrawn in one line. Returns other lines unchanged, up to the
    number of characters that are read."""
    last = text.rfind(BAR)
    if last < 0 or text.find(BAR) == last:
        return text[:_MAX_LENGTH]
    return text[max(text.rfind("]", 0, last), text.rfind("\r", 0, last)) + 1 :][:_MAX_LENGTH]


def step(text: str) -> int | None:
    """Returns the last training step in a text with progress, or None if it counts epochs or something else."""
    if _A_SETTING.match(text):
        return None
    if _TRIAL in text:
        text = _OF_A_TRIAL.sub(" ", text)
    small = text.lower()
    if ("val" in small or "test" in small) and _EVALUATED.search(small):
        return None
    for regex in _STEPS:
        numbers = regex.findall(small)
        if numbers:
            return int(numbers[-1].replace(",", ""))
    barred = BAR in text or "% " in text
    bars = [number for label, number in _BAR.findall(text) if not _counts_other(label)] if barred else ()
    return int(bars[-1]) if bars else None


def epoch(text: str) -> str | None:
    """Returns the last epoch in a text with progress, as printed."""
    numbers = _EPOCH.findall(text) or (_EPOCH_BAR.findall(text) if BAR in text else [])
    return numbers[-1] if numbers else None


def _counts_other(label: str) -> bool:
    """Returns whether the text before a bar says that it counts something else than training steps."""
    return _OTHER_BAR.search(label) is not None or _OF_EPOCHS.match(label) is not None


def _full(text: str) -> str | None:
    """Returns the text before a full progress bar, or None for other lines. The next bar belongs to another epoch."""
    found = _FULL_BAR.match(newest(text))
    return found[1] if found else None


def bar(text: str) -> str | None:
    """Returns a progress bar up to its count, without the elapsed time, or None for other lines."""
    if BAR not in text:
        return None
    found = _COUNTED_BAR.match(newest(text))
    return found[0] if found else None


def moves(texts: Iterable[str]) -> bool:
    """Returns whether some progress lines show different steps, or the same step in different epochs. A bar that is
    redrawn at the same step shows only one, but its time does not fall: where it does, a new bar of the same loop was
    drawn."""
    first, before = None, ""
    for text in texts:
        number = step(text)
        bars = _BAR_COUNT.findall(text) if number is None else ()
        matched = (number if number is not None else bars[-1] if bars else text, _EPOCH.findall(text)[-1:], _full(text))
        if first is not None and matched != first:
            return True
        first, taken = matched, elapsed(text)
        if taken and taken < before:
            return True
        before = taken
    return False


def elapsed(text: str) -> str:
    """Returns the time that the last bar in a text shows, so that a later time compares as greater, or the empty text.
    Where the time of the same bar falls, the loop has begun again."""
    times = _ELAPSED.findall(text)
    return times[-1].rjust(_MAX_TIME_LENGTH) if times else ""


@dataclass(slots=True)
class SpreadLines:
    """Progress lines from the whole run. The longer the run, the larger the distance between the lines that are
    kept."""

    lines: list[Line] = field(default_factory=list)

    def add(self, lines: Sequence[Line]) -> None:
        """Adds progress lines."""
        self.lines += lines[:: -(-len(lines) // _BATCH_SIZE) or 1]
        if len(self.lines) > _MAX_COUNT:
            self.lines = self.lines[::2]

    def moved(self, to: Callable[[Position], Position]) -> SpreadLines:
        """Returns the lines with file numbers changed to the order of the run."""
        return SpreadLines([line._replace(position=to(line.position)) for line in self.lines])
