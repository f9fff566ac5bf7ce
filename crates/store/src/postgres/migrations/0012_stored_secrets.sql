-- Secrets of clients; see SQLite's migration 0014.
CREATE TABLE stored_secrets (
    account_id TEXT   COLLATE "C" NOT NULL REFERENCES accounts (id),
    name       TEXT   COLLATE "C" NOT NULL,
    sealed     BYTEA  NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, name)
);
