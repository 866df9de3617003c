//! Readable names: Rust's (legacy and v0, without the hash) and C++'s. What cannot
//! be demangled within bounds keeps its mangled name. Swift's names are recognized here; only the
//! process's own runtime can demangle them, see [`SwiftDemangler`].
//!
//! C++ names are not given to the process's own `__cxa_demangle`. It recurses as deep as a hostile
//! name says, allocates from the program's heap for each name, and is missing where the C++ library
//! is linked into the program. This demangler has bounds.

use std::fmt::{self, Write};

/// Longer mangled names stay as they are: they are of no use, and demangling may cost far more than
/// their length.
const MAX_MANGLED_BYTES: usize = 4096;
/// Behind the name of a stub is this.
pub(crate) const PLT: &str = "@plt";
/// Back references can make a short name expand without end.
const MAX_READABLE_BYTES: usize = 16 * 1024;
/// Nesting of C++ names; the sampler thread's stack is small.
#[cfg(feature = "cpp")]
const MAX_NESTING: u32 = 96;
/// Ends of lists in a C++ name at which the name itself may end.
#[cfg(feature = "cpp")]
const MAX_ENDS: usize = 64;

/// Whether names are shown as people wrote them or as the linker knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// `core::fmt::write`, `std::vector<int>::push_back(int const&)`.
    #[default]
    Demangled,
    /// `_ZN4core3fmt5write17h...E`.
    Raw,
}

/// Tells the readable form of a name of Swift's, by the runtime that the process has loaded;
/// `None`: there is no runtime, or it does not know the name.
pub type SwiftDemangler = fn(&str) -> Option<String>;

/// How mangled names of Swift begin, the oldest last (Swift's `docs/ABI/Mangling.rst`).
const SWIFT: [&str; 5] = ["$s", "$S", "$e", "_$s", "_T0"];

/// The readable form of a mangled name, which is not empty; `None` when it is not mangled, or not
/// in a way that is understood.
pub fn demangle(name: &str) -> Option<String> {
    if name.len() > MAX_MANGLED_BYTES {
        return None;
    }
    if let Some(target) = name.strip_suffix(PLT) {
        return demangle(target).map(|readable| readable + PLT);
    }
    rust(name).or_else(|| cpp(name)).filter(|readable| !readable.is_empty())
}

/// The readable form of a name that looks like one of Swift's.
pub(crate) fn swift(name: &str, demangler: Option<SwiftDemangler>) -> Option<String> {
    if let Some(target) = name.strip_suffix(PLT) {
        return swift(target, demangler).map(|readable| readable + PLT);
    }
    if name.len() > MAX_MANGLED_BYTES || !is_swift(name) {
        return None;
    }
    demangler?(name).filter(|readable| !readable.is_empty() && readable.len() <= MAX_READABLE_BYTES)
}

fn is_swift(name: &str) -> bool {
    SWIFT.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether this looks like a linker's name of a C++, Rust or Swift function.
pub(crate) fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("___Z") || is_swift(name)
}

fn rust(name: &str) -> Option<String> {
    // Rust's legacy names are C++ names with a hash as their last part.
    if name.starts_with("_Z") && !name.contains("17h") {
        return None;
    }
    let symbol = rustc_demangle::try_demangle(name).ok()?;
    if name.starts_with("_Z") && format!("{symbol}").len() == format!("{symbol:#}").len() {
        return None;
    }
    let mut out = Bounded::default();
    write!(out, "{symbol:#}").ok()?;
    Some(out.0)
}

#[cfg(feature = "cpp")]
fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") && !name.starts_with("___Z") {
        return None;
    }
    whole_cpp(name).or_else(|| cpp_without_types(name))
}

/// A template's name and arguments, without the types of result and parameters: those of
/// `std::swap` and others hold an expression (`enable_if`) that the demangler cannot parse.
#[cfg(feature = "cpp")]
fn cpp_without_types(name: &str) -> Option<String> {
    // Names have their lengths and lists their ends: a part that can be parsed is the whole name.
    let ends = name.match_indices('E').map(|(at, _)| at + 1).take(MAX_ENDS);
    ends.filter_map(|end| name.get(..end)).find_map(whole_cpp)
}

