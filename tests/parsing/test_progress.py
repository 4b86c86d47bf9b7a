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
    ("text", "step"),
    [
        ("step 120/1000 loss 0.5",120),
        ("{'loss': 2.1, 'grad_norm': 1.0, 'learning_rate': 5e-05, 'epoch': 3.0}",None),
        ("{'loss': 2.1, 'step': 120}",120),
        (" 12%|#2        | 120/1000 [00:10<01:12, 12.1it/s]",120),
        ("Training:  12%|#2        | 120/1000 [00:10<01:12, 12.1it/s, loss=2.1]",120),
        (" [2026-05-01 09:00:00.351] iteration      120/  500000 | consumed samples:        61440 | elapsed time per iteration (ms): 512.1 | lm loss: 2.1E+00 |",120),
        (" iteration      120/  500000 | consumed samples:        61440 |",120),
        ("Epoch 3:  12%|#2        | 120/1000 [00:10<01:12, 12.1it/s, v_num=3, train_loss=2.1]",120),
        ("Epoch 3:  12%|#2        | 120/1000 [00:10<01:12,  0.08it/s]",120),
        ("[2026-05-01 09:00:00,351] [INFO] [logging.py:96:log_dist] [Rank 0] step=120, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]",120),
        ("steps: 120 loss: 2.1234 iter time (s): 0.512 samples/sec: 15.6",120),
        ("[batch=120/1000]:",120),
        ("train          Epoch   0:   12%|###      | 120/1000 [00:10<01:12]",120),
        ("iter 120: loss 2.1234, time 512.12ms, mfu 30.12%",120),
        ("step 120: train loss 2.1, val loss 2.2",120),
        ("2026-05-01 09:00:00 | INFO | train_inner | epoch 001:    120 / 1000 loss=9.1, ppl=512, wps=1000, num_updates=118, lr=1e-05",118),
        ("2026-05-01 09:00:00 | INFO | train_inner | {\"epoch\": 1, \"update\": 0.12, \"loss\": \"9.1\", \"num_updates\": \"120\"}",120),
        ("05/01 09:00:00 - mmengine - INFO - Epoch(train)   [1][ 50/1000]  lr: 1.0000e-02  eta: 1:00:00  time: 0.5  loss: 2.1",50),
        ("05/01 09:00:00 - mmengine - INFO - Iter(train) [  120/10000]  lr: 1.0000e-02  eta: 1:00:00  loss: 2.1",120),
        ("2026-05-01 09:00:00,123 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.000e-02, eta: 1 day, loss: 2.1",50),
        ("[05/01 09:00:00 d2.utils.events]:  eta: 1:00:00  iter: 119  total_loss: 2.1  loss_cls: 1.1  time: 0.5  lr: 0.01",119),
        ("[titan] 2026-05-01 09:00:00,123 - root - INFO - step: 120  loss:  2.1234  grad_norm: 1.2 memory: 30.1GiB(38%)  tps: 3,000",120),
        ("\x1b[31mstep: 120  \x1b[32mloss:  2.1234",120),
        ("Epoch: [3][ 50/5005]\tTime  0.3 ( 0.4)\tLoss 6.9",50),
        ("Epoch: [3]  [  50/5005]  eta: 0:10:00  lr: 0.1  loss: 6.9 (6.9)  time: 0.3",50),
        ("Train Epoch: 3 [1280/60000 (2%)]\tLoss: 0.5",None),
        ("Train: 3 [  50/1251 (  4%)]  Loss: 6.9",50),
        ("Global step 120, loss 2.1",120),
        ("global_step: 120 | loss: 2.1",120),
        ("INFO:root:Step 120 | loss 2.1",120),
        ("[Epoch 3, Step 120] loss: 2.1",120),
        ("Iteration 120 / 1000, Loss: 2.1",120),
        ("it: 120, loss=2.1",120),
        ("| epoch   1 |   120/ 2983 batches | lr 20.00 | ms/batch 5.1 | loss  7.1 | ppl  1200",120),
        ("Step 1,200 loss 2.1",1200),
        ("train_step=120 train_loss=2.1",120),
        ("Training Step: 120 | Loss: 2.1",120),
        ("step:120/9536 train_loss:4.1 train_time:12345ms step_avg:102.1ms",120),
        ("s:120 loss:2.1",None),
        ("INFO - Training: 120 steps done, loss = 2.1",None),
        ("NeMo: Epoch 0: :   0%|          | 120/500000 [00:10<12:00:00, reduced_train_loss=2.1, global_step=119.0, consumed_samples=960.0]",119),
        ("Training epoch 0, iteration 119/999 | lr: 1e-05 | global_batch_size: 512 | global_step: 119 | reduced_train_loss: 2.1",119),
        ("[trainer] Step 120/1000 | loss: 2.1 | lr 1e-4",120),
        ("Loading checkpoint shards:  50%|#####     | 1/2 [00:03<00:03,  3.1s/it]",None),
        ("Validation: 50%|#####     | 10/20 [00:03<00:03,  3.1s/it]",None),
        ("eval step 12/20",None),
        ("[backward 4/15] context=65536, batch=8, seqlen=8192",None),
        ("epoch=1 batch=120 loss=2.1",120),
        ("# nThread 1 nGpus 2 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1",None),
        ("python train.py --img 640 --batch 16 --epochs 5 --data ships.yaml --weights yolov5s.pt", None),
        ("Number of steps/epoch 16, number of epochs 4, total number of steps 64", None),
        ("number of training steps: 500", None),
    ],
)  # fmt: skip
def test_the_last_step_in_the_forms_of_trainers(text: str, step: int | None) -> None:
    assert read(text).step == step


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        ("Setting OMP_NUM_THREADS environment variable for each process to be 1 in default","launch"),
        ("torchrun --nproc-per-node 8 train.py","launch"),
        ("[2026-05-01 09:00:00,000] [INFO] [runner.py:568:main] cmd = /usr/bin/python3 -u -m deepspeed.launcher.launch","launch"),
        ("[2026-05-01 09:00:00,000] [INFO] [launch.py:139:main] WORLD INFO DICT: {'localhost': [0, 1]}","launch"),
        ("Starting elastic_operator with launch configs:","launch"),
        ("Rendezvous'ing worker group","rendezvous"),
        ("Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/8","rendezvous"),
        ("[Gloo] Rank 0 is connected to 7 peer ranks. Expected number of connected peer ranks is : 7","rendezvous"),
        ("> initializing torch distributed ...","rendezvous"),
        ("[comm.py:637:init_distributed] cdb=None","rendezvous"),
        ("[comm.py:668:init_distributed] Initializing TorchBackend in DeepSpeed with backend nccl","rendezvous"),
        ("distributed_backend=nccl","rendezvous"),
        ("Added key: store_based_barrier_key:1 to store for rank: 0","rendezvous"),
        ("| distributed init (rank 0): env://","rendezvous"),
        ("gpu-7:41:41 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.7<0>","init"),
        ("building GPT model ...","init"),
        ("> compiling and loading fused kernels ...","init"),
        (" > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 354871296","init"),
        ("number of parameters: 124.34M","init"),
        ("> building train, validation, and test datasets ...","init"),
        ("Using /root/.cache/torch_extensions/py310_cu121 as PyTorch extensions root...","init"),
        ("Loading extension module cpu_adam...","init"),
        ("Creating model: deit_small","init"),
        ("Loading checkpoint shards:  50%|#####     | 1/2 [00:03<00:03,  3.1s/it]","load"),
        ("loading checkpoint from /ckpt at iteration 1000","load"),
        ("Loading weights from model.safetensors","load"),
        ("Restoring states from the checkpoint path at /ckpt/last.ckpt","load"),
        ("Resuming from checkpoint /ckpt/1000","load"),
        ("Resuming training from step 1000","load"),
        ("=> loaded checkpoint 'x.pth' (epoch 12)","load"),
        ("resume from checkpoint /ckpt","load"),
        ("[before the start of training step] datetime: 2026-05-01 09:00:00","train"),
        ("***** Running training *****","train"),
        ("training ...","train"),
        ("Start training for 300 epochs","train"),
        ("Training starts at step 1.","train"),
        ("***** Running Evaluation *****","evaluate"),
        ("Validation DataLoader 0:  50%|#####     | 10/20 [00:03<00:03]","evaluate"),
        ("Validating:  50%|#####     | 10/20 [00:03<00:03]","evaluate"),
        ("Sanity Checking DataLoader 0:  50%|#####     | 1/2 [00:03<00:03]","evaluate"),
        (" validation loss at iteration 1000 | lm loss value: 2.1E+00 |","evaluate"),
        ("evaluating ...","evaluate"),
        ("Epoch(val)  [1][ 50/100]","evaluate"),
        ("Test:  [  0/98]  eta: 0:10","evaluate"),
        ("Saving model checkpoint to out/checkpoint-500","save"),
        ("saving checkpoint at iteration    1000 to /ckpt in torch_dist format","save"),
        ("[torch_checkpoint_engine.py:21:save] [Torch] Saving out/global_step500/mp_rank_00_model_states.pt...","save"),
        ("Saving the checkpoint (or full checkpoint if synchronous) took 12 s","save"),
        ("Saving checkpoint at 120 iterations","save"),
        ("Saved checkpoint to out/120.pt",None),
        ("Configuration saved in out/config.json",None),
        ("Epoch 3, global step 1200: 'val_loss' reached 0.5 (best 0.5), saving model to 'x.ckpt' as top 1","save"),
        ("`Trainer.fit` stopped: `max_steps=1000` reached.","teardown"),
        ("Training completed. Do not forget to share your model on huggingface.co/models =)","teardown"),
        ("[after training is done] datetime: 2026-05-01 09:00:00","teardown"),
        ("destroy_process_group() was not called","teardown"),
        ("Finished training","teardown"),
        ("Training finished","teardown"),
    ],
)  # fmt: skip
def test_the_phase_in_the_forms_of_launchers_and_trainers(text: str, phase: str | None) -> None:
    assert read(text).phase_at(Position(1, 1)) == phase


@pytest.mark.parametrize(
    "text", ["our run dies in epoch 4 with CUDA out of memory", "it crashes after step 200", "fine until epoch 3"]
)
def test_what_a_person_says_of_a_run_is_not_progress(text: str) -> None:
    assert not read(text).progress
    assert read(f"{text}, step 120/1000 loss 0.5").progress
