"""The sentences that the engine itself adds to an answer, in English and Chinese.

A `{slot}` is a fact of this run. The part in `[[…]]` is left out if one of its slots has no value (answer/templates).
"""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.domain.entry import Text


@dataclass(frozen=True)
class GeneralStep:
    """A step for failures without a matching case. `needs` is the fact that must be known, and `run` is the step's
    command."""

    needs: str
    do: Text
    run: str | None = None


# The place where the exception was raised.
RAISED_AT = Text(
    "Raised at {where}[[ in DataLoader worker {worker}]][[: `{code}`]].",
    "出错位置：{where}[[（DataLoader worker {worker}）]][[，代码 `{code}`]]。",
)
RAISED_AT_CALLED_FROM = Text(
    "Raised at {where}, called from {caller}: `{caller_code}`.",
    "出错位置：{where}，由 {caller} 的 `{caller_code}` 调用。",
)
MET_AT = Text(
    "Occurred at {where}[[: `{code}`]].",
    "发生在 {where}[[，代码 `{code}`]]。",
)
RAISED_IN_LIBRARY = Text(
    "Raised in {library_frame}[[ ({library_function})]][[ in DataLoader worker {worker}]][[: `{library_code}`]], "
    "called from {where}[[: `{code}`]].",
    "出错位置：{library_frame}[[（{library_function}）]][[（DataLoader worker {worker}）]]"
    "[[，代码 `{library_code}`]]，由 {where} 调用[[，代码 `{code}`]]。",
)
RAISED_INSIDE_LIBRARY = Text(
    "Raised inside {library_frame}[[ ({library_function})]][[: `{library_code}`]][[, called from {library_caller}]]"
    "[[ ({library_caller_function})]].",
    "在 {library_frame}[[（{library_function}）]] 内部抛出[[，代码 `{library_code}`]]"
    "[[，由 {library_caller} 调用]][[（函数 {library_caller_function}）]]。",
)
RAISED_AT_LIBRARY_LINE = Text(
    "Raised at {library_frame}[[ ({library_function})]][[, called from {library_caller}]]"
    "[[ ({library_caller_function})]].",
    "出错位置：{library_frame}[[（{library_function}）]][[，由 {library_caller} 调用]]"
    "[[（函数 {library_caller_function}）]]。",
)
RAISED_BY = Text(
    "Raised by {raised_by}[[, called from {where}]][[: `{code}`]].",
    "由 {raised_by} 抛出[[，调用处 {where}]][[，代码 `{code}`]]。",
)
CALLED_FROM = Text(
    "Called from {where}[[: `{code}`]].",
    "由 {where} 调用[[，代码 `{code}`]]。",
)
THE_LINE = Text(
    "The line[[, in DataLoader worker {worker}]]: `{code}`.",
    "该行代码[[（DataLoader worker {worker}）]]：`{code}`。",
)

# Failures without a matching case: the exception, and what the log does not show.
EXCEPTION = Text(
    "{exception}[[: {message}]].",
    "{exception}[[：{message}]]。",
)
CAUSE_NOT_SHOWN = Text(
    "This log does not show what led to this message.",
    "日志没有显示这条报错的起因。",
)
VALUE_NOT_SHOWN = Text(
    "The log does not show which of the passed values breaks this rule.",
    "日志没有显示是传入的哪个值违反了这条规则。",
)

