"""What strangers write into a log, a host's name or a path, must do nothing in a command that somebody pastes."""

import json
import re
import shlex
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.built_in import built_in_engine, built_in_knowledge
from torchtriage.answer.commands import commands, filled, general, is_plain, on_hosts, run_line
from torchtriage.domain.host import exclusion, host_name
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.errors import UnreadableLog
from torchtriage.reading.sources import LogFile, Run, from_bytes
from torchtriage.services.drain_commands import commands as draining

HOSTILE = (
    "$(id)",
    "`id`",
    "gpu-1;reboot",
    "gpu-1\nreboot",
    "gpu-1\rreboot",
    "-oProxyCommand=reboot",
    "=cmd",
    "gpu 1",
    "gpu-1|sh",
    "gpu-1&",
    "gpu-1'",
    'gpu-1"',
    "gpu-1\\",
    "~root",
    "gpu-*",
    "{a,b}",
    "gpu-1\u2028reboot",
    "gpu‐1",  # a hyphen that looks like ours
    "gpu-１",
    "gрu-1",  # a Cyrillic letter
    "gpu-1\u202e",
    "g" * 254,
    "",
)
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
# Whatever a shell reads as more than a part of a word.
META = set("|&;<>()$`\\\"' \t\n\r*?[]{}~!#^")
anything = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=40),
    st.text(alphabet=st.sampled_from("ab1-_.:/$`;|&<>(){}[]'\"\\ \t\n\r~*?!#=%@+,^"), max_size=40),
)


@cache
def templates() -> list[str]:
    """Returns every command of the knowledge base that has a place to fill."""
    entries = built_in_knowledge().entries.values()
    every = [text for entry in entries for text in (*entry.checks, *(c for fix in entry.fixes for c in fix.commands))]
    return [text for text in every if general(text) != text]


def test_what_the_log_shows_is_filled_in() -> None:
    result = commands(["ssh {host} nvidia-smi -i {pci} -q"], {"host": "n7", "pci": "0000:3b:00"})
    assert result == ("ssh n7 nvidia-smi -i 0000:3b:00 -q",)


def test_variables_of_a_line_are_printed_together() -> None:
    print_them = "print({code_names}, flush=True)"
    assert run_line(print_them, {"code_names": "x, self.weight"}) == "print(x, self.weight, flush=True)"
    assert run_line(print_them, {"code_names": "x); import os; os.system(y"}) is None
    assert run_line("kill {pid}", {"pid": "1, 2"}) is None


def test_what_it_does_not_show_is_left_to_the_reader() -> None:
    assert general("nvidia-smi --gpu-reset -i {pci}") == "nvidia-smi --gpu-reset -i PCI"
    assert commands(["nc -vz {master} {port}"], {"port": "29500"}) == ("nc -vz MASTER 29500",)


def test_braces_of_a_program_stay() -> None:
    program = "awk '{print $2}' counters/{symbol_error,link_downed}; print(f'{loss}')"
    assert commands([program], {"host": "n7"}) == (program,)
    assert filled(program, {"host": "n7"}) == program


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_that_a_shell_reads_otherwise_withholds_the_command(value: str) -> None:
    result = commands(["kubectl cordon {host}", "nvidia-smi", "squeue -j {job}"], {"host": value, "job": value})
    assert result == ("nvidia-smi",)
    assert filled("Drain {host}", {"host": value}) == "Drain HOST"


def test_a_host_that_leads_to_another_person_s_account_is_not_a_host() -> None:
    assert commands(["ssh {host} uptime", "kubectl cordon {node}"], {"host": "me@there", "node": "a/b"}) == ()


@pytest.mark.parametrize(
    ("template", "path", "command"),
    [
        ("ls -ld {path}", "/data/标注/a b.json", "ls -ld '/data/标注/a b.json'"),
        ("ls -ld {path}", "/data/runs", "ls -ld /data/runs"),
        ("ls -ld {path}", "~/x", "ls -ld '~/x'"),
        ("ls -la $(dirname {path})", "/data/$(reboot)/x", "ls -la $(dirname '/data/$(reboot)/x')"),
        ("id; namei -l {path}", "it's", """id; namei -l 'it'"'"'s'"""),
        # In quotes, and where another shell reads it again, only what needs no quotes.
        ("ssh {host} 'ls -l {path}'", "/data/a b", None),
        ("ssh {host} ls -l {path}", "/data/a b", None),
        ("ssh {host} 'ls -l {path}'", "/data/runs", "ssh n7 'ls -l /data/runs'"),
        ("bash -c {path}", "/data/a b", None),
        ("ls `dirname {path}`", "/data/a b", None),
        ("ls -ld {path}", "-rf", None),
        ("ls -ld {path}", "/data\n/x", None),
        ("ls -ld {path}", "/data/\u202egnp.exe", None),
        ("ls -ld {path}", "/" + "a" * 2000, None),
    ],
)
def test_a_path_is_quoted_where_it_has_to_be_and_can_be(template: str, path: str, command: str | None) -> None:
    assert commands([template], {"host": "n7", "path": path}) == ((command,) if command else ())


