//! What output is written to: standard output, a pipe or a device, or a file that is there whole or
//! not at all.

use super::OutputTarget;
use crate::error::{Error, Exit};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// A file system takes names of 255 bytes; that of an unfinished file has a number and more.
const MAX_NAME_BYTES: usize = 200;

/// See the module's text.
pub(super) enum Sink {
    Stdout,
    /// Written in place: a pipe, a device.
    Special(File, PathBuf),
    /// Written beside its place and renamed when it is whole.
    Beside {
        file: File,
        beside: PathBuf,
        place: PathBuf,
        /// Something was written: of a format that is written as samples come.
        has_part: bool,
    },
}

impl Sink {
    pub(super) fn open(target: &OutputTarget) -> Result<Sink, Error> {
        match target {
            OutputTarget::Stdout => Ok(Sink::Stdout),
            OutputTarget::File(place) => destination(place).map_err(|error| cannot_write(place, &error)),
        }
    }

    pub(super) fn fd(&self) -> RawFd {
        match self {
            Sink::Stdout => libc::STDOUT_FILENO,
            Sink::Special(file, _) | Sink::Beside { file, .. } => file.as_raw_fd(),
        }
    }

    /// The file that was there before. It stays as it is until [`Sink::finish`].
    pub(super) fn earlier_file(&self) -> Option<&Path> {
        match self {
            Sink::Beside { place, .. } => Some(place.as_path()).filter(|place| place.exists()),
            Sink::Stdout | Sink::Special(..) => None,
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = match self {
            Sink::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Sink::Special(file, _) => file.write_all(bytes),
            Sink::Beside { file, has_part, .. } => file.write_all(bytes).inspect(|()| *has_part = true),
        };
        written.map_err(|error| self.kept(&error).unwrap_or_else(|| self.cannot_write(&error)))
    }

    /// Where the file system is full: keeps what was written, under another name.
    fn kept(&self, error: &io::Error) -> Option<Error> {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let is_full = matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge);
        let Sink::Beside { beside, place, has_part: true, .. } = self else { return None };
        // An earlier recording's stays.
        let part = ["part", "part.2", "part.3"].into_iter().find_map(|suffix| {
            let mut part = place.clone().into_os_string();
            part.push(format!(".{suffix}"));
            Some(PathBuf::from(part)).filter(|part| is_full && !part.exists())
        })?;
        fs::rename(beside, &part).is_ok().then(|| {
            let next = format!("what was recorded before is in {}", part.display());
            Error { next, ..self.cannot_write(error) }
        })
    }

    /// The file is there from now on.
    pub(super) fn finish(self) -> Result<(), Error> {
        match &self {
            Sink::Beside { beside, place, .. } => {
                fs::rename(beside, place).map_err(|error| self.cannot_write(&error))
            }
            Sink::Stdout | Sink::Special(..) => Ok(()),
        }
    }

    /// Why it cannot be written.
    pub(super) fn cannot_write(&self, error: &io::Error) -> Error {
        match self {
            Sink::Stdout => cannot_write(Path::new("standard output"), error),
            Sink::Special(_, place) | Sink::Beside { place, .. } => cannot_write(place, error),
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Sink::Beside { beside, .. } = self {
            // Gone already where the output is whole.
            let _ = fs::remove_file(beside);
        }
    }
}

fn destination(place: &Path) -> io::Result<Sink> {
    let is_special = fs::metadata(place).is_ok_and(|found| !found.is_file());
    if is_special {
        return Ok(Sink::Special(File::options().write(true).open(place)?, place.to_owned()));
    }
    // A link's target is what is written.
    let place = fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
    let beside = place.with_file_name(format!(".{}.{}.part", shortened(&name), std::process::id()));
    // Anybody may have put a link there, in a folder like /tmp.
    let _ = fs::remove_file(&beside);
    let earlier = fs::metadata(&place).ok();
    let mode = if earlier.is_some() { 0o600 } else { 0o666 };
    let file = File::options().write(true).create_new(true).mode(mode).open(&beside)?;
    if let Some(earlier) = earlier {
        keep_access(&file, &earlier);
    }
    Ok(Sink::Beside { file, beside, place, has_part: false })
}

/// As many characters as an unfinished file's name has room for.
fn shortened(name: &str) -> &str {
    let ends = name.char_indices().map(|(at, character)| at + character.len_utf8());
    name.get(..ends.take_while(|&end| end <= MAX_NAME_BYTES).last().unwrap_or(0)).unwrap_or(name)
}

/// Gives the file the owner and the mode of the one that it replaces, as far as this user may.
/// Another group may do what all may.
fn keep_access(file: &File, earlier: &fs::Metadata) {
    let is_given = fchown(file, Some(earlier.uid()), Some(earlier.gid())).is_ok();
    let keeps_group = is_given || fchown(file, None, Some(earlier.gid())).is_ok();
    let mode = earlier.mode() & 0o777;
    let mode = if keeps_group { mode } else { mode & (0o707 | (mode & 0o007) << 3) };
    // Where that fails, it is this user's alone.
    let _ = file.set_permissions(fs::Permissions::from_mode(mode));
}

fn cannot_write(place: &Path, error: &io::Error) -> Error {
    let what = format!("cannot write {}: {error}", place.display());
    let has_no_reader = error.kind() == io::ErrorKind::BrokenPipe;
    let exit = if has_no_reader { Exit::NoReader } else { Exit::Failed };
    Error::new(what, "choose another place with -o FILE").exit(exit)
}