# What the log showed before the failure, and what other ranks show.
MESSAGE_VALUES = Text(
    "In the message, {message_values}.",
    "消息中 {message_values}。",
)
REPORTED_AS = Text(
    "The script then raised `{reported_as}`.",
    "脚本随后抛出 `{reported_as}`。",
)
PRINTED_BEFORE = Text(
    "The log printed {printed_name} = {printed_value} (line {printed_line})[[ and {other_printed_name} = "
    "{other_printed_value} (line {other_printed_line})]].",
    "日志此前打印 {printed_name} = {printed_value}（第 {printed_line} 行）"
    "[[，{other_printed_name} = {other_printed_value}（第 {other_printed_line} 行）]]。",
)
PRINTED_ABOVE = Text(
    'Just above, the log says "{telling_line}" (line {telling_line_number}).',
    "日志在此之前写着“{telling_line}”（第 {telling_line_number} 行）。",
)
PRINTED_SHAPES = Text(
    "The log printed {printed_shapes} (line {printed_shapes_line}).",
    "日志此前打印 {printed_shapes}（第 {printed_shapes_line} 行）。",
)
FORWARD_CALL = Text(
    "The forward call was at {forward_where}[[: `{forward_code}`]].",
    "对应的前向调用在 {forward_where}[[，代码 `{forward_code}`]]。",
)
PASSED_IN = Text(
    "`{passed_name}` was passed by {caller}: `{caller_code}`.",
    "`{passed_name}` 由 {caller} 传入：`{caller_code}`。",
)
MESSAGES_BY_RANK = Text(
    "By rank: {by_rank}.",
    "各 rank 的值：{by_rank}。",
)
PRINTED_BY_RANK = Text(
    "Printed before[[, {printed_by_rank_words}]]: {printed_by_rank} (line {printed_by_rank_line}).",
    "此前打印[[（{printed_by_rank_words}）]]：{printed_by_rank}（第 {printed_by_rank_line} 行）。",
)
LAST_STEPS_BY_RANK = Text(
    "Last steps: {steps_by_rank}.",
    "最后的步数：{steps_by_rank}。",
)

# How widespread a failure is. A failure on all ranks is not caused by one host, GPU or part of the data.
RANKS_ALIKE = Text(
    "Ranks {ranks} failed in the same way.",
    "rank {ranks} 以同样的方式失败。",
)
ALL_ALIKE = Text(
    "All {rank_count} failed in the same way.",
    "全部 rank 以同样的方式失败。",
)
RANKS_EXITED_ALIKE = Text(
    "Ranks {exited_ranks} exited within a second, each with code {exited_code}.",
    "rank {exited_ranks} 在一秒内以相同的退出码 {exited_code} 退出。",
)

# The progress of the run.
AT_STEP = Text(
    "The run was at step {step}[[ of {total_steps}]][[ in epoch {epoch_of_step}]][[, after {run_time}]].",
    "当时进行到[[第 {epoch_of_step} 个 epoch 的]]第 {step} 步[[（共 {total_steps} 步）]][[，已运行 {run_time}]]。",
)
AT_LOOP = Text(
    "{progress_of} was at {progress}[[ after {loop_elapsed}]].",
    "{progress_of} 进行到 {progress}[[，已用 {loop_elapsed}]]。",
)
AT_PROGRESS_OF_EPOCH = Text(
    "The run was at {progress} of epoch {epoch}.",
    "当时进行到第 {epoch} 个 epoch 的 {progress}。",
)
IN_EPOCH = Text(
    "The run was at epoch {epoch}[[ of {total_epochs}]].",
    "当时进行到第 {epoch} 个 epoch[[（共 {total_epochs} 个）]]。",
)
IN_EVALUATION = Text(
    "It failed in evaluation, after step {step}[[ of {total_steps}]][[, {run_time} into the run]].",
    "失败发生在评估阶段，此前训练到第 {step} 步[[（共 {total_steps} 步）]][[，已运行 {run_time}]]。",
)
IN_EVALUATION_OF_EPOCH = Text(
    "It failed in evaluation, at epoch {epoch}[[ of {total_epochs}]].",
    "失败发生在评估阶段，第 {epoch} 个 epoch[[（共 {total_epochs} 个）]]。",
)
AFTER_TRAINING = Text(
    "Training had already finished[[, at step {step}]][[; its newest checkpoint is {checkpoint}]].",
    "此时训练已经完成[[（第 {step} 步）]][[，最近的 checkpoint 是 {checkpoint}]]。",
)

