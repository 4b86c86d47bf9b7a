import pytest
import re2

from tests.built_in import built_in_knowledge
from torchtriage.answer.action import advise, after_earlier_runs, suggested_fixes
from torchtriage.domain.verdict import Action, EarlierRun


def test_a_mere_symptom_is_not_called_nothing_to_do() -> None:
    entry = built_in_knowledge().entries["elastic.child-failed"]
    assert advise(entry, "", [], "en").reason.startswith("The log shows only consequences")
    assert advise(entry, "", [], "zh").reason.startswith("日志里只有失败的后果")


def test_a_host_that_only_may_be_bad_is_not_blamed() -> None:
    entries = built_in_knowledge().entries
    assert advise(entries["xid.other"], "", ["n7"], "en").reason.startswith("The host may be at fault")
    assert advise(entries["cuda.ecc"], "", ["n7"], "en").exclude_hosts == ("n7",)
    assert advise(entries["cuda.ecc"], "", ["n7"], "en").reason.startswith("The host is at fault")


def test_a_retry_that_is_worth_it_is_not_said_to_fail() -> None:
    entries = [entry for entry in built_in_knowledge().entries.values() if entry.action.retry == "once"]
    values = {(entry.action.advice, advise(entry, "", (), lang).reason) for entry in entries for lang in ("en", "zh")}
    assert {advice for advice, _ in values} >= {"retry", "retry-elsewhere", "fix-first"}
    assert all("one retry" in reason.lower() or "try once" in reason or "试一次" in reason for _, reason in values)


def test_fixes_for_other_versions_come_last_and_say_so() -> None:
    entry = built_in_knowledge().entries["cuda.oom"]
    old = suggested_fixes(entry, "", {}, {"torch": "1.13.1"}, "en")
    assert (old[-1].applies, old[-1].shown, old[-1].fits) == ("torch>=2.1", "1.13.1", False)
    new = suggested_fixes(entry, "", {}, {"torch": "2.6.0+cu124"}, "en")
    assert [fix.title for fix in new] == [fix.title for fix in suggested_fixes(entry, "", {}, {}, "en")]
    assert {fix.fits for fix in new} == {True, None}


@pytest.mark.parametrize(
    ("entry", "message", "path"),
    [
        ("data.missing-file", "[Errno 2] No such file or directory: '/数据/标注/train.json'", "/数据/标注/train.json"),
        ("data.missing-file", "[Errno 2] No such file or directory: '/tmp/$(reboot)'", None),
        ("storage.permission", "[Errno 13] Permission denied: '/data/runs'", "/data/runs"),
        ("storage.output-path", "[Errno 20] Not a directory: 'out/last'", "out/last"),
    ],
)
def test_a_path_is_filled_into_commands_where_a_shell_would_not_read_it_otherwise(
    entry: str, message: str, path: str | None
) -> None:
    capture = dict(built_in_knowledge().entries[entry].capture)["path"]
    found = re2.search(capture, message)
    assert (found[1] if found else None) == path


def test_a_run_that_failed_twice_in_the_same_way_is_not_worth_one_more_retry() -> None:
    once = Action("once", "fix-first", (), "")
    same, other = (EarlierRun("explained", entry, 7) for entry in ("process.oom-killed", "cuda.oom"))
    again = after_earlier_runs((other, same), "process.oom-killed", once, "en")
    assert (again.retry, again.advice) == ("no", "fix-first")
    assert "failed in the same way" in again.reason
    assert after_earlier_runs((same, other), "process.oom-killed", once, "en") == once
    assert after_earlier_runs((), "process.oom-killed", once, "en") == once
    elsewhere = Action("once", "retry-elsewhere", ("gpu-7",), "")
    assert after_earlier_runs((same,), "process.oom-killed", elsewhere, "en") == elsewhere
