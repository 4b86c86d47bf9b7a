"""Lines of code as tracebacks quote them, whole and cut."""

import ast

import pytest

from torchtriage.answer.failure_facts.python_statement import parsed, shown


@pytest.mark.parametrize(
    "code",
    [
        "loss = criterion(model(images), labels)",
        "if self.proba.sum() != 1:",
        "elif batch['ids'] is None:",
        "for images, labels in loader:",
        "with open(path) as file:",
        "return sample['image'].mul(0.5), sample['label']",
        "raise ValueError(",
        "trainer = Trainer(model=model, args=args,",
        "num_classes=config.classes)",
        "weights = torch.load(path)['model'])",
        "x = a +",
        "outputs = net(",
        "except KeyError as error:",
        "@record",
        "yield from shards(",
        '"input_ids": feature["input_ids_j"],',
        "await queue.get()",
        "batch['ids'].shape[0],  # 句子",
    ],
)
def test_a_line_that_is_a_part_of_a_statement_is_repaired(code: str) -> None:
    assert parsed(code) is not None


@pytest.mark.parametrize("code", ["", "/env/lib/python3.11/x.py in f", "┃ 30 ┃", "x" * 2000, "(" * 600])
def test_what_is_not_a_python_is_left_alone(code: str) -> None:
    assert parsed(code) is None


def test_nodes_outside_of_the_underlined_part_are_left_out() -> None:
    statement = parsed("y = self.encode(x.ids) + self.embed(x.shape[0])", "x.shape")
    assert statement is not None
    assert [statement.source(node) for node in statement.all(ast.Attribute)] == ["x.shape"]


def test_what_was_made_up_for_the_repair_is_never_shown() -> None:
    statement = parsed("loss = criterion(")
    assert statement is not None
    assert [statement.source(node) for node in statement.all(ast.Call)] == [None]


@pytest.mark.parametrize(
    ("code", "quoted"),
    [
        ("  assert layers % stages == 0, \\", "assert layers % stages == 0,"),
        ("x = a['#'] + b  # both", "x = a['#'] + b"),
        (")", ""),
        ('p = read(a.file) File "/job/train.py", line 3, in <module>', "p = read(a.file)"),
        ("labels)", ""),
    ],
)
def test_a_line_is_quoted_without_what_only_continues(code: str, quoted: str) -> None:
    assert shown(code) == quoted
