"""Trains a small model and meets one named fault on the way: `train.py FAULT --victim RANK`, started by any launcher.

`--spawn N` starts the ranks itself, `--ray N` has Ray start them, `--labels` prints the list of faults.
"""

# mypy: ignore-errors

import argparse
import json
import os
import sys
import time

import trainer
from faults import FAULTS, Job

import faults_checkpoint  # noqa: F401
import faults_collective  # noqa: F401
import faults_data  # noqa: F401
import faults_process  # noqa: F401
import faults_program  # noqa: F401
import faults_tensor  # noqa: F401

RANKS = {
    "RANK": ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK"),
    "WORLD_SIZE": ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"),
    "LOCAL_RANK": ("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"),
}


def run(chosen, victim, pause=0.0):
    """Trains on this rank, with `pause` seconds before each step."""
    import torch

    fault = FAULTS.get(chosen)
    mine = fault is not None and (fault.ranks == "all" or int(os.environ["RANK"]) == victim)
    job = Job(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), victim)
    if mine and fault.at == "start":
        fault.run(job)
    trainer.setup(timeout=15)
    if mine and fault.at == "group":
        fault.run(job)
    job.net = trainer.Net()
    job.optimizer = torch.optim.AdamW(job.net.parameters(), lr=0.01)

    def on_step(step):
        job.step = step
        time.sleep(pause)
        if mine and fault.at == "step" and step == 3:
            fault.run(job)

    trainer.train(job.net, job.rank, steps=12, on_step=on_step)
    trainer.finish()
    if job.rank == 0:
        print("training finished, model written to runs/final.pt")


def spawned(rank, world, *chosen):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
    run(*chosen)


def with_ray(world, chosen, victim):
    """The same under Ray Train."""
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    def loop(config):
        sys.path.insert(0, config["folder"])
        import torch.distributed as dist

        import train

        os.chdir(config["folder"])
        dist.destroy_process_group()
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
        train.run(config["chosen"], config["victim"])

    ray.init(num_cpus=world + 1, include_dashboard=False)
    TorchTrainer(
        loop,
        train_loop_config={"folder": os.getcwd(), "chosen": chosen, "victim": victim},
        torch_config=TorchConfig(backend="gloo"),
        scaling_config=ScalingConfig(num_workers=world),
        run_config=RunConfig(storage_path=os.path.join(os.getcwd(), "ray")),
    ).fit()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fault", nargs="?", default="none")
    parser.add_argument("--victim", type=int, default=0)
    parser.add_argument("--spawn", type=int, default=0)
    parser.add_argument("--ray", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--labels", action="store_true")
    args = parser.parse_args()
    if args.labels:
        fields = [{**vars(fault), "run": fault.run.__module__} for fault in FAULTS.values()]
        print(json.dumps(fields))
        return
    for name, others in RANKS.items():
        told = [os.environ[other] for other in others if other in os.environ]
        if name not in os.environ and told:
            os.environ[name] = told[0]
    if not (args.spawn or args.ray):
        os.environ.setdefault("RANK", "0")
        os.environ.setdefault("WORLD_SIZE", "1")
    if args.spawn:
        import torch.multiprocessing as mp

        mp.spawn(spawned, args=(args.spawn, args.fault, args.victim, args.pause), nprocs=args.spawn)
    elif args.ray:
        with_ray(args.ray, args.fault, args.victim)
    else:
        run(args.fault, args.victim, args.pause)


if __name__ == "__main__":
    main()
