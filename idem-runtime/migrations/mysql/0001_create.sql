CREATE TABLE IF NOT EXISTS {table} (
    `key` varbinary(255) NOT NULL PRIMARY KEY,
    status varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT 'processing',
    job mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    template mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    mode varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    on_stale varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    owner varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    fence bigint NOT NULL DEFAULT 0,
    attempt int NOT NULL DEFAULT 0,
    takeovers int NOT NULL DEFAULT 0,
    lease_until bigint NULL,
    fingerprint varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    result longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    error mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    worker mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    expires_at bigint NULL,
    alerted_at bigint NULL,
    created_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    completed_at timestamp(6) NULL DEFAULT NULL,
    KEY {expires} (expires_at),
    KEY {claims} (status, lease_until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS {audit} (
    id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    `key` varbinary(255) NOT NULL,
    actor mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    from_status varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    to_status varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    note mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    old_result longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    KEY {audited} (`key`)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS {schema} (
    only_row tinyint NOT NULL DEFAULT 1 PRIMARY KEY,
    version int NOT NULL,
    fence_floor bigint NOT NULL DEFAULT 0
) ENGINE = InnoDB;

INSERT INTO {schema} (only_row, version) VALUES (1, 1) ON DUPLICATE KEY UPDATE version = version;
