"""What tokenizers count, measured on 23 November 2026, next to our count, which must never be below.

o200k and cl100k (tiktoken), Qwen (dashscope), Tekken and the 32k SentencePiece model (mistral-common), Anthropic's and
DeepSeek's (litellm): the largest of the seven.
"""

from __future__ import annotations

import pytest

from torchtriage.answer.brief.token_count import token_count

MEASURED = [
    (58, "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of "
         "79.15 GiB of which 1.19 GiB is free."),
    (111, "E0501 09:20:05.123456 140245 ProcessGroupNCCL.cpp:683] [Rank 5] Watchdog caught collective operation timeout: "
          "WorkNCCL(SeqNum=1873, OpType=ALLREDUCE, NumelIn=25557032, Timeout(ms)=600000) ran for 600029 milliseconds "
          "before timing out."),
    (87, '  File "/opt/venv/lib/python3.11/site-packages/torch/nn/parallel/distributed.py", line 1593, in _pre_forward\n'
         "    if torch.is_grad_enabled() and self.reducer._rebuild_buckets():\n"
         "       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"),
    (67, "  9%|▉         | 2339/24758 [1:33:13<14:57:52,  2.40s/it, loss=1.84, lr=9.756e-05]"),
    (96, "gpu-021:40917:41233 [3] NCCL WARN NET/IB : Got completion from peer 10.0.4.7<47322> with status=12 opcode=129 "
         "len=0 vendor err 129 (Recv) localGid fe80::63f:7203:c0:4e12"),
    (61, "0x00007f3a9c2b1e40 in c10::cuda::ExchangeDevice(signed char) () from /usr/lib/x86_64-linux-gnu/libc10_cuda.so"),
    (93, "c2VjcmV0IGJ5dGVzIG9mIGEgcmFuZG9tIHRva2Vu 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    (65, "NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=eth0 TORCH_NCCL_ASYNC_ERROR_HANDLING=1 CUDA_VISIBLE_DEVICES=0,1,2,3 "
         "MASTER_PORT=29500"),
    (51, "size mismatch for classifier.weight: copying a param with shape torch.Size([1000, 768]) from checkpoint, the "
         "shape in current model is torch.Size([37, 768])."),
    (42, "rank 3 的显存不足：请减小 batch size，或者打开 activation checkpointing，然后从最新的 checkpoint 继续训练。"),
    (43, "日志显示集合通信超时，其他 rank 都在等待 rank 5；请先查看 gpu-021 上该进程的输出。"),
    (54, '{"log":"step 980 loss nan grad_norm inf\\n","stream":"stderr","time":"2026-05-01T09:20:05.123456789Z"}'),
]  # fmt: skip


@pytest.mark.parametrize(("measured", "text"), MEASURED, ids=lambda value: str(value)[:24])
def test_the_count_is_never_below_what_tokenizers_count(measured: int, text: str) -> None:
    assert measured <= token_count(text) <= 2 * measured


def test_lines_together_take_no_more_than_their_sum() -> None:
    texts = [text for _, text in MEASURED]
    assert token_count("\n".join(texts)) <= sum(token_count(text) + 1 for text in texts)


def test_half_a_character_pair_and_nothing_are_counted() -> None:
    assert token_count("") == 0
    assert token_count("\ud83d \U0001f525") >= 4
