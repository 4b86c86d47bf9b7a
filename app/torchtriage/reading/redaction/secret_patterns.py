"""What secrets look like: the forms that issuers publish, the names before a value, the places where programs take one.

Each row proves itself: a test takes every `example` through every surrounding that logs put around a line.
"""

from __future__ import annotations

from dataclasses import dataclass

_ALNUM, _WORD, _HEX, _UPPER, _BASE64 = "[A-Za-z0-9]", r"[\w-]", "[0-9a-f]", "[A-Z0-9]", "[A-Za-z0-9+/=_-]"

# No letter stands in front, but for that of an escape: a colour, a line feed, a percent sign.
APART = r"(?:^|[^A-Za-z]|\\[a-z]|\[[0-9;]{0,12}m|%[0-9A-F]{2}|\\[ux][0-9a-f]{2,4})"


@dataclass(frozen=True, slots=True)
class Form:
    """A secret that is known by how it begins, whatever stands before it.

    `begins`: the openings, each of them literal, parted by spaces. `rest`: the alphabet of what follows, `least` how
    much of it there is. `then`: what must stand behind that, where it is not just more of the same. `before`: a pattern
    for what must stand in front, and stays. `apart`: a letter in front means that it is another word. `random`: what
    follows is also how words are written, so that it must look drawn by lot. `part`: the secret began before the opening.
    """

    kind: str
    begins: str
    rest: str
    least: int
    then: str = ""
    before: str = ""
    apart: bool = False
    random: bool = False
    part: bool = False
    example: str = ""  # the opening, where the first of `begins` is not all that stands before the rest


