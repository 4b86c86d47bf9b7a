"""Checkpoints that a run wrote, from the messages of libraries to the verdict."""

from __future__ import annotations

import pytest

from tests.built_in import built_in_engine
from tests.logs import report, traceback
from torchtriage.domain.line import Line, Position
from torchtriage.domain.verdict import Checkpoint
from torchtriage.engine import Engine
from torchtriage.facts import collector
from torchtriage.facts.checkpoints import (
    FAILED,
    LIST,
    STARTED,
    WRITTEN,
    CheckpointMessage,
    Messages,
    completed_checkpoints,
)
from torchtriage.reading import hit_selection
from torchtriage.reading.scan import Scanner
from torchtriage.reading.skipped_lines import OF_FIRST_RANKS, joined
from torchtriage.reading.sources import from_bytes

OOM = [*traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", [("/job/train.py", 9, "main", "step()")])]  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Engine:
    return built_in_engine()


@pytest.fixture(scope="module")
def messages(engine: Engine) -> Messages:
    return Messages(engine.knowledge.vocabulary.patterns(LIST))


def saved(engine: Engine, *lines: str) -> list[tuple[str | None, int | None, str | None, int]]:
    """Returns path, step, time and line of each checkpoint of a log."""
    verdict = engine.triage(from_bytes("\n".join([*lines, ""]).encode()))
    assert verdict.run.checkpoint == (verdict.run.checkpoints[-1] if verdict.run.checkpoints else None)
    return [(one.path, one.step, one.time, one.line) for one in verdict.run.checkpoints]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("saving checkpoint at iteration     500 to /ckpt/gpt in torch_dist format", CheckpointMessage(STARTED, "/ckpt/gpt", 500)),
        ("  successfully saved checkpoint from iteration     500 to /ckpt/gpt", CheckpointMessage(WRITTEN, "/ckpt/gpt", 500)),
        ("Saving model checkpoint to out/checkpoint-500", CheckpointMessage(STARTED, "out/checkpoint-500", 500)),
        ("[Rank 0] Saving model checkpoint: /c/global_step7/mp_rank_00_model_states.pt",
         CheckpointMessage(STARTED, "/c/global_step7", 7)),
        ("[Torch] Saved /c/global_step7/zero_pp_rank_0_mp_rank_00_optim_states.pt.", CheckpointMessage(STARTED, "/c/global_step7", 7)),
        ("[Torch] Checkpoint global_step7 is ready now!", CheckpointMessage(WRITTEN, "global_step7", 7)),
        ("Epoch 1, global step 99: 'val_loss' reached 1.2 (best 1.2), saving model to '/o/epoch=1-step=99.ckpt' as top 1",
         CheckpointMessage(STARTED, "/o/epoch=1-step=99.ckpt", 99)),
        ("Async checkpoint save for step 40 (/r/gpt-step=40.ckpt) finalized successfully.",
         CheckpointMessage(WRITTEN, "/r/gpt-step=40.ckpt", 40)),
        ("Saved checkpoint checkpoints/checkpoint_6_4000.pt (epoch 6 @ 4000 updates, score 2.1)",
         CheckpointMessage(WRITTEN, "checkpoints/checkpoint_6_4000.pt", 4000)),
        ("Saving checkpoint to ./output/model_final.pth", CheckpointMessage(STARTED, "./output/model_final.pth")),
        ("Finished saving the checkpoint (or staging if async is enabled)in 5.53 seconds.", CheckpointMessage(WRITTEN)),
        ("saved ckpt/step20.pt", CheckpointMessage(WRITTEN, "ckpt/step20.pt", 20)),
        ("Failed to save checkpoint: No space left on device", CheckpointMessage(FAILED)),
        ("Loading checkpoint from out/checkpoint-500", None),
        ("saved figure.png", None),
        ("    torch.save(model.state_dict(), 'last.pt')", None),
    ],
)  # fmt: skip
def test_what_a_line_says(messages: Messages, text: str, message: CheckpointMessage | None) -> None:
    assert messages.read(text) == message


def test_each_pointer_shows_something_and_ends_before_the_path(messages: Messages) -> None:
    for pointer in messages.pointers:
        assert "(?P<path>" not in pointer
        assert sum(map(str.isalpha, pointer)) >= 8, pointer


def test_a_checkpoint_has_the_time_of_its_line_or_of_one_close_above(engine: Engine) -> None:
    lines = ["2026-05-01 09:00:00 step 499 loss 2.0", "Saving model checkpoint to out/checkpoint-500",
             "2026-05-01 09:05:00 step 501 loss 2.0", *OOM]  # fmt: skip
    assert saved(engine, *lines) == [("out/checkpoint-500", 500, "2026-05-01T09:00:00", 2)]


