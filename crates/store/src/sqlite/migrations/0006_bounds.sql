-- Bounds on what one token, key, link or account may take.

-- Where an agent's token may be used, location ids separated by commas, and how many audits its agents may hold
-- at a time. NULL is any: a token made before tokens were bound.
ALTER TABLE agents ADD COLUMN locations TEXT;
ALTER TABLE agents ADD COLUMN slots INTEGER CHECK (slots > 0);

-- A shared link without an end is valid until it is switched off.
ALTER TABLE shares ADD COLUMN expires_at INTEGER;
CREATE INDEX shares_by_expiry ON shares (expires_at) WHERE expires_at IS NOT NULL;

-- The sessions of a key, the oldest first: all of them last equally long.
CREATE INDEX sessions_by_key ON sessions (key_id, expires_at);

-- Audits that ended without measurements, by account and time: a ledger line stays when its audit is deleted.
CREATE INDEX ledger_refunds ON ledger (account_id, at) WHERE reason = 'refund';
