"""The program of each rank: a training loop on the CPU with Gloo, in which the ranks at fault do something else at one
step. `HANG` holds the plan as JSON: kind, at_fault, step, layout, asynchronous, and the folder for what it writes.
Without RANK it waits for plans on its standard input, and forks their ranks.
"""

# mypy: ignore-errors

import ctypes
import faulthandler
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback

import torch
import torch.distributed as dist

FOREVER = 600


class Samples(torch.utils.data.Dataset):
    """A data set in which one sample of one rank is slow to read."""

    def __init__(self, job):
        self.job = job

    def __len__(self):
        return 400

    def __getitem__(self, index):
        if self.job.at_fault("slow-loader") and index % 4 == 3:
            self.read_from_storage()
        return torch.full((8,), float(index))

    def read_from_storage(self):
        time.sleep(FOREVER)


class Job:
    def __init__(self, rank, world, plan):
        self.rank, self.world, self.plan = rank, world, plan
        self.step, self.calls = 0, 0
        self.lock = threading.Lock()
        self.progress = open(f"{plan['folder']}/progress_{rank}", "w", buffering=1)
        dist.init_process_group("gloo", rank=rank, world_size=world)
        everyone = list(range(world))
        self.data = self.tensor = None
        if plan["layout"] == "grid":
            for first in range(0, world, 2):
                group = dist.new_group([first, first + 1], group_desc="tensor_parallel")
                self.tensor = group if rank in (first, first + 1) else self.tensor
            for first in (0, 1):
                group = dist.new_group(everyone[first::2], group_desc="data_parallel")
                self.data = group if rank % 2 == first else self.data
        elif plan["layout"] == "pairs":
            for first in range(0, world - 1, 2):
                group = dist.new_group([first, first + 1], group_desc="tensor_parallel")
                self.tensor = group if rank in (first, first + 1) else self.tensor
            self.data = dist.new_group(everyone, group_desc="data_parallel")

    def at_fault(self, *kinds):
        plan = self.plan
        return plan["kind"] in kinds and self.step == plan["step"] and self.rank in plan["at_fault"]

    def tell(self):
        self.calls += 1
        self.progress.write(f"{self.step} {self.calls}\n")

    def all_reduce(self, tensor, group=None):
        self.tell()
        if self.plan["asynchronous"]:
            dist.all_reduce(tensor, group=group, async_op=True).wait()
        else:
            dist.all_reduce(tensor, group=group)

    def forward(self, batch):
        if self.tensor is not None:
            self.all_reduce(batch.clone(), self.tensor)
        return batch.sum(dim=1)

    def backward(self, out):
        small, large = torch.ones(16) * out.mean(), torch.ones(64, 4) * out.mean()
        if self.at_fault("shape"):
            large = torch.ones(out.shape[0] + 3, 4)
        if self.at_fault("dtype"):
            large = large.double()
        if self.at_fault("order"):
            self.all_reduce(large, self.data)
            self.all_reduce(small, self.data)
            return
        if not self.at_fault("skip"):
            self.all_reduce(small, self.data)
        if self.at_fault("other-group"):
            self.all_reduce(large, self.tensor if self.plan["layout"] != "flat" else None)
        else:
            self.all_reduce(large, self.data)
        if self.at_fault("extra"):
            self.all_reduce(torch.ones(2), self.data)

    def log_loss(self, out):
        loss = out.mean().reshape(1).clone()
        self.all_reduce(loss)
        if self.rank == 0:
            print(f"step {self.step} loss {1 / (1 + self.step):.4f}", flush=True)

    def save_checkpoint(self):
        path = f"{self.plan['folder']}/checkpoint_{self.rank}.pt"
        if self.at_fault("slow-save"):  # a disk that takes no more
            os.mkfifo(path)
            self.disk = os.open(path, os.O_RDWR)
        with open(path, "wb") as file:
            torch.save({"step": self.step, "weights": torch.zeros(1 << 16)}, file)

    def evaluate(self, collectively):
        for batch in range(1 << 20):
            (torch.ones(64, 64) @ torch.ones(64, 64)).sum()
            if collectively:
                self.all_reduce(torch.ones(3), self.data)
            time.sleep(0.02)

    def hold_lock(self):
        with self.lock:
            with self.lock:
                pass

    def hold_interpreter(self):
        """Stands in C, and keeps the interpreter's lock."""
        library, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
        library.pthread_mutex_lock(mutex)
        library.pthread_mutex_lock(mutex)

    def before(self):
        """What a rank at fault does alone at the beginning of a step."""
        if self.at_fault("killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.at_fault("stopped"):
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.at_fault("lock"):
            self.hold_lock()
        if self.at_fault("gil"):
            self.hold_interpreter()
        if self.at_fault("worker"):
            queue.Queue().get()  # a producer thread that ended
        if self.at_fault("evaluates"):
            self.evaluate(collectively=False)
        if self.at_fault("evaluates-together"):
            self.evaluate(collectively=True)

    def train(self):
        if self.rank == 0:
            print(f"distributed: backend=gloo world_size={self.world}", flush=True)
        batches = torch.utils.data.DataLoader(Samples(self), batch_size=4)
        for batch in batches:
            self.tell()
            self.before()
            if self.at_fault("uneven", "uneven-waits"):
                break
            try:
                if self.at_fault("swallowed"):
                    raise ValueError("a sample without a label")
                out = self.forward(batch)
                self.backward(out)
            except ValueError as error:
                print(f"step {self.step}: skipped a batch: {error}", flush=True)
            if self.step % 2:
                self.log_loss(out)
            if self.at_fault("slow-save") or (self.step == self.plan["step"] and self.rank == 0):
                self.save_checkpoint()
            if self.step == self.plan["step"] and self.plan["kind"] == "barrier" and not self.at_fault("barrier"):
                self.tell()
                dist.barrier()
            self.step += 1
            if self.step > 12:
                break
        self.finish()

    def finish(self):
        if self.plan["kind"] == "uneven":
            self.evaluate(collectively=False)
        self.tell()
        dist.barrier()


def answer_requests(job, folder):
    """Writes the flight recorder's dump when it is asked for, as the watchdog of NCCL does. Without stack traces, for
    which torch imports its compiler: that takes longer than all else here."""
    while not os.path.exists(f"{folder}/gather"):
        time.sleep(0.05)
    with open(f"{os.environ['TORCH_FR_DUMP_TEMP_FILE']}{job.rank}", "wb") as file:
        recorder = torch._C._distributed_c10d
        json_form = job.plan["json"]
        file.write(recorder._dump_fr_trace_json() if json_form else recorder._dump_fr_trace(includeStackTraces=False))
    open(f"{folder}/dumped_{job.rank}", "w").close()


def run(rank, world, plan):
    torch.set_num_threads(1)
    job = Job(rank, world, plan)
    threading.Thread(target=answer_requests, args=(job, plan["folder"]), daemon=True).start()
    try:
        job.train()
    except Exception:
        # Its peers are gone or disagree. It says so, and stands in its clean-up, as jobs do whose other ranks hang.
        traceback.print_exc()
        open(f"{plan['folder']}/raised_{rank}", "w").close()
        threading.Event().wait()
    open(f"{plan['folder']}/ended_{rank}", "w").close()


def fork(rank, plan):
    """-> the process of a rank, which has torch from its parent."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    log = os.open(f"{plan['folder']}/train.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(plan["environment"])
    faulthandler.register(signal.SIGUSR1, open(f"{plan['folder']}/stack_{rank}.txt", "wb", 0))
    run(rank, plan["ranks"], plan)
    os._exit(0)


def serve():
    """Plans come in, one a line; the processes of their ranks go out. Importing torch once for all runs saves most of
    their time."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        plan = json.loads(line)
        print(json.dumps([fork(rank, plan) for rank in range(plan["ranks"])]), flush=True)


if __name__ == "__main__":
    if "RANK" in os.environ:
        run(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), json.loads(os.environ["HANG"]))
    else:
        serve()