def test_what_began_to_be_saved_counts_only_where_the_run_continued(engine: Engine) -> None:
    begun = ["step 499 loss 2.0", "Saving model checkpoint to out/checkpoint-500"]
    assert saved(engine, *begun, *OOM) == []
    assert len(saved(engine, *begun, "step 501 loss 2.0", *OOM)) == 1


def test_what_could_not_be_written_is_not_a_checkpoint(engine: Engine) -> None:
    full = traceback("OSError: [Errno 28] No space left on device",
                     [("/env/lib/python3.11/site-packages/torch/serialization.py", 628, "save", "_save(obj)")])  # fmt: skip
    first = ["step 1 loss 2.0", "Saving model checkpoint to out/checkpoint-1", "step 2 loss 2.0"]
    second = ["Saving model checkpoint to out/checkpoint-2", "[rank 1] step 3 loss 2.0"]
    assert [step for _, step, _, _ in saved(engine, *first, *second, *full)] == [1]
    caught = "WARNING Failed to save checkpoint: disk quota exceeded"
    assert [step for _, step, _, _ in saved(engine, *first, *second, caught, "step 4 loss 1.0", *OOM)] == [1]


def test_a_checkpoint_of_many_files_is_one_and_the_newest_few_are_reported(engine: Engine) -> None:
    lines: list[str] = []
    for step in range(1, 9):
        lines += [f"[Torch] Saved /c/global_step{step}/zero_pp_rank_{rank}_states.pt." for rank in range(4)]
        lines += [f"[Torch] Checkpoint global_step{step} is ready now!", f"step {step} loss 1.0"]
    result = saved(engine, *lines, *OOM)
    assert [(path, step) for path, step, _, _ in result] == [(f"/c/global_step{step}", step) for step in range(4, 9)]


def test_what_was_written_after_the_failure_does_not_count(engine: Engine) -> None:
    lines = ["step 1 loss 2.0", "saved ckpt/step1.pt", *OOM, "saved ckpt/step2.pt"]
    assert [step for _, step, _, _ in saved(engine, *lines)] == [1]


def test_the_last_one_is_found_in_the_middle_of_a_big_log(engine: Engine) -> None:
    filling = [f"[rank 0] a line of no interest {number % 1000}" for number in range(12_000)]
    made = ["2026-05-01 09:00:00 step 10", "  successfully saved checkpoint from iteration     10 to /ckpt/gpt"]
    lines = [*filling, *made, *filling, *OOM]
    assert saved(engine, *lines) == [("/ckpt/gpt", 10, "2026-05-01T09:00:00", 12_002)]


def test_progress_of_others_shows_nothing_where_saving_failed() -> None:
    lines = [(Line(1, "", "", Position(1, 1)), CheckpointMessage(STARTED, "a", 1))]
    second, third, fourth = Position(1, 2), Position(1, 3), Position(1, 4)
    assert completed_checkpoints(lines, [second], third, failed_saving=True) == ()
    assert completed_checkpoints(lines, [second], third, failed_saving=False) == (Checkpoint("a", 1, None, 1),)
    assert completed_checkpoints(lines, [fourth], third, failed_saving=False) == ()


def test_what_512_ranks_say_of_one_checkpoint_does_not_displace_those_before(engine: Engine) -> None:
    lines = []
    for step in range(500, 2001, 500):
        lines += [f"0: step {at} | loss 2.1 | lr 3.0e-04 | grad norm 0.512 | 7.01 s" for at in range(step - 500, step)]
        lines += [f"{rank}: Saving checkpoint to /ckpt/checkpoint-{step}" for rank in range(512)]
        lines += [f"{rank}: Saved checkpoint to /ckpt/checkpoint-{step}" for rank in range(512)]
    found = saved(engine, *lines, "0: step 2001 | loss 2.1", *(f"5: {line}" for line in OOM))
    assert [step for _, step, _, _ in found] == [500, 1000, 1500, 2000]
    assert all(lines[line - 1].endswith(f"checkpoint-{step}") for _, step, _, line in found)


def test_the_newest_checkpoints_are_found_in_the_middle_of_a_big_log(engine: Engine) -> None:
    lines = []
    for step in range(100, 1001, 100):
        lines += [f"0: step {step} | loss 2.1 | {'grad ' * 300}" for _ in range(100)]
        lines += [f"{rank}: Saved checkpoint to /ckpt/checkpoint-{step}" for rank in range(64)]
    found = saved(engine, *lines, "0: step 1001 | loss 2.1", *(f"5: {line}" for line in OOM))
    assert [step for _, step, _, _ in found] == [600, 700, 800, 900, 1000]
    assert all(lines[line - 1].endswith(f"checkpoint-{step}") for _, step, _, line in found)


