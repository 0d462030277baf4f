//! An answer on its way to the program.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Response;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue};
use tokio::time::Sleep;

/// What is sent.
#[derive(Debug)]
pub(super) struct Answer {
    /// The HTTP status.
    pub(super) status: u16,
    /// The headers besides those that every answer has.
    pub(super) headers: Vec<(Cow<'static, str>, String)>,
    /// The body.
    pub(super) pieces: VecDeque<Piece>,
    /// What comes after it.
    pub(super) end: End,
}

/// A part of a body.
#[derive(Debug)]
pub(super) struct Piece {
    /// How long it is waited for.
    pub(super) after: Duration,
    /// What it is.
    pub(super) bytes: Bytes,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// In good order.
    Finish,
    /// Never.
    Hang,
    /// With the connection, in the middle.
    Cut,
    /// With the connection, before anything was sent.
    Close,
}

/// The connection is to be closed, as the script wants it.
#[derive(Debug, thiserror::Error)]
#[error("the script breaks the connection")]
pub(super) struct Broken;

impl Answer {
    /// An answer in one piece.
    pub(super) fn whole(status: u16, content: &str, body: impl Into<Bytes>) -> Self {
        let piece = Piece { after: Duration::ZERO, bytes: body.into() };
        Self {
            status,
            headers: vec![("content-type".into(), content.to_owned())],
            pieces: VecDeque::from([piece]),
            end: End::Finish,
        }
    }

    /// The answer as the server wants it.
    pub(super) fn into_response(self) -> Result<Response<Playback>, Broken> {
        if self.end == End::Close {
            return Err(Broken);
        }
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            let value = HeaderValue::try_from(value).map_err(|_| Broken)?;
            let name = HeaderName::try_from(name.as_ref()).map_err(|_| Broken)?;
            response = response.header(name, value);
        }
        let playback = Playback { pieces: self.pieces, end: self.end, sleep: None, flushed: false };
        response.body(playback).map_err(|_| Broken)
    }
}

/// A body that is sent piece by piece.
#[derive(Debug)]
pub(super) struct Playback {
    pieces: VecDeque<Piece>,
    end: End,
    sleep: Option<Pin<Box<Sleep>>>,
    flushed: bool,
}

impl Body for Playback {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        let Some(next) = this.pieces.front() else {
            return match this.end {
                End::Finish => Poll::Ready(None),
                End::Hang => Poll::Pending,
                // What was sent before is written out while the body is not ready.
                End::Cut | End::Close if !this.flushed => {
                    this.flushed = true;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                End::Cut | End::Close => Poll::Ready(Some(Err(Broken))),
            };
        };
        if !next.after.is_zero() {
            let after = next.after;
            let sleep = this.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            this.sleep = None;
        }
        Poll::Ready(this.pieces.pop_front().map(|piece| Ok(Frame::data(piece.bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.end == End::Finish
    }

    fn size_hint(&self) -> SizeHint {
        let size = self.pieces.iter().map(|piece| piece.bytes.len() as u64).sum();
        let mut hint = SizeHint::new();
        hint.set_lower(size);
        if self.end == End::Finish {
            hint.set_exact(size);
        }
        hint
    }
}
