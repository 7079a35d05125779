//! A batch on its way through the database: what is still open, in key order, and what was answered.

use std::collections::HashSet;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
use sqlx::{ColumnIndex, Decode, Row, Type};

use crate::{
    record::Record,
    store::{
        Answer, Finish, StoreError,
        sql::{restless, unfinished},
    },
};

/// The items of a batch with their answers. Items go out in the order of their keys, so that two writers never wait
/// for each other crosswise; answers come back in the order of the batch.
#[derive(Debug)]
pub(crate) struct Batch<'a, T, A> {
    items: &'a [T],
    key: fn(&T) -> &str,
    sorted: Vec<usize>,
    answers: Vec<Option<A>>,
    open: usize,
}

impl<'a, T, A> Batch<'a, T, A> {
    pub(crate) fn of(items: &'a [T], key: fn(&T) -> &str) -> Self {
        let mut sorted: Vec<_> = (0..items.len()).collect();
        sorted.sort_unstable_by(|&a, &b| key(&items[a]).cmp(key(&items[b])));
        Self { items, key, sorted, answers: items.iter().map(|_| None).collect(), open: items.len() }
    }

    /// The items without an answer, smallest key first.
    pub(crate) fn open(&self) -> impl Iterator<Item = &'a T> {
        self.sorted.iter().filter(|&&at| self.answers[at].is_none()).map(|&at| &self.items[at])
    }

    /// The one item without an answer, if there is just one.
    pub(crate) fn only(&self) -> Option<&'a T> {
        if self.open == 1 { self.open().next() } else { None }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.open == 0
    }

    /// Answers the open item of a key, or leaves it open.
    pub(crate) fn answer(&mut self, key: &str, answer: impl FnOnce(&'a T) -> Option<A>) {
        let found = self.sorted.binary_search_by(|&at| (self.key)(&self.items[at]).cmp(key));
        if let Ok(found) = found {
            let at = self.sorted[found];
            if self.answers[at].is_none() {
                self.answers[at] = answer(&self.items[at]);
                self.open -= usize::from(self.answers[at].is_some());
            }
        }
    }

    /// Answers every open item.
    pub(crate) fn answer_rest(&mut self, mut answer: impl FnMut(&'a T) -> Option<A>) {
        for (item, slot) in self.items.iter().zip(&mut self.answers).filter(|(_, slot)| slot.is_none()) {
            *slot = answer(item);
            self.open -= usize::from(slot.is_some());
        }
    }

    /// The answers, in the order of the batch.
    pub(crate) fn finish(self, context: &'static str) -> Result<Vec<A>, StoreError> {
        let answers: Option<Vec<A>> = self.answers.into_iter().collect();
        answers.ok_or_else(|| restless(context))
    }
}

impl<T> Batch<'_, T, Answer> {
    /// Answers with the rows of key and fence that a statement has written.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn answer_written<'r, R: Row>(&mut self, rows: &'r [R]) -> Result<(), StoreError>
    where
        usize: ColumnIndex<R>,
        &'r str: Decode<'r, R::Database> + Type<R::Database>,
        i64: Decode<'r, R::Database> + Type<R::Database>,
    {
        for row in rows {
            let mut cells = super::Cells::of(row);
            let key: &str = cells.next()?;
            let fence = cells.next()?;
            self.answer(key, |_| Some(Answer::Written { fence }));
        }
        Ok(())
    }

    /// Answers with a row that stood in the way, unless an earlier sending of the item `made` it.
    pub(crate) fn answer_found(&mut self, record: Record, made: impl FnOnce(&T, &Record) -> bool) {
        let key = record.key.clone();
        self.answer(&key, |item| {
            Some(if made(item, &record) {
                Answer::Written { fence: record.fence }
            } else {
                Answer::Found(Box::new(record))
            })
        });
    }
}

impl Batch<'_, Finish, Answer> {
    /// Answers the endings that changed nothing by the rows as they are. An ending whose row has come to be as it
    /// expects stays open.
    pub(crate) fn answer_unfinished(&mut self, found: Vec<Record>) {
        let there: HashSet<&str> = found.iter().map(|record| record.key.as_str()).collect();
        self.answer_rest(|finish| (!there.contains(&*finish.key)).then_some(Answer::Gone));
        for record in found {
            let key = record.key.clone();
            self.answer(&key, |finish| unfinished(finish, Some(record)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ErrorClass;

    #[test]
    fn items_go_out_by_key_and_answers_come_back_by_position() {
        let mut batch = Batch::of(&["c", "a", "b"], |key| key);
        assert_eq!(batch.open().copied().collect::<Vec<_>>(), ["a", "b", "c"]);
        batch.answer("b", |_| Some(2));
        batch.answer("b", |_| Some(20));
        batch.answer("x", |_| Some(9));
        batch.answer("a", |_| None);
        assert_eq!(batch.open().copied().collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(batch.only(), None);
        batch.answer("c", |_| Some(3));
        assert_eq!(batch.only(), Some(&"a"));
        assert!(!batch.is_done());
        batch.answer_rest(|_| Some(1));
        assert!(batch.is_done());
        assert_eq!(batch.finish("").ok(), Some(vec![3, 1, 2]));
    }

    #[test]
    fn what_stays_open_is_an_error() {
        let batch = Batch::<_, ()>::of(&["a"], |key| key);
        assert!(batch.finish("trying").is_err_and(|error| error.class == ErrorClass::Transient));
    }
}
