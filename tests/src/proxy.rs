use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener as StdTcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self as std_mpsc, SyncSender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};

/// A TCP proxy on loopback that fails the way networks fail, when a test says so.
///
/// It runs on a thread of its own, in real time: a paused tokio clock does not touch it, nor does a test that blocks
/// its executor. A setting holds for open connections and for new ones, until the next setting. When a setter has
/// returned, bytes that arrive from then on meet the new setting.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    swallowed: watch::Receiver<u64>,
    spared: Arc<AtomicUsize>,
    cuts: Option<mpsc::UnboundedSender<SyncSender<()>>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug)]
struct Weather {
    upstream: SocketAddr,
    passage: Passage,
    latency: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Passage {
    Open,
    RequestsOnly,
    Blocked,
    Refused,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Request,
    Reply,
}

impl Proxy {
    /// Listens on a free port and forwards to `upstream`.
    #[must_use]
    pub fn to(upstream: SocketAddr) -> Proxy {
        let listener = StdTcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on loopback");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let address = listener.local_addr().expect("a bound socket");
        let (weather, seen) =
            watch::channel(Weather { upstream, passage: Passage::Open, latency: Duration::ZERO });
        let (swallow, swallowed) = watch::channel(0);
        let (cuts, cut) = mpsc::unbounded_channel();
        let spared = Arc::<AtomicUsize>::default();
        let route = Route { weather: seen, swallow, spared: Arc::clone(&spared) };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime for the proxy");
        let thread = thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || runtime.block_on(serve(listener, route, cut)).expect("the proxy accepts"))
            .expect("a thread for the proxy");
        Proxy { address, weather, swallowed, spared, cuts: Some(cuts), thread: Some(thread) }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forwards both ways again, without latency. A connection that lost replies to
    /// [`swallow_replies`](Self::swallow_replies) stays out of step: [`cut`](Self::cut) it.
    pub fn forward(&self) {
        self.weather.send_modify(|weather| {
            weather.passage = Passage::Open;
            weather.latency = Duration::ZERO;
        });
    }

    /// Closes every connection, and has done so when it returns. New ones are let through.
    pub fn cut(&self) {
        let (done, closed) = std_mpsc::sync_channel(1);
        let cuts = self.cuts.as_ref().expect("taken in drop only");
        cuts.send(done).expect("the proxy runs as long as its handle");
        closed.recv().expect("the proxy answers");
    }

    /// Closes every connection and each new one at once, as a host does where no server listens.
    pub fn refuse(&self) {
        self.pass(Passage::Refused);
        self.cut();
    }

    /// Passes nothing either way and closes nothing. What is sent meanwhile arrives after
    /// [`forward`](Self::forward), unless the connection is cut first.
    pub fn blackhole(&self) {
        self.pass(Passage::Blocked);
    }

    /// Passes requests to the server and drops what it answers.
    pub fn swallow_replies(&self) {
        self.swallow_replies_but(0);
    }

    /// The same, once so many replies have passed.
    pub fn swallow_replies_but(&self, spared: usize) {
        self.spared.store(spared, Ordering::SeqCst);
        self.pass(Passage::RequestsOnly);
    }

    /// Resolves when a reply has been dropped that was not yet when this was called: the server has then done what
    /// it was asked, and the client does not know.
    pub fn reply_swallowed(&self) -> impl Future<Output = ()> + use<> {
        let mut swallowed = self.swallowed.clone();
        let before = *swallowed.borrow();
        async move {
            swallowed.wait_for(|bytes| *bytes > before).await.expect("the proxy outlives the wait");
        }
    }

    /// Delays what passes by `latency` in each direction.
    pub fn delay(&self, latency: Duration) {
        self.weather.send_modify(|weather| weather.latency = latency);
    }

    /// Forwards new connections to another server.
    pub fn redirect(&self, upstream: SocketAddr) {
        self.weather.send_modify(|weather| weather.upstream = upstream);
    }