@pytest.mark.parametrize(
    ("template", "values", "line"),
    [
        ("print({code_names}, flush=True)", {"code_names": "x, self.weight"}, "print(x, self.weight, flush=True)"),
        ("print(len({collection}), {index})", {"collection": "stages", "index": "i - 1"}, "print(len(stages), i - 1)"),
        ("print({collection}.shape)", {"collection": "out[0]"}, "print(out[0].shape)"),
        ("print({argument})", {"argument": "os.remove('/data')"}, None),
        ("print({index})", {"index": "__import__('os')"}, None),
        ("print({index})", {"index": "1); import os; (2"}, None),
        ("echo {index}", {"index": "i - 1"}, None),
    ],
)  # fmt: skip
def test_a_print_shows_names_and_sums_of_a_line_and_calls_nothing(
    template: str, values: dict[str, str], line: str | None
) -> None:
    assert run_line(template, values) == line


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_no_value_makes_a_word_or_a_line_of_its_own(data: st.DataObject) -> None:
    template = data.draw(st.sampled_from(templates()))
    names = re.findall(r"\{([a-z_]+)\}", template)
    values = {name: data.draw(anything, label=name) for name in names}
    for command in commands([template], values):
        assert command.count("\n") == template.count("\n")
        # The same words and operators stand in the same order; a value is a part of one word.
        assert _tokens(command) == [_with(word, values) for word in _tokens(template)]


@given(st.lists(anything, max_size=6))
@settings(max_examples=300, deadline=None)
def test_hosts_that_are_drained_or_left_out_are_names_and_nothing_else(hosts: list[str]) -> None:
    named = exclusion(hosts)
    assert not META & set(named)
    assert not named or named.removeprefix("--exclude=").split(",") == [host for host in hosts if host_name(host)]
    for command in draining(hosts).values():
        assert "\n" not in command
        words = shlex.split(command)
        assert all(not META - set("[] ()") & set(word) for word in words), words
        assert shlex.join(words).count("[") == 0 or "'" in command  # brackets stand in quotes


@given(anything)
@settings(max_examples=40, deadline=None)
def test_a_host_is_a_name_wherever_it_comes_from(host: str) -> None:
    for verdict in _told(host):
        root = verdict.root_cause
        hosts = [*verdict.run.hosts, *verdict.action.exclude_hosts, *([root.host] if root and root.host else [])]
        assert all(host_name(each) for each in hosts), hosts
        for command in (c for fix in (root.fixes if root else ()) for c in fix.commands):
            named = re.findall(r"(?:cordon |--exclude=|nodename=)(\S*)", command)
            assert all(host_name(each) for each in named), command


@pytest.mark.parametrize("host", ["$(id)", "gpu-1\nreboot", "-oProxyCommand=reboot", "h" * 100_000, "=cmd"])
def test_what_is_not_a_host_is_null_and_never_shortened(host: str) -> None:
    line = json.dumps({"hostname": host, "time": "2026-05-01T09:05:11Z", "log": ECC}) + "\n"
    verdict = built_in_engine().triage(from_bytes(line.encode()))
    assert verdict.root_cause is not None
    assert (verdict.root_cause.host, verdict.action.exclude_hosts, verdict.run.hosts) == (None, (), ())
    dumped = json.dumps([fix.commands for fix in verdict.root_cause.fixes])
    assert "kubectl cordon HOST" in dumped
    assert host not in dumped


@pytest.mark.parametrize("host", ["gpu-013", "10.0.0.7", "fe80::1", "ip-10-0-0-1.ec2.internal", "node_7", "a" * 253])
def test_what_is_a_host_is_reported(host: str) -> None:
    line = json.dumps({"hostname": host, "time": "2026-05-01T09:05:11Z", "log": ECC}) + "\n"
    verdict = built_in_engine().triage(from_bytes(line.encode()))
    assert (verdict.root_cause and verdict.root_cause.host, verdict.action.exclude_hosts) == (host, (host,))
    assert is_plain(host)


