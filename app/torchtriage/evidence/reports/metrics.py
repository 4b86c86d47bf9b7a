"""Reads metrics in Prometheus' text format, as NVIDIA's exporter prints them: every value except zero, with its GPU."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.evidence.reports.report_line import ReportLine
from torchtriage.lazy_regex import lazy_regex

# DCGM_FI_DEV_XID_ERRORS{gpu="3",pci_bus_id="00000000:3B:00.0",Hostname="gpu-021",err_msg="…"} 79
_SAMPLE = lazy_regex(r"([A-Za-z_:][\w:]{0,120})\{(.{0,4000})\} +([-+\d.eE]{1,30})(?: \d+)?\s*$")
_LABEL = lazy_regex(r'(\w{1,60})="((?:[^"\\]|\\.){0,300})"')
_LAST_XID = "DCGM_FI_DEV_XID_ERRORS"  # its value is not a count, but the number of the last Xid
_HOSTS = ("Hostname", "hostname", "node", "kubernetes_node", "instance")


def lines(text: str) -> Iterator[ReportLine]:
    """Yields `metrics: GPU 3 (00000000:3B:00.0): DCGM_FI_DEV_ROW_REMAP_PENDING = 1`. Yields the last Xid in the
    driver's own form, which signs match."""
    for number, line in enumerate(text.split("\n"), 1):
        sample = _SAMPLE.match(line)
        if sample is None or not (value := _number(sample[3])):
            continue
        labels = dict(_LABEL.findall(sample[2]))
        host = next((labels[name].split(":")[0] for name in _HOSTS if labels.get(name)), None)
        bus, gpu = labels.get("pci_bus_id", ""), labels.get("gpu", "")
        if sample[1] == _LAST_XID:
            statement = f"{_LAST_XID}: Xid (PCI:{bus or f'GPU {gpu}'}): {value}, {labels.get('err_msg', 'GPU ' + gpu)}"
        elif gpu or bus:
            device = f"GPU {gpu} ({bus})" if bus else f"GPU {gpu}"
            statement = f"metrics: {device}: {sample[1]} = {value}"
        else:
            continue
        yield ReportLine(number, statement[:1000], host)


def _number(text: str) -> str:
    """Returns a number in its shortest form, or an empty string for zero and for text that is not a number."""
    try:
        value = float(text)
    except ValueError:
        return ""
    if not value or value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else text
