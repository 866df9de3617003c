use super::*;
use swipr_symbols::symbolizer::ObjectKey;
use swipr_unwind::sections::Room;

#[test]
fn this_function_and_libc_have_modules_and_tables() {
    swipr_unwind::memory::set_process(swipr_os::process::pid() as i32);
    let mut tables = Tables::new(-1);
    tables.refresh();
    let here = this_function_and_libc_have_modules_and_tables as *const () as u64;
    let code = tables.mappings().find(here).unwrap();
    let executable = swipr_os::process::executable();
    assert_eq!(code.module.path, executable);
    assert!(code.symbols.as_ref().unwrap().bias < here);
    assert!(tables.mappings().find(libc::malloc as *const () as u64).is_some());
    assert!(tables.mappings().find(8).is_none());
    let figures = tables.figures();
    assert!(figures.objects >= 3 && figures.bytes > 100_000, "{figures:?}");
    // Other tests map and unmap memory meanwhile, so that a reading may lack a mapping; and they
    // load libraries, so that the loader's list may be locked.
    let local = 0;
    let stack = (0..1000).find_map(|_| {
        tables.refresh();
        tables.refresh_maps();
        tables.stack_of(&raw const local as u64)
    });
    let stack = stack.unwrap();
    assert!(stack.low < stack.high && tables.mappings().find(stack.low).is_none());
}

#[test]
fn an_object_has_a_table_once_that_pays_off() {
    swipr_unwind::memory::set_process(swipr_os::process::pid() as i32);
    let mut tables = Tables::new(-1);
    tables.refresh();
    let look_up = |tables: &Tables, pc: u64, times: usize| {
        let find = |object: &&Arc<LoadedObject>| object.text().contains(&pc);
        let table = tables.objects.iter().find(find).unwrap().unwind_info().unwrap().clone();
        if let Some(sections) = table.published().sections {
            (0..times).for_each(|_| _ = sections.rule(pc, &mut Room::new()));
        }
        table
    };
    let here = an_object_has_a_table_once_that_pays_off as *const () as u64;
    assert!(look_up(&tables, here, 20).table().is_none());
    tables.refresh();
    assert!(look_up(&tables, here, 100_000).table().is_none());
    tables.refresh();
    assert!(look_up(&tables, here, 0).table().unwrap().rows() > 10_000);
    let libc = libc::malloc as *const () as u64;
    assert!(look_up(&tables, libc, 1).table().is_none() && !tables.wants_table());
    assert!(look_up(&tables, libc, 5_000).table().is_none() && tables.wants_table());
    tables.build_tables();
    assert!(!tables.wants_table() && look_up(&tables, libc, 1).table().is_some());
}

#[test]
fn the_child_of_a_fork_has_its_parents_tables() {
    swipr_unwind::memory::set_process(swipr_os::process::pid() as i32);
    // Other tests load and unload libraries meanwhile, and their tables may have taken the place.
    assert!((0..100).any(|_| a_child_has_its_parents_tables()));
}

fn a_child_has_its_parents_tables() -> bool {
    let mut parents = Tables::new(-1);
    parents.refresh();
    // The loader's list may be locked.
    let Some(seen) = parents.seen else { return false };
    inherited::keep(seen, &parents.objects, &parents.any_wanted);
    // SAFETY: the child takes no lock that another thread may hold.
    let child = unsafe { libc::fork() };
    if child == 0 {
        inherit();
        let own = Tables::new(-1);
        let mut both = own.objects.iter().zip(&parents.objects);
        let are_same = own.seen == parents.seen && both.all(|(own, parents)| Arc::ptr_eq(own, parents));
        let status = i32::from(!are_same || own.objects.is_empty());
        // SAFETY: ends the child.
        unsafe { libc::_exit(status) };
    }
    let mut status = -1;
    // SAFETY: the child is ours; `status` is a local variable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status == 0
}

