-- The part of a report that lists show. Audits that earlier versions finished get theirs after the migration, a few at a time.
ALTER TABLE audits ADD COLUMN lab_data TEXT;
ALTER TABLE audits ADD COLUMN summary TEXT;
CREATE INDEX audits_without_summary ON audits (position) WHERE state = 'completed' AND summary IS NULL;
