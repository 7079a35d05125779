//! A few long-lived connections, made when they are needed.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sqlx::{ConnectOptions, Connection};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::store::{
    ErrorClass, StoreError,
    sql::{Dialect, Fault},
};

type Options<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// Connections of one database. One that is not given back by [`Held::settle`] is closed.
pub(crate) struct Connections<DB: Dialect> {
    options: Options<DB>,
    permits: Semaphore,
    idle: Mutex<Vec<DB::Connection>>,
}

/// A connection in use.
pub(crate) struct Held<'a, DB: Dialect> {
    connection: DB::Connection,
    home: &'a Connections<DB>,
    _permit: SemaphorePermit<'a>,
}

impl<DB: Dialect> Connections<DB> {
    /// At most `count` at once; none is opened yet.
    pub(crate) fn new(options: Options<DB>, count: usize) -> Self {
        let options = options.disable_statement_logging();
        Self { options, permits: Semaphore::new(count), idle: Mutex::default() }
    }

    /// The next free connection, a new one if none waits.
    pub(crate) async fn take(&self, context: &'static str) -> Result<Held<'_, DB>, StoreError> {
        let permit = match self.permits.acquire().await {
            Ok(permit) => permit,
            Err(closed) => return Err(StoreError::new(ErrorClass::Permanent, context, closed)),
        };
        let waiting = self.idle().pop();
        let connection = match waiting {
            Some(connection) => connection,
            None => self.open(context).await?,
        };
        Ok(Held { connection, home: self, _permit: permit })
    }

    /// One more, which is the caller's to close.
    pub(crate) async fn open(&self, context: &'static str) -> Result<DB::Connection, StoreError> {
        let opened = async {
            let mut connection = self.options.connect().await?;
            DB::greet(&mut connection).await?;
            Ok(connection)
        };
        opened.await.map_err(|error| explain::<DB>(context, error))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<DB::Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<DB: Dialect> fmt::Debug for Connections<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("idle", &self.idle().len()).finish_non_exhaustive()
    }
}

impl<DB: Dialect> Held<'_, DB> {
    pub(crate) fn connection(&mut self) -> &mut DB::Connection {
        &mut self.connection
    }

    /// Ends the use: the connection goes back if the result shows that it is sound.
    pub(crate) fn settle<T>(
        self,
        context: &'static str,
        result: Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        match result {
            Ok(value) => {
                self.home.idle().push(self.connection);
                Ok(value)
            }
            Err(error) => {
                let mut idle = self.home.idle();
                if Fault::of::<DB>(&error) == Fault::Connection {
                    // Whatever cut this one has most likely cut those that wait, too.
                    idle.clear();
                } else {
                    idle.push(self.connection);
                }
                Err(explain::<DB>(context, error))
            }
        }
    }
}

/// What an error of the driver means to the caller.
pub(crate) fn explain<DB: Dialect>(context: &'static str, error: sqlx::Error) -> StoreError {
    StoreError::new(Fault::of::<DB>(&error).class(), context, error)
}
