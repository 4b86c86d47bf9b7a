"""Kernel logs: drivers that name a PCI address, and messages of many lines."""

import pytest

from tests.engine.test_engine import triage
from tests.logs import NO_FAILURE
from torchtriage.engine import Engine

ADDRESS = "mlx5_core 0000:5e:00.0: "
HUNG = "INFO: task python3:4711 blocked for more than 120 seconds."
TRACE = [
    "Tainted: G           OE     6.8.0-60-generic #63-Ubuntu",
    '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
    "task:python3 state:D stack:0 pid:4711",
    "Call Trace:",
    "__schedule+0x2cb/0x750",
    "io_schedule+0x46/0x80",
]
STAMPS = {
    "since the boot": "[ 9426.{part:06}] ",
    "as dmesg -T": "[Mon Mar  2 08:14:55 2026] ",
    "in the journal": "Mar 02 08:14:55 gpu-7 kernel: ",
}


def test_a_drivers_pci_address_is_not_a_label_of_a_task(engine: Engine) -> None:
    items = ["device's health compromised - reached miss count", "fw_ver 28.39.1002", "hw_id 0x0000020f"]
    lines = [f"[198542.853543] {ADDRESS}{line}" for line in [*items, "irisc_index 0", "synd 0x7: irisc not responding"]]
    root = triage(engine, lines).root_cause
    assert root is not None
    assert (root.entry, root.rank, root.host) == ("network.nic-down", None, None)


@pytest.mark.parametrize("stamp", STAMPS.values(), ids=STAMPS)
def test_what_the_kernel_prints_at_once_is_of_one_message(engine: Engine, stamp: str) -> None:
    lines = [stamp.format(part=part) + line for part, line in enumerate([HUNG, *TRACE])]
    root = triage(engine, lines).root_cause
    assert root is not None
    assert root.entry == "host.kernel-panic"


def test_the_end_of_a_quotation_is_not_a_line_of_a_program(engine: Engine) -> None:
    quoted = ["```", f"[ 9426.000001] {HUNG}", "mcelog: first", "mcelog: second", "```"]
    root = triage(engine, quoted).root_cause
    assert root is not None
    assert root.entry == "host.kernel-panic"


def test_a_kernel_that_continues_later_survived_its_warning(engine: Engine) -> None:
    later = [f"[ 9{second}.000001] eth0: renamed from veth{second}" for second in range(500, 505)]
    assert triage(engine, [f"[ 9426.000001] {HUNG}", *later]).outcome in NO_FAILURE
