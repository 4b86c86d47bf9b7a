"""Private keys and blocks of YAML, over lines. The keys are made up, and put together from pieces."""

from __future__ import annotations

import json
import random

import pytest

from torchtriage.reading.redaction.redact import redact, redacted

MARK = "[redacted:private-key]"


def _base64(seed: int, length: int = 64) -> str:
    return "".join(
        random.Random(seed).choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", k=length)
    )


BODY = [*(_base64(seed) for seed in range(6)), _base64(7, 18) + "=="]


def _key(kind: str = "RSA ", body: list[str] = BODY) -> list[str]:
    return [f"-----BEGIN {kind}" + "PRIVATE KEY-----", *body, f"-----END {kind}" + "PRIVATE KEY-----"]


def _clean(lines: list[str], cut: int | None = None) -> list[str]:
    data = "\n".join(lines).encode()
    blocks = [data] if cut is None else [data[:cut], data[cut:]]
    return b"".join(redacted(blocks)).decode().split("\n")


@pytest.mark.parametrize("prefix", ["", "[rank3]: ", "2026-05-01T09:00:{:02}.1Z stderr F ", "│ ", '{{"log":"'])
@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_the_body_of_a_key_goes_and_the_rest_stays(prefix: str, kind: str) -> None:
    key = [prefix.format(second) + line for second, line in enumerate(["before", *_key(kind), "after"])]
    cleaned = _clean(key)
    expected = [
        line if line[len(prefix.format(0)) :] not in BODY else prefix.format(number) + MARK
        for number, line in enumerate(key)
    ]
    assert cleaned == expected


def test_headers_of_an_encrypted_key_do_not_end_it() -> None:
    begin, *rest = _key()
    cleaned = _clean([begin, "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0123456789ABCDEF", "", *rest])
    assert cleaned == [
        begin,
        "Proc-Type: 4,ENCRYPTED",
        "DEK-Info: AES-128-CBC,0123456789ABCDEF",
        "",
        *[MARK] * 7,
        rest[-1],
    ]


def test_a_key_goes_wherever_blocks_part_it() -> None:
    lines = ["before", *_key(), "after", ""]
    whole = _clean(lines)
    assert whole == ["before", lines[1], *[MARK] * 7, lines[-3], "after", ""]
    text = "\n".join(lines)
    for cut in [at + 1 for at, char in enumerate(text) if char == "\n"]:
        assert _clean(lines, cut) == whole


def test_what_other_ranks_print_between_stays() -> None:
    others = ["[rank1]: torch.OutOfMemoryError: CUDA out of memory.", "[rank2]: step 5 loss 0.1", "Killed", ""]
    lines: list[str] = []
    for number, line in enumerate(_key()):
        lines += [f"[rank0]: {line}", others[number % len(others)]]
    cleaned = _clean(lines)
    assert cleaned == [f"[rank0]: {MARK}" if line[9:] in BODY else line for line in lines]


@pytest.mark.parametrize(
    "mention", ["-----BEGIN " + "PRIVATE KEY-----", "expected '-----BEGIN RSA " + "PRIVATE KEY-----' in key.pem"]
)
def test_a_mere_mention_takes_nothing_of_what_follows(mention: str) -> None:
    lines = [f"[rank0]: ValueError: {mention}", "Killed", "step 5 loss 0.1", "torch.OutOfMemoryError: CUDA out of memory.",
             "/data/checkpoints/run1/step5", "commit 3f786850e387550fdab836ed7e6dc881de23001b", "[rank0]: done", ""]  # fmt: skip
    assert _clean(lines * 3) == lines * 3


@pytest.mark.parametrize("join", ["\\n", "\\\\n", " ", "%0A", "&#10;", "\\r\\n"])
def test_a_key_on_one_line(join: str) -> None:
    begin, *body, end = _key()
    line = f'{{"type": "service_account", "private_key": "{join.join([begin, *body, end])}", "client_id": "7"}}'
    cleaned = redact(line)
    assert not any(part in cleaned for part in [*BODY, *(part[-12:] for part in BODY)])
    assert cleaned.startswith('{"type": "service_account", "private_key": "')
    assert MARK in cleaned
    assert cleaned.endswith('"client_id": "7"}')
    cut = redact(line[:300])  # as the log's own limit cuts it
    assert BODY[0] not in cut
    assert BODY[1] not in cut


