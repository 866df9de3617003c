//! `swipr proxy`: an agent's Unix socket by TCP on loopback, for programs that cannot dial one.
//! Only this user's programs may ask, and no web page.

use crate::args::Proxy;
use crate::client::Client;
use crate::error::Error;
use crate::find;
use crate::serve::{self, ServedRequest, answer, peer_uid};
use crate::threads;
use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::process::ExitCode;

/// Runs the verb. Ends with the first signal that ends processes.
pub fn proxy(arguments: Proxy) -> Result<ExitCode, Error> {
    let found = find::one(&arguments.target.text())?;
    let cannot = |error: io::Error| {
        let what = format!("cannot listen on 127.0.0.1:{}: {error}", arguments.port);
        Error::new(what, "choose another --port, or 0 for any that is free")
    };
    let listener = serve::listen(arguments.port).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let help = format!(
        "swipr: {} ({}) is at http://{address}, until Ctrl-C\nnext: go tool pprof -http=: 'http://{address}/debug/pprof/profile?seconds=10'\n",
        found.name(),
        found.pid()
    );
    crate::print(help.as_bytes())?;
    loop {
        let Ok((stream, peer)) = listener.accept() else { continue };
        let client = found.client.clone().waiting();
        // SAFETY: geteuid(2) takes nothing and cannot fail.
        let own = unsafe { libc::geteuid() };
        let is_ours = peer_uid(peer, address).is_some_and(|uid| uid == own || uid == 0);
        // A client that goes away ends its own connection only.
        let _ = threads::start(move || _ = pass(stream, &client, is_ours));
    }
}

fn pass(stream: TcpStream, client: &Client, is_ours: bool) -> io::Result<()> {
    let request = ServedRequest::read(stream)?;
    let refused = match (is_ours, request.is_for_loopback(), request.field("origin")) {
        (false, ..) => Some("only programs of the user who started this proxy may ask\n"),
        (_, false, _) => Some("the Host header should be localhost or 127.0.0.1\n"),
        (.., Some(_)) => Some("web pages may not ask\n"),
        _ if request.is_for_other_page() => Some("web pages may not have a browser ask\n"),
        _ => None,
    };
    let text = [("Content-Type", "text/plain; charset=utf-8")];
    if let Some(why) = refused {
        return answer(request.stream(), "403 Forbidden", &text, why.as_bytes());
    }
    let mut agent = match client.connect() {
        Ok(agent) => agent,
        Err(error) => {
            return answer(request.stream(), "502 Bad Gateway", &text, format!("{error}\n").as_bytes());
        }
    };
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    for (name, value) in &request.fields {
        if !name.eq_ignore_ascii_case("connection") {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str("Connection: close\r\n\r\n");
    agent.write_all(head.as_bytes())?;
    let mut back = request.stream().try_clone()?;
    back.set_write_timeout(None)?;
    let mut forth = agent.try_clone()?;
    let mut rest = request.reader;
    rest.get_ref().set_read_timeout(None)?;
    threads::start(move || {
        let _ = io::copy(&mut rest, &mut forth);
        // The client has gone: so has its recording.
        let _ = forth.shutdown(Shutdown::Both);
    })
    .map_err(io::Error::other)?;
    let copied = io::copy(&mut agent, &mut back);
    let _ = back.shutdown(Shutdown::Both);
    copied.map(|_| ())
}
