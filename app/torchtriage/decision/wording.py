"""Puts a decision into words: one sentence in English or Chinese, and its JSON form."""

from __future__ import annotations

from typing import Any

from torchtriage.domain.decision import Decision, DecisionRecord
from torchtriage.domain.entry import Language
from torchtriage.domain.json_form import fields_form, json_form

_REASONS: dict[str, tuple[str, str]] = {
    "not-failed": (
        "The log shows no failure, so there is nothing to restart.",
        "日志中没有失败，无需重新启动。",
    ),
    "not-known": (
        "The log shows neither a failure nor a good end; find out how the attempt ended first.",
        "日志既没有显示失败，也没有显示正常结束；请先查明这次尝试是如何结束的。",
    ),
    "left-to-people": (
        "The policy leaves {entry} to a person.",
        "策略规定 {entry} 由人来处理。",
    ),
    "fix-first": (
        "{entry} is certain, and the job fails again until it is fixed.",
        "原因确定为 {entry}，修复之前重启仍会失败。",
    ),
    "same-step": (
        "{entry} is certain and stopped {count} attempts at step {step}, so another attempt fails there too.",
        "原因确定为 {entry}，已有 {count} 次尝试停在第 {step} 步，再次重启仍会停在这里。",
    ),
    "restarts-used": (
        "The job was restarted {times}, which is the most that the policy allows.",
        "任务已重启 {count} 次，达到策略允许的上限。",
    ),
    "no-progress": (
        "The last {restarts} brought no progress; a person should look before the next one.",
        "连续 {count} 次重启都没有进展；下次重启前应由人查看。",
    ),
    "retries-used": (
        "{cause} came back {times} without progress; a person should look before the next restart.",
        "{cause}已 {count} 次再次出现且没有进展；下次重启前应由人查看。",
    ),
    "no-retry": (
        "A restart does not help against {cause}; a person should look first.",
        "{cause}不能靠重启解决；应先由人查看。",
    ),
    "many-hosts": (
        "{count} hosts would be left out ({hosts}), more than the {most} that the policy allows.",
        "需要排除 {count} 台主机（{hosts}），超过策略允许的 {most} 台。",
    ),
    "host-at-fault": (
        "{entry} is a fault of the host: restart without {hosts}.",
        "{entry} 是主机的问题：排除 {hosts} 后重启。",
    ),
    "host-again": (
        "Attempts failed first on {hosts} at least {times}: restart elsewhere.",
        "至少有 {count} 次尝试最先在 {hosts} 上失败：换主机重启。",
    ),
    "transient": (
        "A retry helps against {entry}: restart.",
        "重试对 {entry} 有效：重启。",
    ),
    "try-once": (
        "{entry} may be transient: try again.",
        "{entry} 可能是暂时性的：再试一次。",
    ),
    "not-certain": (
        "{entry} usually needs a fix, but the verdict is not certain; the policy allows a restart.",
        "{entry} 通常需要修复，但诊断并不确定；策略允许重启一次。",
    ),
    "unexplained": (
        "No entry names the cause: one more attempt shows whether it is transient.",
        "知识库中没有条目能说明原因：再试一次即可判断是否为偶发。",
    ),
}
# The reasons that name the entry, for a place that shows the entry's title above.
_BELOW_TITLE: dict[str, tuple[str, str]] = {
    "left-to-people": (
        "The policy leaves this cause to a person.",
        "策略规定这种原因由人来处理。",
    ),
    "fix-first": (
        "The cause is certain, and the job fails again until it is fixed.",
        "原因已确定，修复之前重启仍会失败。",
    ),
    "same-step": (
        "The cause is certain and stopped {count} attempts at step {step}, so another attempt fails there too.",
        "原因已确定，已有 {count} 次尝试停在第 {step} 步，再次重启仍会停在这里。",
    ),
    "retries-used": (
        "This cause came back {times} without progress; a person should look before the next restart.",
        "同一原因已 {count} 次再次出现且没有进展；下次重启前应由人查看。",
    ),
    "no-retry": (
        "A restart does not help against this cause; a person should look first.",
        "重启不能解决；应先由人查看。",
    ),
    "host-at-fault": (
        "The host is at fault: restart without {hosts}.",
        "主机有问题：排除 {hosts} 后重启。",
    ),
    "transient": (
        "A retry helps: restart.",
        "重试有效：重启。",
    ),
    "try-once": (
        "The cause may be transient: try again.",
        "可能是暂时性的：再试一次。",
    ),
    "not-certain": (
        "The cause needs a fix but is not certain: try once more.",
        "需要修复，但原因尚不确定：再试一次。",
    ),
}
_UNNAMED = ("The unexplained failure", "无法解释的失败")
_FEW_TIMES = {1: "once", 2: "twice"}
_ACTIONS: dict[str, tuple[str, str]] = {
    "stop": ("Stop", "停止"),
    "restart": ("Restart", "重启"),
    "restart-excluding": ("Restart without {hosts}", "排除 {hosts} 后重启"),
    "restart-from-checkpoint": ("Restart from {checkpoint}", "从 {checkpoint} 重启"),
    "wait": ("Wait for a person", "等待人工处理"),
}


def reason(decision: Decision, lang: Language, titled: bool = False) -> str:
    """Returns the reason in one sentence. With `titled`, it does not name the entry, because the title stands above."""
    values = decision.because.values
    named = values.get("entry")
    cause = f"{named} " if named and lang == "zh" else named or _UNNAMED[lang == "zh"]
    count = int(values.get("count") or 0)
    times = _FEW_TIMES.get(count, f"{count} times")
    restarts = "restart" if count == 1 else f"{count} restarts"
    words = (_BELOW_TITLE.get(decision.rule) if titled and named else None) or _REASONS[decision.rule]
    return words[lang == "zh"].format(**values, cause=cause, times=times, restarts=restarts)


def what(decision: Decision, lang: Language) -> str:
    """Returns the action in words, with the hosts or the checkpoint."""
    hosts = ", ".join(decision.hosts)
    return _ACTIONS[decision.action][lang == "zh"].format(hosts=hosts, checkpoint=decision.checkpoint)


def decision_json(decision: Decision, lang: Language) -> dict[str, Any]:
    """Returns the JSON form of a decision. It is a public format."""
    fields = fields_form(decision)
    del fields["because"]  # `rule` and `reason` contain it
    return {"action": fields.pop("action"), "reason": reason(decision, lang), **fields}


def record_json(record: DecisionRecord, lang: Language, base_url: str) -> dict[str, Any]:
    """Returns the JSON form of a stored decision. It is a public format. `url` is the page of the incident."""
    fields = {name: json_form(getattr(record, name)) for name in DecisionRecord.__slots__ if name != "decision"}
    url = f"{base_url}/incidents/{record.incident}"
    return {
        "id": fields.pop("id"),
        "mode": fields.pop("mode"),
        **decision_json(record.decision, lang),
        **fields,
        "url": url,
    }
