"""The line formats of Python tracebacks. Input: the text of a line. Output: a frame or an exception."""

from __future__ import annotations

import re
from functools import lru_cache

from torchtriage.domain.event import Frame
from torchtriage.lazy_regex import lazy_regex

# A sentence can also contain these words; then a word follows.
HEAD = lazy_regex(r"Traceback \((?:most recent call last|innermost last)\)(?! [a-z])")
FRAME = lazy_regex(r'^(\s*)File "([^"\n]{1,500})", line (\d{1,9})(?:, in (.+))?')
# If the line feeds were removed, the code comes after the function's name, which has no blanks.
_WITH_CODE = lazy_regex(r"(<\w+>|[\w.]+) (?=[^\s\[(])(.+)")
# Code below a frame whose indents were lost: a statement, an assignment, a call or the end of one.
LOST_INDENT = lazy_regex(
    r"(?:return|yield|await|raise|assert|with|for|if|while|del|from|import) \S|[\w.\[\]'\"]+(?:, ?[\w.\[\]'\"]+)* ?(?:[-+*/|&@]|//|\*\*)?= ?\S"
    r"|[A-Za-z_][\w.]*(?:\[[^\]\n]{0,80}\])?\(|\*{1,2}[\w.]+\)"
)
CUT_FRAME = lazy_regex(r'^F(?:i|il)?$|^File(?: ?$| "[^"]*$)')  # where the log ends, or srun put its label again
RICH_FRAME = lazy_regex(r"^[│|]\s*(\S+\.pyx?):(\d{1,9}) in (\S+)")
# In a narrow box, a path takes several lines, and the line number and function have a line of their own.
RICH_PATH = lazy_regex(r"│ (?=\S{0,500}[/\\])[^\s│]{12,500}\s*│?$")
RICH_CODE = lazy_regex(r"│ [❱>] +\d{1,7} │ +(?:│ +)*([^\s│][^\n]{0,300}?) *│$")
GROUP = lazy_regex(r"^\s*(?:[|+] ?)+(?:-+ \d+ -+|-+)?")
SHELL = lazy_regex(r"\++ \w")  # `set -x`, which looks like an exception group's bar
CONNECTOR = lazy_regex(r"(?:During handling of the above exception, another|The above exception was the direct cause)")
NAME = r"(?:(?:[A-Za-z_]\w*|<locals>)\.)*[A-Za-z_]\w*"  # a function can define a class: train.main.<locals>.NoMoreRows
RAISED = lazy_regex(rf"^({NAME})(?::\s?(.*))?$", re.S)
_DRIVE = lazy_regex(r"^[A-Z]:[\\/]")  # a Windows path
# Without a traceback above, a name is only taken for an exception if it ends like one.
BARE = lazy_regex(
    r"^((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt|StopIteration|SystemExit|Fault|OutOfResources|CompilerFailed)"
    r"|(?:[A-Za-z_]\w*\.)+(?:error|timeout|\w*Timeout|Empty|Full|TimeoutExpired))(?::\s(.*)|$)"
)
# Every text that BARE or INTERLEAVED matches contains one of these.
_ENDINGS = ("Error", "Exception", "Interrupt", "StopIteration", "SystemExit", "Fault", "OutOfResources", "CompilerFailed",
            ".error", ".timeout", "Timeout: ", ".Empty", ".Full", ".TimeoutExpired")  # fmt: skip
