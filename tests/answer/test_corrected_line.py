import pytest

from torchtriage.answer.corrected_line import rewritten, with_options
from torchtriage.domain.entry import Rewrite


@pytest.mark.parametrize(
    ("code", "example", "corrected"),
    [
        (
            "state = torch.load(args.resume)",
            'torch.load(path, map_location="cpu")',
            'state = torch.load(args.resume, map_location="cpu")',
        ),
        ('torch.load(f, map_location="cuda:0")', 'torch.load(path, map_location="cpu")', 'torch.load(f, map_location="cpu")'),
        ("with open(名) as f:", 'open(path, encoding="utf-8")', 'with open(名, encoding="utf-8") as f:'),
        (
            "loader = DataLoader(dataset=d, num_workers=8)",
            "torch.utils.data.DataLoader(dataset, num_workers=0)",
            "loader = DataLoader(dataset=d, num_workers=0)",
        ),
        ("m = f(x, )", "m = f(y, dtype=torch.bfloat16)", "m = f(x, dtype=torch.bfloat16)"),
    ],
)  # fmt: skip
def test_the_options_of_an_example_are_set_in_the_users_call(code: str, example: str, corrected: str) -> None:
    assert with_options(code, example) == corrected


@pytest.mark.parametrize(
    ("code", "example"),
    [
        ("state = torch.load(", 'torch.load(path, map_location="cpu")'),  # the line goes on below
        ("state = jax.load(path)", 'torch.load(path, map_location="cpu")'),  # another function
        ('torch.load(path, "cuda")', 'torch.load(path, map_location="cpu")'),  # perhaps given by position
        ("torch.load(path, **options)", 'torch.load(path, map_location="cpu")'),  # perhaps among the options
        ("DataLoader(data)", "DataLoader(data, collate_fn=collate)"),  # a name that the script may not have
        ('torch.load(path, map_location="cpu")', 'torch.load(path, map_location="cpu")'),  # has it
        ("torch.load(path)", "pip install torch"),
        ("torch.load(path)", "x = x.detach()"),
        ("load" + ".x" * 2000 + "(path)", 'load(path, map_location="cpu")'),  # deeper than Python can print
        ('torch.load("$(reboot)")', 'torch.load(path, map_location="cpu")'),  # a shell would run it
    ],
)
def test_no_line_is_made_of_a_call_that_does_not_fit(code: str, example: str) -> None:
    assert with_options(code, example) is None


def test_a_rewrite_fills_its_slots_and_takes_values_literally() -> None:
    rewrite = Rewrite(r"\b{name}\(", "{meant}(")
    assert rewritten("y = mod.f(x)", rewrite, {"name": "mod.f", "meant": "mod.g"}) == "y = mod.g(x)"
    assert rewritten("y = modxf(x)", rewrite, {"name": "mod.f", "meant": "mod.g"}) is None
    assert rewritten("y = mod.f(x)", rewrite, {"name": "mod.f"}) is None


@pytest.mark.parametrize(
    "code",
    [
        "rm -rf / data.view(1)",  # no Python
        "x.view(1); os.remove(y)",
        "x = y.view(`reboot`)",
        "x.view(1) > /etc/passwd",
        "x.view(1)  # comment",
        "rm = rf .view",
    ],
)
def test_a_line_that_a_shell_could_run_is_withheld(code: str) -> None:
    assert rewritten(code, Rewrite(r"\.view", ".reshape"), {}) is None
