use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use tracing::{
    Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::{self, DefaultGuard},
};

/// One log event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its target, the module by default.
    pub target: String,
    /// Its level.
    pub level: Level,
    /// Its message.
    pub message: String,
    /// Its other fields, as text.
    pub fields: BTreeMap<&'static str, String>,
}

/// The log while a test looks at it.
#[derive(Debug)]
#[must_use = "nothing is captured without the guard"]
pub struct Capture {
    events: Arc<Sink>,
    _here: Option<DefaultGuard>,
}

type Sink = Mutex<Vec<Event>>;

impl Capture {
    /// What this thread logs. An async test must stay on its thread meanwhile, as on a `current_thread` runtime.
    pub fn here() -> Capture {
        // Where nobody listens at all, an event that is met for the first time at this moment may be taken for one that
        // nobody ever wants.
        listens();
        let events = Arc::new(Sink::default());
        let recorder = Recorder::of(Arc::downgrade(&events));
        Capture { _here: Some(subscriber::set_default(recorder)), events }
    }

    /// What every thread of this process logs, background threads included; other tests that run at the same time
    /// too, so look for what only this one can have caused: its job, its key. A thread inside [`here`](Self::here)
    /// is not heard.
    pub fn everywhere() -> Capture {
        let sinks = listens();
        let events = Arc::new(Sink::default());
        let mut sinks = sinks.write().unwrap_or_else(PoisonError::into_inner);
        sinks.retain(|sink| sink.strong_count() > 0);
        sinks.push(Arc::downgrade(&events));
        Capture { events, _here: None }
    }

    /// What has been logged so far, in order.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those of `level` whose message or fields contain `text`.
    #[must_use]
    pub fn find(&self, level: Level, text: &str) -> Vec<Event> {
        self.events().into_iter().filter(|event| event.level == level && event.says(text)).collect()
    }
}

/// Who listens to all threads, from the first call on.
fn listens() -> &'static Arc<Sinks> {
    static RECORDER: OnceLock<Arc<Sinks>> = OnceLock::new();
    RECORDER.get_or_init(|| {
        let recorder = Recorder::default();
        let sinks = Arc::clone(&recorder.sinks);
        subscriber::set_global_default(recorder).expect("no other global subscriber in a test binary");
        sinks
    })
}

impl Event {
    /// Whether its message or one of its fields contains `text`.
    #[must_use]
    pub fn says(&self, text: &str) -> bool {
        self.message.contains(text) || self.fields.values().any(|value| value.contains(text))
    }
}

type Sinks = RwLock<Vec<Weak<Sink>>>;

/// Spans go unrecorded: what a test asserts on are events.
#[derive(Debug, Default)]
struct Recorder {
    sinks: Arc<Sinks>,
    spans: AtomicU64,
}

impl Recorder {
    fn of(sink: Weak<Sink>) -> Recorder {
        Recorder { sinks: Arc::new(RwLock::new(vec![sink])), spans: AtomicU64::new(0) }
    }
}

impl Subscriber for Recorder {
    /// The database driver logs every statement; nobody asks for that.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        !metadata.target().starts_with("sqlx")
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let metadata = event.metadata();
        let mut seen = Event {
            target: metadata.target().to_owned(),
            level: *metadata.level(),
            message: String::new(),
            fields: BTreeMap::new(),
        };
        event.record(&mut seen);
        for sink in self.sinks.read().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade)
        {
            sink.lock().unwrap_or_else(PoisonError::into_inner).push(seen.clone());
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Visit for Event {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value = format!("{value:?}");
        if field.name() == "message" {
            self.message = value;
        } else {
            self.fields.insert(field.name(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn this_threads_events_are_captured_with_their_fields() {
        let capture = Capture::here();
        tracing::info_span!("around").in_scope(|| {
            tracing::warn!(target: "idem", job = "charge", attempt = 2, "taken {}", "over");
        });
        thread::spawn(|| tracing::warn!("another thread's")).join().expect("no panic");

        let [event] = &capture.events()[..] else { panic!("{:?}", capture.events()) };
        assert_eq!((event.target.as_str(), event.level), ("idem", Level::WARN));
        assert_eq!(event.message, "taken over");
        assert_eq!(event.fields["job"], "charge");
        assert_eq!(event.fields["attempt"], "2");
        assert_eq!(capture.find(Level::WARN, "charge").len(), 1);
        assert!(capture.find(Level::ERROR, "charge").is_empty());
    }

    #[test]
    fn every_threads_events_reach_every_capture_that_is_open() {
        let (first, second) = (Capture::everywhere(), Capture::everywhere());
        thread::spawn(|| tracing::error!(key = "heard:1", "from afar")).join().expect("no panic");
        drop(first);
        thread::spawn(|| tracing::error!(key = "heard:2", "from afar")).join().expect("no panic");
        assert_eq!(second.find(Level::ERROR, "heard:").len(), 2);
    }
}