# Characters before a quoted line: list marks, mail marks, backticks, indents.
MARKS = lazy_regex(r"^(?:[\s>*`\u2022-]|\d+[.)] ){1,12}")
_NAME_OR_MARK = lazy_regex(r"[\w\s>*`\u2022-]")
INTERLEAVED = lazy_regex(r"^((?:\w+\.)*\w*?(?:Error|Exception|Interrupt))\1+:?(?: :)? ?(.*)", re.S)
WITHOUT_COLON = lazy_regex(r"^((?:\w+\.)*\w*?(?:Error|Exception))(?=[a-z'\"(\[])(.+)", re.S)
SOURCE_PLACE = lazy_regex(r"at \d+:\d+:")  # Triton's message: a position, the kernel's lines, a mark below the last one
# Exception: KeyError:Traceback (most recent call last): how torch's DataLoader before 1.2 reported a worker's exception
WRAPPED = lazy_regex(r"[A-Z]\w*(?:Error|Exception):")
UNDERLINE = lazy_regex(r"[~^]+")  # marks the failed part of the line of code above
LIBRARY = lazy_regex(r"site-packages|dist-packages|/lib(?:64)?/python\d|^<frozen|^<string>|/torch/|\\lib\\")
# KeyError                                  Traceback (most recent call last)
NOTEBOOK = lazy_regex(rf"^\W*({NAME}\b\s|(?:\w+\.)*\w*(?:Error|Exception|Interrupt))\s+Traceback \(")
# Frames of a notebook: `/opt/x.py in forward(self, x)` and `<ipython-input-8-32> in <module>` in IPython 7,
# `File ~/x.py:12, in Net.forward(self, x)` and `Cell In[3], line 5` in IPython 8. Lines of source follow.
_CELL_FRAMES = tuple(
    lazy_regex(regex)
    for regex in (
        r"^(?P<file><[\w-][^>\n]{0,120}>|\S[^\n]{0,400}?\.py[xd]?|\S[^\n]{0,400}?\.pxi) in (?P<function><[^>\n]{1,60}>|[^\s(]{1,200})(?:\(.*)?$",
        r"^File (?P<file>[^\s\"][^\n\"]{0,400}?):(?P<line>\d{1,9})(?:, in (?P<function><[^>\n]{1,60}>|[^\s(]{1,200})(?:\(.*)?)?$",
        r"^(?:Cell|Input) In ?\[(?P<cell>\d{1,6})\],? ?(?:line (?P<line>\d{1,9}))?(?:,? ?in (?P<function><[^>\n]{1,60}>|[^\s(]{1,200})(?:\(.*)?)?$",
    )
)
CELL_CODE = lazy_regex(r"^(?: *|(-{1,7}> ?))(\d{1,7})(?: (.*))?$")  # ---> 41     for images in loader:
# The last source line of a traceback that was cut off after it.
RAISE = lazy_regex(rf"^raise ({NAME})(?:\(\s*f?[\"']?([^\"']*))?")
SPAWNED = lazy_regex(r"-- Process (\d{1,6}) terminated with the following error")
OF_DYNAMO = "torch._dynamo."  # the messages of Dynamo's exceptions have several indented paragraphs
DYNAMO_HINTS = ("Hint:", "Developer debug context:")  # the paragraphs below Dynamo's explanation
QUOTES_CODE = "from user code:"  # printed by Dynamo between the message and the frames
FORWARD = "Traceback of forward call that caused the error"  # printed by anomaly mode above the frames
LOG_LINE = lazy_regex(
    r"^(?:\[[^\]\n]{0,80}\]|[WEIF]\d{4} |\d{4}[-/]\d\d[-/]\d\d|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b[: ]|={8}|\*{8}|-{8}|srun:|slurmstepd(?:-[\w.-]{1,80})?:|LAUNCH (?:INFO|WARNING|ERROR) \d"
    r"|\S+\.pyx?:\d+: |wandb: |\(\w+\) \S+@|Process \S+:$|[Ee]poch\b|(?:[Ss]tep|[Ii]ter(?:ation)?)s?[ :=]+\d|第 ?\d+ ?[步轮个]|.{0,80}\d+%\|"
    # what launchers, shells, batch systems and Python itself print when a process has ended
    r"|Child process with PID|\++ \S|\S+: line \d+: +\d+ [A-Z]|(?:Killed|Terminated|Aborted|Segmentation fault|Bus error)(?: \(core dumped\))?$"
    r"|(?:mpirun|mpiexec|prterun|horovodrun|make(?:\[\d+\])?|command terminated|Sender): |Exception (?:ignored )?in |Fatal Python error|terminate called"
    r"|Primary job +terminated|(?:Current t|T)hread 0x|(?:real|user|sys)\t\d|Job \S+ )"
)
# Paddle prints its message last, below the C++ frames: rules, headings, `0   paddle::platform::…`, its type of error.
# MindSpore prints it below a heading between two rules: `- Kernel error:`.
ABOVE_SUMMARY = lazy_regex(
    r"-{8,}$|C\+\+ (?:Traceback|Call Stacks)\b|Python (?:Traceback|Call Stacks)\b|\d{1,3} {1,4}\S|Error Message Summary:$|Not support stack backtrace|\w+Error:\s*$"
    r"|- [A-Z][\w ]{2,60}:$"
)
# An item of a list in a message, such as the reasons of torch.export.
ITEM = lazy_regex(r"^ +(?:[-*\u2022]|\(?\d{1,2}[.)]) \S")
# Lines that look like a logger's but belong to a message: Ascend's own line, and lines that Gloo quotes.
QUOTED = lazy_regex(
    r"\[ERROR\] [\d.:-]+ \(PID: ?\d+, Device: ?\d+, RankID: ?-?\d+\) ERR\d+|\[\S{1,300}/gloo/\S{1,80}:\d+\] "
)
# Types whose message has one line.
ONE_LINE = frozenset(
    {"KeyError", "NameError", "UnboundLocalError", "ZeroDivisionError", "ModuleNotFoundError", "FileNotFoundError",
     "PermissionError", "IsADirectoryError", "NotADirectoryError", "FileExistsError", "ConnectionResetError",
     "ConnectionRefusedError", "BrokenPipeError", "UnicodeDecodeError", "JSONDecodeError", "KeyboardInterrupt"}
)  # fmt: skip
# Types whose message continues in indented lines: pydantic's has one for each wrong field.
INDENTED = frozenset({"ValidationError"})
MAYBE_WRAPPED = 60  # characters; a terminal or a chat may have wrapped a line of this length
RANK_LABEL = lazy_regex(r"\[rank\d+\]: $")  # torch prints it before each line of an uncaught exception
# torch.distributed.checkpoint: every rank raises the errors of some ranks; their tracebacks follow, marked (RANK 3).
ONLY_RANK = lazy_regex(r"CheckpointException ranks:dict_keys\(\[(\d{1,6})\]\)")
# Gaudi's bridge: RuntimeError: [Rank:6] FATAL ERROR :: MODULE:PT_BRIDGE Exception in Launch thread... Ascend's, a line below:
# [ERROR] 2026-01-08-18:07:20 (PID:1292363, Device:1, RankID:1) ERR01100 OPS call acl api failed.
OWN_RANK = lazy_regex(r"\A\[Rank:(\d{1,6})\] FATAL ERROR ::|\(PID: ?\d+, Device: ?\d+, RankID: ?(\d{1,6})\)")
# logger.exception prints a line above the traceback: the exception was caught.
LOGGED = lazy_regex(r"\b(?:ERROR|WARN(?:ING)?|CRITICAL)\b")
# Dynamo's logger prints this for a function that it does not compile because of suppress_errors. Its own frames have
# another format.
UNCOMPILED = lazy_regex(r"\btorch[./]_dynamo[./]convert_frame(?:: \[(?:WARNING|ERROR)\]|\.py:\d{1,6}\]) ")
# [2026-05-01 09:00:00,120] [ERROR] [train.load:808] [PID:3647] [RANK:1] cannot load the model
_LOGGED_RANK = lazy_regex(r"(?i)[\[( ]rank[ =:_]{0,2}(\d{1,6})[\]):, ]")
# Printed above a traceback that did not end the program. Below the hook's own traceback, Python prints the exception
# for which it called the hook.
IGNORED = ("Exception ignored in", "Exception ignored on", "Exception ignored while", "Error in sys.excepthook:")
# Printed above the traceback of an exit handler. The exception that ended the program was raised before.
AT_EXIT = "Error in atexit._run_exitfuncs:"
_NO_CODE = ("", "F", "|", "+", "│", "╭", "╰")  # a line of code rarely begins with one of these
REFUSED = "raised a specific error:"  # printed by Numba, also in warnings, above the reason why an overload failed
# Every line with which a traceback can start, or an exception without one, contains one of these.
WORDS = ("Traceback (", "he above exception", 'File "', "│", "Error", "Exception", "Interrupt", "StopIteration", "SystemExit", "Fault",
         "OutOfResources", "CompilerFailed", ".error", ".timeout", "Timeout: ", ".Empty", ".Full", ".TimeoutExpired", "-- Process ",
         FORWARD)  # fmt: skip


