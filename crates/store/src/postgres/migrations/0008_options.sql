-- Options of the visit as JSON, if there are any, and the URL of the measured document where it differs from the audited one.
ALTER TABLE audits ADD COLUMN options TEXT;
ALTER TABLE audits ADD COLUMN final_url TEXT;
