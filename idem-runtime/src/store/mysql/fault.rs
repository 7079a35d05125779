//! What the error numbers of the two servers mean.

use sqlx::{MySql, MySqlConnection, error::DatabaseError, mysql::MySqlDatabaseError, raw_sql};

use crate::store::sql::{Dialect, Fault};

/// What a server may be set to against us: that nothing is committed by itself, that a commit begins the next
/// transaction, that what is not committed is read, that what does not fit is cut, that an empty text is none, that
/// locks are waited for without end, that many rows are not written or not read at once.
const GREETING: &str = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
    SET SESSION autocommit = 1, completion_type = 0, sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 1,
        lock_wait_timeout = 1, sql_safe_updates = 0, sql_select_limit = 18446744073709551615, sql_big_selects = 1";

impl Dialect for MySql {
    const QUOTE: char = '`';

    fn fault(error: &dyn DatabaseError) -> Fault {
        error.try_downcast_ref::<MySqlDatabaseError>().map_or(Fault::Refused, |error| of(error.number()))
    }

    async fn greet(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        raw_sql(GREETING).execute(connection).await.map(drop)
    }
}

fn of(number: u16) -> Fault {
    match number {
        // A deadlock. A row or a table that has changed since the statement began. A transaction that a cluster
        // undid in its commit.
        1213 | 1020 | 1412 | 1615 | 3101 => Fault::Collision,
        // A wait for a lock that is over, or was not allowed to begin.
        1205 | 3572 => Fault::Locked,
        // Too many connections, threads, prepared statements, locks. No memory, a full disk. A statement that was
        // interrupted, or took too long.
        1040 | 1135 | 1203 | 1226 | 1461 | 1206 | 1021 | 1037 | 1038 | 1041 | 1114 | 1317 | 1969 | 3024 => {
            Fault::Busy
        }
        // This server is not the primary any more: it only reads, is offline, or has left its cluster. A prepared
        // statement that it does not know. The rest: it ended the connection, or is about to.
        1290
        | 1792
        | 1836
        | 3032
        | 1047
        | 1243
        | 1053
        | 1077
        | 1079
        | 1080
        | 1152..=1161
        | 1184
        | 1927
        | 2006
        | 2013
        | 4031 => Fault::Connection,
        _ => Fault::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_means_what_is_to_be_done_about_it() {
        for (number, fault) in [
            (1213, Fault::Collision),
            (1205, Fault::Locked),
            (3572, Fault::Locked),
            (1040, Fault::Busy),
            (1461, Fault::Busy),
            (1290, Fault::Connection),
            (1836, Fault::Connection),
            (1927, Fault::Connection),
            (4031, Fault::Connection),
            (1142, Fault::Refused),
            (1146, Fault::Refused),
        ] {
            assert_eq!(of(number), fault, "{number}");
        }
    }
}