def test_a_key_in_records_of_json() -> None:
    lines = [
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": f"2026-05-01T09:00:{second:02}Z"})
        for second, line in enumerate([*_key(), "after"])
    ]
    cleaned = _clean(lines)
    assert [line for line in cleaned if MARK in line] == cleaned[1:8]
    assert all(json.loads(line)["stream"] == "stderr" for line in cleaned)
    assert cleaned[8:] == lines[8:]


@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "2026-05-01 09:00:00 INFO  "])
@pytest.mark.parametrize("sign", ["|", ">-", "|+"])
def test_a_block_of_yaml_goes(prefix: str, sign: str) -> None:
    lines = [
        prefix + line
        for line in ["db:", f"  password: {sign}", "    correct horse", "    battery 9", "  user: ann", "    more"]
    ]
    mark = "    [redacted:secret]"
    expected = [prefix + line for line in ["db:", f"  password: {sign}", mark, mark, "  user: ann", "    more"]]
    assert _clean(lines) == expected
    text = "\n".join(lines)
    assert _clean(lines, text.index("    correct") - len(prefix)) == expected


@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "2026-05-01 09:00:00 INFO  "])
@pytest.mark.parametrize(
    "label", ["password:", "  The root password:", "password\uff1a", "<apiToken>", "client_secret ="]
)
def test_the_value_on_the_line_after_its_name_goes(prefix: str, label: str) -> None:
    value = "aB3dE5gH7jK9mN1p"
    lines = [f"{prefix}{label}", f"{prefix}  {value}", f"{prefix}{value} is no more"]
    assert _clean(lines) == [lines[0], f"{prefix}  [redacted:secret]", lines[2]]
    assert _clean(lines, len("\n".join(lines[:1]).encode()) + 1) == _clean(lines)


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_a_list_after_its_name_goes(prefix: str) -> None:
    value = "aB3dE5gH7jK9mN1p"
    lines = [f"{prefix}api_key:", f"{prefix}- {value}", f"{prefix}- {value}9", f"{prefix}seed: 1", f"{prefix}- {value}"]
    mark = f"{prefix}- [redacted:secret]"
    assert _clean(lines) == [lines[0], mark, mark, *lines[3:]]


@pytest.mark.parametrize("value", ["winterabend", "amber-falcon-7"])
def test_a_password_that_is_deeper_than_its_name_may_be_of_words(value: str) -> None:
    assert _clean(["  db_password:", f"    {value}"]) == ["  db_password:", "    [redacted:secret]"]
    beside = ["  db_password:", "  winterabend"]
    assert _clean(beside) == beside


@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "2026-05-01 09:00:00 INFO  "])
@pytest.mark.parametrize("name", ["secrets:", "stringData:", '"credentials":'])
def test_a_block_of_secrets_goes_whatever_their_names(prefix: str, name: str) -> None:
    value = "aB3dE5gH7jK9mN1p"
    other = "Killed"
    lines = [
        f"{prefix}{name}", f"{prefix}  wandb: {value}", other, f'{prefix}  "hub": "{value}",', f"{prefix}  file: ./tokens.txt",
        f"{prefix}  count: 3", f"{prefix}seed: {value}",
    ]  # fmt: skip
    cleaned = _clean(lines)
    mark = "[redacted:secret]"
    # Without a prefix nothing tells what others print from the end of the block.
    second = f'{prefix}  "hub": "{mark}",' if prefix else lines[3]
    assert cleaned == [lines[0], f"{prefix}  wandb: {mark}", other, second, *lines[4:]]


@pytest.mark.parametrize("before", ["apiVersion: v1", "kind: Secret", "type: Opaque"])
def test_the_data_of_a_manifest_goes(before: str) -> None:
    lines = [
        before,
        "data:",
        "  hub: aHVudGVyMjJodW50ZXIyMg==",
        "  mode: full",
        "metadata:",
        "  name: aHVudGVyMjJodW50",
    ]
    assert _clean(lines) == [*lines[:2], "  hub: [redacted:secret]", *lines[3:]]
    plain = ["model: x", *lines[1:]]
    assert _clean(plain) == plain


