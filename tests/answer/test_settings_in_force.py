"""Commands that change nothing, because the log shows that the variables have these values."""

import pytest

from torchtriage.answer.settings_in_force import is_in_force

VALUES = {
    "cuda_launch_blocking": "1",
    "nccl_debug": "INFO",
    "nccl_debug_subsys": "INIT,GRAPH,NET",
    "pytorch_cuda_alloc_conf": "max_split_size_mb:128,expandable_segments:True",
}


@pytest.mark.parametrize(
    ("command", "in_force"),
    [
        ("export CUDA_LAUNCH_BLOCKING=1", True),
        ("export CUDA_LAUNCH_BLOCKING=0", False),
        ("export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET", True),
        ("export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL", False),
        ("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", True),
        ("export NCCL_DEBUG=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL", False),
        ("export CUDA_LAUNCH_BLOCKING=1; python train.py", False),
        ("CUDA_LAUNCH_BLOCKING=1 python train.py", False),
        ('export LD_LIBRARY_PATH="$CONDA_PREFIX/lib:$LD_LIBRARY_PATH"', False),
    ],
)
def test_only_what_sets_nothing_new_is_in_force(command: str, in_force: bool) -> None:
    assert is_in_force(command, VALUES) is in_force
