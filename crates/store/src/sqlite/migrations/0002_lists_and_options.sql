-- Lists, start options, batches, webhooks, and audits that can be deleted.
--
-- `audits` and `ledger` are written anew. A position is never given twice (AUTOINCREMENT), so a ledger
-- line may outlive its audit; and every audit has a number within its account, which a cursor can
-- name without telling how busy the whole service is.

ALTER TABLE accounts ADD COLUMN audits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN webhook_secret TEXT;

CREATE TABLE batches (
    id          TEXT    NOT NULL PRIMARY KEY,
    account_id  TEXT    NOT NULL REFERENCES accounts (id),
    audits      INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL
) STRICT;

CREATE TABLE new_audits (
    -- The order of acceptance, which is the queue's order.
    position         INTEGER PRIMARY KEY AUTOINCREMENT,
    tracking_id      TEXT    NOT NULL UNIQUE,
    audit_id         TEXT    NOT NULL UNIQUE,
    account_id       TEXT    NOT NULL REFERENCES accounts (id),
    -- 1, 2, 3 … within the account.
    number           INTEGER NOT NULL,
    batch_id         TEXT    REFERENCES batches (id),
    url              TEXT    NOT NULL,
    device           TEXT    NOT NULL,
    network          TEXT    NOT NULL,
    location         TEXT    NOT NULL,
    runs             INTEGER NOT NULL DEFAULT 1 CHECK (runs >= 1),
    webhook          TEXT,
    state            TEXT    NOT NULL CHECK (state IN ('waiting', 'running', 'completed')),
    attempt          INTEGER NOT NULL DEFAULT 0,
    faults           INTEGER NOT NULL DEFAULT 0,
    lease_owner      TEXT,
    lease_expires_at INTEGER,
    accepted_at      INTEGER NOT NULL,
    finished_at      INTEGER,
    error_code       TEXT,
    error_message    TEXT,
    CHECK ((state = 'running') = (lease_owner IS NOT NULL)),
    CHECK ((state = 'running') = (lease_expires_at IS NOT NULL)),
    CHECK ((state = 'completed') = (finished_at IS NOT NULL)),
    CHECK ((error_code IS NULL) = (error_message IS NULL))
) STRICT;

INSERT INTO new_audits (position, tracking_id, audit_id, account_id, number, url, device, network, location,
                        state, attempt, faults, lease_owner, lease_expires_at, accepted_at, finished_at,
                        error_code, error_message)
SELECT position, tracking_id, audit_id, account_id,
       row_number() OVER (PARTITION BY account_id ORDER BY position),
       url, device, network, location,
       state, attempt, faults, lease_owner, lease_expires_at, accepted_at, finished_at,
       error_code, error_message
FROM audits;

UPDATE accounts SET audits = counted.audits
FROM (SELECT account_id, count(*) AS audits FROM new_audits GROUP BY account_id) AS counted
WHERE counted.account_id = accounts.id;

CREATE TABLE new_reports (
    position INTEGER PRIMARY KEY REFERENCES new_audits (position),
    report   TEXT    NOT NULL
) STRICT;
INSERT INTO new_reports SELECT position, report FROM reports;

CREATE TABLE new_ledger (
    id         INTEGER PRIMARY KEY,
    account_id TEXT    NOT NULL REFERENCES accounts (id),
    amount     INTEGER NOT NULL CHECK (amount <> 0),
    reason     TEXT    NOT NULL CHECK (reason IN ('opening', 'adjustment', 'audit', 'refund')),
    -- The audit's, also after it was deleted.
    position   INTEGER,
    at         INTEGER NOT NULL,
    CHECK ((reason IN ('audit', 'refund')) = (position IS NOT NULL))
) STRICT;
INSERT INTO new_ledger SELECT id, account_id, amount, reason, position, at FROM ledger;

DROP TABLE ledger;
DROP TABLE reports;
DROP TABLE audits;
ALTER TABLE new_audits RENAME TO audits;
ALTER TABLE new_reports RENAME TO reports;
ALTER TABLE new_ledger RENAME TO ledger;

CREATE INDEX ledger_by_account ON ledger (account_id, id);
-- No audit is charged twice, and none refunded twice, whatever the code does.
CREATE UNIQUE INDEX ledger_once_per_audit ON ledger (position, reason) WHERE position IS NOT NULL;

-- Both hold only what is unfinished: they stay small however many audits are kept.
CREATE INDEX audits_waiting ON audits (position) WHERE state = 'waiting';
CREATE INDEX audits_running ON audits (lease_expires_at) WHERE state = 'running';

-- One per filter of the list, each in the list's order, so that a page is read and nothing beside it.
CREATE INDEX audits_by_account ON audits (account_id, accepted_at, number);
CREATE INDEX audits_by_url ON audits (account_id, url, accepted_at, number);
CREATE INDEX audits_by_device ON audits (account_id, device, accepted_at, number);
CREATE INDEX audits_by_network ON audits (account_id, network, accepted_at, number);
CREATE INDEX audits_by_location ON audits (account_id, location, accepted_at, number);
CREATE INDEX audits_unfinished ON audits (account_id, accepted_at, number) WHERE state <> 'completed';
CREATE INDEX audits_by_batch ON audits (batch_id, number) WHERE batch_id IS NOT NULL;

-- What a start with an idempotency key was answered.
CREATE TABLE replies (
    account_id TEXT    NOT NULL REFERENCES accounts (id),
    key        TEXT    NOT NULL,
    digest     BLOB    NOT NULL CHECK (length(digest) = 32),
    reply      TEXT    NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, key)
) STRICT;
CREATE INDEX replies_by_expiry ON replies (expires_at);

-- Webhooks of finished audits; the address stands with the audit.
CREATE TABLE deliveries (
    position   INTEGER PRIMARY KEY REFERENCES audits (position),
    attempts   INTEGER NOT NULL DEFAULT 0,
    state      TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'given-up')),
    due_at     INTEGER NOT NULL,
    last_error TEXT
) STRICT;
CREATE INDEX deliveries_pending ON deliveries (due_at) WHERE state = 'pending';
CREATE INDEX deliveries_given_up ON deliveries (position) WHERE state = 'given-up';
