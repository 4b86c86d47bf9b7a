"""All numbers that are used to choose a root cause, in one place, each with its unit and its reason."""

from __future__ import annotations

# What a run survived (survived.py)
FAR_BELOW = 100  # lines; progress further below a failure than this is not late output of the failing step
CLEAN_UP_WITHIN = 25  # lines; a closing message this close below a failure comes from its clean-up code
POD_EVENTS_WITHIN = 5  # lines between the event that a pod waits and the event that it was placed: they come as a list
BUFFERED_OUTPUT = 400  # lines of progress that a pipe's buffer of 8 KiB can delay until after the end of a process
ANSWER_WITHIN = 3  # lines; a server logs its answer directly below the failure of the request
BELOW_LOGGING_ERROR = 300  # lines between its heading and the message: the stacks of the error and of the call
FEW_STEPS = 3  # lines of progress; as many after a failure are more than the step that was being printed
TWO_STEPS = 2  # lines of progress; another rank may have printed one of them at the same time
MANY_STEPS = 10  # lines of progress; as many are not late output of the other ranks of a host (8 GPUs)
STEADY_PROGRESS = 30  # lines of progress; as many count even close together, because each rank prints one
WHOLE_TRACEBACK = 60  # frames; the outermost frames of a longer traceback are not kept
LINES_OF_FRAME = 3  # lines of a frame: its file, its code, and the marks below the code
LINES_AROUND_TRACEBACK = 5  # lines around the frames of an exception: head, message, connector, blank lines

# Which failures a launcher caused itself (clean_up.py)
AGENT_POLLS = 5  # seconds at most between two checks of torchelastic's agent on its workers (before torch 2.2)
BELOW_SPAWN_NOTICE = 400  # lines between spawn's notice and the end of the deepest traceback that is kept
SHELL_WORD_WITHIN = 4  # lines; the shell prints Killed this close below the message of a program that kills itself

# What failed first (root_cause.py)
PRINTED_LATE = 1000  # lines; ranks write through buffers, so an earlier message can appear this far below a later one
SHORT_PASTE = 40  # lines; a longer text is not a paste of only a warning
PRINTED_BELOW_WARNING = 2  # lines; a program that prints more than this below its last warning continued

# Reports of tools next to the log (tool_reports.py)
CLOCKS_APART = 120.0  # seconds; `dmesg -T` counts from the boot, so it can be wrong by more than a minute

# How far the clocks of hosts differ (clock_offsets.py)
MIN_COMMON_STEPS = 5  # steps that two hosts logged; with fewer, one slow write shifts the median
STEPS_AGREE = 1.0  # seconds from the median; all ranks end a step together, and many loggers print whole seconds
MAX_DIFFERING_SHARE = 0.25  # share of the common steps; if more differ, the hosts are not in step, or logs were delayed
MIN_OFFSET = 2.0  # seconds; NTP keeps clocks closer than this, and a line can be logged this late
MIN_OFFSET_OF_CALLS = 10.0  # seconds; a rank can be several seconds slower than its peers in every step

# Which rank failed (missing_ranks.py, rank_attribution.py)
MIN_RANKS_LOSING_PEER = 3  # ranks that lost the same rank, if nothing says how many ranks there are
OWN_WORDS = 12  # characters of an NCCL warning that are not part of every other warning
MAX_PROCESSES_PER_HOST = 16  # processes on one host; a larger world spans several (DGX-2 has 16 GPUs)

# Further searches if nothing was found (fallbacks.py)
HANG_SECONDS = 3600.0  # seconds without output; evaluating and saving checkpoints take less
HANG_BEATS = 3  # times that a monitor prints the same line: two may be a coincidence
HANG_FORMS = 3  # different lines that a monitor prints in turn

PASSAGE = 6  # lines that are read as one message, because a chat may have wrapped it
MAX_WARNING_LINES = 20  # lines of a Python warning at most
MAX_ERRORS_REPORTED = 3  # errors without an entry that are reported for one file, or for one paste
ERRORS_ALONE_WITHIN = 5  # lines at the end of a file; an error that nothing else confirms must be among them

# When a text is not a log but only quotes errors (quoting_documents.py)
DEFINITIONS = 3  # lines that import or define; a text with as many is a program's source
CHANGES = 3  # lines of a list of changes; a log that names its commit has fewer
HEADINGS = 2  # headings, and sentences of a manual; a form for bug reports has headings too
TABLE_ROWS = 3  # rows of a table in Markdown
WIDTH = 80  # characters of a line of a page
SENTENCES = 12  # lines of running text in prose; a person who asks for help writes fewer
SENTENCE_EVERY = 5  # lines; the others of prose are headings, lists, blank lines and examples

# How a run without failures ended (ending.py)
LAST_WORDS = 15  # lines with words at a file's end; a contradiction of a good end counts only among them
FEW_WORDS = 4  # lines with words; a longer text is not a question
ROWS_FROM_END = 3  # lines; a row of values this close to the end shows that the run continues
LINES_BELOW_SERVER = 2  # lines; as many below the message that a server is up show that it continues

# How sure a root cause is (confidence.py): points from 0 to 1, beginning with the points of the sign
CERTAIN = 0.9  # points at least for certain: right 99 times out of 100
LIKELY = 0.55  # points at least for likely: right 9 times out of 10
UNNAMED = 0.5  # points if no entry matches the message
AT_MOST_LIKELY = 0.72  # points at most if one kind of evidence is missing or supports another cause as well
AT_MOST_POSSIBLE = 0.5  # points at most if the words may mean something else
AGREEING_RANKS = 2  # ranks with the same exception; as many show what failed, whatever single ranks print
ALONE_BEFORE = 5.0  # seconds between the first rank that failed and the next failure, which then follows from it
