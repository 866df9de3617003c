//! `include/swipr.h` is what cbindgen makes of `agent/src/ffi.rs`, and every compiler
//! takes it.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// For users of dlsym: a pointer type for each function, `swipr_start` -> `swipr_start_fn`.
fn function_types(header: &str) -> String {
    let mut types = String::from(
        "\n/* Types for what dlsym(3) finds: `swipr_start_fn start = (swipr_start_fn)dlsym(library, \"swipr_start\");` */\n",
    );
    let is_code = |line: &&str| !line.trim_start().starts_with("//") && !line.starts_with('#');
    let code: Vec<&str> = header.lines().filter(is_code).flat_map(str::split_whitespace).collect();
    let code = code.join(" ");
    for statement in code.split(';').map(|statement| statement.trim_start_matches(" extern \"C\" {").trim()) {
        let Some((before, arguments)) = statement.split_once('(') else { continue };
        let Some(at) = before.rfind("swipr_") else { continue };
        let (result, name) = before.split_at(at);
        types += &format!("typedef {result}(*{name}_fn)({arguments};\n");
    }
    types
}

/// `SWIPR_OPTIONS_INIT` for `swipr_options`, and so on: its size, and all else 0 or NULL.
fn initializers(header: &str) -> String {
    let code: Vec<&str> = header.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join(" ");
    let mut macros = String::from("// What variables of options begin with.\n");
    for structure in code.split("typedef struct {").skip(1) {
        let (fields, rest) = structure.split_once('}').unwrap();
        let name = rest.split(';').next().unwrap().trim();
        let mut values = vec![format!("sizeof({name})")];
        let fields: Vec<&str> = fields.split(';').map(str::trim).filter(|field| !field.is_empty()).collect();
        assert_eq!(fields[0], "size_t size", "{name}");
        values.extend(
            fields[1..].iter().map(|field| if field.contains('*') { "NULL" } else { "0" }.to_owned()),
        );
        macros += &format!("#define {}_INIT {{{}}}\n", name.to_uppercase(), values.join(", "));
    }
    macros + "\n"
}

/// `SWIPR_VERSION` and its parts.
fn versions() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut macros = format!(
        "\n// The version of this header; swipr_version() answers the library's.\n#define SWIPR_VERSION \"{version}\"\n"
    );
    for (name, number) in ["MAJOR", "MINOR", "PATCH"].iter().zip(version.split('.')) {
        macros += &format!("#define SWIPR_VERSION_{name} {number}\n");
    }
    macros
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root().join("agent/src/ffi.rs"))
        .generate()
        .unwrap();
    let mut bytes = vec![];
    bindings.write(&mut bytes);
    // Rustdoc's heading for what a caller must see to.
    let header = String::from_utf8(bytes).unwrap().replace("// # Safety", "// Pointers:");
    let end = header.rfind("#ifdef __cplusplus\n}").unwrap();
    let (before, after) = header.split_at(end);
    let (declarations, functions) = before.split_at(before.find("#ifdef __cplusplus\nextern").unwrap());
    let includes = "#include <stdint.h>\n";
    let declarations = declarations.replace(includes, &format!("{includes}{}", versions()));
    let (initializers, types) = (initializers(&declarations), function_types(before));
    format!("{declarations}{initializers}{functions}{types}\n{after}")
}

#[test]
fn the_header_is_what_the_code_says() {
    let path = root().join("include/swipr.h");
    let expected = generated();
    if std::env::var_os("SWIPR_BLESS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "include/swipr.h is out of date; SWIPR_BLESS=1 cargo test rewrites it");
}

#[test]
fn every_exported_function_has_a_type_for_dlsym() {
    let header = std::fs::read_to_string(root().join("include/swipr.h")).unwrap();
    let source = std::fs::read_to_string(root().join("agent/src/ffi.rs")).unwrap();
    let names: Vec<&str> =
        source.split("extern \"C\" fn ").skip(1).map(|rest| rest.split('(').next().unwrap()).collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        assert!(header.contains(&format!("(*{name}_fn)(")), "{name}");
    }
}

fn compile(compiler: &str, arguments: &[&str], text: &str, suffix: &str) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name: String = arguments.concat().chars().filter(char::is_ascii_alphanumeric).collect();
    let source = directory.join(format!("header-{compiler}-{name}.{suffix}"));
    std::fs::write(&source, text).unwrap();
    let output = Command::new(compiler)
        .args(arguments)
        .args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-I"])
        .arg(root().join("include"))
        .arg(&source)
        .output()
        .unwrap_or_else(|error| panic!("{compiler} is needed: {error}"));
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
}

const USE: &str = r#"#include <swipr.h>
#if SWIPR_VERSION_MAJOR == 0 && SWIPR_VERSION_MINOR < 1
#error "older than what is used here"
#endif
int main(void) {
    swipr_options options = SWIPR_OPTIONS_INIT;
    swipr_recording_options of_recording = SWIPR_RECORDING_OPTIONS_INIT;
    swipr_start_fn start = swipr_start;
    const char *header = "header " SWIPR_VERSION;
    of_recording.mode = SWIPR_MODE_CPU;
    swipr_record_to_file_with("a", "folded", 1, &of_recording);
    return start(&options) == SWIPR_OK ? 0 : *swipr_strerror(SWIPR_FAILED) + *header;
}
"#;

#[test]
fn the_header_compiles_as_c99_c11_and_cpp_without_a_warning() {
    compile("cc", &["-std=c99"], USE, "c");
    compile("cc", &["-std=c11"], USE, "c");
    compile("c++", &["-std=c++11"], USE, "cpp");
}

#[test]
fn the_module_map_names_the_header_for_swift_and_clang() {
    let map = std::fs::read_to_string(root().join("include/module.modulemap")).unwrap();
    assert!(
        map.contains("module CSwipr") && map.contains("header \"swipr.h\"") && map.contains("link \"swipr\"")
    );
    if Command::new("clang").arg("--version").output().is_ok() {
        let import = "@import CSwipr;\nint main(void) { return swipr_stop(); }\n";
        let cache = format!("-fmodules-cache-path={}/modules", env!("CARGO_TARGET_TMPDIR"));
        compile("clang", &["-fmodules", &cache, "-x", "objective-c"], import, "m");
    }
}
