"""What is looked for before a sign's regex is tried: it must never hide a match."""

import pytest
import re2

from tests.built_in import built_in_knowledge
from torchtriage.matching.patterns import parsed, regex_of
from torchtriage.matching.required_literals import has_required, letters_held, required_literals, scan_pattern

ORDINARY = """\
[rank3]:   File "/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1501, in _call_impl
[rank3]:     return forward_call(*args, **kwargs)
[rank3]:     return self._call_impl(*args, **kwargs)
  File "/usr/lib/python3.10/dist-packages/transformers/trainer.py", line 2123, in train
  File "/conda/lib/python3.9/multiprocessing/spawn.py", line 116, in spawn_main
  File "/job/train.py", line 55, in <module>
    loss = self.compute_loss(model, inputs)
    elastic_launch(
    exec(compile(code, run_name), run_globals)
[2026-05-01 09:11:12,123] [INFO] [rank 3] step 12000 | loss 1.2345 | lr 3.0e-04 | grad norm 0.123 | tokens/s 9123
Epoch 1:  50%|█████     | 500/1000 [01:00<01:00,  8.33it/s, loss=1.23, v_num=3]
node01: INFO:__main__:Epoch: [3][100/500] Time 0.123 (0.124) Data 0.001 Loss 1.23 Acc@1 45.6
{'loss': 1.234, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.50000001}
node01:123:456 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC
 iteration     100/  500000 | consumed samples:        51200 | elapsed time per iteration (ms): 1234.5 | lm loss: 5.678E+00 |
"""


@pytest.mark.parametrize(
    ("pattern", "demanded"),
    [
        (r"NCCL WARN[^\n]{0,80}HIP failure", [["hip failure"], ["nccl warn"]]),
        (r"(torchrun|deepspeed)[^\n]* returned", [[" returned"], ["torchrun", "deepspeed"]]),
        (r"CUDA( driver)? error", [[" error"], ["cuda"]]),
        (r"[0-9]+|\w", []),
    ],
)
def test_a_pattern_demands_its_literals(pattern: str, demanded: list[list[str]]) -> None:
    assert required_literals(pattern) == demanded


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"(?i)\b(job|it)\b[^\n]{0,60}( hung| froze| got (stuck|lost))\b", "(?i) hung| froze| got stuck| got lost"),
        (r"step (\d+|none) (stopped|was (cut|lost))", " stopped| was cut| was lost"),
        (r"(CUDA|HIP|oneCCL) error: out of memory", " error: out of memory"),
        (r"Segmentation fault|Bus error", "Segmentation fault|Bus error"),
        (r"Xid \([^)\n]{0,80}\): 123\b", r"Xid \("),
    ],
)
def test_a_pointer_takes_what_is_before_alternatives_and_the_fewest_rare_literals(pattern: str, literals: str) -> None:
    assert scan_pattern(pattern) == literals


def test_the_scan_points_at_no_ordinary_line() -> None:
    """A frame that 512 ranks print is scanned at memory speed only while no sign's pointer stands in it."""
    patterns = parsed(built_in_knowledge())
    raw = {scan_pattern(regex_of(pattern.sign)) for pattern in patterns if pattern.sign.where in ("any", "line")}

    assert not [sign for sign in raw if re2.search(sign, ORDINARY)]


def test_one_of_several_literals_is_enough_and_letters_may_be_large() -> None:
    demanded = required_literals(r"(?i)(torchrun|deepspeed)[^\n]* returned")

    assert has_required("DeepSpeed has RETURNED".lower(), demanded)
    assert not has_required("deepspeed goes on", demanded)
    assert not has_required("accelerate returned", demanded)


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_what_shows_a_sign_holds_what_the_sign_demands(step: int) -> None:
    knowledge = built_in_knowledge()
    shown = 0
    for pattern in parsed(knowledge)[::step]:
        sign = re2.compile(f"(?m){regex_of(pattern.sign)}")
        for example in pattern.entry.match_examples:
            if sign.search(example):
                shown += 1
                assert has_required(example.lower(), required_literals(regex_of(pattern.sign))), regex_of(pattern.sign)
    assert shown > len(knowledge.entries) // step


@pytest.mark.parametrize(
    ("pattern", "text", "held"),
    [
        ("(?:valve|tube|flux capacitor|regulator) leaks", "the tube leaks", len("tube leaks")),
        ("(?:valve|tube|flux capacitor|regulator) leaks", "the flux capacitor leaks", len("flux capacitor leaks")),
        ("Tube(?: of glass)? leaks", "tube of glass leaks", len("tube of glass leaks")),
        ("Tube(?: of glass)? leaks", "tube leaks", len("tube leaks")),
        (r"tube \d{1,9} of [^\n]{1,80} leaks", "tube 12 of the great engine leaks", len("tube  of  leaks")),
        ("a(?:b|cd(?:e|fgh))", "acde", len("acde")),
    ],
)
def test_of_a_list_of_words_only_the_one_that_was_found_counts(pattern: str, text: str, held: int) -> None:
    assert letters_held(pattern, text) == held
