//! What an order promises of its phases.

use idem_runtime::Status;

use super::laws::{Broken, Case, frees};
use crate::{
    book::{Line, Phase, Step},
    history::Became,
    order::PhaseRow,
    person::FIRST_VALUE,
};

impl Case<'_> {
    pub(super) fn keeps_its_phases(&self) -> Vec<Broken> {
        let mut found = Vec::new();
        found.extend(self.charges_once());
        found.extend(self.has_the_effects_of_its_phases());
        found.extend(self.has_completed_its_phases());
        // A person may have it otherwise, and has said so.
        if !self.of_charge.iter().any(|(_, became)| **became == Became::Overruled) {
            found.extend(self.phase_rows.iter().find_map(|row| self.is_completed_by_its_last_run(row)));
        }
        found.extend(self.passes_no_phase_without_its_job());
        found.extend(self.has_each_phase_once_in_a_run());
        found
    }

    fn effects_in(&self, phase: Phase) -> impl Iterator<Item = &Line> {
        self.phases.iter().filter(move |line| line.step == Step::Phase(phase))
    }

    fn is_acknowledged(&self) -> bool {
        self.answers.iter().any(|(_, _, end)| end.is_done())
    }

    fn charges_once(&self) -> Option<Broken> {
        let (charges, frees) = (self.effects_in(Phase::Charge).count(), frees(&self.of_charge));
        (charges > 1 + frees).then(|| {
            ("at most one charge", format!("{charges} charges, and a person freed the phase {frees} times"))
        })
    }

    fn has_the_effects_of_its_phases(&self) -> Option<Broken> {
        let lacks = |phase: &Phase| self.is_acknowledged() && self.effects_in(*phase).next().is_none();
        let lacking = Phase::ALL.into_iter().find(lacks)?;
        Some(("what is acknowledged has happened in each phase", format!("no {}", lacking.name())))
    }

    fn has_completed_its_phases(&self) -> Option<Broken> {
        let is_completed = |phase: Phase| {
            self.phase_rows.iter().any(|row| row.phase == phase && row.status == Status::Completed)
        };
        let open = Phase::ALL.into_iter().find(|phase| self.is_acknowledged() && !is_completed(*phase))?;
        Some((
            "the phases of a completed job are completed",
            format!("{}: {:?}", open.name(), self.phase_rows),
        ))
    }

    /// A run that had taken the job over when this was written.
    fn heir_before(&self, line: &Line) -> Option<&Line> {
        self.begins.iter().find(|heir| heir.fence > line.fence && heir.at < line.at)
    }

    /// Who runs a phase has taken the job over from all who ran it before: none of them completes it any more.
    fn is_completed_by_its_last_run(&self, row: &PhaseRow) -> Option<Broken> {
        let law = "a phase is completed by who held its job";
        let value = row.value.filter(|value| *value < FIRST_VALUE)?;
        let Some(by) = self.effects_in(row.phase).find(|line| line.delivery == value) else {
            return Some((law, format!("#{value} did, and ran no {}", row.phase.name())));
        };
        let later = self.effects_in(row.phase).find(|line| line.fence > by.fence);
        let later = later.or_else(|| self.heir_before(by))?;
        Some((law, format!("#{value} did, after {later}")))
    }

    /// What a run does in a phase after it was taken over is not recorded, and it comes to nothing behind that.
    fn passes_no_phase_without_its_job(&self) -> Option<Broken> {
        let (late, heir) = self.phases.iter().find_map(|line| Some((line, self.heir_before(line)?)))?;
        let mut lines = self.phases.iter().chain(self.effects);
        let behind = lines.find(|line| line.delivery == late.delivery && line.at > late.at)?;
        Some((
            "who was taken over passes no phase",
            format!("{behind} came after {late}, and that after {heir}"),
        ))
    }

    fn has_each_phase_once_in_a_run(&self) -> Option<Broken> {
        let twice = |line: &&Line| {
            let same = |other: &&Line| (other.step, other.delivery) == (line.step, line.delivery);
            self.phases.iter().filter(same).count() > 1
        };
        let line = self.phases.iter().find(twice)?;
        Some(("a run has each of its phases once", line.to_string()))
    }
}
