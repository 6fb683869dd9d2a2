"""Secrets that people and agents leave in texts: keys, tokens, passwords, card numbers.

They are known by their shape, as the services that issue them made it, or by a name that someone wrote beside
them, as in "The wifi password is …". Examples, placeholders and values from the environment are none.

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
from typing import NamedTuple

from scrubjay.values.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in a text: what it is, and where."""

    what: str
    start: int
    end: int


def secrets_in(text: str) -> Iterator[Secret]:
    """What looks like a real secret, in no particular order; placeholders and examples are passed over."""
    if "masked" in text:
        text = MASK.sub(_opaque, text)
    for what in shapes_due(text):
        for found in COMPILED[what].finditer(text):
            if _is_real(what, found[1]):
                yield Secret(what, found.start(1), found.end(1))
    yield from _cards_in(text)
    if "PRIVATE KEY" in text:
        yield from _private_keys_in(text)
    folded = fold(text)
    stems = [stem for stem in STEMS if stem in folded]
    if stems:
        yield from _named_in(text, folded, stems)
        yield from _in_columns(text)


def mask_secrets(text: str, *, as_name: bool = False) -> str:
    """The text with its secrets replaced by what they were, or, in a name or an id, by what tells them apart.

    Masking twice changes nothing.
    """
    found = sorted(secrets_in(text), key=lambda one: (one.start, -one.end))
    if not found:
        return text
    pieces, place = list[str](), 0
    for one in found:
        if one.end <= place:
            continue
        start = max(one.start, place)
        pieces += [text[place:start], _substitute(one.what, text[start : one.end], as_name=as_name)]
        place = one.end
    return "".join([*pieces, text[place:]])


MASK = re.compile(r"\[masked: ([A-Za-z0-9 .-]{3,40})\]|masked-[0-9a-f]{12}(?![0-9a-f])")


def _opaque(mask: re.Match[str]) -> str:
    """Signs in place of a mask that no secret holds, so that its words name none."""
    known = mask[1] is None or mask[1] in SHAPES or mask[1] in OTHERS
    return "<" * len(mask[0]) if known else mask[0]


def _substitute(what: str, secret: str, *, as_name: bool) -> str:
    if not as_name:
        return f"[masked: {what}]"
    from hashlib import sha256

    return f"masked-{sha256(secret.encode()).hexdigest()[:12]}"


# --- by their shape --------------------------------------------------------------------------------------------------

