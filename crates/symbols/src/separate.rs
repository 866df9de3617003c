//! Opens the file of a loaded object, and finds the separate debug file of a stripped object: by
//! build id, or by the name and CRC in its `.gnu_debuglink` (gdb's manual, "Debugging Information
//! in Separate Files"); and the file that `dwz` has put what several files have in common into, by
//! its build id in `.gnu_debugaltlink`. Nothing is downloaded.

use crate::elf::ElfFile;
use crate::error::Error;
use crate::identity::FileIdentity;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Where distributions install debug files.
pub const DEBUG_ROOT: &str = "/usr/lib/debug";
/// As many links as the kernel follows.
const MAX_LINKS: u32 = 40;
const MAX_LINK_BYTES: u64 = 4096;

/// Opens the file of a loaded object: the first of `places` where it still is. That it is the
/// object's file shows in its build id (not empty), else in its identity; without either any will
/// do. A relative path is none: the program may have changed its directory.
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

/// Where a file is whatever links lead there. Not by realpath(3), which takes memory of the host's
/// heap. Nor by the thread's descriptors in `/proc`: of a thread with entries there, the kernel
/// forgets them when it ends, and if it is the last of its process, the parent's waitpid(2) spins
/// meanwhile.
pub(crate) fn real_path(path: &Path) -> Option<PathBuf> {
    let parts_of = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
    };
    let (mut left, mut links, mut real) = (parts_of(path), 0, PathBuf::new());
    while let Some(part) = left.pop() {
        match part.as_bytes() {
            b"." => {}
            b".." => _ = real.pop(),
            _ => real.push(part),
        }
        if let Ok(target) = std::fs::read_link(&real) {
            links += 1;
            if links > MAX_LINKS {
                return None;
            }
            real.pop();
            left.extend(parts_of(&target));
        }
    }
    std::fs::metadata(&real).is_ok().then_some(real)
}

/// Finds the files that belong to an object besides its own.
pub struct Finder<'a> {
    /// Where debug files are installed, the best first.
    pub roots: &'a [PathBuf],
    /// Bytes of a file above which it is refused.
    pub max_bytes: u64,
    /// Hears of files that were found and do not belong to the object.
    pub on_refusal: &'a mut dyn FnMut(Error),
}

impl Finder<'_> {
    /// Opens the separate debug file of the object at `path`, if there is one that belongs to it.
    pub fn debug_file(&mut self, object: &ElfFile, path: &Path) -> Option<ElfFile> {
        let build_id = object.build_id().unwrap_or_default();
        let mut by_id = self.roots.iter().filter_map(|root| build_id_path(root, build_id));
        if let Some(file) =
            by_id.find_map(|place| self.keep(open_with_build_id(&place, build_id, self.max_bytes)))
        {
            return Some(file);
        }
        let of_its_name = path.file_name().filter(|_| !build_id.is_empty()).map(with_suffix);
        let mut by_name = self.roots.iter().filter_map(|root| Some(root.join(of_its_name.as_ref()?)));
        if let Some(file) =
            by_name.find_map(|place| self.keep(open_with_build_id(&place, build_id, self.max_bytes)))
        {
            return Some(file);
        }
        let (name, crc) = debug_link(object)?;
        // Directories of debug files are named by where files are, and not by links that lead
        // there.
        let mut directories = vec![path.parent()?.to_owned()];
        directories.extend(real_path(path).and_then(|path| path.parent().map(Path::to_owned)));
        directories.dedup();
        let below_root = self.roots.iter().flat_map(|root| {
            directories.iter().filter_map(|it| Some(root.join(it.strip_prefix("/").ok()?).join(&name)))
        });
        let beside = directories.iter().flat_map(|it| [it.join(&name), it.join(".debug").join(&name)]);
        let flat = self.roots.iter().map(|root| root.join(&name));
        let places: Vec<_> = beside.chain(below_root).chain(flat).collect();
        places.iter().filter(|place| *place != path).find_map(|place| {
            self.keep(open_with_build_id(place, build_id, self.max_bytes).and_then(|file| {
                if file.crc()? == crc {
                    Ok(file)
                } else {
                    Err(Error::Malformed("debug file: its CRC differs"))
                }
            }))
        })
    }

    /// Opens the file that a file of debug information shares with others, if it names one.
    pub fn alternate(&mut self, debug: &ElfFile) -> Option<ElfFile> {
        let link = debug.bytes(debug.section(".gnu_debugaltlink")?, MAX_LINK_BYTES).ok()?;
        let length = link.iter().position(|&byte| byte == 0)?;
        let name = Path::new(OsStr::from_bytes(link.get(..length)?));
        let build_id = link.get(length + 1..)?;
        // A relative name is one of a file beside the debug file, whatever links led to that.
        let beside = debug.path().and_then(|path| Some(real_path(path)?.parent()?.join(name)));
        let named = beside.filter(|_| !build_id.is_empty());
        let by_id = self.roots.iter().filter_map(|root| build_id_path(root, build_id));
        let places = named.into_iter().chain(by_id);
        let mut places = places.collect::<Vec<_>>().into_iter();
        places.find_map(|place| self.keep(open_with_build_id(&place, build_id, self.max_bytes)))
    }

    fn keep(&mut self, opened: Result<ElfFile, Error>) -> Option<ElfFile> {
        match opened {
            Ok(file) => Some(file),
            Err(Error::Io { .. }) => None,
            Err(error) => {
                (self.on_refusal)(error);
                None
            }
        }
    }
}

