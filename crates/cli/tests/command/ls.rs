//! `swipr ls`.

use crate::support::*;
use std::process::Command;
use swipr_c_tests::agent;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::{Host, wait_until};

fn row(said: &Said, pid: u32) -> Option<String> {
    let pid = pid.to_string();
    let is_it = |line: &&str| line.split_whitespace().next() == Some(&pid);
    said.out.lines().find(is_it).map(str::to_owned)
}

#[test]
fn lists_a_process_with_its_name_its_threads_and_where_it_listens() {
    let host = running_burner();
    let said = says(["ls"]).well();
    let row = row(&said, host.pid()).expect("its line");
    assert!(row.contains("no_frame_pointe") && row.contains(&host.socket().display().to_string()), "{row}");
    let json: serde_json::Value = serde_json::from_str(&says(["ls", "--json"]).well().out).expect("JSON");
    let rows = json.as_array().expect("an array");
    let own = rows.iter().find(|row| row["pid"] == host.pid()).expect("its object");
    assert_eq!((&own["threads"], &own["visible"]), (&3.into(), &true.into()), "{own}");
    host.end();
}

#[test]
fn finds_abstract_sockets_and_tcp_by_what_the_kernel_says() {
    for listen in ["@swipr-cli-test-{PID}", "127.0.0.1:0"] {
        let mut command = Command::new(&burner().executable);
        command.env("LD_PRELOAD", agent::library()).env("SWIPR_LISTEN", listen);
        let mut host = Host::spawn(command);
        host.wait_for("ready");
        std::fs::remove_file(host.socket()).expect("the other way in is closed");
        let listens = listen.replace("{PID}", &host.pid().to_string()).replace(":0", ":");
        let line = || row(&says(["ls"]).well(), host.pid()).expect("its line");
        // A machine that is short of CPUs leaves no time to ask at the second place.
        wait_until("its place in the list", || line().contains(&listens));
        let row = line();
        let place = row.split_whitespace().nth(5).expect("a place").to_owned();
        let said = says(["record", &place, "-d", "1s", "-o", "-", "-f", "perf"]).well();
        check_perf(&said.out, &[BURNS]);
        host.end();
    }
}

#[test]
fn a_shared_folder_shows_processes_that_cannot_be_seen() {
    let host = running_burner();
    let folder = Directory::new();
    // As from another container: the file is here, and it is not the one that the process knows of.
    let shared = folder.path().join("app.sock");
    let (inner, outer) = (host.socket(), std::os::unix::net::UnixListener::bind(&shared).expect("a socket"));
    std::thread::spawn(move || {
        for client in outer.incoming().flatten() {
            let mut client = client;
            let mut server = std::os::unix::net::UnixStream::connect(&inner).expect("the agent");
            let (mut back, mut answer) =
                (client.try_clone().expect("a clone"), server.try_clone().expect("a clone"));
            std::thread::spawn(move || std::io::copy(&mut client, &mut server));
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut answer, &mut back);
                let _ = back.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    let path = folder.path().display().to_string();
    let said = says(["ls", &path]).well();
    assert!(said.out.contains(&format!("({})", host.pid())) && said.out.contains("app.sock"), "{said:?}");
    assert!(said.out.contains("name it by its socket"), "{said:?}");
    let said = says(["record", &shared.display().to_string(), "-d", "1s", "-o", "-", "-f", "perf"]).well();
    check_perf(&said.out, &[BURNS]);
    host.end();
}

#[test]
fn a_folder_without_sockets_is_told() {
    let folder = Directory::new();
    says(["ls", &folder.path().display().to_string()]).refuses(3, &["no process with swipr inside"]);
    says(["ls", "/no/such/folder"]).refuses(2, &["/no/such/folder"]);
}

#[test]
fn a_process_in_another_mount_namespace_is_reached_through_its_root() {
    let folder = Directory::new();
    let script = format!(
        "mount -t tmpfs none {0} && exec {1}",
        folder.path().display(),
        burner().executable.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    command.env("LD_PRELOAD", agent::library());
    if !Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success()) {
        eprintln!("not run: this machine does not let us make mount namespaces");
        return;
    }
    // The socket lies on a file system that only the process sees.
    command.env("SWIPR_ONLY", "no_frame_pointer");
    let mut child = {
        command.env("SWIPR_SOCKET", folder.path().join("inside-{PID}.sock"));
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        command.spawn().expect("unshare")
    };
    let pid = child.id();
    wait_until("it in the list", || {
        row(&says(["ls"]), pid).is_some_and(|row| row.contains(&format!("/proc/{pid}/root/")))
    });
    let said = says(["record", &pid.to_string(), "-d", "1s", "-o", "-", "-f", "perf"]).well();
    check_perf(&said.out, &[BURNS]);
    drop(child.stdin.take());
    assert!(child.wait().expect("its end").success());
}

/// Regression: the socket was looked for below the process's new root. The agent keeps the old one.
#[test]
fn a_process_that_changed_its_root_directory_is_reached() {
    let folder = Directory::new();
    let (source, program) = (folder.path().join("chroots.c"), folder.path().join("chroots"));
    let text = r#"
        #include <stdio.h>
        #include <time.h>
        #include <unistd.h>
        __attribute__((noinline)) static void hot(void)
        {
            while ((double)clock() / CLOCKS_PER_SEC < 30)
                ;
        }
        int main(int count, char **arguments)
        {
            getchar();
            if (chroot(arguments[1]) || chdir("/"))
                return 77;
            puts("changed");
            fflush(stdout);
            hot();
            return count;
        }
    "#;
    std::fs::write(&source, text).expect("a C file");
    swipr_c_tests::program::compile(&source, &program, &["-O1".into()], &[]);
    let root = Directory::new();
    let mut child = Command::new(&program)
        .arg(root.path())
        .env("LD_PRELOAD", agent::library())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a program");
    let pid = child.id();
    wait_until("it in the list", || row(&says(["ls"]), pid).is_some());
    drop(child.stdin.take());
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut out, &mut line).expect("its output");
    if line.is_empty() {
        assert_eq!(child.wait().expect("its end").code(), Some(77));
        println!("not run: this machine does not let us change the root directory");
        return;
    }
    let said = says(["record", &pid.to_string(), "-d", "1s", "-o", "-", "-f", "folded"]).well();
    assert!(said.out.contains("main;hot"), "{said:?}");
    assert!(row(&says(["ls"]), pid).is_some_and(|row| !row.contains("/root/")), "its socket is where it was");
    child.kill().expect("ours");
    child.wait().expect("its end");
}
