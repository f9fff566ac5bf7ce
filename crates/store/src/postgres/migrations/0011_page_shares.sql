-- Shared pages that are not reports; see SQLite's migration 0013. A page contains a URL, which can be too long for an
-- index.
CREATE TABLE page_shares (
    token      TEXT   COLLATE "C" PRIMARY KEY,
    account_id TEXT   COLLATE "C" NOT NULL REFERENCES accounts (id),
    page       TEXT   NOT NULL,
    shared_at  BIGINT NOT NULL,
    expires_at BIGINT
);
CREATE UNIQUE INDEX page_shares_by_page ON page_shares (account_id, md5(page));
CREATE INDEX page_shares_by_expiry ON page_shares (expires_at) WHERE expires_at IS NOT NULL;
