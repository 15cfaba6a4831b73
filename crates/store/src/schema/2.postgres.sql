-- What 2.sql makes, as PostgreSQL says it.
UPDATE study SET kind = 'study' WHERE kind = 'demo' AND document::json #>> '{argv,1}' = 'study';

ALTER TABLE study ADD COLUMN argv TEXT GENERATED ALWAYS AS (document::json ->> 'argv') STORED;
ALTER TABLE study ADD COLUMN question TEXT GENERATED ALWAYS AS (document::json ->> 'question') STORED;
