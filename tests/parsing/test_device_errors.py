from tests.collected import Collected
from torchtriage.domain.line import Line, Position
from torchtriage.parsing.device_errors import DeviceErrors


def texts(*lines: str) -> list[str]:
    extractor = Collected(DeviceErrors())
    for number, text in enumerate(lines, 1):
        extractor.feed(Line(number, text, text, Position(1, number), host="gpu-7"))
    return [event.text for event in extractor.events]


def test_threads_of_one_assertion_say_the_same() -> None:
    form = "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward: block: [{},0,0], thread: [{},0,0] Assertion `t >= 0 && t < n_classes` failed."
    assert set(texts(form.format(0, 3), form.format(7, 31))) == {
        "Loss.cu: nll_loss_forward: Assertion `t >= 0 && t < n_classes` failed."
    }


def test_an_xid_message_begins_where_the_driver_begins() -> None:
    line = "[83412.117] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus."
    assert texts(line) == ["NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus."]


def test_ordinary_assertions_are_left_to_others() -> None:
    assert texts("AssertionError: shapes differ", "Assertion passed") == []
