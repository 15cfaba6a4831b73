-- What other methods would have said of the trials of stored studies (docs/method-evidence.md).
-- sqlite3 -box ~/.local/share/nicpoll/studies.db < docs/method-pitfalls.sql

-- Sender only: packets that were sent, and packets that arrived.
SELECT study, workload, setting, count(*) AS trials,
       sum(document ->> '$.figures.sender.packets') AS sent,
       sum(document ->> '$.figures.receiver.packets') AS arrived
  FROM trial
 WHERE document ->> '$.figures.sender.packets' > 0
   AND document ->> '$.figures.receiver.packets' > 0
 GROUP BY study, workload, setting;

-- First one setting, then the other: the same setting in the first and the second half of a study.
WITH half AS (
    SELECT study, workload, setting, delivered_bits_per_second AS rate,
           ntile(2) OVER (PARTITION BY study, workload, setting ORDER BY sequence) AS half
      FROM trial WHERE delivered_bits_per_second > 0)
SELECT study, workload, setting, count(*) AS trials,
       round(avg(rate) FILTER (WHERE half = 2) / avg(rate) FILTER (WHERE half = 1), 2) AS second_half_to_first
  FROM half GROUP BY study, workload, setting;

-- A fixed order: the same setting where it came first in its block, and where it came last.
WITH placed AS (
    SELECT study, workload, setting, delivered_bits_per_second AS rate,
           row_number() OVER up AS from_first, row_number() OVER down AS from_last
      FROM trial WHERE delivered_bits_per_second > 0
    WINDOW up AS (PARTITION BY study, workload, block ORDER BY sequence),
           down AS (PARTITION BY study, workload, block ORDER BY sequence DESC))
SELECT study, workload, setting, count(*) AS trials,
       round(avg(rate) FILTER (WHERE from_last = 1) / avg(rate) FILTER (WHERE from_first = 1), 2) AS last_to_first
  FROM placed GROUP BY study, workload, setting;

-- A void rule: trials without those in which the hypervisor or other programs took more than 1.6 cores.
WITH disturbed AS (
    SELECT study, workload, setting, delivered_bits_per_second AS rate,
           max(document ->> '$.findings.steal_ratio',
               (SELECT sum(value ->> '$.busy_ratio')
                  FROM json_each(trial.document, '$.findings.foreign_cpu'))) AS taken
      FROM trial WHERE delivered_bits_per_second > 0)
SELECT study, workload, setting, count(*) AS trials,
       count(*) FILTER (WHERE taken > 1.6) AS void,
       round(avg(rate) / 1e6, 2) AS all_mbit_a_second,
       round(avg(rate) FILTER (WHERE taken <= 1.6) / 1e6, 2) AS rest_mbit_a_second
  FROM disturbed GROUP BY study, workload, setting;
