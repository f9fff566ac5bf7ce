-- Webhooks are delivered in turn by account, first attempts and retries apart.

-- The account of the audit, so that the accounts with due webhooks are found without reading every due webhook. Servers of
-- the version before leave it empty; a claim fills it in.
ALTER TABLE deliveries ADD COLUMN account_id TEXT COLLATE "C";
-- While an attempt is under way: when it counts as lost.
ALTER TABLE deliveries ADD COLUMN claimed_until BIGINT;

CREATE INDEX deliveries_without_account ON deliveries (position)
    WHERE state = 'pending' AND account_id IS NULL;
CREATE INDEX deliveries_first ON deliveries (account_id, due_at, position)
    WHERE state = 'pending' AND attempts = 0;
CREATE INDEX deliveries_retry ON deliveries (account_id, due_at, position)
    WHERE state = 'pending' AND attempts > 0;
CREATE INDEX deliveries_claimed ON deliveries (claimed_until) WHERE claimed_until IS NOT NULL;
