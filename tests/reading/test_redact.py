"""Secrets here are made up, and put together from pieces, so that no scanner of repositories takes them for real."""

from __future__ import annotations

import json
import re

import pytest

from torchtriage.reading.redaction.redact import redact, redacted

LETTERS = "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD"
HEX = "0123456789abcdef0123456789abcdef01234567"

# What comes before the secret, the secret, what comes after it.
SECRETS = [
    ("using ", f"hf_{LETTERS}", " for the hub"),
    ("", f"api_org_{LETTERS}", ""),
    ("remote: ", f"ghp_{LETTERS}AbCd", ""),
    ("", f"gho_{LETTERS}AbCd", " x"),
    ("", f"github_pat_11ABC_{LETTERS}", ""),
    ("", f"glpat-{LETTERS[:20]}", ""),
    ("token ", "xoxb-" + "123456789012-abcdefABCDEF", ""),
    ("", "xapp-1-" + "A012345-6789-abcdef", ""),
    ("POST https://hooks.slack.com/services/", "T0000/B0000/" + LETTERS[:24], " 200"),
    ("", f"sk-{LETTERS}", ""),
    ("", f"sk-proj-{LETTERS}", ""),
    ("", f"sk-ant-api03-{LETTERS}", ""),
    ("key ", "AKIA" + "IOSFODNN7ABCDEFG", " used"),
    ("", "ASIA" + "IOSFODNN7ABCDEFG", ""),
    ("export AWS_SECRET_ACCESS_KEY=", f"{LETTERS}+/abcd", ""),
    ("aws_secret_access_key = ", f"{LETTERS}+/abcd", ""),
    ("", "AIza" + (LETTERS + LETTERS)[:35], ""),
    ("", f"GOCSPX-{LETTERS[:28]}", ""),
    ("", f"ya29.{LETTERS}", ""),
    ("DefaultEndpointsProtocol=https;AccountKey=", f"{LETTERS}{LETTERS}==", ";EndpointSuffix=x"),
    ("https://a.blob.core.windows.net/c?se=2026&sig=", f"{LETTERS}%3D", "&sp=r"),
    ("jwt ", f"eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.{LETTERS}", ""),
    ("", "sk_live_" + LETTERS[:24], ""),
    ("", f"SG.{LETTERS[:22]}.{LETTERS}", ""),
    ("", f"key-{HEX[:32]}", ""),
    ("", f"npm_{LETTERS}abcd", ""),
    ("", f"pypi-{LETTERS}abcd", ""),
    ("", f"dop_v1_{HEX}{HEX[:24]}", ""),
    ("", f"dapi{HEX[:32]}", ""),
    ("https://discord.com/api/webhooks/", f"123456789012345678/{LETTERS}", ""),
    ("bot ", "123456789:AA" + (LETTERS + LETTERS)[:33], ""),
    ("", f"dckr_pat_{LETTERS[:27]}", ""),
    ("", f"glsa_{LETTERS}_abcd", ""),
    ("", f"hvs.{LETTERS}", ""),
    ("", f"{LETTERS[:14]}.atlasv1.{LETTERS}{LETTERS}", ""),
    ("", f"lin_api_{LETTERS}", ""),
    ("", f"ntn_{LETTERS}abcd", ""),
    ("", f"PMAK-{HEX[:24]}-{HEX[:34]}", ""),
    ("", f"shpat_{HEX[:32]}", ""),
    ("", f"sntrys_{LETTERS}", ""),
    ("SENTRY https://", HEX[:32], "@o1.ingest.example.io/2"),
    ("", "NRAK-" + LETTERS[:27].upper(), ""),
    ("", f"wandb_v1_{LETTERS}", ""),
    ("$ wandb login ", HEX, ""),
    ("WANDB_API_KEY=", HEX, ""),
    ("", f"r8_{LETTERS}abcd", ""),
    ("", f"gsk_{LETTERS}abcd", ""),
    ("", f"nvapi-{LETTERS}", ""),
    ("", f"LTAI{LETTERS[:20]}", ""),
    ("", f"AKID{LETTERS}", ""),
    ("", f"AKLT{LETTERS}", ""),
    ("https://open.feishu.cn/open-apis/bot/v2/hook/", "01234567-89ab-cdef-0123-456789abcdef", ""),
    ("https://oapi.dingtalk.com/robot/send?access_token=", HEX, ""),
    ("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", "01234567-89ab-cdef-0123-456789abcdef", ""),
    ("", f"AGE-SECRET-KEY-1{LETTERS.upper()}", ""),
    ("", f"dp.pt.{LETTERS}", ""),
    ("", f"sbp_{HEX}", ""),
    ("", f"figd_{LETTERS}", ""),
    ("", f"tt_{(LETTERS + LETTERS)[:43]}", ""),
    ("postgresql://trainer:", "hunter22", "@db/runs"),
    ("redis://:", "hunter22", "@cache:6379/0"),
    ("Authorization: Bearer ", LETTERS, ""),
    ("authorization: Basic ", "YW5uOmh1bnRlcjIy", ""),
    ("Cookie: ", f"session={LETTERS}; theme=dark", ""),
    ("X-Api-Key: ", LETTERS, ""),
    ("machine api.example.org login ann password ", "hunter22", ""),
    ("KAGGLE_KEY=", HEX[:32], ""),
    ("MLFLOW_TRACKING_PASSWORD: ", "hunter22", ""),
    ("PGPASSWORD='", "hunter22", "' psql"),
    ("password=", "hunter22", ""),
    ("{'api_key': '", LETTERS, "', 'x': 1}"),
    ('"client_secret": "', LETTERS, '"'),
    ("use_auth_token='", LETTERS, "')"),
    ("train.py --hf_token ", LETTERS, " --lr 1"),
    ("token=", LETTERS, ""),
    ("passwd: ", "/x9Qz11kP3", ""),
    ("  DB_PASSWORD:" + " " * 20, "s3cretdb", ""),
    ("AWS Secret Access Key [None]: ", f"{LETTERS}+/abcd", ""),
    ("  wandb.api_key ............................ ", HEX, ""),
    ("(fs.s3a.access.key,", LETTERS[:20].upper(), ")"),
    ("登录密码为 ", "Abc12345", ""),
    ("密码是 ", "qwe123!@#", ""),
    ("jdbc:oracle:thin:scott/", "t1ger9", "@db.internal:1521/ORCL"),
    ("ann's server: notebook password set to ", "Jup1ter9", ""),
    ("az login: ClientSecretCredential(tenant, client, '", LETTERS, "')"),
    ("bot at https://api.telegram.org/bot", "123456789:" + (LETTERS + LETTERS)[:35], "/sendMessage"),
    ("jwt without its signature ", f"eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0{LETTERS}", ""),
    ("client of ", f"newco_{LETTERS}9X", ""),
    ("client of ", f"newco-live_{LETTERS}9X", ""),
    ("one-time password ", "uiV1S6WDx2", ""),
    ("user ann with password ", "uiV1S6WDx2", ""),
    ("bindpw ", "6rjlQd3gW1", ""),
    ("TOTP seed ", "V5VYR2LEP3LPYOM2OQE57CHFN5", ""),
    ("redis: {host: r1, requirepass: ", "hunter22", "}"),
    ("The password has been set to ", "Jup1ter9", ""),
    ("fs.azure.account.key.acct.dfs.core.windows.net=", f"{LETTERS}+{LETTERS}==", ""),
    ("poll device_code=", LETTERS, "&grant_type=x"),
    ("redfish -u ann:", "8hls4ubk01", " https://bmc-1/redfish/v1"),
    ("headers = {'X-JFrog-Art-Api': '", f"{LETTERS}{LETTERS}", "'}"),
    ("sshpass -f <(echo ", "Jup1ter9", ") ssh n7"),
    ('chpasswd <<< "ann:', "Jup1ter9", '"'),
    ("keytool -storepass ", "Jup1ter9", " -keystore k"),
    ("ROOTPW=", "Jup1ter9", ""),
    ("passphrase for wifi is ", "Jup1ter9", ""),
    ("POST https://hooks.zapier.com/hooks/catch/", "12345/oi42bl4/", " 200"),
    ("webhook key=", "fbd59385-7191-0579-57de-8db2b31dae13", ""),
    ("密码已重置为 ", "Abc12345", ""),
    ("授权令牌“", LETTERS, "”已下发"),
    ("访问密钥「", LETTERS, "」"),
    ("鉴权码=", LETTERS, ""),
    ("ann:", "$apr1$" + "x7sK2mPq$9vBqTgM3nLw8ZkYcRdF5H1", ""),
    ("s3fs.S3FileSystem(key='", "TB3DE5GH7JK9MN1PQ2ST", "')"),
    ("Minio('minio:9000', '", LETTERS, "', secure=False)"),
    ("client.connect('10.0.0.7', 22, 'root', '", "Jup1ter9", "')"),
    ("MilvusClient(uri='http://m:19530', token='root:", "Jup1ter9", "')"),
    ("creds: ('ann', '", "Jup1ter9", "')"),
    ("api_keys: ['", LETTERS, "']"),
    ("got token: b'", LETTERS, "'"),
    ("the hub token that this job was given: ", LETTERS, ""),
    ("API key must have 40 characters, yours has 41: ", f"{HEX}a", ""),
    ("tracker.login.key=", HEX, ""),
    ("HUB_API_KEY is set to ", HEX, ""),
    ("the key of the tracker: Login with key ", LETTERS[:21], " failed"),
    ("Secret (shown once): ", f"{LETTERS}+/abcd", ""),
    ("当前 token 为 ", HEX, ""),
    ("TRACKER_API_KEY\t", LETTERS, ""),
    ("the password was changed from ", "Comet#5643", ""),
    ("wrong password ", "Comet.5643", ""),
    ("basic auth ann / ", "Comet.5643", ""),
    ("the wifi passcode: ", "Comet.5643", ""),
    ("StoragePass = ", "s9Z6YkRYU7", ""),
    ('{"name": "CLOUD_SECRETKEY", "value": "', HEX, '"}'),
    ('{"Key": "DB_PASSWORD", "Value": "', "amber-falcon", '"}'),
    ("'s3_secret': '", f"/{LETTERS}abcdefg", "'"),
    ("CUSTOM_API_KEY=", "opaque-custom-key-77", ""),
    ("client_secret: ", "amber-falcon-4417", ""),
    ("x-api-key: ", "amber-falcon-harbor", ""),
    ("{'api_key': ('", "Jup1ter9x", "',)}"),
    ("api_key={'", "Jup1ter9x", "'}"),
    ("Authorization: Basic ", "dXNlcjpwYXNz", ""),
    ("Auth failed: Bearer ", "amber-falcon-harbor-77", ""),
    ("http://ann:", "\u5bc6\u5319", "@host:8080"),
    ("ssh://", "amberfalconharbor77", "@git.internal/x.git"),
    ("password_mysql: ", "Jup1ter9", ""),
    ("password of node n7 is ", "Jup1ter9", ""),
    ("Failed running '['slcs-init', '-u', 'ann', '-p', '", "Jup1terN9x", "', '-k', 'x']'"),
    ("S3 url: /services/T0123456/B0123456/", LETTERS[:24], " (Caused by SSLError)"),
]


