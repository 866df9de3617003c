//! Whether the loader would put the agent's library into a program: read from the file, before it
//! is started. The loader itself prints nothing, or something hard to understand.

use object::elf;
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ReadCache};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Scripts whose interpreters are scripts: the kernel follows so many.
const DEEPEST: u32 = 5;
/// Longest first line of a script that is read.
const LONGEST_LINE: u64 = 4096;

/// Why a program cannot have the agent inside, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreloadProblem {
    /// What is in the way.
    pub what: String,
    /// What to do.
    pub next: &'static str,
}

fn obstacle(what: String, next: &'static str) -> Option<PreloadProblem> {
    Some(PreloadProblem { what, next })
}

/// The file that PATH names.
pub fn find_program(name: &Path) -> Option<PathBuf> {
    if name.as_os_str().as_bytes().contains(&b'/') {
        return name.exists().then(|| name.to_owned());
    }
    // As execvp(3) does.
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What keeps the agent out of a program; a script is what its interpreter is.
pub fn obstacle_of(program: &Path) -> Option<PreloadProblem> {
    check_depth(program, 0)
}

fn check_depth(program: &Path, depth: u32) -> Option<PreloadProblem> {
    if depth > DEEPEST {
        return None;
    }
    let mut file = File::open(program).ok()?;
    let mut start = Vec::new();
    file.by_ref().take(LONGEST_LINE).read_to_end(&mut start).ok()?;
    privileges(program).or_else(|| match start.get(..2) {
        Some(b"#!") => check_depth(&interpreter(&start)?, depth + 1),
        _ if start.starts_with(&elf::ELFMAG) => elf(program, file),
        _ => None,
    })
}

/// The loader drops `LD_PRELOAD` where a program gains privileges by being started.
fn privileges(program: &Path) -> Option<PreloadProblem> {
    let found = fs::metadata(program).ok()?;
    let mode = found.permissions().mode();
    // SAFETY: they take nothing and cannot fail.
    let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
    let shown = program.display();
    if mode & 0o4000 != 0 && found.uid() != uid {
        let what = format!("{shown} is setuid to user {}: the loader ignores LD_PRELOAD for it", found.uid());
        return obstacle(what, "run swipr as that user, or record what the program starts");
    }
    if mode & 0o2010 == 0o2010 && found.gid() != gid {
        let what =
            format!("{shown} is setgid to group {}: the loader ignores LD_PRELOAD for it", found.gid());
        return obstacle(what, "run swipr as that group, or record what the program starts");
    }
    if uid != 0 && has_capabilities(program) {
        let what = format!("{shown} has file capabilities: the loader ignores LD_PRELOAD for it");
        return obstacle(what, "run a copy of it: a copy does not have them");
    }
    None
}

fn has_capabilities(program: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(program.as_os_str().as_bytes()) else { return false };
    // SAFETY: C strings; a size of 0 asks for the length only.
    let length =
        unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) };
    length > 0
}

/// What a script's first line starts; of `env`, what that starts.
fn interpreter(start: &[u8]) -> Option<PathBuf> {
    let line = start.split(|&byte| byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line.get(2..)?).into_owned();
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if !first.ends_with("/env") {
        return Some(first.into());
    }
    find_program(Path::new(words.find(|word| !word.starts_with('-') && !word.contains('='))?))
}

fn elf(program: &Path, file: File) -> Option<PreloadProblem> {
    let cache = ReadCache::new(file);
    match ElfFile::<elf::FileHeader64<Endianness>, _>::parse(&cache) {
        Ok(parsed) => headers(program, parsed.elf_header(), &cache).or_else(|| sanitizer(program, &parsed)),
        Err(_) => match elf::FileHeader32::<Endianness>::parse(&cache) {
            Ok(header) => headers(program, header, &cache),
            Err(_) => None,
        },
    }
}

/// Programs with ThreadSanitizer define this function, or have it of its shared library.
fn sanitizer<'a, R: object::ReadRef<'a>>(
    program: &Path,
    parsed: &ElfFile<'a, elf::FileHeader64<Endianness>, R>,
) -> Option<PreloadProblem> {
    let has_it = parsed.dynamic_symbols().any(|symbol| symbol.name_bytes() == Ok(b"__tsan_init"));
    let what = format!("{} is built with ThreadSanitizer: the agent does not start in it", program.display());
    if has_it { obstacle(what, "record a build without it") } else { None }
}

fn headers<'a, H, R>(program: &Path, header: &H, data: R) -> Option<PreloadProblem>
where
    H: FileHeader<Endian = Endianness>,
    R: object::ReadRef<'a>,
{
    let shown = program.display();
    let endian = header.endian().ok()?;
    let machine = header.e_machine(endian);
    if machine != own_machine() || !header.is_type_64() {
        let own = machine_name(own_machine(), true);
        let what =
            format!("{shown} is for {}, this swipr for {own}", machine_name(machine, header.is_type_64()));
        return obstacle(what, "this swipr records programs for its own architecture only");
    }
    let mut interpreters = header.program_headers(endian, data).ok()?.iter();
    let interpreter = interpreters.find_map(|segment| segment.interpreter(endian, data).ok().flatten());
    let Some(interpreter) = interpreter else {
        // A loader started by hand has none either; it reads the variable for what it starts.
        let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with("ld-") || name.starts_with("ld.so") || name.starts_with("ld64") {
            return None;
        }
        return obstacle(
            format!("{shown} is a static program: no loader reads LD_PRELOAD for it"),
            "link it dynamically; a program in Rust may have the crate swipr instead",
        );
    };
    let interpreter = String::from_utf8_lossy(interpreter);
    let interpreter = interpreter.trim_end_matches('\0');
    let loader = interpreter.rsplit('/').next().unwrap_or_default();
    if loader.starts_with("ld-musl") {
        return obstacle(
            format!("{shown} uses musl's C library, libswipr.so is for glibc's"),
            "build the program for glibc",
        );
    }
    // glibc's are called so in every distribution, wherever they lie.
    if !(loader.starts_with("ld-linux") || loader.starts_with("ld-2.")) {
        return obstacle(
            format!("{shown} is loaded by {interpreter}, which is not glibc's: libswipr.so is for that"),
            "build the program for glibc",
        );
    }
    None
}

const fn own_machine() -> u16 {
    if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 }
}

fn machine_name(machine: u16, is_64: bool) -> String {
    match machine {
        elf::EM_386 => "x86 (32 bit)".to_owned(),
        elf::EM_ARM => "arm (32 bit)".to_owned(),
        elf::EM_X86_64 if !is_64 => "x32".to_owned(),
        elf::EM_X86_64 => "x86-64".to_owned(),
        elf::EM_AARCH64 => "aarch64".to_owned(),
        elf::EM_RISCV => "riscv".to_owned(),
        other => format!("machine {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_what_its_first_line_starts() {
        let of = |line: &[u8]| interpreter(line);
        assert_eq!(of(b"#! /bin/sh -e\necho"), Some("/bin/sh".into()));
        assert_eq!(of(b"#!/usr/bin/env -S A=1 sh\n"), find_program(Path::new("sh")));
        assert_eq!(of(b"#!\n"), None);
    }

    #[test]
    fn what_anybody_may_start_has_no_obstacle_and_what_is_no_program_neither() {
        for program in ["/bin/sh", "/proc/self/exe", "/etc/passwd", "/no/such/file"] {
            assert_eq!(obstacle_of(Path::new(program)), None, "{program}");
        }
    }
}
