//! `#[derive(KeyPart)]` on what it takes.

use std::fmt;

use idem_runtime::{Error, KeyPart, idempotent};

use super::memory;

#[derive(KeyPart)]
struct Newtype(u64);

#[derive(KeyPart)]
struct Named {
    year: u16,
    month: u8,
}

#[derive(KeyPart)]
struct Pair(String, Newtype);

#[derive(KeyPart)]
struct Borrowed<'a>(&'a str);

#[derive(KeyPart)]
struct Generic<T, U> {
    first: T,
    second: Newer<U>,
}

#[derive(KeyPart)]
struct Newer<T>(T);

#[derive(KeyPart)]
struct Sized<const N: usize>(Letters<N>);

#[derive(KeyPart)]
#[key_part(display)]
struct Letters<const N: usize>([char; N]);

impl<const N: usize> fmt::Display for Letters<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|letter| write!(f, "{letter}"))
    }
}

#[derive(KeyPart)]
struct Bounded<T: Copy>(T)
where
    T: fmt::Debug;

#[derive(KeyPart)]
struct Unsized<T: ?core::marker::Sized>(T);

#[derive(KeyPart)]
enum Plan {
    Free,
    #[key_part(rename = "pro:2")]
    Pro,
    r#Self_,
}

#[derive(KeyPart)]
#[key_part(display)]
enum Shown {
    Id(u8),
    Name { name: String },
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "#{id}"),
            Self::Name { name } => f.write_str(name),
        }
    }
}

#[derive(KeyPart)]
#[key_part(display)]
struct ShownGeneric<T>(T);

impl<T: fmt::Display> fmt::Display for ShownGeneric<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.0)
    }
}

#[idempotent(key = "derived:<part>", key_fn = key_of, idem = memory())]
fn job(part: &(impl KeyPart + ?core::marker::Sized)) -> Result<(), Error> {
    let _ = part;
    Ok(())
}

#[test]
fn derived_parts_are_rendered() {
    let unsized_part: &Unsized<[u8; 0]> = &Unsized([]);
    let _ = unsized_part;
    let pair = Pair("a,b".to_owned(), Newtype(2));
    let keys = [
        (key_of(&Newtype(7)), "derived:7"),
        (key_of(&Named { year: 2024, month: 6 }), "derived:2024,6"),
        (key_of(&pair), "derived:a%2Cb,2"),
        (key_of(&Borrowed("x y")), "derived:x%20y"),
        (key_of(&Generic { first: 1_u8, second: Newer("z") }), "derived:1,z"),
        (key_of(&Sized(Letters(['c', 'd']))), "derived:cd"),
        (key_of(&Bounded(4_u8)), "derived:4"),
        (key_of(&Plan::Free), "derived:Free"),
        (key_of(&Plan::Pro), "derived:pro%3A2"),
        (key_of(&Plan::r#Self_), "derived:Self_"),
        (key_of(&Shown::Id(3)), "derived:%233"),
        (key_of(&Shown::Name { name: "n".to_owned() }), "derived:n"),
        (key_of(&ShownGeneric(5)), "derived:[5]"),
    ];
    for (key, text) in keys {
        assert_eq!(key.expect("a key").to_string(), text);
    }
    assert!(job(&Newtype(1)).is_ok());
}
