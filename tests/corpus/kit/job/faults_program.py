"""Mistakes of a program that have nothing to do with tensors."""

# mypy: ignore-errors

import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys

from faults import BUG, fault


@fault(BUG, "KeyError: 'labels'")
def key_error(job):
    batch = {"pixel_values": [1.0], "label": [3]}
    return batch["labels"]


@fault(BUG, "AttributeError: 'Net' object has no attribute 'heads'")
def attribute_typo(job):
    return job.net.heads


@fault((BUG, "usage.index-out-of-range"), "IndexError: list index out of range")
def list_index(job):
    milestones = [1, 2]
    return milestones[job.step]


@fault(BUG, "TypeError: Net.forward() got an unexpected keyword argument 'mask'")
def unexpected_argument(job):
    import torch

    return job.net(torch.zeros(2, 16), mask=None)


@fault((BUG, "data.corrupt"), "ValueError: could not convert string to float: '0.3%'")
def float_of_text(job):
    return float("0.3%")


@fault(BUG, "ZeroDivisionError: ")
def zero_division(job):
    seen = 0
    return job.step / seen


@fault(BUG, "UnboundLocalError: ")
def unbound_local(job):
    if job.step > 100:
        best = job.step
    return best


@fault(BUG, "NameError: name 'nn' is not defined")
def name_error(job):
    return nn.Linear(4, 4)  # noqa: F821


@fault((BUG, "usage.config"), "AssertionError")
def assertion_bare(job):
    assert job.step % 2 == 0


@fault(("usage.config", BUG, "usage.shape-mismatch"), "AssertionError: hidden size 30 is not divisible by 4 heads")
def assertion_of_sizes(job):
    hidden, heads = 30, 4
    assert hidden % heads == 0, f"hidden size {hidden} is not divisible by {heads} heads"


@fault((BUG, "usage.config"), "SamplePoolExhausted: no sample is left of bucket 7")
def own_exception(job):
    class SamplePoolExhausted(Exception):
        """A class of the program's own."""

    raise SamplePoolExhausted("no sample is left of bucket 7")


@fault((BUG, "usage.config"), ("RuntimeError: cannot build the vocabulary", "KeyError: 'unk'"))
def chained(job):
    try:
        return {"pad": 0}["unk"]
    except KeyError as error:
        raise RuntimeError("cannot build the vocabulary") from error


@fault(("python.recursion", BUG), "RecursionError: maximum recursion depth exceeded")
def recursion(job):
    def flatten(tree):
        return flatten([tree])

    return flatten([])


@fault(
    ("elastic.child-failed", BUG, "usage.config"),
    (
        "exit code 3",
        "exitcode: 3",
        "exitcode  : 3",
        "status 3",
        "exit code: 3",
        "code 3",
        "return code [3]",
        "Exit status:  3",
        "exit(3)",
        "Exit code: 3",
        "SystemExit: 3",
    ),
)
def exit_three(job):
    sys.exit(3)


@fault(
    ("elastic.child-failed", BUG, "usage.config"), ("exitcode: 7", "exitcode  : 7", "exit code 7", "code 7", "status 7")
)
def exit_silently(job):
    os._exit(7)


@fault(("usage.config", BUG, "elastic.child-failed"), "config has no section [optimizer]")
def exit_with_words(job):
    sys.exit("config has no section [optimizer]")


@fault(("usage.config", "elastic.launch-args"), "error: unrecognized arguments: --warm-up 100", at="start", ranks="all")
def unknown_option(job):
    parser = argparse.ArgumentParser()
    parser.add_argument("--warmup", type=int)
    parser.parse_args(["--warm-up", "100"])


@fault(
    ("usage.config", "elastic.launch-args"),
    "error: the following arguments are required: --data",
    at="start",
    ranks="all",
)
def missing_option(job):
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.parse_args([])


@fault("env.import-error", "ModuleNotFoundError: No module named 'torch_scatter_extra'", at="start", ranks="all")
def module_missing(job):
    import torch_scatter_extra  # noqa: F401


@fault(
    ("env.import-error", "env.version-conflict"),
    "ImportError: cannot import name 'StatefulLoader'",
    at="start",
    ranks="all",
)
def name_missing(job):
    from torch.utils.data import StatefulLoader  # noqa: F401


@fault(("env.version-conflict", "env.import-error"), "PackageNotFoundError: ", at="start", ranks="all")
def package_missing(job):
    importlib.metadata.version("apex-extra")


@fault(
    ("env.version-conflict", BUG, "env.import-error"),
    "AttributeError: module 'torch.distributed' has no attribute 'all_gather_lists'",
)
def function_missing(job):
    import torch.distributed as dist

    dist.all_gather_lists([])


@fault(("usage.config", BUG), "KeyError: 'DATA_ROOT'", at="start", ranks="all")
def variable_missing(job):
    return os.environ["DATA_ROOT"]


@fault(BUG, "StopIteration")
def iterator_empty(job):
    return next(iter([]))


@fault(("python.encoding", "data.corrupt"), "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe9")
def encoding(job):
    pathlib.Path("names.txt").write_bytes("Ren\u00e9e".encode("latin-1"))
    return pathlib.Path("names.txt").read_text(encoding="utf-8")


@fault(("usage.subprocess", "data.missing-file"), "subprocess.CalledProcessError: ")
def program_fails(job):
    subprocess.run(["tar", "-xf", "shards-007.tar"], check=True)


@fault(("env.import-error", "usage.subprocess", "data.missing-file"), "No such file or directory: 'ffprobe-static'")
def program_missing(job):
    subprocess.run(["ffprobe-static", "clip.mp4"], check=True)


@fault(
    "data.missing-file",
    "FileNotFoundError: [Errno 2] No such file or directory: 'conf/train.yaml'",
    at="start",
    ranks="all",
)
def config_missing(job):
    return open("conf/train.yaml").read()


@fault(("storage.permission", "storage.output-path"), "PermissionError: [Errno 13] Permission denied: ")
def not_allowed(job):
    pathlib.Path("runs").mkdir(exist_ok=True)
    pathlib.Path("runs").chmod(0o700)
    if os.getuid() == 0:
        os.seteuid(65534)
    with open("runs/metrics.csv", "w") as file:
        file.write("step,loss\n")


@fault("data.corrupt", "json.decoder.JSONDecodeError: ")
def json_cut(job):
    return json.loads('{"images": [{"id": 7, "file": "a.jp')


@fault((BUG, "usage.config"), 'NotImplementedError: Module [Head] is missing the required "forward" function')
def forward_missing(job):
    import torch

    class Head(torch.nn.Module):
        """Without the one method that it needs."""

    return Head()(torch.zeros(1))


@fault("dataloader.fd-limit", "OSError: [Errno 24] Too many open files", retry=("no",))
def files_open(job):
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))
    return [open("train.py") for _ in range(100)]


@fault(
    ("storage.output-path", "data.missing-file"),
    "FileNotFoundError: [Errno 2] No such file or directory: 'runs/exp7/log.csv'",
)
def output_folder_missing(job):
    with open("runs/exp7/log.csv", "w") as file:
        file.write("step,loss\n")
