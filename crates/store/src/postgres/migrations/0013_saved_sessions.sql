-- Sessions that audits sign in with; see SQLite's migration 0015.
CREATE TABLE saved_sessions (
    account_id TEXT   COLLATE "C" NOT NULL REFERENCES accounts (id),
    name       TEXT   COLLATE "C" NOT NULL,
    version    BIGINT NOT NULL,
    definition BYTEA  NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    state      BYTEA,
    made_at    BIGINT,
    PRIMARY KEY (account_id, name)
);
