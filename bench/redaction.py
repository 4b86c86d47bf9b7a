"""Times the redaction of secrets: `python bench/redaction.py [--size 1000000]`.

Prints, for each kind of text, megabytes per second of CPU time, and how much longer a text of four times the size
takes: 4 if the time is proportional. To compare with another checkout, run both in turn.
"""

from __future__ import annotations

import argparse
import time

from torchtriage.reading.redaction.redact import redacted

_BLOCK = 1 << 20
TEXTS = {
    "healthy": b"[rank3]: 2026-01-02 10:00:00,123 INFO train.py:33 step 17 | loss 2.31 | lr 3e-4 | tokens/s 18233\n",
    "names": b"password authentication failed for user ann; the token has expired\n",
    "secrets": b"DB_PASSWORD=Winter2025! api_key: aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD\n",
    "headers": b"user      password    uid\n",
    "bars": b"| password | token | secret |\n",
    "one line of cells": b"password,",
    "one line of logins": b"login aA1!",
    "options": b"x -u a -p ",
    "long words": b"password: " + b"a" * 60 + b"1 ",
    "base64": b"aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD/",
    "cells of HTML": b"<td>password</td>\n",
    "blocks of YAML": b"password: |\n",
}


def seconds(text: bytes) -> float:
    """Returns the CPU seconds of the redaction of a text."""
    begun = time.process_time()
    for _ in redacted(text[at : at + _BLOCK] for at in range(0, len(text), _BLOCK)):
        pass
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000, help="bytes of the smaller text")
    size = parser.parse_args().size
    seconds(b"password: x\n")  # compiles the patterns
    for name, line in TEXTS.items():
        small = line * (size // len(line))
        took = seconds(small)
        print(f"{name:<20} {len(small) / took / 1e6:8.1f} MB/s   four times as much: {seconds(small * 4) / took:5.1f}")


if __name__ == "__main__":
    main()
