"""Secrets as the services that issue them made them, and what could be one at all.

Every shape has a few letters that must be in the text before it is looked for, and every part of every pattern is
bounded. So most texts cost nothing, and time grows with the text and no faster.
"""

# ruff: noqa: E501 -- a pattern reads best in one piece, and people write in many alphabets

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import log2

from scrubjay.values.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in a text: what it is, and where."""

    what: str
    start: int
    end: int


PASSWORD, TOKEN, PIN = "a password", "a token by its name", "a PIN"
OTHERS = frozenset({PASSWORD, TOKEN, PIN, "a card number", "a private key"})


def secrets_by_shape(text: str) -> Iterator[Secret]:
    """What looks like a key that some service issued, a card number or a private key."""
    for what in find_due_shapes(text):
        for found in COMPILED[what].finditer(text):
            if _is_real(what, found[1]):
                yield Secret(what, found.start(1), found.end(1))
    yield from _cards_in(text)
    if "PRIVATE KEY" in text:
        yield from _private_keys_in(text)


# --- by their shape --------------------------------------------------------------------------------------------------

# What a text must hold at least one of to be looked at closely, and the shape; its group is the secret itself.
SHAPES: dict[str, tuple[tuple[str, ...], str]] = {
    "an AWS access key": (("AKIA", "ASIA", "ABIA", "ACCA"), r"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b"),
    "a GitHub token": (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\b(gh[pousr]_[A-Za-z0-9]{36,255})\b"),
    "a fine-grained GitHub token": (("github_pat_",), r"\b(github_pat_[A-Za-z0-9_]{22,255})\b"),
    "a GitLab token": (
        ("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glsoat-"),
        r"\b(gl(?:pat|ptt|dt|rt|cbt|soat)-[A-Za-z0-9_-]{20,64})\b",
    ),
    "a Slack token": (("xox",), r"\b(xox[abeoprs]-[A-Za-z0-9-]{10,250})\b"),
    "a Slack app token": (("xapp-",), r"\b(xapp-\d-[A-Z0-9]+-\d+-[a-z0-9]{32,})\b"),
    "a Slack webhook": (
        ("hooks.slack.com",),
        r"(https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/]{30,90})",
    ),
    "a Discord webhook": (("/api/webhooks/",), r"(https://discord(?:app)?\.com/api/webhooks/\d{15,20}/[\w-]{60,80})"),
    "a Stripe key": (("k_live_",), r"\b([rs]k_live_[A-Za-z0-9]{16,99})\b"),
    "a webhook signing secret": (("whsec_",), r"\b(whsec_[A-Za-z0-9+/]{24,64})"),
    "an Anthropic key": (("sk-ant-",), r"\b(sk-ant-[A-Za-z0-9_-]{24,200})"),
    "an OpenAI key": (("sk-",), r"\b(sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,200})"),
    "a Google API key": (("AIza",), r"\b(AIza[A-Za-z0-9_-]{35})(?![A-Za-z0-9_-])"),
    "a Google OAuth token": (("ya29.",), r"\b(ya29\.[A-Za-z0-9_-]{20,300})"),
    "a Google client secret": (("GOCSPX-",), r"\b(GOCSPX-[A-Za-z0-9_-]{24,40})"),
    "an npm token": (("npm_",), r"\b(npm_[A-Za-z0-9]{36})\b"),
    "a PyPI token": (("pypi-",), r"\b(pypi-[A-Za-z0-9_-]{50,300})"),
    "a Hugging Face token": (("hf_", "api_org_"), r"\b((?:hf|api_org)_[A-Za-z0-9]{30,60})\b"),
    "a SendGrid key": (("SG.",), r"\b(SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64})"),
    "a Mailgun key": (("key-",), r"\b(key-[0-9a-f]{32})\b"),
    "a Mailchimp key": (("-us",), r"\b([0-9a-f]{32}-us\d{1,2})\b"),
    "a Twilio key": (("SK",), r"\b(SK[0-9a-f]{32})\b"),
    "a Telegram bot token": ((":AA",), r"\b(\d{8,10}:AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"),
    "a Discord token": ((".",), r"([MNO](?<!\w[MNO])[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})\b"),
    "a DigitalOcean token": (("_v1_",), r"\b(do[opr]_v1_[0-9a-f]{64})\b"),
    "a Shopify token": (("shpat_", "shpca_", "shppa_", "shpss_"), r"\b(shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32})\b"),
    "a Square token": (("sq0",), r"\b(sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43})"),
    "a Databricks token": (("dapi",), r"\b(dapi[0-9a-f]{32}(?:-\d)?)\b"),
    "a Linear key": (("lin_api_",), r"\b(lin_api_[A-Za-z0-9]{32,48})\b"),
    "a Notion token": (("secret_", "ntn_"), r"\b((?:secret|ntn)_[A-Za-z0-9]{40,50})\b"),
    "a Grafana token": (("glsa_", "glc_"), r"\b(gl(?:sa|c)_[A-Za-z0-9+/=_]{30,400})"),
    "a New Relic key": (("NRAK-",), r"\b(NRAK-[A-Z0-9]{27})\b"),
    "a Vault token": (("hvb.", "hvs.", "hvr."), r"\b(hv[bsr]\.[A-Za-z0-9_-]{24,200})"),
    "a Docker token": (("dckr_pat_",), r"\b(dckr_pat_[A-Za-z0-9_-]{24,40})"),
    "a Terraform token": ((".atlasv1.",), r"\b([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,80})"),
    "a Doppler token": (("dp.",), r"\b(dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9.]{40,60})\b"),
    "a Postman key": (("PMAK-",), r"\b(PMAK-[0-9a-f]{24}-[0-9a-f]{34})\b"),
    "a Figma token": (("figd_",), r"\b(figd_[A-Za-z0-9_-]{40,50})"),
    "a Groq key": (("gsk_",), r"\b(gsk_[A-Za-z0-9]{40,64})\b"),
    "an xAI key": (("xai-",), r"\b(xai-[A-Za-z0-9]{60,100})\b"),
    "a Perplexity key": (("pplx-",), r"\b(pplx-[A-Za-z0-9]{32,64})\b"),
    "a Replicate token": (("r8_",), r"\b(r8_[A-Za-z0-9]{32,44})\b"),
    "an NVIDIA key": (("nvapi-",), r"\b(nvapi-[A-Za-z0-9_-]{48,80})"),
    "a LangSmith key": (("lsv2_",), r"\b(lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{6,16})\b"),
    "a Pinecone key": (("pcsk_",), r"\b(pcsk_[A-Za-z0-9_]{40,90})\b"),
    "a Supabase key": (("sbp_", "sb_secret_"), r"\b(sbp_(?:v0_)?[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,60})"),
    "a Sentry token": (("sntrys_", "sntryu_"), r"\b(sntrys_[A-Za-z0-9+/=_-]{40,500}|sntryu_[0-9a-f]{60,70})"),
    "an Atlassian token": (("ATATT3", "ATCTT3", "ATBB"), r"\b(AT[AC]TT3[A-Za-z0-9_=-]{40,400}|ATBB[A-Za-z0-9]{28,40})"),
    "a Tailscale key": (
        ("tskey-",),
        r"\b(tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,40}(?:-[A-Za-z0-9]{16,64})?)\b",
    ),
    "a Cloudflare key": (("v1.0-",), r"\b(v1\.0-[0-9a-f]{24}-[0-9a-f]{100,160})\b"),
    "a Fly token": (("fm1", "fm2_", "fo1_"), r"\b((?:fm1[ar]_|fm2_|fo1_)[A-Za-z0-9+/=_-]{40,500})"),
    "a Netlify token": (("nfp_",), r"\b(nfp_[A-Za-z0-9]{36,44})\b"),
    "a PlanetScale token": (("pscale_",), r"\b(pscale_(?:tkn|pw|oauth)_[A-Za-z0-9._-]{32,64})"),
    "a RubyGems key": (("rubygems_",), r"\b(rubygems_[0-9a-f]{48})\b"),
    "a Pulumi token": (("pul-",), r"\b(pul-[0-9a-f]{40})\b"),
    "a CircleCI token": (("CCIPAT_",), r"\b(CCIPAT_[A-Za-z0-9]{16,30}_[0-9a-f]{40})\b"),
    "a Buildkite token": (("bkua_",), r"\b(bkua_[0-9a-f]{40})\b"),
    "an Airtable token": (("pat",), r"\b(pat[A-Za-z0-9]{14}\.[0-9a-f]{64})\b"),
    "a SonarQube token": (("sqp_", "squ_", "sqa_"), r"\b(sq[pua]_[0-9a-f]{40})\b"),
    "a Resend key": (("re_",), r"\b(re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,30})\b"),
    "a 1Password token": (("ops_eyJ",), r"\b(ops_eyJ[A-Za-z0-9_-]{100,2000})"),
    "an Azure client secret": (("8Q~", "7Q~"), r"(?<![\w~.-])([A-Za-z0-9]{3}[78]Q~[A-Za-z0-9._~-]{31,34})(?![\w~-])"),
    "a Google refresh token": (("1//",), r"(?<![\w/])(1//0[A-Za-z0-9_-]{40,120})"),
    "an Alibaba key": (("LTAI",), r"\b(LTAI[A-Za-z0-9]{16,24})\b"),
    "a PuTTY private key": (("Private-Lines:",), r"(Private-Lines: \d{1,3}(?:\s{1,4}[A-Za-z0-9+/=]{16,80}){1,80})"),
    "a private key in base64": (
        ("LS0tLS1CRUdJTi",),  # of -----BEGIN, neither of a certificate nor of a public key
        r"(LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM)[A-Za-z0-9+/=]{60,20000})",
    ),
    "an age key": (("AGE-SECRET-KEY-",), r"\b(AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58})\b"),
    "an Azure storage key": (("Key=",), r"(?i:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,88}={0,2})"),
    "an Azure signature": (("sig=",), r"[?&]sig=([A-Za-z0-9%]{40,120})"),
    "a JSON web token": (("eyJ",), r"\b(eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{16,1000})"),
    "an authorization header": (
        ("uthorization", "AUTHORIZATION"),
        r"(?i:\bauthorization['\"]?\s{0,3}[:=]\s{0,3}['\"]?(?:bearer|basic|token)\s{1,3})([A-Za-z0-9._~+/=-]{16,2000})",
    ),
    "a password in an address": (
        ("://",),
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@'\"]{0,80}:([^\s:/@'\"]{4,120})@[\w.-]{1,200}",
    ),
    "a key in an address": (("key=", "auth=", "pass="), r"[?&](?:key|apikey|auth|pass)=([A-Za-z0-9%._~+/-]{16,200})"),
    "a session cookie": (
        ("ookie:",),
        r"(?i:\b(?:set-)?cookie:\s{0,2}(?:[\w-]{1,40}=[^;\s]{0,15};\s?){0,5}[\w-]{1,40}=)([A-Za-z0-9%._~+/-]{20,2000})",
    ),
    "a password for curl": (
        ("curl", "http -a", "https -a"),
        r"\b(?:curl\b[^\n]{0,300}?\s(?:-u|--user|--proxy-user)|https? -a)[ =]?['\"]?[^\s:'\"$<]{1,80}:([^\s'\"]{4,120})",
    ),
    "a password for a command": (
        ("mysql", "sshpass", "redis-cli", "login", "ldap", "smbclient", "sqlcmd", "htpasswd", "keytool"),
        r"\b(?:mysql(?:dump|admin)?\b[^\n]{0,200}?\s-p|sshpass\s{1,3}-p\s?|redis-cli\b[^\n]{0,200}?\s-a\s{1,3}"
        r"|login\b[^\n]{0,200}?\s-p\s{1,3}|ldap\w{3,8}\b[^\n]{0,200}?\s-w\s{1,3}|smbclient\b[^\n]{0,200}?\s-U\s?[^\s%]{1,60}%"
        r"|sqlcmd\b[^\n]{0,200}?\s-P\s{1,3}|htpasswd\s{1,3}-\w{0,3}b\w{0,3}\s{1,3}\S{1,80}\s{1,3}\S{1,80}\s{1,3}|keytool\b[^\n]{0,200}?\s-(?:store|key)pass\s{1,3})['\"]?([^\s'\"-][^\s'\"]{4,120})",
    ),
    "a password for sudo": (("sudo -S",), r"\becho\s{1,3}['\"]?([^\s'\"$<]{4,80})['\"]?\s{0,3}\|\s{0,3}sudo -S"),
    "a password for a host": (
        ("root:", "admin:", "postgres:", "ubuntu:", "pi:", "sa:"),
        r"(?<![\w/:.])(?:root|admin|postgres|ubuntu|pi|sa):([^\s:/@'\"$<]{6,80})@[\w.-]{1,200}",
    ),
    "a line of .pgpass": (
        (":5432:", ":5433:", ":6432:", ":*:"),
        r"(?m:^[\w.*-]{1,80}:(?:5432|5433|6432|\*):[\w*-]{1,60}:[\w-]{1,60}:)([^\s:]{6,120})(?!\S)",
    ),
    "a login": (
        ("redential", "reds", "ogin", "ugang", "dentifiant", "redencial", "認証情報"),
        r"(?i:(?:credentials?|creds|logins?|zugang|zugangsdaten|identifiants|credenciales|認証情報)\b[^\n:=/]{0,40}?(?:[:=]|\sis\b)\s{0,3}"
        r"['\"`*]{0,3})[\w.@+-]{2,60}['\"`]?\s?[/:|]\s?['\"`]?([^\s'\"`,;/=()]{6,120})",
    ),
    "a seed phrase": (
        ("hrase", "HRASE", "nemonic", "MNEMONIC", "seed words"),
        r"(?i:(?:(?:seed|recovery|secret|wallet|backup)[ _-]?phrase|mnemonic|seed words)\b[^\n]{0,30}?(?:[:=]|\bis\b)\s{0,3}"
        r"['\"`]?)((?:[a-z]{3,8},?\s{1,2}){11,23}[a-z]{3,8})\b",
    ),
    "a passphrase": (
        ("assphrase", "ASSPHRASE"),
        r"(?i:passphrase['\"]?(?:\s(?:for|of|to)\s[^\n\"'`“.:=]{1,40}?(?=\s?[:=]|\sis|\swas))?\s?(?:[:=]|is|was)?\s?)[\"'`“]([^\"'`“”\n]{3,60} [^\"'`“”\n]{3,60})[\"'`”]",
    ),
    "a Mapbox token": (("sk.eyJ",), r"\b(sk\.eyJ[A-Za-z0-9_-]{20,200}\.[A-Za-z0-9_-]{16,40})"),
    "a key of two-factor codes": (("otpauth://",), r"otpauth://[^\s]{1,200}?[?&]secret=([A-Za-z2-7]{16,64})"),
    "a recovery code": (
        ("ecovery", "ECOVERY", "ackup", "BACKUP"),
        r"(?i:\b(?:recovery|backup)[ _-](?:codes?|keys?)\b[^\n]{0,20}?[:=]?\s{0,3})"
        r"((?:(?:[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){1,7}|\d{6,8})[,\s]{1,3}){0,15}"
        r"(?:[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){1,7}|\d{6,8}))\b",
    ),
}
COMPILED = {what: re.compile(pattern, re.ASCII) for what, (_, pattern) in SHAPES.items()}
# By a sign that few texts hold: without it none of its letters need to be looked for.
ANCHORS: dict[str, list[tuple[str, str]]] = {sign: [] for sign in ("_", "-", ".", ":", "/", "=", "")}
for _what, (_anchors, _) in SHAPES.items():
    for _anchor in _anchors:
        ANCHORS[next(sign for sign in ANCHORS if sign in _anchor)].append((_anchor, _what))
# Chosen by a person, so they need not look random.
CHOSEN = frozenset(
    {
        "a password in an address",
        "a password for curl",
        "a password for a command",
        "a password for sudo",
        "a password for a host",
        "a line of .pgpass",
        "a login",
        "a passphrase",
        "a seed phrase",
        "a recovery code",
    }
)
# Long words are looked for anywhere: no random letters hold them. Short ones only as words of their own.
PLACEHOLDER = re.compile(
    r"(?i)example|placeholder|change_?-?me|redacted|abcdef|12345678|x{5,}|\*{3,}|\.{3}|…|process\.env|os\.environ|getenv"
    r"|^[$%@#]?\{|^\$\(|^\$[a-z_]+$|^\{\{|^%\(|^%\w+%$|^!(?:vault|secret|env)|^<|^(?:env|vault|secrets?|settings|config|op)[.:]"
    r"|^(?:secrets?|settings|config|vars|var|self|args|app)\."
    r"|(?<![a-z0-9])(?:your|my|some|the|dummy|sample|fake|todo|none|null|undefined|test_?key|not[-_]?real|insert|replace|enter|abc123|x{3,4})(?![a-z0-9])"
    r"|(?<![a-z0-9])your[a-z]{0,12}key"
)
WHOLE_PLACEHOLDER = re.compile(
    r"(?i)(?:my|your|the|new|old|some|user|db|api|access|auth|client)?[_-]?(?:pass(?:word|wd|phrase|code)?|pwd|pw|secret|token|key|apikey|api[_-]key"
    r"|user(?:name)?|login|string|str|text|value|foo(?:bar)?\d?|bar|baz|none|null|true|false)[_-]?(?:here|value)?"
)


def find_due_shapes(text: str) -> list[str]:
    """The shapes whose letters are in the text, in their order."""
    due = {what for sign, anchors in ANCHORS.items() if sign in text for anchor, what in anchors if anchor in text}
    return [what for what in SHAPES if what in due] if due else []


def _is_real(what: str, value: str) -> bool:
    if PLACEHOLDER.search(value) or WHOLE_PLACEHOLDER.fullmatch(value):
        return False
    if what in {"a line of .pgpass", "a login", "a password for a host"}:
        return _could_be_password(value, sure=True)
    if what == "a recovery code" and not any(map(str.isdigit, value)):
        return False
    if what in CHOSEN:
        return len(set(value)) >= 4
    # Random letters differ: a run of one letter or a word in capitals is someone's example.
    return len(set(value)) >= 8 and _bits_per_letter(value) >= 2.8


def _bits_per_letter(value: str) -> float:
    return -sum(count / len(value) * log2(count / len(value)) for count in Counter(value).values())


# Looking back behind the first digit, not before it, lets the search leap from digit to digit.
CARD = re.compile(r"\d(?<![\w.-]\d)(?:[ -]?\d){12,18}(?![\w.-])")


def _cards_in(text: str) -> Iterator[Secret]:
    for found in CARD.finditer(text):
        if _is_card(re.sub(r"\D", "", found[0])):
            yield Secret("a card number", found.start(), found.end())


def _is_card(digits: str) -> bool:
    """Of a card's length and beginning, with a right check digit (Luhn), and not one that every manual prints."""
    lengths = {"2": (16,), "3": (14, 15, 16), "4": (13, 16, 19), "5": (16,), "6": (16, 17, 18, 19)}
    if len(digits) not in lengths.get(digits[0], ()) or len(set(digits)) < 4:
        return False
    if digits.startswith(("4111", "4242", "5555", "378282", "601111")):
        return False
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(number - 9 * (number > 9) for number in doubled) % 10 == 0


