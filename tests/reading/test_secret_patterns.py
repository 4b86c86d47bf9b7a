"""Every kind of secret, through every surrounding that logs put around a line. All of them are made up from pieces."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from torchtriage.reading.redaction import secret_patterns
from torchtriage.reading.redaction.redact import redact, redacted
from torchtriage.reading.redaction.secret_patterns import Form, Named, secret_kinds

FILE = Path(secret_patterns.__file__).with_name("secret_kinds.yaml")
FORMS, NAMED = secret_kinds().forms, secret_kinds().names
_LOT = "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD" * 5
_DIGITS = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d"
_ZERO_WIDTH = "\u200b"

AROUND: dict[str, Callable[[str], str]] = {
    "nothing": lambda line: line,
    "rank": lambda line: f"[rank3]: {line}",
    "time and logger": lambda line: f"2026-05-01 09:00:00,123 INFO train.py:12 {line} (pid 7)",
    "kubernetes": lambda line: f"2026-05-01T09:00:00.123456789Z stderr F {line}",
    "syslog": lambda line: f"May  1 09:00:00 gpu-001 train[4242]: #033[31m{line}#033[0m",
    "JSON": lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr"}),
    "JSON in JSON": lambda line: json.dumps({"message": json.dumps({"log": f"step 1\t{line}\n"})}),
    "repr": lambda line: repr({"line": f"step 1\n{line}\n"}),
    "logfmt": lambda line: f"time=2026-05-01 level=info msg={json.dumps(line)} rank=3",
    "progress bar": lambda line: f" 10%|#         | 1/10\r{line}\r 20%|##        | 2/10",
    "HTML": lambda line: f"<pre>{html.escape(line)}</pre>",
    "table": lambda line: f"│ rank 3 │ {line} │",
    "shell trace": lambda line: f"++ {line}",
}
_BEHIND = {
    "piped": " | docker login --password-stdin",
    "login": "@data.internal:1521",
    "dialled": "@tcp(data.internal:3306)/runs",
    "address": "@data.internal:5432",
    "before": " is the password",
    "percent": "%40db",
}
# What stands right before a secret, part of another word or of an escape.
BEFORE = {
    "colour": "\x1b[31m",
    "colour in JSON": "\\u001b[31m",
    "colour of cat -v": "^[[31m",
    "colour of syslog": "#033[31m",
    "colour in octal": "\\033[1;31m",
    "line feed": "\\n",
    "tab": "\\t",
    "percent sign": "token%3D",
    "zero width": _ZERO_WIDTH,
    "byte order mark": "\ufeff",
    "underscore": "my_",
    "digit": "x9",
    "entity": "&quot;",
    "bracket": "(",
}


def _secret(form: Form, begins: str = "") -> tuple[str, str]:
    """Returns what stands before the secret and stays, and a secret of the form, or of one of its other openings."""
    alphabet = re.compile(form.rest)
    rest = "".join(char for char in _LOT * 9 if alphabet.fullmatch(char))[
        : max(form.least, 12 if form.least > 1 else 1)
    ]
    opening = begins or form.example or form.begins[0]
    return (opening, rest) if form.begins == ("",) else ("", opening + rest)


def _value(named: Named) -> str:
    if named.reach == "header":
        return f"Bearer {_LOT[:32]}"
    if named.reach == "code":
        return "482913"
    if named.reach == "words":
        return " ".join(f"{chr(97 + at)}bcd" for at in range(12))
    if named.reach == "line":
        return f"session={_LOT[:32]}"
    return ("Hunter2x", "s3cr3tV4lue9", *[_LOT[: max(32, named.least)]] * 3, _DIGITS, _LOT[:32])[named.doubt]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.kind} {form.begins[0]}")
def test_each_form_goes_out_of_every_surrounding(form: Form) -> None:
    before, secret = _secret(form)
    for name, around in AROUND.items():
        cleaned = _both(around(f"using {before}{secret} now"))
        assert secret not in cleaned, name
        assert secret[-8:] not in cleaned, name
        assert f"[redacted:{form.kind}]" in cleaned, name


@pytest.mark.parametrize(
    "form", [form for form in FORMS if form.begins != ("",)], ids=lambda form: f"{form.kind} {form.begins[0]}"
)
def test_each_form_goes_right_after_letters_and_escapes(form: Form) -> None:
    secret = _secret(form)[1]
    for name, before in BEFORE.items():
        cleaned = _both(f"{before}{secret} now")
        assert secret[-8:] not in cleaned, name
        assert "[redacted:" in cleaned, name


def test_all_go_out_of_one_long_line() -> None:
    secrets = [_secret(form) for form in FORMS]
    lines = [
        (named.example, _value(named) + _BEHIND.get(named.reach, "")) for named in NAMED if "\n" not in named.example
    ]
    parts = [f"using {before}{secret} now " for before, secret in [*secrets, *lines]]
    cleaned = _both(("loss 0.1 " * 1000).join(["", *parts, ""]))
    assert len(cleaned) > 3_000_000
    assert [secret for _, secret in secrets if secret[-8:] in cleaned] == []


def test_each_opening_of_a_form_goes() -> None:
    for form in FORMS:
        for begins in form.begins[1:]:
            secret = _secret(form, form.example.replace(form.begins[0], begins) or begins)[1]
            cleaned = _both(f"using {secret} now")
            assert secret[-8:] not in cleaned, begins
            assert f"[redacted:{form.kind}]" in cleaned, begins


def test_the_parsed_file_is_kept_and_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_patterns, "_kept_in", tmp_path)
    tmp_path.chmod(0o700)
    parsed = secret_kinds.__wrapped__()
    (kept,) = tmp_path.iterdir()
    monkeypatch.setattr("yaml.load", None)
    assert secret_kinds.__wrapped__() == parsed == secret_kinds()
    monkeypatch.undo()
    monkeypatch.setattr(secret_patterns, "_kept_in", tmp_path)
    kept.write_text("{")
    assert secret_kinds.__wrapped__() == parsed


def test_every_list_of_words_is_used() -> None:
    text = FILE.read_text(encoding="utf-8")
    lists = re.findall(r"^  (\w+):", text.split("\nopenings:")[0], re.MULTILINE)
    assert len(lists) > 10
    readers = "".join(path.read_text(encoding="utf-8") for path in FILE.parent.glob("*.py"))
    assert [name for name in lists if f"{{{name}}}" not in text and f'"{name}"' not in readers] == []


@pytest.mark.parametrize("named", NAMED, ids=lambda named: f"{named.kind} {named.example.strip()}")
def test_each_name_gives_its_value_away_in_every_surrounding(named: Named) -> None:
    value = _value(named)
    behind = _BEHIND.get(named.reach, "")
    secret = value.removeprefix("Bearer ").removeprefix("session=")
    for name, around in AROUND.items():
        cleaned = _both(around(f"{named.example}{value}{behind}"))
        assert secret not in cleaned, name
        assert "[redacted:" in cleaned, name


@pytest.mark.parametrize("name", ["password", "dbPassword", "DB_PASSWORD", "db-password", "api_key", "clientSecret"])
@pytest.mark.parametrize(
    "given",
    [
        "{name}={value}", "{name}: {value}", "{name} = '{value}'", '"{name}": "{value}"', "'{name}': b'{value}'",
        '\\"{name}\\": \\"{value}\\"', "{name} => {value}", "{name} := {value}", '{name}: str = "{value}"',
        "{name}\uff1a{value}", "{name}\uff1d{value}", "{name}%3D{value}%26user%3Dann", "{name}&#61;{value}",
        "&quot;{name}&quot;: &quot;{value}&quot;", "<{name}>{value}</{name}>", "<td>{name}</td><td>{value}</td>",
        "│ {name} │ {value} │", "\x1b[33m{name}\x1b[0m=\x1b[35m{value}\x1b[0m", "{name}\u200b:\u200b{value}",
        "config['{name}'] = '{value}'", "--{name} {value}", "--{name}={value}", "['train', '--{name}', '{value}']",
        "('{name}', '{value}')", "a=1&{name}={value}&b=2", "({name}={value}, n=1)", "{{{name}: {value}}}",
    ],
)  # fmt: skip
def test_a_value_goes_however_it_is_given(name: str, given: str) -> None:
    line = given.format(name=name, value="s3cr3tV4lue")
    cleaned = _both(line)
    assert re.sub(r"\[redacted:[a-z-]+\]", "s3cr3tV4lue", cleaned) == line
    assert "s3cr3tV4lue" not in cleaned


@pytest.mark.parametrize("value", ["12345678", "$ecret9x", "/Ab9xz+Qw", "<Ab9xz+Qw", "{Ab9xz+Qw", "(Ab9xz+Qw", "p,ss;w0rd", "x", "p@ss:w/rd", "correct horse"])  # fmt: skip
def test_a_password_may_look_like_something_else(value: str) -> None:
    assert _both(f"password='{value}' user=ann") == "password='[redacted:password]' user=ann"
    if " " not in value:
        assert _both(f"--password {value}") == "--password [redacted:password]"


@pytest.mark.parametrize("password", ["hunter22", "p@ss/w:rd", "a/b:c@d", "12345", "x:y/z@w"])
def test_a_password_in_an_address_goes_whole(password: str) -> None:
    line = f"connecting to postgresql://ann:{password}@db.internal:5432/runs?x=1 now"
    assert _both(line) == "connecting to postgresql://ann:[redacted:password]@db.internal:5432/runs?x=1 now"


def test_what_is_redacted_stays_as_it_is() -> None:
    for form in FORMS:
        once = redact("".join(_secret(form)))
        assert redact(once) == once
    for named in NAMED:
        once = redact(f"{named.example}{_value(named)}{_BEHIND.get(named.reach, '')}")
        assert redact(once) == once
    old = "password=[redacted] Authorization: Bearer [redacted] postgres://ann:[redacted]@db/x"  # as releases before wrote it
    assert redact(old) == old


def _both(text: str) -> str:
    """Returns the text without its secrets, of which a stream says the same."""
    (streamed,) = redacted([text.encode()])
    cleaned = redact(text)
    assert streamed.decode() == cleaned
    return cleaned
