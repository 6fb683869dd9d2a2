"""Secrets that people and agents leave in texts: keys, tokens, passwords, card numbers.

They are known by their shape (`secret_shapes.py`), as the services that issue them made it, or by a name that someone
wrote beside them, as in "The wifi password is …". Examples, placeholders and values from the environment are none.
"""

# ruff: noqa: E501 -- a pattern reads best in one piece, and people write in many alphabets

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from scrubjay.text.secret_shapes import (
    HEX,
    OTHERS,
    PARTS,
    PASSWORD,
    PIN,
    SHAPES,
    TOKEN,
    Secret,
    could_be_secret,
    secrets_by_shape,
)


def secrets_in(text: str) -> Iterator[Secret]:
    """What looks like a real secret, in no particular order; placeholders and examples are passed over."""
    if "masked" in text:
        text = MASK.sub(_opaque, text)
    yield from secrets_by_shape(text)
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


# --- by their name ---------------------------------------------------------------------------------------------------
#
#     The admin password for grafana is hunter2!       **API key** (prod): `…`       | Token | … |
#               └ stem   └ about what └ sign └ value
#
# A stem is looked for in the folded text, what follows it is matched there, and the value is judged as it was written:
# what people choose themselves by other measures than what machines make.

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
        if _is_clearly_secret(name.kind, secret) and could_be_secret(name.kind, secret, sure=False):
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
    return Secret(kind, start, start + len(secret)) if could_be_secret(kind, secret, sure=sure) else None


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
                if kind is not None and VALUE.fullmatch(secret) and could_be_secret(kind, secret, sure=True):
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
