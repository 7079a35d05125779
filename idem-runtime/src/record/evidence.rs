//! What is known of an execution that stopped half way, for the person who decides.

use std::fmt::{self, Write as _};

use super::{Record, Status};

/// A time of the database as a person reads it, in UTC.
struct Utc(i64);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1_000_000);
        let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(day);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Year, month and day of a day counted from 1970 on, by the calendar of 400 years that begin in March.
fn civil(day: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(ERA), day.rem_euclid(ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

impl Record {
    /// What is known of an execution that stopped half way, for the person who decides: which attempt it was and
    /// whose, when it began, since when nothing was heard of it, how often the key was taken over before, and the last
    /// error.
    #[must_use]
    pub fn evidence(&self) -> String {
        let mut text = match &self.owner {
            Some(owner) => {
                let worker = self.worker.as_deref().unwrap_or("an unknown worker");
                format!(
                    "attempt {} by {worker} (owner {owner}), claimed {}",
                    self.attempt,
                    Utc(self.claimed_at())
                )
            }
            None => format!("a claim without owner, made {}", Utc(self.created_at)),
        };
        if let Some(end) = self.lease_until {
            let silent = self.now.saturating_sub(end).max(0) / 1_000_000;
            let _ = write!(text, ", stopped: its lease ended {} ({silent} s ago)", Utc(end));
        }
        match self.takeovers {
            ..=0 => {}
            1 => text.push_str("; taken over once"),
            takeovers => {
                let _ = write!(text, "; taken over {takeovers} times");
            }
        }
        if let Some(phase) = self.last_phase() {
            let name = phase.phase_name().unwrap_or(&phase.key);
            let place = if phase.status == Status::Completed { "after" } else { "in" };
            let _ = write!(text, "; {place} its phase `{name}` ({})", phase.status);
        }
        if let Some(error) = &self.error {
            text.push_str("; last error: ");
            text.push_str(error);
        }
        text
    }
}

impl Record {
    /// The phase that the job is in, as far as its rows tell, or that it finished last.
    fn last_phase(&self) -> Option<&Self> {
        let phases = || self.phases.iter().filter(|phase| phase.is_born_under(self.created_at));
        let unfinished =
            |phase: &&Self| phase.status != Status::Completed && phase.status != Status::Released;
        phases()
            .filter(unfinished)
            .max_by_key(|phase| phase.fence)
            .or_else(|| phases().max_by_key(|phase| phase.completed_at))
    }

    /// What is known of an execution that goes on and on.
    #[must_use]
    pub(crate) fn progress(&self) -> String {
        let worker = self.worker.as_deref().unwrap_or("an unknown worker");
        let minutes = self.now.saturating_sub(self.claimed_at()).max(0) / 60_000_000;
        format!(
            "attempt {} by {worker}, claimed {}, is alive and still at it after {minutes} min",
            self.attempt,
            Utc(self.claimed_at()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Utc;

    #[test]
    fn a_time_is_read_in_utc() {
        let times = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00Z"),
            (1_717_236_245_999_999, "2024-06-01T10:04:05Z"),
            (4_107_542_399_000_000, "2100-02-28T23:59:59Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00Z"),
        ];
        for (at, text) in times {
            assert_eq!(Utc(at).to_string(), text);
        }
        for extreme in [i64::MIN, i64::MAX] {
            assert!(Utc(extreme).to_string().ends_with('Z'));
        }
    }
}
