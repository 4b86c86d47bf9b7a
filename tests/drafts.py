"""A failure that no entry explains, and a draft that does."""

from __future__ import annotations

from torchtriage.domain.draft import Draft, DraftStep

UNKNOWN = """\
step 100 loss 2.31 lr 0.0003
step 200 loss 2.21 lr 0.0003
[rank2]: Traceback (most recent call last):
[rank2]:   File "/job/train.py", line 61, in main
[rank2]:     for batch in shards:
[rank2]:   File "/job/ourdata/shards.py", line 33, in __iter__
[rank2]:     raise ShardTooShort(text)
[rank2]: ourdata.shards.ShardTooShort: shard 3 of '/data/a.idx' ends after 3005 records, index says 4096
"""
SIGN = r"ShardTooShort: shard (?P<shard>\d+) of '(?P<path>[^'\n]+)' ends after (?P<records>\d+) records"
SOUND = Draft(
    entry="ourdata.shard-too-short",
    title_en="A shard holds fewer records than its index says",
    title_zh="分片中的记录少于索引记载",
    sign=SIGN,
    says_en="Shard {shard} of {path} holds only {records} records.",
    says_zh="{path} 的分片 {shard} 只有 {records} 条记录。",
    steps=(DraftStep("Rewrite shard {shard}.", "重写分片 {shard}。", "ls -l {path}"), DraftStep(), DraftStep()),
    source="ourdata 1.4, ourdata/shards.py",
    example=UNKNOWN.partition("lr 0.0003\n[")[2].strip().join(["[", ""]),
    near_miss="ShardTooShort: the shard list is empty",
)
SAYS = "Shard 3 of /data/a.idx holds only 3005 records."
