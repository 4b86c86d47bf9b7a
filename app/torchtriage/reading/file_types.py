"""Recognizes the form of a file by its first bytes: a log, or evidence such as a dump, stacks or the report of a
tool."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from torchtriage.lazy_regex import lazy_regex

HEAD = 64 << 10  # bytes of a file that are checked
_DUMP_WORDS = (b'"entries"', b'"pg_config"', b'"pg_status"', b'"profiling_name"', b'"process_group"', b'"seq_id"')
_MIN_WORDS = 2
# Process 4711: /usr/bin/python train.py --fsdp / Python v3.11.7 (/usr/bin/python3.11)
_PY_SPY = lazy_regex(rb"\s*(?:# [^\n]*\n)*Process \d{1,9}: [^\n]*\nPython v\d")
# Error: Failed to get process executable name. Check that the process is running. / Error: Permission Denied: Try running …
_NO_PY_SPY = lazy_regex(
    rb"\s*Error: (?:Failed to (?:get|find|open|suspend|lock|copy|resolve)[^\n]*|Permission Denied: Try running again with elevated[^\n]*"
    rb"|This process is not a python process[^\n]*)\n\s*(?:Caused by:|Reason: |$)"
)
# Timeout (0:10:00)! / Fatal Python error: Aborted / Current thread 0x00007f5c (most recent call first):
_FAULTHANDLER = lazy_regex(
    rb"\s*(?:Timeout \([\d:. a-z,]{1,40}\)!\s+)?(?:Current thread|Thread) 0x[0-9a-f]{1,16}[^\n]{0,60} \(most recent call first\):"
)
# === Rank 0: http://gpu-021:41233 === / Thread 0x00007f5c (most recent call first): · PARTIAL DATA: 3/4 workers responded / …
_RANK_STACKS = lazy_regex(
    rb"\s*(?:PARTIAL DATA: [^\n]*\n(?:  Rank \d[^\n]*\n){0,4096}\s*)?=== Rank \d{1,6}: \S{1,300} ===\s*\n"
    rb"(?:Process \d|(?:Current thread|Thread) 0x|Error: \d)"
)
# NCCL version 2.28.9 compiled with CUDA 12.9 / CUDA runtime version … / (empty) / Job summary / ===========
_RAS = lazy_regex(rb"(?:NCCL version [^\n]*\n)?(?:CUDA runtime version [^\n]*\n)?\s*Job summary\s*\n=+\s*\n")
# Not all ranks joining collective, sequence number: 20947 / internal record id: 91931 / group info: …
_FR_TRACE = lazy_regex(
    rb"(?:tabulate is not installed[^\n]*\n)?(?:loaded \d+ files[^\n]*\n)?(?:No errors found for this collective entry[^\n]*\n"
    rb"|We cannot decide what's wrong[^\n]*\n|Rank \S+ has an empty op list[^\n]*\n)*"
    rb"(?:Not all ranks joining collective|Collective sequence number: \d+ has errors|Input/output mismatch in the collective)[^\n]*\n"
    rb"internal record id: "
)
# PARTIAL DATA: 3/4 workers responded / … / === FR Trace === / --- Groups ---, of the debug server
_FR_TABLES = lazy_regex(
    rb"(?:PARTIAL DATA: [^\n]*\n(?:  Rank \d[^\n]*\n){0,4096}\s*)?=== FR Trace === *\n--- Groups ---"
)
# {"DCGM Diagnostic": {"test_categories": [… · {"iterations": [{"DCGM Diagnostic": … · {"body": {…}, "header": ["Health Monitor Report"]}
_DCGM_JSON = lazy_regex(rb'"DCGM (?:GPU )?Diagnostic"\s*:\s*\{|"test_categories"\s*:\s*\[|"Health Monitor Report"\s*\]')
# {"__CURSOR":"s=…","__REALTIME_TIMESTAMP":"1777626301440118",…,"_TRANSPORT":"kernel",…} · the same with a line for each
_JOURNAL = lazy_regex(rb'\{(?s:.{0,4000}?)"__REALTIME_TIMESTAMP"')
# {"dmesg": [{"pri": 6,"time": 0.000000,"msg": "Linux version …"}, …
_DMESG_JSON = lazy_regex(rb'\{\s*"dmesg"\s*:\s*\[')
# {"jobs": [{"account": "llm", "job_id": 88121, …, "state": {"current": ["TIMEOUT"], …
_SLURM_JSON = lazy_regex(rb'"(?:exit_code|job_state|state_reason)"\s*:')
_FROM_KERNEL = lazy_regex(rb'"_TRANSPORT"\s*:\s*"kernel"')
_KUBERNETES_JSON = lazy_regex(rb'"kind"\s*:\s*"(?:Pod|PodList|List|Event|EventList)"')
# ____________________________________________ / / Start of NVIDIA bug report log file.  … · *** /proc/driver/nvidia/version
_BUG_REPORT = lazy_regex(
    rb"_{44}\s*\n\s*\n(?:Start of NVIDIA bug report|\*\*\* /|dmesg:|Scanning kernel log files for NVIDIA|[\w./-]{0,80}nvidia-smi --query)"
)
NVIDIA_SMI_LOG = lazy_regex(rb"=+NVSMI LOG=+\s*$", re.M)
_ERROR_FILE = lazy_regex(rb'\s*\{"message": \{"(?:message|extraInfo)": ')


class FileForm(StrEnum):
    """The form of a file, as named in the `sources` of a verdict."""

    LOG = "log"
    FLIGHT_RECORDER = "flight recorder"  # PyTorch's dump of one rank, as JSON
    PY_SPY = "py-spy"  # stacks of one process, as text or JSON
    FAULTHANDLER = "faulthandler"  # stacks from Python's own module; a log can begin with them too
    RANK_STACKS = "stacks of ranks"  # written by the debug server of torch.distributed, from faulthandler or py-spy
    FR_TRACE = "torchfrtrace"  # its findings, or those of the debug server, in the dumps of all ranks
    NCCL_RAS = "NCCL RAS report"
    ERROR_FILE = "torchelastic error file"
    NCCL_DIAGNOSTICS = "NCCL diagnostics"  # findings of NCCL's RAS service about hosts and GPUs (NCCL 2.32)
    NATIVE_STACKS = "gdb"  # also cuda-gdb
    KERNEL_LOG = "kernel log"  # dmesg, or the kernel's lines in the journal, as text or JSON
    NVIDIA_SMI = "nvidia-smi"  # its table, or `nvidia-smi -q`
    BUG_REPORT = "NVIDIA bug report"  # written by nvidia-bug-report.sh, or a part of it
    DCGM = "DCGM"  # `dcgmi health -c` or `dcgmi diag`, as text or JSON
    INFINIBAND = "InfiniBand"  # ibstat, ibstatus, ibdiagnet
    SLURM_JOB = "Slurm job record"  # sacct, `scontrol show job`
    KUBERNETES = "Kubernetes objects"  # pods or events, as table, JSON or YAML
    METRICS = "Prometheus metrics"
    UNREAD = "unread"


class _Report(NamedTuple):
    """How the output of a tool is recognized: `begins` matches at its start, every line matches one of `lines`, and
    `holds` matches somewhere. So a log is not recognized as a report if it only begins with one, such as nvidia-smi's
    table."""

    form: FileForm
    begins: re.Pattern[bytes]
    lines: re.Pattern[bytes]
    holds: re.Pattern[bytes] | None = None


_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
# [131912.440118] … · kern  :err   : [131912.440118] … · [Fri May  1 09:05:01 2026] … · [May 1 09:05] … · [  +0.000002] …
# [131912.440118][ T2011] … · 2026-05-01T09:05:01,440118+00:00 … · and of a system's log, of gpu-7 and its kernel:
# May 01 09:05:01 … · 5月 01 09:05:01 … · 2026-05-01T09:05:01.440118+00:00 … · Fri 2026-05-01 09:05:01 UTC … · 1777626301.440118 …
_HOST_AND = (
    rb"(?:(?:" + _MONTH + rb"|\d{1,2}\xe6\x9c\x88) [ \d]\d \d\d:\d\d:\d\d(?:\.\d{6})?|\d{10}\.\d{6}"
    rb"|(?:\S{2,12} )?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,16}(?: [A-Z+\d:-]{1,6})?) \S{1,80} "
)  # fmt: skip
_KERNEL_LINE = (
    rb"(?:\w{2,8} *:\w{2,8} *: )?(?:<\d{1,3}>)?\[(?: {0,8}\d{1,9}\.\d{6}| *\+\d{1,6}\.\d{6}|"
    + _DAY + rb" " + _MONTH + rb" [ \d]\d \d\d:\d\d:\d\d \d{4}|" + _MONTH + rb" ?[ \d]\d \d\d:\d\d)\](?: ?\[ *[TC]\d{1,9}\])? "
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:?\d\d "
    rb"|" + _HOST_AND + rb"kernel: "
)  # fmt: skip
KERNEL_LINE = lazy_regex(_KERNEL_LINE)
# Other writers of a host's system log, except jobs. A line of a job makes it a log.
_DAEMON = (
    rb"(?:systemd(?:-\w{1,20}){0,3}|dockerd|containerd|kubelet|crond?|CRON|anacron|sshd(?:-session)?|slurmd|nvidia-\w{1,20}|nv-\w{1,20}"
    rb"|dbus-daemon|dbus-broker\S{0,20}|rsyslogd|NetworkManager|chronyd|ntpd|snapd|polkitd|auditd?|mcelog|rasdaemon|smartd"
    rb"|irqbalance|multipathd|lldpd|ipmi\w{1,12}|opensm|rpc\.\w{1,20}|automount|sssd\w{0,12}|sudo|su|logrotate)"
)
_FROM_DAEMON = lazy_regex(rb'"SYSLOG_IDENTIFIER"\s*:\s*"(?:kernel|' + _DAEMON + rb')"')
# Topics of nearly every kernel log. Other programs can print the same kind of time before their lines.
_OF_KERNEL = lazy_regex(
    rb"\b(?:NVRM|kernel|Linux version|systemd|audit|pci|pcieport|nvidia\w*|mlx5_core|nvme\w*|IPv6|EXT4-fs|XFS|oom-kill(?:er)?"
    rb"|Out of memory|Memory cgroup|cgroup|usb|docker0|overlayfs|mce|EDAC|AER|NFS|Lustre\w*)\b"
)
_CELLS = rb"\s*$|[|+]"
_REPORTS = (
    _Report(FileForm.KERNEL_LOG, KERNEL_LINE, lazy_regex(_KERNEL_LINE + rb"|-- \S|\s|$"), _OF_KERNEL),
    # May 01 09:05:01 gpu-7 systemd[1]: …, mixed with lines of the kernel, as in /var/log/messages
    _Report(
        FileForm.KERNEL_LOG,
        lazy_regex(_HOST_AND + rb"(?:kernel|" + _DAEMON + rb"(?:\[\d{1,9}\])?): "),
        lazy_regex(_HOST_AND + rb"(?:kernel|" + _DAEMON + rb"(?:\[\d{1,9}\])?): |-- \S|\s|$"),
        lazy_regex(rb"^" + _HOST_AND + rb"kernel: ", re.M),
    ),
    # ==============NVSMI LOG==============
    _Report(
        FileForm.NVIDIA_SMI,
        NVIDIA_SMI_LOG,
        lazy_regex(rb"\s|$|=+NVSMI LOG=+|GPU [\dA-Fa-f:.]+\s*$|[A-Z][\w ]{2,80} : |Unable to |WARNING: |No devices "),
    ),
    # gpu-021:3487 NCCL DIAG === RAS Diagnostics ===
    _Report(
        FileForm.NCCL_DIAGNOSTICS,
        lazy_regex(rb"(?:\S{1,80}:\d{1,9} )?NCCL DIAG "),
        lazy_regex(rb"\s*$|(?:\S{1,80}:\d{1,9} )?NCCL DIAG "),
    ),
    # <?xml version="1.0" ?> / <!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd"> / <nvidia_smi_log>
    _Report(
        FileForm.NVIDIA_SMI,
        lazy_regex(rb"(?:<\?xml [^\n]*\n)?(?:<!DOCTYPE nvidia_smi_log [^\n]*\n)?<nvidia_smi_log>"),
        lazy_regex(rb"\s|$|<"),
    ),
    # Unable to determine the device handle for GPU0000:C2:00.0: Unknown Error, and nothing else
    _Report(
        FileForm.NVIDIA_SMI,
        lazy_regex(rb"Unable to determine the device handle for "),
        lazy_regex(rb"\s*$|Unable to |WARNING: |No devices |Reboot the system "),
    ),
    # Fri May  1 09:06:02 2026 / +-----…+ / | NVIDIA-SMI 550.54.15 …
    _Report(
        FileForm.NVIDIA_SMI,
        lazy_regex(rb"(?:" + _DAY + rb" " + _MONTH + rb" [^\n]{10,40}\n)?\s*\+-+\+\s*\n\| NVIDIA-SMI "),
        lazy_regex(_CELLS + rb"|" + _DAY + rb" " + _MONTH + rb" |Unable to |WARNING: |No devices "),
    ),
    # Successfully ran diagnostic for group. / +---…+ / | Diagnostic … · | Health Monitor Report …
    _Report(
        FileForm.DCGM,
        lazy_regex(rb"(?:Successfully ran diagnostic[^\n]*\n)?\s*\+-+\+-*\+?\s*\n\| (?:Diagnostic +\| Result|Health Monitor Report)"),
        lazy_regex(_CELLS + rb"|Successfully "),
    ),
    # CA 'mlx5_0' / \tCA type: MT4129 · Infiniband device 'mlx5_0' port 1 status:
    _Report(
        FileForm.INFINIBAND,
        lazy_regex(rb"CA '[\w.:-]{1,40}'\s*\n\s+CA type:|Infiniband device '"),
        lazy_regex(rb"\s*$|CA '|Infiniband device '|\s+\S"),
    ),
    # ---------- / Load Plugins from: … · Running version:   "IBDIAGNET 2.13.0… · Loading IBDIAGNET from: /usr/lib64/ibdiagnet1.5.7
    # -I- Using port 1 as the local port.
    _Report(
        FileForm.INFINIBAND,
        lazy_regex(
            rb"(?:-+\s*\n)?(?:Load Plugins from:|Loading IBDIAGNET from:|Running version:? +\"?IBDIAGNET"
            rb"|-[IWE]- (?:Using port|Parsing|Discovering))"
        ),
        lazy_regex(
            rb"\s|$|-[IWEV]-|-{5,}|/|\(|lib|Load |Loading |Running |Timestamp: |Plugin |[A-Z][A-Za-z0-9 /&()-]{2,60}:?\s*$"
        ),
    ),
    # JobID           JobName  Partition … State ExitCode / ------------ ----------
    _Report(
        FileForm.SLURM_JOB,
        lazy_regex(rb"\s*(?=[^\n]*\bJobID(?:Raw)?\b)(?=[^\n]*\bState\b)[A-Za-z][\w% ]+\n[ -]+\n"),
        lazy_regex(rb" *\d+(?:[_+.]\S{1,40})? +\S| *-[- ]*$|\s*$| *(?=[^\n]*\bState\b)[A-Z]"),
    ),
    # JobID|JobName|State|ExitCode
    _Report(
        FileForm.SLURM_JOB,
        lazy_regex(rb"(?=[^\n]*\bJobID(?:Raw)?\b)(?=[^\n]*\bState\b)\w+(?:[|,;]\w+)+[|,;]?\s*\n"),
        lazy_regex(
            rb"\s*$|\d+(?:[_+.][^|,;\n]{1,40})?[|,;]|(?=[^\n]*\bState\b)\w+[|,;]|[\w.+-]{1,40}(?: by \d{1,9})?[|,;][^\n]*\b\d+(?:[_+.]\w{1,40})?[|,;]"
        ),
    ),
    # JobId=4711 JobName=train
    _Report(
        FileForm.SLURM_JOB,
        lazy_regex(rb"JobId=\d+ (?:Array\w+=\S+ )*(?:HetJob\w+=\S+ )*JobName="),
        lazy_regex(rb"\s*$|JobId=\d|\s+[\w:/()-]{1,40}="),
    ),
    # Name:             train-worker-0 / Namespace:        ml / …, as `kubectl describe pod` prints it
    _Report(
        FileForm.KUBERNETES,
        lazy_regex(rb"Name: +\S+\s*\nNamespace: +\S+\s*\n"),
        lazy_regex(rb"\s|$|[A-Z][A-Za-z]*(?:[ -][A-Z][A-Za-z]*){0,3}:(?:\s|$)"),
        lazy_regex(rb"^Containers:\s*$", re.M),
    ),
    # NAME             READY   STATUS      RESTARTS      AGE
    _Report(
        FileForm.KUBERNETES,
        lazy_regex(rb"(?:NAMESPACE +)?NAME +READY +STATUS +RESTARTS +AGE"),
        lazy_regex(rb"\s*$|(?:NAMESPACE +)?NAME +READY |(?:[a-z0-9][a-z0-9.-]{0,252} +){1,2}\d+/\d+ +\S"),
    ),
    # LAST SEEN   TYPE      REASON             OBJECT              MESSAGE
    _Report(
        FileForm.KUBERNETES,
        lazy_regex(rb"(?:NAMESPACE +)?(?:LAST SEEN|FIRST SEEN|LASTSEEN) +[^\n]{0,80}\bREASON +[^\n]{0,80}\bMESSAGE"),
        lazy_regex(rb"\s|$|[^\n]{0,200}\b(?:TYPE|Normal|Warning) "),
    ),
    # apiVersion: v1 / items: · kind: Pod
    _Report(
        FileForm.KUBERNETES,
        lazy_regex(rb"apiVersion: [\w.]*/?v1\s*\n"),
        lazy_regex(rb"\s|$|- |[\w./-]{1,80}:|---"),
        lazy_regex(rb"^(?:- |  )?kind: (?:Pod|Event)\s*$", re.M),
    ),
    # # HELP DCGM_FI_DEV_XID_ERRORS Value of … / DCGM_FI_DEV_XID_ERRORS{gpu="3"} 79
    _Report(
        FileForm.METRICS,
        lazy_regex(rb"# (?:HELP|TYPE) [A-Za-z_:][\w:]* |[A-Za-z_:][\w:]*\{[^\n}]{0,2000}\} [-+\d.eENaInf]+(?: \d+)?\s*\n"),
        lazy_regex(rb"\s*$|#|[A-Za-z_:][\w:]*(?:\{[^\n]*\})? +[-+\d.eENaInf]+(?: \d+)?\s*$"),
    ),
    # Thread 3 (Thread 0x7f78c97e2700 (LWP 1408) "python"): / #0  0x00007f794fca474d in poll () at …
    _Report(
        FileForm.NATIVE_STACKS,
        lazy_regex(rb"Thread \d|\[New |\[Thread debug|GNU gdb|NVIDIA \(R\) |0x[\da-f]+ in |warning: |Using host |Attaching |CUDA Exception: |Opening GPU coredump|\((?:cuda-)?gdb\) "),
        lazy_regex(
            rb"\s|$|#\d|\[|0x|\d+\t|<http|\((?:cuda-)?gdb\)|_|CUDA |NVIDIA |GNU |\d+\.\d+ release|Portions |Thread |Copyright|License|This |There |Type |For |Find |"
            rb"warning: |To |line to |ptrace: |\"Auto-loading |Could not attach |Missing separate |Try: |Cannot access |Python Exception |Using |Reading |Attaching |Download|Debuginfod|Enable |The exception |Program |Quit|A debugging |Opening |Bad kernel|\w{1,80} \("
        ),
        lazy_regex(rb"^Thread \d+ \([^\n]{0,160}:\s*\n#0 |^CUDA Exception: ", re.M),
    ),
)  # fmt: skip
REPORTS = frozenset(report.form for report in _REPORTS) | {FileForm.BUG_REPORT}


def form_of(head: bytes) -> FileForm:
    """Returns the form of a file that begins with these bytes. Anything that is not evidence is a log."""
    begin = head[:HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin[:1] == b"{" or (begin[:1] == b"[" and begin[1:].lstrip()[:1] in (b"{", b"[", b"]")):
        return _form_of_json(begin)
    if _PY_SPY.match(begin) or _NO_PY_SPY.match(begin):
        return FileForm.PY_SPY
    if _RANK_STACKS.match(begin):
        return FileForm.RANK_STACKS
    if _RAS.match(begin):
        return FileForm.NCCL_RAS
    if _FR_TABLES.match(begin) or _FR_TRACE.match(_unix_line_ends(begin)):
        return FileForm.FR_TRACE
    if _FAULTHANDLER.match(begin):
        return FileForm.FAULTHANDLER
    if _BUG_REPORT.match(begin):
        return FileForm.BUG_REPORT
    # The last line may be cut, because only the first bytes were read.
    whole = _unix_line_ends(begin if len(head) < HEAD else begin[: begin.rfind(b"\n") + 1])
    report = next((each for each in _REPORTS if each.begins.match(whole)), None)
    return report.form if report is not None and _is_whole_report(report, whole) else FileForm.LOG


def is_report(form: FileForm, content: bytes) -> bool:
    """Returns whether a text that begins like a report is one to its end, and not a log."""
    begin = _unix_line_ends(content.removeprefix(b"\xef\xbb\xbf").lstrip())
    if begin[:1] == b"{":
        return True  # its reader checks that
    return any(each.form is form and each.begins.match(begin) and _is_whole_report(each, begin) for each in _REPORTS)


def _unix_line_ends(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n") if b"\r\n" in text else text


def _is_whole_report(report: _Report, content: bytes) -> bool:
    if report.holds is not None and not report.holds.search(content):
        return False
    return all(map(report.lines.match, set(content.split(b"\n"))))


def _form_of_json(begin: bytes) -> FileForm:
    if b'"flight_recorder": "unread"' in begin[:64] or sum(word in begin for word in _DUMP_WORDS) >= _MIN_WORDS:
        return FileForm.FLIGHT_RECORDER
    if b'"owns_gil"' in begin and b'"frames"' in begin:
        return FileForm.PY_SPY
    if b'"nccl_version"' in begin and b'"communicators' in begin:
        return FileForm.NCCL_RAS
    if _ERROR_FILE.match(begin):
        return FileForm.ERROR_FILE
    if _DCGM_JSON.search(begin):
        return FileForm.DCGM
    if _DMESG_JSON.match(begin):
        return FileForm.KERNEL_LOG
    if b'"jobs"' in begin and b'"job_id"' in begin and _SLURM_JSON.search(begin):
        return FileForm.SLURM_JOB
    if _JOURNAL.match(begin):
        records = begin.count(b'"__REALTIME_TIMESTAMP"')
        of_kernel = len(_FROM_KERNEL.findall(begin))
        own = of_kernel >= records or (of_kernel and len(_FROM_DAEMON.findall(begin)) >= records)
        return FileForm.KERNEL_LOG if own else FileForm.LOG
    return FileForm.KUBERNETES if _KUBERNETES_JSON.search(begin) and b'"apiVersion"' in begin else FileForm.LOG
