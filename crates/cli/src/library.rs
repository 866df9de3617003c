//! The agent's library, for programs that are started: the one that is named, the one that came
//! with this command, or the one that is inside it.
//!
//! Built with the feature `embed`, which takes the library from the path in `SWIPR_EMBED_LIBRARY`,
//! the command is one file: it unpacks the library into a folder of the user's own when none lies
//! beside it.

use crate::error::{Error, Exit};
use std::path::{Path, PathBuf};

/// Names a library instead of the one that would be found.
const VARIABLE: &str = "SWIPR_LIBRARY";
const FILE: &str = "libswipr.so";

/// The library's absolute path.
pub fn find(named: Option<&Path>) -> Result<PathBuf, Error> {
    let named = named
        .map(Path::to_owned)
        .or_else(|| std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(Into::into));
    let found = match named {
        Some(path) => path,
        None => match beside().or_else(unpacked) {
            Some(path) => path,
            None => {
                return Err(Error::new(
                    format!("there is no {FILE} beside this command, nor in ../lib"),
                    format!(
                        "build it (cargo build --release -p libswipr) or put it there, or name it with --lib PATH or {VARIABLE}"
                    ),
                )
                .exit(Exit::RunFailed));
            }
        },
    };
    let path = std::fs::canonicalize(&found).map_err(|error| {
        Error::new(
            format!("there is no library {}: {error}", found.display()),
            "name another with --lib PATH",
        )
        .exit(Exit::RunFailed)
    })?;
    // A preloaded library knows itself by this; the loader takes blanks and colons for the list's.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.starts_with("libswipr") || path.to_string_lossy().contains([' ', ':']) {
        return Err(Error::new(
            format!("{} cannot be preloaded under this name", path.display()),
            "its name must begin with libswipr, and its path have no blank and no colon",
        )
        .exit(Exit::RunFailed));
    }
    Ok(path)
}

fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let folder = own.parent()?;
    let folders = [folder.to_owned(), folder.join("../lib"), folder.join("../lib/swipr")];
    folders.into_iter().map(|folder| folder.join(FILE)).find(|file| file.is_file())
}

#[cfg(not(feature = "embed"))]
fn unpacked() -> Option<PathBuf> {
    None
}

#[cfg(feature = "embed")]
fn unpacked() -> Option<PathBuf> {
    static LIBRARY: &[u8] = include_bytes!(env!("SWIPR_EMBED_LIBRARY"));
    crate::temp_dir::folders().into_iter().find_map(|folder| unpack(&folder, LIBRARY).ok())
}

/// Writes the library under a name that is a hash of its content: another version is another file,
/// and a file that is there is used as it is. It is renamed into its place: programs that start
/// meanwhile see all of it or nothing.
#[cfg(any(feature = "embed", test))]
fn unpack(folder: &Path, library: &[u8]) -> std::io::Result<PathBuf> {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(library);
    let place = folder.join(format!("libswipr-{:016x}.so", hasher.finish()));
    if std::fs::read(&place).is_ok_and(|there| there == library) {
        return Ok(place);
    }
    let beside = folder.join(format!(".libswipr-{}.part", std::process::id()));
    std::fs::write(&beside, library)?;
    std::fs::rename(&beside, &place)?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_unpacked_once_and_again_where_it_was_changed() {
        let directory = swipr_c_tests::directory::Directory::new();
        let path = unpack(directory.path(), b"a library").expect("a file");
        assert_eq!(std::fs::read(&path).expect("the file"), b"a library");
        std::fs::write(&path, "something else").expect("changed");
        assert_eq!(unpack(directory.path(), b"a library").expect("a file"), path);
        assert_eq!(std::fs::read(&path).expect("the file"), b"a library");
        assert_ne!(unpack(directory.path(), b"another").expect("a file"), path);
    }
}
