//! The C library of a newer Debian than the tests', whose system calls are made in another way
//! (glibc 2.41 and later). Programs that are compiled for it run beside all others.

use crate::agent;
use crate::harness::NotRun;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The distribution whose C library it is.
const RELEASE: &str = "trixie";

/// Where the library is, in a folder that is kept between runs of the tests; it is fetched if need
/// be.
pub fn installed() -> Result<PathBuf, NotRun> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("for x86-64 only".into());
    }
    // Tests run beside one another: one of them fetches it.
    static INSTALLED: OnceLock<Result<PathBuf, NotRun>> = OnceLock::new();
    let install = || {
        let folder = agent::target().join("newer-c-library");
        let libraries = folder.join("usr/lib/x86_64-linux-gnu");
        if !libraries.join("libc.so.6").exists() {
            fetch(&folder)?;
        }
        Ok(libraries)
    };
    INSTALLED.get_or_init(install).clone()
}

/// What a program has to be linked with to run with it.
pub fn linker_flags(libraries: &Path) -> Vec<String> {
    let folder = libraries.display();
    vec![
        format!("-Wl,--dynamic-linker={folder}/ld-linux-x86-64.so.2"),
        format!("-Wl,--disable-new-dtags,-rpath,{folder}"),
    ]
}

/// By apt-get, from where the system has its packages, with lists of its own: the system's are not
/// touched.
fn fetch(folder: &Path) -> Result<(), NotRun> {
    let text = |error: std::io::Error| error.to_string();
    let lists = folder.join("lists");
    fs::create_dir_all(lists.join("partial")).map_err(text)?;
    let mut mirrors = Command::new("apt-get");
    mirrors.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"]);
    let mirrors = run(&mut mirrors)?;
    let mirror = mirrors.lines().next().ok_or("apt-get knows no mirror of Debian's")?;
    let sources = folder.join("sources.list");
    fs::write(&sources, format!("deb {mirror} {RELEASE} main\n")).map_err(text)?;
    let apt = |arguments: &[&str]| {
        let options = [
            format!("Dir::Etc::SourceList={}", sources.display()),
            "Dir::Etc::SourceParts=/dev/null".into(),
            format!("Dir::State::Lists={}", lists.display()),
            format!("Dir::Cache={}", folder.display()),
            "APT::Sandbox::User=root".into(),
            "Acquire::Languages=none".into(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
        ];
        let mut command = Command::new("apt-get");
        command.args(options.iter().flat_map(|option| ["-o", option])).args(arguments);
        run(command.current_dir(folder))
    };
    apt(&["update"])?;
    apt(&["download", "libc6"])?;
    let packages = fs::read_dir(folder).map_err(text)?.flatten().map(|entry| entry.path());
    let package =
        packages.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    let package = package.ok_or("apt-get has fetched nothing")?;
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(folder))?;
    fs::remove_dir_all(lists).map_err(text)
}

/// What a command prints.
fn run(command: &mut Command) -> Result<String, NotRun> {
    let output = command.env_remove("LD_PRELOAD").stdin(Stdio::null()).output();
    let output = output.map_err(|_| format!("no {}", command.get_program().display()))?;
    let said = if output.status.success() { Ok(&output.stdout) } else { Err(&output.stderr) };
    let text = |said: &Vec<u8>| String::from_utf8_lossy(said).trim().replace('\n', "; ");
    said.map(|said| String::from_utf8_lossy(said).into_owned()).map_err(text)
}
