//! Paths as a process reaches them, whose root is another one: its links lead to its own files.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// As many links are followed (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Where this path of a process with that root is. A link that is absolute, as `/var/run` mostly
/// is, begins at its root, not at this command's.
pub fn in_root(root: &Path, path: &Path) -> PathBuf {
    let (mut found, mut left) = (PathBuf::new(), path.to_owned());
    let mut links = 0;
    while let Some(first) = left.components().next() {
        let rest = left.components().skip(1).collect::<PathBuf>();
        match first {
            Component::Normal(name) => match fs::read_link(root.join(&found).join(name)) {
                Ok(target) if links < MAX_LINKS => {
                    links += 1;
                    left = target.join(rest);
                    continue;
                }
                _ => found.push(name),
            },
            Component::ParentDir => _ = found.pop(),
            Component::RootDir => found.clear(),
            Component::CurDir | Component::Prefix(_) => {}
        }
        left = rest;
    }
    root.join(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temp_dir::Folder;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_lead_to_files_below_the_root() {
        let directory = Folder::new().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("var/lib")).unwrap();
        symlink("/run", root.join("var/run")).unwrap();
        symlink("../../../../run/a", root.join("var/lib/up")).unwrap();
        symlink("round", root.join("round")).unwrap();
        for (path, real) in [
            ("/var/run/a.sock", "run/a.sock"),
            ("/var/lib/up/b", "run/a/b"),
            ("/var/./lib/../none/c", "var/none/c"),
            ("/round/d", "round/d"),
        ] {
            assert_eq!(in_root(root, Path::new(path)), root.join(real), "{path}");
        }
    }
}
