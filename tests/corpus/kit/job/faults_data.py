"""What goes wrong in data sets and in the workers of DataLoader."""

# mypy: ignore-errors

import os
import pathlib
import signal
import time
import zipfile

from faults import BUG, NO, ONCE, fault


def _feed(rows, **options):
    """Reads a whole epoch of the rows through a DataLoader."""
    from torch.utils.data import DataLoader

    workers = {"num_workers": 2, "multiprocessing_context": "fork", **options}
    for _ in DataLoader(rows, batch_size=4, **workers):
        pass


class Rows:
    """Sixteen rows; `one` makes each from its number."""

    def __init__(self, one):
        self.one = one

    def __len__(self):
        return 16

    def __getitem__(self, index):
        return self.one(index)


@fault(BUG, "KeyError: 'caption'")
def worker_key(job):
    _feed(Rows(lambda index: {"text": index}["caption"]))


@fault(
    ("dataloader.worker-killed", "process.oom-killed", "dataloader.host-memory"),
    ("is killed by signal: Killed", "exited unexpectedly"),
    retry=ONCE,
)
def worker_killed(job):
    _feed(Rows(lambda index: os.kill(os.getpid(), signal.SIGKILL)))


@fault(
    ("dataloader.worker-killed", "process.sigsegv"),
    ("is killed by signal: Segmentation fault", "exited unexpectedly"),
    retry=ONCE,
)
def worker_segv(job):
    _feed(Rows(lambda index: os.kill(os.getpid(), signal.SIGSEGV)))


@fault(
    ("dataloader.worker-killed", "process.sigabrt"), ("is killed by signal: Aborted", "exited unexpectedly"), retry=ONCE
)
def worker_abort(job):
    _feed(Rows(lambda index: os.abort()))


@fault(("dataloader.worker-killed",), "exited unexpectedly", retry=ONCE)
def worker_exits(job):
    _feed(Rows(lambda index: os._exit(5)))


@fault("dataloader.pickle", ("Can't pickle local object", "Can't get local object"))
def worker_lambda(job):
    _feed(Rows(lambda index: index), multiprocessing_context="spawn")


@fault(
    "dataloader.collate",
    ("stack expects each tensor to be equal size", "Trying to resize storage that is not resizable"),
)
def collate_ragged(job):
    import torch

    _feed(Rows(torch.zeros), num_workers=0, multiprocessing_context=None)


@fault(
    ("dataloader.collate", BUG, "data.corrupt"),
    "TypeError: default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'NoneType'>",
)
def collate_none(job):
    _feed(Rows(lambda index: None))


@fault(("dataloader.collate", BUG), "each element in list of batch should be of equal size")
def collate_lists(job):
    _feed(Rows(lambda index: [0] * (1 + index)))


@fault("dataloader.timeout", "DataLoader timed out after 4 seconds", retry=ONCE)
def worker_slow(job):
    _feed(Rows(lambda index: time.sleep(30)), timeout=4)


@fault("data.missing-file", "FileNotFoundError: [Errno 2] No such file or directory: 'images/000003.jpg'")
def worker_file(job):
    _feed(Rows(lambda index: open(f"images/{index + 3:06d}.jpg").read()), num_workers=1)


@fault("data.corrupt", "zipfile.BadZipFile: File is not a zip file")
def archive_cut(job):
    pathlib.Path("shard.zip").write_bytes(b"PK\x03\x04 and nothing more")
    zipfile.ZipFile("shard.zip")


@fault(("data.corrupt", "checkpoint.corrupt"), ("EOFError: Ran out of input", "pickle data was truncated"))
def cache_cut(job):
    import pickle

    pickle.loads(pickle.dumps(list(range(1000)))[:700])


@fault(
    ("data.missing-file", BUG, "usage.config", "usage.value-range"),
    "ValueError: num_samples should be a positive integer value, but got num_samples=0",
)
def rows_none(job):
    from torch.utils.data import DataLoader

    DataLoader([], shuffle=True)


@fault(("usage.shape-mismatch", "data.corrupt", BUG), "ValueError: cannot reshape array of size 100 into shape (8,16)")
def array_of_other_size(job):
    import numpy

    numpy.zeros(100).reshape(8, 16)


@fault(("data.corrupt", "usage.config"), "gzip.BadGzipFile: Not a gzipped file")
def gzip_plain(job):
    import gzip

    pathlib.Path("rows.csv.gz").write_text("a,b\n1,2\n")
    gzip.open("rows.csv.gz").read()


@fault(
    ("dataloader.shm-bus-error",),
    (
        "Unexpected bus error encountered in worker",
        "unable to write to file",
        "unable to mmap",
        "No space left on device",
    ),
    retry=NO,
    around="unshare --mount sh -c 'mount -t tmpfs -o size=4m tmpfs /dev/shm && exec \"$@\"' sh {}",
)
def shared_memory_small(job):
    import torch

    _feed(Rows(lambda index: torch.zeros(1 << 20)))
