-- Secrets of clients. Only the server can open `sealed`, with a key that is not in the database.
CREATE TABLE stored_secrets (
    account_id TEXT    NOT NULL REFERENCES accounts (id),
    name       TEXT    NOT NULL,
    sealed     BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, name)
) STRICT;
