//! How many statements a job of phases costs.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use idem_runtime::{
    Error, Idem, Record, idempotent, phase,
    record::Version,
    store::{
        Answer, Audit, Audited, Finish, Insert, PhaseWrite, Renew, Renewal, Replace, Reply, Store, Watch,
        memory::MemoryStore,
    },
};

/// A store that counts what it is asked: each request is one statement, and each write is made durable once.
#[derive(Debug, Default)]
struct Counted {
    rows: MemoryStore,
    writes: AtomicUsize,
    reads: AtomicUsize,
}

impl Counted {
    fn write(&self) -> &MemoryStore {
        self.writes.fetch_add(1, Ordering::Relaxed);
        &self.rows
    }

    fn read(&self) -> &MemoryStore {
        self.reads.fetch_add(1, Ordering::Relaxed);
        &self.rows
    }

    /// How many writes and reads there were since it was asked last.
    fn since(&self) -> (usize, usize) {
        (self.writes.swap(0, Ordering::Relaxed), self.reads.swap(0, Ordering::Relaxed))
    }
}

impl Store for Counted {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn writers(&self) -> usize {
        1
    }

    fn is_local(&self) -> bool {
        true
    }

    fn prepare(&self, create: bool) -> Reply<'_, ()> {
        self.rows.prepare(create)
    }

    fn ddl(&self) -> String {
        self.rows.ddl()
    }

    fn insert<'a>(&'a self, batch: &'a [Insert]) -> Reply<'a, Vec<Answer>> {
        self.write().insert(batch)
    }

    fn replace<'a>(&'a self, replacement: &'a Replace) -> Reply<'a, Answer> {
        self.write().replace(replacement)
    }

    fn finish<'a>(&'a self, batch: &'a [Finish]) -> Reply<'a, Vec<Answer>> {
        self.write().finish(batch)
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Reply<'a, Vec<Renewal>> {
        self.write().renew(batch)
    }

    fn phase<'a>(&'a self, batch: &'a [PhaseWrite]) -> Reply<'a, Vec<Answer>> {
        self.write().phase(batch)
    }

    fn between<'a>(&'a self, after: &'a str, before: &'a str, limit: u32) -> Reply<'a, Vec<Record>> {
        self.read().between(after, before, limit)
    }

    fn read<'a>(&'a self, keys: &'a [Arc<str>]) -> Reply<'a, Vec<Option<Record>>> {
        Counted::read(self).read(keys)
    }

    fn watch<'a>(&'a self, watch: &'a Watch) -> Reply<'a, Vec<Record>> {
        self.rows.watch(watch)
    }

    fn audit<'a>(&'a self, key: &'a str) -> Reply<'a, Vec<Audited>> {
        self.rows.audit(key)
    }

    fn purge(&self, limit: u32) -> Reply<'_, u64> {
        self.rows.purge(limit)
    }

    fn forget<'a>(&'a self, key: &'a str, expected: &'a Version, audit: &'a Audit) -> Reply<'a, bool> {
        self.rows.forget(key, expected, audit)
    }
}

#[idempotent(key = "counted:<id>", on_stale = "retry", idem = idem)]
async fn three(idem: &Idem, id: u32) -> Result<u32, Error> {
    let charged: u32 = phase!("charge", async { Ok(1) });
    let invoiced: u32 = phase!("invoice", on_stale = "retry", async { Ok(1) });
    let mailed: u32 = phase!("mail", mode = "record_after", async { Ok(1) });
    Ok(charged + invoiced + mailed)
}

#[tokio::test]
async fn a_job_of_three_phases_costs_six_writes_and_reads_nothing() -> Result<(), Error> {
    let store = Arc::new(Counted::default());
    let shared: Arc<Counted> = Arc::clone(&store);
    let idem = Idem::builder().store(shared).watcher(false).connect().await?;
    store.since();
    assert_eq!(three(&idem, 1).await?, 3);
    // Claim, the phase's claim and its completion, two completions of phases without claims, completion.
    assert_eq!(store.since(), (6, 0));
    three(&idem, 1).await?;
    assert_eq!(
        store.since(),
        (1, 0),
        "a repeat is one statement, which writes nothing where the key is there"
    );
    Ok(())
}