@pytest.mark.parametrize(
    "lines",
    [
        ["secrets:", "  - name: wandb-key-7f", "  - source: hub-token"],
        ["imagePullSecrets:", "  - regcred-2026-aB3dE5gH"],
        ["password:", "Permission denied, please try again."],
        ["Enter password:", "Traceback (most recent call last):"],
        ["secret:", "  secretName: wandb-key-7f"],
        ["token:", "128009"],
        ["</password>", "aB3dE5gH7jK9mN1p"],
        ["token,count", "the,1820"],
        ["step,loss,token", "1,2.3,run_20260301"],
        ["it asked for user,password", "Killed"],
    ],
)
def test_a_name_alone_takes_nothing_else(lines: list[str]) -> None:
    assert _clean(lines) == lines


@pytest.mark.parametrize("parted", [",", ";", "\t"])
def test_the_column_of_a_table_goes(parted: str) -> None:
    rows = [
        ["user", "password", "Secret access key"],
        ["ann", "hunter22", "aB3dE5gH7jK9mN1pQ2sT"],
        ["bob", "none", "-"],
    ]
    expected = [rows[0], ["ann", "[redacted:secret]", "[redacted:secret]"], rows[2]]
    assert _clean([parted.join(row) for row in rows]) == [parted.join(row) for row in expected]


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_a_value_goes_that_a_printer_of_objects_wrapped(prefix: str) -> None:
    lines = ["{'registry': {'user': '_', 'password': ", "'amber-falcon-77', 'email': None}}", "'amber-falcon-78', 'x'"]
    cleaned = _clean([prefix + line for line in lines])
    assert cleaned == [f"{prefix}{lines[0]}", f"{prefix}'[redacted:secret]', 'email': None}}}}", f"{prefix}{lines[2]}"]


def test_a_key_goes_whose_first_line_is_in_a_sentence() -> None:
    begin, *body, end = _key()
    cleaned = _clean([f'Load key "/root/.ssh/id_rsa": {begin}', *body, end, BODY[-1]])
    assert cleaned[1:] == [*[MARK] * len(body), end, BODY[-1]]


_DIGEST = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d"


@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
@pytest.mark.parametrize("opening", ['"credentials": {', "tokens = {", "secrets {", "hub_tokens: ["])
def test_a_group_of_secrets_in_brackets_goes_until_it_ends(prefix: str, opening: str) -> None:
    lines = [
        opening,
        f'  "hub" = "{_DIGEST}",',
        '  "user": "ann",',
        f'  "request_id": "{_DIGEST[::-1]}"',
        "}",
        f"run: {_DIGEST}",
    ]
    cleaned = _clean([prefix + line for line in lines])
    assert cleaned[1] == f'{prefix}  "hub" = "[redacted:secret]",'
    assert cleaned[2:4] == [prefix + line for line in lines[2:4]]


@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
def test_a_section_of_secrets_goes_until_the_next(prefix: str) -> None:
    lines = ["[api_keys]", f"hub = {_DIGEST}", "region = us-east-1", "[train]", f"word = {_DIGEST[::-1]}"]
    cleaned = _clean([prefix + line for line in lines])
    assert cleaned == [prefix + line.replace(_DIGEST, "[redacted:secret]") for line in lines]


def test_what_terraform_says_below_the_name_of_a_secret_goes() -> None:
    lines = ["# aws_iam_access_key.ci will be created", f'  + ses = "{_DIGEST}"', "# random_id.suffix will be created"]
    lines.append(f'    hex = "{_DIGEST[::-1]}"')
    assert _clean(lines) == [line.replace(_DIGEST, "[redacted:secret]") for line in lines]


def test_a_value_goes_that_php_prints_below_its_name() -> None:
    lines = [
        "array(2) {",
        '  ["password"]=>',
        '  string(9) "orchid551"',
        '  ["path"]=>',
        '  string(9) "orchid552"',
        "}",
    ]
    assert _clean(lines) == [line.replace("orchid551", "[redacted:secret]") for line in lines]
