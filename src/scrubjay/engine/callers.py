"""Who may call: credentials and grants, what they prove, and the audit of who did what.

    key       sj_<id>_<secret>      random, kept as a hash, sent with every request
    password  user and password     kept as argon2 makes it; opens a session on the page
    token     a subject's name      bearer tokens of the configured issuer; we keep no secret
    session   a cookie              opened by a password, a key, or the link that the server prints

A credential belongs to a user, and gives a role in the spaces granted to that user (or in some of them). What proves
nothing is Unauthenticated, whatever the reason: a stranger does not learn which part was wrong.
"""

from __future__ import annotations

import hmac
import secrets
import unicodedata
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.conversations.fence import bare_letters
from scrubjay.engine.store import intake
from scrubjay.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthenticated
from scrubjay.lazy import argon2
from scrubjay.stores.promises.memories import Reads, Transaction
from scrubjay.text.letters import normalise
from scrubjay.values.callers import (
    DEFAULT_SPACE,
    EVERY_SPACE,
    LOCAL_USER,
    Act,
    ActFilter,
    Caller,
    Credential,
    CredentialKind,
    Grant,
    Role,
    Session,
)
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import random_suffix

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

KEY_PREFIX = "sj"
MIN_PASSWORD, MAX_PASSWORD = 12, 1_000
SESSION_HOURS = 12
MAX_ACTS = 10_000
MAX_NAMED = 5  # credentials in a message
REFUSED = "The credential is not valid."


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A new credential, and its secret for the only time; None where there is none, or it was shown before."""

    credential: Credential
    secret: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A session that begins: what the browser's cookie holds, for the only time."""

    cookie: str
    session: Session


def reads_like(user: str, other: str) -> bool:
    """Whether people may take one user's name for the other's: "Alice", "alice " and "аlісе" in Cyrillic letters. Of
    a letter beside ASCII's that has a small and a capital form we may not know the look: it may pass for any."""
    one, two = (bare_letters(name).replace("l", "i") for name in (user, other))  # l and I
    if user.isascii() == other.isascii():
        return one == two
    return len(one) == len(two) and all(
        a == b or looks_unsure(a) or looks_unsure(b) for a, b in zip(one, two, strict=True)
    )


def looks_unsure(letter: str) -> bool:
    return not letter.isascii() and letter.lower() != letter.upper()


def mixes_scripts(user: str) -> bool:
    """Whether a name has letters of several scripts, as Unicode names them; those of East Asia count as one."""
    letters = [letter for letter in normalise("NFKC", user) if letter.isalpha()]
    wide = {letter for letter in letters if unicodedata.east_asian_width(letter) == "W"}
    return len({"WIDE" if one in wide else unicodedata.name(one, "").partition(" ")[0] for one in letters}) > 1


