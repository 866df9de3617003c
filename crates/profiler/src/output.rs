//! A recording's output into a file, and waiting for its end.

use nix::fcntl::{AT_FDCWD, AtFlags, FcntlArg, OFlag, fcntl};
use nix::unistd::{AccessFlags, faccessat};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use swipr_formats::model::Summary;
use swipr_os::locks::after_waiting;
use swipr_os::{disabled, process};
use swipr_server::recording::{Closed, Output};

/// How often a waiting thread checks whether the agent is disabled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The root directory of the host's first thread (proc(5)).
const HOSTS_ROOT: &str = "/proc/self/root";
/// Nobody but the owner may write a recording's file, whatever the umask.
const MODE: u32 = 0o644;

/// How a recording ended, for a thread that waits for it.
#[derive(Debug, Default)]
pub struct Completion {
    end: Mutex<Option<Result<Summary, String>>>,
    ended: Condvar,
}

impl Completion {
    /// Sets how the recording ended. Only the first call counts.
    pub fn set(&self, end: Result<Summary, String>) {
        let mut place = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        place.get_or_insert(end);
        self.ended.notify_all();
    }

    /// Whether it has ended. Does not wait for the lock.
    pub fn is_set(&self) -> bool {
        self.end.try_lock().is_ok_and(|end| end.is_some())
    }

    /// Waits for the end, at most so long.
    pub fn wait(&self, most: Duration) -> Option<Result<Summary, String>> {
        let deadline = Instant::now() + most;
        // Held for moments only, and nothing is allocated meanwhile: no thread of the agent is
        // ended while it holds this lock.
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        while end.is_none() {
            if disabled::is_past_grace() {
                return disabled::message().map(Err);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            end = after_waiting(self.ended.wait_timeout(end, left.min(POLL_INTERVAL))).0;
        }
        end.clone()
    }
}

/// Checks whether a file can be written, without making or opening it: an error must be found
/// before something is recorded, and the host may expect to get the next descriptor number.
pub fn check(path: &Path) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let may =
        |path: &Path, how| faccessat(AT_FDCWD, path, how, AtFlags::AT_EACCESS).map_err(std::io::Error::from);
    if std::fs::metadata(path).is_ok_and(|found| found.is_dir()) {
        return Err(cannot(std::io::Error::from_raw_os_error(libc::EISDIR)));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match may(path, AccessFlags::W_OK) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            may(directory.unwrap_or(Path::new(".")), AccessFlags::W_OK | AccessFlags::X_OK).map_err(cannot)
        }
        found => found.map_err(cannot),
    }
}

/// Which directory this is.
fn identity(directory: &Path) -> Option<(u64, u64)> {
    // The parent of a relative path is the empty one.
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    std::fs::metadata(directory).ok().map(|found| (found.dev(), found.ino()))
}

/// The umask of the host's first thread (proc(5), since Linux 4.7): that of the agent's threads is
/// the one of their start. If it is not known, as when that thread has ended, others get nothing.
fn umask_of_host() -> u32 {
    let status = process::read_text("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    umask.and_then(|umask| u32::from_str_radix(umask.trim(), 8).ok()).unwrap_or(0o077)
}

/// Writes into a file, which is created or truncated at the first write.
#[derive(Debug)]
pub struct FileOutput {
    path: PathBuf,
    /// Which directory that is in, for the thread that asked.
    directory: Option<(u64, u64)>,
    /// Its name once it is complete, where that is another.
    complete: Option<PathBuf>,
    file: Option<File>,
    error: Option<String>,
    completion: Arc<Completion>,
}

impl FileOutput {
    /// Nothing is opened yet: the file is opened by the thread that writes.
    pub fn new(path: PathBuf, completion: Arc<Completion>) -> FileOutput {
        let directory = path.parent().and_then(identity);
        FileOutput { path, directory, complete: None, file: None, error: None, completion }
    }

    /// Opens the file. The host's root directory may be another one than that of the agent's
    /// threads (chroot(2)): then it is opened below that, and is no link, which would lead outside.
    fn open(&self) -> std::io::Result<File> {
        let is_same = |path: &Path| path.parent().and_then(identity) == self.directory;
        let hosts = Path::new(HOSTS_ROOT).join(self.path.strip_prefix("/").unwrap_or(&self.path));
        let (path, flags) = match is_same(&self.path) {
            true => (&self.path, 0),
            false if is_same(&hosts) => (&hosts, libc::O_NOFOLLOW),
            false => return Err(std::io::ErrorKind::NotFound.into()),
        };
        let mut options = File::options();
        // A FIFO without a reader is an error, and not waited for.
        options.write(true).mode(MODE & !umask_of_host()).custom_flags(flags | libc::O_NONBLOCK);
        if self.complete.is_some() {
            // Anybody may have put a link there, in a folder like /tmp.
            let _ = std::fs::remove_file(path);
            options.create_new(true);
        } else {
            options.create(true).truncate(true);
        }
        let file = options.open(path)?;
        fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
        Ok(file)
    }

    /// The same, but until the file is complete its name ends in `.part`.
    pub fn renamed_when_complete(path: PathBuf, completion: Arc<Completion>) -> FileOutput {
        let mut part = path.clone().into_os_string();
        part.push(".part");
        let mut output = FileOutput::new(part.into(), completion);
        output.complete = Some(path);
        output
    }

    fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = self.open()?;
                self.file.insert(file)
            }
        };
        file.write_all(bytes)
    }
}