FORMS = (
    Form("hugging-face-token", "hf_ api_org_", _ALNUM, 20),
    Form("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM, 16),
    Form("github-token", "github_pat_", r"\w", 20),
    Form("gitlab-token", "glpat- glptt- gldt- glrt- glrtr- glcbt- glft- glwt- glsoat- glimt- glffct- gloas- glagent-", r"[\w.-]", 16),
    Form("gitlab-token", "GR1348941", _WORD, 18),
    Form("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxp- xoxr- xoxs- xoxe. xapp-", r"[\w.%-]", 10),
    Form("slack-webhook", "", r"[\w/]", 10, before=r"hooks\.slack\.com/(?:services|workflows|triggers)/", example="hooks.slack.com/services/"),
    Form("slack-webhook", "", r"\w", 20, before=r"/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/", example="url: /services/T0123456/B0123456/"),
    Form("api-key", "sk-", _WORD, 20, apart=True, random=True),  # OpenAI, Anthropic, DeepSeek, Moonshot, DashScope, …
    Form("anthropic-key", "sk-ant-", _WORD, 14),
    Form("openai-key", "sk-proj- sk-svcacct- sk-admin-", _WORD, 14),
    Form("aws-access-key-id", "AKIA ASIA ABIA ACCA", _UPPER, 16),
    Form("aws-session-token", "FwoGZXIvYXdz IQoJb3JpZ2luX2Vj", _BASE64, 60),
    Form("aws-bedrock-key", "ABSK bedrock-api-key-", _BASE64, 60),
    Form("google-api-key", "AIza", _WORD, 35),
    Form("google-hmac-id", "GOOG1E GOOG1", _UPPER, 20),
    Form("google-oauth-secret", "GOCSPX-", _WORD, 20),
    Form("google-oauth-token", "ya29.", r"[\w.-]", 20),
    Form("google-authorization-code", "4/0A 4/1A", _WORD, 40),
    Form("google-refresh-token", "1//0", _WORD, 30),
    Form("azure-client-secret", "7Q~ 8Q~ 9Q~", r"[\w~.-]", 31, part=True, example="aB38Q~"),
    Form("json-web-token", "eyJ", _WORD, 8, then=r"\.(?:eyJ[\w-]{8,}(?:\.[\w-]*){0,4}|[\w-]{8,}(?:\.[\w-]*){1,4})", example="eyJhbGciOiJIUzI1.eyJzdWIi."),
    Form("neptune-token", "eyJhcGlf", _BASE64, 40),
    Form("grafana-token", "eyJrIjoi", _BASE64, 40),
    Form("grafana-token", "glc_ glsa_", _BASE64, 20),
    Form("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", r"[A-Za-z0-9+/=]", 16),
    Form("sendgrid-key", "SG.", _WORD, 16, then=r"\.[\w-]{16,}", example="SG.aB3dE5gH7jK9mN1pQ2sT4v."),
    Form("mailgun-key", "key-", _HEX, 32, apart=True),
    Form("mailchimp-key", "-us", r"\d", 1, before=r"[0-9a-f]{32}", part=True, example="0123456789abcdef0123456789abcdef-us"),
    Form("backblaze-key", "K000 K001 K002 K003 K004 K005", r"[A-Za-z0-9/+]", 27, apart=True, random=True),
    Form("brevo-key", "xkeysib-", _WORD, 40),
    Form("twilio-key", "SK", _HEX, 32, apart=True),
    Form("npm-token", "npm_", _ALNUM, 30),
    Form("pypi-token", "pypi-", _WORD, 32, random=True),
    Form("rubygems-key", "rubygems_", _HEX, 40),
    Form("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", _HEX, 40),
    Form("databricks-token", "dapi", r"[0-9a-f-]", 32),
    Form("discord-webhook", "", r"[\w/-]", 38, before=r"discord(?:app)?\.com/api/webhooks/", example="discord.com/api/webhooks/"),
    Form("discord-token", ".", _WORD, 27, before=r"[MNO][\w-]{23,27}\.[\w-]{6}", part=True, example="MTA1aB3dE5gH7jK9mN1pQ2sT.aB3dE5."),
    Form("telegram-token", ":A", _WORD, 34, before=r"\d{8,10}", part=True, example="123456789:A"),
    Form("telegram-token", "", r"[\w:-]", 30, before=r"api\.telegram\.org/(?:file/)?bot", example="api.telegram.org/bot"),
    Form("docker-hub-token", "dckr_pat_ dckr_oat_", _WORD, 20),
    Form("vault-token", "hvs. hvb. hvr.", _WORD, 20),
    Form("terraform-token", ".atlasv1.", _WORD, 40, part=True, example="aB3dE5gH7jK9mN.atlasv1."),
    Form("linear-key", "lin_api_ lin_oauth_", _ALNUM, 20),
    Form("notion-token", "ntn_", _ALNUM, 30),
    Form("notion-token", "secret_", _ALNUM, 43, random=True),
    Form("postman-key", "PMAK-", r"[0-9a-f-]", 20),
    Form("shopify-token", "shpat_ shpca_ shppa_ shpss_", "[0-9a-fA-F]", 32),
    Form("square-token", "sq0atp- sq0csp- sq0idp-", _WORD, 22),
    Form("sentry-token", "sntrys_ sntryu_", _BASE64, 20),
    Form("new-relic-key", "NRAK- NRJS- NRII-", r"[\w-]", 19),
    Form("wandb-key", "wandb_v1_", r"\w", 20),
    Form("replicate-token", "r8_", _ALNUM, 30),
    Form("groq-key", "gsk_", _ALNUM, 30),
    Form("perplexity-key", "pplx-", _ALNUM, 30),
    Form("xai-key", "xai-", _ALNUM, 40),
    Form("nvidia-key", "nvapi-", _WORD, 30),
    Form("runpod-key", "rpa_", _ALNUM, 30),
    Form("modal-token", "as- ak-", _ALNUM, 22, apart=True, random=True),
    Form("tavily-key", "tvly-", _WORD, 20, random=True),
    Form("langsmith-key", "lsv2_pt_ lsv2_sk_", r"\w", 32),
    Form("fireworks-key", "fw_", _ALNUM, 22, apart=True, random=True),
    Form("pinecone-key", "pcsk_", r"\w", 40, random=True),
    Form("llama-cloud-key", "llx-", _ALNUM, 40),
    Form("together-key", "tgp_v1_", _WORD, 40),
    Form("cerebras-key", "csk-", _ALNUM, 40, apart=True, random=True),
    Form("e2b-key", "e2b_", _HEX, 40),
    Form("anyscale-key", "esecret_", _ALNUM, 24, random=True),
    Form("kaggle-key", "KGAT_", _HEX, 32),
    Form("elevenlabs-key", "sk_", _HEX, 48, apart=True),
    Form("voyage-key", "pa-", _WORD, 43, apart=True, random=True),
    Form("helicone-key", "sk-helicone-", r"[a-z0-9-]", 24),
    Form("langfuse-key", "sk-lf-", r"[0-9a-f-]", 32),
    Form("coze-key", "pat_ sat_", _ALNUM, 40, apart=True, random=True),
    Form("jina-key", "jina_", _WORD, 40, random=True),
    Form("posthog-key", "phc_ phx_", _ALNUM, 32),
    Form("tailscale-key", "tskey-", _WORD, 20),
    Form("atlassian-token", "ATATT3 ATCTT3", _BASE64, 60),
    Form("bitbucket-token", "ATBB", _ALNUM, 32),
    Form("artifactory-token", "AKCp cmVmd", _ALNUM, 58),
    Form("aiven-token", "AVNS_", _WORD, 17, random=True),
    Form("sonar-token", "squ_ sqp_ sqa_", _HEX, 40),
    Form("sourcegraph-token", "sgp_", r"[0-9a-f_]", 40),
    Form("buildkite-token", "bkua_", _HEX, 40),
    Form("circleci-token", "CCIPAT_ CCIPRJ_", r"\w", 40),
    Form("hubspot-token", "pat-na1- pat-na2- pat-eu1-", r"[0-9a-f-]", 36),
    Form("plaid-token", "access-sandbox- access-development- access-production-", r"[0-9a-f-]", 36),
    Form("readme-key", "rdme_", _ALNUM, 60),
    Form("easypost-key", "EZAK EZTK", _ALNUM, 54),
    Form("shippo-token", "shippo_live_ shippo_test_", _HEX, 40),
    Form("facebook-token", "EAAA EAAC EAAM", r"[\w-]", 40, random=True),
    Form("dropbox-token", "sl.", _WORD, 100, apart=True, random=True),
    Form("harness-token", "pat. sat.", _WORD, 22, then=r"\.[0-9a-f]{24}\.[A-Za-z0-9]{20}", apart=True, example="pat.aB3dE5gH7jK9mN1pQ2sT4v.0123456789abcdef01234567."),
    Form("adobe-secret", "p8e-", _ALNUM, 32, apart=True, random=True),
    Form("clojars-token", "CLOJARS_", _ALNUM, 60),
    Form("yandex-key", "AQVN", _WORD, 35, apart=True, random=True),
    Form("alibaba-access-key-id", "LTAI", _ALNUM, 12, random=True),
    Form("tencent-secret-id", "AKID", _ALNUM, 28),
    Form("volcengine-access-key-id", "AKLT", _WORD, 20),
    Form("baidu-key", "bce-v3/ALTAK-", r"[\w/-]", 20),
    Form("feishu-webhook", "", _WORD, 20, before="/open-apis/bot/v2/hook/", example="/open-apis/bot/v2/hook/"),
    Form("wecom-webhook", "", _WORD, 20, before=r"/cgi-bin/webhook/send\?key=", example="/cgi-bin/webhook/send?key="),
    Form("teams-webhook", "", r"[\w@/-]", 32, before=r"office\.com/webhook(?:b2)?/", example="a.webhook.office.com/webhookb2/"),
    Form("teams-webhook", "", r"[\w/-]", 32, before="/IncomingWebhook/", example="/IncomingWebhook/"),
    Form("munge-credential", "MUNGE:", _BASE64, 40),
    Form("age-key", "AGE-SECRET-KEY-1", _UPPER, 20),
    Form("1password-token", "ops_eyJ", _BASE64, 20),
    Form("1password-key", "A3-", _UPPER, 6, then=r"-[A-Z0-9-]{22,40}", apart=True, example="A3-0IBYYU-RL65B4KJ4HB-"),
    Form("dingtalk-secret", "SEC", _HEX, 64, apart=True),
    Form("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[\w.-]", 20),
    Form("supabase-token", "sbp_ sb_secret_", _WORD, 24, random=True),
    Form("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w.-]", 20),
    Form("fly-token", "fm1_ fm2_", r"[\w+/=,-]", 40),
    Form("pulumi-token", "pul-", _HEX, 40),
    Form("dynatrace-token", "dt0c01. dt0s01. dt0s16.", r"[\w.]", 40),
    Form("cloudflare-key", "v1.0-", r"[0-9a-f-]", 120),
    Form("heroku-key", "HRKU-", _WORD, 36),
    Form("openshift-token", "sha256~", _WORD, 40),
    Form("airtable-token", ".", _HEX, 40, before=r"pat[A-Za-z0-9]{14}", part=True, example="pataB3dE5gH7jK9mN."),
    Form("figma-token", "figd_ figo_ figu_", _WORD, 20, random=True),
    Form("conda-token", "", _WORD, 12, before=r"conda[\w.:/-]{0,80}/t/", example="https://conda.anaconda.org/t/"),
    Form("serverchan-key", "SCT", _ALNUM, 24, apart=True, random=True),
    Form("bark-key", "", _ALNUM, 20, before=r"api\.day\.app/", example="api.day.app/"),
    Form("zapier-webhook", "", r"[\w/]", 6, before=r"hooks\.zapier\.com/hooks/catch/", example="hooks.zapier.com/hooks/catch/"),
    Form("serverchan-key", "", _ALNUM, 20, before=r"sc(?:tapi)?\.ftqq\.com/", example="sctapi.ftqq.com/"),
    Form("password-hash", "$1$ $5$ $6$ $y$ $apr1$ $2a$ $2b$ $2y$ $argon2i$ $argon2d$ $argon2id$", r"[\w./$=,+-]", 20, random=True),
    Form("password-hash", "{SSHA} {SSHA256} {SSHA512} {CRYPT} pbkdf2_sha256$ pbkdf2:sha256: scrypt:", r"[\w./$=,:+-]", 20, random=True),
    Form("torchtriage-token", "tt_", _WORD, 43, random=True),
)  # fmt: skip


# What Hyperscan takes for what parts a name from its value, and a value that is drawn by lot; `secret_values` looks closer.
_MARKS = r"(?:[^\w\n]|quot;|#x27;|#3[49];)*"  # quotes, escaped or not, and whatever else is no letter
_SIGN = r"(?:[=:>|,(]|\.{3} |%3[ad]|\xef\xbc[\x9a\x9d]|\xe4\xb8\xba|\xe6\x98\xaf|u4e3a|u662f|#(?:61|58);|\xe2\x94[\x82\x83]|\xe2\x95\x91)"
# It begins with what is no letter, so that `tokens_per_second` costs Hyperscan nothing.
_PARTED = (
    rf"(?:{_SIGN}|[^\w\n=:]+(?:(?:quot;|#x27;|#3[49];|[0-9;]*m|2[27])[^\w\n=:]*)?{_SIGN}"
    rf"|(?:: ?| )(?:str|string|SecretStr|Optional\[str\])[^\w\n=:]*{_SIGN})"
    r"[^\w\n]*(?:(?:u001b|x1b|033)\[)?(?:[0-9;]+m|quot;|#x27;|#3[49];|2[27])?[^\w\n]*"
)
_LOT = r"\w[\w.~+/=%-]"
_ALPHABETS = {4: "[A-Za-z0-9][A-Za-z0-9]", 5: "[0-9a-f][0-9a-f]"}  # by doubt


@dataclass(frozen=True, slots=True)
class Named:
    """A secret that is known by what stands before it, which stays.

    `doubt`: what a value must look like, 0 anything but a placeholder, 1 no words, 2 drawn by lot, 3 also no digest: of
    small and capital letters, or of capital ones, 4 also without a sign inside for long, 5 as long as digests are, 6 any with a digit. `least`: how many bytes it has.
    `apart`: other words may stand between, so that a name right before the value that anybody may see, and a word that
    tells of a digest, keep it. `assigned`: `before` is a name, and what parts it from its value comes behind it; else the value or its
    quote follows at once. `verb`: the name is also what somebody is told to do, so that a quote alone behind it is no value.
    `announced`: what follows is said to be the secret, so that a word with a number is one, too.
    `reach`: how far it goes: one `value`, a `header`, the rest of the `line`; a value `attached` to
    its option, `piped` into a program, or `quoted`; a `login` with a host behind it, which may be spelled in `percent` signs, or
    whose `address` has no scheme; a password that is `strong`; or the word `before` the pattern.
    """

    kind: str
    before: str
    example: str  # what `before` finds, up to the value
    doubt: int = 0
    least: int = 1
    assigned: bool = False
    reach: str = "value"
    apart: bool = False
    verb: bool = False
    announced: bool = False

    @property
    def pattern(self) -> str:
        """-> what Hyperscan looks for. It ends behind the first `least` bytes of a value that is drawn by lot, behind the
        byte after another's name, else where the value or its quote begins."""
        lot = f"{_ALPHABETS.get(self.doubt, _LOT)}{{{self.least - 1}}}"
        if not self.assigned:
            return rf"{self.before}[\"'\\ \t]{{0,12}}{lot}" if self.doubt >= 2 else self.before
        if self.doubt < 2:
            return rf"(?i)(?:{self.before}){_STAGE}[^\w-]"
        return rf"(?i)(?:(?:{self.before})(?:{_PARTED})|-[\w.-]*(?:{self.before})[\"',]{{0,2}}[ \t][\"']?){lot}"


_STAGE = r"(?:[_-]?(?:\d{1,2}|prod|dev|test|staging|main|old|new|primary|secondary))?"
_PASSWORD = (
    r"pass[-_]?word|(?:^|[^/])pass[-_]?wd|passcode|authtok|(?:^|[^a-z])psk|pass[-_]?phrase|passwort|pwd|[_-]pw|rediscli_auth|requirepass|masterauth|rootpw"
    r"|(?:db|database|smtp|mail|user|ssh|root|admin|redis|mysql|mongo|pg|postgres|http|proxy|ftp|ldap|login|bind|key|cert|auth|git|svn|vpn|sudo|registry|docker|stor(?:e|age))[_.-]?pass"
)
_SECRET = (
    r"(?:client|app|corp|consumer|signing|webhook|jwt|shared|oauth|encoding|token)[ ._-]?secret"
    r"|(?:^|[^:]|[^0-9]:)secret(?:[ ._-]?(?:(?:access[ ._-]?)?key|string|data|value))?|access[ ._-]?key[ ._-]?secret|secret[ _-]?id|[_-]sk|(?:totp|otp|mfa)[ _-]?seed"
)
_KEY = (
    r"(?:api|app(?:lication)?|access|account|token|session|cookie|jwt|auth(?:entication)?|priv(?:acy)?|encryption|encrypt|fernet|master|subscription|service|license|admin|private"
    r"|sign(?:ing)?|cert(?:ificate)?|storage|security|deploy|pre-?shared|webhook|send)[ ._-]?key(?:[ ._-]?id)?|(?:unseal|recovery)[ ._-]?key(?: \d{1,2})?|client-key-data"
)
_TOKEN = (
    r"(?:access|auth|refresh|secret|session|security|private|hub|hf|bot|api|id|bearer|identity|registry|personal|csrf|xsrf"
    r"|service|user|login|upload|github|gitlab|job|deploy|oauth|jwt|verification"
    r"|jupyter|notebook|dashboard|vault|wandb|comet|mlflow|neptune|clearml|swanlab|slack|discord|telegram|npm|pypi|codecov"
    r"|grafana|sentry|runner|ray)[ ._-]?token|_[cx]srf|[cx]srfmiddlewaretoken"
)
# Words that tell of secrets, in whatever sentence.
_TELLS = (
    r"(?:(?:api|access|auth|private|service|admin|secret|deploy|login|account|app)[ ._-]?keys?|tokens?|secrets?"
    r"|credentials?|creds|passw(?:or)?ds?|passphrase|bearer|webhook|secrets[ _]?manager|cookies?|authori[sz]e|authenticate)|密码|密钥|秘钥|私钥|令牌|凭证|口令"
)
_OPTIONS = r"[^\n|;&]*[ \t\"']"  # what may stand between a command and its option
_QUOTE = r"(?:[\"']|&#x27;|&#39;|&quot;)"
# Behind a name in XML: its value's tag, on the same line or the next.
_VALUE_BELOW = (
    r"(?:<|&lt;)/name(?:>|&gt;)(?:[ \t\r]{0,4}\n[^\n<&]{0,120}|\\{1,8}[nr][^\n<&]{0,40})?(?:<|&lt;)value(?:>|&gt;)"
)
_NEXT = r"[\"']?,?[ \t]"  # what parts two words of a command, or two members of a list


def _in_json(*names: str) -> str:
    """-> the pattern for names in Chinese and other languages, as they are and as JSON escapes them."""
    escaped = ["".join(char if char.isascii() else rf"\\{{1,8}}u{ord(char):04x}" for char in name) for name in names]
    return f"(?:{'|'.join([*names, *escaped])})"


_OTHER_LANGUAGES = (
    _in_json(
        "contraseña",
        "パスワード",
        "비밀번호",
        "암호",
        "пароль",
        "Пароль",
        "hasło",
        "şifre",
        "lösenord",
        "κωδικός πρόσβασης",
        "mật khẩu",
    )
    + "|mots? de passe|kennwort|senha|wachtwoord|salasana|adgangskode|heslo"
)


def _wide(*names: str) -> list[str]:
    """-> the names in letters of full width, small and capital."""
    every = [cased for name in names for cased in (name, name.title(), name.upper())]
    return ["".join(chr(ord(char) + 0xFEE0) for char in name) for name in every]


NAMED = (
    Named("password", _PASSWORD, "db_password=", assigned=True),
    Named("secret", _SECRET, "client_secret=", 1, assigned=True),
    Named("api-key", _KEY, "apiKey: ", 1, assigned=True),
    Named("token", _TOKEN, "auth_token=", 1, assigned=True),
    Named("token", "token", "TOKEN=", 2, 10, assigned=True),
    Named("credentials", r"credentials?|creds?|[\"'_;]auth|_auth_?token|dockerconfigjson|dockercfg", '"auth": ', 2, 12, assigned=True),
    Named("password", r"[a-z0-9][_.-](?:cred(?:ential)?s?|login)", "SVC_CRED=", reach="chosen", assigned=True),
    Named("token", r"x-[a-z-]{1,30}-(?:api|auth|key|token|secret|team)", "X-JFrog-Art-Api: ", 2, 16, assigned=True),
    Named("token", r"(?i)(?:^|[^\w-])x-(?:api|auth|access|app)-(?:key|token|secret)[\"']?: ?", "X-Api-Key: ", 0, 6),
    Named("password", r"passw(?:or)?d[_.-][a-z0-9]{2,12}", "password_mysql: ", reach="chosen", assigned=True),
    Named("secret", r"account[ ._-]key[a-z0-9_.-]{1,80}", "fs.azure.account.key.a.dfs.core.windows.net=", 2, 16, assigned=True),
    Named("code", r"(?:device|auth(?:orization)?|verification)[ _-]code", "device_code=", 2, 16, assigned=True),
    Named("secret", r"(?:token[_.-]|(?:secret|password)(?:[_.-]|(?-i:[A-Z0-9])))[a-z0-9_.-]{1,24}", "TOKEN_FOO=", 2, 16, assigned=True),
    Named("key", r"[a-z0-9][_-]key", "KAGGLE_KEY=", 2, 16, assigned=True),
    Named("key", r"[^\w-]key", " key = ", 3, 20, assigned=True),
    Named("key", r"[a-z0-9][_-]keys", "SESSION_KEYS=", 3, 20, assigned=True),
    Named("password", r"\w@[a-z0-9-]{1,60}\.[a-z0-9.-]{2,60} / ", "ann@a.org / ", reach="chosen"),
    Named("key", r"[a-z]key", "policykey = ", 3, 24, assigned=True),
    Named("token", r"[a-z0-9][_ .-]token|(?-i:[a-z]Token)", "webhook_token | ", reach="chosen", assigned=True),
    Named("cookie", r"[_-]cookie(?:-\d)?", "ERLANG_COOKIE=", 2, 16, assigned=True),
    Named("signature", r"[^\w-]signature", " Signature: ", 2, 32, assigned=True),
    Named("code", r"[^a-z](?:otp|mfa)(?:[ _-]?(?:code|token))?", " otp=", 1, assigned=True),
    Named("password", r"community[ _-]?strings?|snmp[_-]community", "community_string: ", 0, assigned=True),
    Named("token", r"[a-z0-9]_pat", "GITHUB_PAT=", 2, 16, assigned=True),
    Named("key", r"(?:[^\w](?:[as]k|[AS]K)|[A-Za-z]_(?:[as]k|[AS]K))[\"']?(?:[=:]|：)", "CLOUD_AK=", 2, 16),
    Named("key", r"--[as]k[\"',]{0,2} ", "openxlab login --ak ", 2, 16),
    Named("secret", r"Credentials?\([^()\n]{0,200}[ ,(]", "ClientSecretCredential(tenant, client, ", 2, 20),
    # An argument of a call that opens a connection or an account.
    Named(
        "secret",
        r"(?:Client|Auth|Session|Credentials?|Provider|Min[iI][oO]|[cC]onnect|Api|API|Hub|[lL]ogin|System|Storage|Resource|Signer"
        r"|Bot|Bucket|Key|Token|Secret)(?:[A-Z]\w{0,20}|_\w{1,20})?\([^()\n]{0,200}[ ,(\"'=;]",
        "Minio('minio:9000', '",
        3,
        20,
        apart=True,
    ),
    Named("password", rf"(?i)(?:connect|minio|login|auth)\w{{0,12}}\((?:{_QUOTE}[^\"'(),&\n]{{1,60}}{_QUOTE}, ?){{1,3}}(?:&#x27;|&quot;)?", "Minio('m:9000', 'ann', ", reach="chosen"),
    Named("password", r"[.]connect\((?:[^(),=\n]{1,60}, ?){2,3}(?:&#x27;|&#39;|&quot;)?", "ssh.connect('10.0.0.7', 22, 'root', '", 2, 8),
    Named("password", rf"{APART}pw|[_.]pass", "pw=", 1, assigned=True),
    Named("password", rf"{APART}pass", "pass=", 1, assigned=True, verb=True),
    Named("password", r"[a-z]Pass[\"']?[:=]", "dbPass=", 1),
    Named("password", _in_json("密码", "密碼", "口令"), "密码：", assigned=True),
    Named("password", _in_json("提取码", "访问码", "授权码", "鉴权码"), "提取码: ", assigned=True),
    # The word in other languages.
    Named(
        "password",
        _OTHER_LANGUAGES,
        "contraseña: ",
        1,
        assigned=True,
    ),
    Named("key", _in_json("密钥", "秘钥", "私钥", "令牌", "凭证"), "密钥", 3, 20),
    Named("key", _in_json("密钥", "秘钥", "私钥", "金鑰", "令牌", "凭证"), "访问密钥：", 1, assigned=True),
    # A name in one field and its value in the next, on the next line too.
    Named(
        "secret",
        rf"(?i)(?:name|id|key){_MARKS}[\w.-]*(?:secret|token|_key|{_KEY}|secret_?(?:key|id)|_[as]k|_pat){_MARKS}"
        rf"(?:\n[^\n]*[^\w\n])?[a-z_]{{0,20}}value{_MARKS}[=:]",
        '"name": "OSS_SECRET", "value": ',
        1,
    ),
    Named(
        "password",
        rf"(?i)(?:name|id|key){_MARKS}[\w.-]*(?:passw(?:or)?d|passphrase|_pass|psk|_pw|pwd){_MARKS}(?:\n[^\n]*[^\w\n])?[a-z_]{{0,20}}value{_MARKS}[=:]",
        '"name": "DB_PASSWORD", "value": ',
    ),
    Named(
        "password",
        r"(?i)(?:<|&lt;)[a-z][^<>\n]{0,80}[ ](?:type|name|id|key)=(?:[\\\"']|&quot;|&#x27;){0,6}[\w.:-]{0,30}(?:passw(?:or)?d|passphrase|pwd|secret|token|api_?key)[\w.-]{0,12}"
        r"(?:[\\\"']|&quot;|&#x27;){0,6}[ ][^<>\n]{0,80}value=",
        '<input type="password" id="p" value=',
        1,
    ),
    Named("password", rf"(?i)passw(?:or)?d{_VALUE_BELOW}", "<name>db.password</name>\n<value>"),
    Named("secret", rf"(?i)(?:secret|key|token){_VALUE_BELOW}", "<name>db.secret</name>\n<value>", 1, 8),
    Named("key", rf"(?i)key_?name[^\n]{{0,80}}[^\w\n]value{_MARKS}[:=]", '"keyName": "key1", "value": ', 2, 24),
    Named("kaggle-key", rf"username{_MARKS}[\w.@-]+{_MARKS}key{_MARKS}:", '"username": "ann", "key": ', 2, 16),
    # Letters of full width, as they come out of an input method that was left on.
    Named("password", _in_json(*_wide("password", "passwd", "pwd", "token", "secret")), "\uff50\uff41\uff53\uff53\uff57\uff44\uff1a", assigned=True),
    # What a server of mail or files is told.
    Named("password", r"AUTH (?:PLAIN|LOGIN|XOAUTH2)(?: challenge| reply)?(?: |:)", "AUTH PLAIN ", 2, 12),
    Named("password", r"AUTH (?:PLAIN|LOGIN)(?: challenge| reply)?(?: |: ?)", "AUTH LOGIN challenge: ", reach="chosen"),
    Named("password", r"[\"'>;-] ?PASS ", "*cmd* 'PASS ", 1, 4),
    Named("password", r"LOGIN [\w.@-]{1,60} ", 'LOGIN ann "', reach="quoted"),
    Named("password", r"LOGIN [\w.@-]{1,60} ", "a1 LOGIN ann ", reach="chosen"),
    Named("password", rf"(?i)(?:login|auth|smtp|imap|ftp)[^\n()]{{0,60}}\({_QUOTE}[^\"'\n]{{1,80}}{_QUOTE}, ?(?:&#x27;|&quot;)?", "login failed for ('ann', ", reach="chosen"),
    # What pydantic says of a field, whose name stands on the line above.
    Named("secret", rf"(?i)(?:passw(?:or)?d|passphrase|_pass|pwd|secret|_key|_pat|{_KEY}|{_TOKEN})(?:\n|\\{{1,8}}n)[^\n]{{0,200}}input_value=", "wandb_api_key\n  Too short [type=string_too_short, input_value=", 1),
    # .netrc, and properties that are parted from their value by a blank.
    Named("password", r"login[ \t]{1,4}\S{1,80}[ \t]{1,4}password[ \t]", "machine a.org login ann password "),
    Named("password", r"(?i)(?:login|user(?:name)?|account)[\"']?[:= ][ \t]{0,3}\S{1,80}[ \t]{1,4}(?:and )?pass(?:word|wd)?[ \t]", "login: ann password ", 1),
    Named("password", r"(?i)pass(?:word|phrase)(?: [a-z]{1,12}){1,3}: ", "password not accepted: ", 2, 8),
    # What was asked for, with what was typed.
    Named("password", r"(?i)pass(?:word|phrase) (?:[a-z]{1,12} ){0,3}for (?:key |user )?(?:'[^'\n]{1,120}'|[^\s:]{1,80})(?::| is)[ \t]", "Enter passphrase for key '/root/.ssh/id_rsa': ", 1),
    Named("password", r"(?:^[ \t]?|[\]|:>][ \t]?|[ \t]{2})password[ \t]", "  password ", 1, 6),
    Named("password", r"[a-z][._-](?:password|secret|token)(?:\t|[ ]{2})|[a-z][.](?:password|secret|token)[ ]", "hive.metastore.password ", 1, 6),
    Named("token", r"(?i)(?:token|secret|password|(?:api|access|signing)[ _-]?key) ", "auth failed for token ", 2, 24),
    Named("token", r"(?i)(?:token|secret|(?:api|access|signing)[ _-]?key) ", "user token ", 3, 16, apart=True),
    Named(
        "password",
        r"(?i)(?:(?:passw(?:or)?d|passphrase)(?: (?:was |has been )?(?:re)?(?:set|changed))?(?: from| to| as)?|密码(?:由|从|改为|是|为)?(?: [\w.@-]{2,20})?|口令|改为|[\w]{2,20}/(?:passw(?:or)?d|密码)(?: \w{2,20})?) ",
        "admin password ",
        reach="chosen",
    ),
    Named(
        "password",
        r"(?i)(?:passw(?:or)?ds?|passphrase|[^a-z]pwd)(?: [\w.@-]{1,30}){0,4}(?: is|: ?|=| -)",
        "password of the node n7 is ",
        reach="chosen",
    ),
    Named("password", r"(?i)(?:passw(?:or)?d|passphrase)(?: (?:is|was|to|set to|changed to)(?: be)?:? |: )[\"'`]?", "changed password to ", reach="chosen", announced=True),
    # Somewhere behind a word that tells of an account: letters of both cases, digits and a sign.
    Named(
        "password",
        r"(?i)(?:passw|pass[ =_-]|login|[^a-z]auth|user(?:name)?[^a-z]|credential|[^a-z]mount[ .])[^\n]{0,60}[ \t\"'=:,/(][A-Za-z0-9]{2,16}[!#$^*]",
        "openvpn --auth-user-pass ann Ab1!",
        reach="strong",
        apart=True,
    ),
    Named("password", r"(?i)set password for [^\n=]{1,80}= ?", "SET PASSWORD FOR 'ann'@'%' = ", reach="chosen", announced=True),
    Named("password", r"(?i)basic_?auth\w{0,4}[\"']?[ :=(]{1,3}[\"']?[A-Za-z][\w.@-]{0,40}:", "BasicAuth ann:", reach="chosen", announced=True),
    Named("password", r"(?i)(?:authenticate|login|connect)\([\w.@-]{1,40}, ?", "authenticate(ann, ", reach="chosen", announced=True),
    Named("password", r"[ \t]/(?:p|pw|pass|password)[:=]", "xfreerdp /u:ann /p:", reach="chosen"),
    Named("password", r"(?i)(?:tacacs|radius)[\w-]* (?:host \S+ )?key (?:\d )?", "tacacs-server key 7 ", reach="chosen"),
    Named("password", r"(?i)[\w-][.][\w-]{0,30}(?:password|secret|token)[ ]", "spark.ssl.keyPassword ", reach="chosen", announced=True),
    Named("password", r"(?i)(?:shared|client|common) secret ", "shared secret ", reach="chosen"),
    Named("password", r"(?i)(?:secret|passw(?:or)?d|-key) \d{1,2} (?:(?:md5|h?mac-?\S{1,12}|sha\S{0,8}) )?(?:\d )?", "username ann secret 0 ", reach="chosen"),
    Named("password", r"(?i)(?:passw(?:or)?d|secret) --?v(?:alue)?[ =]", "-n node.session.auth.password -v ", 0, 4),
    Named("password", r"(?i)passw(?:or)?d[^\n]{0,60}(?: to | \()", "password changed from - to ", reach="chosen"),
    Named("password", r"(?i)(?:passw(?:or)?d|[^a-z]pwd?|密码|口令) ?[(（](?:default:|默认[:：])?", "password(default:", reach="chosen"),
    Named("password", r"[^A-Za-z](?:PW|P/W)[ :)]", " PW ", reach="chosen"),
    Named("password", r"(?:[\"']|&#x27;|&quot;)-[pPk](?:[\"'\\]{1,9}|&#x27;|&quot;), ?(?:&#x27;|&quot;)?", "['clone', '-p', '", 3, 8),
    Named("password", r"(?i)passw(?:or)?d[^\n]{0,80} values ?\((?:[^\n]{0,80}[ ,'\"])?", "users (name, password) VALUES ('ann', '", 2, 8),
    Named("key", r"[^\w]KEY[\"']?(?:=|: ?)", "qsub -v KEY=", 2, 32),
    Named("wandb-key", r"wandb[\"']?(?:[=:] ?| )[\"']?", "--use_wandb ", 2, 40, apart=True),
    Named("token", r"[a-z]Key ", "Authorization: GenieKey ", 2, 32, apart=True),
    Named("session", r"[a-z0-9]_session", "BW_SESSION=", 3, 32, assigned=True),
    Named("secret", r"(?:<|&lt;){3} ?", "pass insert wandb <<< ", 2, 20),
    Named("api-key", r"(?:to quit|hit enter):", "or press ctrl+c to quit: ", 2, 20),
    Named("key", r"(?i)(?:with|using|used|use|your|my|the|is)(?: api)? key ", "Login with key ", 2, 20),
    Named("key", r"(?:^|[^\w-])key (?:#\d{1,3} )?\(?", "munge: key ", 3, 24, apart=True),
    Named("key", r"(?i)[^\w-]key (?:is|was):? ", " key is ", 2, 32, apart=True),
    Named("key", r"(?i)[a-z0-9][_-](?:key|pat)(?: is| was| set to)? ", "STEPFUN_KEY set to ", 3, 20, apart=True),
    # The columns of a list that nothing parts but blanks or a tab.
    Named("secret", r"(?i)[a-z0-9][_-](?:token|key)(?:\t|\\{1,8}t|[ ]{2,60})", "GROQ_KEY\t", 2, 12, apart=True),
    Named("password", rf"(?i)(?:{_PASSWORD}|_pass)\\{{1,8}}t", "MONGO_PASS\\t", 1, 6),
    # Somewhere behind a word that tells of secrets: what nobody would make up, and behind the surest also what may be a digest.
    Named("secret", rf"(?i)(?:{_TELLS})[^\w\n](?:[^\n]{{0,40}}[^A-Za-z0-9\n])?", "the token that was sent to the server: ", 4, 16, apart=True),
    Named(
        "secret",
        r"(?i)(?:api[ _-]?key|secret|password|access[ _-]?key|(?:access|auth|api|hub|hf)[ _-]?token|(?:jwt|hmac|munge|psk|keytab|cipher|skpath|shared|encryption|signing|session|private|master|secret)[ \w:]{0,12} key)s?"
        r"[^\w\n](?:[^\n]{0,50}[^0-9a-f\n])?",
        "API key must have 40 characters, yours has 38: ",
        5,
        32,
        apart=True,
    ),
    Named(
        "key",
        r"(?i)(?:wandb|swanlab|comet|kaggle|openai|login|tracker|account|credentials?)(?:[^a-z\n][^\n]{0,100})?(?:[^a-z-]|--)key[\"']?[=: ]{1,2}",
        "tracker.login.key=",
        2,
        20,
        apart=True,
    ),
    Named("password", r"(?i)(?:one-time|temporary|initial|generated|default|sudo|with|using|and|the|your|wrong) (?:password|passphrase) ", "one-time password ", 2, 8),
    Named("secret", r"(?i)(?:totp|otp|mfa)[ _-]?(?:seed|secret|key) ", "TOTP seed ", 2, 16),
    Named("password", r"(?:bindpw|rootbindpw|rootpw)[ \t]", "bindpw ", 1, 6),
    Named("password", r"(?:snmp[\w-]*|r[ow])[ ]?community6? ", "snmp-server community ", 1),
    Named("api-key", r"(?i)api key provided:", "Incorrect API key provided: ", 1),
    # What is asked of a server, and what is answered.
    Named("authorization", r"(?:proxy-)?authorization", "Authorization: ", assigned=True, reach="header"),
    Named("bearer-token", r"(?i)bearer(?: |%20)", "Bearer ", 6, 12),
    Named("authorization", r"(?i)basic (?:auth )?", "auth_Basic ", 3, 16),
    Named("cookie", r"(?:set-)?cookie", "Cookie: ", assigned=True, reach="line"),
    Named("signature", r"(?i)[?&;](?:q-)?(?:signature|sign?)=", "?Signature=", 2, 16),
    Named("signature", r"(?i)x-(?:amz|goog|oss|tos|cos|obs)-(?:signature|security-token|credential)[=:]", "X-Amz-Signature=", 2, 16),
    Named("access-key-id", r"(?i)(?:access_?key_?id|q-ak)=", "OSSAccessKeyId=", 1, 12),
    Named("token", r"(?i)[?&](?:access_token|api_?key|auth|token|key|code)=", "?key=", 2, 16),
    Named("token", r"[?&]authz=", "?authz=", 0, 6),
    # What stands on command lines.
    Named("password", rf"mysql[\w.-]*{_OPTIONS}-p", "mysql -u root -p", reach="attached"),
    Named("password", rf"(?:sshpass|(?:un)?zip|twine|p4|mongo\w*|cqlsh|ipmi[\w-]+|racadm|sqlcmd|beeline){_OPTIONS}-[pP]{_NEXT}", "sshpass -p "),
    Named("secret", rf"[ \t]login{_OPTIONS}-[kpt]{_NEXT}", "swanlab login -k ", 1),
    # Whatever the command: an option of one letter, and what nobody would make up.
    Named("secret", rf"[ \t\"']-(?:[kpsPKT]|-key)(?:=|{_NEXT})", "obsutil config -k=", 3, 20),
    Named("password", rf"(?:docker|podman|skopeo|helm|nerdctl|crane|oras|az|oc)[\w -]*login{_OPTIONS}-p{_NEXT}", "docker login -u ann -p "),
    Named("password", rf"(?:sshpass|7z\w?|rar){_OPTIONS}-h?p", "sshpass -p", reach="attached"),
    Named("password", rf"openssl [\w-]+{_OPTIONS}-[kK]{_NEXT}|snmp[a-z]+{_OPTIONS}-[cAX]{_NEXT}", "openssl enc -k "),
    Named("token", rf"curl{_OPTIONS}-u{_NEXT}", "curl -u ", 2, 20),
    Named("password", rf"redis-cli{_OPTIONS}-a{_NEXT}", "redis-cli -h cache -a "),
    Named("password", rf"(?:ldap[a-z]+|ipa[\w-]*|ds\w+|realm|adcli){_OPTIONS}-[ws]{_NEXT}", "ldapsearch -w "),
    Named("password", rf"ssh-keygen{_OPTIONS}-[NP]{_NEXT}", "ssh-keygen -N "),
    Named(
        "password",
        rf"curl{_OPTIONS}(?:-[A-Za-z]*u|--(?:proxy-)?user)[=\"', \t]*[^\s:\"']*:",
        "curl -u ann:",
    ),
    Named("password", r"[ \t\"']-u[ =]?[A-Za-z][\w.@-]{0,60}:", "redfish -u ann:", 2, 8),
    Named("password", r"[ \t\"']-u[ =]?[A-Za-z][\w.@-]{0,60}:", "ntfy -u ann:", reach="chosen"),
    Named("password", r"--[\w-]{0,20}(?:user|auth|creds?)[ =][\"']?[^\s:\"']{1,80}:", "--user ann:", 1),
    Named("password", rf"smbclient{_OPTIONS}(?:-U|--user)[ =]?[^\s%]+%", "smbclient -U ann%"),
    Named("password", r"[ \t\"']-U[ =]?[A-Za-z][\w.\\-]{0,60}%", "net ads join -U ann%", 6, 3),
    Named("password", r"(?i:setuser) [^\n]{0,80}[ \"'](?:>|&gt;)", "ACL SETUSER ann on >", 0, 4),
    Named("token", rf"{APART}join [\w.:-]{{1,80}}/", "join 10.0.0.1:25000/", 2, 24),
    Named("password", r"(?:requirepass|masterauth|auth-pass \S+) ", "requirepass "),
    Named("password", r"(?i)(?:identified (?:with \S{1,80} )?(?:by|as)|with password) ", "IDENTIFIED BY '", reach="quoted"),
    Named("password", r"(?i)securestring(?: -string)? ", 'ConvertTo-SecureString "', reach="quoted"),
    Named("password", rf"{APART}AUTH[\"']? (?:[\"']?default[\"']? )?", "AUTH ", 1, 6),
    # A user's name and a password before a host, without a scheme.
    Named("password", r"[^\s:@/\"'<>]@[a-z0-9][a-z0-9-]{0,60}\.[a-z0-9.-]{1,80}:\d", "ann:", reach="address"),
    Named("password", r"(?i)(?:ftp|sqlplus|[ei]mpdp|prox(?:y|ies)|:thin)[\"']?[ :=][^\n|;&@]{0,80}[:/][^\s@\"'<>/]{1,80}@/{0,2}[a-z0-9]", "sftp bob:", reach="login"),
    Named("password", rf"{APART}lftp{_OPTIONS}-u {{0,3}}[^\s,]+,", "lftp -u ann,"),
    Named("secret", r"Secret(?:Str|Bytes)\(", "SecretStr("),
    Named("password", rf"(?i){APART}(?:set(?:env|x)?|env|arg) (?:-\w+ )?[\w.]*(?:passw(?:or)?d|passphrase|_pass|_pwd?|_psk|token|secret|_key) ", "set -x PGPASSWORD ", 1),
    Named("api-key", r"(?:login|init)\((?:[^()\n]*, ?)?key=", "wandb.login(key=", 2, 16),
    Named("token", r"login\((?:&#x27;|&#39;|&quot;)?", "HubApi().login('", 2, 16),
    # Both in one: `id/pw: ann/…`.
    Named(
        "password",
        r"(?i)(?:user(?:name)?|login|account|账号|账户|用户名) ?[/(] ?(?:pw|pwd|pass(?:word|wd)?|密码|口令)\)? ?(?:[:=]|为|是|：) ?[\w.@$-]{1,60} ?[/:,]",
        "user/pass = ann/",
        0,
        4,
    ),
    Named("password", r"(?i)(?:log|sign)(?:ged)?[ -]?in(?: ?(?:in)?to \S{1,60}| at \S{1,60})?(?: with| as| using|:)? [\w.@-]{3,60} ?[:/] ?", "Log in as ann:", reach="chosen"),
    Named(
        "password",
        r"(?i)(?:basic auth|credentials|登录|(?:id|user(?:name)?|login|account|账号|账户|用户名) ?[/(] ?(?:pw|pwd|pass(?:word|wd)?|密码|口令))\)?"
        r"(?:[ ]?(?:[:=(-]>?|is|are|为|是|：)[ ]?|[ ])[\w.@$-]{1,60}[ ]?(?:[/:,(]|//)[ ]?",
        "ID/PW: ann/",
        1,
    ),
    Named("api-key", r"(?i)\bkey for [\w.-]+(?: to [\w.-]+)?:", "Appending key for api.wandb.ai: ", 2, 16),
    Named("password", r"-pass(?:in|out)?[\"' ,=]{1,4}pass:", "openssl -passin pass:"),
    Named("password", rf"rclone{_NEXT}[\"']?obscure{_NEXT}", "rclone obscure "),
    Named("password", rf"{APART}echo (?:-n )?", "echo ", 0, 4, reach="piped"),
    Named("password", rf"(?i)pass(?:word|phrase|wd)?[\w-]{{0,20}}{_QUOTE}?[=: ,]{{1,3}}{_QUOTE}?(?:/bin/)?echo (?:-n )?", "--password-command 'echo ", 0, 4),
    Named("password", r"(?:sudo -\w*S|(?:^|[^h])passw(?:or)?d|kinit|[-_]stdin|cryptsetup|ssh-add|secrets? |\bread -\w*s)[^\n]{0,80}(?:<|&lt;){3} ?", "kinit ann <<< ", 0, 4),
    Named("password", r"[\w.*-]:(?:5432|5433|6432|\*):[\w*-]{1,60}:[\w.@-]{1,60}:", "db1:5432:runs:ann:", 0, 4),
    Named("password", r"(?:<|&lt;)\(echo (?:-n )?", "sshpass -f <(echo ", 6, 6),
    Named("password", r"chpasswd ?(?:<|&lt;){2,3} ?(?:&quot;|&#x27;|[\\\"']{0,4})[^\s:\"'&]{1,60}:", "chpasswd <<< ann:", 1, 6),
    Named("password", r"(?:addauth digest|digest auth) [^\s:]{1,60}:", "addauth digest ann:"),
    Named("wandb-key", r"wandb[\"',]{0,2} [\"']?login(?:[\"',]{0,2} [\"']?--?[\w=:/.-]{1,80}){0,3}[\"']?,? ", "wandb login ", 2, 30),
    Named(
        "password",
        rf"{APART}(?:mc (?:alias set|(?:config )?host add) \S+ \S+ \S+|net use \S+ \S+|weka user login \S+|htpasswd (?:-\w+ ){{0,4}}-\w*b\w* (?:-\w+ ){{0,4}}[^\s-]\S* \S+|wpa_passphrase \S+|openssl passwd (?:-\S+ ){{0,4}}-\d|mkpasswd -m \S+|xauth add \S+ \S+"
        r"|rabbitmqctl (?:add_user|change_password) \S+|poetry config http-basic\S+ \S+) ",
        "mc alias set minio http://m:9000 admin ",
    ),
    Named("secret", rf"(?:config(?:ure)?|remote modify| set)(?: [\w./:@=-]{{1,60}}){{0,5}} [\w.-]*(?:passw(?:or)?d|secret)[\w.-]*{_NEXT}", "dvc remote modify store password ", 1),
    # A token that a command or a shell's trace shows alone.
    Named("token", rf"[ \t\"']login{_NEXT}", "vault login ", 3, 20),
    Named("secret", r"[ \t'\"]\[{1,2}['\"]? (?:-[nz] )?", "+ [[ -n ", 3, 20),
    # A call that is named so.
    Named("password", r"(?i)(?:passw(?:or)?d|passphrase)\((?:&#x27;|&quot;)?", "SET PASSWORD FOR ann = PASSWORD('", reach="chosen"),
    Named("secret", r"(?i)(?:token|secret|api_?key|passw(?:or)?d)\(", 'config.setApiKey("', 2, 16),
    # The secret that belongs to an id of known form.
    Named("secret", rf"(?:AKIA|ASIA|LTAI|AKID|AKLT)\w{{12,60}}{_MARKS}", "ODPS('LTAI5tabcdefghijkl', '", 2, 30),
    Named("secret", r"put-parameter[^\n]{0,120}--value[= ]", "aws ssm put-parameter --name a --value ", 1, 6),
    Named("secret", r"::add-mask::", "::add-mask::", 0, 4),
    Named("webhook", r"(?:企业微信|钉钉|飞书|机器人)[^\n]{0,30}(?:key|token|secret)(?:[=:]|：) ?", "企业微信 key=", 2, 16),
    Named("secret", r"--from-literal=[\w.-]{1,80}=", "--from-literal=api=", 1),
    Named("secret", rf"configure{_NEXT}[\"']?set{_NEXT}[\"']?\w*(?:secret|key|token)\w*{_NEXT}", "aws configure set aws_secret_access_key ", 1),
    Named("secret", rf"(?:oss|obs|tos|odps)(?:util|cmd)\w*{_OPTIONS}-[kp](?:=|{_NEXT})", "ossutil config -k ", 1),
    Named("password", r"(?:BasicAuth|DigestAuth|[.](?:login|(?:Sts)?Auth))\([^,()\n]+,", "auth = HTTPBasicAuth('ann', '", reach="quoted"),
    Named("password", r"(?:auth|creds?|credentials|login)[\"']? ?[=:] ?[(\[]{1,2}[^,()\[\]\n]{1,80},", "auth=('ann', '", reach="quoted"),
    Named("password", rf"(?i)(?:login|sign_?in|auth|authenticate|bind|\w(?:pw|passw(?:or)?d|cred)\w*)\({_QUOTE}[^()\"'\n]{{1,80}}{_QUOTE}, ?", "ldapLogin('ann', '", reach="chosen"),
    # An option of one letter, or of a short word, in a command that names a user, too.
    Named("password", rf"[ \t\"']-(?:[pPwWkKaAXs]|-?(?:pw|pass|secret|key))(?:=|{_NEXT})", "ncftpput -u ann -p ", reach="beside"),
    Named("password", r"(?:auth|token)[\"']?[=:] ?[\"']?(?:root|admin|user):", "token='root:", 2, 8),
    Named("password", r"(?:auth|token)[\"']?[=:] ?[\"']?(?:root|admin|user):", "token=root:", reach="chosen"),
    Named("password", r"(?i)_(?:auth|basic|login|userpass|credentials?)[\"']?(?:=|: ?)[\"']?[\w.@-]{1,40}[/:]", "NEO4J_AUTH=neo4j/", 6, 3),
    # Prose.
    Named("password", r"(?i) (?:is|as) (?:the|your|my|our) (?:password|passphrase|secret|token|api key)", "", 1, reach="before"),
    # An address in percent signs.
    Named("password", r"(?i)%3a%2f%2f[\w.-]{0,80}%3a", "url=https%3A%2F%2Fann%3A", reach="percent"),
)  # fmt: skip

# A password, or a token in its place, in an address: from its scheme to an @.
ADDRESS = r"://[^\s/@\"'<>`]{0,120}(?::[^\s\"'<>`]{0,250})?@"
# A token of an issuer that has no row: a short word, then letters and digits that nobody would write. What Hyperscan sees of
# it, where letters of both cases and digits change places (which costs it half of what the word before would), and the
# byte behind it; the whole.
UNLISTED = r"[a-z0-9][A-Z][A-Za-z]{0,9}[0-9][A-Za-z0-9]{8,}(?:[^A-Za-z0-9]|\z)"
UNLISTED_WHOLE = r"(?<![A-Za-z_-])[A-Za-z][A-Za-z0-9]{1,11}[_-](?:[A-Za-z0-9]{1,8}[_-])?([A-Za-z0-9]{30,})\Z"
# What stands over a block of YAML whose values are secrets, whatever their names; and over a manifest's data.
MAPPING = r"(?i)(?:^|[^\w.-])(?:stringData|secrets?|credentials)[\"']?:[ \t\r]{0,4}$"
MANIFEST = r"(?:apiVersion: v1|kind: Secret|type: Opaque)[ \t\r]{0,4}\n[^\n]{0,200}data:[ \t\r]{0,4}$"
KEY_BEGINS = r"-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----"
KEY_ENDS = r"-----END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----"
# A sentence that announces a secret, which stands alone on one of the next lines.
LABEL = r"(?i)(?:passw(?:or)?d|passphrase|api[ _-]?key|(?:access|auth|api|login)[ _-]?token|secret[ _-]?key) [^\n\"'={}]{2,100}:[ \t\r]{0,4}$"
# A command that decodes one.
DECODES = r"(?i)(?:passw(?:or)?d|secret|token|key)[^\n]{0,80}base64 (?:-d|--decode)[ \t\r\"')]{0,4}$"
# Behind a name with nothing more on its line: of a block of YAML, of a value on the next line, of a table's column.
OPENS = (
    r"[\"']?(?:(?P<cell>[,;\t]|[ ]{0,40}(?:[|&]|!!|\xe2\x94[\x82\x83]|\xe2\x95\x91)|</t[hd]>|[ ]{2,60}[^\s]|[ \r]{0,2}$)"
    r"|[ \t]{0,4}(?:[:=>]|\xef\xbc\x9a)[ \t]{0,4}(?:!!?\w+[ ])?(?P<block>[|>][-+]?\d?)?[ \t\r]{0,4}$)"
)
# The names of that kind which Hyperscan otherwise finds only with a value drawn by lot behind them.
OPENING = rf"(?i)(?:token|[a-z0-9][_-](?:key|pat)|dockercfg|dockerconfigjson){OPENS}"
CELL = (
    rf"(?i)(?:({_PASSWORD}|{APART}pass|[_.-]pass|密码|密碼|口令|{_OTHER_LANGUAGES})|{_SECRET}|{_KEY}|[\w]token|token|[_-]pat"
    r"|密钥|秘钥|私钥|金鑰|令牌|凭证)[\"'`* \r]*\Z"
)
