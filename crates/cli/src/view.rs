//! `swipr view`: a recording in profiler.firefox.com, which loads it, and later sources, from this
//! command. Not here: the serving (`view/served.rs`).

mod served;

use crate::args::View;
use crate::browser;
use crate::convert;
use crate::error::Error;
use crate::event::Event;
use crate::read::{self, Symbols};
use crate::serve;
use crate::shape::Shape;
use crate::threads;
use served::Served;
use std::collections::HashSet;
use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::Arc;
use swipr_formats::model::Module;
use swipr_formats::{FormatInfo, Options};
use swipr_offline::{Modules, SearchPath};
use swipr_symbols::symbolizer::Budget;

/// The page that shows recordings.
const VIEWER: &str = "https://profiler.firefox.com";

/// Runs the verb. Ends with the first signal that ends processes.
pub fn view(arguments: View) -> Result<ExitCode, Error> {
    // What cannot carry everything is better than nothing.
    let format = ["firefox", "perf"].iter().find_map(|name| swipr_formats::find(name));
    let format = format
        .ok_or_else(|| Error::new("no format is for this viewer", "open another with `swipr convert`"))?;
    let (profile, modules) = load(&arguments, format)?;
    serve(&arguments, profile, modules, format.suffix)
}

/// The recording as the viewer wants it, and the modules in it.
fn load(arguments: &View, format: &FormatInfo) -> Result<(Vec<u8>, HashSet<Arc<Module>>), Error> {
    let name = convert::name_of(&arguments.input);
    let input = convert::open(&arguments.input)?;
    let title = Some(name.clone());
    let mut writer = (format.make)(&Options { title, lines: true, ..Options::default() });
    let (mut bytes, mut modules) = (Vec::new(), HashSet::new());
    let mut take = |event| {
        match event {
            Event::Header(header) => writer.begin(&header, &mut bytes),
            Event::Sample(sample) => {
                modules.extend(sample.stack.frames.iter().filter_map(|frame| frame.module.clone()));
                writer.sample(&sample.as_sample(), &mut bytes);
            }
            Event::End(summary) => writer.finish(&summary, &mut bytes),
        }
        Ok(())
    };
    let mut symbols = Symbols { directories: arguments.symbols.clone(), ..Symbols::default() };
    read::recording(input, None, &name, &Arc::new(Shape::default()), &mut symbols, &mut take)
        .map_err(|error| convert::cannot_read(&arguments.input, error))?
        .hint();
    Ok((bytes, modules))
}

fn serve(
    arguments: &View,
    profile: Vec<u8>,
    modules: HashSet<Arc<Module>>,
    suffix: &str,
) -> Result<ExitCode, Error> {
    let cannot = |error: io::Error| {
        let what = format!("cannot serve on 127.0.0.1:{}: {error}", arguments.port);
        Error::new(what, "choose another --port, or 0 for any that is free")
    };
    let listener = serve::listen(arguments.port).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let token = token().map_err(cannot)?;
    let search = SearchPath::new(arguments.symbols.iter().cloned());
    let modules = Modules::new(&modules, search, Budget::default());
    let served = Arc::new(Served::new(profile, modules, &token, suffix));
    let base = format!("http://{address}/{token}");
    let (profile, server) = (format!("{base}/profile.{suffix}"), crate::args::percent(&base));
    let url = format!("{VIEWER}/from-url/{}?symbolServer={server}", crate::args::percent(&profile));
    let port = address.port();
    crate::print(
        format!(
            "{url}\nnext: open this page in a browser of this machine, or of one that did `ssh -L {port}:127.0.0.1:{port}` to here; Ctrl-C ends\n"
        )
        .as_bytes(),
    )?;
    if !arguments.no_open {
        browser::open(&url);
    }
    loop {
        let Ok((stream, _)) = listener.accept() else { continue };
        // Browsers open more connections than they use.
        let served = Arc::clone(&served);
        let _ = threads::start(move || served.answer(stream));
    }
}

/// 128 random bits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
