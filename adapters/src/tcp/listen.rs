//! The port that workers connect to.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that may wait to be accepted: a thousand workers come back at once after a restart. The
/// documented server had 128.
const BACKLOG: u32 = 1024;

/// How soon a connection is tried again when the system has no descriptor left for it.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A port that cannot be listened on.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Another socket has it.
    #[error(
        "{address}: the port is in use by another process; end that one, or listen elsewhere (port 0 takes a free one)"
    )]
    InUse {
        /// Where.
        address: SocketAddr,
    },
    /// The address is not this machine's.
    #[error(
        "{address}: no interface of this machine has this address; listen on one that it has, such as 127.0.0.1"
    )]
    NotHere {
        /// Where.
        address: SocketAddr,
    },
    /// The port needs rights that this user has not.
    #[error(
        "{address}: this user may not listen there; ports under 1024 need more rights, choose a higher one"
    )]
    NotAllowed {
        /// Where.
        address: SocketAddr,
    },
    /// Anything else that the system said.
    #[error("{address}: cannot listen: {error}")]
    Other {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

impl ListenError {
    fn of(address: SocketAddr, error: io::Error) -> ListenError {
        match error.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse { address },
            io::ErrorKind::AddrNotAvailable => ListenError::NotHere { address },
            io::ErrorKind::PermissionDenied => ListenError::NotAllowed { address },
            _ => ListenError::Other { address, error },
        }
    }
}

/// Listens on this address. A port whose connections of an earlier process linger is taken at once.
///
/// # Errors
/// [`ListenError`] names the address and the remedy.
pub fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    let listen = || -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen().map_err(|error| ListenError::of(address, error))
}

/// The next connection, its options set. Never fails: a connection that died while it waited concerns
/// nobody, and descriptors come back.
pub async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => match set_options(&stream) {
                Ok(()) => return (stream, peer),
                Err(error) => tracing::debug!("{peer}: gone before it was served: {error}"),
            },
            Err(error) if is_the_peers(&error) => {
                tracing::debug!("a connection ended before it was accepted: {error}");
            }
            Err(error) => {
                tracing::warn!(
                    "cannot accept connections: {error}; if too many files are open, raise the limit (ulimit -n)"
                );
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// Small messages go at once, and a peer whose host is gone is found out even when nothing is said. Linger
/// stays off: closing at once would throw away acknowledgements that are on their way.
fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    setsockopt(&stream.as_fd(), sockopt::KeepAlive, &true)?;
    Ok(())
}

fn is_the_peers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[tokio::test]
    async fn a_port_in_use_is_named_with_the_remedy() {
        let first = bind(local(0)).expect("a free port");
        let address = first.local_addr().expect("bound");
        let refused = bind(address).expect_err("it is taken").to_string();
        assert!(refused.contains(&address.to_string()) && refused.contains("port 0"), "{refused}");
    }

    #[tokio::test]
    async fn a_port_is_bound_again_while_an_old_connection_lingers() {
        let listener = bind(local(0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (client, accepted) = tokio::join!(TcpStream::connect(address), accept(&listener));
        let client = client.expect("connected");
        // The side that closes first keeps the port in TIME-WAIT.
        drop(accepted);
        drop(listener);
        bind(address).expect("at once");
        drop(client);
    }

    #[tokio::test]
    async fn an_address_of_another_machine_is_refused_with_the_remedy() {
        let elsewhere = SocketAddr::from(([192, 0, 2, 1], 0));
        let refused = bind(elsewhere).expect_err("a documentation address").to_string();
        assert!(refused.contains("192.0.2.1") && refused.contains("127.0.0.1"), "{refused}");
    }
}
