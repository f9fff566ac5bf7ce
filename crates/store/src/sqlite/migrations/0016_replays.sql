-- Audits that visit the recording of another one are found by the id of that audit.
CREATE INDEX audits_by_recording ON audits (json_extract(options, '$.replay.recording'), number)
    WHERE json_extract(options, '$.replay.recording') IS NOT NULL;