def logged_rank(text: str) -> int | None:
    """Returns the rank that a logger's line names as its own, or None."""
    found = _LOGGED_RANK.search(text)
    return int(found[1]) if found else None


def may_begin(text: str) -> bool:
    """Returns whether this line can start a traceback, or be an exception's last line without one."""
    if "Traceback (" in text or 'File "' in text or text[:1] == "│":
        return True
    if "he above exception" in text:
        return bool(CONNECTOR.match(text.lstrip()))
    if not _NAME_OR_MARK.match(text):
        return False
    for ending in _ENDINGS:  # Most lines contain none. This search takes a third of the time of the regexes below.
        if ending in text:
            text = MARKS.sub("", text)
            return bool(BARE.match(text) or INTERLEAVED.match(text))
    return False


def frame_of(text: str) -> Frame | None:
    """Returns the frame in a line, as Python prints it or inside rich's box, or None."""
    if 'File "' in text:
        return python_frame(text)
    if text[:1] in "│|" and (found := RICH_FRAME.match(text)):
        return Frame(found[1], int(found[2]), found[3], "", not LIBRARY.search(found[1]))
    return None


@lru_cache(maxsize=1024)
def python_frame(text: str) -> Frame | None:
    """Returns the frame in a line in Python's own format, or None. Cached, because ranks print the same frames."""
    found = FRAME.match(text)
    if found is None:
        return None
    function = (found[4] or "").strip()
    both = _WITH_CODE.fullmatch(function)
    name, code = (both[1], both[2]) if both else (function, "")
    return Frame(found[2], int(found[3]), name, code, not LIBRARY.search(found[2]))


