#!/bin/bash
# Trains in a shell script that goes on after the failure.
echo "job started on partition train"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$1 RANK=0 WORLD_SIZE=1
python train.py 0 6 "$2"
code=$?
echo "train.py ended with status $code"
exit $code
