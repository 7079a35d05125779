//! The database server, which `cargo xtask chaos` has started and ends and starts again when it is asked.

use std::{
    sync::mpsc::{self, Sender},
    thread,
};

use idem_tests::child::Parent;

use crate::{campaign::News, plan::Ending};

/// Whom to ask.
#[derive(Debug)]
pub(crate) struct Server {
    asks: Sender<Option<Ending>>,
}

impl Server {
    pub(crate) fn kept_by(parent: Parent, news: Sender<News>) -> Server {
        let (asks, asked) = mpsc::channel();
        thread::spawn(move || {
            for ask in asked {
                parent.say(match ask {
                    Some(Ending::Graceful) => "server graceful",
                    Some(Ending::Immediate) => "server immediate",
                    Some(Ending::Killed) => "server killed",
                    None => "server start",
                });
                let answer = parent.hear();
                let told = match answer.as_str() {
                    "done" if ask.is_some() => News::ServerEnded,
                    "done" => News::ServerIsBack,
                    _ => News::ServerFailed(answer),
                };
                // At the end nobody listens any more.
                let _ = news.send(told);
            }
        });
        Server { asks }
    }

    pub(crate) fn end(&self, ending: Ending) {
        self.asks.send(Some(ending)).expect("a thread that asks");
    }

    pub(crate) fn start(&self) {
        self.asks.send(None).expect("a thread that asks");
    }
}
