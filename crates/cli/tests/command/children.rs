//! `swipr run` of programs that start others.

use crate::support::*;
use std::process::Command;
use swipr_c_tests::agent::library;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::wait_until;
use swipr_c_tests::program;

/// The recording was named after the child whose samples came first, and in Firefox's format all
/// threads were that child's.
#[test]
fn a_recording_of_several_processes_is_that_of_the_program_that_was_started() {
    let busy = "while [ $i -lt 200000 ]; do i=$((i + 1)); done";
    let script = format!("i=0; dash -c 'i=0; {busy}' & dash -c 'i=0; {busy}'; wait; exec sleep 0.1");
    let said = says(["run", "-s", "-f", "raw", "-o", "-", "--", "bash", "-c", &script]).well();
    let header: serde_json::Value =
        serde_json::from_str(said.out.lines().next().expect("a line")).expect("JSON");
    assert_eq!(header["process_name"], "bash", "{header}");
    assert!(header["executable"].as_str().is_some_and(|file| file.ends_with("/bash")), "{header}");
}

/// Python's multiprocessing ends its processes by `_exit`: a fifth of the CPU time of short ones
/// was not in the recording, and nothing said so.
#[test]
fn a_child_that_ends_by_exit_without_handlers_hands_over_its_last_samples() {
    let directory = Directory::new();
    let (source, forks) = (directory.path().join("forks.c"), directory.path().join("forks"));
    let text = r#"
        #include <signal.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <time.h>
        #include <unistd.h>
        static void end(int signal)
        {
            _exit(signal);
        }
        static void use(long ns)
        {
            struct timespec used;
            do
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
            while (used.tv_sec == 0 && used.tv_nsec < ns);
        }
        int main(void)
        {
            int status;
            for (int child = 0; child < 6; child++) {
                if (fork() == 0) {
                    use(200000000);
                    if (child % 3 == 0)
                        _exit(0);
                    if (child % 3 == 1)
                        quick_exit(0);
                    signal(SIGUSR1, end);
                    raise(SIGUSR1);
                }
                wait(&status);
                if (!WIFEXITED(status) || WEXITSTATUS(status) != (child % 3 < 2 ? 0 : SIGUSR1))
                    return 1;
            }
            if (vfork() == 0)
                _exit(0);
            return 0;
        }
    "#;
    std::fs::write(&source, text).expect("a C file");
    program::compile(&source, &forks, &["-O2".into()], &[]);
    let said = says(["run", "-s", "-f", "folded", "-o", "-", "--", &forks.display().to_string()]).well();
    let weights = said.out.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    let recorded_ns: u64 = weights.sum();
    assert!(recorded_ns >= 1_140_000_000, "{recorded_ns} of 1.2 s: {said:?}");
    assert!(said.errors.contains("lost 0"), "{said:?}");
}

/// Such children were missing without a word.
#[test]
fn cpu_time_of_children_that_have_no_agent_is_told() {
    let directory = Directory::new();
    let (source, clones) = (directory.path().join("clones.c"), directory.path().join("clones"));
    let text = r#"
        #include <signal.h>
        #include <sys/syscall.h>
        #include <sys/wait.h>
        #include <time.h>
        #include <unistd.h>
        int main(void)
        {
            if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) {
                while ((double)clock() / CLOCKS_PER_SEC < 0.6)
                    ;
                _exit(0);
            }
            wait(NULL);
            while ((double)clock() / CLOCKS_PER_SEC < 0.3)
                ;
            return 0;
        }
    "#;
    std::fs::write(&source, text).expect("a C file");
    program::compile(&source, &clones, &["-O2".into()], &[]);
    let program = clones.display().to_string();
    let said = says(["run", "-s", "-o", "-", "-f", "folded", "--", &program]).well();
    let missing = ["swipr: 0.5 of ", "swipr: 0.6 of "].iter().any(|start| said.errors.contains(start));
    assert!(missing && said.errors.contains("of the processes' CPU time are not"), "{said:?}");
    let said = says(["run", "-o", "-", "-f", "folded", "--", &program]).well();
    assert!(!said.errors.contains("CPU time are not"), "children were not asked for: {said:?}");
}

