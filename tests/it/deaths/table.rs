//! The shape of the table, the tests that it comes to, and the document that shows it.

use std::fmt::Write as _;

use super::{
    GROUPS,
    answer::Answer,
    jobs::{Ends, Job},
    phases,
    stop::Stop,
};

/// What happened to the key before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// A worker died after its effect, and its lease has ended.
    Died,
    /// A body returned an `Err` after its effect.
    Failed,
    /// A body was completed, and its ttl is over.
    Expired,
}

/// The lines of one job that ends in one way.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) job: Job,
    pub(super) ends: Ends,
    pub(super) before: Before,
    title: &'static str,
    lines: &'static [Line],
}

/// A process that dies or stands still at a point.
#[derive(Debug)]
pub(super) struct Line {
    name: &'static str,
    pub(super) stop: Stop,
    /// Three where it dies; four where it goes on.
    pub(super) answers: &'static [Answer],
    pub(super) ran: usize,
    pub(super) effects: usize,
    pub(super) status: &'static str,
    pub(super) attempt: i32,
    pub(super) error: Option<&'static str>,
}

macro_rules! lines {
    ($($group:ident $job:ident $ends:ident $before:ident $title:literal {
        $($line:ident $stop:ident: $($answer:ident),+ => $ran:literal $effects:literal $status:ident $attempt:literal $($error:literal)?;)+
    })+) => {
        pub(in $crate::deaths) const GROUPS: &[Group] = &[$(
            Group::new(stringify!($group), $job, $ends, $before, $title, &[$(
                Line::new(
                    stringify!($line),
                    $stop,
                    &[$($answer),+],
                    [$ran, $effects],
                    stringify!($status),
                    $attempt,
                    &[$($error)?],
                ),
            )+]),
        )+];

        $crate::deaths::table::on!(sqlite: Sqlite $($group { $($line)+ })+);
        $crate::deaths::table::on!(postgres: Postgres $($group { $($line)+ })+);
        $crate::deaths::table::on!(mysql: Mysql $($group { $($line)+ })+);
    };
}

macro_rules! on {
    ($name:ident: $backend:ident $($group:ident { $($line:ident)+ })+) => {
        mod $name {$(
            mod $group {$(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $line() {
                    let on = idem_tests::Backend::$backend;
                    let line = (stringify!($group), stringify!($line));
                    $crate::deaths::play::plays(on, super::super::GROUPS, line).await;
                }
            )+}
        )+}
    };
}

pub(super) use {lines, on};

impl Group {
    pub(super) const fn new(
        name: &'static str,
        job: Job,
        ends: Ends,
        before: Before,
        title: &'static str,
        lines: &'static [Line],
    ) -> Self {
        Self { name, job, ends, before, title, lines }
    }

    fn is_stopped(&self) -> bool {
        self.lines[0].own_answer().is_some()
    }

    /// As a table of the document.
    fn shown(&self) -> String {
        let mut text = format!("{}.\n\n", self.title);
        let [subject, itself] =
            if self.is_stopped() { ["stands still", " it goes on: |"] } else { ["dies", ""] };
        let effects = if self.job.is_transactional() { "runs | the job's rows" } else { "effects" };
        let heads = format!(
            "| the process {subject} | at once | after the lease |{itself} later | {effects} | test |"
        );
        let rule = "| --- ".repeat(heads.matches('|').count() - 1);
        let _ = writeln!(text, "{heads}\n{rule}|");
        for line in self.lines {
            let [at_once, later, again] = line.deliveries().map(Answer::phrase);
            let itself = line.own_answer().map_or_else(String::new, |own| format!(" {} |", own.own_phrase()));
            let module = if self.job.is_phased() { "deaths::phases" } else { "deaths" };
            let ran = if self.job.is_transactional() { format!("{} | ", line.ran) } else { String::new() };
            let _ = writeln!(
                text,
                "| {} | {at_once} | {later} |{itself} {again} | {ran}{} | `{module}::*::{}::{}` |",
                line.stop.phrase(),
                line.effects,
                self.name,
                line.name,
            );
        }
        text
    }
}

impl Line {
    pub(super) const fn new(
        name: &'static str,
        stop: Stop,
        answers: &'static [Answer],
        [ran, effects]: [usize; 2],
        status: &'static str,
        attempt: i32,
        error: &'static [&'static str],
    ) -> Self {
        let error = if error.is_empty() { None } else { Some(error[0]) };
        Self { name, stop, answers, ran, effects, status, attempt, error }
    }

    /// What the later deliveries come to: at once, when the lease has ended, and once more.
    pub(super) fn deliveries(&self) -> [Answer; 3] {
        [self.answers[0], self.answers[1], self.answers[self.answers.len() - 1]]
    }

    /// What a worker that was stopped is answered when it goes on.
    pub(super) fn own_answer(&self) -> Option<Answer> {
        (self.answers.len() == 4).then(|| self.answers[2])
    }
}

/// A line by its names.
pub(super) fn line(groups: &'static [Group], (group, line): (&str, &str)) -> (&'static Group, &'static Line) {
    let group = groups.iter().find(|one| one.name == group).expect("a group of the table");
    (group, group.lines.iter().find(|one| one.name == line).expect("a line of the group"))
}

fn groups() -> impl Iterator<Item = &'static Group> {
    GROUPS.iter().chain(phases::GROUPS)
}

#[test]
fn the_document_shows_the_table() {
    let document = include_str!("../../../docs/guarantees.md");
    let count = |stopped| -> usize {
        let groups = groups().filter(|group| group.is_stopped() == stopped);
        groups.map(|group| group.lines.len()).sum()
    };
    let counted = format!("{} points of death and {} of standing still", count(false), count(true));
    eprintln!("{counted}, each on three databases");
    let shown = groups().map(Group::shown);
    let missing: Vec<_> = shown.filter(|shown| !document.contains(shown)).collect();
    assert!(missing.is_empty(), "docs/guarantees.md does not show\n\n{}", missing.join("\n"));
    assert!(document.contains(&counted), "docs/guarantees.md does not speak of {counted}");
    let lines = count(false) + count(true);
    let matches = |lines: &str| document.matches(lines).count();
    let named = matches("| `deaths::*::") + matches("| `deaths::phases::*::");
    assert_eq!(named, lines, "docs/guarantees.md shows lines that are none");
}
