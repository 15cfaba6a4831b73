-- What 1.sql makes, as PostgreSQL says it.
CREATE TABLE study (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'ended_early')),
    reason TEXT,
    owner TEXT,
    trials_planned BIGINT NOT NULL,
    design TEXT NOT NULL,
    document TEXT NOT NULL,
    schema TEXT GENERATED ALWAYS AS (document::json ->> 'schema') STORED,
    started_at TEXT GENERATED ALWAYS AS (document::json ->> 'started_at') STORED,
    elapsed_seconds DOUBLE PRECISION
        GENERATED ALWAYS AS ((document::json ->> 'elapsed_seconds')::double precision) STORED,
    nicpoll_version TEXT GENERATED ALWAYS AS (document::json ->> 'nicpoll_version') STORED,
    kernel TEXT GENERATED ALWAYS AS (document::json #>> '{host,kernel}') STORED
);

CREATE TABLE trial (
    study BIGINT NOT NULL REFERENCES study (id) ON DELETE CASCADE,
    sequence BIGINT NOT NULL,
    taken_seconds DOUBLE PRECISION NOT NULL,
    document TEXT NOT NULL,
    block BIGINT GENERATED ALWAYS AS ((document::json ->> 'block')::bigint) STORED,
    workload TEXT GENERATED ALWAYS AS (document::json ->> 'workload') STORED,
    setting TEXT GENERATED ALWAYS AS (document::json ->> 'setting') STORED,
    delivered_bits_per_second DOUBLE PRECISION GENERATED ALWAYS AS
        ((document::json #>> '{figures,delivered_bits_per_second}')::double precision) STORED,
    PRIMARY KEY (study, sequence)
);

CREATE UNIQUE INDEX trial_once ON trial (study, block, workload, setting);
