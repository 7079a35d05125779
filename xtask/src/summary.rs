use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The steps of a run and how each ended.
#[derive(Debug, Default)]
pub(crate) struct Summary(Vec<Row>);

#[derive(Debug)]
struct Row {
    step: String,
    ending: Ending,
    took: Duration,
}

#[derive(Debug)]
enum Ending {
    Passed,
    Failed(String),
    LeftOut(String),
}

impl Summary {
    /// Takes a step; the run goes on whatever becomes of it.
    pub(crate) fn step(&mut self, step: &str, work: impl FnOnce() -> Result<()>) {
        println!("\n── {step} ──");
        let begun = Instant::now();
        let ending = work().map_or_else(|error| Ending::Failed(format!("{error:#}")), |()| Ending::Passed);
        self.0.push(Row { step: step.to_owned(), ending, took: begun.elapsed() });
    }

    /// Notes a step that cannot be taken here.
    pub(crate) fn left_out(&mut self, step: &str, reason: &str) {
        println!("\n── {step} ──\nleft out: {reason}");
        self.0.push(Row {
            step: step.to_owned(),
            ending: Ending::LeftOut(reason.to_owned()),
            took: Duration::ZERO,
        });
    }

    /// Shows them all; an error if one failed.
    pub(crate) fn close(self) -> Result<()> {
        println!("\nsummary");
        for Row { step, ending, took } in &self.0 {
            let (result, detail) = match ending {
                Ending::Passed => ("ok", String::new()),
                Ending::Failed(error) => ("FAILED", error.lines().next().unwrap_or_default().to_owned()),
                Ending::LeftOut(reason) => ("left out", reason.clone()),
            };
            println!(
                "{}",
                format!("  {step:<22} {result:<9} {:>6.1} s  {detail}", took.as_secs_f64()).trim_end()
            );
        }
        let failed: Vec<_> = self.0.iter().filter(|row| matches!(row.ending, Ending::Failed(_))).collect();
        match failed[..] {
            [] => Ok(()),
            [Row { step, .. }] => bail!("{step} failed"),
            _ => bail!("{} steps failed", failed.len()),
        }
    }
}
