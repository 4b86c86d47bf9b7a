"""Writes a new file as a patch in the format of `git format-patch`, which `git am` applies."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from email.header import Header
from email.utils import format_datetime

from torchtriage import __version__

_NO_NAME = re.compile(r"[^\w .-]+")


def new_file_patch(path: str, text: str, subject: str, by: str, at: datetime) -> str:
    """Returns a patch that adds the file `path` with `text`, which must end with a newline. `by` is the author, `at`
    the date."""
    lines = text.splitlines()
    blob = hashlib.sha1(f"blob {len(text.encode())}\0".encode() + text.encode(), usedforsecurity=False).hexdigest()
    name = _NO_NAME.sub("", by).strip() or "somebody"
    address = re.sub(r"[^A-Za-z0-9.-]+", ".", name).strip(".") or "somebody"
    titled = Header(f"[PATCH] {' '.join(subject.split())}", "utf-8" if not subject.isascii() else "us-ascii", 72)
    size = f"{len(lines)} insertion{'s' if len(lines) != 1 else ''}(+)"
    head = [
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001",
        f"From: {Header(name, 'us-ascii' if name.isascii() else 'utf-8').encode()} <{address}@localhost>",
        f"Date: {format_datetime(at)}",
        f"Subject: {titled.encode()}",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=UTF-8",
        "Content-Transfer-Encoding: 8bit",
        "",
        "---",
        f" {path} | {len(lines)} {'+' * min(len(lines), 40)}",
        f" 1 file changed, {size}",
        f" create mode 100644 {path}",
        "",
        f"diff --git a/{path} b/{path}",
        "new file mode 100644",
        f"index 0000000..{blob[:7]}",
        "--- /dev/null",
        f"+++ b/{path}",
        f"@@ -0,0 +1{f',{len(lines)}' if len(lines) != 1 else ''} @@",
    ]
    return "\n".join([*head, *(f"+{line}" for line in lines), "-- ", f"torchtriage {__version__}", ""]) + "\n"
