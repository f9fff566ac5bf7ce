-- Audits that visit the recording of another one; see SQLite's migration 0016.
CREATE INDEX audits_by_recording ON audits ((options::jsonb #>> '{replay,recording}'), number)
    WHERE options::jsonb #>> '{replay,recording}' IS NOT NULL;