# --- private keys ----------------------------------------------------------------------------------------------------

KEY_BEGINS = re.compile(r"-{4,5} ?BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
KEY_ENDS = re.compile(r"-{4,5} ?END (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
# A key that was cut off: headers, and lines of its letters, however their ends are written and what stands before them.
KEY_LINES = re.compile(
    r"(?:(?:\\[nrt]|[\s>|\\\"',+*#])*+(?:(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n\\]{1,80}|[A-Za-z0-9+/=]{16,}+))+"
)
KEY_LETTERS = re.compile(r"[A-Za-z0-9+/=]{16,}")
LONGEST_KEY = 40_000  # characters


def _private_keys_in(text: str) -> Iterator[Secret]:
    """All lines of each: in JSON or `.env` with escaped ends, quoted, encrypted with headers, or cut off."""
    begins = [(found.start(), found.end()) for found in KEY_BEGINS.finditer(text)]
    ends = [(found.start(), found.end()) for found in KEY_ENDS.finditer(text)]
    next_begins = [*(start for start, _ in begins[1:]), len(text)]
    for (start, body), limit in zip(begins, next_begins, strict=False):
        place = bisect_left(ends, (body, 0))
        if place < len(ends) and ends[place][0] < min(limit, body + LONGEST_KEY):
            stop, end = ends[place]
        else:
            lines = KEY_LINES.match(text, body, limit)
            stop = end = lines.end() if lines else body
        letters = "".join(KEY_LETTERS.findall(text[body:stop]))
        if len(letters) >= 40 and len(set(letters)) >= 8:
            yield Secret("a private key", start, end)


# --- what could be one -----------------------------------------------------------------------------------------------

# Parts of a value that people read: a word, a word in capitals, words in camel case, a number, a term with a number.
READ = re.compile(
    r"[A-Z]?[a-zà-ÿа-я]+|[A-Z]+s?|(?:(?:No|My|Is|On|In|To|Of|By|Id|Ok|Do|Up|At|Or|As|If|It|We)(?=[A-Z])|[A-Z]?[a-z]{2,}+|[A-Z]{2,4})++\d{0,4}|\d+|[A-Za-z]\d{1,3}|\d{1,6}[A-Za-z]{1,9}|[A-Z][a-z]+\d{1,5}(?:[A-Z][a-z]{2,}+)+"
)
TERM = re.compile(
    r"(?i)(?:sha|md|aes|rsa|dsa|base|utf|hs|rs|es|ps|ed|bcrypt|argon|scrypt|oauth|tls|ssl|ipv|http|h|v|rfc|iso|pbkdf|totp|hotp|ecdsa|ntlm|cl|gpt"
    r"|p|x|s|k|i|n|web|log|sql|win|db|utf|crc|fido|openid|saml|sso)\d{1,6}[a-z]{0,2}|argon2id?|\d{1,3}password|keepass.*|bitwarden.*|lastpass.*"
)
ADDRESS = re.compile(r"\w+://.*|[\w.+-]+@[\w-]+\.[\w.]+|www\..*")
PATH = re.compile(
    r"~?\.{0,2}/(?:[\w.~-]++/)*+[\w.~-]*|[A-Za-z]:/.*|[\w.-]+\.(?:txt|md|json|ya?ml|py|js|ts|env|kdbx|pem|toml|ini|cfg|csv|html?|php|go|rs)"
)
CODE = re.compile(r"[A-Za-z_$][\w.$:]*[(\[].*|[a-z_]+(?:\.[a-zA-Z_]++)+|\w+\(\)")
MOMENT = re.compile(r"v?\d+(?:[.:-]\d++)++(?:[-.+T]?[\w.:+-]*)?|\d+[-+]?[A-Za-z%]+(?:/[a-z]+)?|[\d.,:/%+-]+")
HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
PARTS = re.compile(r"[^A-Za-z0-9À-ÿ]+")
SIGNS = frozenset("!@#$%^&*~")
STRONG_SIGNS = re.compile(r"\w[!@#$%^&*?+=~]+\w|[!@#$%^&*+~]{2}")


def could_be_secret(kind: str, value: str, *, sure: bool) -> bool:
    if kind == PIN and re.fullmatch(r"\d{4,8}[#*]?", value):
        return not PLACEHOLDER.search(value)
    if PLACEHOLDER.search(value) or WHOLE_PLACEHOLDER.fullmatch(value) or _says_where_it_is(value):
        return False
    return _could_be_token(value, sure=sure) if kind == TOKEN else _could_be_password(value, sure=sure)


def _says_where_it_is(value: str) -> bool:
    """A path, an address, a call, a version or a time: readers look there for it."""
    return any(shape.fullmatch(value) for shape in (ADDRESS, PATH, CODE, MOMENT))


def _could_be_password(value: str, *, sure: bool) -> bool:
    """What no sentence would hold at this place: letters with digits or signs in them, or letters in no word's case."""
    core = value.rstrip("!?")
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if not letters or len(value) < (6 if sure else 7) or TERM.fullmatch(core) or _says_where_it_is(core):
        return False
    parts = [part for part in PARTS.split(core) if part]
    if digits:
        return not _is_term(core, parts)
    if STRONG_SIGNS.search(core) or any(_is_random(part) for part in parts):
        return True
    return sure and len(parts) >= 4 and core.count("-") == len(parts) - 1  # words that were put together


def _is_term(value: str, parts: list[str]) -> bool:
    """Terms beside words, as in sha256-password, or the name of a variable."""
    if len(parts) > 1 and all(TERM.fullmatch(part) or part.isalpha() for part in parts):
        return True
    return "_" in value and (value.islower() or value.isupper()) and all(READ.fullmatch(part) for part in parts)


def _could_be_token(value: str, *, sure: bool) -> bool:
    """Long enough, with a part that reads like no word."""
    parts = [part for part in PARTS.split(value) if part]
    random = sum(len(part) for part in parts if _is_random(part))
    unread = [part for part in parts if len(part) >= 4 and not READ.fullmatch(part)]
    grouped = len(unread) > 1 and len(parts) > 2 and len(set(map(len, parts))) == 1
    if grouped or (sure and len(set(value) & SIGNS) > 1 and any(map(str.isdigit, value))):
        random = len(value)  # NqVw-YS81-VP7H-b1DX, d8#k2@qq!x91zz
    if len(value) < (8 if sure else 12) or not random:
        return False
    return sure or random >= 8 or len(value) >= 20


def _is_random(part: str) -> bool:
    if READ.fullmatch(part) or TERM.fullmatch(part):
        return len(part) >= 24 and part.isalpha() and (part.islower() or part.isupper())  # no word is so long
    if part.isalpha():
        switches = sum(one.isupper() != other.isupper() for one, other in pairwise(part))
        return len(part) >= 6 and switches >= 3
    return len(part) >= 5
