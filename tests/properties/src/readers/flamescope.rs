//! What flamescope makes of perf script text, by its rules, rewritten here.

/// A sample as flamescope draws it.
#[derive(Debug)]
pub struct Drawn {
    /// Seconds.
    pub seconds: f64,
    /// The thread's name up to its first digit, and `<unknown>` where it begins with one.
    pub comm: String,
    /// Frames from the root on, each of them with those that are inlined into it.
    pub stack: Vec<String>,
}

/// Every sample that is drawn.
pub fn draw(perf: &str) -> Vec<Drawn> {
    let mut all: Vec<Drawn> = Vec::new();
    for line in perf.split('\n').filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let time = if line.starts_with('\t') { None } else { time_of(line) };
        if let Some(seconds) = time {
            let name: String =
                line.trim_start_matches(' ').chars().take_while(|c| !c.is_ascii_digit()).collect();
            let comm = if name.is_empty() { "<unknown>".to_owned() } else { name.trim_end().to_owned() };
            all.push(Drawn { seconds, comm, stack: vec![] });
        } else if let (Some(name), Some(sample)) = (frame(line), all.last_mut()) {
            // What looks like an offset ends the name.
            let end = name.find('+').filter(|&at| at > 0).unwrap_or(name.len());
            sample.stack.splice(0..0, name[..end].split("->").map(str::to_owned));
        }
    }
    // Idle processors are left out: a process's name and a function's.
    let idle = ["cpuidle", "cpu_idle", "cpu_bringup_and_idle", "native_safe_halt", "xen_hypercall"];
    let is_idle = |drawn: &Drawn| {
        drawn.comm.contains("swapper")
            && drawn.stack.iter().any(|name| idle.iter().any(|part| name.contains(part)))
    };
    all.retain(|drawn| !is_idle(drawn));
    all
}

/// The first number between a blank and `: `, which something that ends in a colon follows.
fn time_of(line: &str) -> Option<f64> {
    line.match_indices(": ").find_map(|(at, _)| {
        let (_, number) = line[..at].rsplit_once(' ')?;
        let is_time = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        (is_time && line.get(at + 3..).is_some_and(|rest| rest.contains(':')))
            .then(|| number.parse().ok())
            .flatten()
    })
}

/// `address name (module)`: hexadecimal digits, a blank, and the shortest module that ends the
/// line.
fn frame(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['\t', ' ']).strip_suffix(')')?;
    let (address, rest) = line.split_once(' ')?;
    let is_address = !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (name, _) = rest.rsplit_once(" (")?;
    (is_address && !name.is_empty()).then_some(name)
}
