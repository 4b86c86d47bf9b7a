"""What failed in the line that a traceback shows."""

import pytest

from tests.logs import text, traceback
from torchtriage.answer.failure_facts.code_line import operands
from torchtriage.answer.failure_facts.python_statement import parsed
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

SITE = "/home/ada/miniconda3/envs/fit/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("code", "kind", "message", "expected"),
    [
        (
            "n = batch['ids'].shape[0]",
            "AttributeError",
            "'NoneType' object has no attribute 'shape'",
            {"operand": "batch['ids']", "attribute": "shape"},
        ),
        ("wd = cfg['optim']['wd']", "KeyError", "'wd'", {"operand": "cfg['optim']['wd']", "collection": "cfg['optim']"}),
        ("return self.names[label]", "KeyError", "17", {"collection": "self.names", "index": "label", "key": "17"}),
        ("ids = [[names[int(t)]] for t in text[:, 3]]", "KeyError", "6491", {"collection": "names", "index": "int(t)"}),
        ("ids = batch.pop('ids')", "KeyError", "'ids'", {"collection": "batch", "key": "ids"}),
        ("box = boxes[i + 1]", "IndexError", "list index out of range", {"collection": "boxes", "index": "i + 1"}),
        ("size = meta['size']", "TypeError", "'NoneType' object is not subscriptable", {"operand": "meta", "index": "'size'"}),
        ("loss = self.loss(out)", "TypeError", "'Tensor' object is not callable", {"operand": "self.loss"}),
        ("for x in self.rows():", "TypeError", "'NoneType' object is not iterable", {"operand": "self.rows()"}),
        (
            "if all(m['role'] == 'system' for m in inputs):",
            "TypeError",
            "'NoneType' object is not iterable",
            {"operand": "inputs"},
        ),
        ("for i, x in enumerate(rows):", "TypeError", "'NoneType' object is not iterable", {"operand": "rows"}),
        ("if key in self.cache:", "TypeError", "argument of type 'NoneType' is not iterable", {"operand": "self.cache"}),
        (
            "return base * min(1.0, step / warmup)",
            "TypeError",
            "unsupported operand type(s) for /: 'int' and 'NoneType'",
            {"operand": "step", "other_operand": "warmup"},
        ),
        ("if acc > best:", "TypeError", "'>' not supported between instances of 'float' and 'NoneType'", {"other_operand": "best"}),
        (
            "print('epoch ' + str(epoch) + ' of ' + total)",
            "TypeError",
            'can only concatenate str (not "int") to str',
            {"operand": "'epoch ' + str(epoch) + ' of '", "other_operand": "total"},
        ),
        (
            "rest = rows + [last] + (pad,)",
            "TypeError",
            'can only concatenate list (not "tuple") to list',
            {"other_operand": "(pad,)"},
        ),
        (
            "if len(rows) > 3 and limit > score:",
            "TypeError",
            "'>' not supported between instances of 'NoneType' and 'float'",
            {"operand": "limit", "other_operand": "score"},
        ),
        (
            "loss = (1.0 - opt.mix) * l1 + opt.mix * (1.0 - ssim(image, truth))",
            "TypeError",
            "unsupported operand type(s) for -: 'float' and 'NoneType'",
            {"possible_operands": "opt.mix, ssim(image, truth)", "possible_type": "NoneType"},
        ),
        ("loss = compute(batch)", "TypeError", "unsupported operand type(s) for *: 'NoneType' and 'float'", {}),
        ("print('lr ' + lr)", "TypeError", 'can only concatenate str (not "float") to str', {"other_operand": "lr"}),
        ("n = len(self.files)", "TypeError", "object of type 'NoneType' has no len()", {"operand": "self.files"}),
        (
            "model = Net(width=args.width, depth=4)",
            "TypeError",
            "Net.__init__() got an unexpected keyword argument 'width'",
            {"called": "Net", "argument": "args.width"},
        ),
        ("step(batch, 3)", "TypeError", "step() takes 1 positional argument but 2 were given", {"called": "step"}),
        ("a, b = model(x)", "ValueError", "too many values to unpack (expected 2)", {"target": "a, b", "source": "model(x)"}),
        ("for i, x in loader:", "ValueError", "not enough values to unpack (expected 2, got 1)", {"source": "loader"}),
        (
            "for i, (image, mask) in enumerate(loader):",
            "ValueError",
            "too many values to unpack (expected 2)",
            {"target": "image, mask", "source": "loader", "items_of": "loader"},
        ),
        ("a, b = batch", "ValueError", "too many values to unpack (expected 2)", {"source": "batch", "items_of": None}),
        ("lr = float(row['lr'])", "ValueError", "could not convert string to float: 'n/a'", {"operand": "row['lr']"}),
        ("k = names.index(name)", "ValueError", "'cat' is not in list", {"collection": "names"}),
        ("assert n % world == 0, n", "AssertionError", "10", {"condition": "n % world == 0"}),
        ("assert speed >= args.least, \\", "AssertionError", "10", {"condition": "speed >= args.least"}),
        ("per_epoch = 400 // len(shard)", "ZeroDivisionError", "integer division or modulo by zero", {"operand": "len(shard)"}),
        ("with open(path) as file:", "FileNotFoundError", "[Errno 2] No such file or directory: 'a'", {"called": "open", "argument": "path"}),
        ("from apex.optimizers import FusedAdam", "ModuleNotFoundError", "No module named 'apex'", {"imported": "apex.optimizers"}),
    ],
)  # fmt: skip
def test_the_operand_is_what_the_message_speaks_of(
    code: str, kind: str, message: str, expected: dict[str, str]
) -> None:
    statement = parsed(code)
    assert statement is not None
    found = operands(statement, kind, message)
    assert {name: found.get(name) for name in expected} == expected


