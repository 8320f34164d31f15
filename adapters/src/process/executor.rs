//! The worker's side: launches commands, stops them, reports what happens.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::event::{Fault, Launch, ProcessEvent};
use super::link::{Guardian, GuardianCommand, Link};
use super::supervise::{Job, supervise};

/// Longer than a task init tries before it reports survivors.
const CLOSE_LIMIT: Duration = Duration::from_secs(15);

/// Bounds of an executor.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A longer line is passed on in parts. Default 64 KiB: a whole default pipe.
    pub line_cap: usize,
    /// Output of one command that may wait for the consumer before the command is held up, in
    /// bytes; a line counts 128 more than it has. Default 1 MiB.
    pub output_budget: usize,
    /// How long to read on after a command's end if something outside its tree holds its pipes.
    /// Default 2 s. With the tree gone the pipes end by themselves, in no time.
    pub drain_limit: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { line_cap: 64 << 10, output_budget: 1 << 20, drain_limit: Duration::from_secs(2) }
    }
}

/// Runs commands under a guardian process.
///
/// Dropping it, like the death of the worker, kills everything that it runs.
#[derive(Clone, Debug)]
pub struct Executor {
    orders: mpsc::UnboundedSender<Order>,
}

enum Order {
    Launch(Launch),
    Stop { key: u64, grace: Duration },
    Close { closed: oneshot::Sender<()> },
}

impl Executor {
    /// Starts a guardian and gives the executor and what happens to its commands.
    ///
    /// # Errors
    /// The guardian could not be started, or is not one of this version.
    pub async fn start(
        command: GuardianCommand,
        settings: Settings,
    ) -> io::Result<(Executor, mpsc::UnboundedReceiver<ProcessEvent>)> {
        let guardian = Supervised::new(command.start().await?);
        let (orders, inbox) = mpsc::unbounded_channel();
        let (events, outbox) = mpsc::unbounded_channel();
        let manager = Manager {
            command,
            settings,
            guardian: Some(guardian),
            stops: HashMap::new(),
            jobs: JoinSet::new(),
            events,
        };
        tokio::spawn(manager.run(inbox));
        Ok((Executor { orders }, outbox))
    }

    /// Runs a command. A key that is in use is a caller's bug: it is logged and nothing is started.
    pub fn launch(&self, launch: Launch) {
        let _ = self.orders.send(Order::Launch(launch));
    }

    /// TERM to the command and all its descendants, KILL to those left after the grace; without a
    /// grace, KILL at once.
    ///
    /// The grace also goes on for descendants whose command has ended. Another stop can shorten
    /// it. Without effect on a key that is over.
    pub fn stop(&self, key: u64, grace: Duration) {
        let _ = self.orders.send(Order::Stop { key, grace });
    }

    /// Kills everything and returns when it has ended and so has the guardian.
    ///
    /// The events of these ends are still sent. Gives up on processes that survive SIGKILL after
    /// some 15 s; the guardian then stays with them.
    pub async fn close(self) {
        let (closed, done) = oneshot::channel();
        if self.orders.send(Order::Close { closed }).is_ok() {
            let _ = done.await;
        }
    }
}

struct Supervised {
    link: Arc<Link>,
    death: oneshot::Receiver<io::Result<std::process::ExitStatus>>,
}

impl Supervised {
    fn new(guardian: Guardian) -> Supervised {
        Supervised { link: Arc::new(guardian.link), death: guardian.death }
    }
}

struct Manager {
    command: GuardianCommand,
    settings: Settings,
    /// `None` from its death until the next launch.
    guardian: Option<Supervised>,
    /// A way to each running job, for its stop requests.
    stops: HashMap<u64, mpsc::UnboundedSender<Duration>>,
    jobs: JoinSet<(u64, ProcessEvent)>,
    events: mpsc::UnboundedSender<ProcessEvent>,
}

impl Manager {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Order>) {
        loop {
            tokio::select! {
                order = inbox.recv() => match order {
                    Some(Order::Launch(launch)) => self.launch(launch).await,
                    Some(Order::Stop { key, grace }) => self.stop(key, grace),
                    Some(Order::Close { closed }) => {
                        self.close().await;
                        let _ = closed.send(());
                        return;
                    }
                    None => return,
                },
                Some(done) = self.jobs.join_next() => self.on_done(done),
                error = death(&mut self.guardian) => self.on_guardian_lost(error),
            }
        }
    }

    async fn launch(&mut self, launch: Launch) {
        let key = launch.key;
        if self.stops.contains_key(&key) {
            tracing::error!(key, "launch refused: a command with this key is running");
            return;
        }
        let link = match self.link().await {
            Ok(link) => link,
            Err(error) => {
                let error = error.to_string();
                self.emit(ProcessEvent::FailedToStart { key, fault: Fault::Worker, error });
                return;
            }
        };
        let (stop, stops) = mpsc::unbounded_channel();
        self.stops.insert(key, stop);
        let (settings, events) = (self.settings.clone(), self.events.clone());
        let job = Job { launch, link, stops, settings, events };
        self.jobs.spawn(async move { (key, supervise(job).await) });
    }

    /// Started again only when needed, so that one that cannot live does not spin.
    async fn link(&mut self) -> io::Result<Arc<Link>> {
        let guardian = match self.guardian.take() {
            Some(guardian) => guardian,
            None => Supervised::new(self.command.start().await?),
        };
        Ok(self.guardian.insert(guardian).link.clone())
    }

    fn stop(&mut self, key: u64, grace: Duration) {
        if let Some(stop) = self.stops.get(&key) {
            let _ = stop.send(grace);
        }
    }

    /// The key is free before its last event can be seen.
    fn on_done(&mut self, done: Result<(u64, ProcessEvent), tokio::task::JoinError>) {
        let (key, event) = done.expect("a job neither panics nor is cancelled while this runs");
        self.stops.remove(&key);
        self.emit(event);
    }

    fn on_guardian_lost(&mut self, error: String) {
        self.guardian = None;
        let mut running: Vec<u64> = self.stops.keys().copied().collect();
        running.sort_unstable();
        tracing::error!(error, running = running.len(), "the guardian ended");
        self.emit(ProcessEvent::GuardianLost { error, running });
    }

    fn emit(&self, event: ProcessEvent) {
        // Nobody listens when the worker ends.
        let _ = self.events.send(event);
    }

    async fn close(mut self) {
        for stop in self.stops.values() {
            let _ = stop.send(Duration::ZERO);
        }
        let guardian = self.guardian.take();
        let ends = async {
            while let Some(done) = self.jobs.join_next().await {
                self.on_done(done);
            }
            if let Some(Supervised { link, death }) = guardian {
                drop(link);
                let _ = death.await;
            }
        };
        let _ = tokio::time::timeout(CLOSE_LIMIT, ends).await;
    }
}

async fn death(guardian: &mut Option<Supervised>) -> String {
    match guardian {
        Some(guardian) => match (&mut guardian.death).await {
            Ok(Ok(status)) => format!("the guardian process ended: {status}"),
            Ok(Err(error)) => format!("the guardian process cannot be waited for: {error}"),
            Err(_) => "the guardian process is not watched any more".to_owned(),
        },
        None => std::future::pending().await,
    }
}
