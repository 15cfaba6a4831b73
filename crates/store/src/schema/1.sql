-- A study. `document` is what --json prints, without its trials; the columns that one asks by are computed
-- from it, so that they cannot differ from it.
CREATE TABLE study (
    -- Never given to another study, also not after a deletion.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'ended_early')),
    -- Why it ended early.
    reason TEXT,
    -- The process that runs it; meaningless in any other state.
    owner TEXT,
    trials_planned INTEGER NOT NULL,
    -- What it takes to go on with it.
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
    -- Position in the study, from 1.
    sequence INTEGER NOT NULL,
    -- How long it took with all that belongs to it.
    taken_seconds REAL NOT NULL,
    document TEXT NOT NULL,
    block INTEGER GENERATED ALWAYS AS (document ->> '$.block') VIRTUAL,
    workload TEXT GENERATED ALWAYS AS (document ->> '$.workload') VIRTUAL,
    setting TEXT GENERATED ALWAYS AS (document ->> '$.setting') VIRTUAL,
    delivered_bits_per_second REAL
        GENERATED ALWAYS AS (document ->> '$.figures.delivered_bits_per_second') VIRTUAL,
    PRIMARY KEY (study, sequence)
) STRICT;

-- Nothing is run twice.
CREATE UNIQUE INDEX trial_once ON trial (study, block, workload, setting);
