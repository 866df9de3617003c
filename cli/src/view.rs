//! `swipr view`: a recording in profiler.firefox.com, which loads it from this command. It is served on loopback, under a
//! path that nobody can guess, to that page only.

use crate::args::View;
use crate::convert;
use crate::error::Error;
use crate::event::Event;
use crate::read;
use crate::serve::{self, Request, answer};
use crate::shape::Shape;
use std::io::{self, Read};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use swipr_formats::Options;
use swipr_formats::model::Summary;

const VIEWER: &str = "https://profiler.firefox.com";

/// Runs the verb. Ends with the first signal that ends processes.
pub fn view(arguments: View) -> Result<ExitCode, Error> {
    // What cannot carry everything is better than nothing.
    let format = ["firefox", "perf"].iter().find_map(|name| swipr_formats::find(name));
    let format = format
        .ok_or_else(|| Error::new("no format is for this viewer", "open another with `swipr convert`"))?;
    let name = convert::name_of(&arguments.input);
    let input = convert::open(&arguments.input)?;
    let title = Some(name.clone());
    let mut writer = (format.make)(&Options { title, lines: true, ..Options::default() });
    let (mut bytes, mut ended, mut samples) = (Vec::new(), false, 0_u64);
    let mut take = |event| {
        match event {
            Event::Header(header) => writer.begin(&header, &mut bytes),
            Event::Sample(sample) => {
                samples += u64::from(sample.ticks);
                writer.sample(&sample.as_sample(), &mut bytes);
            }
            Event::End(summary) => {
                ended = true;
                writer.finish(&summary, &mut bytes);
            }
        }
        Ok(())
    };
    read::recording(input, None, &name, &Arc::new(Shape::default()), &mut take).map_err(|why| {
        let what = format!("cannot read {}: {why}", arguments.input.display());
        Error::new(what, "recordings can be read in raw, perf, folded and pprof")
    })?;
    if !ended {
        writer.finish(&Summary { samples, ..Summary::default() }, &mut bytes);
    }
    serve(&arguments, &bytes, format.suffix)
}

fn serve(arguments: &View, profile: &[u8], suffix: &str) -> Result<ExitCode, Error> {
    let cannot = |error: io::Error| {
        let what = format!("cannot serve on 127.0.0.1:{}: {error}", arguments.port);
        Error::new(what, "choose another --port, or 0 for any that is free")
    };
    let listener = serve::listen(arguments.port).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let path = format!("/{}/profile.{suffix}", token().map_err(cannot)?);
    let url = format!("{VIEWER}/from-url/{}", crate::args::percent(&format!("http://{address}{path}")));
    crate::print(format!("{url}\nnext: open this page; Ctrl-C ends\n").as_bytes())?;
    if !arguments.no_open {
        open(&url);
    }
    loop {
        let Ok((stream, _)) = listener.accept() else { continue };
        // One after the other: there is one viewer.
        if let Ok(request) = Request::read(stream) {
            let _ = hand_out(&request, &path, profile);
        }
    }
}

/// The profile, to who knows its path; other pages may not read it.
fn hand_out(request: &Request, path: &str, profile: &[u8]) -> io::Result<()> {
    let allow = [
        ("Access-Control-Allow-Origin", VIEWER),
        ("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
        // Asked for by browsers before a public page may load from this machine.
        ("Access-Control-Allow-Private-Network", "true"),
        ("Content-Type", "application/octet-stream"),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    let is_right = request.is_for_loopback() && request.target == path;
    match request.method.as_str() {
        _ if !is_right => answer(request.stream(), "404 Not Found", &[], b""),
        "OPTIONS" => answer(request.stream(), "204 No Content", &allow, b""),
        "GET" => answer(request.stream(), "200 OK", &allow, profile),
        _ => answer(request.stream(), "405 Method Not Allowed", &[("Allow", "GET, OPTIONS")], b""),
    }
}

/// 128 random bits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// By the browser that the desktop prefers. Where there is none the address was printed.
fn open(url: &str) {
    let quiet = |program: &str| {
        Command::new(program)
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    };
    let has_desktop = std::env::var_os("DISPLAY").is_some() || std::env::var_os("WAYLAND_DISPLAY").is_some();
    if has_desktop || cfg!(target_os = "macos") {
        let _ = ["xdg-open", "open"].iter().find(|program| quiet(program).is_ok());
    }
}
