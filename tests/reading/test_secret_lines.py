"""Lines as logs hold them, of which every secret must go, and lines that must stay as they are.

The files hold places and no secrets: `«B40»` is replaced by 40 characters drawn by lot, of the alphabet that the letter names,
`«P»` by a password, `«U»` by a UUID, `«J»` by a JSON web token, `«W12»` by twelve words; `‹X16›` by what is no secret of itself. `⟦ann:«P»⟧` stands
for its base64. What a line of four dashes parts is one log each.
"""

from __future__ import annotations

import base64
import random
import re
import string
from pathlib import Path

import pytest

from torchtriage.reading.redaction.redact import redact, redacted

FOLDER = Path(__file__).parent / "secret_lines"
PASSWORDS = (
    "Tr4in!ngN0de", "hunter4217", "gpu#Cluster9", "Winter2025!", "zebra-Quilt-88", "pX9$kd2!w", "s3Rv1cePa55", "Blau3Katze",
    "Ohm_resist7", "nimbus7731", "mL0ps!Team", "Quartz99lake",
)  # fmt: skip
ALPHABETS = {
    "B": string.ascii_letters + string.digits,
    "D": string.digits,
    "H": "0123456789abcdef",
    "S": string.ascii_letters + string.digits + "+/",
    "X": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_letters + string.digits + "-_",
}
# What is known to stay of each file, by what its line begins with: decisions/0028 says why.
STAYS = {
    "documented": ["Key                  Value"],
    "reported": [
        "STDOUT terraform",
        "Created wireguard client",
        "smtp.c:1006",
        "vault generate-root",
    ],
    "rare_tools": [
        "# stunnel psk",
        "# chap-secrets",
        "[smtp.corp",
        "IMAPAccount",
        "localclient:",
        'encrypt = "',
        "pulumi config set",
        "rollbar.init",
        "gotify push",
        "schtasks",
        "virsh secret",
        "maas login",
        "signal-cli",
    ],
    "cloud_tools": [
        "# local.ini",
        "curl -X PUT http://127.0.0.1:5984/_node",
        "setAcl /train",
        "bundle config",
        "pritunl-client add",
        "check_nrpe",
        "bw unlock",
        "SUSEConnect",
        "knife ssh",
        "pveum user",
        "sedutil-cli",
        "conda: anaconda -t",
        "signtool",
    ],
    "everyday_tools": ["consul agent -encrypt", "/etc/rsyncd.secrets"],
    "cluster_tools": [],
    "other_tools": ["frpc:", "https://aip.baidubce.com", "enroot import", "beegfs:"],
}
DAMAGED = ["auth.login('kerberos'", "run_20260301T101010Z_gpu07"]


def random_secret(kind: str, dice: random.Random) -> str:
    if kind == "P":
        return dice.choice(PASSWORDS)
    if kind == "U":
        return "-".join(random_secret(f"H{length}", dice) for length in (8, 4, 4, 4, 12))
    if kind == "W12":
        return " ".join("".join(dice.choices(string.ascii_lowercase, k=5)) for _ in range(12))
    if kind == "J":
        head, claims = ('{"alg":"HS256","typ":"JWT"}', f'{{"sub":"{random_secret("B12", dice)}"}}')
        return ".".join(
            [
                *(base64.b64encode(part.encode()).decode().rstrip("=") for part in (head, claims)),
                random_secret("u43", dice),
            ]
        )
    while True:
        value = "".join(dice.choices(ALPHABETS[kind[0]], k=int(kind[1:])))
        if value[0].isalnum() and value[-1] not in "-_":
            return value


def filled(template: str, seed: str) -> tuple[str, list[str]]:
    """Returns a log made of the template, and the secrets in it."""
    dice = random.Random(seed)
    secrets: list[str] = []

    def secret(found: re.Match[str]) -> str:
        secrets.append(random_secret(found[1], dice))
        return secrets[-1]

    def packed(found: re.Match[str]) -> str:
        spelled = base64.b64encode(found[1].encode()).decode()
        secrets[:] = [one for one in secrets if one not in found[1]] + [spelled.rstrip("=")]
        return spelled

    text = re.sub("‹([^›]+)›", lambda found: random_secret(found[1], dice), template)
    text = re.sub("⟪(BEGIN|END) (\\w+)⟫", r"-----\1 \2 PRIVATE KEY-----", text)
    text = re.sub("⟦([^⟧]+)⟧", packed, re.sub("«([^»]+)»", secret, text))
    return text, secrets


def is_readable(secret: str, cleaned: str) -> bool:
    """Returns whether the secret, or eight characters of a long one, can be read."""
    parts = [secret] if len(secret) < 12 else [secret[at : at + 8] for at in range(len(secret) - 7)]
    return any(part in cleaned for part in parts)


@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
@pytest.mark.parametrize("name", STAYS)
def test_secrets_go_from_lines_as_logs_hold_them(name: str, prefix: str) -> None:
    templates = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n").split("\n----\n")
    assert len(templates) > 100
    left = []
    for number, template in enumerate(templates):
        text, secrets = filled(template, f"{name} {number}")
        assert secrets, template
        text = "\n".join(prefix + line for line in text.split("\n"))
        cleaned = redact(text)
        if any(is_readable(secret, cleaned) for secret in secrets) and not template.startswith(tuple(STAYS[name])):
            left.append(cleaned)
    assert not left
    assert len(STAYS[name]) * 20 <= len(templates)


def test_harmless_lines_stay_as_they_are() -> None:
    lines = (FOLDER / "harmless.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if redact(line) != line and not line.startswith(tuple(DAMAGED))] == []
    kept = [line for line in lines if not line.startswith(tuple(DAMAGED))]
    block = "\n".join(kept).encode() + b"\n"
    assert b"".join(redacted([block])) == block
