"""What secrets look like. A pattern's first group, where it has one, stays: the name in `name=secret`.

The forms are the ones that their issuers publish, or that scanners of code hosts know them by.
"""

from __future__ import annotations

# Known by their own form, whatever stands before them. The last counted repetition is the secret's own.
FORMS = (
    r"\b(?:hf|api_org)_[A-Za-z0-9]{20,}",  # Hugging Face
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",  # GitHub
    r"\bgithub_pat_\w{20,}",
    r"\bgl(?:pat|ptt|dt|rt|cbt|ft|soat|agent)-[\w-]{18,}",  # GitLab
    r"\bxox[abeprs]-[\w-]{10,}",  # Slack
    r"\bxapp-\d-[\w-]{10,}",
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[\w/]{10,}",
    r"\bsk-[\w-]{20,}",  # OpenAI, Anthropic, DeepSeek, and others that took the form over
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",  # AWS
    r"\bAIza[\w-]{35}",  # Google
    r"\bGOCSPX-[\w-]{20,}",
    r"\bya29\.[\w-]{20,}",
    r"(?i)(\bAccount[_-]?Key=)[A-Za-z0-9+/]{40,}=*",  # Azure
    r"([?&]sig=)[A-Za-z0-9%+/]{20,}",
    r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{5,}",  # JSON web tokens, those of Kubernetes too
    r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
    r"\bSG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
    r"\bkey-[0-9a-f]{32}",  # Mailgun
    r"\bnpm_[A-Za-z0-9]{30,}",
    r"\bpypi-[\w-]{32,}",
    r"\bdo[opr]_v1_[0-9a-f]{40,}",  # DigitalOcean
    r"\bdapi[0-9a-f]{32}",  # Databricks
    r"(discord(?:app)?\.com/api/webhooks/)\d{15,22}/[\w-]{20,}",
    r"\b\d{8,10}:AA[\w-]{33}",  # Telegram
    r"\bdckr_(?:pat|oat)_[\w-]{20,}",  # Docker Hub
    r"\bgl(?:c|sa)_[A-Za-z0-9+/=_]{20,}",  # Grafana
    r"\bhv[bsr]\.[\w-]{20,}",  # Vault
    r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}",  # Terraform
    r"\blin_(?:api|oauth)_[A-Za-z0-9]{20,}",  # Linear
    r"\bntn_[A-Za-z0-9]{30,}",  # Notion
    r"\bPMAK-[0-9a-f-]{20,}",  # Postman
    r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",  # Shopify
    r"\bsntry[su]_[A-Za-z0-9+/=_]{20,}",  # Sentry
    r"(https?://)[0-9a-f]{32}@",  # its addresses hold a key
    r"\bNRAK-[A-Z0-9]{20,}",  # New Relic
    r"\bwandb_v1_\w{20,}",
    r"(\bwandb login (?:--relogin )?)[0-9a-zA-Z_]{30,}",
    r"\br8_[A-Za-z0-9]{30,}",  # Replicate
    r"\bgsk_[A-Za-z0-9]{30,}",  # Groq
    r"\bpplx-[A-Za-z0-9]{30,}",  # Perplexity
    r"\bxai-[A-Za-z0-9]{40,}",
    r"\bnvapi-[\w-]{30,}",  # NVIDIA
    r"\bLTAI[A-Za-z0-9]{12,}",  # Alibaba
    r"\bAKID[A-Za-z0-9]{28,}",  # Tencent
    r"\bAKLT[\w-]{20,}",  # Volcengine
    r"\bbce-v3/ALTAK-[\w/-]{20,}",  # Baidu
    r"(/open-apis/bot/v2/hook/)[\w-]{20,}",  # Feishu
    r"(\baccess_token=)[\w.-]{20,}",  # DingTalk and whatever else takes it in the address
    r"(/cgi-bin/webhook/send\?key=)[\w-]{20,}",  # WeCom
    r"\bAGE-SECRET-KEY-1[A-Z0-9]{20,}",
    r"\bops_eyJ[\w+/=-]{20,}",  # 1Password
    r"\bdp\.(?:pt|st|ct|sa)\.[\w.-]{20,}",  # Doppler
    r"\bsbp_[0-9a-f]{40,}",  # Supabase
    r"\bpscale_(?:tkn|pw|oauth)_[\w.-]{20,}",  # PlanetScale
    r"\bFlyV1 fm\d_[\w+/=,-]{20,}",
    r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{40,}",  # Airtable
    r"\bfig[dou]_[\w-]{20,}",  # Figma
    r"\btt_[\w-]{43}",  # torchtriage itself
    r"(://[^\s:/@\"']{0,64}:)[^\s:/@\"']{3,}@",  # a password in an address
    r"(?i)(\bbearer )[\w.~+/-]{12,}=*",
    r"(?i)(\bauthorization[\"']?\s?[:=]\s?[\"']?(?:basic|token) )[\w.~+/-]{8,}=*",
    r"(?i)(\b(?:set-)?cookie: )[^\n]{8,}",
    r"(?i)(\bx-(?:api-key|auth-token|amz-security-token|goog-api-key): ?)[^\s\"']{8,}",
    r"(?i)(\blogin \S{1,64} password )[^\s]{3,}",  # .netrc
)

# Known by the name before them; what looks like no secret (a number, None) is left.
NAMED = (
    # A variable of the environment.
    r"(\b[A-Z][A-Z0-9_]{0,60}(?:_KEY|KEY_ID|_SECRET|TOKEN|PASSWORD|PASSWD|_PWD|_PASS|PASSPHRASE|CREDENTIALS)"
    r"\\?[\"']?\s{0,2}[=:]\s{0,2}\\?[\"']?)([^\s\"',;&\\]{6,})",
    # An option, a field or an argument.
    r"(?i)((?:^|[^a-z])(?:api[_-]?key|api[_-]?token|access[_-]?key|secret[_-]?key|secret[_-]?access[_-]?key|secret"
    r"|client[_-]?secret|(?:access|auth|refresh|session|security|private|hub|hf|bot|use_auth)[_-]?token|passw(?:or)?d|passphrase"
    r"|pwd|private[_-]?key|credentials?)\\?[\"']?\s{0,2}[=:]\s{0,2}\\?[\"']?)([^\s\"',;&\\]{6,})",
    r"(?i)(--(?:api[_-]?key|token|hf[_-]?token|secret|passw(?:or)?d|wandb[_-]?(?:api[_-]?)?key)[ =][\"']?)([^\s\"',;&\\]{6,})",
    r"(?i)((?:^|[^\w.])token\\?[\"']?\s{0,2}[=:]\s{0,2}\\?[\"']?)([\w.~+/-]{20,}=*)",
)
KEY_BEGINS = r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----"
KEY_ENDS = r"-----END [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----"