    fn pass(&self, passage: Passage) {
        self.weather.send_modify(|weather| weather.passage = passage);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cuts = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("the proxy's thread panicked");
        }
    }
}

/// What one connection needs to know.
#[derive(Clone)]
struct Route {
    weather: watch::Receiver<Weather>,
    swallow: watch::Sender<u64>,
    spared: Arc<AtomicUsize>,
}

async fn serve(
    listener: StdTcpListener,
    route: Route,
    mut cuts: mpsc::UnboundedReceiver<SyncSender<()>>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            cut = cuts.recv() => {
                let Some(done) = cut else { return Ok(()) };
                connections.shutdown().await;
                // The asker may have given up.
                let _ = done.send(());
            }
            accepted = listener.accept() => {
                let (client, _) = accepted?;
                connections.spawn(carry(client, route.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn carry(client: TcpStream, mut route: Route) -> io::Result<()> {
    if route.passage().await? == Passage::Refused {
        return Ok(());
    }
    let upstream = route.weather.borrow().upstream;
    let server = TcpStream::connect(upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::try_join!(
        pump(from_client, to_server, Direction::Request, route.clone()),
        pump(from_server, to_client, Direction::Reply, route.clone()),
    )?;
    Ok(())
}

/// Reader and writer apart, so that latency delays each piece and does not add up over a burst of them.
async fn pump(from: OwnedReadHalf, to: OwnedWriteHalf, direction: Direction, route: Route) -> io::Result<()> {
    let (pieces, due) = mpsc::channel(64);
    tokio::try_join!(read(from, pieces, route.weather.clone()), write(due, to, direction, route))?;
    Ok(())
}

type Piece = (Instant, Vec<u8>);

async fn read(
    mut from: OwnedReadHalf,
    pieces: mpsc::Sender<Piece>,
    weather: watch::Receiver<Weather>,
) -> io::Result<()> {
    loop {
        let mut bytes = Vec::with_capacity(16 * 1024);
        if from.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        let due = Instant::now() + weather.borrow().latency;
        if pieces.send((due, bytes)).await.is_err() {
            return Ok(());
        }
    }
}

async fn write(
    mut pieces: mpsc::Receiver<Piece>,
    mut to: OwnedWriteHalf,
    direction: Direction,
    mut route: Route,
) -> io::Result<()> {
    while let Some((due, bytes)) = pieces.recv().await {
        sleep_until(due).await;
        let requests_only = route.passage().await? == Passage::RequestsOnly;
        if requests_only && direction == Direction::Reply && !route.spares() {
            route.swallow.send_modify(|swallowed| *swallowed += bytes.len() as u64);
        } else {
            to.write_all(&bytes).await?;
        }
    }
    route.passage().await?;
    to.shutdown().await
}

impl Route {
    /// Whether one more reply passes.
    fn spares(&self) -> bool {
        let one_less = |spared: usize| spared.checked_sub(1);
        self.spared.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
    }

    /// Waits out a blackhole.
    async fn passage(&mut self) -> io::Result<Passage> {
        let open = self.weather.wait_for(|weather| weather.passage != Passage::Blocked).await;
        open.map(|weather| weather.passage).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_millis(100);
    const LATE: Duration = Duration::from_secs(10);

    /// Answers each byte with the next one.
    async fn counting_server() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    while let Ok(byte) = client.read_u8().await {
                        client.write_u8(byte + 1).await?;
                    }
                    io::Result::Ok(())
                });
            }
        });
        address
    }

    async fn connected() -> (Proxy, TcpStream) {
        let proxy = Proxy::to(counting_server().await);
        let mut client = TcpStream::connect(proxy.address()).await.expect("the proxy accepts");
        assert_eq!(ask(&mut client, 1).await.expect("an answer"), 2);
        (proxy, client)
    }

    async fn ask(client: &mut TcpStream, byte: u8) -> io::Result<u8> {
        client.write_u8(byte).await?;
        timeout(LATE, client.read_u8()).await.expect("an answer or a closed connection")
    }

    #[tokio::test]
    async fn a_cut_closes_what_is_open_and_lets_new_ones_through() {
        let (proxy, mut client) = connected().await;
        proxy.cut();
        ask(&mut client, 3).await.expect_err("closed");
        let mut client = TcpStream::connect(proxy.address()).await.expect("the proxy accepts");
        assert_eq!(ask(&mut client, 3).await.expect("an answer"), 4);
    }

    #[tokio::test]
    async fn a_redirected_proxy_sends_new_connections_elsewhere() {
        let (proxy, mut client) = connected().await;
        let nowhere = StdTcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|gone| gone.local_addr());
        proxy.redirect(nowhere.expect("a port where nobody listens any more"));
        assert_eq!(ask(&mut client, 3).await.expect("an answer"), 4);
        let mut elsewhere = TcpStream::connect(proxy.address()).await.expect("the proxy accepts");
        ask(&mut elsewhere, 5).await.expect_err("closed");
    }

    #[tokio::test]
    async fn a_refusing_proxy_closes_new_connections_until_it_forwards_again() {
        let (proxy, _client) = connected().await;
        proxy.refuse();
        let mut client = TcpStream::connect(proxy.address()).await.expect("the proxy accepts");
        ask(&mut client, 3).await.expect_err("closed at once");
        proxy.forward();
        let mut client = TcpStream::connect(proxy.address()).await.expect("the proxy accepts");
        assert_eq!(ask(&mut client, 3).await.expect("an answer"), 4);
    }

    #[tokio::test]
    async fn a_blackhole_holds_back_both_ways_and_closes_nothing() {
        let (proxy, mut client) = connected().await;
        proxy.blackhole();
        client.write_u8(3).await.expect("accepted by the socket");
        timeout(SOON, client.read_u8()).await.expect_err("nothing passes");
        proxy.forward();
        assert_eq!(timeout(LATE, client.read_u8()).await.expect("in time").expect("an answer"), 4);
    }

    #[tokio::test]
    async fn a_swallowed_reply_has_reached_the_server() {
        let (proxy, mut client) = connected().await;
        proxy.swallow_replies();
        let swallowed = proxy.reply_swallowed();
        client.write_u8(3).await.expect("accepted by the socket");
        timeout(LATE, swallowed).await.expect("the server answered");
        timeout(SOON, client.read_u8()).await.expect_err("the answer was dropped");
        proxy.cut();
        ask(&mut client, 5).await.expect_err("closed");
    }

    #[tokio::test]
    async fn a_spared_reply_passes_and_the_next_is_swallowed() {
        let (proxy, mut client) = connected().await;
        proxy.swallow_replies_but(1);
        assert_eq!(ask(&mut client, 3).await.expect("an answer"), 4);
        client.write_u8(5).await.expect("accepted by the socket");
        timeout(SOON, client.read_u8()).await.expect_err("the answer was dropped");
    }

    #[tokio::test]
    async fn latency_counts_once_for_a_burst() {
        let (proxy, mut client) = connected().await;
        let latency = Duration::from_millis(100);
        proxy.delay(latency);
        let sent = Instant::now();
        for byte in 0..20 {
            client.write_u8(byte).await.expect("accepted by the socket");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for byte in 0..20 {
            let answer = timeout(LATE, client.read_u8()).await.expect("in time");
            assert_eq!(answer.expect("an answer"), byte + 1);
        }
        assert!(sent.elapsed() >= 2 * latency, "both ways: {:?}", sent.elapsed());
        assert!(sent.elapsed() < 20 * latency, "not once per piece: {:?}", sent.elapsed());
    }

    #[tokio::test]
    async fn an_end_of_file_passes() {
        let (_proxy, mut client) = connected().await;
        client.shutdown().await.expect("half closed");
        let mut rest = Vec::new();
        timeout(LATE, client.read_to_end(&mut rest)).await.expect("in time").expect("the server closed too");
        assert!(rest.is_empty());
    }
}