class Callers:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._records = engine.records

    # --- what owners do ----------------------------------------------------------------------------------------------

    def create(
        self,
        user: str,
        *,
        role: Role = Role.MEMBER,
        spaces: Sequence[str] | None = None,
        name: str = "",
        expires_at: datetime | None = None,
        kind: CredentialKind = CredentialKind.KEY,
        password: str | None = None,
    ) -> Issued:
        """Make a credential for a user, and grant the user its spaces.

        Without spaces it follows its user's grants; a user who has none gets the default space, an owner every space.

        :raises Forbidden: if the caller is not an owner, grants more than it has, or names a user of other spaces
        :raises SpaceNotFound: if one of the spaces is not there
        """
        access.check_owner(self._engine.caller)
        intake.check_name(user, "user")
        if len(name) > intake.MAX_NAME:
            raise InvalidInput(f"name is too long (maximum {intake.MAX_NAME} characters).", field="name")
        if expires_at is not None and expires_at <= self._engine.now():
            raise InvalidInput("expires_at must be in the future.", field="expires_at")
        wanted = None if spaces is None else tuple(dict.fromkeys(self._own_space(space) for space in spaces))
        if wanted == ():
            raise InvalidInput("spaces must name at least one space.", field="spaces")
        if wanted is None and self._engine.caller.spaces is not None:
            raise Forbidden("Name the credential's spaces.", hint="They must be among your own.")
        made = Credential(
            id=f"key_{random_suffix()}",
            kind=kind,
            user=user,
            role=role,
            spaces=None if wanted is None or EVERY_SPACE in wanted else wanted,
            name=name,
            created_at=self._engine.now(),
            created_by=self._engine.caller.user,
            expires_at=expires_at,
        )
        secret = secrets.token_urlsafe(32) if kind is CredentialKind.KEY else None
        digest = hashed_password(password) if kind is CredentialKind.PASSWORD else hash_secret(secret)

        def write(tx: Transaction) -> Credential:
            self._check_there(tx, wanted or ())
            self._check_user(tx, user)
            tx.callers.add(made, digest)
            tx.callers.grant(self._grants_for(tx, made, wants_every=EVERY_SPACE in (wanted or ())))
            self._note(tx, "credential created", subject=made.id, reason=f"{made.kind} of {user}, {role}")
            return made

        kept = self._engine.transact(Credential, write)
        # The key itself is nowhere in the store, so a request that is sent again cannot get it again.
        shown = key_text(made.id, secret) if secret is not None and kept.id == made.id else None
        return Issued(credential=kept, secret=shown)

    def credentials(self) -> Sequence[Credential]:
        """All credentials that the caller may manage, oldest first, revoked ones too."""
        access.check_owner(self._engine.caller)
        return [one for one in self._records.callers.credentials() if self._manages(self._records, one)]

    def revoke(self, id: str, *, reason: str | None = None) -> Credential:
        """End a credential at once, and every session that it opened. Doing it twice is not an error.

        After the last one the store stays locked: see `open_door`.
        """

        def write(tx: Transaction) -> Credential:
            self._manageable(tx, id)
            if tx.callers.revoke(id, at=self._engine.now()):
                self._note(tx, "credential revoked", subject=id, reason=reason)
            return self._manageable(tx, id)

        return self._engine.transact(Credential, write)

    def rotate(self, id: str) -> Issued:
        """Give a key another secret; the old one ends at once."""
        secret = secrets.token_urlsafe(32)

        def write(tx: Transaction) -> Credential:
            known = self._manageable(tx, id)
            if known.kind is not CredentialKind.KEY or known.revoked_at is not None:
                raise InvalidInput(f"{id} is not an active key.", hint="Create a new one.", field="id")
            self._check_user(tx, known.user)
            if known.spaces is None and self._engine.caller.spaces is not None:
                raise Forbidden("This key also reaches what its user is granted later.", hint="Create another one.")
            tx.callers.replace_secret(id, hash_secret(secret) or b"")
            self._note(tx, "credential rotated", subject=id)
            done.append(known)
            return known

        done: list[Credential] = []
        kept = self._engine.transact(Credential, write)
        return Issued(credential=kept, secret=key_text(id, secret) if done else None)

    def open_door(self) -> bool:
        """Ask for no credential any more, until the next one is made; False if none was asked for.

        :raises Forbidden: unless the caller is the owner of this machine
        :raises Conflict: as long as a credential is in use: whoever holds it expects a locked door
        """
        access.check_call(self._engine.caller, changes=True, local=True, owner=True)

        def write(tx: Transaction) -> bool:
            if used := [one.id for one in tx.callers.credentials() if one.good(self._engine.now())]:
                raise Conflict(
                    f"Still in use: {', '.join(used[:MAX_NAMED])}{' …' if len(used) > MAX_NAMED else ''}.",
                    hint="Revoke it first: `scrubjay keys revoke ID`.",
                )
            was_locked = tx.callers.locked()
            if was_locked:
                tx.callers.open_door()
                self._note(tx, "door opened")
            return was_locked

        return self._engine.transact(bool, write)

    def grants(self) -> Sequence[Grant]:
        """Who may enter which of the caller's spaces."""
        access.check_owner(self._engine.caller)
        own = self._engine.caller.spaces
        return [one for one in self._records.callers.grants() if own is None or one.space in own]

    def grant(self, space: str, user: str) -> Grant:
        """Let a user enter a space, or every space (`*`)."""
        access.check_owner(self._engine.caller)
        intake.check_name(user, "user")
        given = Grant(user=user, space=self._own_space(space), at=self._engine.now(), by=self._engine.caller.user)

        def write(tx: Transaction) -> Grant:
            self._check_there(tx, [space])
            tx.callers.grant([given])
            self._note(tx, "space granted", space=space, subject=user)
            return given

        return self._engine.transact(Grant, write)

    def withdraw(self, space: str, user: str) -> None:
        """Take a grant back: the user's credentials no longer reach the space.

        :raises NotFound: if there is no such grant
        """
        access.check_owner(self._engine.caller)
        self._own_space(space)

        def write(tx: Transaction) -> bool:
            if not tx.callers.withdraw(user, space):
                raise NotFound(f"{user} has no grant for {space}.", hint="`scrubjay spaces grants` lists them.")
            self._note(tx, "grant withdrawn", space=space, subject=user)
            return True

        self._engine.transact(bool, write)

    def audit(self, filter: ActFilter | None = None, *, limit: int = 100) -> Sequence[Act]:
        """Who did what in the caller's spaces, newest first."""
        access.check_owner(self._engine.caller)
        if not 1 <= limit <= MAX_ACTS:
            raise InvalidInput(f"limit must be from 1 to {MAX_ACTS:,}.", field="limit")
        wanted, own = filter or ActFilter(), self._engine.caller.spaces
        if own is not None:
            asked = own if wanted.spaces is None else wanted.spaces
            wanted = replace(wanted, spaces=frozenset(asked & own))
        return self._records.callers.acts(wanted, limit=limit)

    # --- what credentials prove --------------------------------------------------------------------------------------

    def locked(self) -> bool:
        """Whether a credential is needed: there ever was one, and `open_door` was not said since."""
        return self._records.callers.locked()

    def in_use(self) -> bool:
        """Whether any credential could still prove something."""
        return any(one.good(self._engine.now()) for one in self._records.callers.credentials())

    def by_key(self, text: str) -> Caller:
        """:raises Unauthenticated: if it is not a valid key of ours"""
        return self._caller(self._key(text))

    def by_subject(self, subject: str) -> Caller:
        """The caller that a verified token names.

        :raises Unauthenticated: if that subject has no credential
        """
        for one in self._records.callers.credentials(user=subject):
            if one.kind is CredentialKind.TOKEN and one.good(self._engine.now()):
                return self._caller(one)
        raise Unauthenticated(REFUSED)

    def by_session(self, cookie: str) -> tuple[Caller, Session]:
        """:raises Unauthenticated: if the session is over, or its credential is"""
        session = self._records.callers.session(hash_secret(cookie) or b"")
        if session is None or session.expires_at <= self._engine.now():
            raise Unauthenticated("The session has ended.", hint="Sign in again.")
        if session.credential is None:
            return self._engine.caller, session
        return self._caller(self._still_good(session.credential)), session

    def sign_in(self, *, key: str | None = None, user: str | None = None, password: str | None = None) -> SignedIn:
        """Open a session with a key, or with a user's name and password."""
        if key is not None:
            return self._open_session(self._key(key))
        return self._open_session(self._password(user or "", password or ""))

    def sign_in_locally(self) -> SignedIn:
        """A session for the person who reads what the server printed on its own terminal: the local owner."""
        return self._open_session(None)

    def sign_out(self, cookie: str) -> None:
        with self._records.writing() as tx:
            tx.callers.close_session(hash_secret(cookie) or b"")

    # --- steps -------------------------------------------------------------------------------------------------------

    def _own_space(self, space: str) -> str:
        if space != EVERY_SPACE:
            intake.check_space(space)
        own = self._engine.caller.spaces
        if own is not None and space not in own:
            raise Forbidden(f"You cannot grant access to space {space}.", space=space)
        return space

    def _check_there(self, tx: Transaction, spaces: Sequence[str]) -> None:
        """:raises SpaceNotFound: if one does not exist: otherwise a misspelt one would be granted unnoticed"""
        for space in spaces:
            if space != EVERY_SPACE:
                self._engine.known_spaces.check_there(tx, space)

    def _check_user(self, reads: Reads, user: str) -> None:
        """:raises Forbidden: if the user also belongs to spaces that the caller does not own

        Whoever holds a key in another person's name writes as that person.
        """
        own = self._engine.caller.spaces
        if own is None or user == self._engine.caller.user:
            return
        if mixes_scripts(user):
            raise Forbidden(
                f"{user} mixes letters of several scripts: only an owner of every space can make keys in that name.",
                hint="Write it in one script, or ask that owner.",
            )
        places = {grant.space for grant in reads.callers.grants() if reads_like(user, grant.user)}
        places.update(*(one.spaces or () for one in reads.callers.credentials() if reads_like(user, one.user)))
        if reads_like(user, LOCAL_USER) or not places <= own:
            raise Forbidden(
                f"{user} reads like a user of other spaces: only an owner of every space can make keys in that name.",
                hint="Choose another name, or ask that owner.",
            )

    def _grants_for(self, tx: Transaction, made: Credential, *, wants_every: bool) -> Sequence[Grant]:
        if made.spaces is not None:
            spaces: Sequence[str] = made.spaces
        elif wants_every or (made.role is Role.OWNER and not tx.callers.grants(user=made.user)):
            spaces = (EVERY_SPACE,)
        else:
            spaces = () if tx.callers.grants(user=made.user) else (DEFAULT_SPACE,)
        return [Grant(user=made.user, space=space, at=made.created_at, by=made.created_by) for space in spaces]

    def _manageable(self, reads: Reads, id: str) -> Credential:
        access.check_owner(self._engine.caller)
        found = reads.callers.credential(id)
        if found is None or not self._manages(reads, found[0]):
            raise NotFound(f"No credential {id[:100]}.", hint="`scrubjay keys list` shows them.")
        return found[0]

    def _manages(self, reads: Reads, credential: Credential) -> bool:
        """Whether all that it reaches is the caller's own."""
        own = self._engine.caller.spaces
        if own is None:
            return True
        reached = reached_spaces(reads, credential)
        return reached is not None and reached <= own

    def _caller(self, credential: Credential) -> Caller:
        spaces = reached_spaces(self._records, credential)
        grants = [one for one in self._records.callers.grants(user=credential.user) if one.space in (spaces or ())]
        first = [one.space for one in grants if one.at == min(grant.at for grant in grants)]
        return Caller(
            user=credential.user,
            role=credential.role,
            spaces=spaces,
            home=first[0] if len(first) == 1 else None,
            credential=credential.id,
            local=False,
        )

    def _key(self, text: str) -> Credential:
        prefix, _, rest = text.partition("_")
        suffix, _, secret = rest.partition("_")
        found = self._records.callers.credential(f"key_{suffix}") if prefix == KEY_PREFIX and suffix.isalnum() else None
        digest = hash_secret(secret) or b""
        if found is None or found[1] is None or found[0].kind is not CredentialKind.KEY:
            raise Unauthenticated(REFUSED)
        if not hmac.compare_digest(found[1], digest) or not found[0].good(self._engine.now()):
            raise Unauthenticated(REFUSED)
        return found[0]

    def _password(self, user: str, password: str) -> Credential:
        """An unknown user takes as long as a wrong password."""
        now = self._engine.now()
        mine = [
            one
            for one in self._records.callers.credentials(user=user)
            if one.kind is CredentialKind.PASSWORD and one.good(now)
        ]
        for one in mine:
            found = self._records.callers.credential(one.id)
            if found is not None and found[1] is not None and fits(password, found[1]):
                return one
        if not mine:
            fits(password, UNKNOWN)
        raise Unauthenticated("Wrong name or password.")

    def _still_good(self, id: str) -> Credential:
        found = self._records.callers.credential(id)
        if found is None or not found[0].good(self._engine.now()):
            raise Unauthenticated(REFUSED)
        return found[0]

    def _open_session(self, credential: Credential | None) -> SignedIn:
        cookie, now = secrets.token_urlsafe(32), self._engine.now()
        session = Session(
            credential=None if credential is None else credential.id,
            guard=secrets.token_urlsafe(24),
            created_at=now,
            expires_at=now + timedelta(hours=SESSION_HOURS),
        )
        user = self._engine.caller.user if credential is None else credential.user
        with self._records.writing() as tx:
            tx.callers.open_session(session, hash_secret(cookie) or b"")
            self._note(tx, "signed in", subject=session.credential, user=user)
        return SignedIn(cookie=cookie, session=session)

    def _note(self, tx: Transaction, action: str, *, space: str | None = None, **about: Any) -> None:
        """`about`: see `Act`."""
        given = {"user": self._engine.caller.user, "credential": self._engine.caller.credential, **about}
        client, transport = self._engine.provenance.client, self._engine.provenance.transport
        within = None if space == EVERY_SPACE else space
        now = self._engine.now()
        tx.callers.note(Act(at=now, action=action, space=within, client=client, transport=transport, **given))


