"""All numbers by which a root cause is chosen, in one table: each with its unit and why it is what it is."""

from __future__ import annotations

# What a run survived (survived.py)
FAR_BELOW = 100  # lines; progress further below a failure than this is no late output of the failing step
CLEAN_UP_WITHIN = 25  # lines; closing words this near below a failure come from its clean-up code
POD_EVENTS_WITHIN = 5  # lines between the event that a pod waits and the one that it was placed: they come as a list
BUFFERED_OUTPUT = 400  # lines; a pipe's buffer of 8 KiB holds back as much progress behind the end of a process
ANSWER_WITHIN = 3  # lines; a server logs its answer right below what went wrong with the request
BELOW_LOGGING_ERROR = 300  # lines between its heading and the message: the stacks of the error and of the call
FEW_STEPS = 3  # lines of progress; so many after a failure are more than the step that was being printed
TWO_STEPS = 2  # lines of progress; one may have been printed by another rank at the same time
MANY_STEPS = 10  # lines of progress; so many are no late output of the other ranks of a host (8 GPUs)
STEADY_PROGRESS = 30  # lines of progress; so many count however near they stand, as ranks print one each
WHOLE_TRACEBACK = 60  # frames; the outermost frames of a longer traceback are not kept
LINES_OF_FRAME = 3  # lines of a frame: its file, its code, and what marks the place in it
LINES_AROUND_TRACEBACK = 5  # lines around the frames of an exception: head, message, connector, blank lines

# What a launcher did itself (cascade.py)
AGENT_POLLS = 5  # seconds between two looks of torchelastic's agent at its workers at most (before torch 2.2)
BELOW_SPAWN_NOTICE = 400  # lines between spawn's notice and the traceback's end: the deepest tracebacks kept
SHELL_WORD_WITHIN = 4  # lines below the words of a program that kills itself, in which the shell says Killed

# What failed first (root_cause.py)
PRINTED_LATE = 1000  # lines; ranks write through buffers, so that far below may stand what came before
SHORT_PASTE = 40  # lines; a longer text is no paste of a warning alone
PRINTED_BELOW_WARNING = 2  # lines; a program that prints more below its last warning went on

# What tools report beside the log (reports_beside.py)
CLOCKS_APART = 120.0  # seconds; `dmesg -T` counts from the boot, so that it can be off by more than a minute

# How far the clocks of hosts are apart (clock_offsets.py)
FEWEST_COMMON_STEPS = 5  # steps that two hosts logged; of fewer, a slow write shifts the median
STEPS_AGREE = 1.0  # seconds from the median; all ranks end a step together, and many loggers print whole seconds
MOST_THAT_DIFFER = 0.25  # of the common steps; where more do, the hosts do not train in step, or logs were held back
LEAST_OFFSET = 2.0  # seconds; clocks that NTP keeps are nearer, and a line can be logged so late
LEAST_OFFSET_OF_CALLS = 10.0  # seconds; a rank can be slower than its peers by some seconds in every step

# Which rank it was (missing_ranks.py, rank_attribution.py)
FEWEST_THAT_LOST_ONE = 3  # ranks that lost the same one, where nothing says how many ranks there are
OWN_WORDS = 12  # characters of an NCCL warning that are its own, and not part of every other one
MOST_OF_HOST = 16  # processes of one host; a larger world spans several (DGX-2 has 16 GPUs)

# What is tried when nothing was found (fallbacks.py)
HANG_SECONDS = 3600.0  # seconds of silence; evaluations and saving checkpoints take less
HANG_BEATS = 3  # times that a monitor prints the same line: two may be a coincidence
HANG_FORMS = 3  # different lines that a monitor prints in turn

TITLE_WITHIN = 2  # lines of a log in which the title that a person put over it stands
LONGEST_PASTE = 300  # lines; a longer text is no paste
PASSAGE = 6  # lines of a passage that are read as one message, as a chat wraps it
LONGEST_WARNING = 20  # lines that one of Python's warnings has at most
ERRORS_TOLD = 3  # errors without an entry that are told of one file, or of one paste
ERRORS_WITHIN = 40  # lines of a file's end in which a run that is known to have failed says why
ERRORS_ALONE_WITHIN = 5  # lines; where nothing else reports a failure, an error stands no further from the end

# What is a text that quotes errors, and no log (quoting_documents.py)
DEFINITIONS = 3  # lines that import or define; so many make a program's source
CHANGES = 3  # lines of a list of changes; fewer are in a log that tells which commit it runs
HEADINGS = 2  # headings, and sentences of a manual; a form for bug reports has headings too

# How a run ended in which nothing failed (ending.py)
LAST_WORDS = 15  # lines with words at a file's end in which what speaks against a good end counts
FEW_WORDS = 4  # lines with words; a longer text is no question
ROWS_FROM_END = 3  # lines; a row of values no further from the end shows that the run goes on
LINES_BELOW_SERVER = 2  # lines; so many below the one that a server is up show that it goes on

# How sure a root cause is (confidence.py): points from 0 to 1, of which a sign's own words give the first
CERTAIN = 0.9  # the least of what is called certain: right 99 times of 100
LIKELY = 0.55  # the least of what is called likely: right 9 times of 10
UNNAMED = 0.5  # no entry knows the message
AT_MOST_LIKELY = 0.72  # points where one kind of evidence is missing or speaks for another cause as well
AT_MOST_POSSIBLE = 0.5  # points where the words may mean something else
AGREEING_RANKS = 2  # ranks that raised the same: so many say what failed, whatever single ranks say beside it
ALONE_BEFORE = 5.0  # seconds between the one rank that failed first and the next failure: what follows comes of it
