-- Sessions that audits sign in with. The definition and the state are sealed like stored secrets. The table `sessions` has
-- the sessions of the web pages.
CREATE TABLE saved_sessions (
    account_id TEXT    NOT NULL REFERENCES accounts (id),
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    definition BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state      BLOB,
    made_at    INTEGER,
    PRIMARY KEY (account_id, name)
) STRICT;
