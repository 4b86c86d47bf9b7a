import pytest

from tests.collected import Collected
from tests.logs import traceback
from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line, Position
from torchtriage.parsing.tracebacks import Tracebacks


def read(lines: list[str], streams: list[str] | None = None) -> list[Event]:
    extractor, above = Collected(Tracebacks()), ""
    for number, text in enumerate(lines, 1):
        line = Line(number, text, text, Position(1, number), stream=streams[number - 1] if streams else "")
        extractor.expect([line])
        extractor.feed(line, above)
        above = text
    extractor.close()
    return extractor.events


def test_type_message_frames_and_line() -> None:
    (event,) = read(
        [*traceback("ValueError: bad 3", [("/job/a.py", 3, "f", "g()"), ("/env/site-packages/b.py", 9, "g", "raise")])]
    )
    assert event.exception is not None
    assert (event.exception.type, event.exception.message) == ("ValueError", "bad 3")
    assert [(frame.function, frame.user_code) for frame in event.exception.frames] == [("f", True), ("g", False)]
    assert event.line.number == 6


def test_a_class_that_a_function_defines_has_a_name_too() -> None:
    (event,) = read(traceback("train.main.<locals>.NoMoreRows: bucket 7 is empty"))
    assert event.exception is not None
    assert (event.exception.type, event.exception.message) == ("train.main.<locals>.NoMoreRows", "bucket 7 is empty")


def test_what_slurmstepd_says_below_an_exception_is_not_a_part_of_its_message() -> None:
    line = "slurmstepd-gpu-7: error: *** STEP 22.0 ON gpu-7 CANCELLED AT 2026-05-01T09:00:00 ***"
    (event,) = read([*traceback("TypeError: forward() takes no mask"), line])
    assert event.exception is not None
    assert event.exception.message == "forward() takes no mask"


def test_a_chain_keeps_the_first_raised_first() -> None:
    first = traceback("KeyError: 'lr'")
    second = traceback("RuntimeError: bad configuration")
    (event,) = read([*first, "", "The above exception was the direct cause of the following exception:", "", *second])
    assert [raised.type for raised in event.chain] == ["KeyError", "RuntimeError"]


def test_what_old_data_loaders_carry_in_their_own_exception_was_raised_first() -> None:
    loader, worker = traceback("Exception: KeyError:"), traceback("KeyError: 'image'")
    (event,) = read([*loader, *worker])
    assert [raised.type for raised in event.chain] == ["KeyError", "Exception"]


def test_of_a_chain_whose_exceptions_were_cut_off_the_frames_remain() -> None:
    connector = "During handling of the above exception, another exception occurred:"
    (event,) = read(["'LOCAL_RANK'", "", connector, "", *traceback("x")[1:-1]])
    assert event.source is EventSource.CUT_TRACEBACK
    assert event.exception is not None
    assert event.exception.frames


def test_a_sentence_about_another_exception_begins_nothing() -> None:
    assert (
        read(["see the above exception", "The above exception was the direct cause of the following exception:"]) == []
    )


def test_an_npus_own_line_below_the_message_shows_the_rank() -> None:
    own = "[ERROR] 2026-01-08-18:07:20 (PID:1292363, Device:3, RankID:3) ERR01100 OPS call acl api failed."
    (event,) = read([*traceback("RuntimeError: OPS function error: Conv2D, error code is 500002"), own])
    assert event.rank == 3


def test_what_gloo_quotes_belongs_to_the_message() -> None:
    quoted = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.1.2.3]:33177"
    (event,) = read([*traceback("RuntimeError: Rank 1 reached monitoredBarrier"), " Original exception: ", quoted])
    assert event.exception is not None
    assert event.exception.message.endswith(quoted)


@pytest.mark.parametrize(
    "item", ["  - rows was inferred to be a constant (32).", "  * a second reason", "   1. first cause"]
)
def test_a_list_below_belongs_to_the_message(item: str) -> None:
    (event,) = read([*traceback("RuntimeError: Constraints violated (rows)!"), item, "step 1 begins"])
    assert event.exception is not None
    assert event.exception.message.splitlines()[1] == item


