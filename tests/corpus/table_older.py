"""The cases that older versions of torch wrote: other launchers, tables and words for what torch 2.13 shows as well."""

from __future__ import annotations

from tests.corpus.cases import (
    ALL_RANKS,
    PEERS,
    PYTHON,
    SUCCESS,
    Case,
    Kill,
    launch_1_7,
    launch_1_9,
    one,
    spelled_out,
    two_hosts_spelled_out,
)

BUG = "usage.python-error"
POLLED = "The agent looks every 5 s and meets all of them at once; nothing in the log says which rank raised."
LATE = "The agent looks every 5 s: the signal stands in the table only."


def _both(torch: str, name: str) -> tuple[Case, ...]:
    """-> the cases that 1.12 and 2.1 share; `name` begins each folder's name."""
    tree = "--standalone --redirects 3 --log_dir logs"
    return (
        Case(f"{name}_attribute", "none_attribute.py", one(spelled_out(4)), BUG, "AttributeError: 'NoneType'", 2, (), PEERS,
             1, rank_told=False, torch=torch, notes=POLLED),
        Case(f"{name}_kill9_tee", "slow_steps.py", one(spelled_out(3, options="--standalone --tee 3")),
             "process.oom-killed", "exitcode  : -9", 2, (), PEERS, -9, "SIGKILL", kill=Kill("step 5/", "SIGKILL", "rank 2"),
             torch=torch, notes=LATE),
        Case(f"{name}_kill9_two_hosts", "slow_steps.py", two_hosts_spelled_out(), "process.oom-killed", "exitcode  : -9", 3,
             (), PEERS, -9, "SIGKILL", kill=Kill("step 4/", "SIGKILL", "rank 3"), torch=torch, notes=LATE),
        Case(f"{name}_segv_tree", "signal_self.py", one(spelled_out(2, "1 4 11", tree)), "process.sigsegv",
             "exitcode  : -11", 1, (), PEERS, -11, "SIGSEGV", tree=True, torch=torch, notes=LATE),
        Case(f"{name}_bus", "signal_self.py", one(spelled_out(3, "1 3 7")), "process.sigbus", "exitcode  : -7", 1, (), PEERS,
             -7, "SIGBUS", torch=torch, notes=LATE),
        Case(f"{name}_stuck_rank", "stuck_rank.py", one(spelled_out(3)), "gloo.timeout", "Timed out waiting 6000ms", None,
             ("perf.hang",), ("elastic.sigterm",), 1, torch=torch,
             notes="Rank 1 sleeps; the log does not show where it is."),
        Case(f"{name}_ddp_unused", "ddp_unused.py", one(spelled_out(2)), "ddp.unfinished-reduction",
             "RuntimeError: Expected to have finished reduction", None, (), (), 1, torch=torch, notes=ALL_RANKS),
        Case(f"{name}_ddp_twice", "ddp_twice.py", one(spelled_out(2)), "ddp.marked-ready-twice",
             "RuntimeError: Expected to mark a variable ready only once", None, (), (), 1, torch=torch, notes=ALL_RANKS),
        Case(f"{name}_view_inplace", "view_inplace.py", one(spelled_out(2)), "autograd.view-inplace",
             "SliceBackward0 is a view", None, (), (), 1, torch=torch, notes=ALL_RANKS),
        Case(f"{name}_restarts", "other_on_restart.py", one(spelled_out(2, options="--standalone --max_restarts 1")),
             "process.oom-killed", "failed (exitcode: -9) local_rank: 0", 0, (), (*PEERS, "data.corrupt"), -9, "SIGKILL",
             torch=torch, notes="The second attempt dies of what the first one left, a state file without its end."),
        Case(f"{name}_ok_second_attempt", "kill_once.py", one(spelled_out(1, options="--standalone --max_restarts 1")),
             SUCCESS, "", also=("process.oom-killed",), torch=torch,
             notes="The first attempt was killed; the second ran to the end."),
        Case(f"{name}_worker_segv", "worker_segv.py", one(spelled_out(2)), "dataloader.worker-killed",
             "is killed by signal: Segmentation fault", 0, ("process.sigsegv",), PEERS, 1, rank_told=False, torch=torch),
        Case(f"{name}_worker_killed", "worker_killed.py", one(spelled_out(2)), "dataloader.worker-killed",
             "is killed by signal: Killed", 1, ("process.oom-killed", "dataloader.host-memory"), PEERS, 1, form="ts",
             rank_told=False, torch=torch),
        Case(f"{name}_recorded_bug", "recorded_bug.py", one(spelled_out(2, options=tree)), BUG,
             "ValueError: could not convert string to float: 'n/a'", 1, (), PEERS, 1, tree=True, torch=torch,
             notes="error.json files lie in the tree."),
        Case(f"{name}_recorded_kill", "recorded_kill.py", one(spelled_out(3, options=tree)), "process.oom-killed",
             "exitcode  : -9", 0, (), PEERS, -9, "SIGKILL", tree=True, torch=torch,
             notes="Victims have an error.json, the killed rank has none."),
        Case(f"{name}_spawn_zero", "spawn_zero.py", one(f"{PYTHON} train.py {{port}}"), BUG,
             "ZeroDivisionError: integer division", 1, torch=torch),
        Case(f"{name}_spawn_segv", "spawn_segv.py", one(f"{PYTHON} train.py {{port}}"), "process.sigsegv",
             "terminated with signal SIGSEGV", 1, (), ("gloo.error",), None, "SIGSEGV", torch=torch),
        Case(f"{name}_other_model", "resume_other_model.py", one(spelled_out(2)), "checkpoint.size-mismatch",
             "size mismatch for body.0.weight", None, ("checkpoint.key-mismatch",), (), 1, torch=torch, notes=ALL_RANKS),
        Case(f"{name}_no_driver", "to_cuda.py", one(spelled_out(2)), "cuda.no-device",
             "RuntimeError: Found no NVIDIA driver on your system", None, ("cuda.driver-too-old", "cuda.init-error"), (), 1,
             torch=torch, notes=ALL_RANKS),
    )  # fmt: skip


