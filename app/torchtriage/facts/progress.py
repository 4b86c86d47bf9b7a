"""How far a run came: progress, steps, phases and closing words, told by its lines."""

from __future__ import annotations

import re

from torchtriage.facts.patterns import Shown, Sign

# `epoch 3`, `step: 120/1000`, `iteration        5/     100 |`, `| 12/100 [`, `loss 0.5`; not `epochs: 300`, a setting.
PROGRESS = Sign(
    r"(?i)(?:\b|_)(?:step|iter|iteration|epoch|batch|update|it)\b['\"]?(?:[ :=\[#/]{0,4}| {5,12})(\d+)"
    r"|\b(?:steps|iters|epochs)\b[ :=]{0,3}(\d+) ?/ ?\d+"
    r"|\d+%(?:\|[^|\n]{0,400}\|)? ?(\d+)/\d+ \["
    r"|\b(?:eval_)?loss['\"]?[ :=]{1,3}-?\d"
    r"|第 ?\d{1,9} ?(?:步|轮|次迭代|个 ?(?:epoch|batch))|(?:损失|步数|轮次)(?:值|函数)?[ :：=]{1,3}-?\d"
)
# What counts steps, the surest first; an epoch is none.
# They are searched in small letters and begin with a literal, with what may stand before it behind: many times as fast.
_NUMBER = r"(\d{1,3}(?:,\d{3})+|\d{1,9})\b(?!\.(?!0\b)\d)"  # 120 · 1,200 · 119.0; not 0.12
_STEPS = (
    re.compile(rf"global(?<!\wglobal)[_ ]?steps?['\"]?[ :=]{{0,3}}{_NUMBER}"),
    re.compile(
        r"(?:step(?<![^\W_]step)|iteration(?<![^\W_]iteration)|iter(?<![^\W_]iter)|update(?<![^\W_]update))s?\b"
        rf"['\"]?[ :=\[#/'\"]{{0,12}}{_NUMBER}"
    ),
    # Epoch: [3][ 50/5005] · Epoch(train) [1][50/1000] · Train: 3 [ 50/1251 (  4%)]; `Train Epoch: 3 [1280/60000` counts images
    re.compile(r"(?:(?<!train )epoch|train)(?:\(train\))?:?\s{0,4}\[?\d+\]?\s{0,4}\[ *(\d{1,9})/ *\d+"),
    re.compile(r"iter\(train\)\s{0,4}\[ *(\d{1,9})/ *\d+"),
    re.compile(r"\| *(\d{1,9})/ *\d+ batches"),
    re.compile(rf"(?:batch(?<!\wbatch)|it(?<!\wit))\b['\"]?[ :=\[#/]{{0,4}}{_NUMBER}"),
)
# Steps of an evaluation are none of the training's.
_EVALUATED = re.compile(r"\b(?:eval|val|valid|validation|evaluation|test)[ _/](?:step|iter|iteration|batch)s?\b")
_BAR = re.compile(r"([^|\r\n]{0,80}?)\d{1,3}%(?:\|[^|\n]{0,400}\|)? ?(\d{1,9})/\d+ \[")
_OTHER_BAR = re.compile(
    r"(?i)load|download|fetch|map|filter|token|generat|extract|sav|valid|eval|test|cast|prepro|cach|shard|capture|compil|sanity|predict|index|scann"
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
_WRITER = re.compile(r"(?i)\W{0,3}rank[ =:]{0,2}(\d{1,6})\b")
# A tracker's summary, which it prints after failures as well.
_SUMMARY = Sign(r"^wandb: ")
# A scheduler counts steps too, but those are of the job.
_SCHEDULER = Sign(r"\*\*\* (?:STEP|JOB) |\bjob step\b|StepId=")
WELL = Sign(
    r"(?i)exits successfully|\bsuccessfully (?:installed|completed|finished)\b|training (?:is )?(?:done|finished|complete[d]?)\b|finished training"
    r"|training completed|'train_runtime'|\"train_runtime\"|COMMAND_EXIT_CODE=\"0\"|exit(?:ed)? (?:with )?(?:code|status) 0\b"
    r"|ENDING TIMING RUN|Max accuracy:|job (?:finished|completed) successfully|all done\b|completed: true"
    r"|max_steps.{0,20} reached|\b\d+ epochs completed in [\d.]+ hours|\bresults saved to (?:\S*/)?runs/|训练(?:已经?)?(?:全部)?(?:完成|结束|完毕)"
)
# Printed at the end of good runs, and by clean-up code right after a failure as well.
WOUND_UP = Sign(r"(?i)train(?:ing)? time[: ]|View run .{0,120} at:")
# The store's barrier was passed: all ranks are there.
JOINED = Sign(r"[Cc]ompleted store-based barrier for |\bSuccessfully assigned \S+ to \S")
# A server told one client that it asked for something wrong, and serves the others.
REFUSED = Sign(r"- \"(?:GET|POST|PUT|PATCH|DELETE) \S{1,200} HTTP/1\.[01]\" 4\d\d\b")
# A server is up and takes requests. A server with several workers says so before it starts them.
SERVES = Sign(
    r"\bUvicorn running on https?://|\bRunning on local URL: |^ \* Running on http|The server is fired up and ready to roll"
)
_PHASES = (
    ("teardown", Sign(
        r"destroy_process_group|(?i:training (?:is )?(?:done|finished|complete[d]?)\b|finished training)|`Trainer\.fit` stopped")),
    ("save", Sign(
        r"(?i)\bsav(?:e|ing)[ _](?:the )?(?:model|checkpoint|state)|\[torch\] saving |torch/serialization\.py\", line \d+, in save")),
    ("load", Sign(
        r"(?i)\bloading (?:the )?(?:checkpoint|state|model|weights|pretrained)|load_state_dict|from_pretrained|in torch\.load|\bloaded checkpoint\b"
        r"|\brestor(?:ing|ed) (?:states|checkpoint|model|all states|from)\b|\bresum(?:e|ing|ed) (?:training )?from\b")),
    ("init", Sign(
        r"(?i)ncclCommInit|NCCL INFO (?:Bootstrap|Init)|\b(?:building|initiali[sz]ing|creating|constructing) (?:the )?(?:\w+ )?(?:model|optimizer|datasets?|dataloaders?)\b"
        r"|building train, |compiling and loading fused kernels|^\W{0,3}number of parameters\b|loading extension module|as PyTorch extensions root")),
    ("rendezvous", Sign(
        r"(?i)\brendezvous\b|store_based_barrier|\bTCPStore\b|init_process_group|Initializing distributed: GLOBAL_RANK|\[Gloo\] Rank \d+ is connected"
        r"|initializing torch distributed|:init_distributed\]|\bdistributed_backend=|\bdistributed init \(rank")),
    ("evaluate", Sign(
        r"(?i)\b(?:evaluating|validating)\b|\brunning (?:evaluation|validation|prediction)|\b(?:evaluation|validation) (?:loss|dataloader|step|epoch|batch|started|begins)"
        r"|\bstart(?:ing)? (?:evaluation|validation)|\bTest: |\bsanity checking\b|\b(?:epoch|iter)\((?:val|test)\)|\b(?:eval|val|validation|evaluation|evaluate|validate|testing):? {1,3}\d+%\|")),
    ("train", Sign(
        r"(?i)\*{3,} running training|before the start of training step|^\W{0,3}training \.\.\.|\b(?:start|begin)(?:ing)? training\b|\btraining starts\b")),
    ("launch", Sign(
        r"Setting OMP_NUM_THREADS environment|Starting elastic_operator|\[runner\.py:\d+:main\] cmd = |\[launch\.py:\d+:main\] WORLD INFO DICT"
        r"|^(?:\++ |\$ )?(?:\S*/)?(?:torchrun|deepspeed|accelerate launch) -")),
)  # fmt: skip
_SIGNS_OF_PHASES = tuple(sign for _, sign in _PHASES)
_COUNTING = (PROGRESS, _SCHEDULER, _PREPARING, _OF_A_FILE, _IN_WORDS, _SUMMARY)
_IN_PART = (_PREPARING, _OF_A_FILE, _IN_WORDS)  # of a line in which something else can show progress
SIGNS = (*_COUNTING, WELL, WOUND_UP, JOINED, REFUSED, SERVES, *_SIGNS_OF_PHASES)


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


def step(text: str) -> int | None:
    """-> the last training step that a text with progress tells; None where it counts epochs or something else."""
    small = text.lower()
    if ("val" in small or "test" in small) and _EVALUATED.search(small):
        return None
    for sign in _STEPS:
        numbers = sign.findall(small)
        if numbers:
            return int(numbers[-1].replace(",", ""))
    barred = "%|" in text or "% " in text
    bars = [number for label, number in _BAR.findall(text) if not _OTHER_BAR.search(label)] if barred else ()
    return int(bars[-1]) if bars else None


def phase(shown: Shown) -> str | None:
    """-> what the run did when it printed a line: save, load, evaluate …"""
    return next((name for name, sign in _PHASES if sign in shown), None)
