"""Recognizes what a file is by its first bytes: a log, or evidence such as a dump or stacks."""

from __future__ import annotations

from enum import StrEnum

from torchtriage.lazy_regex import lazy_regex

HEAD = 64 << 10  # bytes of a file that are looked at
_DUMP_WORDS = (b'"entries"', b'"pg_config"', b'"pg_status"', b'"profiling_name"', b'"process_group"', b'"seq_id"')
_FEWEST_WORDS = 2
# Process 4711: /usr/bin/python train.py --fsdp / Python v3.11.7 (/usr/bin/python3.11)
_PY_SPY = lazy_regex(rb"\s*(?:# [^\n]*\n)*Process \d{1,9}: [^\n]*\nPython v\d")
# Timeout (0:10:00)! / Fatal Python error: Aborted / Current thread 0x00007f5c (most recent call first):
_FAULTHANDLER = lazy_regex(
    rb"\s*(?:Timeout \([\d:. a-z,]{1,40}\)!\s+)?(?:Current thread|Thread) 0x[0-9a-f]{1,16}[^\n]{0,60} \(most recent call first\):"
)
# NCCL version 2.28.9 compiled with CUDA 12.9 / CUDA runtime version … / (empty) / Job summary / ===========
_RAS = lazy_regex(rb"(?:NCCL version [^\n]*\n)?(?:CUDA runtime version [^\n]*\n)?\s*Job summary\s*\n=+\s*\n")
_ERROR_FILE = lazy_regex(rb'\s*\{"message": \{"(?:message|extraInfo)": ')


class FileForm(StrEnum):
    """What the engine takes a file for; the verdict's `sources` name it so."""

    LOG = "log"
    FLIGHT_RECORDER = "flight recorder"  # PyTorch's dump of one rank, as JSON
    PY_SPY = "py-spy"  # the stacks of one process, as text or JSON
    FAULTHANDLER = "faulthandler"  # the same by Python's own module; a log can begin so, too
    NCCL_RAS = "NCCL RAS report"
    ERROR_FILE = "torchelastic error file"
    UNREAD = "unread"


def form_of(head: bytes) -> FileForm:
    """-> the form of a file that begins with these bytes; all that is no evidence by itself is a log."""
    begin = head[:HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin[:1] in (b"{", b"["):
        return _form_of_json(begin)
    if _PY_SPY.match(begin):
        return FileForm.PY_SPY
    if _RAS.match(begin):
        return FileForm.NCCL_RAS
    return FileForm.FAULTHANDLER if _FAULTHANDLER.match(begin) else FileForm.LOG


def _form_of_json(begin: bytes) -> FileForm:
    if b'"flight_recorder": "unread"' in begin[:64] or sum(word in begin for word in _DUMP_WORDS) >= _FEWEST_WORDS:
        return FileForm.FLIGHT_RECORDER
    if b'"owns_gil"' in begin and b'"frames"' in begin:
        return FileForm.PY_SPY
    if b'"nccl_version"' in begin and b'"communicators' in begin:
        return FileForm.NCCL_RAS
    return FileForm.ERROR_FILE if _ERROR_FILE.match(begin) else FileForm.LOG
