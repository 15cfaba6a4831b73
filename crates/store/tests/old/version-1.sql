-- What a file of version 1 of the schema holds. Never changed: such files are in use.
CREATE TABLE study (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'ended_early')),
    reason TEXT,
    owner TEXT,
    trials_planned INTEGER NOT NULL,
    design TEXT NOT NULL,
    document TEXT NOT NULL,
    schema TEXT GENERATED ALWAYS AS (document ->> '$.schema') VIRTUAL,
    started_at TEXT GENERATED ALWAYS AS (document ->> '$.started_at') VIRTUAL,
    elapsed_seconds REAL GENERATED ALWAYS AS (document ->> '$.elapsed_seconds') VIRTUAL,
    nicpoll_version TEXT GENERATED ALWAYS AS (document ->> '$.nicpoll_version') VIRTUAL,
    kernel TEXT GENERATED ALWAYS AS (document ->> '$.host.kernel') VIRTUAL
) STRICT;

CREATE TABLE trial (
    study INTEGER NOT NULL REFERENCES study (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    taken_seconds REAL NOT NULL,
    document TEXT NOT NULL,
    block INTEGER GENERATED ALWAYS AS (document ->> '$.block') VIRTUAL,
    workload TEXT GENERATED ALWAYS AS (document ->> '$.workload') VIRTUAL,
    setting TEXT GENERATED ALWAYS AS (document ->> '$.setting') VIRTUAL,
    delivered_bits_per_second REAL
        GENERATED ALWAYS AS (document ->> '$.figures.delivered_bits_per_second') VIRTUAL,
    PRIMARY KEY (study, sequence)
) STRICT;

CREATE UNIQUE INDEX trial_once ON trial (study, block, workload, setting);

PRAGMA application_id = 1852400496;
PRAGMA user_version = 1;
