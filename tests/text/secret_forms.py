"""How people and agents write secrets, and what only looks like one, in our own words.

Values are drawn when the tests run, so that none that looks real lies in a file.
"""

from __future__ import annotations

import base64
import json
import random
import string
from uuid import UUID

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
CAPITALS = string.ascii_uppercase + "234567"


def made(length: int, letters: str = LETTERS, *, seed: str = "") -> str:
    """Random letters, among them a capital, a small one and a digit where they are allowed."""
    draw = random.Random(f"{seed}/{length}/{letters}")
    while True:
        text = "".join(draw.choices(letters, k=length))
        if length < 6 or any(map(str.isdigit, text)) or not any(map(str.isdigit, letters)):
            return text


PASSWORDS = {  # as people choose them
    "short": "hunter2",
    "year": "Sommer2031!",
    "leet": "P4ssw0rt!x",
    "made": made(14, seed="password"),
    "signs": "b7#Kq" + "!vz",
    "words": "violet-Anchor-93-soup",
}
KEY = made(40, seed="key")
SLASHED = made(12, seed="s1") + "/" + made(13, seed="s2") + "+" + made(12, seed="s3")  # as AWS makes them
P, YEAR, LEET, MADE, SIGNS, WORDS = PASSWORDS.values()

ENCODED = base64.b64encode(P.encode() * 2).decode()  # as Kubernetes keeps them
SEED_PHRASE = "crane violet harbor motion ticket pepper lunar orbit thrive kidney window basket"


def pem(kind: str = "RSA ", lines: int = 6, *, head: str = "") -> str:
    body = "\n".join(made(64, LETTERS + "+/", seed=f"pem{kind}{line}") for line in range(lines))
    return f"-----BEGIN {kind}" + f"PRIVATE KEY-----\n{head}{body}\n-----END {kind}" + "PRIVATE KEY-----"


ENCRYPTED = pem(head="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC," + made(32, "0123456789ABCDEF") + "\n\n")