def test_the_indented_lines_of_a_validation_error_belong_to_its_message() -> None:
    why = "  Value error, No model architectures are specified [type=value_error, input_type=ArgsKwargs]"
    (event,) = read(
        [*traceback("pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig"), why]
    )
    assert event.exception is not None
    assert event.exception.message == f"1 validation error for ModelConfig\n{why}"


def test_empty_lines_of_a_quoted_kernel_do_not_end_the_message() -> None:
    kernel = [
        "    pid = tl.program_id(0)",
        "",
        "    # keys",
        "    offs = tl.arange(0, N)",
        "           ^",
        "",
        "    later",
    ]
    (event,) = read([*traceback("triton.compiler.errors.CompilationError: at 9:11:"), *kernel])
    assert event.exception is not None
    assert event.exception.message.endswith("offs = tl.arange(0, N)\n           ^")


def test_a_worker_processs_own_traceback_is_before_the_one_that_carries_it() -> None:
    outer = traceback("KeyError: Caught KeyError in DataLoader worker process 0.")
    inner = ["Original " + traceback("KeyError: 'image'")[0], *traceback("KeyError: 'image'")[1:]]
    (event,) = read([*outer, *inner])
    assert event.chain[0].message == "'image'"


def test_streams_that_alternate_line_by_line_are_taken_apart() -> None:
    first, second = traceback("KeyError: 'a'"), traceback("ValueError: b")
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    events = read(mixed, ["0", "1"] * len(first))
    assert sorted(event.text for event in events) == ["KeyError: 'a'", "ValueError: b"]


def test_two_ranks_that_wrote_into_one_line() -> None:
    lines = [*traceback("x")[:-1], "KeyErrorKeyError: : 'weight_decay''weight_decay'"]
    (event,) = read(lines)
    assert event.text == "KeyError: 'weight_decay'"


def test_an_exception_group_is_read_without_its_bars() -> None:
    lines = ["  + Exception Group " + traceback("x")[0], '  |   File "/job/a.py", line 3, in main', "  |     run()",
             "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)", "  +-+---------------- 1 ----------------",
             "    | Traceback (most recent call last):", '    |   File "/job/a.py", line 9, in load', "    |     open(p)",
             "    | FileNotFoundError: [Errno 2] No such file or directory: 'x.tar'"]  # fmt: skip
    texts = [raised.type for event in read(lines) for raised in event.chain]
    assert "FileNotFoundError" in texts


def test_what_python_ignores_at_exit_is_not_a_failure() -> None:
    assert (
        read(["Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__>", *traceback("RuntimeError: x")])
        == []
    )


def test_an_exception_hook_that_failed_hides_not_what_it_was_given() -> None:
    hook = ["Error in sys.excepthook:", *traceback("AttributeError: 'NoneType' object has no attribute 'write'")]
    (event,) = read([*hook, "", "Original exception was:", *traceback("KeyError: 'lr'")])
    assert event.text == "KeyError: 'lr'"


def test_what_is_raised_where_an_object_is_deleted_is_not_a_failure() -> None:
    frames = [("/env/site-packages/torch/utils/data/dataloader.py", 1466, "__del__", "self._shutdown_workers()"),
              ("/usr/lib/python3.10/multiprocessing/process.py", 160, "is_alive", "assert self._parent_pid == 1")]  # fmt: skip
    error = "AssertionError: can only test a child process"
    assert read(["12%|2.1it/s]Exception ignored in: <function f>", *traceback(error, frames)]) == []
    (event,) = read(traceback(error, [("/job/a.py", 3, "main", "loader.__del__()"), *frames]))
    assert event.text == error


def test_a_spawned_process_shows_its_rank() -> None:
    lines = [*traceback("torch.multiprocessing.spawn.ProcessRaisedException: "), "", "-- Process 1 terminated with the following error:",
             *traceback("KeyError: 'image'")]  # fmt: skip
    (event,) = read(lines)
    assert event.rank == 1
    assert any(raised.text == "KeyError: 'image'" for raised in event.chain)


def test_dots_in_place_of_a_spawned_process_frames_are_not_message() -> None:
    parent = traceback("torch.multiprocessing.spawn.ProcessRaisedException: ")
    (event,) = read([*parent, "", "-- Process 2 terminated with the following error:", ".", "...", "AssertionError"])
    assert event.rank == 2
    assert event.chain[0].type == "AssertionError"


