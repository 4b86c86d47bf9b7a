"""What follows from what bars, clocks and steps tell: lines as real runs print them."""

import pytest

from torchtriage.answer.failure_facts.derived_facts import duration_text
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

RAISED = 'Traceback (most recent call last):\n  File "/job/train.py", line 9, in main\n    step(batch)\nValueError: bad batch\n'
MAP = "Map (num_proc=8):  {percent}%|███▏      | {done}/20000 [01:47<01:31, 149.29 examples/s]"


def facts_of(engine: Engine, *lines: str) -> dict[str, object]:
    return {fact.name: fact.value for fact in engine.triage(from_bytes("".join(lines).encode())).facts}


def test_the_newest_state_of_a_bar_that_was_drawn_over(engine: Engine) -> None:
    bars = " 91%|█████████ | 1627/1773 [14:27:58<1:11:44, 29.48s/it]\r 92%|█████████▏| 1628/1773 [14:28:27<1:11:09, 29.45s/it]"
    found = facts_of(engine, "***** Running training *****\n", f"{bars}\r{{'loss': 0.26, 'epoch': 0.91}}\n", RAISED)
    assert (found["step"], found["total_steps"], found["run_time"]) == (1628, 1773, "14 h 28 min")
    assert (found["steps_left"], found["time_left"]) == (145, "1 h 11 min")
    assert (found["whole_time"], found["time_to_ask"]) == ("15 h 40 min", "19:00:00")


@pytest.mark.parametrize(
    ("line", "epoch", "says"),
    [
        ("Epoch: [3][ 120/1000] Loss 0.52 (0.61)\n", "3", "The run was at step 120 of 1000 in epoch 3"),
        ("Epoch: [0][ 120/1000] Loss 0.52 (0.61)\n", None, "The run was at step 120 of 1000."),
    ],
)
def test_the_epoch_of_a_step(engine: Engine, line: str, epoch: str | None, says: str) -> None:
    verdict = engine.triage(from_bytes((line + RAISED).encode()))
    assert {fact.name: str(fact.value) for fact in verdict.facts}.get("epoch_of_step") == epoch
    assert verdict.answer is not None
    assert says in verdict.answer.says


@pytest.mark.parametrize(
    ("asked", "allocated", "copies"),
    [("55.88 GiB", "167.64 GiB", 3), ("55.88 GiB", "170.02 GiB", None), ("64.00 MiB", "9.00 GiB", None)],
)
def test_how_many_tensors_of_that_size_are_held_already(
    engine: Engine, asked: str, allocated: str, copies: int | None
) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/job/net.py", line 6, in forward\n    l = z.mul(2.0)\n'
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 178.35 GiB "
        "of which 10.00 GiB is free. Including non-PyTorch memory, this process has 168.34 GiB memory in use. Of the "
        f"allocated memory {allocated} is allocated by PyTorch, and 4.62 MiB is reserved by PyTorch but unallocated.\n"
    )
    known = facts_of(engine, raised)
    assert known.get("copies_held") == copies
    assert ("asked_percent" in known) == asked.endswith("GiB")  # hundreds of small tensors are of one size


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        (
            "GPU 0 has a total capacity of 80.00 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process "
            "has 19.00 GiB memory in use. Of the allocated memory 17.00 GiB is allocated by PyTorch, and 512.00 MiB is "
            "reserved by PyTorch but unallocated.",
            {"held_by_others": "60.00 GiB", "others_percent": 75},
        ),
        (
            "GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. Of the allocated memory 13.98 GiB is allocated "
            "by PyTorch, and 129.48 MiB is reserved by PyTorch but unallocated.",
            {"beyond_capacity": "5.98 GiB"},
        ),
        (
            "(GPU 0; 10.00 GiB total capacity; 8.00 GiB already allocated; 0 bytes free; 10.00 GiB reserved in total by PyTorch)",
            {},
        ),
    ],
)
def test_who_holds_a_full_gpu(engine: Engine, message: str, facts: dict[str, object]) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/job/net.py", line 6, in forward\n    l = z.mul(2.0)\n'
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. {message}\n"
    )
    found = facts_of(engine, raised)
    names = ("held_by_others", "others_percent", "beyond_capacity")
    assert {name: found[name] for name in names if name in found} == facts