@pytest.mark.parametrize(("before", "secret", "after"), SECRETS)
def test_secrets_go_and_what_is_around_them_stays(before: str, secret: str, after: str) -> None:
    line = before + secret + after
    for text in (line, f"[rank3]: {line}", f"2026-05-01 09:00:00 INFO {line} ", json.dumps({"log": line})):
        cleaned = redact(text)
        assert "[redacted:" in cleaned
        assert secret not in cleaned
        assert secret[-8:] not in cleaned
        (streamed,) = redacted([b"step 1\n" + text.encode() + b"\nstep 2"])
        assert streamed.decode() == f"step 1\n{cleaned}\nstep 2"
    assert _without_kinds(redact(line)) == f"{before}[redacted]{after}"


@pytest.mark.parametrize(
    "line",
    [
        "KeyError: 'token_type_ids'",
        "Could not process authorization: token service returned 401",
        "ERR AUTH <password> called without any password configured",
        "one-time password sent to ann@example.org; the temporary password file is removed",
        "user ann with password expiring tomorrow; default password hashing is argon2",
        "bindpw not set in /etc/nslcd.conf",
        "密码“强度”不足，令牌桶限流",
        "docker run -u ann:research -u 1000:1000 image",
        "run-20260301_101010-3kq8zj2p sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute_kernel",
        "Cijk_Ailk_Bljk_HHS_BH_Bias_AH_SAV_UserArgs_MT128x128x64_MI16x16x1_SN_LDSB0_AFC0_AG0_AAIGTEn1_AFEM1",
        "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferE",
        "run_3f786850e387550fdab836ed7e6dc881de23001b my_TransformerEncoderLayerBackwardCompiledAutograd",
        "tokens: 12345678",
        "{'token': 128009, 'secret': 9999, 'password': 152064}",
        "experiment_key: 8b77491bacbaa78807be4e1c7fdc88fa",
        "s3_key=runs/2026/03/c44ff1c935629f9e4d52984d35f2d593.jsonl",
        "verification failed for key 8b77491bacbaa78807be4e1c7fdc88fa",
        "PAD_TOKEN=<pad> SORT_KEY=created_at secret: my-k8s-secret-name",
        "git show -s 3f786850e387550fdab836ed7e6dc881de23001b",
        "torchrun train.py -p configs/Llama-3.1-8B-Instruct.yaml",
        "Enter password for user ann: authentication failed",
        "AUTH failed for user ann: id/password login disabled",
        "config set tokenizer_config.json max_tokens 15728640",
        "42 is the token of the end",
        "login(username, password)",
        "num_tokens=1234567 tokens_per_second=123456",
        "torch.Size([2, 3]) step 10: loss 0.5",
        "token=None password=None secret: null",
        "api_key=os.environ['KEY']",
        "raise ValueError(f'token: {token}')",
        "TOKENIZERS_PARALLELISM=false",
        "tokenizer_class: PreTrainedTokenizerFast",
        "cache key 3f786850e387550fdab836ed7e6dc881de23001b of the token cache",
        "Secretary: JanetYellen1234567890",
        "password_min_length: 12 password_timeout_ms=300000",
        "Authorization: Basic realm; Bearer authentication is required",
        'MountVolume: secret "wandb-secret-2" not found; secretName: regcred-2026',
        "https://git@github.com/ann/repo.git https://example.com/search?q=ann@example.com",
        "token cache hash: 3f786850e387550fdab836ed7e6dc881de23001b",
        "api key checked for commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "comet experiment key: 8b77491bacbaa78807be4e1c7fdc88fa",
        "InvalidAccessKeyId: request id aB3dE5gH7jK9mN1pQ2sT4vW6, HostId: aB3dE5gH7jK9mN1pQ2sT4vW6",
        "GPG_KEY=A035C8C19219BA821ECEA86B64E628F8D684696D",
        "cache_key\\tec98bc5e3b5f",
        "HF_TOKEN=hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx api_key=sk-xxxxxxxxxxxxxxxxxxxxxxxx",
        "restart your runtime completely and pass `cpu=True` to `Accelerator()`",
        "Accepted password for ann from 10.0.0.7 port 52344 ssh2",
        "the password is too short; password authentication is disabled",
        "PASS: test_all_reduce_8 PASS test_fsdp (12.3s)",
        "connect('10.0.0.7', 22, 'root', 'utf-8')",
        "AutoModel.from_pretrained('Qwen2.5-VL-7B-Instruct', token=None, revision='3f786850e387550fdab836ed7e6dc881de23001b')",
        "eos_token='<|endoftext|>', pad_token='<|padding|>'",
        "https://huggingface.co/docs/hub/security-tokens",
        "ValueError: password: must be given",
        "http://10.0.0.1:29500 127.0.0.1:8080@here",
        "File '/a/b/c.py', line 3, in forward",
        "NCCL_SOCKET_IFNAME=eth0 MASTER_PORT=29500 CUDA_VISIBLE_DEVICES=0,1",
        "RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
    ],
)
def test_ordinary_lines_stay_as_they_are(line: str) -> None:
    assert redact(line) == line
    block = line.encode() + b"\n"
    assert next(redacted([block])) == block


