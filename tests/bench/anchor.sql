-- The anchor of the ledger's rate: what single-row inserts by 64 clients can do on the same cluster.
-- About as many bytes a row and as many indexes as the ledger has, and none of its checks, so that
-- the comparison does not flatter the daemon.
CREATE TABLE anchor (
    run_id      uuid        PRIMARY KEY,
    company     text        NOT NULL,
    actor       text        NOT NULL,
    purpose     text        NOT NULL,
    language    text        NOT NULL,
    code_sha256 bytea       NOT NULL,
    permissions json        NOT NULL,
    provider    text        NOT NULL,
    status      text        NOT NULL,
    usage       json        NOT NULL,
    recorded_at timestamptz NOT NULL,
    prev_hash   bytea       NOT NULL,
    row_hash    bytea       NOT NULL
);
CREATE INDEX anchor_company_key ON anchor (company, recorded_at);
CREATE INDEX anchor_code_key ON anchor (code_sha256);
