-- Audits that were cancelled before their first lease are no failures, also after they were deleted.

-- 1 for the refund of an audit that was never leased.
ALTER TABLE ledger ADD COLUMN never_leased INTEGER NOT NULL DEFAULT 0;
UPDATE ledger SET never_leased = 1
WHERE reason = 'refund'
  AND EXISTS (SELECT 1 FROM audits WHERE audits.position = ledger.position AND attempt = 0);
