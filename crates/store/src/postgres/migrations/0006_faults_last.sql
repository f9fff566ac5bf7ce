-- Of an account's audits, those that failed least often come first: one that brings down whoever works on it must not do so
-- again before the others had their turn. Servers of the version before go on with the indexes that they know.
CREATE INDEX audits_by_faults ON audits (account_id, (batch_id IS NULL), faults, position) WHERE state = 'waiting';
CREATE INDEX audits_in_lanes_by_faults ON audits (account_id, (batch_id IS NULL), location, faults, position) WHERE state = 'waiting';