def test_what_a_loop_with_a_name_had_done_when_a_signal_came(engine: Engine) -> None:
    line = f"{MAP.format(percent=31, done=6200)}{MAP.format(percent=32, done=6400)}"
    agent = "W0729 12:02:35.460000 38 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, shutting down workers\n"
    verdict = engine.triage(from_bytes(f"{line}\r{MAP.format(percent=32, done=6400)}{agent}".encode()))
    assert verdict.answer is not None
    assert "Map (num_proc=8) was at 6400/20000" in verdict.answer.says


@pytest.mark.parametrize(
    "setting", ['  "warm_step": 30000,\n', "2025-08-27 10:02:23,635 INFO [train.py:959] (0/3) Warmup steps: 30000\n"]
)
def test_a_setting_is_not_a_step(engine: Engine, setting: str) -> None:
    assert "step" not in facts_of(engine, setting, RAISED)


def test_a_bar_of_something_else_shows_no_step(engine: Engine) -> None:
    found = facts_of(engine, "epoch 1 loss 0.5\n", f"{MAP.format(percent=32, done=6400)}\n", RAISED)
    assert "step" not in found
    assert (found["progress_of"], found["progress"]) == ("Map (num_proc=8)", "6400/20000")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(12, "12 s"), (1580, "26 min"), (7200, "2 h"), (10520, "2 h 55 min"), (86400 * 3 + 7200, "3 d 2 h")],
)
def test_spoken(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_the_bar_of_the_step_shows_how_many_there_are_and_percents_are_not_steps(engine: Engine) -> None:
    bar = "Steps:   2%|▏         | 1999/100000 [1:02:30<51:04:52,  1.88s/it, grad_norm=1.44]\n"
    found = facts_of(engine, "max_steps: 6910\n***** Running training *****\n", bar, RAISED)
    assert (found["step"], found["total_steps"]) == (1999, 100000)


def test_a_bar_next_to_the_scheduler_s_words_shows_the_time_to_ask_for(engine: Engine) -> None:
    bar = " 22%|██▏       | 11/50 [1:55:26<6:49:05, 629.37s/it]"
    ended = "slurmstepd: error: *** JOB 42221 ON clr1 CANCELLED AT 2022-04-14T16:20:46 DUE TO TIME LIMIT ***\n"
    found = facts_of(engine, bar, ended)
    assert (found["whole_time"], found["time_to_ask"]) == ("8 h 45 min", "11:00:00")


@pytest.mark.parametrize(("unused", "joined"), [("14.15 GiB", "21.11 GiB"), ("9.00 GiB", None)])
def test_unused_memory_that_would_hold_what_was_asked_for_in_one_piece(
    engine: Engine, unused: str, joined: str | None
) -> None:
    raised = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 14.06 GiB. GPU 2 has a total capacity of 79.25 GiB "
        "of which 6.96 GiB is free. Including non-PyTorch memory, this process has 72.28 GiB memory in use. Of the "
        f"allocated memory 56.70 GiB is allocated by PyTorch, and {unused} is reserved by PyTorch but unallocated.\n"
    )
    assert facts_of(engine, raised).get("fits_if_joined") == joined


@pytest.mark.parametrize(("unused", "percent", "told_so"), [("2.00 GiB", 1, False), ("9.20 GiB", 5, True)])
def test_a_hundredth_of_the_gpu_that_is_unused_is_not_fragmentation(
    engine: Engine, unused: str, percent: int, told_so: bool
) -> None:
    raised = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 720.00 MiB. GPU 5 has a total capacity of 184.31 "
        "GiB of which 443.94 MiB is free. Including non-PyTorch memory, this process has 183.87 GiB memory in use. Of the "
        f"allocated memory 171.63 GiB is allocated by PyTorch, and {unused} is reserved by PyTorch but unallocated.\n"
    )
    assert facts_of(engine, raised)["unused_percent"] == percent
    answer = engine.triage(from_bytes(raised.encode())).answer
    assert answer is not None
    assert answer.says.startswith("Fragmentation") is told_so


