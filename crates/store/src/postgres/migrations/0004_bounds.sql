-- Bounds on what one token, key, link or account may take. As in SQLite's 0006.

ALTER TABLE agents ADD COLUMN locations TEXT;
ALTER TABLE agents ADD COLUMN slots BIGINT CHECK (slots > 0);

ALTER TABLE shares ADD COLUMN expires_at BIGINT;
CREATE INDEX shares_by_expiry ON shares (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX sessions_by_key ON sessions (key_id, expires_at);

CREATE INDEX ledger_refunds ON ledger (account_id, at) WHERE reason = 'refund';