/// `swipr record` said nothing of them.
#[test]
fn a_recording_of_a_running_program_tells_the_cpu_time_of_children_that_have_no_agent() {
    let directory = Directory::new();
    let (source, program) = (directory.path().join("starts.c"), directory.path().join("starts"));
    let text = r#"
        #include <signal.h>
        #include <sys/syscall.h>
        #include <sys/wait.h>
        #include <time.h>
        #include <unistd.h>
        static void use(double seconds)
        {
            const clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
            while (clock() < end)
                ;
        }
        int main(void)
        {
            for (alarm(300);;) {
                if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) {
                    use(0.05);
                    _exit(0);
                }
                wait(NULL);
                use(0.02);
            }
        }
    "#;
    std::fs::write(&source, text).expect("a C file");
    program::compile(&source, &program, &["-O2".into()], &[]);
    let socket = directory.path().join("swipr-pid-{PID}.sock");
    let mut command = Command::new(&program);
    let mut child =
        command.env("LD_PRELOAD", library()).env("SWIPR_SOCKET", socket).spawn().expect("a program");
    let pid = child.id().to_string();
    wait_until("its agent", || says(["ls"]).out.contains(&pid));
    let record = |more: &[&str]| {
        let arguments = ["record", &pid, "-d", "2s", "-f", "folded", "-o", "-"];
        says(arguments.iter().chain(more)).well()
    };
    let alone = record(&[]);
    // On a busy machine two seconds may have too little CPU time of children to be told.
    let tells = |said: &Said| said.errors.contains("s of the processes' CPU time are not");
    let with_children = (0..5).map(|_| record(&["-s"])).find(tells);
    child.kill().expect("ours");
    child.wait().expect("its end");
    assert!(!alone.errors.contains("CPU time are not"), "children were not asked for: {alone:?}");
    assert!(with_children.is_some(), "what children without an agent used");
}

/// In a PID namespace a process has another id for itself: the machine's first process was blamed.
#[test]
fn processes_of_other_pid_namespaces_have_their_names() {
    let unshare = ["unshare", "-fp", "--mount-proc"];
    let may = Command::new(unshare[0]).args(&unshare[1..]).arg("true").status();
    if !may.is_ok_and(|status| status.success()) {
        println!("not run: unshare(1) may not make a PID namespace");
        return;
    }
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &["-DSTATUS=0"]).display().to_string();
    let arguments = ["run", "-s", "-f", "folded", "-o", "-", "--"].into_iter().chain(unshare);
    let said = says(arguments.chain([hot.as_str()])).well();
    let of_hot = said.out.lines().filter(|line| line.contains(";hot"));
    let roots: Vec<&str> = of_hot.filter_map(|line| Some(line.split_once(';')?.0)).collect();
    assert!(!roots.is_empty() && roots.iter().all(|root| root.ends_with(" hot]")), "{said:?}");
    assert!(!said.errors.contains("(1)"), "{said:?}");
}

#[test]
fn children_are_left_out_with_a_hint_and_merged_where_asked() {
    let directory = Directory::new();
    let (one, two) = (short_program(&directory, "one", &[]), short_program(&directory, "two", &[]));
    let script = format!("{} & {}; wait", one.display(), two.display());
    let run = |more: &[&str]| {
        let arguments = ["run", "--idle", "-f", "folded", "-o", "-"].iter().chain(more);
        says(arguments.chain(&["--", "sh", "-c", &script]))
    };
    let without = run(&[]).well();
    assert!(!without.out.contains("hot") && without.errors.contains("next: -s follows"), "{without:?}");
    let merged = run(&["--subprocesses"]).well();
    for name in ["one", "two"] {
        let root = format!(" {name}];");
        let is_root = |line: &str| line.starts_with("[process ") && line.contains(&root);
        assert!(merged.out.lines().any(is_root), "{name} in {merged:?}");
    }
}