def test_a_spawned_process_is_reported_on_one_line_with_its_traceback() -> None:
    frames = traceback("KeyError: 'image'")[1:]
    (event,) = read(["-- Process 4 terminated with the following error: Traceback (most recent call last):", *frames])
    assert (event.rank, event.text) == (4, "KeyError: 'image'")


def test_of_a_spawned_process_whose_words_were_cut_off_the_frames_remain() -> None:
    frames = traceback("x", [("/job/a.py", 3, "f", "g()"), ("/env/site-packages/b.py", 9, "g", "h()")])[:-1]
    parent = traceback("torch.multiprocessing.spawn.ProcessRaisedException: ")
    (event,) = read([*parent, "", "-- Process 1 terminated with the following error:", *frames])
    assert event.rank == 1
    assert any([frame.function for frame in raised.frames] == ["f", "g"] for raised in event.chain)


def test_healthy_lines_are_not_claimed() -> None:
    extractor = Collected(Tracebacks())
    lines = ["epoch 1 error rate 0.3", "WARNING: Error in config ignored", "File saved", "UserWarning: careful"]
    assert [extractor.feed(Line(n, text, text, Position(1, n))) for n, text in enumerate(lines)] == [False] * 4
    extractor.close()
    assert extractor.events == []


def test_only_the_traceback_right_after_it_is_ignored() -> None:
    lines = ["Exception ignored in: <function f>", "step 1", "step 2", "step 3", "step 4", *traceback("KeyError: 'lr'")]
    (event,) = read(lines)
    assert event.text == "KeyError: 'lr'"


def test_what_a_compilers_backend_raised_belongs_to_the_message() -> None:
    raised = "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:"
    (event,) = read([*traceback(raised), "RuntimeError: Triton Error [CUDA]: device kernel image is invalid"])
    assert event.exception is not None
    assert event.exception.message.endswith("device kernel image is invalid")


def test_what_the_backend_of_torch_dynamo_raised_belongs_to_it_where_the_traceback_above_was_cut_off() -> None:
    (event,) = read(["torch._dynamo.exc.BackendCompilerFailed: backend='eager_two' raised:", "KeyError: 'meta'"])
    assert event.exception is not None
    assert event.exception.type == "torch._dynamo.exc.BackendCompilerFailed"
    assert event.exception.message == "backend='eager_two' raised:\nKeyError: 'meta'"


def test_dynamos_explanation_belongs_to_the_message_and_its_hints_do_not() -> None:
    (event,) = read(
        [
            *traceback("torch._dynamo.exc.TorchRuntimeError: RuntimeError when making fake tensor call"),
            "  Explanation: Dynamo failed to run FX node with fake tensors: call_function matmul(*(FakeTensor(..., value=",
            "        FakeTensor(..., size=(0,), requires_grad=True)",
            "    )), **{}): got RuntimeError('size mismatch, got input (8x8), vec (0)')",
            "  Hint: Your code may result in an error when running in eager.",
            "",
            "  Developer debug context: ",
            "",
            "from user code:",
            '   File "/data/lm/model.py", line 7, in forward',
            "    return torch.matmul(h, self.w)",
        ]
    )
    assert event.exception is not None
    assert event.exception.message.endswith("vec (0)')")
    assert "Hint" not in event.exception.message
    assert event.exception.quoted[-1].line == 7


def test_nccls_status_is_not_an_exception_of_its_own() -> None:
    (event,) = read(
        [
            *traceback("torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, unhandled cuda error"),
            "ncclUnhandledCudaError: Call to CUDA function failed.",
            "Last error:",
            "Cuda failure 1 'invalid argument'",
        ]
    )
    assert event.exception is not None
    assert event.exception.message.endswith("Cuda failure 1 'invalid argument'")


def test_frames_at_the_very_end_remain_where_head_and_message_were_cut_off() -> None:
    frames = [(f"/job/{name}.py", 3, name, f"{name}()") for name in ("a", "b", "c")]
    lines = traceback("KeyError: 'x'", frames)[1:-1]
    (event,) = read(lines)
    assert event.source is EventSource.CUT_TRACEBACK
    assert event.exception is not None
    assert [frame.function for frame in event.exception.frames] == ["a", "b", "c"]
    assert read([*lines[:2], "step 4 loss 0.1"]) == []