#[test]
fn code_of_a_file_that_the_program_maps_itself_is_found_in_the_file() {
    use std::os::fd::AsRawFd;
    swipr_unwind::memory::set_process(swipr_os::process::pid() as i32);
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let bytes = file.metadata().unwrap().len() as usize;
    let (rights, fd) = (libc::PROT_READ | libc::PROT_EXEC, file.as_raw_fd());
    // SAFETY: a new mapping at an address of the kernel's choice.
    let low = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, libc::MAP_PRIVATE, fd, 0) };
    assert_ne!(low, libc::MAP_FAILED);
    let mut tables = Tables::new(-1);
    tables.refresh();
    let here = code_of_a_file_that_the_program_maps_itself_is_found_in_the_file as *const () as u64;
    // Other tests map and unmap memory meanwhile, so that a reading may lack a mapping; and they
    // load libraries, so that the loader's list may be locked.
    let found = (0..1000).find_map(|_| {
        tables.refresh();
        tables.refresh_maps();
        Some((tables.mappings().find(here)?.clone(), tables.mappings().find(low as u64)?.clone()))
    });
    let (loaded, mapped) = found.unwrap();
    assert_eq!(mapped.module.path, loaded.module.path);
    assert_eq!(mapped.module.build_id, loaded.module.build_id);
    let (loaded, mapped) = (loaded.symbols.unwrap(), mapped.symbols.unwrap());
    let copy = here - loaded.bias + mapped.bias;
    // SAFETY: both are code of this executable, which is mapped as long as the test.
    let code = |address: u64| unsafe { *(address as *const [u8; 32]) };
    assert_eq!(code(copy), code(here));
    // SAFETY: the mapping is ours, and nothing refers to it any more.
    unsafe { libc::munmap(low, bytes) };
}

/// One file may be mapped several times, and from the middle on: each has its own distance to
/// the file's numbering.
#[test]
fn parts_of_a_file_that_are_mapped_by_themselves_have_the_names_of_the_file() {
    use std::os::fd::AsRawFd;
    swipr_unwind::memory::set_process(swipr_os::process::pid() as i32);
    let here = parts_of_a_file_that_are_mapped_by_themselves_have_the_names_of_the_file as *const () as u64;
    let mut tables = Tables::new(-1);
    tables.refresh();
    // Other tests map and unmap memory meanwhile, so that a reading may lack a mapping; and they
    // load libraries, so that the loader's list may be locked.
    let module = (0..1000).find_map(|_| {
        tables.refresh();
        tables.refresh_maps();
        Some(tables.mappings().find(here)?.module.clone())
    });
    let module = module.unwrap();
    let in_file = here - module.start + module.file_offset;
    let page = in_file & !0xfff;
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let map = |pages: u64| {
        let (rights, fd, from) = (libc::PROT_READ | libc::PROT_EXEC, file.as_raw_fd(), page - pages * 0x1000);
        let bytes = (pages as usize + 2) * 0x1000;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let low = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, rights, libc::MAP_PRIVATE, fd, from as libc::off_t)
        };
        assert_ne!(low, libc::MAP_FAILED);
        (low as u64 + in_file - from, low, bytes)
    };
    let copies = [map(0), map(3)];
    let are_named = (0..1000).any(|_| {
        tables.refresh();
        tables.refresh_maps();
        let bias = |address| Some(tables.mappings().find(address)?.symbols.as_ref()?.bias);
        let in_symbols = |address: u64| bias(address).map(|bias| address.wrapping_sub(bias));
        let known = in_symbols(here);
        known.is_some() && copies.iter().all(|&(copy, ..)| in_symbols(copy) == known)
    });
    assert!(are_named);
    for (_, low, bytes) in copies {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(low, bytes) };
    }
}