#[cfg(feature = "cpp")]
fn whole_cpp(name: &str) -> Option<String> {
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(MAX_NESTING);
    let symbol = cpp_demangle::Symbol::new_with_options(name, &parse).ok()?;
    let options = cpp_demangle::DemangleOptions::new().recursion_limit(MAX_NESTING);
    let mut out = Bounded::default();
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

#[cfg(not(feature = "cpp"))]
fn cpp(_name: &str) -> Option<String> {
    None
}

/// A string that refuses to grow past [`MAX_READABLE_BYTES`].
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > MAX_READABLE_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_names_lose_their_hash() {
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE").as_deref(), Some("core::fmt::write"));
        assert_eq!(demangle("_RNvNtCs1234_7mycrate3foo3bar").as_deref(), Some("mycrate::foo::bar"));
    }

    #[test]
    #[cfg(feature = "cpp")]
    fn cpp_names_are_what_cpp_filt_prints() {
        for (mangled, readable) in [
            ("_ZN12_GLOBAL__N_14workEi", "(anonymous namespace)::work(int)"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("_ZN3foo3barEv", "foo::bar()"),
            // Of nested names the end was dropped, others stayed as they were.
            ("_ZN3foo3barEv@plt", "foo::bar()@plt"),
            ("_ZdlPvm@plt", "operator delete(void*, unsigned long)@plt"),
        ] {
            assert_eq!(demangle(mangled).as_deref(), Some(readable));
        }
    }

    /// `std::swap` was seen under its linker's name in every profile of programs compiled by GCC.
    #[test]
    #[cfg(feature = "cpp")]
    fn templates_whose_types_cannot_be_parsed_keep_their_names() {
        for (mangled, readable) in [
            (
                "_ZSt4swapI1SENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_move_constructibleI\
                 S5_ESt18is_move_assignableIS5_EEE5valueEvE4typeERS5_SF_",
                "std::swap<S>",
            ),
            (
                "_ZSt4bindIZ4mainEUliE2_JiEENSt12_Bind_helperIXsrSt5__or_IJSt11is_integralINSt5decayIT_E4typeEESt7is_e\
                 numIS7_EEE5valueES5_JDpT0_EE4typeEOS5_DpOSC_",
                "std::bind<main::{lambda(int)#4}, int>",
            ),
        ] {
            assert_eq!(demangle(mangled).as_deref(), Some(readable));
        }
    }

    #[test]
    fn swift_names_are_given_to_the_runtime_and_its_answers_are_bounded() {
        let runtime: Option<SwiftDemangler> = Some(|name| Some(format!("readable {name}")));
        for name in ["$s4main3fooyyF", "$S4main3fooyyF", "_$s4main3fooyyF", "_T04main3fooyyF", "$e4main1fyyF"]
        {
            assert_eq!(swift(name, runtime), Some(format!("readable {name}")));
            assert_eq!((swift(name, None), swift(name, Some(|_| None))), (None, None));
        }
        for name in ["main", "_Z3foov", "s4main", "$x", "_Tail"] {
            assert_eq!(swift(name, runtime), None, "{name}");
        }
        assert_eq!(swift("$s4main3fooyyF", Some(|_| Some(String::new()))), None);
        assert_eq!(swift("$s4main3fooyyF", Some(|_| Some("x".repeat(1 << 20)))), None);
        assert_eq!(swift(&format!("$s{}", "3foo".repeat(5000)), runtime), None);
    }

    #[test]
    fn other_names_are_left_alone() {
        for name in ["main", "_start", "", "_Z", "_R", "_ZZZZZZ", "_ZN", "ZNE", "Z3foov", "_RNvC", "$s4main"]
        {
            assert_eq!(demangle(name), None, "{name}");
        }
    }

    #[test]
    fn names_that_blow_up_are_left_alone() {
        let long = format!("_ZN{}3fooEv", "3foo".repeat(2000));
        assert_eq!(demangle(&long), None);
        let nested = format!("_Z1f{}i", "P".repeat(3000));
        assert_eq!(demangle(&nested), None);
        // Every parameter is a pair of the one before: doubles each time.
        let mut doubling = String::from("_Z1fSt4pairIiiE");
        for n in 0..30 {
            let back = match n {
                0 => "S_".to_owned(),
                n => format!("S{}_", char::from_digit(n - 1, 36).unwrap().to_ascii_uppercase()),
            };
            doubling.push_str(&format!("St4pairI{back}{back}E"));
        }
        assert!(demangle(&doubling).is_none_or(|name| name.len() <= MAX_READABLE_BYTES));
    }
}
