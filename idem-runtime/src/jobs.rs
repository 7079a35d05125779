//! All annotated functions of the linked crates, and whether two of them can share a key.

use std::{fmt, iter};

use crate::job::Job;

/// A registered job, for the attribute's expansion.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct JobRef(pub &'static Job);

inventory::collect!(JobRef);

/// Every annotated function of the linked crates, in no particular order.
pub fn all() -> impl Iterator<Item = &'static Job> {
    inventory::iter::<JobRef>.into_iter().map(|job| job.0)
}

/// Checks that no two jobs of the linked crates can render the same key; for a test:
///
/// ```
/// # use idem_runtime::jobs;
/// jobs::check()?;
/// # Ok::<(), jobs::Overlaps>(())
/// ```
///
/// # Errors
///
/// [`Overlaps`] names each pair and where its functions stand.
pub fn check() -> Result<(), Overlaps> {
    let overlaps = overlaps();
    if overlaps.is_empty() { Ok(()) } else { Err(Overlaps(overlaps)) }
}

/// Two jobs whose templates can render the same key.
#[derive(Debug, Clone, Copy)]
pub struct Overlap {
    /// One of them.
    pub first: &'static Job,
    /// The other.
    pub second: &'static Job,
}

impl Overlap {
    /// Whether a job is one of the two.
    pub(crate) fn concerns(&self, job: &Job) -> bool {
        std::ptr::eq(self.first, job) || std::ptr::eq(self.second, job)
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = (self.first, self.second);
        write!(
            f,
            "`{}` ({}, `{}`) and `{}` ({}, `{}`) can render the same key; give each its own first word, or write \
             `allow_overlap({})` on one of them if one key space is meant",
            first.path(),
            first.location(),
            first.shape(),
            second.path(),
            second.location(),
            second.shape(),
            second.path(),
        )
    }
}

/// The pairs of jobs that can share a key.
#[derive(Debug, Clone)]
pub struct Overlaps(Vec<Overlap>);

impl Overlaps {
    /// The pairs.
    #[must_use]
    pub fn pairs(&self) -> &[Overlap] {
        &self.0
    }
}

impl fmt::Display for Overlaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, pair)| {
            let gap = if at > 0 { "\n" } else { "" };
            write!(f, "{gap}{pair}")
        })
    }
}

impl std::error::Error for Overlaps {}

/// All pairs that can share a key, in the order of their places.
pub(crate) fn overlaps() -> Vec<Overlap> {
    let mut jobs: Vec<(&'static Job, Vec<Segment>)> =
        all().map(|job| (job, segments(job.template()))).collect();
    jobs.sort_unstable_by_key(|(job, _)| (job.path(), job.location()));
    let mut pairs = Vec::new();
    for (at, (first, ours)) in jobs.iter().enumerate() {
        for (second, theirs) in &jobs[at + 1..] {
            if can_meet(ours, theirs) && !allowed(first, second) && !allowed(second, first) {
                pairs.push(Overlap { first, second });
            }
        }
    }
    pairs
}

/// Whether `job` allows to share its keys with `other`: a path of its `allow_overlap` ends like the other's.
fn allowed(job: &Job, other: &Job) -> bool {
    let path = other.path();
    job.overlaps_allowed().iter().any(|allowed| {
        let mut segments = allowed.trim_start_matches("::").split("::").peekable();
        while segments.next_if(|segment| matches!(*segment, "crate" | "self" | "super")).is_some() {}
        let tail: Vec<&str> = segments.collect();
        let mut theirs = path.rsplit("::");
        tail.iter().rev().all(|segment| theirs.next() == Some(*segment))
    })
}

/// Whether two templates can render the same text.
fn can_meet(a: &[Segment], b: &[Segment]) -> bool {
    a.len() == b.len() && iter::zip(a, b).all(|(a, b)| a.separator == b.separator && can_be_equal(a, b))
}

/// What stands between two separators: a literal, or a placeholder with fixed text around it.
struct Segment {
    /// The separator in front.
    separator: Option<char>,
    before: String,
    /// What follows the placeholder, where there is one.
    after: Option<String>,
}

fn segments(template: &[&str]) -> Vec<Segment> {
    let mut all = vec![Segment { separator: None, before: String::new(), after: None }];
    for (at, text) in template.iter().enumerate() {
        if at > 0
            && let Some(last) = all.last_mut()
        {
            last.after = Some(String::new());
        }
        for c in text.chars() {
            if matches!(c, ':' | '|' | '#') {
                all.push(Segment { separator: Some(c), before: String::new(), after: None });
            } else if let Some(last) = all.last_mut() {
                last.after.as_mut().unwrap_or(&mut last.before).push(c);
            }
        }
    }
    all
}

fn can_be_equal(a: &Segment, b: &Segment) -> bool {
    let either_prefix = |a: &str, b: &str| a.starts_with(b) || b.starts_with(a);
    let either_suffix = |a: &str, b: &str| a.ends_with(b) || b.ends_with(a);
    match (&a.after, &b.after) {
        (None, None) => a.before == b.before,
        (Some(after), None) => holds(&b.before, &a.before, after),
        (None, Some(after)) => holds(&a.before, &b.before, after),
        (Some(a_after), Some(b_after)) => {
            either_prefix(&a.before, &b.before) && either_suffix(a_after, b_after)
        }
    }
}

/// Whether a literal can be `before<v>after`; a value is never empty.
fn holds(literal: &str, before: &str, after: &str) -> bool {
    literal.len() > before.len() + after.len() && literal.starts_with(before) && literal.ends_with(after)
}

#[cfg(test)]
mod tests {
    use super::segments;

    fn can_meet(a: &[&str], b: &[&str]) -> bool {
        super::can_meet(&segments(a), &segments(b))
    }

    #[test]
    fn templates_meet_exactly_if_their_segments_can_be_equal() {
        let meet: &[(&[&str], &[&str])] = &[
            (&["inv:", ""], &["inv:", ""]),
            (&["inv:", ":x"], &["inv:", ":", ""]),
            (&["a", ""], &["ab"]),
            (&["a:v", ""], &["a:v1", ""]),
            (&["a:", "-x"], &["a:1-x"]),
        ];
        let apart: &[(&[&str], &[&str])] = &[
            (&["a", ""], &["ab:"]),
            (&["inv:", ""], &["charge:", ""]),
            (&["inv:", ""], &["inv|", ""]),
            (&["inv:", ":", ""], &["inv:", ""]),
            (&["a:v", ""], &["a:w", ""]),
            (&["a:", "-x"], &["a:-x"]),
            (&["a:", "x"], &["a:", "y"]),
        ];
        for (a, b) in meet {
            assert!(can_meet(a, b) && can_meet(b, a), "{a:?} {b:?}");
        }
        for (a, b) in apart {
            assert!(!can_meet(a, b) && !can_meet(b, a), "{a:?} {b:?}");
        }
    }
}
