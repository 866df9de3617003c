//! A variable that holds for programs with the crate, too. A file of its own: the variable is the
//! whole process's.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use swipr::Profiler;

/// Regression: the address was read, and nobody listened there.
#[test]
fn the_second_address_is_open_whether_or_not_there_is_a_first() {
    let name = format!("swipr-second-place-{}", std::process::id());
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { std::env::set_var("SWIPR_LISTEN", format!("@{name}")) };
    let profiler = Profiler::builder().start().expect("a profiler");
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    UnixStream::connect_addr(&address).expect("a connection");
    profiler.stop().expect("a report");
}
