//! What a call brings along.

use crate::{
    current::Context,
    error::Error,
    fingerprint::{Fingerprint, Fingerprinter},
    idem::Idem,
    job::Job,
    key::{KeyPart, Rendering, render},
};

/// A call's job, its key, its fingerprint and the `Idem` it names. No type of the job's is in it, so it is the same
/// code for every job. Boxed, because it is handed on often, and in a debug build each time leaves a copy on the stack,
/// once for each job that calls another.
#[derive(Debug)]
#[must_use]
pub struct Ticket {
    pub(crate) job: &'static Job,
    pub(crate) idem: Option<Idem>,
    pub(crate) key: Rendering,
    pub(crate) fingerprint: Fingerprinter,
    pub(crate) problem: Option<Error>,
    /// Whether it is a phase of the job around it.
    pub(crate) is_phase: bool,
}

impl Ticket {
    /// A call of a job, so far without its values.
    pub fn new(job: &'static Job) -> Box<Self> {
        let key = render(job.template());
        let fingerprint = Fingerprinter::default();
        Box::new(Self { job, idem: None, key, fingerprint, problem: None, is_phase: false })
    }

    /// Entering a phase, so far without what tells it from its like.
    pub fn phase(phase: &'static Job) -> Box<Self> {
        let mut ticket = Self::new(phase);
        ticket.is_phase = true;
        ticket
    }

    /// The job that is called: of a phase, what it is within the one around it.
    pub(super) fn called(&self) -> &'static Job {
        match Context::current().filter(|_| self.is_phase) {
            Some(outer) => self.job.within(outer.job),
            None => self.job,
        }
    }

    /// The next placeholder's value.
    pub fn part(mut self: Box<Self>, value: &dyn KeyPart) -> Box<Self> {
        self.key = self.key.part(value);
        self
    }

    /// The next value that must be equal under an equal key.
    pub fn fingerprint(mut self: Box<Self>, value: &dyn Fingerprint) -> Box<Self> {
        match value.canonical() {
            Ok(json) => self.fingerprint.add(&json),
            Err(error) => {
                self.problem.get_or_insert_with(|| Error::InvalidKey {
                    template: self.job.shape().to_owned(),
                    reason: format!("its fingerprint cannot be taken: {error}"),
                });
            }
        }
        self
    }

    /// The `Idem` to use in place of the installed one.
    #[must_use]
    pub fn idem(mut self: Box<Self>, idem: &Idem) -> Box<Self> {
        self.idem = Some(idem.clone());
        self
    }
}
