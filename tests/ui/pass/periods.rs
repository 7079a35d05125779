//! Periods that several placeholders name together.

use idem_runtime::{Error, idempotent};

use super::memory;

struct Invoice {
    due_year: u16,
    due_month: u8,
}

#[idempotent(key = "periods:<year>:<month>", ttl = "31d", idem = memory())]
fn month_of_a_year(year: u16, month: u8) -> Result<u16, Error> {
    Ok(year + u16::from(month))
}

#[idempotent(key = "periods:due:<invoice.due_year>:<invoice.due_month>", ttl = "31d", idem = memory())]
fn due(invoice: &Invoice) -> Result<u16, Error> {
    Ok(invoice.due_year + u16::from(invoice.due_month))
}

#[idempotent(key = "periods:hour:<date>:<hour>", mode = "record_after", ttl = "1h", idem = memory())]
async fn hour_of_a_date(date: &str, hour: u8) -> Result<usize, Error> {
    Ok(date.len() + usize::from(hour))
}

#[tokio::test]
async fn the_finest_period_of_one_thing_is_what_the_ttl_must_last() {
    assert_eq!(month_of_a_year(2024, 6).expect("a run"), 2030);
    assert_eq!(due(&Invoice { due_year: 2024, due_month: 6 }).expect("a run"), 2030);
    assert_eq!(hour_of_a_date("2024-06-01", 9).await.expect("a run"), 19);
}
