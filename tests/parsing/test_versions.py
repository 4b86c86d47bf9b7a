import pytest

from tests.facts import collected
from torchtriage.domain.line import Line, Position
from torchtriage.facts import CollectedFacts
from torchtriage.reading.prefixes.learned import Labels
from torchtriage.reading.prefixes.strip import strip_prefixes


def read(text: str) -> CollectedFacts:
    """Returns what one line shows, with its prefixes stripped as in a log."""
    return collected(Line(1, text, strip_prefixes(text, Labels()).text, Position(1, 1)))


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("PyTorch version: 2.6.0+cu124", "torch", "2.6.0+cu124"),
        ("CUDA runtime version: 12.4.131", "cuda", "12.4"),
        ("Python version: 3.11.7 (main, Dec  4 2023) [GCC 12.2.0] (64-bit runtime)", "python", "3.11.7"),
        ("Nvidia driver version: 550.54.15", "driver", "550.54.15"),
        ("cuDNN version: Probably one of the following:", None, None),
        ("[conda] pytorch                   2.1.0           py3.10_cuda12.1_cudnn8.9.2_0    pytorch", "torch", "2.1.0"),
        ("[pip3] torch==2.6.0", "torch", "2.6.0"),
        ("[pip3] nvidia-nccl-cu12==2.21.5", "nccl", "2.21.5"),
        ("nvidia-cuda-runtime-cu12==12.4.127", "cuda", "12.4"),
        ("transformers==4.41.0", "transformers", "4.41.0"),
        ("transformers              4.41.0", "transformers", "4.41.0"),
        ("deepspeed                 0.14.2+unknown", "deepspeed", "0.14.2+unknown"),
        (
            "[2026-05-01 09:00:00,351] [INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.14.2, git-hash=unknown, git-branch=unknown",
            "deepspeed",
            "0.14.2",
        ),
        ("deepspeed info ................... 0.14.2, unknown, unknown", "deepspeed", "0.14.2"),
        ("torch version .................... 2.3.0", "torch", "2.3.0"),
        ("torch cuda version ............... 12.1", "cuda", "12.1"),
        ("nvcc version ..................... 12.2", "cuda", "12.2"),
        ("NCCL version 2.19.3+cuda12.3", "nccl", "2.19.3"),
        ("NCCL version : 2.21.5", "nccl", "2.21.5"),
        ("ncclUnhandledCudaError: Call to CUDA function failed., NCCL version 2.20.5", "nccl", "2.20.5"),
        ("wandb: Tracking run with wandb version 0.16.6", "wandb", "0.16.6"),
        ("wandb: Currently logged in as x", None, None),
        ("- `transformers` version: 4.41.0", "transformers", "4.41.0"),
        ("- Accelerate version: 0.30.1", "accelerate", "0.30.1"),
        ("- `Accelerate` version: 0.30.1", "accelerate", "0.30.1"),
        ("- Python version: 3.10.12", "python", "3.10.12"),
        ("- PyTorch version (GPU?): 2.3.0+cu121 (True)", "torch", "2.3.0+cu121"),
        ("- PyTorch version: 2.3.0", "torch", "2.3.0"),
        ("lightning==2.2.1", "lightning", "2.2.1"),
        ("pytorch-lightning==2.2.1", "lightning", "2.2.1"),
        ("megatron-core==0.7.0", "megatron", "0.7.0"),
        ("INFO 05-01 09:00:00 llm_engine.py:161] Initializing an LLM engine (v0.4.2) with config: x", "vllm", "0.4.2"),
        ("INFO 05-01 09:00:00 [core.py:58] Initializing a V1 LLM engine (v0.8.5) with config", "vllm", "0.8.5"),
        ("INFO 05-01 09:00:00 [api_server.py:1043] vLLM API server version 0.8.5", "vllm", "0.8.5"),
        ("vLLM Version: 0.6.3", "vllm", "0.6.3"),
        ("ray==2.10.0", "ray", "2.10.0"),
        ("Ray version: 2.10.0", "ray", "2.10.0"),
        (
            '  File "/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py", line 1518, in _wrapped_call_impl',
            "python",
            "3.10",
        ),
        (
            "| NVIDIA-SMI 535.104.05             Driver Version: 535.104.05   CUDA Version: 12.2     |",
            "driver",
            "535.104.05",
        ),
        ("flash-attn==2.5.8", "flash-attn", "2.5.8"),
        ("Successfully installed torch-2.5.1 transformers-4.46.0", "transformers", "4.46.0"),
        ("torch: 2.3.0+cu121", "torch", "2.3.0+cu121"),
        ("torch.__version__ = 2.3.0+cu121", "torch", "2.3.0+cu121"),
        ("torch.__version__: 2.3.0", "torch", "2.3.0"),
        ("PyTorch 2.3.0+cu121", "torch", "2.3.0+cu121"),
        ("Using PyTorch 2.3.0", "torch", "2.3.0"),
        ("PyTorch: 2.3.0", "torch", "2.3.0"),
        ("pytorch version 2.3.0", "torch", "2.3.0"),
        ("== PyTorch ==", "torch", None),
        ("NVIDIA Release 24.05 (build 92419045)", None, None),
        ("PyTorch Version 2.4.0a0+07cecf4", "torch", "2.4.0a0+07cecf4"),
        ("CUDA Version 12.4.1", "cuda", "12.4"),
        ("torch.version.cuda: 12.1", "cuda", "12.1"),
        ("CUDA: 12.1", "cuda", "12.1"),
        ("NCCL: 2.18.1", "nccl", "2.18.1"),
        ("torch.cuda.nccl.version(): (2, 18, 1)", "nccl", "2.18.1"),
        ("Python 3.10.12", "python", "3.10.12"),
        ("python: 3.10.12", "python", "3.10.12"),
        ('"torch": "2.3.0",', "torch", "2.3.0"),
        ("nemo-toolkit==1.23.0", "nemo", "1.23.0"),
        (
            "[INFO] [real_accelerator.py:203:get_accelerator] Setting ds_accelerator to cuda (auto detect)",
            "deepspeed",
            None,
        ),
        ("mmengine: 0.10.3", "mmengine", "0.10.3"),
        ("MMEngine: 0.10.3", "mmengine", "0.10.3"),
        ("TorchVision: 0.16.0", "torchvision", "0.16.0"),
        (
            "PyTorch                          2.1.0+cu121 @/opt/conda/lib/python3.10/site-packages/torch",
            "torch",
            "2.1.0+cu121",
        ),
        ("Torchtitan version: 0.1.0 (0.1.0 means __version__ not defined correctly).", "torchtitan", None),
        ("Transformer Engine 1.6.0", None, None),
        ("transformer-engine==1.6.0", "transformer-engine", "1.6.0"),
        ("bitsandbytes==0.43.1", "bitsandbytes", "0.43.1"),
        ("mosaicml==0.17.2", "composer", "0.17.2"),
        ("Using image pytorch/pytorch:2.3.0-cuda12.1-cudnn8-devel", "cuda", "12.1"),
        ("wandb: wandb version 0.17.0 is available!  To upgrade, please run:", None, None),
    ],
)
def test_versions_in_the_forms_of_reports_and_banners(text: str, name: str | None, version: str | None) -> None:
    assert read(text).versions.get(name or "torch") == version


@pytest.mark.parametrize(
    "text",
    [
        "+ srun --container-image=nvcr.io#nvidia/pytorch:24.05-py3 python train.py",
        "docker run --gpus all nvcr.io/nvidia/pytorch:24.05-py3 torchrun train.py",
    ],
)
def test_the_release_of_nvidias_image_shows_what_is_in_it(text: str) -> None:
    versions = read(text).versions
    assert (versions["torch"], versions["cuda"], versions["nccl"]) == ("2.4.0a0+07cecf4168", "12.4", "2.21.5")


def test_of_a_release_that_is_not_known_nothing_is_reported() -> None:
    assert not read("docker run nvcr.io/nvidia/pytorch:17.10 python train.py").versions