/// Regression: only the superuser may follow the kernel's links to deleted files. In services that
/// ran while their libraries were upgraded, these had no names.
#[test]
fn a_deleted_library_has_the_names_of_its_exported_functions() {
    use std::os::unix::ffi::OsStrExt;
    use swipr_symbols::symbolizer::{Budget, Lookup, Symbolizer};
    swipr_unwind::memory::set_process(swipr_os::process::pid() as i32);
    let library = std::env::temp_dir().join(format!("swipr-deleted-{}.so", std::process::id()));
    let source = library.with_extension("c");
    std::fs::write(&source, "int exported(int n) { return n + 1; }").unwrap();
    let flags = ["-shared", "-fPIC", "-s", "-Wl,--build-id", "-o"];
    let status = std::process::Command::new("gcc").args(flags).arg(&library).arg(&source).status();
    assert!(status.unwrap().success());
    let path = std::ffi::CString::new(library.as_os_str().as_bytes()).unwrap();
    // SAFETY: the library has no constructors.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    // SAFETY: the handle is open.
    let function = unsafe { libc::dlsym(handle, c"exported".as_ptr()) } as u64;
    assert_ne!(function, 0);
    for file in [&library, &source] {
        std::fs::remove_file(file).unwrap();
    }
    let mut tables = Tables::new(-1);
    let found = (0..1000).find_map(|_| {
        tables.refresh();
        tables.mappings().find(function)?.symbols.clone()
    });
    let symbols = found.unwrap();
    let key = ObjectKey { links: [].into(), ..symbols.key.clone() };
    let look_up = || Symbolizer::new(Budget::default()).resolve(&key, function - symbols.bias, Lookup::Pc);
    assert_eq!(look_up().iter().map(|symbol| &*symbol.name).collect::<Vec<_>>(), ["exported"]);
    // SAFETY: the handle is open, and nothing of the library is used any more.
    assert_eq!(unsafe { libc::dlclose(handle) }, 0);
    assert!(look_up().is_empty());
}

/// Regression: of a stack that had grown each word was read by a system call of its own, 8 ms a
/// sample of 10,000 frames.
#[test]
fn the_first_threads_stack_is_known_below_where_it_ended() {
    let mut tables = Tables::new(-1);
    tables.refresh();
    let stack = tables.maps.iter().find(|mapping| mapping.path == "[stack]").unwrap();
    let bounds = StackBounds::of_first_thread(stack.low, stack.high);
    assert_eq!(tables.stack_of(stack.low - 4096), Some(bounds));
    let below = tables.maps.iter().rfind(|mapping| mapping.high < stack.low).unwrap();
    assert_ne!(tables.stack_of(below.low), Some(bounds));
}

/// Regression: the JVM protects the lower end of its threads' stacks, and each word of them was
/// read by a system call of its own.
#[test]
fn a_threads_own_stack_is_known_also_with_a_guard_that_the_program_made() {
    swipr_unwind::memory::set_process(swipr_os::process::pid() as i32);
    let of_thread = || {
        let mut tables = Tables::new(-1);
        let local = 0;
        let sp = &raw const local as u64;
        let mut own = || {
            // Other tests map and unmap memory meanwhile, so that a reading may lack a mapping;
            // and they load libraries, so that the loader's list may be locked.
            let bounds = (0..1000).find_map(|_| {
                tables.refresh();
                tables.refresh_maps();
                let pointer = swipr_unwind::arch::thread_pointer();
                let bounds = tables.stack_of_thread(sp, swipr_os::process::tid(), pointer);
                bounds.filter(|bounds| bounds.own_low < bounds.own_high)
            });
            let bounds = bounds.unwrap();
            assert!((bounds.own_low..bounds.own_high).contains(&sp), "{bounds:x?}");
            bounds.own_low
        };
        let low = own();
        // SAFETY: a page at the lower end of this thread's stack, which nothing has reached.
        let protect = |access| unsafe { libc::mprotect(low as *mut libc::c_void, 4096, access) };
        assert_eq!(protect(libc::PROT_NONE), 0);
        assert_eq!(own(), low + 4096);
        assert_eq!(protect(libc::PROT_READ | libc::PROT_WRITE), 0);
    };
    std::thread::spawn(of_thread).join().unwrap();
}
