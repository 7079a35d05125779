use anyhow::Result;
use clap::Args;

use super::{jobs::Jobs, ratio::Ratio, scratch::Scratch};
use crate::{interrupt::Interrupt, program};

/// Measures what the attribute costs to build, beside the same functions without it; needs no server.
#[derive(Args, Debug)]
pub(crate) struct Build {
    /// A few rounds: a first look.
    #[arg(long)]
    quick: bool,
}

const CHECK: [&str; 1] = ["check"];
const BUILD: [&str; 1] = ["build"];

impl Build {
    pub(crate) fn run(&self, interrupt: &Interrupt) -> Result<()> {
        let scratch = Scratch::new("jobs", interrupt)?;
        for count in [200, 100, 50] {
            for annotated in [false, true] {
                scratch.jobs(Jobs { count, annotated, called: false })?;
            }
        }
        for count in PROGRAMS {
            for annotated in [false, true] {
                scratch.jobs(Jobs { count, annotated, called: true })?;
            }
        }
        scratch.fetch()?;

        heading(
            "what is built, milliseconds",
            ["functions", "plain", "annotated", "ratio", "95 % of medians"],
        );
        for (work, cargo, count, incremental) in [
            ("check", CHECK, 200, false),
            ("check", CHECK, 100, false),
            ("check", CHECK, 50, false),
            ("build", BUILD, 200, false),
            ("check again, incremental", CHECK, 200, true),
        ] {
            let [plain, annotated] = ["plain", "annotated"].map(|kind| format!("{kind}-{count}"));
            let once = |name: &str| scratch.time(&cargo, name, incremental);
            let (ratio, each) = self.compare(|| once(&plain), || once(&annotated))?;
            line(&ratio.row(work, count));
            println!("{:>28} {:.1} ms for each function", "", each * 1e3 / f64::from(u32::try_from(count)?));
        }
        program_sizes(&scratch)?;
        self.macros(interrupt)
    }

    /// Seconds of the one and of the other, in turns; and the median of their difference.
    fn compare(
        &self,
        one: impl Fn() -> Result<f64>,
        other: impl Fn() -> Result<f64>,
    ) -> Result<(Ratio, f64)> {
        let rounds = if self.quick { 3 } else { 15 };
        let mut ratio = Ratio::default();
        let mut more = Vec::new();
        // The first round builds what both depend on, and does not count.
        for round in 0..=rounds {
            let (one, other) = if round % 2 == 0 {
                let one = one()?;
                (one, other()?)
            } else {
                let other = other()?;
                (one()?, other)
            };
            if round > 0 {
                ratio.add(one * 1e3, other * 1e3);
                more.push(other - one);
            }
        }
        more.sort_by(f64::total_cmp);
        Ok((ratio, more[more.len() / 2]))
    }

    /// The macros' crate alone, beside the one that most programs have already.
    fn macros(&self, interrupt: &Interrupt) -> Result<()> {
        let scratch = Scratch::new("macros", interrupt)?;
        let macros = program::workspace().join("idem-macros").canonicalize()?;
        scratch.add(
            "idem",
            &format!("idem-macros = {{ path = \"{}\" }}\n", macros.display()),
            "lib.rs",
            "",
        )?;
        scratch.add("tracing", "tracing-attributes = \"0.1\"\n", "lib.rs", "")?;
        scratch.fetch()?;
        heading("from nothing, milliseconds", ["crates", "tracing", "idem", "ratio", "95 % of medians"]);
        let once = |name: &str| scratch.time_from_nothing(&BUILD, name);
        let (ratio, _) = self.compare(|| once("tracing"), || once("idem"))?;
        line(&ratio.row("idem-macros", scratch.dependencies("idem")?));
        println!("{:>28} {} crates of tracing-attributes", "", scratch.dependencies("tracing")?);
        Ok(())
    }
}

/// The functions of the two programs whose difference is what a function adds.
const PROGRAMS: [usize; 2] = [50, 100];

fn program_sizes(scratch: &Scratch<'_>) -> Result<()> {
    println!("\nwhat one more function adds to a program for release, without symbols, in bytes");
    for kind in ["plain", "annotated"] {
        let [small, large] = PROGRAMS.map(|count| scratch.program_size(&format!("{kind}-{count}-program")));
        let (small, large) = (small?, large?);
        let each = large.saturating_sub(small) / (PROGRAMS[1] - PROGRAMS[0]) as u64;
        println!("{kind:<28} {each:>9} ({small} with {}, {large} with {})", PROGRAMS[0], PROGRAMS[1]);
    }
    Ok(())
}

fn heading(work: &str, columns: [&str; 5]) {
    let [count, one, other, ratio, interval] = columns;
    println!("\n{work:<28} {count:>9} {one:>9} {other:>9} {ratio:>6}   {interval}");
}

fn line(row: &[String; 6]) {
    let [work, count, one, other, ratio, interval] = row;
    println!("{work:<28} {count:>9} {one:>9} {other:>9} {ratio:>6}   {interval}");
}
