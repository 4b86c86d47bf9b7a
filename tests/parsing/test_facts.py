import pytest

from tests.facts import collected
from torchtriage.domain.line import Line, Position
from torchtriage.facts import CollectedFacts


def read(*texts: str) -> CollectedFacts:
    return collected(*(Line(number, text, text, Position(1, number)) for number, text in enumerate(texts, 1)))


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("PyTorch version: 2.3.0+cu121", "torch", "2.3.0+cu121"),
        ("torch                    2.6.0", "torch", "2.6.0"),
        ("[pip3] torch==2.1.2", "torch", "2.1.2"),
        ("torch version .................... 2.0.1+cu117", "torch", "2.0.1+cu117"),
        ("- PyTorch version (GPU?): 2.4.1+cu124 (True)", "torch", "2.4.1+cu124"),
        ("Successfully installed torch-2.5.1 triton-3.1.0", "torch", "2.5.1"),
        ("/env/lib/python3.10/site-packages/torch-2.5.1.dist-info", "torch", "2.5.1"),
        ("torch==2.3.0+cu121", "cuda", "12.1"),
        ("CUDA used to build PyTorch: 12.4", "cuda", "12.4"),
        ("Cuda compilation tools, release 11.8, V11.8.89", "cuda", "11.8"),
        ("gpu-7:41:41 [0] NCCL INFO NCCL version 2.21.5+cuda12.4", "nccl", "2.21.5"),
        ("gpu-7:41:41 [0] NCCL INFO NCCL version 2.21.5+cuda12.4", "cuda", "12.4"),
        ("ncclSystemError: System call failed, NCCL version 21.0.3", "nccl", "2.10.3"),
        ('  File "/env/lib/python3.10/runpy.py", line 196', "python", "3.10"),
        ("Python version: 3.11.7 (main, Dec  4 2023)", "python", "3.11.7"),
        ("| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2 |", "driver", "535.104.05"),
        ('  "transformers_version": "4.41.0",', "transformers", "4.41.0"),
        ("- `Accelerate` version: 0.30.1", "accelerate", "0.30.1"),
        ("DeepSpeed info: version=0.14.2, git-hash=unknown", "deepspeed", "0.14.2"),
        ("flash_attn==2.5.8", "flash-attn", "2.5.8"),
        ("pytorch-lightning==2.2.1", "lightning", "2.2.1"),
        ("Initializing an LLM engine (v0.4.2) with config", "vllm", "0.4.2"),
    ],
)
def test_versions_are_read_in_every_usual_form(text: str, name: str, version: str) -> None:
    assert read(text).versions[name] == version


@pytest.mark.parametrize(
    "text",
    [
        "this script requires torch==2.3.0",
        "please upgrade to torch 2.3.0",
        "PyTorch 2.0.0 or later is needed",
        "Uninstalling torch-2.2.0:",
        "torch>=2.0",
        "step 10 torch 2.5",
    ],
)
def test_a_version_that_is_only_asked_for_is_not_the_runs(text: str) -> None:
    assert "torch" not in read(text).versions


def test_the_driver_does_not_show_which_cuda_is_in_use() -> None:
    assert "cuda" not in read("| Driver Version: 535.104.05   CUDA Version: 12.2 |").versions


@pytest.mark.parametrize(
    ("text", "range_"),
    [
        (
            "E1120 15:09:16.037000 1001 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1)",
            ">=2.4",
        ),
        ("W0501 09:00:00.100000 140737350346560 torch/distributed/run.py:779] ", ">=2.3,<2.5"),
        ("[2026-11-20 15:09:22,351] torch.distributed.elastic.multiprocessing.api: [ERROR] failed", ">=2.1,<2.3"),
        ("ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1)", ">=1.9,<2.1"),
        ("[W reducer.cpp:1346] Warning: find_unused_parameters=True was specified", "<2.4"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate", ">=1.13,<2.5"),
    ],
)
def test_the_forms_of_lines_leave_a_range_of_torch_versions(text: str, range_: str) -> None:
    facts = read(text)
    assert facts.torch_range == range_
    assert "torch" not in facts.versions


def test_forms_that_contradict_one_another_show_nothing() -> None:
    both = ("ERROR:torch.distributed.elastic.multiprocessing.api:failed", "torch.OutOfMemoryError: CUDA out of memory")
    assert read(*both).torch_range is None


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("step 120/1000 loss 0.5", 120),
        (" iteration        5/     100 | consumed samples: 40", 5),
        ("Train: 3 [  50/1251 (  4%)]  Loss: 6.9", 50),
        ("Epoch: [3][ 50/5005]\tTime 0.3", 50),
        ("Epoch 3:  45%|####      | 450/1000 [00:10<00:12, 44.1it/s, loss=2.1]", 450),
        (" 12%|#2        | 120/1000 [00:10<01:12, 12.1it/s]", 120),
        ("epoch 2 global_step=240 step 40", 240),
        ("{'loss': 2.1, 'learning_rate': 5e-05, 'epoch': 3.0}", None),
        ("Loading checkpoint shards:  50%|#####     | 1/2 [00:03<00:03,  3.1s/it]", None),
    ],
)
def test_the_step_is_read_and_an_epoch_or_another_bar_is_not_one(text: str, step: int | None) -> None:
    assert read(text).step == step