# kind -> text, and in it the secret that must not be left when it is masked
FORMS: list[tuple[str, str, str]] = [
    # A name and a sign
    ("sign", f"token: {KEY}", KEY),
    ("sign", f"Token = {KEY}", KEY),
    ("sign", f"pass: {P}", P),
    ("sign", f"pw: {YEAR}", YEAR),
    ("sign", f"PWD={MADE}", MADE),
    ("sign", f"SECRET_KEY = '{KEY}'", KEY),
    ("sign", f"SECRET_KEY='django-insecure-{SIGNS}{MADE}'", MADE),
    ("sign", f"aws_secret_access_key = {SLASHED}", SLASHED),
    ("sign", f"AWS Secret Access Key [None]: {SLASHED}", SLASHED),
    ("sign", f"password=>{P}", P),
    ("sign", f"Password (wifi): {P}", P),
    ("sign", f"password for root@db1: {SIGNS}", SIGNS),
    ("sign", f"The credentials of staging: {KEY}", KEY),
    ("sign", f"GROQ_KEY={made(48, seed='groq')}", made(48, seed="groq")),
    ("sign", f"client_secret: {KEY}", KEY),
    ("sign", f"Passphrase := {WORDS}", WORDS),
    ("sign", "passphrase: correct-horse-battery-staple", "correct-horse-battery-staple"),
    ("sign", f"The Wi-Fi password:\n    {P}", P),
    ("sign", f"Server=db;User Id=sa;Password={LEET};Encrypt=true", LEET),
    ("sign", f"signing key: {made(64, HEX, seed='sign')}", made(64, HEX, seed="sign")),
    ("sign", f"API_KEY_PROD={KEY}", KEY),
    ("sign", f"HEROKU_API_KEY={UUID(int=random.Random('h').getrandbits(128))}",
     str(UUID(int=random.Random("h").getrandbits(128)))),
    ("sign", f"access token -> {KEY}", KEY),
    ("sign", f"smtpPass: {YEAR}", YEAR),
    ("sign", "PIN: 482913", "482913"),
    ("sign", f"license key: {made(5, CAPITALS)}-{made(5, seed='l2')}-{made(8, seed='l3')}", made(8, seed="l3")),
    # A sentence
    ("sentence", f"The API key is {KEY}", KEY),
    ("sentence", f"The API key for billing is {KEY}.", KEY),
    ("sentence", f"The admin password for grafana is {P}", P),
    ("sentence", f"The admin password of the old router in the hall is {P}.", P),
    ("sentence", f"Our wifi password's {YEAR}", YEAR),
    ("sentence", f"My password was {P} until May.", P),
    ("sentence", f"The password is still {LEET}", LEET),
    ("sentence", f"I changed the database password to {LEET} today.", LEET),
    ("sentence", f"Set the admin password to {MADE}.", MADE),
    ("sentence", f"{P} is the password for the printer", P),
    ("sentence", f"Use {SIGNS} as the sudo password.", SIGNS),
    ("sentence", f"Log in with user anna and password {P}", P),
    ("sentence", f"The secret is {KEY}", KEY),
    ("sentence", f"the bearer token for CI is `{KEY}`", KEY),
    ("sentence", f"password - {LEET}", LEET),
    ("sentence", f"User says the passcode is now {YEAR}", YEAR),
    ("sentence", "The PIN of the safe is 7719", "7719"),
    ("sentence", f"Login: admin / {P}", P),
    ("sentence", f"Credentials for staging: anna:{LEET}", LEET),
    ("sentence", f"creds = root/{MADE}", MADE),
    ("sentence", "The seed phrase is " + SEED_PHRASE, SEED_PHRASE),
    # Markdown
    ("markdown", f"**Password:** {P}", P),
    ("markdown", f"**Password**: {P}", P),
    ("markdown", f"- **API key:** `{KEY}`", KEY),
    ("markdown", f"*Token* = `{KEY}`", KEY),
    ("markdown", f"`API_KEY`: `{KEY}`", KEY),
    ("markdown", f"__Secret__ — {KEY}", KEY),
    ("markdown", f"## Password\n\n{LEET}", LEET),
    ("markdown", f"| password | {P} |", P),
    ("markdown", f"| API key | `{KEY}` | production |", KEY),
    ("markdown", f"| Service | User | Password |\n|---|---|---|\n| Grafana | admin | {P} |", P),
    ("markdown", f"| Name | **Token** |\n|:--|--:|\n| ci | `{KEY}` |\n| cd | none |", KEY),
    ("markdown", f"> password: {P}", P),
    ("markdown", f"1. Kennwort: `{LEET}`", LEET),
    ("export", f"name,url,username,password\ngrafana,https://grafana.test,admin,{P}", P),
    ("export", f"host\tuser\tpassword\ndb1\troot\t{MADE}", MADE),
    # XML, JSON, YAML and settings
    ("settings", f"<password>{P}</password>", P),
    ("settings", f"<apiKey type='live'>{KEY}</apiKey>", KEY),
    ("settings", f'<add key="ApiKey" value="{KEY}" />', KEY),
    ("settings", f"<Password><![CDATA[{LEET}]]></Password>", LEET),
    ("settings", json.dumps({"password": P}), P),
    ("settings", json.dumps({"db": {"user": "x", "pass": LEET}}), LEET),
    ("settings", json.dumps({"name": "API_KEY", "value": KEY}), KEY),
    ("settings", json.dumps(json.dumps({"token": KEY})), KEY),
    ("settings", f"env:\n  - name: DB_PASSWORD\n    value: {LEET}", LEET),
    ("settings", "data:\n  password: " + ENCODED, ENCODED),
    ("settings", f"DATABASE_PASSWORD='{SIGNS}'", SIGNS),
    ("settings", f"[default]\nsecret = {SLASHED}", SLASHED),
    ("settings", f":password => '{LEET}',", LEET),
    ("settings", f"const client = login({{ apiKey: '{KEY}' }})", KEY),
    ("settings", f'setPassword("{LEET}")', LEET),
    ("settings", f"CREATE USER anna WITH PASSWORD '{P}';", P),
    ("settings", f"CREATE USER anna IDENTIFIED BY '{LEET}';", LEET),
    ("settings", f"ENV DB_PASSWORD {LEET}", LEET),
    ("settings", f"machine api.harbour.test login anna password {MADE}", MADE),
    ("settings", f"db.harbour.test:5432:boats:anna:{MADE}", MADE),
    ("settings", f"APP_KEY=base64:{SLASHED}=", SLASHED),
    # Commands and requests
    ("command", f"deploy --token {KEY} --dry-run", KEY),
    ("command", f"deploy --api-key={KEY}", KEY),
    ("command", f"psql --password {P}", P),
    ("command", f"curl -u anna:{P} https://api.harbour.test", P),
    ("command", f"curl -s --user 'anna:{WORDS}' https://api.harbour.test", WORDS),
    ("command", f"curl -H 'X-Api-Key: {KEY}' https://api.harbour.test", KEY),
    ("command", f"curl -H 'Authorization: Bearer {KEY}' x", KEY),
    ("command", f"Authorization: token {KEY}", KEY),
    ("command", f"use Bearer {KEY} for it", KEY),
    ("command", f"mysql -u root -p{LEET} boats", LEET),
    ("command", f"sshpass -p '{LEET}' ssh root@db1", LEET),
    ("command", f"docker login -u anna -p {LEET} registry.test", LEET),
    ("command", f"redis-cli -h db1 -a {MADE} ping", MADE),
    ("command", f"PGPASSWORD={P} psql -h db1", P),
    ("command", f"https://api.harbour.test/boats?access_token={KEY}&page=2", KEY),
    ("command", f"https://maps.harbour.test/api?key={KEY}", KEY),
    ("command", f"redis://:{MADE}@cache:6379/0", MADE),
    ("command", f"Cookie: lang=de; sid={KEY}", KEY),
    ("command", f"otpauth://totp/Harbour:anna?secret={made(32, CAPITALS, seed='otp')}", made(32, CAPITALS, seed="otp")),
    # Other languages
    ("german", f"Das Passwort für Grafana lautet {P}", P),
    ("german", f"Das WLAN-Passwort ist {YEAR}", YEAR),
    ("german", f"Kennwort: {LEET}", LEET),
    ("german", f"Der API-Schlüssel ist {KEY}", KEY),
    ("german", f"Zugangsdaten: admin / {P}", P),
    ("french", f"Le mot de passe du wifi est {P}", P),
    ("french", f"mot de passe : {LEET}", LEET),
    ("french", f"La clé API est {KEY}", KEY),
    ("french", f"jeton d'accès : {KEY}", KEY),
    ("spanish", f"La contraseña de la base de datos es {P}", P),
    ("spanish", f"Contraseña: {LEET}", LEET),
    ("spanish", f"La clave de API es {KEY}", KEY),
    ("spanish", f"clave: {LEET}", LEET),
    ("japanese", f"パスワードは{P}です", P),
    ("japanese", f"管理者のパスワード：{LEET}", LEET),
    ("japanese", f"APIキーは {KEY} です。", KEY),
    ("japanese", f"アクセストークン: {KEY}", KEY),
    ("portuguese", f"A senha do servidor é {P}", P),
    ("portuguese", f"chave de API: {KEY}", KEY),
    ("russian", f"Пароль от сервера: {LEET}", LEET),
    ("russian", f"Пароль — {P}", P),
    ("russian", f"API-ключ: {KEY}", KEY),
    ("chinese", f"密码是{LEET}", LEET),
    ("italian", f"La password del router è {P}", P),
    ("dutch", f"Het wachtwoord is {P}", P),
    # By shape
    ("provider", f"gsk_{made(52, seed='g')}", made(52, seed="g")),
    ("provider", f"we use xai-{made(80, seed='x')} for it", made(80, seed="x")),
    ("provider", f"sbp_{made(40, HEX, seed='sb')}", made(40, HEX, seed="sb")),
    ("provider", f"sb_secret_{made(31, seed='sb2')}", made(31, seed="sb2")),
    ("provider", f"sntryu_{made(64, HEX, seed='se')}", made(64, HEX, seed="se")),
    ("provider", f"sntrys_eyJ{made(120, seed='se2')}", made(120, seed="se2")),
    ("provider", f"ATATT3xFfGF0{made(180, seed='at')}={made(8, '0123456789ABCDEF')}", made(180, seed="at")),
    ("provider", f"ATBB{made(32, seed='bb')}", made(32, seed="bb")),
    ("provider", f"tskey-auth-{made(12, seed='ts')}CNTRL-{made(32, seed='ts2')}", made(32, seed="ts2")),
    ("provider", f"hf_{made(34, seed='hf')}", made(34, seed="hf")),
    ("provider", f"r8_{made(37, seed='r8')}", made(37, seed="r8")),
    ("provider", f"nvapi-{made(64, seed='nv')}", made(64, seed="nv")),
    ("provider", f"pplx-{made(48, seed='pp')}", made(48, seed="pp")),
    ("provider", f"nfp_{made(40, seed='nf')}", made(40, seed="nf")),
    ("provider", f"{made(3, seed='a8')}8Q~{made(34, seed='az')}", made(34, seed="az")),
    # Private keys
    ("private key", pem(), made(64, LETTERS + "+/", seed="pemRSA 3")),
    ("private key", json.dumps({"private_key": pem("")}), made(64, LETTERS + "+/", seed="pem5")),
    ("private key", 'KEY="' + pem("EC ").replace("\n", "\\n") + '"', made(64, LETTERS + "+/", seed="pemEC 4")),
    ("private key", json.dumps(json.dumps({"key": pem("")})), made(64, LETTERS + "+/", seed="pem2")),
    ("private key", "\n".join(f"> {line}" for line in pem("OPENSSH ").split("\n")),
     made(64, LETTERS + "+/", seed="pemOPENSSH 5")),
    ("private key", ENCRYPTED, made(64, LETTERS + "+/", seed="pemRSA 5")),
    ("private key", ENCRYPTED.replace("\n", "\\n"), made(64, LETTERS + "+/", seed="pemRSA 5")),
    ("private key", pem("ENCRYPTED ").rpartition("\n")[0], made(64, LETTERS + "+/", seed="pemENCRYPTED 5")),
    ("private key", "\n".join("    " + line for line in pem("PGP ").replace("KEY-", "KEY BLOCK-").split("\n")),
     made(64, LETTERS + "+/", seed="pemPGP 5")),
]  # fmt: skip

