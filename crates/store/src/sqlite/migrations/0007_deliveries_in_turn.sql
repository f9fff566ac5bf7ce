-- Webhooks are delivered in turn by account, first attempts and retries apart.

-- The account of the audit, so that the accounts with due webhooks are found without reading every due webhook.
ALTER TABLE deliveries ADD COLUMN account_id TEXT;
-- While an attempt is under way: when it counts as lost.
ALTER TABLE deliveries ADD COLUMN claimed_until INTEGER;
UPDATE deliveries
SET account_id = (SELECT account_id FROM audits WHERE audits.position = deliveries.position)
WHERE state = 'pending';

CREATE INDEX deliveries_first ON deliveries (account_id, due_at, position)
    WHERE state = 'pending' AND attempts = 0;
CREATE INDEX deliveries_retry ON deliveries (account_id, due_at, position)
    WHERE state = 'pending' AND attempts > 0;
CREATE INDEX deliveries_claimed ON deliveries (claimed_until) WHERE claimed_until IS NOT NULL;