def test_a_frame_wrapped_inside_of_its_path_is_joined() -> None:
    lines = traceback("KeyError: 'x'", [("/env/lib/python3.11/site-packages/torch/x.py", 12, "fetch", "get()")])
    (event,) = read([lines[0], lines[1][:30], lines[1][30:], *lines[2:]])
    assert event.exception is not None
    assert [(frame.line, frame.function) for frame in event.exception.frames] == [(12, "fetch")]


def test_a_wrapped_remainder_with_a_dot_is_not_an_exception() -> None:
    lines = traceback("KeyError: 'x'", [("/job/feed_forward.py", 32, "PositionwiseFeedForw", "w()")])
    (event,) = read([*lines[:2], "ard.forward", *lines[2:]])
    assert event.exception is not None
    assert event.exception.type == "KeyError"


def test_the_innermost_frames_own_lines_are_kept_after_the_message() -> None:
    (event,) = read(traceback("KeyError: 'x'", [("/job/a.py", 3, "f", "g()"), ("/job/b.py", 9, "g", "x['x']")]))
    assert event.exception is not None
    assert [line.text.strip() for line in event.exception.lines] == [
        "KeyError: 'x'",
        'File "/job/b.py", line 9, in g',
        "x['x']",
    ]


def test_a_path_of_windows_is_not_an_exception() -> None:
    cut = [
        "TypeError                 Traceback (most recent call last)",
        "C:\\env\\lib\\base.py in load(self)",
        "----> 1 x",
    ]
    (event,) = read(cut)
    assert event.exception is not None
    assert (event.source, event.exception.type) == (EventSource.CUT_TRACEBACK, "TypeError")


def test_a_message_ends_where_the_next_step_is_printed() -> None:
    (event,) = read([*traceback("KeyError: 'labels'"), "step 50 loss 0.0588"])
    assert event.text == "KeyError: 'labels'"


def test_a_message_ends_where_its_type_writes_one_line_only() -> None:
    (event,) = read([*traceback("KeyError: 'label'"), "saved nothing, leaving"])
    assert event.text == "KeyError: 'label'"
    (bare,) = read([*traceback("AssertionError"), "saved nothing, leaving"])
    assert bare.text == "AssertionError"


def test_a_long_line_of_such_a_message_may_have_been_wrapped() -> None:
    path = "FileNotFoundError: [Errno 2] No such file or directory: '/lustre/data/" + "x" * 30
    (event,) = read([*traceback(path), "/shard-0017.tar'"])
    assert event.text.endswith("shard-0017.tar'")


@pytest.mark.parametrize(
    "line",
    [
        "Child process with PID 5120 terminated with code 1. Forcefully terminating all other processes",
        "+ rm -rf /tmp/job",
        "/var/spool/job: line 12: 4711 Killed                  python train.py",
        "Killed",
        "Fatal Python error: Aborted",
        "mpirun: killing job...",
        "Sender: LSF System <lsfadmin@gpu01>",
        "real\t0m3.1s",
    ],
)
def test_what_ends_a_process_is_not_a_part_of_its_exception(line: str) -> None:
    (event,) = read([*traceback("RuntimeError: bad value"), line])
    assert event.text == "RuntimeError: bad value"


def test_lines_of_a_rank_without_torchs_own_label_are_not_part_of_its_exception() -> None:
    result = traceback("RuntimeError: bad value", prefix="[rank1]: ")
    extractor = Collected(Tracebacks())
    for number, raw in enumerate([*result, "[rank: 1] leaving with code 1"], 1):
        text = raw.removeprefix("[rank1]: ").removeprefix("[rank: 1] ")
        extractor.feed(Line(number, raw, text, Position(1, number), rank=1, stream="1/"))
    extractor.close()
    assert [event.text for event in extractor.events] == ["RuntimeError: bad value"]


def test_the_failures_of_single_ranks_in_a_checkpoint_exception_are_its_causes() -> None:
    inner = traceback("RuntimeError: Missing key in checkpoint state_dict: optim.step.")
    inner[0] += ": (RANK 3)"
    outer = traceback("torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([3])")
    (event,) = read([*outer, *inner])
    assert [raised.type.rpartition(".")[2] for raised in event.chain] == ["RuntimeError", "CheckpointException"]
    assert event.rank == 3