def test_of_several_calls_the_one_that_takes_a_path_failed() -> None:
    statement = parsed("frame = shards.read_part(names.get(3))")
    assert statement is not None
    missing = ("FileNotFoundError", "[Errno 2] No such file or directory: 'a'")
    assert operands(statement, *missing, frozenset({"read_part"}))["called"] == "shards.read_part"
    assert operands(statement, *missing) == {}


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        ("return a.shape[0] + b.shape[0]", "AttributeError", "'NoneType' object has no attribute 'shape'"),
        ("x = self.wte(ids) + self.wpe(ids.shape[1])", "IndexError", "index out of range in self"),
        ("y = left[i] + right[i]", "IndexError", "list index out of range"),
        ("for g, p in zip(grads, params):", "TypeError", "'NoneType' object is not iterable"),
    ],
)
def test_where_two_may_have_failed_none_is_named(code: str, kind: str, message: str) -> None:
    statement = parsed(code)
    assert statement is not None
    assert operands(statement, kind, message).get("operand") is None


def facts(engine: Engine, lines: list[str]) -> dict[str, object]:
    verdict = engine.triage(from_bytes(text("epoch 1 step 3 loss 2.1", lines)))
    return {fact.name: fact.value for fact in verdict.facts}


def test_of_two_candidates_the_underlined_one_failed(engine: Engine) -> None:
    found = facts(
        engine,
        [
            "Traceback (most recent call last):",
            '  File "/job/collate.py", line 41, in collate',
            "    return left.shape[0] + right.shape[0]",
            "                           ^^^^^^^^^^^",
            "AttributeError: 'NoneType' object has no attribute 'shape'",
        ],
    )
    assert (found["operand"], found["operand_type"]) == ("right", "NoneType")


def test_an_error_out_of_a_library_shows_the_users_call(engine: Engine) -> None:
    found = facts(
        engine,
        traceback(
            "FileNotFoundError: [Errno 2] No such file or directory: 'runs/base/last.pt'",
            [
                ("/job/train.py", 11, "<module>", 'state = torch.load(args.resume, map_location="cpu")'),
                (f"{SITE}/torch/serialization.py", 1425, "load", "with _open_file_like(f, 'rb') as opened_file:"),
                (f"{SITE}/torch/serialization.py", 732, "__init__", "super().__init__(open(name, mode))"),
            ],
        ),
    )
    assert (found["called"], found["argument"], found["calls"]) == ("torch.load", "args.resume", "load → __init__")
    assert "operand" not in found


def test_the_lookup_of_a_module_is_not_a_frame_of_its_own(engine: Engine) -> None:
    found = facts(
        engine,
        traceback(
            "AttributeError: 'Attack' object has no attribute 'fit_on'",
            [
                ("/job/train.py", 76, "main", "out = model.fit_on(loader)"),
                (f"{SITE}/torch/nn/modules/module.py", 1178, "__getattr__", "type(self).__name__, name))"),
            ],
        ),
    )
    assert (found["operand"], found["attribute"]) == ("model", "fit_on")


