//! The kit for tests of jobs: what its users rely on.

use std::{cell::Cell, time::Duration};

use idem_runtime::{
    Error, ErrorKind, Idem, Outcome, Status, idempotent,
    testing::{Delivery, Kit, Point},
};

/// The outside world of one test.
#[derive(Default)]
struct World {
    effects: Cell<u32>,
}

impl World {
    async fn take(&self) {
        self.effects.set(self.effects.get() + 1);
        tokio::task::yield_now().await;
    }

    fn effects(&self) -> u32 {
        self.effects.get()
    }
}

#[idempotent(key = "kit-fee:<id>", stale_after = "30s", idem = idem)]
async fn fee(idem: &Idem, world: &World, id: u32) -> Result<u32, Error> {
    world.take().await;
    Ok(id)
}

#[idempotent(key = "kit-report:<id>", on_stale = "retry", stale_after = "30s", idem = idem)]
async fn report(idem: &Idem, world: &World, id: u32) -> Result<u32, Error> {
    world.take().await;
    Ok(id)
}

#[idempotent(key = "kit-mail:<id>", mode = "record_after", idem = idem)]
async fn mail(idem: &Idem, world: &World, id: u32) -> Result<u32, Error> {
    world.take().await;
    Ok(id)
}

#[idempotent(key = "kit-sync:<id>", stale_after = "30s", idem = idem)]
fn at_once(idem: &Idem, world: &World, id: u32) -> Result<u32, Error> {
    world.effects.set(world.effects() + 1);
    Ok(id)
}

/// What a test sees of a delivery.
type Seen = Result<Outcome, ErrorKind>;

fn seen(delivery: &Delivery<Result<u32, Error>>) -> Seen {
    match &delivery.result {
        Ok(_) => Ok(delivery.outcome.expect("a job was entered")),
        Err(error) => Err(error.kind()),
    }
}

#[tokio::test]
async fn a_second_delivery_replays() {
    let (kit, world) = (Kit::new().await.expect("a kit"), World::default());
    let delivered = kit.deliver_twice(|| fee(kit.idem(), &world, 1)).await;
    assert_eq!(delivered.each_ref().map(seen), [Ok(Outcome::Executed), Ok(Outcome::Replayed)]);
    assert_eq!(world.effects(), 1);
}

#[tokio::test]
async fn of_deliveries_at_once_one_runs() {
    let (kit, world) = (Kit::new().await.expect("a kit"), World::default());
    let raced: Vec<_> = kit.race(8, || fee(kit.idem(), &world, 1)).await.iter().map(seen).collect();
    assert_eq!(raced[0], Ok(Outcome::Executed));
    assert_eq!(raced[1..], [Err(ErrorKind::InProgress); 7]);
    assert_eq!(world.effects(), 1);
}

#[tokio::test]
async fn a_moved_clock_ends_leases_and_results() {
    let (kit, world) = (Kit::new().await.expect("a kit"), World::default());
    mail(kit.idem(), &world, 1).await.expect("sent");
    kit.advance(Duration::from_hours(23));
    mail(kit.idem(), &world, 1).await.expect("replayed");
    kit.advance(Duration::from_hours(2));
    mail(kit.idem(), &world, 1).await.expect("sent again");
    assert_eq!(world.effects(), 2);
}

/// The points where a call can die that ends as it should, with what is known of it afterwards: the effects before the
/// next delivery, what that one comes to once the lease has ended, and the effects then.
type Deaths = [(Point, u32, Seen, u32); 7];

const ALERT: Deaths = [
    (Point::BeforeClaim, 0, Ok(Outcome::Executed), 1),
    (Point::ClaimWritten, 0, Err(ErrorKind::NeedsReview), 0),
    (Point::Claimed, 0, Err(ErrorKind::NeedsReview), 0),
    (Point::InBody, 1, Err(ErrorKind::NeedsReview), 1),
    (Point::BodyReturned, 1, Err(ErrorKind::NeedsReview), 1),
    (Point::EndingWritten, 1, Ok(Outcome::Replayed), 1),
    (Point::Ended, 1, Ok(Outcome::Replayed), 1),
];

const RETRY: Deaths = [
    (Point::BeforeClaim, 0, Ok(Outcome::Executed), 1),
    (Point::ClaimWritten, 0, Ok(Outcome::TookOver), 1),
    (Point::Claimed, 0, Ok(Outcome::TookOver), 1),
    (Point::InBody, 1, Ok(Outcome::TookOver), 2),
    (Point::BodyReturned, 1, Ok(Outcome::TookOver), 2),
    (Point::EndingWritten, 1, Ok(Outcome::Replayed), 1),
    (Point::Ended, 1, Ok(Outcome::Replayed), 1),
];