/// `NAME.debug`.
pub fn with_suffix(name: &OsStr) -> OsString {
    [name, OsStr::new(".debug")].into_iter().collect()
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
    let name = Path::new(OsStr::from_bytes(link.get(..length)?));
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
    fn links_are_followed_as_the_c_library_does() {
        let directory = std::env::temp_dir().join(format!("swipr-links-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("a/b")).unwrap();
        std::fs::write(directory.join("a/b/file"), "").unwrap();
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, directory.join(name)).unwrap();
        };
        link("a/b", "folder");
        link("../folder/file", "a/indirect");
        link(&directory.join("a/indirect").to_string_lossy(), "absolute");
        link("loop", "loop");
        link("nowhere", "dangling");
        for name in ["a/b/file", "folder/file", "a/./b/../indirect", "absolute", "folder/../b/file"] {
            let path = directory.join(name);
            assert_eq!(real_path(&path), Some(std::fs::canonicalize(&path).unwrap()), "{name}");
        }
        for name in ["loop", "dangling", "none"] {
            assert_eq!(real_path(&directory.join(name)), None, "{name}");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn the_build_id_directory_is_searched_and_its_files_are_checked() {
        let directory = std::env::temp_dir().join(format!("swipr-separate-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (one, other) = (compile(&directory, "one", 1), compile(&directory, "other", 2));
        let object = ElfFile::open(&one, LIMIT).unwrap();
        let roots = [directory.join("root")];
        let place = build_id_path(&roots[0], object.build_id().unwrap()).unwrap();
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        let mut refused = Vec::new();
        let mut find = || {
            let on_refusal = &mut |error| refused.push(error);
            let mut finder = Finder { roots: &roots, max_bytes: LIMIT, on_refusal };
            let found = finder.debug_file(&object, &one).is_some();
            (found, std::mem::take(&mut refused).len())
        };
        assert_eq!(find(), (false, 0));
        std::fs::copy(&one, &place).unwrap();
        assert_eq!(find(), (true, 0));
        std::fs::copy(&other, &place).unwrap();
        assert_eq!(find(), (false, 1));
        // As distributions and `objcopy --only-keep-debug` name them.
        std::fs::copy(&one, roots[0].join("one.debug")).unwrap();
        assert_eq!(find(), (true, 1));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
