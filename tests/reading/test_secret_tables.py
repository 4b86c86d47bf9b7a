"""Tables whose columns hold secrets: a name in the header gives the values below it away, whatever draws the table."""

from __future__ import annotations

import pytest

from torchtriage.reading.redaction.redact import redact
from torchtriage.reading.redaction.secret_tables import Table

VALUE = "lab-panda-67"
TABLES = {
    "bars": "| host  | db_password  | uid  |\n|-------|--------------|------|\n| gpu01 | lab-panda-67 | 1001 |",
    "box": "│ host  │ db_password  │ uid  │\n├───────┼──────────────┼──────┤\n│ gpu01 │ lab-panda-67 │ 1001 │",
    "double": "║ host  ║ db_password  ║ uid  ║\n╠═══════╬══════════════╬══════╣\n║ gpu01 ║ lab-panda-67 ║ 1001 ║",
    "heavy": "┃ host  ┃ db_password  ┃ uid  ┃\n┡━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━┩\n│ gpu01 │ lab-panda-67 │ 1001 │",
    "blanks, left": "host   db_password   uid\ngpu01  lab-panda-67  1001",
    "blanks, right": " host   db_password   uid\ngpu01  lab-panda-67  1001",
    "rows with a number": "    host   db_password   uid\n0  gpu01  lab-panda-67  1001",
    "an empty cell": "host   db_password   uid\n       lab-panda-67  1001",
    "comma": "host,db_password,uid\ngpu01,lab-panda-67,1001",
    "quoted commas": '"host","db_password","uid"\n"gpu01, rack 3","lab-panda-67","1001"',
    "semicolon": "host;db_password;uid\ngpu01;lab-panda-67;1001",
    "tab": "host\tdb_password\tuid\ngpu01\tlab-panda-67\t1001",
    "HTML": "<tr><th>host</th><th>db_password</th><th>uid</th></tr>\n<tr><td>gpu01</td><td>lab-panda-67</td><td>1001</td></tr>",
    "LaTeX": "host & db_password & uid \\\\\ngpu01 & lab-panda-67 & 1001 \\\\",
    "wiki": "! host !! db_password !! uid\n| gpu01 || lab-panda-67 || 1001",
    "last column": "| host  | db_password  |\n| gpu01 | lab-panda-67 |",
    "Chinese": "| 主机  | 密码         | 编号 |\n|-------|--------------|------|\n| gpu01 | lab-panda-67 | 1001 |",
}


@pytest.mark.parametrize("prefix", ["", "[rank3]: ", "2026-05-01 09:00:00,123 INFO train.py:12 - "])
@pytest.mark.parametrize("name", TABLES)
def test_the_value_under_a_telling_name_goes_and_the_rest_stays(name: str, prefix: str) -> None:
    log = "\n".join(prefix + line for line in TABLES[name].split("\n"))
    cleaned = redact(log)
    assert VALUE not in cleaned
    assert "gpu01" in cleaned or name == "an empty cell"
    assert "1001" in cleaned or name == "last column"


@pytest.mark.parametrize(
    "table",
    [
        "| key             | dtype | shape        |\n| layers.0.weight | bf16  | [4096, 4096] |",
        "name     token  id\npad      <pad>  0",
        "Token         Count\nthe           12831",
        "password  policy  length\nrequired  strict  12",
        "| tokens  | loss |\n| 1048576 | 2.31 |",
        "pass  fail  total\n12    0     12",
    ],
)
def test_tables_without_secrets_stay_as_they_are(table: str) -> None:
    assert redact(table) == table


def test_a_table_that_only_blanks_draw_ends_with_its_rows() -> None:
    after = ["step 1"] * 8 + ["host   node-17-lab  1001"]
    log = "\n".join(["host   db_password  uid", *after])
    assert redact(log) == log


def test_a_line_of_many_cells_is_not_a_row() -> None:
    header = b"host,db_password,uid"
    assert Table(header).part(b"gpu01,lab-panda-67,1001", b"")
    assert not Table(header).part(b"gpu01,lab-panda-67," + b"1" * 20_000, b"")
    assert not Table(header + b",x" * 20_000).left


@pytest.mark.parametrize(
    "line",
    [
        "| db_password | lab-panda-67 |",
        "* db_password        lab-panda-67",
        "db_password~~~~~~~~~~~~ lab-panda-67",
        "webhook_token | lab-panda-67",
        '<input type="password" id="p" value="lab-panda-67"/>',
        '  "password" => string(12) "lab-panda-67"',
        '"db_password" "lab-panda-67"',
        "密码　lab-panda-67",
        "<td style='text-align: left;'>db_password</td>\n<td style='text-align: left;'>lab-panda-67</td>",
        "slcs-init --idp example.com -u ann -k lab-panda-67",
        "['slcs-init', '-k', 'lab-panda-67', '-u', 'ann']",
        "neo4j: changed password to lab-panda-67",
        "SET PASSWORD FOR 'ann'@'%' = 'lab-panda-67'",
        "restic init --password-command 'echo lab-panda-67'",
        "+ echo lab-panda-67\n+ docker login --password-stdin",
    ],
)
def test_a_name_gives_a_chosen_password_away_in_every_layout(line: str) -> None:
    assert VALUE not in redact(line)


@pytest.mark.parametrize(
    "line",
    [
        "password authentication switched to publickey2",
        "the password moved to vault-prod-2 yesterday",
        "password hashed with sha512",
        "PASS: test_all_reduce_8",
        "mkdir -p ckpt-12",
        "srun -w gpu-0017 python train.py",
        "pad_token=IMG_1",
        "wandb: Currently logged in as: ann17. Use `wandb login --relogin` to force relogin",
        "user ann started Trainer$12 on Class#1234567",
    ],
)
def test_names_with_numbers_stay(line: str) -> None:
    assert redact(line) == line


UNNAMED = "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD"


@pytest.mark.parametrize("line", [f"qshell account {UNNAMED} test", f"upx bucket operator {UNNAMED}"])
def test_what_is_drawn_by_lot_goes_without_a_name(line: str) -> None:
    assert UNNAMED not in redact(line)


@pytest.mark.parametrize(
    "line",
    [
        f"request_id={UNNAMED}",
        f"ED25519 SHA256:{UNNAMED}",
        f"/tmp/cache/{UNNAMED}/model.py",
        f"etag: {UNNAMED}",
        UNNAMED * 3,
        # The base64 of a text, which DeepSpeed hands to its workers.
        "launch --world_info=eyJsb2NhbGhvc3QiOiBbMCwgMSwgMiwgMywgNCwgNSwgNiwgN119 --master_port=29500",
    ],
)
def test_ids_and_data_stay(line: str) -> None:
    assert redact(line) == line


def test_a_strong_password_goes_after_a_word_that_shows_of_an_account() -> None:
    assert "Tiger#96$dragon" not in redact("mount.davfs: user ann Tiger#96$dragon")
