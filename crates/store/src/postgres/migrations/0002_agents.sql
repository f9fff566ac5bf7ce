-- Agents that take work over HTTPS: who may, and who was seen. As in SQLite's 0005.

CREATE TABLE agents (
    id         TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    name       TEXT   COLLATE "C" NOT NULL,
    digest     BYTEA  NOT NULL CHECK (length(digest) = 32),
    created_at BIGINT NOT NULL,
    revoked_at BIGINT,
    drained_at BIGINT
);
CREATE UNIQUE INDEX agents_by_name ON agents (name) WHERE revoked_at IS NULL;

CREATE TABLE sightings (
    process    TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    agent_id   TEXT   COLLATE "C" REFERENCES agents (id),
    location   TEXT   COLLATE "C" NOT NULL,
    chromium   TEXT   NOT NULL,
    host_index DOUBLE PRECISION,
    slots      BIGINT NOT NULL,
    version    TEXT   NOT NULL,
    seen_at    BIGINT NOT NULL
);
CREATE INDEX sightings_by_time ON sightings (seen_at);

CREATE INDEX audits_by_owner ON audits (lease_owner) WHERE state = 'running';