@pytest.mark.parametrize(
    ("texts", "launcher"),
    [
        (["torch/distributed/run.py:874] Setting OMP_NUM_THREADS", "accelerate/commands/launch.py"], "accelerate"),
        (["[2026-05-01 09:00:00,000] [INFO] [launch.py:256:main] process 41 spawned"], "deepspeed"),
        (["+ python -m torch.distributed.launch --nproc_per_node=2 train.py"], "torch.distributed.launch"),
        (["Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/8"], "lightning"),
        (["$ python train.py"], "python"),
        (["import torch"], None),
    ],
)
def test_the_outermost_launcher_is_reported(texts: list[str], launcher: str | None) -> None:
    assert read(*texts).launcher == launcher


@pytest.mark.parametrize("text", ["world_size=8", "MEMBER: 1/8", "All processes registered. Starting with 8 processes"])
def test_the_world_size_is_read(text: str) -> None:
    assert read(text).world_size == 8


def test_the_phase_is_that_of_a_place_in_the_log() -> None:
    facts = read("Loading checkpoint from last.ckpt", "step 1 loss 2.0", "Saving model to out", "step 2 loss 1.9")
    assert [facts.phase_at(Position(1, number)) for number in range(5)] == [
        None,
        "load",
        "train",
        "save",
        "train",
    ]


@pytest.mark.parametrize(
    ("text", "code"), [("exits with return code = -9", -9), ("exited with code 137", 137), ("exit code: 0", None)]
)
def test_exit_statuses_in_lines(text: str, code: int | None) -> None:
    assert read(text).exit_code == code


@pytest.mark.parametrize(
    ("times", "like", "span"),
    [
        (["2026-05-01T09:05:00", "2026-05-01T09:00:00", "2026-05-01T09:10:00"], None, ("2026-05-01T09:00:00", "2026-05-01T09:10:00")),
        (["--05-01T09:00:00.5", "2026-05-01T09:10:00", "--05-01T09:10:00.2"], None, ("2026-05-01T09:00:00.5", "2026-05-01T09:10:00.2")),
        (["--05-01T09:00:00"], None, ("--05-01T09:00:00", "--05-01T09:00:00")),
        # Two clocks are not mixed: the one that told the failure counts, else the one that told more.
        (["2026-05-01T07:00:00Z", "2026-05-01T09:00:00", "2026-05-01T09:10:00"], None, ("2026-05-01T09:00:00", "2026-05-01T09:10:00")),
        (["2026-05-01T07:00:00Z", "2026-05-01T09:00:00", "2026-05-01T09:10:00"], "2026-05-01T07:00:00Z", ("2026-05-01T07:00:00Z", "2026-05-01T07:00:00Z")),
        (["2026-05-01T07:00:00Z", "2026-05-01T08:30:00+02:00", "2026-05-01T08:00:00+00:00"], None, ("2026-05-01T08:30:00+02:00", "2026-05-01T08:00:00+00:00")),
        ([], None, (None, None)),
    ],
)  # fmt: skip
def test_start_and_end_are_the_earliest_and_the_latest_time_of_one_clock(
    times: list[str], like: str | None, span: tuple[str | None, str | None]
) -> None:
    facts = collected(*(Line(number, "x", "x", Position(1, number), time=time) for number, time in enumerate(times, 1)))
    assert facts.span.of(like) == span


