//! The thread that writes the worker's records, so that a slow disk holds up nothing but its own answers.

use std::sync::mpsc as std_mpsc;
use std::thread::{Builder, JoinHandle};

use tenure_core::command::Record;
use tenure_core::event::AgentEvent;
use tenure_core::ids::EffectId;
use tokio::sync::mpsc;

use super::fault::Fault;
use super::input::Input;
use crate::outbox::Outbox;

/// Writes records in the order in which they were ordered, and answers in that order.
#[derive(Debug)]
pub(super) struct Disk {
    orders: std_mpsc::Sender<(EffectId, Record)>,
    thread: JoinHandle<()>,
}

impl Disk {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread to spare.
    pub(super) fn start(outbox: Outbox, inbox: mpsc::Sender<Input>) -> std::io::Result<Disk> {
        let (orders, waiting) = std_mpsc::channel();
        let fault = Fault::asked_for();
        let thread = Builder::new()
            .name("worker-disk".to_owned())
            .spawn(move || run(outbox, fault, &waiting, &inbox))?;
        Ok(Disk { orders, thread })
    }

    /// Orders a record; answered as an event.
    pub(super) fn write(&self, effect: EffectId, record: Record) {
        // The thread ends only after this value.
        let _ = self.orders.send((effect, record));
    }

    /// Writes what waits, brings all of it to the disk and ends.
    pub(super) async fn close(self) {
        drop(self.orders);
        // A panic there has been reported by the thread itself.
        let _ = tokio::task::spawn_blocking(move || self.thread.join()).await;
    }
}

fn run(
    mut outbox: Outbox,
    fault: Option<Fault>,
    waiting: &std_mpsc::Receiver<(EffectId, Record)>,
    inbox: &mpsc::Sender<Input>,
) {
    while let Ok((effect, record)) = waiting.recv() {
        let is_outcome = matches!(record, Record::Outcome(_));
        if is_outcome {
            Fault::here(fault, Fault::BeforeOutcomeRecord);
        }
        let event = match outbox.append(&record) {
            Ok(()) => AgentEvent::Persisted(effect),
            Err(error) => {
                tracing::error!(%record, %error, "a record could not be written");
                AgentEvent::PersistFailed(effect)
            }
        };
        if is_outcome {
            Fault::here(fault, Fault::AfterOutcomeRecord);
        }
        // Nobody listens when the worker ends; the record counts all the same.
        let _ = inbox.blocking_send(Input::Event(event));
    }
    if let Err(error) = outbox.sync() {
        tracing::error!(%error, "the last records may not survive a power cut");
    }
}
