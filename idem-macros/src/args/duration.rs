//! Durations as they are written: `"90s"`, `"15m"`, `"2h"`, `"1d"`.

use syn::{LitInt, LitStr, parse::ParseStream};

use super::value::string;

/// The longest duration there is, a hundred years, in seconds.
const LONGEST: u64 = 36_500 * DAY;
const DAY: u64 = 24 * 60 * 60;

/// The units, longest first.
const UNITS: [(char, u64); 4] = [('d', DAY), ('h', 60 * 60), ('m', 60), ('s', 1)];

/// What others write for a unit, without a plural's `s`, and its milliseconds.
const OTHER_UNITS: [(&str, u64); 17] = [
    ("", 1_000),
    ("ms", 1),
    ("milli", 1),
    ("millisecond", 1),
    ("s", 1_000),
    ("sec", 1_000),
    ("second", 1_000),
    ("m", 60_000),
    ("min", 60_000),
    ("minute", 60_000),
    ("h", 3_600_000),
    ("hr", 3_600_000),
    ("hour", 3_600_000),
    ("d", 86_400_000),
    ("day", 86_400_000),
    ("w", 7 * 86_400_000),
    ("week", 7 * 86_400_000),
];

/// A duration as it was written, and in seconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Duration {
    pub(crate) written: String,
    pub(crate) seconds: u64,
}

/// Reads a duration; `else_write` is a further way out where none can be told from what is written.
pub(crate) fn duration(input: ParseStream<'_>, else_write: &str) -> syn::Result<Duration> {
    if let Ok(number) = input.fork().parse::<LitInt>() {
        let example = meant(&format!("{}{}", number.base10_digits(), number.suffix()));
        let example = example.unwrap_or_else(|| "90s".to_owned());
        return Err(syn::Error::new(
            number.span(),
            format!("a duration is a string with a unit: write `\"{example}\"`"),
        ));
    }
    let otherwise = "a duration is a string such as `\"90s\"`, `\"15m\"`, `\"2h\"` or `\"1d\"`";
    let literal: LitStr = string(input, format!("{otherwise}{else_write}"))?;
    let written = literal.value();
    match seconds(&written) {
        Ok(seconds) => Ok(Duration { written, seconds }),
        Err(fault) => {
            let (fact, remedy) = match (fault, meant(&written)) {
                (Fault::Form, Some(meant)) => (
                    "is not a duration, which is a whole number of `s`, `m`, `h` or `d`",
                    format!(": write `\"{meant}\"`"),
                ),
                (Fault::Form, None) => (
                    "is not a duration, which is a whole number of `s`, `m`, `h` or `d`, such as `90s` or `2h`",
                    else_write.to_owned(),
                ),
                (Fault::Short, _) => ("is shorter than `1s`, the shortest duration there is", String::new()),
                (Fault::Long, _) => {
                    ("is longer than `36500d`, the longest duration there is", else_write.to_owned())
                }
            };
            Err(syn::Error::new(literal.span(), format!("`{written}` {fact}{remedy}")))
        }
    }
}

#[derive(Debug, PartialEq)]
enum Fault {
    Form,
    Short,
    Long,
}

/// The seconds of `"90s"`, `"15m"`, `"2h"`, `"1d"`.
fn seconds(written: &str) -> Result<u64, Fault> {
    let digits = written.trim_end_matches(|c: char| !c.is_ascii_digit());
    let mut unit = written[digits.len()..].chars();
    let seconds = unit.next().and_then(|first| UNITS.iter().find(|(name, _)| *name == first));
    let Some((_, unit)) = seconds.filter(|_| unit.next().is_none()) else { return Err(Fault::Form) };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Fault::Form);
    }
    match digits.parse::<u64>().ok().and_then(|count| count.checked_mul(*unit)) {
        Some(0) => Err(Fault::Short),
        Some(seconds) if seconds <= LONGEST => Ok(seconds),
        _ => Err(Fault::Long),
    }
}

/// What `1h30m`, `2 hours`, `90` or `1500ms` is as a duration, rounded up.
fn meant(written: &str) -> Option<String> {
    let mut milliseconds = 0_u64;
    let mut rest = written.trim();
    while !rest.is_empty() {
        let number = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
        let behind = rest[number.len()..].trim_start();
        let word = &behind[..behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len())];
        let name = word.to_ascii_lowercase();
        let singular = name.strip_suffix('s').filter(|singular| singular.len() > 1).unwrap_or(&name);
        let is_unit = |unit: &&(&str, u64)| unit.0 == name || unit.0 == singular;
        let (_, unit) = OTHER_UNITS.iter().find(is_unit)?;
        milliseconds = milliseconds.checked_add(number.parse::<u64>().ok()?.checked_mul(*unit)?)?;
        rest = behind[word.len()..].trim_start_matches([' ', ',']);
    }
    let seconds = milliseconds.div_ceil(1_000);
    let (name, unit) = UNITS.iter().find(|(_, unit)| seconds.is_multiple_of(*unit))?;
    (1..=LONGEST).contains(&seconds).then(|| format!("{}{name}", seconds / unit))
}

#[cfg(test)]
mod tests {
    use super::{Fault, meant, seconds};

    #[test]
    fn durations_are_read_and_refused() {
        for (written, expected) in
            [("1s", 1), ("90s", 90), ("15m", 900), ("2h", 7_200), ("36500d", 3_153_600_000)]
        {
            assert_eq!(seconds(written), Ok(expected), "{written}");
        }
        let forms =
            ["", "s", "90", "999ms", "1h30m", "-1s", "+1s", "1.5h", "1 h", " 1h", "1H", "１s", "1µ", "1sm"];
        let bad = forms.map(|written| (written, Fault::Form)).into_iter().chain([
            ("0s", Fault::Short),
            ("00d", Fault::Short),
            ("36501d", Fault::Long),
            ("99999999999999999999d", Fault::Long),
        ]);
        for (written, fault) in bad {
            assert_eq!(seconds(written), Err(fault), "{written}");
        }
    }

    #[test]
    fn other_spellings_are_understood() {
        for (written, expected) in [
            ("1h30m", "90m"),
            ("90", "90s"),
            ("120", "2m"),
            ("999ms", "1s"),
            ("2 hours", "2h"),
            ("1 day, 12 hours", "36h"),
            ("1w", "7d"),
            ("24H", "1d"),
            ("5 min", "5m"),
        ] {
            assert_eq!(meant(written).as_deref(), Some(expected), "{written}");
            assert!(seconds(expected).is_ok());
        }
        for written in ["", "s", "0", "1.5h", "-1s", "1 month", "for ever", "1h and", "99999999999999999999d"]
        {
            assert_eq!(meant(written), None, "{written}");
        }
    }
}