# What a text must hold at least one of to be looked at closely, and the shape; its group is the secret itself.
SHAPES: dict[str, tuple[tuple[str, ...], str]] = {
    "an AWS access key": (
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        r"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b",
    ),
    "a GitHub token": (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        r"\b(gh[pousr]_[A-Za-z0-9]{36,255})\b",
    ),
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
    "a Shopify token": (
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        r"\b(shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32})\b",
    ),
    "a Square token": (("sq0",), r"\b(sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43})"),
    "a Databricks token": (("dapi",), r"\b(dapi[0-9a-f]{32}(?:-\d)?)\b"),
    "a Linear key": (("lin_api_",), r"\b(lin_api_[A-Za-z0-9]{32,48})\b"),
    "a Notion token": (
        ("secret_", "ntn_"),
        r"\b((?:secret|ntn)_[A-Za-z0-9]{40,50})\b",
    ),
    "a Grafana token": (
        ("glsa_", "glc_"),
        r"\b(gl(?:sa|c)_[A-Za-z0-9+/=_]{30,400})",
    ),
    "a New Relic key": (("NRAK-",), r"\b(NRAK-[A-Z0-9]{27})\b"),
    "a Vault token": (
        ("hvb.", "hvs.", "hvr."),
        r"\b(hv[bsr]\.[A-Za-z0-9_-]{24,200})",
    ),
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
    "an Atlassian token": (
        ("ATATT3", "ATCTT3", "ATBB"),
        r"\b(AT[AC]TT3[A-Za-z0-9_=-]{40,400}|ATBB[A-Za-z0-9]{28,40})",
    ),
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
    "a key in an address": (
        ("key=", "auth=", "pass="),
        r"[?&](?:key|apikey|auth|pass)=([A-Za-z0-9%._~+/-]{16,200})",
    ),
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
        r"(?i:passphrase['\"]?\s?(?:[:=]|is|was)?\s?)[\"'`“]([^\"'`“”\n]{3,60} [^\"'`“”\n]{3,60})[\"'`”]",
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


def shapes_due(text: str) -> list[str]:
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


# --- by their name ---------------------------------------------------------------------------------------------------
#
#     The admin password for grafana is hunter2!       **API key** (prod): `…`       | Token | … |
#               └ stem   └ about what └ sign └ value
#
# A stem is looked for in the folded text, what follows it is matched there, and the value is judged as it was written:
# what people choose themselves by other measures than what machines make.

PASSWORD, TOKEN, PIN = "a password", "a token by its name", "a PIN"
OTHERS = frozenset({PASSWORD, TOKEN, PIN, "a card number", "a private key"})
STEMS: dict[str, str] = {
    stem: kind
    for kind, stems in {
        PASSWORD: "password passwort paswort passwd passphrase passwrd kennwort contraseña contrasena mot~de~passe mots~de~passe senha"
        " palavra-passe wachtwoord hasło heslo lösenord şifre пароль пароля パスワード パスフレーズ 合言葉 密码 密碼 口令 비밀번호 암호"
        " salasana adgangskoden adgangskode heslo jelszó mật~khẩu kata~sandi كلمة~المرور"
        " identified~by credential pass pwd pw mdp clave parola psk",
        TOKEN: "token secret bearer authorization key schlüssel geheimnis jeton clé chave segredo segreto chiave токен ключ секрет"
        " トークン キー シークレット 秘密鍵 令牌 密钥 密鑰 토큰 _pat",
        PIN: "pin geheimzahl passcode zugangscode alarm~code door~code gate~code entry~code safe~code lock~code keypad~code unlock~code access~code türcode alarmcode code~de~l'alarme code~de~la~porte code~d'accès 暗証番号",
    }.items()
    for stem in stems.replace("~", "\0").split()
    for stem in [stem.replace("\0", " ")]
}
ALONE = frozenset(
    {"pass", "pwd", "pw", "mdp", "clave", "parola", "psk", "pin", "clé", "_pat"}
)  # else they are parts of other words
# Words that make these a secret: before them …
QUALIFIED = re.compile(
    r"(?:api|access|acces|secret|private|auth|app|application|account|storage|encryption|signing|master|license|licence|client|service"
    r"|admin|root|backup|recovery|session|jwt|[th]?otp|2fa|mfa|hmac|shared|subscription|consumer|deploy|webhook|openai|anthropic|groq|stripe|azure|aws|google|gemini|mistral|deepseek|cohere"
    r"|zugangs|zugriffs|geheimer|privater|lizenz|geheime|pre-?shared|секретн\w{1,3}|приватн\w{1,3}|アクセス|シークレット|秘密)[\s_.-]{0,2}$"
)
ENVIRONMENT = re.compile(
    r"(?<![A-Z])(?!PUBLIC|PRIMARY|FOREIGN|PARTITION|SORT|CACHE)[A-Z][A-Z0-9]{1,20}(?:_[A-Z0-9]{1,20}){0,3}_$"
)
# … or behind them.
QUALIFIER = re.compile(
    r"\s?(?:(?:d['’]|de (?:la |l['’])?|di |da )?(?:api|accès|acceso|acesso|accesso)|secr[eéè]t[aeo]?|segreta|priv[eéa][eéda]?[ao]?|доступа|api)\b"
)
NETWORK = re.compile(
    r"(?:(?:wi-?fi|wlan|wpa\d?|network|netzwerk)[\s_-]{0,2}|\b(?:ssid|wlan|wi-?fi)\b[^\n.]{1,25}[,;]\s?)$"
)
NEEDS_QUALIFIER = frozenset({"key", "schlüssel", "clé", "chave", "chiave", "ключ", "キー"})
PAGES = re.compile(
    r"(?:palabra|next|page|continuation|sync|csrf|xsrf|paging|resume|push|device|max|public|publishable|anon)[\s_.-]{0,2}$"
)

SUFFIX = r"(?:[ -]?(?:code|number|nummer))?(?:\s(?:secreta|secrète|segreta|d['’]accès|d['’]api|de acceso|de acesso|di accesso|доступа))?(?:[\s_-](?:of the day|prod(?:uction)?|dev|staging|live|old|new|backup|value|\d{1,2}(?!\w))(?![a-z])|\d{1,2}(?!\w)|s(?![a-z]))?"
ABOUT = (
    r"(?:\s?[(\[（][^()\[\]\n]{1,40}[)\]）])?(?:,\s[^,\n]{1,40},)?"
    r"(?:\s(?:for|of|to|on|at|in|from|you|we|i|they|that|which|für|fuer|von|vom|zum|zur|zu|im|am|des|der|dem|pour|de|du|d['’]|à|para|del|do|da"
    r"|no|na|per|till|för|på|til|fürs|beim|di|для|от|к|в|на|voor|van)(?:\s(?:[^\s:=|]|:(?=[a-zå-ö]{1,3}\s)){1,40}){1,6}?)?"
)
# Or one word, before a sign, that does not say that this is about passwords in general.
WHOSE = (
    r"\s(?!polic|hash|manager|length|reset|field|file|hint|url|link|histor|rotation|rule|strength|change|expir|age\b|id\b|name|type|min|max|format|prompt)"
    r"[^\s:=|]{2,30}(?=\s{0,2}(?:[:=]|[—–]\s))"
)
MARKS = r"[*_`'\"\\”»\]]{0,5}"
SURE = (
    r"(?:\s{0,20}(?::=|=>|={1,3}|->|→|—>|:{1,2}(?!//)|：|＝)|[ \t]{1,20}\|(?=[^\n]{0,200}\|)|['\"]?,?\s{1,20}['\"]?value['\"]?\s?[:=]"
    r"|(?:\s[^<>\n]{0,60})?(?<![=—-])>|\s?(?=[「『])|\s?\(\s?(?=['\"]))"
)
LIKELY = (
    r"(?:\s{0,2}(?:['’]s|は|为|為|是|은|는|\?)|\s{1,3}(?:is|was|are|ist|lautet|war|heißt|est|était|es|era|fue|é|è|jest|är|er|это|был|[-–—]|will be|has been|got|wurde auf)(?=[\s:]))"
    r"(?:\s(?:always|still|now|currently|just|set to|called|changed to|reset to|immer|noch|jetzt|derzeit|toujours|maintenant|siempre|ahora|sempre|agora|теперь|:))?:?"
)
CHANGED = r"\s(?:to|auf|à|a|em|на|в)(?=\s)"
SCHEME = r"(?:(?:bearer|basic|token|apikey|bot|digest)\s{1,3})?"
REST = re.compile(
    rf"{SUFFIX}(?:{MARKS}(?:{ABOUT}|{WHOSE}){MARKS}(?:(?P<sure>{SURE})|(?P<likely>{LIKELY})|(?P<changed>{CHANGED}))|(?P<beside>(?=\s)))"
    rf"[^\S\n]{{0,20}}\n?[^\S\n]{{0,20}}[*_]{{0,3}}\s?\\?(?:<!\[cdata\[)?[`'\"“„«「『]{{0,3}}(?:(?<=«)\s)?{SCHEME}"
)
MOST_OF_VALUE = 160  # characters of a value that are looked at
IN_VALUE = r"[^\s'\"`<>|,;\\“”„«»「」『』、。ぁ-ヿ一-鿿가-힣！-～]"
VALUE = re.compile(rf"{IN_VALUE}{{4,{MOST_OF_VALUE}}}")
WORD = re.compile(rf"(?<!{IN_VALUE}){IN_VALUE}{{8,80}}(?!{IN_VALUE})")
SENTENCE = re.compile(r"(?:[^\n.!?]|[.!?](?!\s)){0,80}")
SIGNS_INSIDE = re.compile(r"\w[!$%*]\w|[a-z]{3}#\d")
MIXED = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d.*\d)")
REST_OF_VALUE = re.compile(rf"{IN_VALUE}*")
CHANGES = re.compile(
    r"\b(?:set|sets|change[ds]?|reset|rotated?|switch(?:ed)?|updated?|ge(?:ä|ae)ndert|gesetzt|cambi\w+|chang\w+|измен\w+|смен\w+)\b"
)
SIGNS_WITH_POINTS = frozenset({"=>", "->", "—>"})
FLAG = re.compile(r"(?:^|[\s'\"])--?[\w-]{0,30}$")
SAYS_WHAT = re.compile(
    r"(?<!\S)['\"`*]{0,3}([^\s'\"`]{6,100})['\"`*]{0,3},?\s(?:is|was|as|ist|als|est|comme|es|como|é)\s(?:the|our|my|your|its|a|das|der|dein|mein|unser|le|la|el|notre|mon|mi|nuestra)?\s?(?:[\w-]{1,20}\s){0,3}$"
)
GOES_ON = re.compile(r"s?(?:\s?[.,;:!)\n]|\s(?:for|of|to|on|at|in|für|von|pour|de|para|del)\b|\s?$)")


