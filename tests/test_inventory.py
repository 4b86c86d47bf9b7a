"""Reading of libraries' messages, with packages and a shared library made for the test. The results are templates with
slots."""

from __future__ import annotations

import struct
import textwrap
import zipfile
from pathlib import Path

import pytest

from scripts.inventory.__main__ import add
from scripts.inventory.native_messages import NCCL, TORCH_CHECK, messages
from scripts.inventory.python_messages import messages as python_messages
from scripts.inventory.python_messages import parsed
from torchtriage.matching.inventory import Inventory

NETWORK = """
    from ._layers import Layer

    _LIMIT = "at most %d layers" " are allowed"

    def check(key, mapping, layers):
        if key not in mapping:
            raise KeyError(f"{key!r} not in {mapping}, did you mean {{name}}?")
        if len(layers) > 9:
            raise ValueError(_LIMIT % 9 + ", not " + str(len(layers)))
        message = "layer {} of {kind} has no weights".format(layers[0], kind="encoder")
        assert layers[0].weights, message
        logger.error("layer %s failed after %.2f s", layers[0].name, seconds)
        warnings.warn("the old name %(name)s goes away" % {"name": key}, FutureWarning)
        torch._check(layers, lambda: f"no layers for {key}")
        raise make_error("whose class nobody knows")
"""
LAYERS = """
    class Layer:
        def __init__(self, width):
            if width < 1:
                raise errors.WidthError(
                    "the width must be positive, "
                    f"but it is {width} of {self.limit if self.limit else 0}"
                )
"""


def wheel(folder: Path, version: str, **modules: str) -> Path:
    path = folder / f"tinynet-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, source in modules.items():
            archive.writestr(f"tinynet/{name}.py", textwrap.dedent(source))
        archive.writestr("tinynet/tests/helpers.py", "raise ValueError('a test of tinynet says this')")
        archive.writestr("tinynet/broken.py", "def half(:")
    return path


def read(source: str) -> dict[str, tuple[str, str]]:
    """Returns (function, kind) by template."""
    found = python_messages(parsed(textwrap.dedent(source)), "tinynet.network")
    return {each.template: (each.function, each.kind) for each in found}


def test_each_way_to_write_a_message_gives_its_template() -> None:
    assert read(NETWORK) == {
        "{key} not in {mapping}, did you mean {{name}}?": ("check", "KeyError"),
        "at most 9 layers are allowed, not {str(len(layers))}": ("check", "ValueError"),
        "layer {layers[0]} of encoder has no weights": ("check", "AssertionError"),
        "layer {layers[0].name} failed after {seconds} s": ("check", "error"),
        "the old name {name} goes away": ("check", "FutureWarning"),
        "no layers for {key}": ("check", "RuntimeError"),
    }
    assert read(LAYERS) == {"the width must be positive, but it is {width} of {}": ("Layer.__init__", "WidthError")}


def test_a_text_without_words_is_no_message() -> None:
    assert read("raise ValueError(f'{name}: {value}')\nraise KeyError(key)\nraise StopIteration") == {}


def test_the_first_and_the_last_version_of_a_message_are_kept(tmp_path: Path) -> None:
    for version, words in (("1.9", "wide"), ("1.10", "wide"), ("2.0", "broad")):
        source = f"def load(path):\n    raise ValueError('tensor is too {words}')\n    raise OSError('no such tensor')"
        add(wheel(tmp_path, version, io=source), tmp_path / "index")
    library = Inventory(tmp_path / "index").library("tinynet")
    assert library is not None
    told = {each.message.template: (each.message.since, each.message.until) for each in library}
    assert told == {
        "tensor is too wide": ("1.9", "1.10"),
        "tensor is too broad": ("2.0", "2.0"),
        "no such tensor": ("1.9", "2.0"),
    }


def test_the_same_releases_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    releases = [wheel(tmp_path, version, network=NETWORK, _layers=LAYERS) for version in ("1.0", "1.1")]
    written: list[bytes] = []
    for order in (releases, releases[::-1], [*releases, *releases]):
        folder = tmp_path / str(len(written))
        for release in order:
            add(release, folder)
        written.append((folder / "tinynet.jsonl.zst").read_bytes())
    assert written[0] == written[1] == written[2]


def test_a_message_is_found_with_its_values_by_the_file_that_raised_it(tmp_path: Path) -> None:
    offering = "from ._layers import Layer"
    add(wheel(tmp_path, "1.0", __init__=offering, network=NETWORK, _layers=LAYERS), tmp_path)
    inventory = Inventory(tmp_path)
    found = inventory.of_file("/env/lib/python3.11/site-packages/tinynet/_layers.py")
    assert found is not None
    library, module = found
    known = library.find("the width must be positive,\nbut it is -4 of 0", module, "__init__")
    assert known is not None
    assert (known.public, known.values) == ("tinynet.Layer.__init__", (("width", "-4"), ("", "0")))
    assert library.find("the width must be positive", module) is None
    assert library.find("'lr' not in {}, did you mean {name}?", module) is None
    assert inventory.of_file("/job/tinynet/train.py") is None