def test_a_library_that_asks_for_an_attribute_is_named_with_its_line(engine: Engine) -> None:
    frames = [
        ("/job/train.py", 131, "main", "engine = ds_init(net)"),
        (f"{SITE}/transformers/deepspeed.py", 267, "finalize", "size = model.config.hidden_size"),
        (f"{SITE}/torch/nn/modules/module.py", 1207, "__getattr__", "type(self).__name__, name))"),
    ]
    found = facts(engine, traceback("AttributeError: 'Protein' object has no attribute 'config'", frames))
    assert (found["library"], found["library_frame"]) == ("transformers", "transformers/deepspeed.py:267")
    assert (found["library_operand"], found["called"]) == ("model", "ds_init")


def test_a_lookup_that_fails_in_another_way_keeps_its_frame(engine: Engine) -> None:
    frames = [
        ("/job/train.py", 3, "<module>", "from transformers import AutoModel"),
        (f"{SITE}/transformers/utils/import_utils.py", 2623, "__getattr__", "module = self._get_module(name)"),
    ]
    found = facts(engine, traceback("RuntimeError: Failed to import transformers.models", frames))
    assert found["library_frame"] == "transformers/utils/import_utils.py:2623"


@pytest.mark.parametrize(
    ("call", "line", "passed"),
    [
        ("setup(logging, logger, state)", "logger.info(state)", "logger"),
        ("setup(log=logger)", "logger.info(1)", "logger"),
        ("setup(self.logger)", "logger.info(1)", None),
        ("other(logger)", "logger.info(1)", None),
        ("setup(logger)", "self.out.info(logger)", None),
    ],
)
def test_what_the_caller_passed_in_is_reported(engine: Engine, call: str, line: str, passed: str | None) -> None:
    frames = [("/job/train.py", 617, "main", call), ("/job/train.py", 64, "setup", line)]
    error = "AttributeError: 'str' object has no attribute 'info'"
    assert facts(engine, traceback(error, frames)).get("passed_name") == passed


def test_the_class_of_a_library_is_known_as_such(engine: Engine) -> None:
    frames = [("/job/train.py", 64, "setup", "accelerator.logger.info(1)")]
    error = "AttributeError: 'Accelerator' object has no attribute 'logger'"
    assert facts(engine, traceback(error, frames))["class_library"] == "accelerate"


def test_what_failed_inside_of_a_library_is_not_laid_on_the_users_line(engine: Engine) -> None:
    found = facts(
        engine,
        traceback(
            "IndexError: list index out of range",
            [
                ("/job/train.py", 9, "collate", "return default_collate(rows[0])"),
                (f"{SITE}/torch/utils/data/_utils/collate.py", 137, "collate", "elem = batch[0]"),
            ],
        ),
    )
    assert (found["library_operand"], found["library_collection"], found["library_index"]) == ("batch[0]", "batch", "0")
    assert (found["called"], found["library_package"]) == ("default_collate", "torch")
    assert not found.keys() & {"operand", "collection", "index"}


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("loss = self.criterion(logits, batch.labels)", "logits, batch.labels"),
        ("dist.all_reduce(loss)", "loss"),
        ("for x, y in loader:", "loader"),
        ("x = x + self.bias[i]", "x, self.bias, i"),
        ("main()", None),
        ("raise ValueError(message)", None),
    ],
)
def test_the_variables_that_a_line_works_with(engine: Engine, code: str, names: str | None) -> None:
    log = f'step 1 loss 0.5\nTraceback (most recent call last):\n  File "/job/train.py", line 9, in main\n    {code}\nRuntimeError: odd\n'
    found = {fact.name: fact.value for fact in engine.triage(from_bytes(log.encode())).facts}
    assert found.get("code_names") == names


def test_the_only_argument_of_the_caller_is_shown_if_it_writes_a_path_out(engine: Engine) -> None:
    text = """Traceback (most recent call last):
  File "/job/solver.py", line 69, in fit
    self.load_state(str(self.output_dir / "best_stage1.pth"))
  File "/job/base.py", line 244, in load_state
    state = torch.load(path, map_location="cpu")
  File "/opt/venv/lib/python3.10/site-packages/torch/serialization.py", line 1262, in _legacy_load
    magic_number = pickle_module.load(f, **pickle_load_args)
EOFError: Ran out of input
"""
    answer = engine.triage(from_bytes(text.encode())).answer
    assert answer is not None
    assert (
        '`path` was passed by /job/solver.py:69: `self.load_state(str(self.output_dir / "best_stage1.pth"))`'
        in answer.says
    )