WORDS = re.compile(r"\w+")
SIGNING_IN = re.compile(
    r"\blog(?:ging|ged)? ?in(?:to)?\b|\blogins?\b|\bsign in\b|\baccess\b|\bunlock|\bcodes?\b|\bzugang|認証"
)


def names_a_secret(question: str) -> bool:
    """Whether a question asks for a password, a key or a way in."""
    folded = fold(question)
    named = any(stem in folded and (stem not in ALONE or stem in WORDS.findall(folded)) for stem in STEMS)
    return named or SIGNING_IN.search(folded) is not None


def fold(text: str) -> str:
    """The text in lower case, letter by letter: places in it are places in the text."""
    folded = text.casefold()
    if len(folded) != len(text):
        folded = "".join([letter if len(lower := letter.casefold()) != 1 else lower for letter in text])
    return folded


def _named_in(text: str, folded: str, stems: list[str]) -> Iterator[Secret]:
    for stem in stems:
        place = folded.find(stem)
        while place >= 0:
            after = place + len(stem)
            if (name := _name_at(text, folded, stem, place)) is not None:
                found = (
                    _value_behind(text, folded, name) or _value_before(text, folded, name) or _value_near(text, name)
                )
                if found is not None:
                    yield found
                    after = max(after, found.end)
            place = folded.find(stem, after)


