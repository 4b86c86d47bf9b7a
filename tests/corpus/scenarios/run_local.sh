#!/bin/bash
# Starts three ranks without a launcher, as many home-made scripts do.
set -x
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$1
export WORLD_SIZE=3
for rank in 0 1 2; do
  RANK=$rank python train.py &
done
wait
echo "all ranks are done"
