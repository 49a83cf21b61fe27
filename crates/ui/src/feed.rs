//! The body of a feed: messages as they arrive, until the page is closed or the server ends.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::body::{Body, Bytes, Frame};
use tokio::{
    sync::{broadcast::error::RecvError, mpsc},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::live::Subscription;

/// A comment is sent after this long without a message, to find out whether the page is still open.
const STILL_THERE: Duration = Duration::from_secs(20);

pub(crate) struct Feed(mpsc::Receiver<Bytes>);

impl Feed {
    /// Starts to pass the messages on.
    pub(crate) fn start(mut subscription: Subscription, closing: CancellationToken) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            // A page with an older revision has requested the state before the feed began.
            let mut next = Bytes::from(format!("event: from\ndata: {{\"revision\":{}}}\n\n", subscription.revision));
            while sender.send(next).await.is_ok() {
                let message = tokio::select! {
                    () = closing.cancelled() => break,
                    () = sender.closed() => break,
                    message = timeout(STILL_THERE, subscription.messages.recv()) => message,
                };
                next = match message {
                    Err(_) => Bytes::from_static(b": still here\n\n"),
                    Ok(Ok(message)) => Bytes::copy_from_slice(message.as_bytes()),
                    // The page was too slow and has missed messages.
                    Ok(Err(RecvError::Lagged(_))) => Bytes::from_static(b"event: again\ndata: {}\n\n"),
                    Ok(Err(RecvError::Closed)) => break,
                };
            }
        });
        Self(receiver)
    }
}

impl Body for Feed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = ready!(self.0.poll_recv(context));
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }
}
