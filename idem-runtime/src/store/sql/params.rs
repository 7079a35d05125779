//! What a writer sets, as the parameters of a statement.

use std::borrow::Cow;

use serde::Serialize;
use sqlx::{Database, Encode, Type, query::Query};

use crate::{
    record::Version,
    store::{
        Audit, Ending, Finish, Moment, NewRow, Renew,
        sql::{optional, text, wait},
    },
};

/// A new row. A moment is two parameters: so long after now, or at a time.
#[derive(Debug, Serialize)]
pub(crate) struct NewRowParams<'a> {
    pub(crate) key: &'a str,
    pub(crate) status: &'a str,
    pub(crate) job: Option<Cow<'a, str>>,
    pub(crate) template: Option<Cow<'a, str>>,
    pub(crate) mode: Option<Cow<'a, str>>,
    pub(crate) on_stale: Option<Cow<'a, str>>,
    pub(crate) owner: Option<Cow<'a, str>>,
    pub(crate) attempt: i32,
    pub(crate) takeovers: i32,
    pub(crate) lease_in: Option<i64>,
    pub(crate) lease_at: Option<i64>,
    pub(crate) fingerprint: Option<Cow<'a, str>>,
    pub(crate) result: Option<Cow<'a, str>>,
    pub(crate) error: Option<Cow<'a, str>>,
    pub(crate) worker: Option<Cow<'a, str>>,
    pub(crate) expires_in: Option<i64>,
    pub(crate) expires_at: Option<i64>,
    pub(crate) alerted_in: Option<i64>,
    pub(crate) alerted_at: Option<i64>,
}

impl<'a> NewRowParams<'a> {
    pub(crate) fn of(key: &'a str, row: &'a NewRow) -> Self {
        let (lease_in, lease_at) = moment(row.lease);
        let (expires_in, expires_at) = moment(row.expires);
        let (alerted_in, alerted_at) = moment(row.alerted);
        Self {
            key,
            status: row.status.as_str(),
            job: optional(row.job.as_ref()),
            template: optional(row.template.as_ref()),
            mode: optional(row.mode.as_ref()),
            on_stale: optional(row.on_stale.as_ref()),
            owner: optional(row.owner.as_ref()),
            attempt: row.attempt,
            takeovers: row.takeovers,
            lease_in,
            lease_at,
            fingerprint: optional(row.fingerprint.as_ref()),
            result: optional(row.result.as_ref()),
            error: optional(row.error.as_ref()),
            worker: optional(row.worker.as_ref()),
            expires_in,
            expires_at,
            alerted_in,
            alerted_at,
        }
    }
}

/// Binds all that a new row sets but its key, in the order of the fields.
pub(crate) fn bind_row<'q, 'a, DB>(
    query: Query<'q, DB, DB::Arguments>,
    row: NewRowParams<'a>,
) -> Query<'q, DB, DB::Arguments>
where
    DB: Database,
    &'a str: Encode<'a, DB> + Type<DB>,
    Option<Cow<'a, str>>: Encode<'a, DB> + Type<DB>,
    Option<i64>: Encode<'a, DB> + Type<DB>,
    i32: Encode<'a, DB> + Type<DB>,
{
    query
        .bind(row.status)
        .bind(row.job)
        .bind(row.template)
        .bind(row.mode)
        .bind(row.on_stale)
        .bind(row.owner)
        .bind(row.attempt)
        .bind(row.takeovers)
        .bind(row.lease_in)
        .bind(row.lease_at)
        .bind(row.fingerprint)
        .bind(row.result)
        .bind(row.error)
        .bind(row.worker)
        .bind(row.expires_in)
        .bind(row.expires_at)
        .bind(row.alerted_in)
        .bind(row.alerted_at)
}

/// Binds a key and the version in which its row is expected.
pub(crate) fn bind_expected<'q, 'a, DB>(
    query: Query<'q, DB, DB::Arguments>,
    key: &'a str,
    expected: &'a Version,
) -> Query<'q, DB, DB::Arguments>
where
    DB: Database,
    &'a str: Encode<'a, DB> + Type<DB>,
    Option<&'a str>: Encode<'a, DB> + Type<DB>,
    Option<i64>: Encode<'a, DB> + Type<DB>,
    i64: Encode<'a, DB> + Type<DB>,
{
    query
        .bind(key)
        .bind(expected.status.as_str())
        .bind(expected.owner.as_deref())
        .bind(expected.fence)
        .bind(expected.lease_until)
        .bind(expected.created_at)
}