def test_the_failure_of_a_rank_whose_checkpoint_exception_was_cut_off_is_that_ranks() -> None:
    inner = traceback("KeyError: 'pos_embedding'")
    inner[0] += ": (RANK 3)"
    (event,) = read(inner)
    assert event.rank == 3


def test_what_python_ignored_right_after_a_message_is_not_a_part_of_it() -> None:
    first = traceback("ValueError: the batch is empty")
    second = traceback("AssertionError: can only test a child process")
    (event,) = read([*first, "Exception ignored in: <function Loader.__del__ at 0x7f>", *second])
    assert event.text == "ValueError: the batch is empty"


def test_a_message_that_names_its_rank_shows_it() -> None:
    (event,) = read(traceback("RuntimeError: [Rank:6] FATAL ERROR :: MODULE:PT_BRIDGE Exception in Launch thread..."))
    assert event.rank == 6


def test_a_launchers_line_after_a_message_is_not_a_part_of_it() -> None:
    lines = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    main()"]
    result = read(
        [*lines, "ValueError: (InvalidArgument) no such axis", "LAUNCH INFO 2026-05-01 09:00:00,100 Exit code 1"]
    )
    assert [event.text for event in result] == ["ValueError: (InvalidArgument) no such axis"]


def test_paddles_message_is_below_its_frames_of_cpp() -> None:
    rule, head = "-" * 38, "C++ Traceback (most recent call last):"
    below = [rule, head, rule, "0   conv2d_dygraph_function(Tensor const&)", "", rule, "Error Message Summary:", rule]
    for found in (
        ["ExternalError: CUDA error(719)."],
        ["ResourceExhaustedError: ", "", "Out of memory error on GPU 1."],
    ):
        (event,) = read([*traceback("MemoryError: "), "", *below, *found, "", "LAUNCH INFO 2026-05-01 Pod failed"])
        assert event.exception is not None
        assert (event.exception.message, event.line.text) == (found[-1], found[-1])


def test_mindspores_message_is_below_its_heading() -> None:
    rule, found = "-" * 52, "Launch kernel failed: Default/Cast-op3"
    below = [rule, "- Kernel error:", rule, found, "", rule, "- C++ Call Stack: (For framework developers)", rule]
    (event,) = read(
        [*traceback("RuntimeError: "), *below, "mindspore/ccsrc/runtime/actor.cc:917 ExecuteLaunchKernelTask"]
    )
    assert event.exception is not None
    assert (event.exception.message, event.line.text) == (found, found)


def test_why_numba_would_not_compile_is_not_an_exception_of_its_own() -> None:
    warned = ["NumbaWarning: ", 'Compilation is falling back to object mode WITH looplifting enabled because Function "f" failed',
              "    Rejected as the implementation raised a specific error:", "      NumbaTypeError: Unsupported array index type list(int64)",
              "  raised from /env/numba/core/typing/arraydecl.py:102"]  # fmt: skip
    assert read(warned) == []


def test_what_a_spawned_process_raised_without_a_traceback_is_its_own() -> None:
    raised = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    lines = [*traceback("torch.multiprocessing.spawn.ProcessExitedException: "), "", "-- Process 5 terminated with the following error:", raised]  # fmt: skip
    (event,) = read(lines)
    assert event.rank == 5
    assert any(found.text == raised for found in event.chain)


@pytest.mark.parametrize("place", [3, 4, 5, 6, 12])
def test_a_frame_that_srun_parted_is_put_together_again(place: int) -> None:
    trace = traceback("ValueError: bad 3", [("/job/a.py", 3, "f", "g()"), ("/job/b.py", 9, "g", "raise")])
    frame = trace[3]
    (event,) = read([*trace[:3], frame[:place], frame[place:], *trace[4:]])
    assert event.exception is not None
    assert event.exception.text == "ValueError: bad 3"
    assert [frame.function for frame in event.exception.frames] == ["f", "g"]


def test_a_spawned_process_that_was_cut_off_is_reported_by_its_parents_words() -> None:
    parent = traceback("torch.multiprocessing.spawn.ProcessRaisedException:")
    (event,) = read([*parent, "", "-- Process 3 terminated with the following error:", *traceback("x")[:-1]])
    assert (event.rank, event.source) == (3, EventSource.CUT_TRACEBACK)
    assert event.text == "-- Process 3 terminated with the following error:"


