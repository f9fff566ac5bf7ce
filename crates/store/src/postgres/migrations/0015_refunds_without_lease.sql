-- Audits that were cancelled before their first lease are no failures, also after they were deleted; see SQLite's
-- migration 0017.
ALTER TABLE ledger ADD COLUMN never_leased BOOLEAN NOT NULL DEFAULT false;
UPDATE ledger SET never_leased = true
WHERE reason = 'refund'
  AND EXISTS (SELECT 1 FROM audits WHERE audits.position = ledger.position AND attempt = 0);