/// Starts so many processes, each of which uses so much CPU; with a third argument they are copies
/// of it.
fn parent(directory: &Directory) -> std::path::PathBuf {
    let source = directory.path().join("parent.c");
    let text = r#"
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <time.h>
        #include <unistd.h>
        static volatile unsigned long sink;
        __attribute__((noinline)) static void hot(double seconds)
        {
            double end = (double)clock() / CLOCKS_PER_SEC + seconds;
            while ((double)clock() / CLOCKS_PER_SEC < end)
                for (int i = 0; i < 100000; i++)
                    sink += (unsigned long)i;
        }
        int main(int count, char **words)
        {
            int children = atoi(words[1]);
            if (children == 0)
                hot(atof(words[2]));
            for (int i = 0; i < children; i++) {
                if (fork() != 0)
                    continue;
                if (count < 4)
                    execl("/proc/self/exe", "child", "0", words[2], (char *)0);
                hot(atof(words[2]));
                exit(0);
            }
            while (wait(0) > 0)
                ;
            return 0;
        }
    "#;
    std::fs::write(&source, text).expect("a C file");
    let program = directory.path().join("parent");
    program::compile(&source, &program, &[], &[]);
    program
}

/// Of 20 children that were started at the same time 2 to 17 were recorded, and `lost 0` was said.
#[test]
fn every_child_is_recorded_however_many_start_at_the_same_time() {
    let directory = Directory::new();
    let parent = parent(&directory);
    for (children, how) in [("20", None), ("10", Some("copies"))] {
        let mut command = swipr(["run", "-s", "-f", "folded", "-o", "-", "--"]);
        let said = said(command.arg(&parent).args([children, "0.15"]).args(how)).well();
        let hot = said.out.lines().filter(|line| line.contains(";hot"));
        let mut processes: Vec<&str> = hot.filter_map(|line| line.split(' ').nth(1)).collect();
        processes.sort_unstable();
        processes.dedup();
        assert_eq!(processes.len().to_string(), children, "{how:?} {said:?}");
        assert!(!said.errors.contains("not recorded"), "{said:?}");
    }
}

/// It was not mentioned.
#[test]
fn a_child_that_could_not_be_recorded_is_named() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &["-DSTATUS=0"]);
    // A socket of process 1 is there, and nothing listens.
    let script = format!("touch ${{SWIPR_SOCKET%/*}}/1-1.sock; {}", hot.display());
    let said = says(["run", "-s", "-f", "folded", "-o", "-", "--", "sh", "-c", &script]).well();
    // On a loaded machine the shell may be gone before it is recorded, too.
    assert!(said.errors.contains("not recorded: ") && said.errors.contains("(1)"), "{said:?}");
}

/// The shell ended without a sample, and the message was of a connection that had ended.
#[test]
fn a_program_whose_children_did_the_work_is_told_that_they_were_not_recorded() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &["-DSTATUS=0"]);
    let script = format!("{}; true", hot.display());
    let said = says(["run", "-f", "folded", "-o", "-", "--", "sh", "-c", &script]);
    said.refuses(0, &["sample", "next: -s follows child processes"]);
    assert!(!said.errors.contains("cannot ask"), "{said:?}");
}

/// Of a daemon it was said that one child was not recorded, or that the program was too short.
#[test]
fn processes_that_a_program_leaves_running_are_named() {
    let directory = Directory::new();
    let file = directory.path().join("x.folded").display().to_string();
    // It ends when the child's agent listens.
    let script = r#"sleep 60 </dev/null >/dev/null 2>&1 &
        until set -- "${SWIPR_SOCKET%/*}"/$!-*; [ -e "$1" ]; do :; done"#;
    for follow in [&["-s"][..], &[]] {
        let mut command = swipr(["run", "-o", &file]);
        let said = said(command.args(follow).args(["--", "sh", "-c", script]));
        let (_, left) = said.errors.split_once("left running: ").unwrap_or_else(|| panic!("{said:?}"));
        let pid = left.split(['(', ')']).nth(1).and_then(|pid| pid.parse().ok()).expect("an id");
        // SAFETY: kill(2) takes no pointer; it was just said to run.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        said.refuses(0, &["next: have it stay in the foreground"]);
        assert!(!said.errors.contains("not recorded\n"), "{said:?}");
    }
}