def test_code_that_is_after_the_functions_name_is_not_a_part_of_it() -> None:
    frame = 'File "/job/a.py", line 3, in main engine = build(cfg)'
    (event,) = read(["Traceback (most recent call last):", frame, "ValueError: bad 3"])
    assert event.exception is not None
    assert [(each.function, each.code) for each in event.exception.frames] == [("main", "engine = build(cfg)")]


def test_what_raised_is_code_also_where_the_indents_were_lost() -> None:
    frame = 'File "/job/a.py", line 3, in check'
    (event,) = read(["Traceback (most recent call last):", frame, "raise ValueError(", "ValueError: bad 3"])
    assert event.exception is not None
    assert event.exception.frames[-1].code == "raise ValueError("


@pytest.mark.parametrize(
    ("below", "code"),
    [
        (
            "image_id = self.name2id[paths[i][len(self.prefix):]]",
            "image_id = self.name2id[paths[i][len(self.prefix):]]",
        ),
        ("self.call_hook('after_train_epoch')", "self.call_hook('after_train_epoch')"),
        ("return loss / count", "return loss / count"),
        ("**self.eval_kwargs)", "**self.eval_kwargs)"),
        ("Loading extension module fused_adam...", ""),  # another writer's
        ("Epoch 3: loss=0.4", ""),
        ("[rank1] waiting = 3", ""),
    ],
)
def test_code_right_below_its_frame_where_the_indents_were_lost(below: str, code: str) -> None:
    (event,) = read(
        ["Traceback (most recent call last):", 'File "/job/a.py", line 3, in check', below, "KeyError: 'x'"]
    )
    assert event.exception is not None
    assert event.exception.frames[-1].code == code


def test_a_path_that_richs_box_wraps_is_one_frame_with_the_code_it_points_at() -> None:
    (event,) = read(
        [
            "╭────────── Traceback (most recent call last) ──────────╮",
            "│ /home/somebody/projects/speech/recognition/training/ │",
            "│ run.py:12 in <module>                                 │",
            "│                                                       │",
            "│ ❱ 12 │   main(arguments)                              │",
            "│                                                       │",
            "│ /opt/env/lib/python3.11/site-packages/torch/         │",
            "│ distributed/fsdp/_optim_utils.py:461                  │",
            "│  in _flatten_optim_state_dict                         │",
            "│   460 │   flat = {}                                   │",
            "│ ❱ 461 │   │   unflat = state['state']                 │",
            "╰───────────────────────────────────────────────────────╯",
            "KeyError: 'state'",
        ]
    )
    assert event.exception is not None
    first, second = event.exception.frames
    assert (first.file, first.line, first.code) == (
        "/home/somebody/projects/speech/recognition/training/run.py", 12, "main(arguments)"
    )  # fmt: skip
    assert second.file.endswith("site-packages/torch/distributed/fsdp/_optim_utils.py")
    assert (second.function, second.user_code) == ("_flatten_optim_state_dict", False)
    assert second.code == "unflat = state['state']"


def test_a_traceback_cut_after_its_assertion_raised_that() -> None:
    (event,) = read(traceback("x", [("/job/a.py", 3, "f", "g()"), ("/job/b.py", 9, "g", "assert rows, name")])[:-1])
    assert event.exception is not None
    assert (event.source, event.exception.type) == (EventSource.TRACEBACK, "AssertionError")


def test_a_chain_within_a_workers_traceback_comes_before_what_the_parent_raised() -> None:
    """The parent repeats in its own message all that the worker raised, causes included."""
    label = "KeyError: 'input'"
    (event,) = read(
        [
            *traceback(
                "KeyError: Caught KeyError in DataLoader worker process 0.",
                [("/job/run.py", 222, "<module>", "trainer.fit(model)")],
            ),
            "Original Traceback (most recent call last):",
            *traceback(label, [("/env/site-packages/pandas/base.py", 3621, "get_loc", "return self.find(key)")])[1:],
            "",
            "The above exception was the direct cause of the following exception:",
            "",
            *traceback(label, [("/job/data.py", 262, "convert", "rows = batch['input']")]),
        ]
    )
    assert [raised.message for raised in event.chain] == [
        "'input'",
        "'input'",
        "Caught KeyError in DataLoader worker process 0.",
    ]
    assert [raised.frames[-1].function for raised in event.chain] == ["get_loc", "convert", "<module>"]


