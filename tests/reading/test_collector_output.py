import pytest

from torchtriage.reading.unwrap.collector_output import FLUENT_BIT, GCLOUD_YAML, fluent_bit_entries, yaml_entries
from torchtriage.reading.unwrap.decoder_interface import Head


@pytest.mark.parametrize(
    ("spelled", "said"),
    [
        ("step 1: loss 0.5", "step 1: loss 0.5"),
        ("'it''s [rank0]: x'", "it's [rank0]: x"),
        ('"a\\tb \\u4e2d"', "a\tb 中"),
        ("|-\n  Traceback (most recent call last):\n    File", "Traceback (most recent call last):\n  File"),
        ("words that go\n  on below", "words that go on below"),
        ("'quoted words\n  that go on'", "quoted words that go on"),
        ('"a word\\\n  \\ cut"', "a word cut"),
    ],
)
def test_a_value_of_yaml_is_as_it_was(spelled: str, said: str) -> None:
    entry = f"---\ninsertId: a\nresource:\n  labels:\n    pod_name: w-0\ntextPayload: {spelled}\ntimestamp: '2026-05-01T09:00:00Z'\n"
    content = (entry * 2).encode()
    assert GCLOUD_YAML.recognise(Head(content, whole=True))
    (number, first), (_, second) = yaml_entries(content)
    assert (number, first["textPayload"], first["pod_name"]) == (6, said, "w-0")
    assert first == second


def test_settings_in_yaml_are_not_entries() -> None:
    for content in (b"---\nmodel: vit\ntext: a\n", b"step 1\n---\ntextPayload: a\ntimestamp: b\n"):
        assert GCLOUD_YAML.recognise(Head(content, whole=True)) is None


def test_records_of_fluent_bit() -> None:
    content = (
        b'[0] kube.t: [1777626000.5, {"log"=>"File "a.py", line 3\n", "kubernetes"=>{"pod_name"=>"w-0"}}]\n'
        b'[1] kube.t: [[1777626001.5, {}], {"stream"=>"stderr", "log"=>"b"}]\n'
    )
    assert FLUENT_BIT.recognise(Head(content, whole=True))
    (one, first), (two, second) = fluent_bit_entries(content)
    assert (one, first["log"].strip(), first["pod_name"], two, second["log"]) == (
        1,
        'File "a.py", line 3',
        "w-0",
        3,
        "b",
    )
    assert FLUENT_BIT.recognise(Head(b"[0] step 1\n", whole=True)) is None
