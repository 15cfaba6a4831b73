-- A study of a file was called a demo.
UPDATE study SET kind = 'study' WHERE kind = 'demo' AND document ->> '$.argv[1]' = 'study';

ALTER TABLE study ADD COLUMN argv TEXT GENERATED ALWAYS AS (document ->> '$.argv') VIRTUAL;
-- What a study is to answer; null of a live comparison.
ALTER TABLE study ADD COLUMN question TEXT GENERATED ALWAYS AS (document ->> '$.question') VIRTUAL;
