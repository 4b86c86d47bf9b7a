"""A settings file is not there; the script raises its own error from it."""

# mypy: ignore-errors

import trainer


class SetupError(RuntimeError):
    pass


def load_vocabulary(path):
    try:
        return open(path).read().split()
    except OSError as error:
        raise SetupError("could not set up the tokenizer") from error


rank, world = trainer.setup()
words = load_vocabulary("assets/vocab.txt")
trainer.train(trainer.Net(classes=len(words)), rank)