def reached_spaces(reads: Reads, credential: Credential) -> frozenset[str] | None:
    """The granted spaces that a credential reaches; None: every space."""
    granted = {one.space for one in reads.callers.grants(user=credential.user)}
    if EVERY_SPACE in granted:
        return None if credential.spaces is None else frozenset(credential.spaces)
    return frozenset(granted if credential.spaces is None else granted.intersection(credential.spaces))


def key_text(id: str, secret: str) -> str:
    return f"{KEY_PREFIX}_{id.removeprefix('key_')}_{secret}"


def hash_secret(secret: str | None) -> bytes | None:
    """Enough for what is random: 256 bits cannot be guessed from their hash."""
    return None if secret is None else sha256(secret.encode("utf-8", "replace")).digest()


def hashed_password(password: str | None) -> bytes:
    """:raises InvalidInput: if it is too short"""
    if password is None or not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        raise InvalidInput(f"A password must have {MIN_PASSWORD} to {MAX_PASSWORD:,} characters.", field="password")
    return argon2.PasswordHasher().hash(password.encode("utf-8", "replace")).encode()


def fits(password: str, digest: bytes) -> bool:
    if len(password) > MAX_PASSWORD:
        return False
    try:
        return argon2.PasswordHasher().verify(digest, password.encode("utf-8", "replace"))
    except argon2.exceptions.Argon2Error:
        return False


# Of a password that no one has; made with the parameters in use, so that comparing with it takes as long.
UNKNOWN = b"$argon2id$v=19$m=65536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
