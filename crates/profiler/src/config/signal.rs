//! Signal names. Not here: which signal is free (the sampler checks that).

/// The number of a signal that may be used for sampling, given as `27`, `SIGPROF`,
/// `prof` or `SIGRTMIN+2`.
pub(super) fn parse(text: &str) -> Result<i32, String> {
    let upper = text.trim().to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let number = match name.parse::<i32>() {
        Ok(number) => number,
        Err(_) => named(name).ok_or("no signal has that name")?,
    };
    let last = libc::SIGRTMAX();
    if !(1..=last).contains(&number) {
        return Err(format!("signals are numbered 1 to {last}"));
    }
    if [libc::SIGKILL, libc::SIGSTOP].contains(&number) {
        return Err("that signal cannot be caught".to_owned());
    }
    let reserved = libc::SIGSYS + 1..libc::SIGRTMIN();
    if UNUSABLE.contains(&number) || reserved.contains(&number) {
        return Err("that signal has another job that sampling would disturb".to_owned());
    }
    Ok(number)
}

/// The one that has an effect even when it is caught, and those that report a fault of the
/// instruction that was just executed (signal(7)).
const UNUSABLE: [i32; 8] = [
    libc::SIGCONT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
];

fn named(name: &str) -> Option<i32> {
    let known = [
        ("URG", libc::SIGURG),
        ("PROF", libc::SIGPROF),
        ("VTALRM", libc::SIGVTALRM),
        ("ALRM", libc::SIGALRM),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("WINCH", libc::SIGWINCH),
        ("IO", libc::SIGIO),
        ("XCPU", libc::SIGXCPU),
        ("XFSZ", libc::SIGXFSZ),
        ("CHLD", libc::SIGCHLD),
        ("PWR", libc::SIGPWR),
        // To be refused with the reason.
        ("KILL", libc::SIGKILL),
        ("STOP", libc::SIGSTOP),
        ("CONT", libc::SIGCONT),
        ("ILL", libc::SIGILL),
        ("TRAP", libc::SIGTRAP),
        ("ABRT", libc::SIGABRT),
        ("BUS", libc::SIGBUS),
        ("FPE", libc::SIGFPE),
        ("SEGV", libc::SIGSEGV),
        ("SYS", libc::SIGSYS),
        ("RTMIN", libc::SIGRTMIN()),
        ("RTMAX", libc::SIGRTMAX()),
    ];
    if let Some((_, number)) = known.iter().find(|(known, _)| *known == name) {
        return Some(*number);
    }
    if let Some(offset) = name.strip_prefix("RTMIN+") {
        return libc::SIGRTMIN().checked_add(offset.parse::<u8>().ok()?.into());
    }
    let offset = name.strip_prefix("RTMAX-")?;
    let number = libc::SIGRTMAX() - i32::from(offset.parse::<u8>().ok()?);
    (number >= libc::SIGRTMIN()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_go_by_number_and_by_name() {
        assert_eq!(parse("27"), Ok(27));
        for name in ["SIGPROF", "prof", " sigprof "] {
            assert_eq!(parse(name), Ok(libc::SIGPROF), "{name}");
        }
        assert_eq!(parse("SIGRTMIN+2"), Ok(libc::SIGRTMIN() + 2));
        assert_eq!(parse("RTMAX-1"), Ok(libc::SIGRTMAX() - 1));
    }

    #[test]
    fn a_signal_that_exists_is_not_refused_as_unknown() {
        for name in ["SIGKILL", "9", "stop"] {
            assert_eq!(parse(name), Err("that signal cannot be caught".to_owned()), "{name}");
        }
        for name in ["SIGSEGV", "11", "SIGCONT", "sys"] {
            assert!(parse(name).is_err_and(|why| why.contains("another job")), "{name}");
        }
        assert_eq!(parse("SIGFOO"), Err("no signal has that name".to_owned()));
    }

    #[test]
    fn signals_that_cannot_be_used_are_refused() {
        for text in [
            "0",
            "-1",
            "65",
            "99999999999",
            "SIGKILL",
            "9",
            "SEGV",
            "11",
            "33",
            "SIGFOO",
            "",
            "RTMIN+99",
            "RTMAX-99",
            "RTMIN+-1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
