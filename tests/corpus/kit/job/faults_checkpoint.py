"""What goes wrong when checkpoints are written and read."""

# mypy: ignore-errors

import pathlib

from faults import BUG, fault


def _saved(job, content, name="last"):
    import torch

    path = pathlib.Path(f"{name}.{job.rank}.pt")
    torch.save(content, path)
    return path


@fault(
    "data.missing-file",
    "FileNotFoundError: [Errno 2] No such file or directory: 'runs/epoch_12.pt'",
    at="group",
    ranks="all",
)
def resume_missing(job):
    import torch

    torch.load("runs/epoch_12.pt")


@fault("checkpoint.corrupt", "PytorchStreamReader failed", at="group", ranks="all")
def resume_cut(job):
    import torch

    path = _saved(job, {"model": torch.zeros(1 << 18)})
    path.write_bytes(path.read_bytes()[: 1 << 19])
    torch.load(path)


@fault(("checkpoint.corrupt", "data.corrupt"), "OSError: [Errno 22] Invalid argument", at="group", ranks="all")
def resume_cut_early(job):
    import torch

    path = _saved(job, {"model": torch.zeros(4096)})
    path.write_bytes(path.read_bytes()[:9000])
    torch.load(path)


@fault(
    ("checkpoint.corrupt", "checkpoint.format", "data.corrupt"),
    ("EOFError", "UnpicklingError"),
    at="group",
    ranks="all",
)
def resume_empty(job):
    import torch

    path = pathlib.Path(f"empty.{job.rank}.pt")
    path.write_bytes(b"")
    torch.load(path)


@fault(
    ("checkpoint.corrupt", "checkpoint.format", "checkpoint.weights-only"),
    "invalid load key, '<'",
    at="group",
    ranks="all",
)
def resume_page(job):
    import torch

    path = pathlib.Path(f"page.{job.rank}.pt")
    path.write_text("<!DOCTYPE html><html><body>404 Not Found</body></html>")
    torch.load(path)


@fault(
    "checkpoint.key-mismatch",
    ("Missing key(s) in state_dict", "Error(s) in loading state_dict for"),
    at="group",
    ranks="all",
)
def resume_keys(job):
    import torch

    import trainer

    state = {f"module.{name}": value for name, value in trainer.Net().state_dict().items()}
    trainer.Net().load_state_dict(torch.load(_saved(job, state)))


@fault(
    ("checkpoint.size-mismatch", "checkpoint.key-mismatch"), "size mismatch for head.weight", at="group", ranks="all"
)
def resume_sizes(job):
    import torch

    import trainer

    trainer.Net().load_state_dict(torch.load(_saved(job, trainer.Net(classes=7).state_dict())))


@fault("checkpoint.weights-only", "Weights only load failed", at="group", ranks="all")
def resume_weights_only(job):
    import torch

    import trainer

    torch.load(_saved(job, trainer.Net()), weights_only=True)


@fault(
    ("checkpoint.key-mismatch", "checkpoint.size-mismatch", "checkpoint.format"),
    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
    at="group",
    ranks="all",
)
def resume_groups(job):
    import torch

    import trainer

    state = torch.optim.AdamW(list(trainer.Net().parameters())[:2]).state_dict()
    torch.optim.AdamW(trainer.Net().parameters()).load_state_dict(state)


@fault(("checkpoint.format", BUG, "checkpoint.key-mismatch"), "KeyError: 'state_dict'", at="group", ranks="all")
def resume_other_layout(job):
    import torch

    import trainer

    trainer.Net().load_state_dict(torch.load(_saved(job, {"model": trainer.Net().state_dict()}))["state_dict"])


@fault(("storage.output-path", "checkpoint.save-failed"), "Parent directory runs/exp7 does not exist.")
def save_folder_missing(job):
    import torch

    torch.save(job.net.state_dict(), "runs/exp7/last.pt")


@fault(
    ("storage.disk-full", "checkpoint.save-failed"),
    ("No space left on device", "PytorchStreamWriter failed", "file write failed", "unexpected pos"),
)
def save_disk_full(job):
    import torch

    torch.save({"big": torch.zeros(1 << 20)}, "/dev/full")


@fault("storage.disk-full", "OSError: [Errno 28] No space left on device", retry=("no",))
def metrics_disk_full(job):
    with open("/dev/full", "w") as file:
        file.write("step,loss\n" * 1000)


@fault(
    ("storage.disk-full", "checkpoint.save-failed"),
    ("No space left on device", "PytorchStreamWriter failed", "file write failed", "unexpected pos"),
    around="unshare --mount sh -c 'mkdir -p out && mount -t tmpfs -o size=64k tmpfs out && exec \"$@\"' sh {}",
)
def save_volume_full(job):
    import torch

    torch.save({"big": torch.zeros(1 << 20)}, "out/last.pt")


@fault(
    ("checkpoint.save-failed", BUG, "dataloader.pickle"),
    ("Can't pickle local object", "cannot pickle '_thread.lock' object", "cannot pickle"),
)
def save_lock(job):
    import threading

    import torch

    torch.save({"state": threading.Lock()}, "last.pt")


@fault(
    ("data.missing-file", "checkpoint.corrupt", "checkpoint.format"),
    (".metadata'", "CheckpointException"),
    at="group",
    ranks="all",
    since="2.4",
)
def shards_missing(job):
    import torch.distributed.checkpoint as dcp

    import trainer

    pathlib.Path("shards").mkdir(exist_ok=True)
    dcp.load({"model": trainer.Net().state_dict()}, checkpoint_id="shards")


@fault(
    "checkpoint.key-mismatch", "Missing key in checkpoint state_dict: model.extra", at="group", ranks="all", since="2.4"
)
def shards_keys(job):
    import torch
    import torch.distributed.checkpoint as dcp

    dcp.save({"model": {"body": torch.zeros(4)}}, checkpoint_id="shards")
    dcp.load({"model": {"body": torch.zeros(4), "extra": torch.zeros(4)}}, checkpoint_id="shards")


@fault(
    ("checkpoint.size-mismatch", "checkpoint.key-mismatch"),
    ("Size mismatch between saved", "size mismatch"),
    at="group",
    ranks="all",
    since="2.4",
)
def shards_sizes(job):
    import torch
    import torch.distributed.checkpoint as dcp

    dcp.save({"model": {"body": torch.zeros(4)}}, checkpoint_id="shards")
    dcp.load({"model": {"body": torch.zeros(6)}}, checkpoint_id="shards")


@fault(
    ("storage.output-path", "checkpoint.save-failed", "storage.permission", "data.missing-file"),
    ("NotADirectoryError", "FileExistsError", "Not a directory", "File exists"),
    at="group",
    ranks="all",
    since="2.4",
)
def shards_async(job):
    import torch
    import torch.distributed.checkpoint as dcp

    pathlib.Path("taken").write_text("a file, and no folder")
    dcp.async_save({"model": torch.zeros(4)}, checkpoint_id="taken/step5").result()


@fault(("checkpoint.corrupt", "checkpoint.format"), "SafetensorError", at="group", ranks="all", since="2.4")
def safetensors_cut(job):
    import torch
    from safetensors.torch import load_file, save_file

    path = pathlib.Path(f"model.{job.rank}.safetensors")
    save_file({"w": torch.zeros(4096)}, path)
    path.write_bytes(path.read_bytes()[:5000])
    load_file(path)
