use serde::{Deserialize, de::DeserializeOwned};

/// One delivery: a job under an id that is new each time it is enqueued.
#[derive(Debug, Deserialize)]
struct Delivery<J> {
    #[serde(rename = "job_id")]
    _job_id: String,
    #[serde(flatten)]
    job: J,
}

/// The deliveries of one run, in their order.
#[derive(Debug)]
pub struct Deliveries<J> {
    jobs: Vec<J>,
    malformed: u64,
}

impl<J: DeserializeOwned> Deliveries<J> {
    /// Reads a delivery from each line, and warns of those that hold none.
    #[must_use]
    pub fn read(text: &[u8]) -> Self {
        let mut deliveries = Self { jobs: Vec::new(), malformed: 0 };
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let lines = text.split(|byte| *byte == b'\n').filter(|_| !text.is_empty());
        for (number, line) in (1_u64..).zip(lines) {
            match serde_json::from_slice::<Delivery<J>>(line) {
                Ok(delivery) => deliveries.jobs.push(delivery.job),
                Err(error) => {
                    tracing::warn!(line = number, %error, "malformed, left out");
                    deliveries.malformed += 1;
                }
            }
        }
        deliveries
    }
}

impl<J> Deliveries<J> {
    /// The same deliveries, each with its number.
    #[must_use]
    pub fn numbered(self) -> Deliveries<(usize, J)> {
        let Self { jobs, malformed } = self;
        Deliveries { jobs: jobs.into_iter().enumerate().collect(), malformed }
    }

    /// The jobs that are delivered.
    #[must_use]
    pub fn jobs(&self) -> &[J] {
        &self.jobs
    }

    pub(crate) fn malformed(&self) -> u64 {
        self.malformed
    }

    pub(crate) fn into_jobs(self) -> Vec<J> {
        self.jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Job {
        n: u64,
    }

    #[test]
    fn every_line_is_a_job_or_malformed() {
        let text = b"{\"job_id\":\"a\",\"n\":1}\n\n{\"job_id\":\"b\",\"n\":2}\r\n{\"n\":3}\n{\"job_id\":\"c\",\"n\"\n\xff\n";
        let deliveries = Deliveries::<Job>::read(text);
        assert_eq!(deliveries.jobs().iter().map(|job| job.n).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(deliveries.malformed(), 4);
    }

    #[test]
    fn an_empty_file_delivers_nothing() {
        assert_eq!(Deliveries::<Job>::read(b"").malformed(), 0);
        assert_eq!(Deliveries::<Job>::read(b"\n").malformed(), 0);
    }
}
