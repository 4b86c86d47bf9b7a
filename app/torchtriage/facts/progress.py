"""How far a run came: the progress and the steps that its lines count, and lines of it for its curve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from torchtriage.domain.line import Line, Position
from torchtriage.facts.sign import Shown, Sign
from torchtriage.lazy_regex import lazy_regex

# `epoch 3`, `step: 120/1000`, `iteration        5/     100 |`, `| 12/100 [`, `loss 0.5`; not `epochs: 300`, a setting.
PROGRESS = Sign(
    r"(?i)(?:\b|_)(?:step|iter|iteration|epoch|batch|update|it)\b['\"]?(?:[ :=\[#/]{0,4}| {5,12})(\d+)"
    r"|\b(?:steps|iters|epochs)\b[ :=]{0,3}(\d+) ?/ ?\d+"
    r"|\d+%(?:\|[^|\n]{0,400}\|)? ?(\d+)/\d+ \["
    r"|\b(?:eval_|[dg]_)?loss(?:_[dg])?['\"]?[ :=]{1,3}-?\d"
    r"|\btotal_timesteps {0,20}\| ?\d"
    r"|第 ?\d{1,9} ?(?:步|轮|次迭代|个 ?(?:epoch|batch))|(?:损失|步数|轮次)(?:值|函数)?[ :：=]{1,3}-?\d"
)
_AT_ONCE = 16  # lines kept for the curve of those that are taken together
_MOST = 1024  # lines kept of a run
# What counts steps, the surest first; an epoch is none.
# They are searched in small letters and begin with a literal, with what may precede it behind: many times as fast.
BAR = "%|"  # what each bar holds
_NUMBER = r"(\d{1,3}(?:,\d{3})+|\d{1,9})\b(?!\.(?!0\b)\d|%)"  # 120 · 1,200 · 119.0; not 0.12, not 2%
_STEPS = (
    lazy_regex(rf"global(?<!\wglobal)[_ ]?steps?['\"]?[ :=]{{0,3}}{_NUMBER}"),
    lazy_regex(
        r"(?:step(?<![^\W_]step)|iteration(?<![^\W_]iteration)(?<!skipped iteration)(?<!nan iteration)"
        r"|iter(?<![^\W_]iter)|update(?<![^\W_]update))s?\b"
        rf"['\"]?[ :=\[#/'\"]{{0,12}}{_NUMBER}"
    ),
    # Epoch: [3][ 50/5005] · Epoch(train) [1][50/1000] · Train: 3 [ 50/1251 (  4%)]; `Train Epoch: 3 [1280/60000` counts images
    lazy_regex(r"(?:(?<!train )epoch|train)(?:\(train\))?:?\s{0,4}\[?\d+\]?\s{0,4}\[ *(\d{1,9})/ *\d+"),
    # [3/25][ 50/1583] Loss_D: 0.26 Loss_G: 2.31, a GAN's epochs and steps
    lazy_regex(r"\]\[ *(\d{1,9})/ *\d+\]\s{0,8}loss_"),
    # |    total_timesteps      | 3584        |, stable-baselines
    lazy_regex(rf"total_timesteps['\"]?[ :=|]{{1,24}}{_NUMBER}"),
    lazy_regex(r"iter\(train\)\s{0,4}\[ *(\d{1,9})/ *\d+"),
    lazy_regex(r"\| *(\d{1,9})/ *\d+ batches"),
    # `batch=8` by itself is a setting.
    lazy_regex(
        rf"(?:batch(?<!\wbatch)|it(?<!\wit))\b['\"]?(?:[ :\[#/]{{0,4}}|=(?=\d{{1,9}}/|.{{0,200}}loss)){_NUMBER}"
    ),
)
_EPOCH = lazy_regex(r"(?i)epoch[ :=\[#/'\"]{0,4}(\d{1,6}(?:\.\d{1,6})?)")  # HF's Trainer counts them in parts
# Steps of an evaluation are none of the training's.
_EVALUATED = lazy_regex(r"\b(?:eval|val|valid|validation|evaluation|test)[ _/](?:step|iter|iteration|batch)s?\b")
_BAR = lazy_regex(r"([^|\r\n]{0,80}?)\d{1,3}%(?:\|[^|\n]{0,400}\|)? ?(\d{1,9})/(?!1 )\d+ \[")  # of one thing: no loop
_BAR_COUNT = lazy_regex(r"\d%(?:\|[^|\n]{0,400}\|)? ?(\d{1,9}/\d{1,9}) \[")
_COUNTED_BAR = lazy_regex(r"[^|\r\n]{0,160}?\d{1,3}%\|[^|\n]{0,400}\| ?\d{1,9}/\d{1,9} \[")
_FULL_BAR = lazy_regex(r"([^|\r\n]{0,160}?)100%(?:\|[^|\n]{0,400}\|)? ?(\d{1,9})/\2 \[")
_OTHER_BAR = lazy_regex(
    r"(?i)load|download|fetch|map|filter|token|generat|extract|sav|valid|eval|test|cast|prepro|cach|shard|captur|compil|sanity|predict|index|scann"
)
# Bars that fill before the first step.
_PREPARING = Sign(
    r"(?i)(?:load|download|fetch|map|filter|tokeni[sz]|generating \w+ split|extract|prepro|cach|shard|capture|compil|sanity|scann)"
    r"[^|\n]{0,80}\d%(?:\|[^|\n]{0,400}\|| \d+/\d+ \[)"
)
# What a person says of a run: `it dies in epoch 4`, `crashed after step 200`.
_IN_WORDS = Sign(
    r"(?i)\b(?:in|until|till|during) (?:the )?epoch \d+"
    r"|\b(?:dies|died|crash(?:es|ed)?|hangs?|hung|fails|stops|stopped|killed|stuck)\b.{0,40}\b(?:at|after|on) (?:the )?(?:epoch|step|iteration) \d+"
)
# A file's name tells steps of another time: `last/epoch=0-step=5000.ckpt`.
_OF_A_FILE = Sign(r"(?:^|(?<=\s))\S*(?:/[^\s/]*[a-z][=_-]\d|epoch=\d+-step=\d)\S*")
# [rank 3] step 20 · Rank=3 epoch 1: what a script puts before its own lines
_WRITER = lazy_regex(r"(?i)\W{0,3}rank[ =:]{0,2}(\d{1,6})\b")
# A tracker's summary, which it prints after failures as well; the step at which a checkpoint was saved.
_SUMMARY = Sign(r"^wandb: |\b[Ll]oading (?:\w+ )?checkpoint from \S+ at iteration")
# A scheduler counts steps too, but those are of the job.
_SCHEDULER = Sign(r"\*\*\* (?:STEP|JOB) |\bjob step\b|StepId=")
_COUNTING = (PROGRESS, _SCHEDULER, _PREPARING, _OF_A_FILE, _IN_WORDS, _SUMMARY)
_IN_PART = (_PREPARING, _OF_A_FILE, _IN_WORDS)  # of a line in which something else can show progress
SIGNS = _COUNTING
_LONGEST = 2000  # characters that are looked at
# "warm_step": 30000, of a configuration, {'seed': 0, 'first_step': 8}, settings that a script prints, Warmup steps: 30000, warmup iters: 5 iters: 20 of a benchmark's head and
# total number of steps 64: how many there are, and not which one runs.
_A_SETTING = lazy_regex(
    r"\s*\"[\w.-]+\": [^{]{0,80}$|\s*\{(?=['\"])(?![^\n]{0,1500}?['\"_](?:loss|lr|learning_rate|epoch|reward|acc|grad_norm))|(?:.{0,200}\W)?[A-Za-z]\w* steps: ?\d+$|.{0,300}\bwarmup iters: ?\d+ iters: ?\d"
    r"|.{0,200}\b[Nn](?:umber|um) of (?:[a-z]{1,20} )?(?:steps|iterations|iters|updates)\b"
)


def counting(text: str) -> Shown:
    """-> the signs that a piece of a log shows, of those that `counts` asks for."""
    return frozenset(sign for sign in _COUNTING if sign.shows(text))


def counts(shown: Shown) -> tuple[bool, bool]:
    """-> whether texts with these signs can show that the training loop goes on, and whether all of them do."""
    can = PROGRESS in shown and _SCHEDULER not in shown and _SUMMARY not in shown
    return can, can and shown.isdisjoint(_IN_PART)


def progressed(text: str) -> bool:
    """-> whether a text, which can show that the training loop goes on, shows it."""
    for sign in _IN_PART:
        text = sign.regex.sub(" ", text)
    return bool(PROGRESS.regex.search(text))


def writer(text: str) -> int | None:
    """-> the rank with which a line of progress begins."""
    found = _WRITER.match(text) if "rank" in text[:7].lower() else None
    return int(found[1]) if found else None


def newest(text: str) -> str:
    """-> the end of a line in which a bar was drawn again and again, with its last state; other lines as they are, as
    far as they are looked at."""
    last = text.rfind(BAR)
    if last < 0 or text.find(BAR) == last:
        return text[:_LONGEST]
    return text[max(text.rfind("]", 0, last), text.rfind("\r", 0, last)) + 1 :][:_LONGEST]


def step(text: str) -> int | None:
    """-> the last training step that a text with progress tells; None where it counts epochs or something else."""
    if _A_SETTING.match(text):
        return None
    small = text.lower()
    if ("val" in small or "test" in small) and _EVALUATED.search(small):
        return None
    for sign in _STEPS:
        numbers = sign.findall(small)
        if numbers:
            return int(numbers[-1].replace(",", ""))
    barred = BAR in text or "% " in text
    bars = [number for label, number in _BAR.findall(text) if not _OTHER_BAR.search(label)] if barred else ()
    return int(bars[-1]) if bars else None


def epoch(text: str) -> str | None:
    """-> the last epoch that a text with progress tells, as it writes it."""
    numbers = _EPOCH.findall(text)
    return numbers[-1] if numbers else None


def _full(text: str) -> str | None:
    """-> what precedes a bar that is full; None for another line. The next one is another epoch's."""
    found = _FULL_BAR.match(newest(text))
    return found[1] if found else None


