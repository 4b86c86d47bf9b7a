"""How far a run came: progress, steps, phases and closing words, told by its lines."""

from __future__ import annotations

import re

Shown = frozenset[re.Pattern[str]]

# `epoch 3`, `step: 120/1000`, `iteration        5/     100 |`, `| 12/100 [`, `loss 0.5`; not `epochs: 300`, a setting.
PROGRESS = re.compile(
    r"(?i)(?:\b|_)(?:step|iter|iteration|epoch|batch|update|it)\b['\"]?(?:[ :=\[#/]{0,4}| {5,12})(\d+)"
    r"|\b(?:steps|iters|epochs)\b[ :=]{0,3}(\d+) ?/ ?\d+"
    r"|\d+%\|[^|\n]{0,400}\| ?(\d+)/\d+ \["
    r"|\bloss['\"]?[ :=]{1,3}-?\d"
)
# What counts steps, the surest first; an epoch is none.
_STEPS = (
    re.compile(r"(?i)\bglobal[_ ]?steps?['\"]?[ :=]{0,3}(\d{1,9})\b"),
    re.compile(r"(?i)(?:\b|_)(?:step|iter|iteration|update)s?\b['\"]?[ :=\[#/]{0,12}(\d{1,9})\b"),
    # Epoch: [3][ 50/5005] · Epoch(train) [1][50/1000] · Train: 3 [ 50/1251 (  4%)]
    re.compile(r"(?:Epoch|Train)(?:\(train\))?:? ?\[?\d+\]? ?\[ *(\d{1,9})/ *\d+"),
    re.compile(r"(?i)\b(?:batch|it)\b['\"]?[ :=\[#/]{0,4}(\d{1,9})\b"),
)
_BAR = re.compile(r"([^|\r\n]{0,80}?)\d{1,3}%\|[^|\n]{0,400}\| ?(\d{1,9})/\d+ \[")
_OTHER_BAR = re.compile(
    r"(?i)load|download|fetch|map|filter|token|generat|extract|sav|valid|eval|test|cast|prepro|cach|shard|capture|compil|sanity|predict|index"
)
# A scheduler counts steps too, but those are of the job.
_SCHEDULER = re.compile(r"\*\*\* (?:STEP|JOB) |\bjob step\b|StepId=")
WELL = re.compile(
    r"(?i)exits successfully|\bsuccessfully (?:installed|completed|finished)\b|training (?:is )?(?:done|finished|complete[d]?)\b|finished training"
    r"|training completed|'train_runtime'|\"train_runtime\"|COMMAND_EXIT_CODE=\"0\"|exit(?:ed)? (?:with )?(?:code|status) 0\b"
    r"|View run .{0,120} at:|ENDING TIMING RUN|Max accuracy:|job (?:finished|completed) successfully|all done\b|completed: true"
    r"|max_steps.{0,20} reached"
)
# Printed at the end of good runs, and by clean-up code right after a failure as well.
WOUND_UP = re.compile(r"(?i)train(?:ing)? time[: ]")
_PHASES = (
    ("teardown", re.compile(r"destroy_process_group|(?i:training (?:is )?(?:done|finished|complete[d]?)\b|finished training)")),
    ("save", re.compile(r"(?i)\bsav(?:e|ing)[ _](?:model|checkpoint|state)|torch/serialization\.py\", line \d+, in save")),
    ("load", re.compile(r"(?i)loading (?:checkpoint|state|model|weights)|load_state_dict|from_pretrained|in torch\.load")),
    ("evaluate", re.compile(r"(?i)\b(?:evaluat|validat)(?:e|ing|ion)\b|\bTest: ")),
    ("rendezvous", re.compile(r"(?i)\brendezvous\b|store_based_barrier|\bTCPStore\b|init_process_group|Initializing distributed: GLOBAL_RANK")),
    ("init", re.compile(r"(?i)ncclCommInit|NCCL INFO (?:Bootstrap|Init)|\b(?:building|initiali[sz]ing) (?:the )?(?:model|optimizer)")),
)  # fmt: skip
_SIGNS_OF_PHASES = tuple(sign for _, sign in _PHASES)
SIGNS = (PROGRESS, _SCHEDULER, WELL, WOUND_UP, *_SIGNS_OF_PHASES)


def progressed(shown: Shown) -> bool:
    """-> whether a text shows that the run goes on."""
    return PROGRESS in shown and _SCHEDULER not in shown


def step(text: str) -> int | None:
    """-> the last training step that a text with progress tells; None where it counts epochs or something else."""
    for sign in _STEPS:
        numbers = sign.findall(text)
        if numbers:
            return int(numbers[-1])
    bars = [number for label, number in _BAR.findall(text) if not _OTHER_BAR.search(label)]
    return int(bars[-1]) if bars else None


def phase(shown: Shown) -> str | None:
    """-> what the run did when it printed a line: save, load, evaluate …"""
    return next((name for name, sign in _PHASES if sign in shown), None)