OLDEST_CASES = (
    Case("torch17_attribute", "none_attribute.py", one(launch_1_7(3)), BUG, "AttributeError: 'NoneType'", None, (),
         ("gloo.error",), 1, torch="1.7", notes="No table and no prefix; nothing says which rank it was."),
    Case("torch17_kill9", "slow_steps.py", one(launch_1_7(2)), "process.oom-killed", "died with <Signals.SIGKILL: 9>", None,
         (), ("gloo.error",), None, "SIGKILL", kill=Kill("step 5/", "SIGKILL", "rank 0"), torch="1.7",
         notes="The launcher waits for rank 0 first, and tells its signal only."),
    Case("torch17_segv", "signal_self.py", one(launch_1_7(2, "0 4 11")), "process.sigsegv",
         "died with <Signals.SIGSEGV: 11>", None, (), ("gloo.error",), None, "SIGSEGV", torch="1.7"),
    Case("torch17_stuck_rank", "stuck_rank.py", one(launch_1_7(2)), "gloo.timeout", "Timed out waiting 6000ms", None,
         ("perf.hang",), ("gloo.error",), 1, torch="1.7"),
    Case("torch17_ddp_unused", "ddp_unused.py", one(launch_1_7(2)), "ddp.unfinished-reduction",
         "RuntimeError: Expected to have finished reduction", None, (), (), 1, torch="1.7", notes=ALL_RANKS),
    Case("torch17_worker_segv", "worker_segv.py", one(launch_1_7(2)), "dataloader.worker-killed",
         "is killed by signal: Segmentation fault", None, ("process.sigsegv",), ("gloo.error",), 1, torch="1.7"),
    Case("torch17_ok_view_warning", "view_inplace.py", one(launch_1_7(2)), SUCCESS, "", torch="1.7",
         notes="What later versions refuse is a warning here."),
    Case("torch19_attribute", "none_attribute.py", one(launch_1_9(3)), BUG, "AttributeError: 'NoneType'", 2, (), PEERS, 1,
         rank_told=False, torch="1.9", notes=POLLED),
    Case("torch19_kill9", "slow_steps.py", one(launch_1_9(3)), "process.oom-killed", "exitcode: -9", 1, (), PEERS, -9,
         "SIGKILL", kill=Kill("step 5/", "SIGKILL", "rank 1"), torch="1.9", notes=LATE),
    Case("torch19_ddp_unused", "ddp_unused.py", one(launch_1_9(2)), "ddp.unfinished-reduction",
         "RuntimeError: Expected to have finished reduction", None, (), (), 1, torch="1.9", notes=ALL_RANKS),
    Case("torch19_view_inplace", "view_inplace.py", one(launch_1_9(2)), "autograd.view-inplace", "SliceBackward is a view",
         None, (), (), 1, torch="1.9", notes=ALL_RANKS),
    Case("torch19_recorded_bug", "recorded_bug.py", one(launch_1_9(2)), BUG,
         "ValueError: could not convert string to float: 'n/a'", 1, (), PEERS, 1, torch="1.9"),
)  # fmt: skip

OLDER_CASES = (*OLDEST_CASES, *_both("1.12", "torch112"), *_both("2.1", "torch21"))
