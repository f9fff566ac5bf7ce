-- The webhook of a batch is sent after that of the audit that ended last. Servers of the version before do not count the audits
-- that they finish; the webhook of a batch is not sent if they finished some of its audits.

-- How many audits of a batch with a webhook have ended, deleted ones included.
ALTER TABLE batches ADD COLUMN finished BIGINT NOT NULL DEFAULT 0;
UPDATE batches
SET finished = audits - (SELECT count(*) FROM audits AS unfinished
                         WHERE unfinished.batch_id = batches.id AND unfinished.state <> 'completed')
WHERE id IN (SELECT batch_id FROM audits WHERE state <> 'completed' AND batch_id IS NOT NULL);

-- Set for the audit that ended last.
ALTER TABLE deliveries ADD COLUMN batch_id TEXT COLLATE "C";
-- True from the moment when the webhook of the batch is due.
ALTER TABLE deliveries ADD COLUMN is_batch BOOLEAN NOT NULL DEFAULT false;
