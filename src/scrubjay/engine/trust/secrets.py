"""Secrets that someone left in a text: keys, tokens, passwords, card numbers. Examples and placeholders are none.

Every shape has a few letters that must be in the text before it is looked for, and bounded parts: so most texts cost
nothing, and time grows with the text and no faster.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import log2

from scrubjay.values.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Found:
    """A secret in a text: what it is, and where."""

    what: str
    start: int
    end: int


# What a text must hold at least one of to be looked at closely, and the shape; its group is the secret itself.
SHAPES: dict[str, tuple[tuple[str, ...], str]] = {
    "an AWS access key": (
        (
            "AKIA",
            "ASIA",
            "ABIA",
            "ACCA",
        ),
        r"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b",
    ),
    "a GitHub token": (
        (
            "ghp_",
            "gho_",
            "ghu_",
            "ghs_",
            "ghr_",
        ),
        r"\b(gh[pousr]_[A-Za-z0-9]{36,255})\b",
    ),
    "a fine-grained GitHub token": (("github_pat_",), r"\b(github_pat_[A-Za-z0-9_]{22,255})\b"),
    "a GitLab token": (
        (
            "glpat-",
            "glptt-",
            "gldt-",
            "glrt-",
            "glcbt-",
            "glsoat-",
        ),
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
    "a Hugging Face token": (("hf_",), r"\b(hf_[A-Za-z]{30,60})\b"),
    "a SendGrid key": (("SG.",), r"\b(SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64})"),
    "a Mailgun key": (("key-",), r"\b(key-[0-9a-f]{32})\b"),
    "a Mailchimp key": (("-us",), r"\b([0-9a-f]{32}-us\d{1,2})\b"),
    "a Twilio key": (("SK",), r"\b(SK[0-9a-f]{32})\b"),
    "a Telegram bot token": ((":AA",), r"\b(\d{8,10}:AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"),
    "a Discord token": ((".",), r"([MNO](?<!\w[MNO])[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})\b"),
    "a DigitalOcean token": (("_v1_",), r"\b(do[opr]_v1_[0-9a-f]{64})\b"),
    "a Shopify token": (
        (
            "shpat_",
            "shpca_",
            "shppa_",
            "shpss_",
        ),
        r"\b(shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32})\b",
    ),
    "a Square token": (("sq0",), r"\b(sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43})"),
    "a Databricks token": (("dapi",), r"\b(dapi[0-9a-f]{32}(?:-\d)?)\b"),
    "a Linear key": (("lin_api_",), r"\b(lin_api_[A-Za-z0-9]{32,48})\b"),
    "a Notion token": (
        (
            "secret_",
            "ntn_",
        ),
        r"\b((?:secret|ntn)_[A-Za-z0-9]{40,50})\b",
    ),
    "a Grafana token": (
        (
            "glsa_",
            "glc_",
        ),
        r"\b(gl(?:sa|c)_[A-Za-z0-9+/=_]{30,400})",
    ),
    "a New Relic key": (("NRAK-",), r"\b(NRAK-[A-Z0-9]{27})\b"),
    "a Vault token": (
        (
            "hvb.",
            "hvs.",
            "hvr.",
        ),
        r"\b(hv[bsr]\.[A-Za-z0-9_-]{24,200})",
    ),
    "a Docker token": (("dckr_pat_",), r"\b(dckr_pat_[A-Za-z0-9_-]{24,40})"),
    "a Terraform token": ((".atlasv1.",), r"\b([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,80})"),
    "a Doppler token": (("dp.",), r"\b(dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9.]{40,60})\b"),
    "a Postman key": (("PMAK-",), r"\b(PMAK-[0-9a-f]{24}-[0-9a-f]{34})\b"),
    "a Figma token": (("figd_",), r"\b(figd_[A-Za-z0-9_-]{40,50})"),
    "an age key": (("AGE-SECRET-KEY-",), r"\b(AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58})\b"),
    "an Azure storage key": (("Key=",), r"(?i:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,88}={0,2})"),
    "an Azure signature": (("sig=",), r"[?&]sig=([A-Za-z0-9%]{40,120})"),
    "a JSON web token": (("eyJ",), r"\b(eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{16,1000})"),
    "an authorization header": (
        (
            "uthorization",
            "AUTHORIZATION",
        ),
        r"(?i:\bauthorization['\"]?\s{0,3}[:=]\s{0,3}['\"]?(?:bearer|basic|token)\s{1,3})([A-Za-z0-9._~+/=-]{16,2000})",
    ),
    "a password in an address": (
        ("://",),
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@'\"]{0,80}:([^\s:/@'\"]{4,120})@[\w.-]{1,200}",
    ),
    "a private key": (
        ("PRIVATE KEY",),
        r"(-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[A-Za-z0-9+/=\s:,.()]{40,20000}-----END (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        r"|[A-Za-z0-9+/=\s]{40,20000}))",
    ),
    # A name that says what it is, a sign of assignment, and a value in one piece.
    "a secret by its name": (
        ("ass", "ASS", "wd", "WD", "ecret", "ECRET", "ey", "EY", "oken", "OKEN", "contras", "Contras", "wort", "WORT"),
        r"(?i:(?:passwor[dt]|passwd|pwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key"
        r"|passphrase|contraseña|mot de passe|kennwort)['\"]?"
        r"\s{0,3}(?::=|=>|[:=]|\bis\b|\blautet\b|\bist\b)\s{0,3}['\"`]?)([^\s'\"`,;<>()\[\]{}]{8,200})",
    ),
    "a recovery code": (
        ("ecovery", "ECOVERY"),
        r"(?i:\brecovery codes?\b[^\n]{0,20}?[:=]?\s{0,3})((?:[a-z0-9]{4,5}-){2,7}[a-z0-9]{4,5})\b",
    ),
}
COMPILED = {what: (anchors, re.compile(pattern)) for what, (anchors, pattern) in SHAPES.items()}
# Looking back behind the first digit, not before it, lets the search leap from digit to digit.
CARD = re.compile(r"\d(?<![\d.-]\d)(?:[ -]?\d){12,18}(?![\d.-])")
NAMED = "a secret by its name"
WORDY = frozenset({"a private key", "a password in an address", NAMED, "a recovery code"})
PLACEHOLDER = re.compile(
    r"(?i)example|x{4,}|\*{3,}|\.{3}|…|your|placeholder|changeme|change_me|dummy|redacted|sample|test_?key|abcdef|12345678"
    r"|not[-_]?real|\$\{?\w|%\(|process\.env|os\.environ|getenv|settings\.|config\.|secrets?\.|vault:|<|fake|todo|none|null"
)


def secrets_in(text: str) -> Iterator[Found]:
    """What looks like a real secret, in no particular order; placeholders and examples are passed over."""
    for what, (anchors, pattern) in COMPILED.items():
        if any(anchor in text for anchor in anchors):
            for found in pattern.finditer(text):
                if _is_real(what, found[1]):
                    yield Found(what, found.start(1), found.end(1))
    for found in CARD.finditer(text):
        digits = re.sub(r"\D", "", found[0])
        if _is_card(digits):
            yield Found("a card number", found.start(), found.end())


def masked(text: str) -> str:
    """The text with its secrets replaced by what they were."""
    for found in sorted(secrets_in(text), key=lambda one: -one.start):
        if "[masked" not in text[found.start : found.end]:
            text = f"{text[: found.start]}[masked: {found.what}]{text[found.end :]}"
    return text


def _is_real(what: str, value: str) -> bool:
    if PLACEHOLDER.search(value):
        return False
    if what == NAMED:
        return _could_be_password(value)
    if what in WORDY:
        return len(set(value)) >= 4
    # Random letters differ: a run of one letter or a word in capitals is someone's example.
    return len(set(value)) >= 8 and _bits_per_letter(value) >= 2.8


def _could_be_password(value: str) -> bool:
    """A value that no sentence would hold: at least two kinds of signs, not a word, not a number, not a path."""
    kinds = sum(
        any(test(sign) for sign in value)
        for test in (str.islower, str.isupper, str.isdigit, lambda sign: not sign.isalnum())
    )
    core = value.strip(".,:;!?")
    return (
        kinds >= 2
        and len(core) >= 8
        and not re.fullmatch(r"[A-Za-z]?[a-z'-]+[.,:;!?]*|[\d.,:/-]+|\S*/\S*|\w+\.\w+\S*", value)
    )


def _is_card(digits: str) -> bool:
    """Of a card's length and beginning, with a right check digit (Luhn), and not one that every manual prints."""
    if not (13 <= len(digits) <= 19 and digits[0] in "23456" and len(set(digits)) >= 4):
        return False
    if digits.startswith(("4111", "4242", "5555", "378282", "601111")):
        return False
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(number - 9 * (number > 9) for number in doubled) % 10 == 0


def _bits_per_letter(value: str) -> float:
    return -sum(count / len(value) * log2(count / len(value)) for count in Counter(value).values())
