//! Opens the file of a loaded object, and finds the separate debug file of a stripped object: by build id, or by the name
//! and CRC in its `.gnu_debuglink` (gdb's manual, "Debugging Information in
//! Separate Files"). Nothing is downloaded.

use crate::elf::ElfFile;
use crate::error::Error;
use crate::identity::FileIdentity;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Where distributions install debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";
const MAX_LINK_BYTES: u64 = 4096;

/// Opens the file of a loaded object: the first of `places` where it still is. That it is the
/// object's file shows in its build id (not empty), else in its identity; without either any will do.
/// A relative path is none: the program may have changed its directory.
pub fn open_loaded<'a>(
    places: impl IntoIterator<Item = &'a Path>,
    build_id: &[u8],
    identity: Option<&FileIdentity>,
    max_bytes: u64,
) -> Result<ElfFile, Error> {
    let mut refusal = None;
    for place in places.into_iter().filter(|place| place.is_absolute()) {
        let opened = open_with_build_id(place, build_id, max_bytes);
        let opened = opened.and_then(|file| match identity.filter(|_| build_id.is_empty()) {
            Some(identity) if !file.is_of(identity) => Err(Error::FileDiffers(place.to_owned())),
            _ => Ok(file),
        });
        match opened {
            Ok(file) => return Ok(file),
            // What is wrong with a file that is there says more than that there is none.
            Err(Error::Io { .. }) if refusal.is_some() => {}
            Err(error) => refusal = Some(error),
        }
    }
    Err(refusal.unwrap_or(Error::Malformed("object without a file")))
}

/// Opens a file that must have the build id of the loaded object (an empty one:
/// unknown, any file will do).
pub fn open_with_build_id(path: &Path, build_id: &[u8], max_bytes: u64) -> Result<ElfFile, Error> {
    let file = ElfFile::open(path, max_bytes)?;
    if build_id.is_empty() || file.build_id() == Some(build_id) {
        Ok(file)
    } else {
        Err(Error::BuildIdDiffers(path.to_owned()))
    }
}

/// Opens the separate debug file of the object at `path`, if there is one that
/// belongs to it. `on_refusal` hears of files that were found and do not.
pub fn find(
    object: &ElfFile,
    path: &Path,
    max_bytes: u64,
    on_refusal: &mut dyn FnMut(Error),
) -> Option<ElfFile> {
    find_below(Path::new(DEBUG_ROOT), object, path, max_bytes, on_refusal)
}

fn find_below(
    root: &Path,
    object: &ElfFile,
    path: &Path,
    max_bytes: u64,
    on_refusal: &mut dyn FnMut(Error),
) -> Option<ElfFile> {
    let build_id = object.build_id().unwrap_or_default();
    let mut keep = |opened| match opened {
        Ok(file) => Some(file),
        Err(Error::Io { .. }) => None,
        Err(error) => {
            on_refusal(error);
            None
        }
    };
    if let Some(by_id) = build_id_path(root, build_id)
        && let Some(file) = keep(open_with_build_id(&by_id, build_id, max_bytes))
    {
        return Some(file);
    }
    let (name, crc) = debug_link(object)?;
    let directory = path.parent()?;
    let mut places = vec![directory.join(&name), directory.join(".debug").join(&name)];
    if let Ok(below) = directory.strip_prefix("/") {
        places.push(root.join(below).join(&name));
    }
    places.into_iter().filter(|place| place != path).find_map(|place| {
        keep(open_with_build_id(&place, build_id, max_bytes).and_then(|file| {
            if file.crc()? == crc { Ok(file) } else { Err(Error::Malformed("debug file: its CRC differs")) }
        }))
    })
}

/// `ROOT/.build-id/xx/yyyy.debug`.
fn build_id_path(root: &Path, build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let mut name = String::new();
    for byte in rest {
        write!(name, "{byte:02x}").ok()?;
    }
    name.push_str(".debug");
    Some(root.join(".build-id").join(format!("{first:02x}")).join(name))
}

/// The file name and CRC that `.gnu_debuglink` holds. A name with a directory in
/// it is not one.
fn debug_link(object: &ElfFile) -> Option<(PathBuf, u32)> {
    let link = object.bytes(object.section(".gnu_debuglink")?, MAX_LINK_BYTES).ok()?;
    let length = link.iter().position(|&byte| byte == 0)?;
    let name = Path::new(std::ffi::OsStr::from_bytes(link.get(..length)?));
    let at = (length + 1).next_multiple_of(4);
    let crc = u32::from_le_bytes(link.get(at..at + 4)?.try_into().ok()?);
    let mut components = name.components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(_)), None) => Some((name.to_owned(), crc)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const LIMIT: u64 = 1 << 30;

    fn compile(into: &Path, name: &str, value: u32) -> PathBuf {
        let (source, program) = (into.join(format!("{name}.c")), into.join(name));
        std::fs::write(&source, format!("int main(void) {{ return {value}; }}\n")).unwrap();
        let status =
            Command::new("gcc").args(["-g", "-Wl,--build-id", "-o"]).arg(&program).arg(&source).status();
        assert!(status.unwrap().success());
        program
    }

    #[test]
    fn the_build_id_directory_is_searched_and_its_files_are_checked() {
        let directory = std::env::temp_dir().join(format!("swipr-separate-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (one, other) = (compile(&directory, "one", 1), compile(&directory, "other", 2));
        let object = ElfFile::open(&one, LIMIT).unwrap();
        let root = directory.join("root");
        let place = build_id_path(&root, object.build_id().unwrap()).unwrap();
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        let mut refused = Vec::new();
        let mut find = || {
            let found = find_below(&root, &object, &one, LIMIT, &mut |error| refused.push(error)).is_some();
            (found, std::mem::take(&mut refused).len())
        };
        assert_eq!(find(), (false, 0));
        std::fs::copy(&one, &place).unwrap();
        assert_eq!(find(), (true, 0));
        std::fs::copy(&other, &place).unwrap();
        assert_eq!(find(), (false, 1));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
