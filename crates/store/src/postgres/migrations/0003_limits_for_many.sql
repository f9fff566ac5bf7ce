-- Buckets are asked for many at once: how many of those who waited for one got what they wanted. Servers of the version
-- before go on with is_refused.
ALTER TABLE limits ADD COLUMN granted BIGINT NOT NULL DEFAULT 0;
