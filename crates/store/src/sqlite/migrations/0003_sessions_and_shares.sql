-- What the pages need: who is signed in, and which reports are shared.

-- A session's secret is with the browser; here is its digest.
CREATE TABLE sessions (
    digest     BLOB    NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
    key_id     TEXT    NOT NULL REFERENCES keys (id),
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- The token is shown to the owner again, so it is kept as it is; it opens one report and nothing else.
CREATE TABLE shares (
    position  INTEGER PRIMARY KEY REFERENCES audits (position) ON DELETE CASCADE,
    token     TEXT    NOT NULL UNIQUE,
    shared_at INTEGER NOT NULL
) STRICT;