def bar(text: str) -> str | None:
    """-> a bar up to what it counts, without the time that it took; None for another line."""
    if BAR not in text:
        return None
    found = _COUNTED_BAR.match(newest(text))
    return found[0] if found else None


def moves(texts: Iterable[str]) -> bool:
    """-> whether some lines of progress show different steps, or the same one of another epoch. A bar that is drawn again
    at the same step shows one."""
    first = None
    for text in texts:
        told = step(text)
        bars = _BAR_COUNT.findall(text) if told is None else ()
        shown = (told if told is not None else bars[-1] if bars else text, _EPOCH.findall(text)[-1:], _full(text))
        if first is not None and shown != first:
            return True
        first = shown
    return False


@dataclass(slots=True)
class SpreadLines:
    """Lines of progress from the whole run. The longer the run, the further apart are the lines that stay."""

    lines: list[Line] = field(default_factory=list)

    def add(self, lines: Sequence[Line]) -> None:
        """Takes lines of progress."""
        self.lines += lines[:: -(-len(lines) // _AT_ONCE) or 1]
        if len(self.lines) > _MOST:
            self.lines = self.lines[::2]

    def moved(self, to: Callable[[Position], Position]) -> SpreadLines:
        """-> the lines with whole files moved in the order of the run."""
        return SpreadLines([line._replace(position=to(line.position)) for line in self.lines])
