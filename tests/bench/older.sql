-- A ledger that has been in use for long: :rows runs, spread evenly over the eight weeks before last
-- week, in their partitions. What an append costs must not depend on them. (Not for verify: nothing
-- here is a chain.)
SELECT auditrun.make_partitions('11 weeks', now() - interval '9 weeks');
SET synchronous_commit = off;
INSERT INTO auditrun.runs
SELECT (left(auditrun.uuid7_floor(now() - interval '9 weeks'
                                  + g * (interval '8 weeks' / :rows))::text, 14)
        || '7' || substr(gen_random_uuid()::text, 16, 4) || 'a' || right(gen_random_uuid()::text, 16))::uuid,
    '00000000-0000-7000-8000-000000000001', g, 1, 'company-' || 1 + g * 7919 % 1000,
    'an actor of the bench-' || 1 + g * 104729 % 1000, 'measuring what rows cost', NULL, 0, 0, 0,
    'python', sha256(g::text::bytea), 36,
    '{"data_api":[],"filesystem":{"read":[],"write":[]},"limits":{"cpu_ms":2000,"memory_bytes":268435456,"wall_ms":5000},"network":{"mode":"none"},"secrets":[]}',
    'namespace', '0.1.0', sha256('envelope'), 'succeeded', 'exit_zero', '[]', 0, NULL,
    '{"memory_peak_bytes":10485760,"system_us":3000,"user_us":12000,"wall_us":31000}', NULL,
    now(), now(), now(), now(), false, sha256('before'), sha256('this')
FROM generate_series(1::bigint, :rows::bigint) AS g;
ANALYZE auditrun.runs;