def cell_frame(text: str) -> Frame | None:
    """Returns the frame in a line of a notebook's traceback, or None. Its line is 0 if only the arrow below shows it."""
    if text[:1] in " -" or not text:
        return None
    for form in _CELL_FRAMES:
        if found := form.match(text):
            parts = found.groupdict()
            file = parts.get("file") or f"<cell {parts['cell']}>"
            function = parts["function"] or "<module>"
            if function.startswith("<cell line"):
                function = "<module>"
            elif function[:1] != "<" and file.endswith(".py"):
                function = function.rpartition(".")[2]
            return Frame(file, int(parts.get("line") or 0), function, "", not LIBRARY.search(file))
    return None


@lru_cache(maxsize=1024)
def code_of(text: str) -> str:
    """Returns the line of code that Python prints below a frame, or "" if the line may be something else."""
    bare = text.strip()
    other = text[:4] != "    " or bare[:1] in _NO_CODE or "File" in bare or "Traceback (" in bare
    return "" if other or BARE.match(bare) else bare


def raised_of(text: str) -> tuple[str, str] | None:
    """Returns type and message of an exception's last line, even if two ranks wrote it at the same time, or None."""
    if twice := INTERLEAVED.match(text):
        message = twice[2]
        half = len(message) // 2
        return twice[1], message[:half] if message[:half] == message[half:] else message
    found = None if _DRIVE.match(text) else RAISED.match(text)
    if found and _is_class(found[1]):
        return found[1], found[2] or ""
    if glued := WITHOUT_COLON.match(text):
        return glued[1], glued[2]
    return None


def is_whole(kind: str, message: list[str], first: str) -> bool:
    """Returns whether an exception's message is complete. `first` is the line that names the exception."""
    if not any(message):
        return not first.rstrip().endswith(":")
    return kind.rpartition(".")[2] in ONE_LINE and len(message[-1]) < MAYBE_WRAPPED


def _is_class(name: str) -> bool:
    """Returns whether a dotted name can be that of an exception: `socket.timeout`, `zlib.error`, or a capitalized
    class."""
    last = name.rpartition(".")[2].lstrip("_")
    return not last[:1].islower() or ("." in name and last.startswith(("error", "timeout")))