class Name(NamedTuple):
    """Where a text names a secret, and of what kind."""

    kind: str
    start: int
    end: int
    plain: bool = False  # the word says little by itself: any key


def _name_at(text: str, folded: str, stem: str, start: int) -> Name | None:
    """What this stem names; None if that is no secret."""
    kind, end, before = STEMS[stem], start + len(stem), folded[max(0, start - 40) : start]
    if stem in ALONE:
        joined = (
            stem[0] != "_"
            and start > 0
            and text[start - 1].isalpha()
            and not (text[start - 1].islower() and text[start].isupper())
        )
        if joined or folded[end : end + 1].isalpha() or (stem == "pin" and text[start:end] != "PIN"):
            return None
    if PAGES.search(before):
        return None
    if stem in NEEDS_QUALIFIER:
        if behind := QUALIFIER.match(folded, end):
            return Name(kind, start, behind.end())
        if NETWORK.search(before):
            return Name(PASSWORD, start, end)
        of_environment = stem == "key" and ENVIRONMENT.search(text[max(0, start - 60) : start])
        if not (QUALIFIED.search(before) or of_environment):
            return Name(kind, start, end, plain=True) if stem == "key" and not before[-1:].isalnum() else None
    return Name(kind, start, end)


def _value_behind(text: str, folded: str, name: Name) -> Secret | None:
    rest = REST.match(folded, name.end)
    value = VALUE.match(text, rest.end()) if rest else None
    if rest is None or value is None:
        return None
    sign, before = rest["sure"] or "", folded[max(0, name.start - 60) : name.start]
    if sign.endswith(">") and sign.strip() not in SIGNS_WITH_POINTS and "<" not in before:
        return None
    if rest["changed"] is not None and not CHANGES.search(before):
        return None
    sure = bool(sign) or FLAG.search(before[-34:]) is not None
    secret = value[0].rstrip("*_.,:;)]}")
    loose = rest["beside"] is not None and name.kind == TOKEN and not sure
    plain = name.plain or (loose and not (len(secret) >= 32 and HEX.fullmatch(secret)))
    found = _find(name.kind, secret, value.start(), sure=sure, plain=plain)
    if found is not None and len(value[0]) == MOST_OF_VALUE and (rest := REST_OF_VALUE.match(text, value.end())):
        return Secret(found.what, found.start, rest.end())
    return found


def _value_before(text: str, folded: str, name: Name) -> Secret | None:
    """As in "… is the password" or "use … as the token"."""
    before = folded[max(0, name.start - 160) : name.start]
    if not GOES_ON.match(folded, name.end) or not (found := SAYS_WHAT.search(before)):
        return None
    start = name.start - len(before) + found.start(1)
    secret = text[start : start + len(found[1])].rstrip("*_.,:;)]}")
    return _find(name.kind, secret, start, sure=False, plain=name.plain)