/// Lets a worker die at each point, and the lease end.
async fn dies(deaths: &[(Point, u32, Seen, u32)], deliver: impl AsyncFn(&Kit, &World) -> Result<u32, Error>) {
    for (point, before, next, after) in deaths {
        let (kit, world) = (Kit::new().await.expect("a kit"), World::default());
        let died = kit.crash_at(*point, deliver(&kit, &world)).await;
        assert!(died.is_none(), "{point:?} was not reached");
        assert_eq!(world.effects(), *before, "{point:?}");
        kit.advance(Duration::from_secs(31));
        let [second, third] = kit.deliver_twice(|| deliver(&kit, &world)).await;
        assert_eq!(seen(&second), *next, "{point:?}");
        let settled = if next.is_ok() { Ok(Outcome::Replayed) } else { *next };
        assert_eq!(seen(&third), settled, "{point:?}");
        assert_eq!(world.effects(), *after, "{point:?}");
    }
}

#[tokio::test]
async fn a_worker_can_die_at_every_point_of_a_charge() {
    dies(&ALERT, async |kit, world| fee(kit.idem(), world, 1).await).await;
}

#[tokio::test]
async fn a_worker_can_die_at_every_point_of_what_may_run_again() {
    dies(&RETRY, async |kit, world| report(kit.idem(), world, 1).await).await;
}

#[tokio::test]
async fn a_worker_can_die_at_every_point_of_a_mail() {
    let deaths = [
        (Point::BeforeClaim, 0, Ok(Outcome::Executed), 1),
        (Point::Claimed, 0, Ok(Outcome::Executed), 1),
        (Point::InBody, 1, Ok(Outcome::Executed), 2),
        (Point::BodyReturned, 1, Ok(Outcome::Executed), 2),
        (Point::EndingWritten, 1, Ok(Outcome::Replayed), 1),
        (Point::Ended, 1, Ok(Outcome::Replayed), 1),
    ];
    dies(&deaths, async |kit, world| mail(kit.idem(), world, 1).await).await;
}

#[tokio::test]
async fn a_worker_of_a_synchronous_job_can_die_as_well() {
    for (point, before, next, after) in ALERT {
        let (kit, world) = (Kit::new().await.expect("a kit"), World::default());
        let died = kit.crash_at_sync(point, || at_once(kit.idem(), &world, 1));
        if point == Point::InBody {
            assert!(
                died.is_some_and(|returned| returned.is_ok()),
                "a body that never waits is not interrupted"
            );
            continue;
        }
        assert!(died.is_none(), "{point:?} was not reached");
        assert_eq!(world.effects(), before, "{point:?}");
        kit.advance(Duration::from_secs(31));
        let (again, outcome) = idem_runtime::with_outcome_sync(|| at_once(kit.idem(), &world, 1));
        let again = again.map(|_| outcome.expect("a job")).map_err(|error| error.kind());
        assert_eq!((again, world.effects()), (next, after), "{point:?}");
    }
}

#[tokio::test]
async fn a_worker_that_dies_before_it_told_a_person_leaves_the_key_for_review() {
    let (kit, world) = (Kit::new().await.expect("a kit"), World::default());
    let deliver = || fee(kit.idem(), &world, 1);
    assert!(kit.crash_at(Point::BodyReturned, deliver()).await.is_none());
    kit.advance(Duration::from_secs(31));
    assert!(kit.crash_at(Point::Flagged, deliver()).await.is_none());
    let row = kit.idem().lookup("kit-fee:1").await.expect("a look").expect("a row");
    assert_eq!((row.status, row.alerted_at), (Status::NeedsReview, None));
}

#[idempotent(key = "kit-around:<id>", stale_after = "30s", idem = idem)]
async fn around(idem: &Idem, world: &World, id: u32) -> Result<u32, Error> {
    let inner = report(idem, world, id).await;
    world.take().await;
    inner
}

#[tokio::test]
async fn a_worker_that_died_in_one_job_does_nothing_more_in_the_one_around_it() {
    for point in [Point::BodyReturned, Point::EndingWritten, Point::Ended] {
        let (kit, world) = (Kit::new().await.expect("a kit"), World::default());
        assert!(kit.crash_at(point, around(kit.idem(), &world, 1)).await.is_none());
        assert_eq!(world.effects(), 1, "{point:?}");
    }
}

#[tokio::test]
async fn a_clock_can_be_moved_to_its_end() {
    let kit = Kit::new().await.expect("a kit");
    kit.advance(Duration::MAX);
    kit.advance(Duration::MAX);
    fee(kit.idem(), &World::default(), 1).await.expect("done");
}

#[tokio::test]
async fn a_delivery_that_does_not_come_by_the_point_ends_as_it_would() {
    let (kit, world) = (Kit::new().await.expect("a kit"), World::default());
    let ended = kit.crash_at(Point::Flagged, fee(kit.idem(), &world, 7)).await;
    assert!(matches!(ended, Some(Ok(7))), "{ended:?}");
}
