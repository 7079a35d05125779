//! Results on their way into a row and out of it.

use serde::{
    Serialize,
    de::DeserializeOwned,
    ser::{self, Serializer},
};

/// A result that a row can hold, so that repeats are answered with it.
#[diagnostic::on_unimplemented(
    message = "the result `{Self}` cannot be stored, so repeats could not be answered with it",
    label = "does not implement `serde::Serialize` and `serde::de::DeserializeOwned`",
    note = "derive both for it; a job can write `replay = false` as well, and repeats of it get `Error::AlreadyCompleted`"
)]
pub trait Stored: Sized {
    /// The result as JSON.
    ///
    /// # Errors
    ///
    /// What `Serialize` reports, and a value that JSON cannot carry back: NaN, infinity, `Some(None)`, `Some(())`.
    fn encode(&self) -> Result<String, serde_json::Error>;

    /// The result from its JSON.
    ///
    /// # Errors
    ///
    /// The JSON is not that of this type.
    fn decode(json: &str) -> Result<Self, serde_json::Error>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Stored for T {
    fn encode(&self) -> Result<String, serde_json::Error> {
        check_faithful(self)?;
        serde_json::to_string(self)
    }

    fn decode(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }
}

/// A finished body's result, as far as it can be kept.
#[derive(Debug)]
pub(crate) enum Encoded {
    /// JSON text.
    Json(String),
    /// The job does not store results.
    Unwanted,
    /// The result cannot be stored, and why.
    Impossible(String),
}

impl Encoded {
    pub(crate) fn of<T: Stored>(value: &T) -> Self {
        match value.encode() {
            Ok(json) => Self::Json(json),
            Err(error) => Self::Impossible(error.to_string()),
        }
    }

    /// The text to store, within the limit; otherwise why there is none.
    pub(crate) fn within(self, limit: usize) -> Result<Option<String>, String> {
        match self {
            Self::Json(json) if json.len() <= limit => Ok(Some(json)),
            Self::Json(json) => Err(format!("it takes {} bytes as JSON, the limit is {limit}", json.len())),
            Self::Unwanted => Ok(None),
            Self::Impossible(reason) => Err(reason),
        }
    }
}

/// What a value looks like in JSON, as far as an enclosing `Some` cares.
#[derive(PartialEq)]
enum Seen {
    Null,
    Other,
}

/// Refuses a value that JSON would not give back as it is.
pub(crate) fn check_faithful<T: Serialize + ?Sized>(value: &T) -> Result<(), serde_json::Error> {
    value.serialize(Faithful { depth: 0 }).map(drop)
}

/// How deep `serde_json` reads.
const DEEPEST: u8 = 127;

/// Walks a value.
struct Faithful {
    /// How many lists and objects are around this place.
    depth: u8,
}

impl Faithful {
    fn inner(self) -> Result<Self, serde_json::Error> {
        if self.depth < DEEPEST {
            Ok(Self { depth: self.depth + 1 })
        } else {
            Err(lossy("so deep a nesting"))
        }
    }
}

type Check = Result<Seen, serde_json::Error>;

fn lossy(what: &str) -> serde_json::Error {
    ser::Error::custom(format_args!("JSON cannot carry {what} back"))
}

fn finite(is_finite: bool) -> Check {
    if is_finite { Ok(Seen::Other) } else { Err(lossy("NaN or an infinity")) }
}

macro_rules! plain {
    ($($method:ident: $type:ty),* $(,)?) => {$(
        fn $method(self, _: $type) -> Check {
            Ok(Seen::Other)
        }
    )*};
}

impl Serializer for Faithful {
    type Ok = Seen;
    type Error = serde_json::Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    plain! {
        serialize_bool: bool, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
    }

    fn serialize_f32(self, value: f32) -> Check {
        finite(value.is_finite())
    }

    fn serialize_f64(self, value: f64) -> Check {
        finite(value.is_finite())
    }

    fn serialize_none(self) -> Check {
        Ok(Seen::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Check {
        match value.serialize(self)? {
            Seen::Null => Err(lossy("`Some` of something that is null")),
            Seen::Other => Ok(Seen::Other),
        }
    }

    fn serialize_unit(self) -> Check {
        Ok(Seen::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Check {
        Ok(Seen::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Check {
        Ok(Seen::Other)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Check {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Check {
        value.serialize(self.inner()?)?;
        Ok(Seen::Other)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Self::Error> {
        self.inner()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Self::Error> {
        self.inner()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Self::Error> {
        self.inner()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Self::Error> {
        self.inner()?.inner()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Self::Error> {
        self.inner()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Self::Error> {
        self.inner()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Self::Error> {
        self.inner()?.inner()
    }
}

macro_rules! compound {
    ($($trait:ident { $($method:ident($($name:ty)?)),* })*) => {$(
        impl ser::$trait for Faithful {
            type Ok = Seen;
            type Error = serde_json::Error;
            $(
                fn $method<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Result<(), Self::Error> {
                    value.serialize(Faithful { depth: self.depth }).map(drop)
                }
            )*
            fn end(self) -> Check {
                Ok(Seen::Other)
            }
        }
    )*};
}
compound! {
    SerializeSeq { serialize_element() }
    SerializeTuple { serialize_element() }
    SerializeTupleStruct { serialize_field() }
    SerializeTupleVariant { serialize_field() }
    SerializeMap { serialize_key(), serialize_value() }
    SerializeStruct { serialize_field(&'static str) }
    SerializeStructVariant { serialize_field(&'static str) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_cannot_carry_back_is_found() {
        assert!(f64::NAN.encode().is_err());
        assert!(vec![Some(f32::INFINITY)].encode().is_err());
        assert!(Some(None::<u8>).encode().is_err());
        assert!((1, Some(())).encode().is_err());
    }

    #[test]
    fn what_is_nested_too_deep_to_be_read_is_found() {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Nest(Vec<Nest>);
        let nest = |depth: u32| (1..depth).fold(Nest(Vec::new()), |inner, _| Nest(vec![inner]));
        for depth in 120..136 {
            let json = serde_json::to_string(&nest(depth)).expect("serializes");
            assert_eq!(nest(depth).encode().is_ok(), Nest::decode(&json).is_ok(), "{depth}");
        }
    }

    #[test]
    fn empty_values_are_values() {
        assert_eq!(().encode().ok().as_deref(), Some("null"));
        assert_eq!(None::<u8>.encode().ok().as_deref(), Some("null"));
        assert_eq!(false.encode().ok().as_deref(), Some("false"));
        assert_eq!(0.encode().ok().as_deref(), Some("0"));
        assert_eq!(String::new().encode().ok().as_deref(), Some("\"\""));
        assert_eq!(Option::<()>::decode("null").ok(), Some(None));
    }

    #[test]
    fn numbers_come_back_exactly() {
        for number in [0.1 + 0.2, f64::MIN_POSITIVE, f64::MAX] {
            let json = number.encode().expect("finite");
            assert_eq!(f64::decode(&json).expect("reads").to_bits(), number.to_bits());
        }
        assert_eq!(u64::decode(&u64::MAX.encode().expect("encodes")).expect("reads"), u64::MAX);
        assert_eq!(i128::decode(&i128::MIN.encode().expect("encodes")).expect("reads"), i128::MIN);
    }
}