def _value_near(text: str, name: Name) -> Secret | None:
    """What follows in the same sentence, if nothing but a secret looks like it: "the token was rotated, it's now …"."""
    sentence = SENTENCE.match(text, name.end)
    for value in () if name.plain or sentence is None else WORD.finditer(text, name.end, sentence.end()):
        secret = value[0].rstrip("*_.,:;)]}!?")
        if _is_clearly_secret(name.kind, secret) and _could_be(name.kind, secret, sure=False):
            return Secret(name.kind, value.start(), value.start() + len(secret))
    return None


def _is_clearly_secret(kind: str, value: str) -> bool:
    """Letters of both cases and digits: as many as machines make, or with a sign among them."""
    if kind == TOKEN:
        return any(
            len(part) >= 20 and MIXED.match(part) and _turns(part) > 0.42 * len(part) for part in PARTS.split(value)
        )
    return len(value) >= 8 and MIXED.match(value) is not None and SIGNS_INSIDE.search(value) is not None


def _turns(part: str) -> int:
    """How often a small letter, a capital or a digit follows one of another kind; in names seldom."""
    return sum((one.islower(), one.isdigit()) != (other.islower(), other.isdigit()) for one, other in pairwise(part))


def _find(kind: str, secret: str, start: int, *, sure: bool, plain: bool) -> Secret | None:
    if plain and not any(len(part) >= 20 and not HEX.fullmatch(part) for part in PARTS.split(secret)):
        return None
    return Secret(kind, start, start + len(secret)) if _could_be(kind, secret, sure=sure) else None


COLUMN = re.compile(r"[*_`'\" ]*([^*_`'\"|,;\t]{2,40}?)[*_`'\" ]*")
SEPARATOR = re.compile(r"[|\t,;]")
ROWS = 200  # of a table, that are looked at


def _in_columns(text: str) -> Iterator[Secret]:
    """In tables whose heading says what is in a column: Markdown, and what programs export."""
    columns: dict[int, str] = {}
    sign, rows, place = "", 0, 0
    for line in text.splitlines(keepends=True):
        cells = line.split(sign) if sign else []
        if len(cells) > 1 and rows < ROWS:
            rows += 1
            at = place
            for number, cell in enumerate(cells):
                kind, secret = columns.get(number), cell.strip(" \t\r\n*`'\"")
                if kind is not None and VALUE.fullmatch(secret) and _could_be(kind, secret, sure=True):
                    first = at + cell.index(secret)
                    yield Secret(kind, first, first + len(secret))
                at += len(cell) + 1
        elif len(line) <= 1_000 and (first_sign := SEPARATOR.search(line)):
            sign, rows = first_sign[0], 0
            columns = _named_columns(line.split(sign))
            sign = sign if columns else ""
        else:
            sign = ""
        place += len(line)


def _named_columns(cells: list[str]) -> dict[int, str]:
    named = {}
    for number, cell in enumerate(cells):
        heading = COLUMN.fullmatch(cell.strip())
        if heading is None:
            continue
        folded = fold(heading[1])
        for stem in STEMS:
            start = folded.find(stem)
            if (
                start >= 0
                and len(folded) - start - len(stem) <= 2
                and (name := _name_at(heading[1], folded, stem, start))
            ):
                named[number] = name.kind
    return named


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
STRONG_SIGNS = re.compile(r"\w[!@#$%^&*?+=~]+\w|[!@#$%^&*+~]{2}")


def _could_be(kind: str, value: str, *, sure: bool) -> bool:
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
        terms = len(parts) > 1 and all(TERM.fullmatch(part) or part.isalpha() for part in parts)
        names = "_" in core and (core.islower() or core.isupper()) and all(READ.fullmatch(part) for part in parts)
        return not (terms or names)
    if STRONG_SIGNS.search(core) or any(_is_random(part) for part in parts):
        return True
    return sure and len(parts) >= 4 and core.count("-") == len(parts) - 1  # words that were put together


def _could_be_token(value: str, *, sure: bool) -> bool:
    """Long enough, with a part that reads like no word."""
    parts = [part for part in PARTS.split(value) if part]
    random = sum(len(part) for part in parts if _is_random(part))
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
