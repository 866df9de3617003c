//! The backing file of an object's code, and where it can be opened. The loader's name is not
//! enough: it may be empty or relative, and another file may have taken the place of the loaded
//! one.

use std::path::Path;
use swipr_os::maps::{self, Mapping};
use swipr_os::objects::{Object, Segment};
use swipr_os::process;
use swipr_symbols::elf::ElfFile;
use swipr_symbols::error::Error;
use swipr_symbols::identity::FileIdentity;
use swipr_symbols::separate;
use swipr_symbols::symbolizer::ObjectKey;

/// The backing file of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// What the file is called.
    pub path: String,
    /// The kernel's links to it, which also lead to a deleted file.
    links: Vec<String>,
    /// Which file it is; `None` for what has no file, or none that is known.
    file: Option<FileIdentity>,
}

impl Origin {
    /// The file of an object: that of its code in `maps` or, if that has none, of another segment.
    pub fn of_object(object: &Object, maps: &[Mapping]) -> Origin {
        let loads = |segment: &&Segment| segment.kind == libc::PT_LOAD;
        let code = object.segments.iter().filter(|segment| segment.is_code());
        // Programs may have moved their code to large pages, which have no file.
        let all = code.chain(object.segments.iter().filter(loads));
        let mapping = all.filter_map(|segment| maps::find(maps, segment.address));
        let mapping = mapping.into_iter().find(|mapping| mapping.file_path().is_some());
        // The loader itself may be the executable, and the program a file that is named in its
        // arguments.
        let path = match object.name.as_str() {
            name if name.starts_with('/') => name.to_owned(),
            name => match mapping.and_then(Mapping::file_path) {
                Some(path) => path.to_owned(),
                None if name.is_empty() => process::executable(),
                None => name.to_owned(),
            },
        };
        let executable = process::EXECUTABLE_LINKS.iter().filter(|_| object.name.is_empty());
        let links = executable.map(|link| link.to_string()).chain(mapping.map(Mapping::file_link));
        Origin {
            path,
            links: links.collect(),
            file: mapping.map(|mapping| FileIdentity::new(mapping.device, mapping.inode)),
        }
    }

    /// The file of a mapping that the loader does not know; `None`: it has none.
    pub fn of_mapping(mapping: &Mapping) -> Option<Origin> {
        Some(Origin {
            path: mapping.file_path()?.to_owned(),
            links: vec![mapping.file_link()],
            file: Some(FileIdentity::new(mapping.device, mapping.inode)),
        })
    }

    /// Adds the time of the file's last change: without a build id, that distinguishes the file
    /// from a later one.
    pub fn dated(self) -> Origin {
        let dated = self.file.and_then(|file| {
            let mut dated = self.places().map(|place| file.dated(place));
            dated.find(|dated| dated.modified_ns.is_some())
        });
        Origin { file: dated.or(self.file), ..self }
    }

    /// Opens the file, if it has this build id or, where that is empty, is the one that was mapped.
    pub fn open(&self, build_id: &[u8]) -> Result<ElfFile, Error> {
        separate::open_loaded(self.places(), build_id, self.file.as_ref(), u64::MAX)
    }

    /// Opens the file where it is certain that it is the one whose code is mapped.
    pub fn open_proven(&self, build_id: &[u8]) -> Option<ElfFile> {
        if build_id.is_empty() && self.file.is_none() { None } else { self.open(build_id).ok() }
    }

    /// The object's key for the symbolizer.
    pub fn key(&self, build_id: &[u8]) -> ObjectKey {
        ObjectKey {
            links: self.links.iter().map(|link| link.as_str().into()).collect(),
            file: self.file.filter(|_| build_id.is_empty()),
            ..ObjectKey::at(&self.path, build_id)
        }
    }

    fn places(&self) -> impl Iterator<Item = &Path> {
        self.links.iter().map(Path::new).chain([Path::new(&self.path)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: [(u64, u64, &str); 3] =
        [(0x1000, 7, "/usr/bin/prog (deleted)"), (0x2000, 0, ""), (0x3000, 8, "/srv/x/rel.so")];

    fn maps() -> Vec<Mapping> {
        let mapping = |&(low, inode, path): &(u64, u64, &str)| Mapping {
            low,
            high: low + 0x1000,
            executable: true,
            writable: false,
            reserved: false,
            offset: 0,
            device: 1,
            inode,
            path: path.into(),
        };
        MAPS.iter().map(mapping).collect()
    }

    fn object(name: &str, code: &[u64]) -> Object {
        let segment = |&address: &u64| Segment {
            kind: libc::PT_LOAD,
            flags: libc::PF_X,
            address,
            bytes: 0x100,
            offset: 0,
        };
        Object { name: name.into(), bias: 0, segments: code.iter().map(segment).collect() }
    }

    #[test]
    fn an_object_without_a_name_is_called_as_its_code_is() {
        let origin = Origin::of_object(&object("", &[0x1010]), &maps());
        assert_eq!(origin.path, "/usr/bin/prog");
        assert_eq!(origin.links[0], "/proc/self/exe");
        assert_eq!(origin.links.last().unwrap(), "/proc/self/map_files/1000-2000");
        assert_eq!(origin.file, Some(FileIdentity::new(1, 7)));
    }

    #[test]
    fn a_relative_name_becomes_a_path_and_an_absolute_one_stays() {
        assert_eq!(Origin::of_object(&object("./rel.so", &[0x3000]), &maps()).path, "/srv/x/rel.so");
        let origin = Origin::of_object(&object("/opt/rel.so", &[0x3000]), &maps());
        assert_eq!((&*origin.path, origin.links.len()), ("/opt/rel.so", 1));
    }

    #[test]
    fn code_that_was_moved_off_its_file_has_the_file_of_the_rest() {
        let origin = Origin::of_object(&object("", &[0x2010, 0x3000]), &maps());
        assert_eq!((&*origin.path, origin.file), ("/srv/x/rel.so", Some(FileIdentity::new(1, 8))));
        let origin = Origin::of_object(&object("", &[0x2010]), &maps());
        assert_eq!((origin.path, origin.file), (process::executable(), None));
    }
}