def test_a_dotted_value_before_the_full_stop_is_read_to_its_end(tmp_path: Path) -> None:
    source = """
        def load(key):
            raise RuntimeError(f"Missing key in saved state: {key}.")
    """
    add(wheel(tmp_path, "1.0", state=source), tmp_path)
    library = Inventory(tmp_path).library("tinynet")
    assert library is not None
    whole = library.find("Missing key in saved state: optimizer.state.3.", "tinynet.state", "load")
    longer = library.find("Missing key in saved state: head. See the manual", "tinynet.state", "load")
    assert whole is not None
    assert longer is not None
    assert whole.values == (("key", "optimizer.state.3"),)
    assert longer.values == (("key", "head"),)


def test_a_damaged_file_counts_as_missing_and_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "tinynet.jsonl.zst").write_bytes(b"not packed")
    inventory = Inventory(tmp_path)
    assert [inventory.library("tinynet"), inventory.library("tinynet"), inventory.library("other")] == [
        None,
        None,
        None,
    ]
    assert [str(tmp_path / "tinynet.jsonl.zst") in record.getMessage() for record in caplog.records] == [True]


SHARED = """\
class Wide:
    def __init__(self, width):
        raise ValueError(f"the pipe is too narrow: {width}")


class Round:
    def __init__(self, width):
        self.width = width
        raise ValueError(f"the pipe is too narrow: {self.width}")
"""


@pytest.mark.parametrize(
    ("call", "public"),
    [("pipe = pipes.Round(3)", "tinynet.pipes.Round.__init__"), ("make(3)", "tinynet.pipes")],
)
def test_the_class_in_the_call_is_named_if_several_share_a_message(tmp_path: Path, call: str, public: str) -> None:
    add(wheel(tmp_path, "1.0", __init__="", pipes=SHARED), tmp_path)
    library = Inventory(tmp_path).library("tinynet")
    assert library is not None
    known = library.find("the pipe is too narrow: 3", "tinynet.pipes", "__init__", call)
    assert known is not None
    assert known.public == public


@pytest.mark.parametrize("damaged", [b"", b"no archive", b"\x28\xb5\x2f\xfd"])
def test_a_damaged_index_has_no_messages(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "tinynet.jsonl.zst").write_bytes(damaged)
    assert Inventory(tmp_path).library("tinynet") is None


LEA = {
    "rcx": b"\x48\x8d\x0d",
    "rdx": b"\x48\x8d\x15",
    "rsi": b"\x48\x8d\x35",
    "rdi": b"\x48\x8d\x3d",
    "r8": b"\x4c\x8d\x05",
}
CALL = b"\xe8\x00\x00\x00\x00"


def shared_library(calls: list[list[tuple[str, str] | bytes]]) -> bytes:
    """Returns an ELF file with code that puts texts in registers and makes calls. Each step is (register, text) or
    plain code."""
    code, strings, base, read_only = b"", b"", 0x1000, 0x8000
    for call in calls:
        for step in call:
            if isinstance(step, bytes):
                code += step
                continue
            register, text = step
            target = read_only + len(strings)
            strings += text.encode() + b"\0"
            code += LEA[register] + struct.pack("<i", target - (base + len(code) + 7))
        code += CALL + b"\x90" * 200
    names = b"\0.text\0.rodata\0.shstrtab\0"
    places = [64, 64 + len(code), 64 + len(code) + len(strings)]
    table = places[2] + len(names)
    rows = [
        (0, 0, 0, 0, 0),
        (names.index(b".text"), 6, base, places[0], len(code)),
        (names.index(b".rodata"), 2, read_only, places[1], len(strings)),
        (names.index(b".shstrtab"), 0, 0, places[2], len(names)),
    ]
    header = bytearray(64)
    header[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", header, 0x28, table)
    struct.pack_into("<HHH", header, 0x3A, 64, len(rows), 3)
    sections = b"".join(
        struct.pack("<IIQQQQIIQQ", name, 1, flags, at, offset, size, 0, 0, 1, 0)
        for name, flags, at, offset, size in rows
    )
    return bytes(header) + code + strings + names + sections


def level(number: int) -> bytes:
    return b"\xbf" + struct.pack("<I", number)


def test_only_format_strings_printed_as_warnings_are_read() -> None:
    library = shared_library(
        [
            [("r8", "Call to %s failed : %s (%d%%)"), ("rdx", "misc/socket.cc"), level(2)],
            [("r8", "Using network %s now"), ("rdx", "net.cc"), level(3)],
            [("r8", "a text that no call of this kind prints"), ("rdx", "no source file"), level(2)],
        ]
    )
    (found,) = messages(library, NCCL)
    assert (found.module, found.kind, found.template) == ("misc/socket.cc", "NCCL WARN", "Call to {} failed : {} ({}%)")


def test_a_check_names_its_file_and_function() -> None:
    file = "/build/pytorch/aten/src/ATen/native/Pool.cpp"
    library = shared_library(
        [
            [("rcx", "pool2d: the kernel must not be empty"), ("rsi", file), ("rdi", "pool2d_check")],
            [("rcx", "x INTERNAL ASSERT FAILED at Pool.cpp"), ("rsi", file), ("rdi", "pool2d_check")],
        ]
    )
    (found,) = messages(library, TORCH_CHECK)
    assert (found.module, found.function) == ("aten/src/ATen/native/Pool.cpp", "pool2d_check")
    assert found.template == "pool2d: the kernel must not be empty"


def test_a_file_that_is_no_shared_library_is_refused() -> None:
    with pytest.raises(ValueError, match="no ELF file"):
        list(messages(b"MZ\x90\x00", NCCL))