# A traceback whose last lines are missing from the log.
TRACEBACK_CUT = Text(
    "The log ends inside this traceback, before the line that names the exception.",
    "日志在这段 traceback 中间结束，没有写出异常的那一行。",
)
LAST_FRAME_SHOWN = (
    Text(
        "The last frame shown is {library_frame}[[ ({library_function})]][[: `{library_code}`]], called from "
        "{where}[[: `{code}`]].",
        "显示到的最后一帧是 {library_frame}[[（{library_function}）]][[，代码 `{library_code}`]]，"
        "由 {where} 调用[[，代码 `{code}`]]。",
    ),
    Text(
        "The last frame shown is {library_frame}[[ ({library_function})]][[: `{library_code}`]].",
        "显示到的最后一帧是 {library_frame}[[（{library_function}）]][[，代码 `{library_code}`]]。",
    ),
    Text(
        "The last frame shown is {where}[[: `{code}`]].",
        "显示到的最后一帧是 {where}[[，代码 `{code}`]]。",
    ),
)
EXCEPTION_NOT_SHOWN = Text(
    "This log does not show which exception it was.",
    "日志没有显示是什么异常。",
)
READ_BELOW = Text(
    "Read or submit the output below line {last_line}: its next lines name the exception.",
    "查看或提交第 {last_line} 行之后的输出：异常就在接下来的几行。",
)

# The steps if no case gives any. The first one whose fact is known is shown.
AS_ADVISED = GeneralStep(
    "advice",
    Text(
        "Do as the message says: {advice}",
        "按消息所说处理：{advice}",
    ),
    "{advice_command}",
)
READ_NAMED_LOG = GeneralStep(
    "named_log",
    Text(
        "Read the end of {named_log}, which line {line} names.",
        "查看第 {line} 行提到的 {named_log} 的末尾。",
    ),
    "tail -n 50 {named_log}",
)
FIRST_STEPS = (
    AS_ADVISED,
    READ_NAMED_LOG,
    GeneralStep(
        "raise_code",
        Text(
            "Read the condition above {where}; the call was `{caller_code}` at {caller}.",
            "查看 {where} 上方的条件；调用为 {caller} 处的 `{caller_code}`。",
        ),
    ),
    GeneralStep(
        "raised_by",
        Text(
            "Directly above {where}, print the values that `{code}` passes, and compare them with the message.",
            "在 {where} 上方打印 `{code}` 传入的值，与报错的要求对照。",
        ),
        "print({code_names}, flush=True)",
    ),
    GeneralStep(
        "code_names",
        Text(
            "Directly above {where}, print the values that the line uses, and run until it fails again.",
            "在 {where} 上方打印该行用到的值，再运行到出错为止。",
        ),
        "print({code_names}, flush=True)",
    ),
    GeneralStep(
        "library_package",
        Text(
            "Check the installed version of {library_package}, and search its issues for the message and "
            "`{library_function}`.",
            "查看安装的 {library_package} 版本，并在其 issue 中搜索该消息和 `{library_function}`。",
        ),
        "pip show {library_package}",
    ),
    GeneralStep(
        "where",
        Text(
            "Start at {where}: print the values that the line uses, with rank and step.",
            "从 {where} 开始：打印该行用到的值以及 rank 和 step。",
        ),
    ),
    GeneralStep(
        "library",
        Text(
            "Find the call in your code that led to {library_frame}, and search {library}'s issues for the message.",
            "在自己的代码中找到通向 {library_frame} 的调用，并在 {library} 的 issue 中搜索该消息。",
        ),
    ),
    GeneralStep(
        "first_line",
        Text(
            "Read or submit the output above line {first_line}; these lines do not show what led to the failure.",
            "查看或提交第 {first_line} 行之前的输出：这几行没有显示起因。",
        ),
    ),
    GeneralStep(
        "log",
        Text(
            "Read the lines above line {line} of {log} to see what the program did last.",
            "查看 {log} 第 {line} 行上方：程序最后在做什么。",
        ),
    ),
    GeneralStep(
        "line",
        Text(
            "Read the lines above line {line} of the log to see what the program did last.",
            "查看日志第 {line} 行上方：程序最后在做什么。",
        ),
    ),
)