impl Output for FileOutput {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.try_write(bytes).map_err(|error| {
            self.error = Some(format!("cannot write {}: {error}", self.path.display()));
            Closed
        })
    }

    fn is_closed(&self) -> bool {
        self.error.is_some()
    }

    fn takes_empty(&self) -> bool {
        true
    }

    fn finish(mut self: Box<Self>, end: Result<Summary, String>) {
        self.file = None; // closed before the end is reported
        if let (Ok(_), None, Some(complete)) = (&end, &self.error, &self.complete)
            && let Err(error) = std::fs::rename(&self.path, complete)
        {
            self.error = Some(format!("cannot make {}: {error}", complete.display()));
        }
        let end = match self.error.take() {
            Some(error) => Err(error),
            None => end,
        };
        self.completion.set(end);
    }
}

impl Drop for FileOutput {
    fn drop(&mut self) {
        self.completion.set(Err("the recording could not be started".into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program in a root directory of its own asked for the file: by the same path another one
    /// would have been written outside of it.
    #[test]
    fn nothing_is_written_where_the_path_leads_to_another_directory() {
        let path = std::env::temp_dir().join(format!("swipr-other-root-{}.folded", std::process::id()));
        let mut output = FileOutput::new(path.clone(), Arc::default());
        output.directory = Some((0, 0));
        assert!(output.write(b"x").is_err() && !path.exists());
        let mut output = FileOutput::new(path.clone(), Arc::default());
        assert!(output.write(b"x").is_ok() && path.exists());
        std::fs::remove_file(path).unwrap();
    }

    /// Regression: the writer waited for a reader for ever.
    #[test]
    fn a_fifo_that_nobody_reads_is_an_error() {
        let path = std::env::temp_dir().join(format!("swipr-fifo-{}", std::process::id()));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut output = FileOutput::new(path.clone(), Arc::default());
        assert_eq!(output.write(b"x"), Err(Closed));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named_in_the_error() {
        let completion = Arc::<Completion>::default();
        let mut output = Box::new(FileOutput::new("/nonexistent/x.folded".into(), completion.clone()));
        assert_eq!(output.write(b"x"), Err(Closed));
        assert!(output.is_closed());
        output.finish(Ok(Summary::default()));
        let error = completion.wait(Duration::ZERO).unwrap().unwrap_err();
        assert!(error.starts_with("cannot write /nonexistent/x.folded: "), "{error}");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_without_making_one() {
        let folder = std::env::temp_dir().join(format!("swipr-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("x.folded");
        assert_eq!(check(&file), Ok(()));
        assert!(!file.exists());
        std::fs::write(&file, "").unwrap();
        assert_eq!(check(&file), Ok(()));
        for (path, why) in [
            (folder.join("nosuch/x.folded"), "No such file"),
            (folder.clone(), "Is a directory"),
            (file.join("x"), "Not a directory"),
            (PathBuf::from("/proc/self/x.folded"), ""),
        ] {
            let error = check(&path).unwrap_err();
            let begin = format!("cannot write {}: ", path.display());
            assert!(error.starts_with(&begin) && error.contains(why), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn whoever_waits_hears_of_a_recording_that_never_began() {
        let completion = Arc::<Completion>::default();
        drop(FileOutput::new("x".into(), completion.clone()));
        assert!(completion.wait(Duration::ZERO).unwrap().is_err());
    }
}
