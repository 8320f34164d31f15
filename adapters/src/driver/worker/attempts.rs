//! The attempts that run here: starting them, ending them, and the GPUs that they hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::ids::AttemptRef;
use tenure_core::message::{Execute, StopReason};
use tenure_core::spec::Payload;
use tenure_core::time::{Millis, Time};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::attempt::{self, Job, Workshop};
use super::gpus::Gpus;
use super::input::Input;
use super::report::{self, StopCause};

/// Everything that runs.
#[derive(Debug)]
pub(super) struct Attempts {
    shop: Arc<Workshop>,
    inbox: mpsc::Sender<Input>,
    running: BTreeMap<AttemptRef, Running>,
    gpus: Gpus,
    next_key: u64,
    tasks: JoinSet<()>,
    /// The worker gives back what it runs.
    leaving: bool,
}

#[derive(Debug)]
struct Running {
    stop: mpsc::UnboundedSender<StopCause>,
    gpus: Vec<u32>,
    started: Time,
    timeout: Option<Millis>,
}

impl Attempts {
    /// Nothing runs yet. Each end goes to `inbox`.
    pub(super) fn new(shop: Workshop, gpus: u16, inbox: mpsc::Sender<Input>) -> Attempts {
        Attempts {
            shop: Arc::new(shop),
            inbox,
            running: BTreeMap::new(),
            gpus: Gpus::new(gpus, std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref()),
            next_key: 0,
            tasks: JoinSet::new(),
            leaving: false,
        }
    }

    /// Starts an attempt. Its end comes as [`Input::Ended`], once.
    pub(super) fn start(&mut self, now: Time, execute: Execute) {
        let Execute { at, term, shape, timeout, resumes, payload } = execute;
        let gpus = self.gpus.take(shape.gpus);
        let (stop, stops) = mpsc::unbounded_channel();
        let job = Job {
            at,
            epoch: term.epoch,
            resumes,
            payload,
            gpus: self.gpus.are_managed().then(|| gpus.clone()),
            key: self.next_key,
            stops,
        };
        self.next_key += 1;
        self.running.insert(at, Running { stop, gpus, started: now, timeout });
        let (shop, inbox) = (Arc::clone(&self.shop), self.inbox.clone());
        self.tasks.spawn(async move {
            let key = job.key;
            // A task of its own, so that its panic is an end like any other.
            let ran = tokio::spawn(attempt::run(Arc::clone(&shop), job)).await;
            let (verdict, report) = ran.unwrap_or_else(|_| {
                shop.executor.stop(key, Duration::ZERO);
                report::broken()
            });
            let report = Payload::of(&report.to_bytes());
            let _ = inbox.send(Input::Ended { at, verdict, report }).await;
        });
    }

    /// Ends an attempt's process; what has ended by itself stays as it is.
    pub(super) fn stop(&mut self, now: Time, at: AttemptRef, reason: StopReason) {
        let Some(running) = self.running.get(&at) else { return };
        // Core orders all of these with the same reason; people want to know which it was.
        let timed_out = running.timeout.filter(|timeout| now >= running.started + *timeout);
        let cause = match (reason, timed_out) {
            (StopReason::Superseded, _) => StopCause::Superseded,
            (StopReason::Cancelled, _) if self.leaving => StopCause::HandedBack,
            (StopReason::Cancelled, Some(timeout)) => StopCause::TimedOut(timeout.0),
            (StopReason::Cancelled, None) => StopCause::Cancelled,
        };
        let _ = running.stop.send(cause);
    }

    /// What is stopped from here on is given back.
    pub(super) fn leave(&mut self) {
        self.leaving = true;
    }

    /// Its GPUs are free again.
    pub(super) fn ended(&mut self, at: AttemptRef) {
        if let Some(running) = self.running.remove(&at) {
            self.gpus.give_back(running.gpus);
        }
        self.shop.progress.remove(at);
        while self.tasks.try_join_next().is_some() {}
    }

    /// Kills what still runs and returns when nothing does.
    pub(super) async fn close(mut self, mut inbox: mpsc::Receiver<Input>) {
        let ends = async {
            self.shop.executor.clone().close().await;
            while self.tasks.join_next().await.is_some() {}
        };
        // The ends of attempts are read by nobody, and must not be waited for in vain.
        let reading = async { while inbox.recv().await.is_some() {} };
        tokio::select! {
            () = ends => {}
            () = reading => {}
        }
    }
}