def _told(host: str) -> list[Verdict]:
    """Returns verdicts of logs that name this host in the ways in which logs do."""
    record = {"time": "2026-05-01T09:05:11Z", "log": ECC}
    report = (
        "============================================================\ntrain.py FAILED\n"
        "------------------------------------------------------------\nFailures:\n  <NO_OTHER_FAILURES>\n"
        "------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n"
        f"  time      : 2026-05-01_09:05:11\n  host      : {host}\n  rank      : 0 (local_rank: 0)\n"
        "  exitcode  : -9 (pid: 7)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 7\n"
    )
    logs = [
        json.dumps({"hostname": host, **record}) + "\n",
        json.dumps({"kubernetes": {"node_name": host, "pod_name": host}, **record}) + "\n",
        f"{host}: {ECC}" * 3,
        f"[{host}] {ECC}" * 3,
        f"2026-05-01T09:05:11Z {host} python[7]: {ECC}",
        f"SLURM_JOB_NODELIST={host}\n{ECC}",
        f"srun: error: {host}: task 3: Killed\nslurmstepd: error: *** STEP 7.0 ON {host} CANCELLED AT 2026 ***\n{ECC}",
        f"{host}:41:41 [0] NCCL WARN Cuda failure 'uncorrectable ECC error encountered'\n",
        report,
    ]
    runs = [from_bytes(log.encode("utf-8", "surrogatepass")) for log in logs]
    names = [f"{host}/attempt_0/0/stderr.log", "gpu-2/attempt_0/0/stderr.log", f"{host}.log"]
    files = [LogFile(name, lambda: iter([ECC.encode()]), member=True) for name in names]
    verdicts = []
    for run in (*runs, Run("logs", lambda: iter(files), True, tuple(names))):
        with suppress(UnreadableLog):  # of control characters alone
            verdicts.append(built_in_engine().triage(run))
    return verdicts


def _tokens(command: str) -> list[str]:
    """Returns the words and operators of a command, without the quotes, as a shell splits it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def _with(word: str, values: dict[str, str]) -> str:
    return re.sub(r"\{([a-z_]+)\}", lambda place: values.get(place[1], place[0]), word)


def test_the_host_that_failed_is_left_out_and_not_the_one_that_reports(engine: Engine) -> None:
    log = (
        "0: step 100 loss 3.2\n"
        "slurmstepd: error: *** STEP 88121.0 ON gpu-a-17 CANCELLED AT 2026-11-02T04:11:09 DUE TO NODE FAILURE, SEE SLURMCTLD "
        "LOG FOR DETAILS ***\n"
        "srun: error: gpu-a-17: tasks 8-15: Killed\n"
        "srun: error: Node failure on gpu-a-19\n"
    )
    assert engine.triage(from_bytes(log.encode())).action.exclude_hosts == ("gpu-a-19",)


def test_a_host_that_another_line_names_is_not_left_out(engine: Engine) -> None:
    log = (
        "[rank0]: step 100 loss 2.1\n"
        "May 01 09:00:01 gpu-014 kernel: NVRM: Xid (PCI:0000:4e:00): 79, pid=4711, GPU has fallen off the bus.\n"
        "slurmstepd: error: *** JOB 4711 ON gpu-001 CANCELLED AT 2026-05-01T09:11:00 ***\n"
    )
    assert engine.triage(from_bytes(log.encode())).action.exclude_hosts == ("gpu-014",)


START = "srun -l --nodelist='{nodes}' --ntasks-per-node=1 bash -c {command}"


@given(st.one_of(anything, st.just("gpu[01-04,07]")))
def test_a_command_for_every_host_is_one_word_after_what_starts_it(nodes: str) -> None:
    run = """python -c "import torch; print('x')"; ls $(pwd)"""
    result = on_hosts(run, START, {"nodes": nodes})
    if result != run:
        assert shlex.split(result) == ["srun", "-l", f"--nodelist={nodes}", "--ntasks-per-node=1", "bash", "-c", run]


@pytest.mark.parametrize(
    ("above", "begins"),
    [
        ("SLURM_JOB_ID=48123\nSLURM_JOB_NODELIST=gpu[01-04]\n", "srun -l --nodelist='gpu[01-04]' --ntasks-per-node=1 "),
        ("srun: job 48123 has been allocated resources\n", "srun -l --nodelist=$(sacct -XnP -j 48123 -o NodeList) "),
        ("SLURM_JOB_NODELIST=gpu01\n", "nvidia-smi "),  # one host
        ("job id: 48123\n", "nvidia-smi "),  # of whichever scheduler
    ],
)
def test_steps_for_every_host_of_a_slurm_job_are_started_by_srun(engine: Engine, above: str, begins: str) -> None:
    frames = 'Traceback (most recent call last):\n  File "/job/train.py", line 40, in main\n    loss.backward()\n'
    log = f"{above}step 300/1000 loss 2.1\n{frames}{ECC}"
    verdict = engine.triage(from_bytes(log.encode()))
    assert verdict.answer is not None
    run = verdict.answer.steps[0].run
    assert run is not None
    assert run.startswith(begins)
    assert ("--exclusive bash -c 'nvidia-smi " in run) == run.startswith("srun")
    assert not {fact.name for fact in verdict.facts} & {"every_host", "every_whole_host"}
