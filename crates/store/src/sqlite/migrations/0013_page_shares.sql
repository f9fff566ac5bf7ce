-- Shared pages that are not reports, such as a comparison of two audits. Only the server interprets `page`.
CREATE TABLE page_shares (
    token      TEXT    NOT NULL PRIMARY KEY,
    account_id TEXT    NOT NULL REFERENCES accounts (id),
    page       TEXT    NOT NULL,
    shared_at  INTEGER NOT NULL,
    expires_at INTEGER,
    UNIQUE (account_id, page)
) STRICT;
CREATE INDEX page_shares_by_expiry ON page_shares (expires_at) WHERE expires_at IS NOT NULL;
