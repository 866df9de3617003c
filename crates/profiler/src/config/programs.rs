//! Which programs are profiled where a whole tree of processes has the library preloaded:
//! `SWIPR_ONLY`, `SWIPR_SKIP`, `SWIPR_FOLLOW`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Chromium's zygote (Electron's and others', too) checks whether it has only one thread, and gives
/// up if it has more. So does the program that it becomes, and no page is ever shown.
const ZYGOTE: &[u8] = b"--type=zygote";

/// Which children of a profiled process have an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// Copies made by fork(2), and programs that are executed.
    #[default]
    All,
    /// Programs that are executed.
    Exec,
    /// None: the library is not preloaded into them.
    None,
}

impl Follow {
    /// Their names, in the order of the variants.
    pub const NAMES: [&'static str; 3] = ["all", "exec", "none"];

    /// By its place in [`Follow::NAMES`].
    pub fn named(index: usize) -> Follow {
        match index {
            1 => Follow::Exec,
            2 => Follow::None,
            _ => Follow::All,
        }
    }
}

/// Executables by shell patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// Only these; empty: all.
    pub only: Vec<String>,
    /// Not these.
    pub skip: Vec<String>,
}

impl Programs {
    /// Whether a program started with these arguments is to be profiled.
    pub fn include<T: AsRef<OsStr>>(&self, executable: &Path, arguments: impl Iterator<Item = T>) -> bool {
        let is_one_of =
            |patterns: &[String]| patterns.iter().any(|pattern| matches_program(pattern, executable));
        (self.only.is_empty() || is_one_of(&self.only))
            && !is_one_of(&self.skip)
            && !arguments.into_iter().any(|argument| argument.as_ref().as_bytes() == ZYGOTE)
    }
}

/// A pattern with a slash speaks of the whole path, another one of the file's name.
fn matches_program(pattern: &str, executable: &Path) -> bool {
    let text = if pattern.contains('/') {
        executable.as_os_str()
    } else {
        executable.file_name().unwrap_or_default()
    };
    matches(pattern.as_bytes(), text.as_bytes())
}

/// `*` matches any bytes, `?` matches one.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    // Where the last asterisk was, and up to where in the text it matches so far.
    let mut asterisk: Option<(usize, usize)> = None;
    while of < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                asterisk = Some((at, of));
                at += 1;
            }
            Some(&byte) if byte == b'?' || Some(&byte) == text.get(of) => {
                at += 1;
                of += 1;
            }
            _ => match asterisk {
                Some((star, upto)) => {
                    asterisk = Some((star, upto + 1));
                    (at, of) = (star + 1, upto + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|&byte| byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_a_shell() {
        for (pattern, text) in
            [("*", ""), ("a*c", "abbc"), ("a*c", "acc"), ("?b*", "abc"), ("py*3.?", "python3.9")]
        {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", ""), ("a*c", "ab"), ("?", ""), ("a?", "a"), ("a*b*c", "acb")]
        {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn what_is_skipped_is_skipped_also_when_it_is_among_the_only_ones() {
        let programs = |only: &[&str], skip: &[&str]| {
            let owned = |list: &[&str]| list.iter().map(|text| text.to_string()).collect();
            Programs { only: owned(only), skip: owned(skip) }
        };
        let included = |programs: Programs, path: &str| programs.include(Path::new(path), ["x"].iter());
        assert!(included(programs(&[], &[]), "/bin/sh"));
        assert!(included(programs(&["sh", "my*"], &[]), "/opt/myapp"));
        assert!(!included(programs(&["sh", "my*"], &[]), "/my/other"));
        assert!(included(programs(&["/opt/*"], &[]), "/opt/a/b"));
        assert!(!included(programs(&[], &["/opt/*"]), "/opt/a/b"));
        assert!(!included(programs(&["sh"], &["s*"]), "/bin/sh"));
    }

    #[test]
    fn a_zygote_is_left_alone() {
        let programs = Programs::default();
        let chrome = Path::new("/opt/chrome");
        assert!(!programs.include(chrome, ["/opt/chrome", "--type=zygote", "--no-sandbox"].iter()));
        assert!(programs.include(chrome, ["/opt/chrome", "--type=renderer"].iter()));
    }
}
