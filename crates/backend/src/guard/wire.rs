//! What we and the guard tell each other over the control socket.
//!
//! We say "start" once, along with the child's input; the guard answers once with how the child
//! ended. Everything else is said by closing the socket. It is a socket and not a pipe because it
//! can carry the child's input: so the guard has its end as its own standard input, and no
//! descriptor of ours ever has to be made inheritable.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::cmsg_space;
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send, sendmsg,
};

/// Told to start, with the child's input if it has one.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) stdin: Option<OwnedFd>,
}

/// Our side: has the guard start the child. Waits in the socket until the guard is up.
pub(super) fn send_start(control: &UnixStream, stdin: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let stdin = stdin.as_slice();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    if !stdin.is_empty() {
        attached.push(SendAncillaryMessage::ScmRights(stdin));
    }
    sendmsg(control, &[IoSlice::new(b"s")], &mut attached, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The guard's side: `None` when whoever started us is gone already.
pub(super) fn receive_start(control: BorrowedFd<'_>) -> io::Result<Option<Start>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        control,
        &mut [IoSliceMut::new(&mut byte)],
        &mut attached,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let stdin = attached.drain().find_map(|message| {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            descriptors.next()
        } else {
            None
        }
    });
    Ok(Some(Start { stdin }))
}

/// The guard's side: how the child ended, in the system's encoding.
pub(super) fn send_report(control: BorrowedFd<'_>, wait_status: i32) {
    // Nobody there to read it is the very case the guard is made for.
    let _ = send(control, &wait_status.to_ne_bytes(), SendFlags::NOSIGNAL);
}

/// Our side: `None` when the guard is gone and has left no report, [`WouldBlock`] while it is at work.
/// The report stays in the socket: both the owner of the guard and its watch look for it.
///
/// [`WouldBlock`]: io::ErrorKind::WouldBlock
pub(super) fn report(control: impl AsFd) -> io::Result<Option<ExitStatus>> {
    let mut raw = [0; size_of::<i32>()];
    let looking = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let (_, received) = retry_on_intr(|| recv(&control, &mut raw, looking))?;
    let status = ExitStatus::from_raw(i32::from_ne_bytes(raw));
    Ok((received == raw.len()).then_some(status))
}
