//! Programs in a container as strict as a hardened pod's: `c-tests/unprivileged` starts them.

use crate::agent;
use crate::directory::Directory;
use crate::host::{self, Host};
use crate::program::Program;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::Command;

/// The user in the container.
const USER: u32 = 1000;

/// Why this machine cannot run containers; `None`: it can.
pub fn missing() -> Option<String> {
    let tried = Command::new(script()).args(["--", "true"]).output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            Some(if said.is_empty() { format!("unprivileged: {}", output.status) } else { said })
        }
        Err(error) => Some(format!("unprivileged cannot be started: {error}")),
    }
}

fn script() -> PathBuf {
    agent::checkout().join("c-tests").join("unprivileged")
}

/// A program and the agent, ready for containers, in a directory that both sides see.
#[derive(Debug)]
pub struct Container {
    /// The program.
    pub program: Program,
    /// System calls that are refused besides those that Docker refuses.
    pub refused: Vec<String>,
    /// Variables of the program's environment.
    pub environment: Vec<(String, String)>,
    directory: Directory,
    library: PathBuf,
}

impl Container {
    /// Compiles a program for it.
    pub fn new(name: &str, refused: &[&str]) -> Self {
        let directory = Directory::new();
        let program = Program::compile(name, directory.path());
        let library = directory.path().join("libswipr.so");
        std::fs::copy(agent::library(), &library).expect("a copy of the agent");
        // Programs that are linked with the packages' library know it by this name.
        symlink("libswipr.so", directory.path().join("libswipr.so.0")).expect("a link");
        chown(directory.path(), Some(USER), Some(USER)).expect("the directory can be given away");
        let socket = directory.path().join("{PID}.sock");
        let environment = vec![("SWIPR_SOCKET".to_string(), socket.display().to_string())];
        let refused = refused.iter().map(|call| call.to_string()).collect();
        Self { program, refused, environment, directory, library }
    }

    /// The command that runs the program in it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(script());
        command.arg("--allow-write").arg(self.directory.path());
        for call in &self.refused {
            command.args(["--deny", call]);
        }
        // Not for the shell that sets the container up.
        let variable = if self.program.preload { "LD_PRELOAD" } else { "LD_LIBRARY_PATH" };
        let value = if self.program.preload { Some(self.library.as_path()) } else { self.library.parent() };
        let value = value.map(|path| path.display().to_string()).unwrap_or_default();
        for (name, value) in self.environment.iter().chain([&(variable.to_string(), value)]) {
            command.args(["--env", &format!("{name}={value}")]);
        }
        command.arg("--").arg(&self.program.executable).args(&self.program.library).args(arguments);
        // Where the library was built is hidden in the container, and is not to be found.
        command.current_dir("/").env_remove("LD_PRELOAD");
        command
    }

    /// Starts the program.
    pub fn start(&self) -> Host {
        let mut host = Host::spawn(self.command(&[]));
        host.wait_for("ready");
        host
    }

    /// The directory that both sides see.
    pub fn path(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// The socket of a process, by its number in the container: the program's is 1.
    pub fn socket_of(&self, pid: u32) -> PathBuf {
        let path = self.path().join(format!("{pid}.sock"));
        host::wait_until(&format!("{} to accept", path.display()), || {
            std::os::unix::net::UnixStream::connect(&path).is_ok()
        });
        let mode = std::fs::metadata(&path).map(|found| found.permissions().mode() & 0o777);
        assert_eq!(mode.ok(), Some(0o600), "the socket's mode");
        path
    }
}
