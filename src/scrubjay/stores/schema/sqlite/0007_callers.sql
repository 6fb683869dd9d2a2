-- Who may call, where, and what became of it. Released files are never edited.

-- Secrets are never kept: a key as its SHA-256 (it is random, so that is enough), a password as argon2 makes it.
-- Revoked rows stay, so that the audit can name them.
CREATE TABLE credentials (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,     -- memory.CredentialKind
    user       TEXT NOT NULL,
    role       TEXT NOT NULL,     -- memory.Role
    spaces     TEXT,              -- JSON; none: all that its user is granted
    name       TEXT NOT NULL,
    secret     BLOB,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX credentials_by_user ON credentials (user);

CREATE TABLE grants (
    user  TEXT NOT NULL,
    space TEXT NOT NULL,          -- a name, or * for every space
    at    INTEGER NOT NULL,
    by    TEXT NOT NULL,
    PRIMARY KEY (user, space)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    secret     BLOB PRIMARY KEY,  -- SHA-256 of the cookie
    credential TEXT,              -- none: the local owner
    guard      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Changes of rights, beside the feeds of the spaces, which tell of changes of memories.
CREATE TABLE acts (
    number    INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    user      TEXT NOT NULL,
    action    TEXT NOT NULL,
    space     TEXT,
    subject   TEXT,
    client    TEXT NOT NULL,
    transport TEXT NOT NULL,
    reason    TEXT
) STRICT;
