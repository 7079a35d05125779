use std::{
    path::{Path, PathBuf},
    process::Command,
};

use idem_tests::Backend;

const ZONES: [&str; 5] =
    ["Asia/Kolkata", "America/St_Johns", "Pacific/Chatham", "Europe/Berlin", "Pacific/Kiritimati"];

const OFFSETS: [&str; 5] = ["-400d", "+13d", "-47m", "+3h", "+4000d"];

const LIBRARIES: [&str; 7] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
    "/opt/homebrew/lib/faketime/libfaketime.1.dylib",
    "/usr/local/lib/faketime/libfaketime.1.dylib",
];

/// How the workers' clocks are wrong. Each worker has a zone of its own; where libfaketime is at hand and the time is
/// the server's, another day as well. (In SQLite the database's time is that of the machine, by contract.)
#[derive(Clone, Debug)]
pub(crate) struct Skew {
    library: Result<PathBuf, &'static str>,
}

impl Skew {
    pub(crate) fn for_workers_of(backend: Backend) -> Skew {
        let found = LIBRARIES.iter().map(Path::new).find(|library| library.exists());
        let library = match found {
            _ if backend == Backend::Sqlite => Err("SQLite's time is the machine's"),
            Some(library) => Ok(library.to_owned()),
            None => Err("no libfaketime here (Debian: `apt install faketime`)"),
        };
        Skew { library }
    }

    /// Sets the clock of one worker.
    pub(crate) fn set(&self, command: &mut Command, worker: usize) {
        command.env("TZ", ZONES[worker % ZONES.len()]);
        if let Ok(library) = &self.library {
            command.env("LD_PRELOAD", library).env("DYLD_INSERT_LIBRARIES", library);
            command.env("FAKETIME", OFFSETS[worker % OFFSETS.len()]);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
        }
    }

    pub(crate) fn describe(&self) -> String {
        match &self.library {
            Ok(_) => format!("a time zone and a day of its own for each worker ({})", OFFSETS.join(", ")),
            Err(why) => format!("a time zone of its own for each worker, and the true time: {why}"),
        }
    }
}
