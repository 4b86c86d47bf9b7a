"""Measures near matches: `python bench/near_matches.py [--seed 1] [--sample 400]`.

Every other example of each entry, and the error lines of tests/corpus, are distorted as people do when they pass errors
on, and matched with the remaining examples. The negative samples are healthy lines, and errors that no entry names,
made by shuffling words. For each threshold, prints how many of the entries that are found are right (precision) and how
many are found (recall), in total and per distortion.
"""

from __future__ import annotations

import argparse
import html
import json
import random
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from torchtriage.domain.entry import KnowledgeBase
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.loader import load
from torchtriage.matching.near_matches import MIN_LENGTH, NEAR_ENOUGH, NearMatcher
from torchtriage.matching.patterns import Patterns

CORPUS = Path(__file__).parent.parent / "tests" / "corpus"
EVERYWHERE = frozenset({"any", "exception", "line", "exit", "frame"})
THRESHOLDS = (76.0, 80.0, 84.0, 86.0, 88.0, 90.0, 92.0, 94.0, 96.0)
SWAPS = {"Expected": "expected", "expected": "should", "cannot": "can not", "could not": "couldn't", "failed": "failure", "must": "has to",
         "the same": "an equal", "is not": "isn't", "unable to": "can't", "tensors": "tensor", "error": "Error"}  # fmt: skip


def wrapped(text: str, dice: random.Random) -> str:
    return "\n".join(textwrap.wrap(text, 80, break_long_words=True, break_on_hyphens=False))


def quoted(text: str, dice: random.Random) -> str:
    return "\n".join(f"> {line}" for line in wrapped(text, dice).split("\n"))


def escaped(text: str, dice: random.Random) -> str:
    return html.escape(text)


def curly(text: str, dice: random.Random) -> str:
    return text.replace(" '", " ‘").replace("'", "’").replace(' "', " “").replace('"', "”")


def mistyped(text: str, dice: random.Random) -> str:
    letters = list(text)
    for _ in range(max(1, len(text) // 40)):
        place = dice.randrange(len(letters) - 1)
        kind = dice.randrange(3)
        if kind == 0:
            letters[place], letters[place + 1] = letters[place + 1], letters[place]
        elif kind == 1:
            letters[place] += letters[place]
        else:
            letters[place] = ""
    return "".join(letters)


def reworded(text: str, dice: random.Random) -> str:
    words = text.split(" ")
    for old, new in SWAPS.items():
        text = text.replace(old, new)
    if len(words) > 6:
        words = text.split(" ")
        place = dice.randrange(len(words))
        words[place : place + 1] = dice.choice([[], [words[place], "then"]])
        text = " ".join(words)
    return text


def cut_front(text: str, dice: random.Random) -> str:
    return text[int(len(text) * dice.uniform(0.05, 0.25)) :]


def cut_back(text: str, dice: random.Random) -> str:
    return text[: int(len(text) * dice.uniform(0.75, 0.95))]


DISTORTIONS: dict[str, Callable[[str, random.Random], str]] = {
    "wrapped": wrapped, "quoted": quoted, "escaped": escaped, "curly": curly, "mistyped": mistyped, "reworded": reworded,
    "cut in front": cut_front, "cut behind": cut_back,
}  # fmt: skip


def samples(knowledge: KnowledgeBase) -> Iterator[tuple[str, str]]:
    """Yields (entry, message): the last line of every other example, and the evidence of each case of the corpus."""
    for entry in knowledge.entries.values():
        if not entry.catch_all:
            for example in entry.match_examples[1::2]:
                yield entry.id, example.strip().split("\n")[-1]
    for path in sorted(CORPUS.glob("*/case.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        entry = knowledge.entries.get(case["root_cause"])
        if case.get("evidence") and entry is not None and not entry.catch_all:
            yield entry.id, case["evidence"].strip()


def negatives(known: list[tuple[str, str]], dice: random.Random) -> Iterator[str]:
    """Yields texts that are not the message of any entry: lines of healthy logs, and known messages with shuffled
    words."""
    for path in sorted(CORPUS.glob("ok_*/log.txt")):
        yield from path.read_text(encoding="utf-8", errors="replace").splitlines()[:200]
    vocabulary = [word for _, text in known for word in text.split()]
    for _, text in known:
        words = text.split()
        dice.shuffle(words)
        yield " ".join(words)
        yield " ".join(dice.choices(vocabulary, k=len(words)))


def with_all_examples(patterns: Patterns, known: list[tuple[str, str]], dice: random.Random) -> None:
    """Prints for each distortion how many messages a sign still matches, how many are near matches, and the rest, if no
    example is held back. Only messages that are long enough to be compared count."""
    signs = NearMatcher(patterns)
    told = [(entry, message) for entry, message in known if len(message) >= MIN_LENGTH]
    print(
        f"{len(told)} messages, no example held back\n\n| | a sign | nearly | another entry | nothing |\n|---|---|---|---|---|"
    )
    for name, distort in DISTORTIONS.items():
        counts = dict.fromkeys(("sign", "near", "another", "nothing"), 0)
        for entry, message in told:
            text = distort(message, dice)
            shown = {patterns.all[index].entry.id for index in patterns.found(text, EVERYWHERE)}
            near = None if entry in shown else signs.nearest(text)
            right = near is not None and near.entry.id == entry
            counts["sign" if entry in shown else "near" if right else "another" if near else "nothing"] += 1
        print(f"| {name} | " + " | ".join(f"{count / len(told):.3f}" for count in counts.values()) + " |")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=400)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    knowledge = load((BUILT_IN,))
    patterns = Patterns(knowledge)
    seen = {name: replace(entry, match_examples=entry.match_examples[::2]) for name, entry in knowledge.entries.items()}
    signs = NearMatcher(Patterns(replace(knowledge, entries=seen)))

    def exact(text: str) -> set[str]:
        return {patterns.all[index].entry.id for index in patterns.found(text, EVERYWHERE)}

    known = [(entry, message) for entry, message in samples(knowledge) if entry in exact(message)]
    dice.shuffle(known)
    known = known[: options.sample]
    # The near matcher is only asked about messages that no sign matches.
    asked: dict[str, list[tuple[set[str], str]]] = {}
    for name, distort in DISTORTIONS.items():
        texts = ((entry, message, distort(message, dice)) for entry, message in known)
        asked[name] = [(exact(message), text) for entry, message, text in texts if entry not in exact(text)]
    strange = [text for text in negatives(known, dice) if not exact(text)]
    with_all_examples(patterns, known, dice)
    print(
        f"{len(known)} messages, {sum(map(len, asked.values()))} of their distortions shown by no sign, {len(strange)} negatives\n"
    )
    print("| threshold | precision | recall | wrong on negatives | " + " | ".join(asked) + " |")
    print("|" + "---|" * (4 + len(asked)))
    for threshold in THRESHOLDS:
        right = claimed = 0
        parts = []
        for texts in asked.values():
            found = [(entries, near.entry.id) for entries, text in texts if (near := signs.nearest(text, threshold))]
            hits = sum(answer in entries for entries, answer in found)
            right, claimed = right + hits, claimed + len(found)
            parts.append(f"{hits / max(len(found), 1):.2f} / {hits / max(len(texts), 1):.2f}")
        false = sum(signs.nearest(text, threshold) is not None for text in strange)
        total = sum(map(len, asked.values()))
        mark = " ←" if threshold == NEAR_ENOUGH else ""
        row = [
            f"{threshold:.0f}{mark}",
            f"{right / max(claimed + false, 1):.3f}",
            f"{right / max(total, 1):.3f}",
            f"{false}",
            *parts,
        ]
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
