//! Jobs of phases whose workers die at every point, twice in a row.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use idem_runtime::{
    Error, Idem, Probe, Resolution, current, idempotent, phase,
    testing::{Kit, Point},
};

/// The outside world.
struct World {
    idem: Idem,
    effects: Mutex<Vec<String>>,
}

impl World {
    fn of(kit: &Kit) -> Self {
        Self { idem: kit.idem().clone(), effects: Mutex::default() }
    }

    /// An effect that takes a while.
    async fn effect(&self) {
        tokio::task::yield_now().await;
        let key = current().key().to_string();
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).push(key);
        tokio::task::yield_now().await;
    }

    fn count(&self, key: &str) -> usize {
        self.effects.lock().expect("no panic in it").iter().filter(|effect| *effect == key).count()
    }

    fn find(&self) -> Probe<u32> {
        if self.count(current().key().as_str()) > 0 { Probe::Happened(1) } else { Probe::DidNotHappen }
    }

    #[idempotent(key = "die:<id>", stale_after = "30s", on_stale = "retry", idem = self.idem)]
    async fn order(&self, id: u64) -> Result<u32, Error> {
        let reserved: u32 = phase!("reserve", on_stale = "retry", async {
            self.effect().await;
            Ok(1)
        });
        let asked: u32 = phase!("asked", on_stale = probe(async || self.find()), async {
            self.effect().await;
            Ok(1)
        });
        let charged: u32 = phase!("charge", async {
            self.effect().await;
            Ok(1)
        });
        let mailed: u32 = phase!("mail", mode = "record_after", async {
            self.effect().await;
            Ok(1)
        });
        Ok(reserved + asked + charged + mailed)
    }
}

const OVER: Duration = Duration::from_secs(31);

/// Lets a worker die at the how manyeth time that it comes by a point; whether it died.
async fn dies(kit: &Kit, world: &World, point: Point, time: usize) -> bool {
    kit.crash_at_nth(point, time, world.order(1)).await.is_none()
}

#[tokio::test]
async fn wherever_its_workers_die_each_phase_keeps_its_promise() {
    let mut died = 0;
    for &once in Point::ALL {
        for first in 1..=5 {
            for &twice in Point::ALL {
                for second in [1, 3] {
                    let kit = Kit::new().await.expect("a kit");
                    let world = World::of(&kit);
                    let mut deaths = 0;
                    for (point, time) in [(once, first), (twice, second)] {
                        deaths += usize::from(dies(&kit, &world, point, time).await);
                        kit.advance(OVER);
                    }
                    died += deaths;
                    let place = format!("dead at {once:?} ({first}) and {twice:?} ({second})");
                    let mut reviews = 0;
                    let done = loop {
                        match world.order(1).await {
                            Ok(done) => break done,
                            Err(Error::NeedsReview { key, .. }) if key.as_str() == "die:1/charge" => {
                                reviews += 1;
                                // A person looks into the books.
                                let happened = world.count("die:1/charge") > 0;
                                let found = if happened {
                                    Resolution::Completed(Some(1.into()))
                                } else {
                                    Resolution::Retry
                                };
                                kit.idem().resolve(key, found).await.expect("an answer");
                            }
                            Err(error) => panic!("{place}: {error}"),
                        }
                        assert!(reviews <= 2, "{place}");
                    };
                    assert_eq!(done, 4, "{place}");
                    assert_eq!((world.count("die:1/charge"), world.count("die:1/asked")), (1, 1), "{place}");
                    for again in ["die:1/reserve", "die:1/mail"] {
                        assert!((1..=1 + deaths).contains(&world.count(again)), "{place}");
                    }
                }
            }
        }
    }
    assert!(died > 250, "{died} workers died");
}
