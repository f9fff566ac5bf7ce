-- Of an account's audits, those that failed least often come first: one that brings down whoever works on it must not do so
-- again before the others had their turn.
DROP INDEX audits_in_lanes;
CREATE INDEX audits_in_lanes ON audits (account_id, (batch_id IS NULL), location, faults, position) WHERE state = 'waiting';
