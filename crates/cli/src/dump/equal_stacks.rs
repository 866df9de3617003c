//! A dump's threads by their stacks: those that have the same one stand above it together, in the
//! order of their ids. The idle threads of a pool are one paragraph.

use std::collections::HashMap;

/// The paragraphs of a dump, as the agent writes them: the process, one of each thread, figures.
pub fn together(dump: &str) -> String {
    let mut stacks: Vec<(Vec<&str>, &str)> = Vec::new();
    let mut by_frames: HashMap<&str, usize> = HashMap::new();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for paragraph in dump.trim_end().split("\n\n") {
        match paragraph.split_once('\n').filter(|(thread, _)| thread.starts_with('"')) {
            Some((thread, frames)) => {
                let at = *by_frames.entry(frames).or_insert(stacks.len());
                match stacks.get_mut(at) {
                    Some((threads, _)) => threads.push(thread),
                    None => stacks.push((vec![thread], frames)),
                }
            }
            None if stacks.is_empty() => before.push(paragraph.to_owned()),
            None => after.push(paragraph.to_owned()),
        }
    }
    stacks.iter_mut().for_each(|(threads, _)| threads.sort_by_key(|thread| id(thread)));
    stacks.sort_by_key(|(threads, _)| threads.first().map(|thread| id(thread)));
    let stacks = stacks.into_iter().map(|(threads, frames)| format!("{}\n{frames}", threads.join("\n")));
    before.into_iter().chain(stacks).chain(after).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Of `"name" tid 12, running`.
fn id(thread: &str) -> Option<u32> {
    thread.rsplit_once("\" tid ")?.1.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_with_the_same_stack_stand_above_it_together() {
        let dump = "app (pid 7), /app\n\n\"a\" tid 12, blocked in futex\n  #0   wait\n  #1   main\n\n\
            \"main\" tid 7, running\n  #0   main\n\n\"b\" tid 9, blocked in futex\n  #0   wait\n  #1   main\n\n\
            3 threads\n";
        let expected = "app (pid 7), /app\n\n\"main\" tid 7, running\n  #0   main\n\n\
            \"b\" tid 9, blocked in futex\n\"a\" tid 12, blocked in futex\n  #0   wait\n  #1   main\n\n3 threads\n";
        assert_eq!(together(dump), expected);
        assert_eq!(together("app\n\nno threads: idle\n"), "app\n\nno threads: idle\n");
    }
}