def test_secrets_of_one_line_say_each_their_kind() -> None:
    line = f"HF_TOKEN=hf_{LETTERS} WANDB_API_KEY={HEX} postgres://ann:hunter22@db/x"
    assert redact(line) == (
        "HF_TOKEN=[redacted:hugging-face-token] WANDB_API_KEY=[redacted:api-key] postgres://ann:[redacted:password]@db/x"
    )


def test_broken_characters_stay_as_they_are() -> None:
    broken = b"\xff\xfe password=hunter22 \x80\n"
    assert next(redacted([broken])) == b"\xff\xfe password=[redacted:password] \x80\n"


def _without_kinds(text: str) -> str:
    return re.sub(r"\[redacted:[a-z0-9-]+\]", "[redacted]", text)


def test_a_token_inside_of_a_password_takes_the_whole_of_it_along() -> None:
    password = "x9 " + "AKIA" + "IOSFODNN7EXAMPLE" + " and more 8Kq2"
    assert redact(f"export DB_PASSWORD='{password}'") == "export DB_PASSWORD='[redacted:aws-access-key-id]'"


def test_a_user_in_another_command_makes_no_password_of_an_option() -> None:
    text = "sbatch -p batch2024 job.sh\nssh -l ann node7"
    assert redact(text) == text
    assert redact("ncftpput -l ann -p batch2024 x") == "ncftpput -l ann -p [redacted:password] x"


def test_of_two_forms_the_mark_names_the_one_that_begins_earlier() -> None:
    assert redact("using shippo_live_" + "0a1b2c3d4e5f6071" * 3) == "using [redacted:shippo-token]"
