//! Dates and times in keys: ISO 8601, date-times in UTC, whatever crate they come from.
//!
//! `2024-06-01`, `09:30:00`, `2024-06-01T09:30:00`, `2024-06-01T09:30:00Z`; a fraction of a second only where there is
//! one, without trailing zeros. (In the key the colons are escaped.)

use std::fmt::{self, Display};

use super::{KeyPart, KeyWriter};

/// A calendar day.
struct Calendar {
    year: i32,
    month: u8,
    day: u8,
}

impl Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.year < 0 { "-" } else { "" };
        write!(f, "{sign}{:04}-{:02}-{:02}", self.year.unsigned_abs(), self.month, self.day)
    }
}

/// A time of day.
struct Clock {
    hour: u8,
    minute: u8,
    second: u8,
    nanos: u32,
}

impl Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}:{:02}", self.hour, self.minute, self.second)?;
        if self.nanos == 0 {
            return Ok(());
        }
        // Ten digits are a leap second in the middle of a minute, which no other time may look like.
        let fraction = format!("{:09}", self.nanos);
        let shown = if fraction.len() > 9 { &fraction } else { fraction.trim_end_matches('0') };
        write!(f, ".{shown}")
    }
}

/// The local times of a crate, by the `day` and the `clock` of its module.
macro_rules! local {
    ($date:ty, $time:ty, $both:ty) => {
        #[diagnostic::do_not_recommend]
        impl KeyPart for $date {
            fn write(&self, out: &mut KeyWriter) {
                out.write_display(&day(*self));
            }
        }

        #[diagnostic::do_not_recommend]
        impl KeyPart for $time {
            fn write(&self, out: &mut KeyWriter) {
                out.write_display(&clock(*self));
            }
        }

        #[diagnostic::do_not_recommend]
        impl KeyPart for $both {
            fn write(&self, out: &mut KeyWriter) {
                out.write_display(&format_args!("{}T{}", day(self.date()), clock(self.time())));
            }
        }
    };
}

#[cfg(feature = "chrono")]
mod with_chrono {
    use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Timelike};

    use super::{Calendar, Clock, KeyPart, KeyWriter};

    fn small(number: u32) -> u8 {
        u8::try_from(number).unwrap_or(u8::MAX)
    }

    fn day(date: NaiveDate) -> Calendar {
        Calendar { year: date.year(), month: small(date.month()), day: small(date.day()) }
    }

    /// A leap second is second 60, as in ISO 8601, where there can be one.
    fn clock(time: NaiveTime) -> Clock {
        let (mut second, mut nanos) = (time.second(), time.nanosecond());
        if second == 59 && nanos >= 1_000_000_000 {
            (second, nanos) = (60, nanos - 1_000_000_000);
        }
        Clock { hour: small(time.hour()), minute: small(time.minute()), second: small(second), nanos }
    }

    local! { NaiveDate, NaiveTime, NaiveDateTime }

    #[diagnostic::do_not_recommend]
    impl<Tz: TimeZone> KeyPart for chrono::DateTime<Tz> {
        fn write(&self, out: &mut KeyWriter) {
            self.naive_utc().write(out);
            out.write_str("Z");
        }
    }
}

#[cfg(feature = "time")]
mod with_time {
    use time::{Date, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};

    use super::{Calendar, Clock, KeyPart, KeyWriter};

    fn day(date: Date) -> Calendar {
        Calendar { year: date.year(), month: u8::from(date.month()), day: date.day() }
    }

    fn clock(time: Time) -> Clock {
        let (hour, minute, second, nanos) = time.as_hms_nano();
        Clock { hour, minute, second, nanos }
    }

    local! { Date, Time, PrimitiveDateTime }

    #[diagnostic::do_not_recommend]
    impl KeyPart for OffsetDateTime {
        fn write(&self, out: &mut KeyWriter) {
            match self.checked_to_offset(UtcOffset::UTC) {
                Some(utc) => out.write_display(&format_args!("{}T{}Z", day(utc.date()), clock(utc.time()))),
                // A moment beyond the calendar in UTC.
                None => out.write_display(&format_args!("{}ns", self.unix_timestamp_nanos())),
            }
        }
    }
}

#[cfg(feature = "jiff")]
mod with_jiff {
    use jiff::{
        Timestamp, Zoned,
        civil::{Date, DateTime, Time},
        tz::TimeZone,
    };

