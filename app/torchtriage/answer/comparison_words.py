"""The words of a comparison of two runs, in both languages: headings, and names that are no log's own."""

from __future__ import annotations

from torchtriage.domain.run_comparison import ChangeKind

WORDS = {
    ChangeKind.JOB: ("Job", "作业"),
    ChangeKind.VERSION: ("Versions", "版本"),
    ChangeKind.LAUNCH: ("Launch", "启动"),
    ChangeKind.SETTING: ("Settings", "配置"),
    ChangeKind.TIMING: ("Timing", "耗时"),
    "new_lines": ("New lines before the failure", "故障之前新出现的日志行"),
    "none": ("none", "无"),
    "nothing": ("Nothing differs in what both logs tell.", "两份日志中能对照的内容没有差异。"),
    "same": ("Settings that are the same: {same}.", "相同的配置：{same} 项。"),
    "partly": (
        "The logs are long: only the beginning and the end of each file were compared.",
        "日志较长，只比较了每个文件的开头和结尾。",
    ),
}
NAMES = {
    "world_size": ("ranks", "rank 数"),
    "launcher": ("launcher", "启动器"),
    "new_hosts": ("hosts that are new", "新增主机"),
    "seconds_per_step": ("seconds a step", "每步秒数"),
    "job_name": ("job name", "作业名"),
    "gpus": ("GPUs", "GPU 数"),
    "image": ("image", "镜像"),
    "commit": ("commit", "commit"),
    "queue": ("queue", "队列"),
    "cluster": ("cluster", "集群"),
    "scheduler": ("scheduler", "调度器"),
    "user": ("user", "用户"),
}
