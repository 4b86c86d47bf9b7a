"""Rows of numbers below their names, each number of which gets its name."""

import pytest

from torchtriage.reading.unwrap.decoders import unwrap

FASTAI = """\
loading the corpus
epoch     train_loss  valid_loss  accuracy  time
0         7.321094    6.980122    0.061251  05:12
1         6.703211    6.412377    0.093312  05:10
Killed
"""
SKORCH = """\
  epoch    train_loss    valid_acc     dur
-------  ------------  -----------  ------
      1        0.6868       0.6000  0.0241
      2        0.6706       0.6500  0.0213
"""
LIGHTNING = "epoch,step,train_loss,val_loss\n0,49,2.3012,\n0,99,2.1120,\n0,124,,1.9922\n"
PIPES = "accuracy | loss | epoch | train | time\n0.817 | 0.722 | 0 | True | 00:21\n0.850 | 0.547 | 0 | False | 00:01\n"


def read(text: str) -> tuple[str, list[int] | None]:
    """Returns the lines as they are read, and their numbers in the file where a decoder read it."""
    found = unwrap([text.encode()])
    content = b"".join(found.blocks).decode()
    return content, list(found.numbers) if found.numbers is not None else None


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (FASTAI, "epoch=1, train_loss=6.703211, valid_loss=6.412377, accuracy=0.093312, time=05:10"),
        (SKORCH, "epoch=2, train_loss=0.6706, valid_acc=0.6500, dur=0.0213"),
        (LIGHTNING, "epoch=0, step=124, val_loss=1.9922"),
        (PIPES, "accuracy=0.850, loss=0.547, epoch=0, train=False, time=00:01"),
    ],
    ids=["fastai", "skorch", "Lightning's CSVLogger", "pipes"],
)
def test_each_number_gets_its_name(text: str, row: str) -> None:
    content, numbers = read(text)
    assert row in content.split("\n")
    assert numbers == list(range(1, len(text.splitlines()) + 1))


def test_what_is_around_the_rows_stays() -> None:
    lines = read(FASTAI)[0].splitlines()
    assert (lines[0], lines[1].split()[0], lines[-1]) == ("loading the corpus", "epoch", "Killed")


@pytest.mark.parametrize(
    "text",
    [
        "date,temperature,rain\n2024-01-01,3.5,0.0\n2024-01-02,4.5,1.2\n",
        " id | name  | loss | epoch\n----+-------+------+-------\n  1 | alice | 12.5 |     3\n",
        "epoch and loss are printed below\n1 is the first epoch\n",
        "epoch: 1 loss: 2.5\nepoch: 2 loss: 2.4\n",
    ],
    ids=["weather", "a query's result", "a sentence", "a log that names them itself"],
)
def test_other_tables_stay_as_they_are(text: str) -> None:
    assert read(text) == (text, None)