NOTEBOOK_OF_KAGGLE = """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
/tmp/ipykernel_31/2040112.py in <cell line: 0>()
      1 learn = learner(loaders)
----> 2 learn.fit(3)

/usr/local/lib/python3.11/dist-packages/fast/learner.py in fit(self, epochs)
    703     def fit(self, epochs):
    704         # all of them
--> 705         return self.run(epochs)

pandas/_libs/index.pyx in pandas._libs.index.IndexEngine.get_loc()

KeyError: 17"""
NOTEBOOK = """\
---------------------------------------------------------------------------
error                                     Traceback (most recent call last)
Cell In[12], line 3
      1 for path in paths:
      2     # one by one
----> 3     show(path)

File ~/seg/view.py:41, in Viewer.show(self, path)
     39 def show(self, path):
---> 41     return cv2.imread(path)

    [... skipping hidden 1 frame]

error: OpenCV(4.12.0) loadsave.cpp:79: error: (-215:Assertion failed) pixels in function 'f'"""


def test_frames_of_a_notebook_of_kaggle_take_line_and_code_from_the_arrow() -> None:
    (event,) = read(NOTEBOOK_OF_KAGGLE.split("\n"))
    assert event.exception is not None
    assert (event.exception.type, event.exception.message) == ("KeyError", "17")
    assert [(frame.file, frame.line, frame.function, frame.code) for frame in event.exception.frames] == [
        ("/tmp/ipykernel_31/2040112.py", 2, "<module>", "learn.fit(3)"),
        ("/usr/local/lib/python3.11/dist-packages/fast/learner.py", 705, "fit", "return self.run(epochs)"),
    ]


def test_frames_of_a_notebook_name_cells_and_an_exception_in_small_letters() -> None:
    (event,) = read(NOTEBOOK.split("\n"))
    assert event.exception is not None
    assert event.exception.type == "error"
    assert event.exception.message.startswith("OpenCV(4.12.0)")
    assert [(frame.file, frame.line, frame.function, frame.code) for frame in event.exception.frames] == [
        ("<cell 12>", 3, "<module>", "show(path)"),
        ("~/seg/view.py", 41, "show", "return cv2.imread(path)"),
    ]


def test_frames_of_a_notebook_that_was_exported_to_markdown_are_indented() -> None:
    (event,) = read([f"    {text}" if text else "" for text in NOTEBOOK.split("\n")])
    assert event.exception is not None
    assert event.exception.type == "error"
    assert [(frame.file, frame.line) for frame in event.exception.frames] == [("<cell 12>", 3), ("~/seg/view.py", 41)]


def test_an_error_of_a_notebook_without_frames_ended_its_cell_all_the_same() -> None:
    head = "AttributeError                            Traceback (most recent call last)"
    (event,) = read([head, "AttributeError: 'Factory' object has no attribute 'make'", ""])
    assert event.source is EventSource.TRACEBACK


def test_source_lines_that_begin_with_numbers_are_not_frames_of_a_plain_traceback() -> None:
    (event,) = read(
        [
            "Traceback (most recent call last):",
            '  File "/job/a.py", line 3, in f',
            "    12 / x",
            "ZeroDivisionError: division by zero",
        ]
    )
    assert event.exception is not None
    assert event.exception.frames[0].code == "12 / x"


def test_code_of_another_frame_is_left_out_where_ranks_write_into_one_another() -> None:
    head, outer = "Traceback (most recent call last):", '  File "/job/train.py", line 44, in <module>'
    code, inner = (
        "    settings = read_settings(arguments.config)",
        '  File "/job/settings.py", line 6, in read_settings',
    )
    error = "FileNotFoundError: [Errno 2] No such file or directory: 'your_config.yaml'"
    (event,) = read([head, outer, code, head, head, inner, code + outer, error])
    assert event.exception is not None
    assert [(frame.line, frame.code) for frame in event.exception.frames] == [(6, "")]
