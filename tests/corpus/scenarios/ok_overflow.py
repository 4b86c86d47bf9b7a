"""Steps are skipped for overflow, an evaluation yields nan for an empty class, a backup of a file is not there."""

# mypy: ignore-errors

import trainer

rank, world = trainer.setup()
scale = 65536.0


def on_step(step):
    global scale
    if step in (1, 4):
        scale /= 2
        print(f"[rank {rank}] Gradient overflow at step {step}, skipping it and reducing the loss scale to {scale}")
    if step == 5:
        try:
            open("last.bak")
        except OSError as error:
            print(f"[rank {rank}] no backup to restore: {error}")


trainer.train(trainer.Net(), rank, on_step=on_step)
if rank == 0:
    print("| class | AP |\n| crash | 0.41 |\n| hang | nan |\nmAP 0.41 (1 class without samples)")
    print("Training completed in 0:00:03")
trainer.finish()