    use super::{Calendar, Clock, KeyPart, KeyWriter};

    fn small(number: i8) -> u8 {
        u8::try_from(number).unwrap_or(u8::MAX)
    }

    fn day(date: Date) -> Calendar {
        Calendar { year: date.year().into(), month: small(date.month()), day: small(date.day()) }
    }

    fn clock(time: Time) -> Clock {
        Clock {
            hour: small(time.hour()),
            minute: small(time.minute()),
            second: small(time.second()),
            nanos: u32::try_from(time.subsec_nanosecond()).unwrap_or_default(),
        }
    }

    local! { Date, Time, DateTime }

    #[diagnostic::do_not_recommend]
    impl KeyPart for Timestamp {
        fn write(&self, out: &mut KeyWriter) {
            self.to_zoned(TimeZone::UTC).datetime().write(out);
            out.write_str("Z");
        }
    }

    #[diagnostic::do_not_recommend]
    impl KeyPart for Zoned {
        fn write(&self, out: &mut KeyWriter) {
            self.timestamp().write(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{KeyPart, render};

    fn key<K: KeyPart>(value: &K) -> String {
        let key = render(&["k:", ""]).part(value).finish().expect("a key");
        key.as_str().replace("%3A", ":")
    }

    #[cfg(feature = "chrono")]
    #[test]
    fn chrono_writes_iso_8601_in_utc() {
        use chrono::{DateTime, FixedOffset, NaiveDate};
        let date = NaiveDate::from_ymd_opt(2024, 6, 1).expect("a date");
        assert_eq!(key(&date), "k:2024-06-01");
        let moment = date.and_hms_milli_opt(9, 5, 0, 250).expect("a time");
        assert_eq!(key(&moment), "k:2024-06-01T09:05:00.25");
        let east = FixedOffset::east_opt(2 * 3600).expect("an offset");
        let there: DateTime<FixedOffset> = DateTime::from_naive_utc_and_offset(moment, east);
        assert_eq!(key(&there), "k:2024-06-01T09:05:00.25Z");
    }

    #[cfg(feature = "chrono")]
    #[test]
    fn a_leap_second_of_chrono_is_no_other_time() {
        use chrono::{NaiveTime, Timelike};
        let leap = |second| NaiveTime::from_hms_opt(9, 5, second)?.with_nanosecond(1_250_000_000);
        assert_eq!(key(&leap(59).expect("a time")), "k:09:05:60.25");
        assert_eq!(key(&leap(30).expect("a time")), "k:09:05:30.1250000000");
    }

    #[cfg(feature = "time")]
    #[test]
    fn time_writes_iso_8601_in_utc() {
        use time::{Date, Month, UtcOffset};
        let date = Date::from_calendar_date(2024, Month::June, 1).expect("a date");
        assert_eq!(key(&date), "k:2024-06-01");
        let moment = date.with_hms(9, 5, 0).expect("a time");
        assert_eq!(key(&moment), "k:2024-06-01T09:05:00");
        let east = UtcOffset::from_hms(2, 0, 0).expect("an offset");
        assert_eq!(key(&moment.assume_utc().to_offset(east)), "k:2024-06-01T09:05:00Z");
        let west = UtcOffset::from_hms(-2, 0, 0).expect("an offset");
        assert_eq!(key(&Date::MAX.midnight().assume_offset(west)), "k:9999-12-31T02:00:00Z");
        let last = Date::MAX.with_hms(23, 0, 0).expect("a time").assume_offset(west);
        assert_eq!(key(&last), "k:253402304400000000000ns");
    }

    #[cfg(feature = "jiff")]
    #[test]
    fn jiff_writes_iso_8601_in_utc() {
        use jiff::{Timestamp, civil::date, tz::TimeZone};
        assert_eq!(key(&date(2024, 6, 1)), "k:2024-06-01");
        assert_eq!(key(&date(2024, 6, 1).at(9, 5, 0, 250_000_000)), "k:2024-06-01T09:05:00.25");
        let moment: Timestamp = "2024-06-01T09:05:00Z".parse().expect("a timestamp");
        assert_eq!(key(&moment), "k:2024-06-01T09:05:00Z");
        assert_eq!(key(&moment.to_zoned(TimeZone::UTC)), "k:2024-06-01T09:05:00Z");
    }
}