@pytest.mark.parametrize(("got", "elements"), [("32000, 4096", 131072000), ("32064, 4096", None)])
def test_two_shapes_of_as_many_elements(engine: Engine, got: str, elements: int | None) -> None:
    raised = (
        "RuntimeError: Cannot writeback when the parameter shape changes\n"
        f"Expects torch.Size([131072000]) but got torch.Size([{got}])\n"
    )
    assert facts_of(engine, raised).get("same_elements") == elements


def test_what_a_tensor_lacks_and_into_how_many_parts_it_must_go(engine: Engine) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/job/net.py", line 6, in forward\n    l = z.mul(2.0)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 55.57 GiB. GPU 0 has a total capacity of 12.00 GiB "
        "of which 9.02 GiB is free. Of the allocated memory 984.52 MiB is allocated by PyTorch, and 463.48 MiB is reserved "
        "by PyTorch but unallocated.\n"
    )
    found = facts_of(engine, "per_device_train_batch_size=9\n", "Gradient Accumulation steps = 4\n", raised)
    assert (found["short_by"], found["parts_needed"]) == ("46.55 GiB", 7)
    assert (found["half_batch_size"], found["double_accumulation"]) == (4, 8)
    assert "half_batch_size" not in facts_of(engine, "per_device_train_batch_size=1\n", raised)


@pytest.mark.parametrize(
    ("before", "last", "done"),
    [
        ("", "step:600/600 train_time:35241ms step_avg:58.74ms\n", 600),
        ("", "step:599/600 train_time:35183ms step_avg:58.74ms\n", None),
        ("Namespace(num_train_epochs=3)\nEpoch: 1\n", "step:600/600 train_time:35241ms step_avg:58.74ms\n", None),
    ],
)
def test_whether_all_steps_were_done(engine: Engine, before: str, last: str, done: int | None) -> None:
    assert facts_of(engine, before, last, RAISED).get("all_steps_done") == done


@pytest.mark.parametrize(
    ("below", "pid"),
    [
        ("[2026-10-01 01:17:14,554] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 912333\n", 912333),
        ("W0312 10:20:11.3 912300 api.py:897] Sending process 912333 closing signal SIGTERM\n", 912333),
        ("[2026-10-01 01:17:14,554] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 91233\n", None),
        ("", None),
    ],
)
def test_a_holder_of_memory_that_the_launcher_started_is_another_rank(
    engine: Engine, below: str, pid: int | None
) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/job/net.py", line 6, in forward\n    l = z.mul(2.0)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 79.15 GiB "
        "of which 944.56 MiB is free. Process 912333 has 61.20 GiB memory in use. Including non-PyTorch memory, this "
        "process has 17.01 GiB memory in use. Of the allocated memory 15.80 GiB is allocated by PyTorch, and 612.00 MiB "
        f"is reserved by PyTorch but unallocated.\n{below}"
    )
    assert facts_of(engine, raised).get("other_rank_pid") == pid


@pytest.mark.parametrize(
    ("ranks", "free", "together"), [(2, "68.88 MiB", 2), (1, "68.88 MiB", None), (2, "20.00 GiB", None)]
)
def test_ranks_that_fill_a_gpu_together_share_it(engine: Engine, ranks: int, free: str, together: int | None) -> None:
    message = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 984.00 MiB (GPU 0; 47.50 GiB total capacity; "
        f"22.15 GiB already allocated; {free} free; 22.16 GiB reserved in total by PyTorch)"
    )
    raised = "".join(
        f'[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]:   File "/job/net.py", line 6, in build\n'
        f"[rank{rank}]:     net.cuda()\n[rank{rank}]: {message}\n"
        for rank in range(ranks)
    )
    assert facts_of(engine, raised).get("ranks_on_gpu") == together