LOOK_ALIKES = [
    "The password policy is 12 characters",
    "the token budget is 4000",
    "password is stored in 1Password",
    "secret: nobody knows about the party",
    "The device is 6f1c2a9e-4b7d-4e83-9a51-0d2f7c8b3e64.",
    f"Fixed in commit {made(40, HEX, seed='sha')}.",
    f"sha256: {made(64, HEX, seed='sum')}",
    f"data:image/png;base64,iVBORw0KGgo{made(200, LETTERS + '+/', seed='png')}==",
    "API_KEY=${API_KEY}",
    "token: <your token>",
    "password: changeme",
    "api_key: YOUR_API_KEY",
    "token = os.environ['GITHUB_TOKEN']",
    "password = getpass.getpass('Password: ')",
    "api_key=os.getenv('OPENAI_API_KEY')",
    "const token = process.env.TOKEN2",
    "password: str | None = None",
    "password: {{ vault_grafana_2 }}",
    "token: ${{ secrets.NPM_TOKEN2 }}",
    "secretName: db-credentials-2",
    "The API key is in 1Password under Billing 2031",
    "The password for grafana is in the vault since 2031",
    "token: required, a string of 32 characters",
    "max_tokens: 4096, tokens_per_minute: 128000",
    "Tokens: 12k in, 3k out",
    "Tokenizer: cl100k_base",
    "The primary key is user_id2",
    "cache_key: user:1234:profile:v2",
    "partition key = tenant2_orders",
    "public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + made(43, seed="pub"),
    "The key fingerprint is SHA256:" + made(43, seed="print"),
    "The token type is OAuth2 and the algorithm RS256",
    "password hashing: Argon2id with 3 rounds",
    "Passwords: PBKDF2-SHA256, never plain",
    "The secret to good bread is time",
    "The key takeaway of Q3-2031 is patience",
    "Password reset link: https://harbour.test/reset/2031",
    "PASSWORD_FILE=/run/secrets/db2_password",
    "token_url: https://auth.harbour.test/oauth2/token",
    "The session token expires after 3600s",
    "next_page_token: " + made(24, seed="page"),
    "pass: 12 of 14 tests, fail: 2",
    "PASS: test_login_2 (0.3s)",
    "Anna's passport is in drawer B12",
    "The password manager is Bitwarden2",
    "Rotate the token every 90d",
    "Das Passwort steht im Tresor, Fach 12b",
    "Le mot de passe doit avoir 12 caractères",
    "La contraseña caduca cada 90 días",
    "パスワードは12文字以上です",
    "Пароль должен быть длиннее 12 символов",
    "password: 8-16 characters, 1 digit",
    "| Setting | Password |\n|---|---|\n| length | 12 |\n| where | vault |",
    "| Model | Tokens |\n|---|---|\n| small | 4096 |\n| large | 128k |",
    "curl -u $USER:$TOKEN https://api.harbour.test",
    "curl -u username:password https://api.harbour.test",
    "postgres://user:password@localhost:5432/db",
    "<password>********</password>",
    "export TOKEN=$(gh auth token)",
    "--token TOKEN  the token to use",
    "password: see the wiki, page12",
    "The secret ingredient is vitamin-b12",
    "Use --password-stdin instead of --password",
    "integrity: sha512-" + made(86, LETTERS + "+/", seed="sri") + "==",
    "A password like correct horse is easy to remember",
    "The token is a JWT signed with RS256",
    "PIN headers: 40, GPIO 17",
    "The order 4471-AB12 has no secret",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
]  # fmt: skip
