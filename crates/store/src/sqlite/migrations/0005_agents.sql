-- Agents that take work over HTTPS: who may, and who was seen.

-- Of a token only its digest is here.
CREATE TABLE agents (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    digest     BLOB    NOT NULL CHECK (length(digest) = 32),
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    -- Gets no new work since then.
    drained_at INTEGER
) STRICT;
-- The name of a revoked agent is free again.
CREATE UNIQUE INDEX agents_by_name ON agents (name) WHERE revoked_at IS NULL;

-- What each running agent says about itself, embedded ones included, which have no token.
CREATE TABLE sightings (
    process    TEXT    NOT NULL PRIMARY KEY,
    agent_id   TEXT    REFERENCES agents (id),
    location   TEXT    NOT NULL,
    chromium   TEXT    NOT NULL,
    host_index REAL,
    slots      INTEGER NOT NULL,
    version    TEXT    NOT NULL,
    seen_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX sightings_by_time ON sightings (seen_at);

-- Which audit a slot of an agent holds; small, as the other indexes of what is unfinished.
CREATE INDEX audits_by_owner ON audits (lease_owner) WHERE state = 'running';
