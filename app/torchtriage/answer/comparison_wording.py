"""The words of a comparison of two runs in both languages: headings, and names of compared values that are not from a
log."""

from __future__ import annotations

from torchtriage.domain.run_comparison import Change, ChangeKind

WORDS = {
    ChangeKind.JOB: ("Job", "作业"),
    ChangeKind.VERSION: ("Versions", "版本"),
    ChangeKind.ENVIRONMENT: ("Environment", "环境变量"),
    ChangeKind.LAUNCH: ("Launch", "启动"),
    ChangeKind.SETTING: ("Settings", "配置"),
    ChangeKind.TIMING: ("Timing", "耗时"),
    ChangeKind.LINE: ("Lines", "日志行"),
    "new_lines": ("New lines before the failure", "故障之前新出现的日志行"),
    "none": ("none", "无"),
    "nothing": ("No differences found.", "没有发现差异。"),
    "same": ("Identical settings: {same}.", "相同的配置：{same} 项。"),
    "partly": (
        "The logs are long: only the beginning and the end of each file were compared.",
        "日志较长，只比较了每个文件的开头和结尾。",
    ),
}
NAMES = {
    "world_size": ("ranks", "rank 数"),
    "launcher": ("launcher", "启动器"),
    "new_hosts": ("new hosts", "新增主机"),
    "seconds_per_step": ("seconds a step", "每步秒数"),
    "job_name": ("job name", "作业名"),
    "gpus": ("GPUs", "GPU 数"),
    "image": ("image", "镜像"),
    "commit": ("commit", "commit"),
    "queue": ("queue", "队列"),
    "cluster": ("cluster", "集群"),
    "scheduler": ("scheduler", "调度器"),
    "user": ("user", "用户"),
    "start": ("seconds to the first step", "到第一步的秒数"),
    "train": ("seconds after the first step", "第一步之后的秒数"),
    "whole": ("seconds in all", "总秒数"),
}
_SENTENCES = {
    "host": ("host {now} is new", "新增主机 {now}"),
    "hosts": ("hosts {now} are new", "新增主机 {now}"),
    "line": ("new line: {now}", "新出现的日志行：{now}"),
    "set": ("{name} is now set to {now}", "新设置了 {name}={now}"),
    "unset": ("{name} is no longer set", "{name} 不再设置"),
    "new": ("{name} {now} is new", "新增 {name} {now}"),
    "gone": ("{name} {before} is gone", "不再有 {name} {before}"),
    "changed": ("{name} {before} → {now}", "{name} {before} → {now}"),
}


def sentence(change: Change, chinese: bool) -> str:
    """Returns a change in a few words, for a list without columns."""
    name = NAMES.get(change.name, (change.name, change.name))[chinese]
    return _SENTENCES[_form(change)][chinese].format(name=name, before=change.before, now=change.now)


def _form(change: Change) -> str:
    if change.name == "new_hosts":
        return "hosts" if "," in (change.now or "") else "host"
    if change.kind is ChangeKind.LINE:
        return "line"
    of_variable = change.kind is ChangeKind.ENVIRONMENT
    if change.before is None:
        return "set" if of_variable else "new"
    if change.now is None:
        return "unset" if of_variable else "gone"
    return "changed"
