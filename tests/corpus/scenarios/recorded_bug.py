"""An entry point under torchelastic's @record; rank 1 reads a column that its shard lacks."""

# mypy: ignore-errors

from torch.distributed.elastic.multiprocessing.errors import record

import trainer


def weight_of(row):
    return float(row["weight"])


@record
def main():
    rank, world = trainer.setup()
    rows = [{"weight": "1.0"}] * 3 + [{"weight": "n/a" if rank == 1 else "2.0"}] * 20
    trainer.train(trainer.Net(), rank, on_step=lambda step: weight_of(rows[step]))


if __name__ == "__main__":
    main()
