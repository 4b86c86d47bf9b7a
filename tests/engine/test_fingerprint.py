from tests.logs import BANNER, agent, report, steps, text, traceback
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

Frames = list[tuple[str, int, str, str]]


def fingerprint_of(engine: Engine, raised: str, frames: Frames, prefix: str = "[rank1]: ") -> str | None:
    return engine.triage(from_bytes(text(BANNER, steps([0]), traceback(raised, frames, prefix)))).fingerprint


def test_it_is_versioned(engine: Engine) -> None:
    fingerprint = fingerprint_of(engine, "KeyError: 'image'", [("/job/a.py", 3, "load", "x")])
    assert fingerprint is not None
    version, _, digest = fingerprint.partition(":")
    assert (version, len(digest)) == ("v1", 32)


def test_folders_and_lines_do_not_count_and_files_and_functions_do(engine: Engine) -> None:
    one = fingerprint_of(engine, "KeyError: 'image'", [("/home/ann/job/data.py", 3, "load", "x")])
    assert one == fingerprint_of(engine, "KeyError: 'image'", [("C:\\Users\\bob\\data.py", 77, "load", "x")])
    assert one != fingerprint_of(engine, "KeyError: 'image'", [("/home/ann/job/data.py", 3, "save", "x")])
    assert one != fingerprint_of(engine, "KeyError: 'image'", [("/home/ann/job/video.py", 3, "load", "x")])


def test_a_class_of_the_script_has_two_modules(engine: Engine) -> None:
    frames = [("/job/train.py", 3, "load", "x")]
    assert fingerprint_of(engine, "__main__.WidgetError: jammed", frames) == fingerprint_of(
        engine, "train.WidgetError: jammed", frames
    )


def test_frames_of_libraries_and_comprehensions_do_not_count(engine: Engine) -> None:
    own: Frames = [("/job/train.py", 3, "load", "x")]
    inside: Frames = [("/job/train.py", 4, "<listcomp>", "y"), ("/env/lib/python3.9/site-packages/pkg/io.py", 9, "read", "z")]  # fmt: skip
    assert fingerprint_of(engine, "KeyError: 'image'", own) == fingerprint_of(engine, "KeyError: 'image'", own + inside)


def test_a_cell_of_a_notebook_has_no_lasting_name(engine: Engine) -> None:
    cells = ["/tmp/ipykernel_31/2405811347.py", "/tmp/ipykernel_7/1102934.py"]
    one, other = (fingerprint_of(engine, "KeyError: 'image'", [(cell, 3, "load", "x")]) for cell in cells)
    assert one == other


def test_a_wording_that_an_entry_knows_does_not_count(engine: Engine) -> None:
    frames: Frames = [("/job/model.py", 3, "forward", "x")]
    old = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity)"
    )
    new = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79.15 GiB"
    assert fingerprint_of(engine, old, frames) == fingerprint_of(engine, new, frames)
    assert fingerprint_of(engine, new, frames) != fingerprint_of(engine, new, [("/job/model.py", 3, "embed", "x")])


def test_trouble_around_the_program_shows_anywhere(engine: Engine) -> None:
    closed = "RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.7]:2551"
    assert fingerprint_of(engine, closed, [("/job/a.py", 3, "step", "x")]) == fingerprint_of(
        engine, closed, [("/job/b.py", 9, "evaluate", "x")]
    )


def test_an_exit_status_counts_without_its_rank(engine: Engine) -> None:
    ends = [
        engine.triage(from_bytes(text(BANNER, steps([0]), agent(code, rank), report((rank, code))))).fingerprint
        for code, rank in ((3, 0), (3, 1), (-9, 0), (-9, 5))
    ]
    assert ends[0] == ends[1] != ends[2] == ends[3]


def test_a_pasted_message_without_its_exceptions_type_is_its_own_signature(engine: Engine) -> None:
    pasted = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 1 has a total capacity of 79.15 GiB"
    signature = engine.triage(from_bytes(pasted.encode())).signature
    assert signature is not None
    assert signature.startswith("CUDA out of memory. Tried to allocate ")
    assert signature.endswith(" · cuda.oom")
