use std::{fmt, str::FromStr};

use idem_runtime::KeyPart;
use serde::Deserialize;

/// A month of a year, written `2024-06`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, KeyPart, Deserialize)]
#[key_part(display)]
#[serde(try_from = "String")]
pub struct Month {
    year: u16,
    month: u8,
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

impl FromStr for Month {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = |part: &str, length: usize| {
            (part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| part.parse().ok())?
        };
        let (year, month) = text.split_once('-').unwrap_or((text, ""));
        match (digits(year, 4), digits(month, 2)) {
            (Some(year), Some(month @ 1..=12)) => Ok(Self { year, month: u8::try_from(month).unwrap_or(12) }),
            _ => Err(format!("`{text}` is not a month; write it as `2024-06`")),
        }
    }
}

impl TryFrom<String> for Month {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_has_one_spelling() {
        assert_eq!("2024-06".parse::<Month>().map(|month| month.to_string()).as_deref(), Ok("2024-06"));
        for wrong in ["2024-13", "2024-00", "2024-6", "24-06", "2024/06", "+024-06", "2024-06-01", ""] {
            assert!(wrong.parse::<Month>().is_err(), "{wrong}");
        }
    }
}