/// Binds an ending, in the order of the fields.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn bind_finish<'q, 'a, DB>(
    query: Query<'q, DB, DB::Arguments>,
    finish: FinishParams<'a>,
) -> Query<'q, DB, DB::Arguments>
where
    DB: Database,
    &'a str: Encode<'a, DB> + Type<DB>,
    Option<Cow<'a, str>>: Encode<'a, DB> + Type<DB>,
    Option<i64>: Encode<'a, DB> + Type<DB>,
    i64: Encode<'a, DB> + Type<DB>,
    i32: Encode<'a, DB> + Type<DB>,
{
    query
        .bind(finish.key)
        .bind(finish.owner)
        .bind(finish.fence)
        .bind(finish.status)
        .bind(finish.result)
        .bind(finish.error)
        .bind(finish.expires_in)
        .bind(finish.withdrawn)
}

/// Binds the claim that a phase is written under, and whether the write also counts once a person has released it.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn bind_claim<'q, 'a, DB>(
    query: Query<'q, DB, DB::Arguments>,
    job: &'a Renew,
    ends: bool,
) -> Query<'q, DB, DB::Arguments>
where
    DB: Database,
    &'a str: Encode<'a, DB> + Type<DB>,
    i64: Encode<'a, DB> + Type<DB>,
    bool: Encode<'a, DB> + Type<DB>,
{
    let job = RenewParams::of(job);
    query.bind(job.key).bind(job.owner).bind(job.fence).bind(job.lease).bind(ends)
}

/// Binds a line of the audit table, behind the key.
pub(crate) fn bind_audit<'q, 'a, DB>(
    query: Query<'q, DB, DB::Arguments>,
    audit: &'a Audit,
) -> Query<'q, DB, DB::Arguments>
where
    DB: Database,
    Cow<'a, str>: Encode<'a, DB> + Type<DB>,
    Option<Cow<'a, str>>: Encode<'a, DB> + Type<DB>,
{
    query
        .bind(text(&audit.actor))
        .bind(text(&audit.from_status))
        .bind(text(&audit.to_status))
        .bind(text(&audit.note))
        .bind(optional(audit.old_result.as_ref()))
}

fn moment(moment: Moment) -> (Option<i64>, Option<i64>) {
    match moment {
        Moment::Never => (None, None),
        Moment::In(duration) => (Some(wait(duration)), None),
        Moment::At(time) => (None, Some(time)),
    }
}

/// The end of an execution.
#[derive(Debug, Serialize)]
pub(crate) struct FinishParams<'a> {
    pub(crate) key: &'a str,
    pub(crate) owner: &'a str,
    pub(crate) fence: i64,
    pub(crate) status: &'static str,
    pub(crate) result: Option<Cow<'a, str>>,
    pub(crate) error: Option<Cow<'a, str>>,
    pub(crate) expires_in: Option<i64>,
    /// How many attempts the row is to forget.
    pub(crate) withdrawn: i32,
}

impl<'a> FinishParams<'a> {
    pub(crate) fn of(finish: &'a Finish) -> Self {
        let params = Self {
            key: &finish.key,
            owner: &finish.owner,
            fence: finish.fence,
            status: "processing",
            result: None,
            error: None,
            expires_in: None,
            withdrawn: 0,
        };
        match &finish.ending {
            Ending::Completed { result, ttl } => Self {
                status: "completed",
                result: optional(result.as_ref()),
                expires_in: ttl.map(wait),
                ..params
            },
            Ending::Failed { error, ttl } => {
                Self { status: "failed", error: Some(text(error)), expires_in: ttl.map(wait), ..params }
            }
            Ending::Released { error, purge_after, withdrawn } => Self {
                status: "released",
                error: optional(error.as_ref()),
                expires_in: purge_after.map(wait),
                withdrawn: i32::from(*withdrawn),
                ..params
            },
            Ending::Held { error } => Self { error: optional(error.as_ref()), ..params },
        }
    }
}

/// A lease to renew.
#[derive(Debug, Serialize)]
pub(crate) struct RenewParams<'a> {
    pub(crate) key: &'a str,
    pub(crate) owner: &'a str,
    pub(crate) fence: i64,
    pub(crate) lease: i64,
}

impl<'a> RenewParams<'a> {
    pub(crate) fn of(renew: &'a Renew) -> Self {
        Self { key: &renew.key, owner: &renew.owner, fence: renew.fence, lease: wait(renew.lease) }
    }
}
