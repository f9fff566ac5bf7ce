-- Whose turn it is: accounts are served in turn, single starts before batches.
--
-- A lane is there while an account has audits waiting for a location, so that the next account is found without
-- stepping over the many audits of another.
CREATE TABLE lanes (
    account_id  TEXT    NOT NULL REFERENCES accounts (id),
    location    TEXT    NOT NULL,
    -- 0 for the audits of batches.
    interactive INTEGER NOT NULL CHECK (interactive IN (0, 1)),
    -- The account's, of `turns`; 0 before the first.
    turn        INTEGER NOT NULL,
    -- The position of the audit that opened it: decides between accounts that were never served.
    since       INTEGER NOT NULL,
    PRIMARY KEY (account_id, interactive, location)
) STRICT;
CREATE INDEX lanes_by_turn ON lanes (interactive, turn, since);
CREATE INDEX lanes_by_location ON lanes (location, interactive, turn, since);

-- When an account was last given a lease; outlives its lanes.
CREATE TABLE turns (
    account_id TEXT    NOT NULL PRIMARY KEY REFERENCES accounts (id),
    turn       INTEGER NOT NULL
) STRICT;

-- One row: how many leases were given, and which of them was the last to a batch's audit.
CREATE TABLE queue_clock (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    turn       INTEGER NOT NULL,
    batch_turn INTEGER NOT NULL
) STRICT;
INSERT INTO queue_clock VALUES (1, 0, 0);

CREATE INDEX audits_in_lanes ON audits (account_id, (batch_id IS NULL), location, position) WHERE state = 'waiting';
CREATE INDEX audits_running_of ON audits (account_id) WHERE state = 'running';

INSERT INTO lanes (account_id, location, interactive, turn, since)
SELECT account_id, location, batch_id IS NULL, 0, min(position) FROM audits INDEXED BY audits_waiting
WHERE state = 'waiting' GROUP BY account_id, location, batch_id IS NULL;