@pytest.mark.parametrize(
    ("text", "hosts", "host_of"),
    [
        ("SLURM_JOB_NODELIST=gpu[001-003,007]", ["gpu001", "gpu002", "gpu003", "gpu007"], {}),
        ("SLURM_NODELIST='gpu-[8-10],login1'", ["gpu-8", "gpu-9", "gpu-10", "login1"], {}),
        ("   NodeList=gpu[01-02]-ib BatchHost=gpu01-ib", ["gpu01-ib", "gpu02-ib"], {}),
        ("srun: error: gpu[001-002]: tasks 0-3: Exited with exit code 1", ["gpu001", "gpu002"], {}),
        ("srun: error: gpu002: tasks 2-3,5: Killed", ["gpu002"], {2: "gpu002", 3: "gpu002", 5: "gpu002"}),
        ("srun: error: gpu002: task 3: Segmentation fault", ["gpu002"], {3: "gpu002"}),
        ("slurmstepd: error: *** STEP 31.0 ON gpu001 CANCELLED AT 2026-05-01T09:00:00 ***", ["gpu001"], {}),
        ("slurmstepd-gpu003: error: Detected 1 oom_kill event in StepId=31.0.", ["gpu003"], {}),
        ("  host      : gpu-7", ["gpu-7"], {}),
        ("gpu-7:41:77 [3] NCCL INFO comm 0x55d0 rank 11 nranks 16 cudaDev 3 nvmlDev 3", ["gpu-7"], {11: "gpu-7"}),
        ("gpu-7:41:77 [3] NCCL INFO ncclCommInitRank comm 0x55d0 rank 11 nRanks 16", ["gpu-7"], {11: "gpu-7"}),
        ("srun: error: Unable to create step", [], {}),
        ("SLURM_JOB_NODELIST=", [], {}),
    ],
)
def test_hosts_and_who_ran_on_them(text: str, hosts: list[str], host_of: dict[int, str]) -> None:
    facts = read(text)
    assert list(facts.hosts) == hosts
    assert facts.host_of == host_of


@pytest.mark.parametrize(
    "text",
    [
        "Map (num_proc=4): 100%|██████████| 66317/66317 [00:02<00:00, 26724.84 examples/s]",
        "Loading checkpoint shards:  50%|█████     | 2/4 [00:03<00:03,  1.5s/it]",
        "resumed from /job/out/last/epoch=0-step=5000.ckpt",
        "wandb:         train/loss 0.2",
        "[2026-05-01T09:00:00.100] *** STEP 77.0 ON n3 CANCELLED AT 2026-05-01T09:00:00 ***",
    ],
)
def test_what_counts_something_else_is_not_progress_of_the_training(text: str) -> None:
    assert not read(text).progress


@pytest.mark.parametrize(
    "text",
    [
        "100%|██████████| 2209/2209 [39:03<00:00,  1.06s/it]",
        "step 5000 saved /job/out/last/epoch=0-step=5000.ckpt",
        "Loading data:  50%|█████     | 2/4 [00:03<00:03] step 12 loss 0.3",
    ],
)
def test_progress_next_to_files_and_other_bars_counts(text: str) -> None:
    assert read(text).progress


@pytest.mark.parametrize(
    ("texts", "hosts"),
    [
        (["Job was executed on host(s) <n-62-23-26>, in queue <hpc>, as user <ada> in cluster <dcc>"], ["n-62-23-26"]),
        (
            [
                "Job was executed on host(s) <8*gpu01>, in queue <a100>, as user <ada>",
                "                            <8*gpu02>",
            ],
            ["gpu01", "gpu02"],
        ),
        (["    exec_host = node07/0*16+node08/0*16"], ["node07", "node08"]),
        (["Execution host: node07.cluster"], ["node07.cluster"]),
        ([" Host             = comp31.local"], ["comp31.local"]),
        (["Exec host:  node07/0+node07/1+node08/0"], ["node07", "node08"]),
        (['    "current_host": "algo-2",'], ["algo-2"]),
    ],
)
def test_batch_systems_show_on_which_hosts_a_job_ran(texts: list[str], hosts: list[str]) -> None:
    facts = read(*texts)
    assert list(facts.hosts) == hosts
    assert facts.executed_on == set(hosts)


def test_markup_names_no_host() -> None:
    assert not read("            <div>", "Job <31> was submitted from host <login1> by user <ada>").hosts
