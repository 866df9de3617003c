//! In the place of `swipr::sync`. Time-outs never happen here, but for those of an empty channel, which happen at once.

pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
pub(crate) use std::sync::{Arc, PoisonError};

/// Channels without an end: loom's do not tell that the other side is gone.
pub(crate) mod mpsc {
    pub(crate) use loom::sync::mpsc::Sender;
    use loom::sync::mpsc::{self, Receiver as Looms};
    use std::sync::mpsc::RecvTimeoutError;
    use std::time::Duration;

    #[derive(Debug)]
    pub(crate) struct Receiver<T>(Looms<T>);

    pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
        let (sender, receiver) = mpsc::channel();
        (sender, Receiver(receiver))
    }

    impl<T> Receiver<T> {
        pub(crate) fn recv_timeout(&self, _: Duration) -> Result<T, RecvTimeoutError> {
            self.0.try_recv().map_err(|_| RecvTimeoutError::Timeout)
        }
    }
}