def test_ranks_that_report_often_do_not_end_the_search_for_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hit_selection, "MAX_MATCHES", 10)
    hits = hit_selection.HitSelection(Scanner(lambda: [b"Saved"]), frozenset(), lambda *_: True, frozenset({0}))
    block = b"0: Saved checkpoint\n" * 20
    for _ in range(2):
        assert list(hits.select(block)) == []
        assert [(one.start, one.end) for one in hits.newest][-1] == (19 * 20, 20 * 20 - 1)
        assert len(hits.newest) == OF_FIRST_RANKS


def test_a_rank_that_saves_after_the_failure_takes_no_checkpoint_away(engine: Engine) -> None:
    text = "Saved checkpoint to /ckpt/checkpoint-500"
    found = saved(
        engine, "0: step 500 | loss 2.1", f"0: {text}", f"1: {text}", *(f"0: {line}" for line in OOM), f"2: {text}"
    )
    assert [(step, line) for _, step, _, line in found] == [(500, 2)]


STEPS = [f"0: step {at} | loss 2.1 | lr 3.0e-04 | grad norm 0.512 | 7.01 s" for at in range(3000)]


def test_checkpoints_that_are_close_together_are_all_reported(engine: Engine) -> None:
    made = [f"Saved checkpoint to /ckpt/checkpoint-{step}" for step in range(100, 1001, 100)]
    close = [line for step, one in enumerate(made) for line in (f"0: {one}", *STEPS[step : step + 5])]
    found = saved(engine, *STEPS, *close, *STEPS, *(f"0: {line}" for line in OOM))
    assert [step for _, step, _, _ in found] == [600, 700, 800, 900, 1000]


def test_a_rank_that_reports_late_does_not_make_its_checkpoint_the_newest(engine: Engine) -> None:
    late = [f"{rank}: Saved checkpoint to /ckpt/checkpoint-{step}" for step in (100, 200) for rank in range(3)]
    late.append("3: Saved checkpoint to /ckpt/checkpoint-100")
    assert [step for _, step, _, _ in saved(engine, *STEPS, *late, *STEPS, *(f"0: {line}" for line in OOM))] == [
        100,
        200,
    ]
    again = "0: Saved checkpoint to /ckpt/checkpoint-100"  # It began anew at an older one.
    found = saved(engine, *STEPS, *late[:-1], again, *STEPS, *(f"0: {line}" for line in OOM))
    assert [step for _, step, _, _ in found] == [100, 200, 100]


def test_a_message_of_one_rank_is_not_displaced_by_those_of_others(engine: Engine) -> None:
    lines = []
    for step in range(1, 41):
        lines += [f"{rank}: Saved checkpoint to /ckpt/{rank}/checkpoint-{step}" for rank in range(100)]
        lines += STEPS[step : step + 20]
    lines.insert(2000, "77: Saved checkpoint to /ckpt/77/checkpoint-900")
    assert saved(engine, *STEPS, *lines[:2500], *STEPS, *(f"0: {line}" for line in OOM))[-1][1] == 21


def test_what_goes_by_unread_does_not_displace_what_is_at_the_end(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "NEWEST", 20)
    many = [f"0: Saved checkpoint to /ckpt/checkpoint-{step}" for step in range(1, 400)]
    found = saved(engine, *STEPS, *many, *STEPS[:1500], *STEPS[:50], "0: Saved checkpoint to /ckpt/checkpoint-500", *(f"0: {line}" for line in OOM))  # fmt: skip
    assert [step for _, step, _, _ in found] == [396, 397, 398, 399, 500]


def test_of_two_launches_in_a_file_the_checkpoint_is_that_of_the_last(engine: Engine) -> None:
    launch = "Script started on 2026-05-01 09:00:00+00:00"
    first, second = (f"0: Saved checkpoint to /ckpt/checkpoint-{step}" for step in (100, 200))
    failed = [f"0: {line}" for line in OOM]
    found = saved(
        engine, launch, *STEPS, first, *STEPS, *failed, *report((0, 1)), launch, *STEPS, second, *STEPS, *failed
    )
    assert [step for _, step, _, _ in found] == [200]


def test_pieces_that_touch_are_one_and_no_line_is_twice() -> None:
    pieces = [(7, b"g\nh"), (1, b"a\nb\nc"), (2, b"b\nc\nd"), (9, b"i"), (2, b"b")]
    assert list(joined(pieces)) == [(1, b"a\nb\nc\nd"), (7, b"g\nh\ni")]
