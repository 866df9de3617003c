use super::*;
use std::net::SocketAddr;
use swipr_server::listen::{Identity, Pattern};

fn parse(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::parse(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    })
}

fn main_place(variables: &[(&str, &str)]) -> Place {
    parse(variables).unwrap().places.remove(0)
}

fn tcp(text: &str) -> Place {
    Place::Tcp(text.parse::<SocketAddr>().unwrap())
}

fn path(text: &str) -> Place {
    Place::Path(Pattern::literal(text.as_bytes()))
}

fn identity() -> Identity {
    Identity { pid: 42, uuid: "u-u".to_owned(), hostname: "box".to_owned(), comm: "a/b".to_owned() }
}

#[test]
fn nothing_set_means_the_default_place_and_no_log() {
    let config = parse(&[]).unwrap();
    assert_eq!(config.places, [Place::Default]);
    assert_eq!(config.log, Log::Off);
    assert_eq!(config.token, None);
}

#[test]
fn the_budgets_of_names_are_numbers_within_bounds() {
    let both = |memory, seconds| parse(&[("SWIPR_SYMBOL_MEMORY", memory), ("SWIPR_SYMBOL_SECONDS", seconds)]);
    let budgets = |config: Config| (config.symbol_memory_mib, config.symbol_time.as_secs());
    assert_eq!(both("", "").map(budgets), Ok((64, 20)));
    assert_eq!(both("1024", "0").map(budgets), Ok((1024, 0)));
    for (memory, seconds) in
        [("3", "1"), ("-1", "1"), ("64MiB", "1"), ("+64", "1"), ("64", "86401"), ("64", "1.5")]
    {
        let error = both(memory, seconds).unwrap_err();
        assert!(error.to_string().contains("it must be from"), "{error}");
    }
    // The example was the other variable's.
    let error = both("64", "-1").unwrap_err().to_string();
    assert!(error.ends_with("for example SWIPR_SYMBOL_SECONDS=20"), "{error}");
}

#[test]
fn every_variable_that_is_looked_up_is_in_the_list_and_the_other_way_round() {
    let seen = std::cell::RefCell::new(std::collections::BTreeSet::new());
    Config::parse(|name| {
        seen.borrow_mut().insert(name.to_owned());
        None
    })
    .unwrap();
    let listed = VARIABLES.iter().map(|v| v.name.to_owned()).collect();
    assert_eq!(seen.into_inner(), listed);
}

#[test]
fn places_are_understood() {
    for (variable, value, expected) in [
        ("SWIPR_SOCKET", "/run/x.sock", path("/run/x.sock")),
        ("SWIPR_SAMPLING_SERVER_URL", "unix:///a%20b/c", path("/a b/c")),
        ("SWIPR_SAMPLING_SERVER_URL", "unix:///a/{PID}", path("/a/{PID}")),
        ("PROFILE_RECORDER_SERVER_URL", "UNIX:///a", path("/a")),
        ("PROFILE_RECORDER_SERVER_URL", "http+unix://%2Ftmp%2Fa", path("/tmp/a")),
        ("PROFILE_RECORDER_SERVER_URL", "http+unix://%2Ftmp%2Fa/sample", path("/tmp/a")),
        ("SWIPR_SAMPLING_SERVER_URL_PATTERN", "http+unix:///tmp/a", path("/tmp/a")),
        ("PROFILE_RECORDER_SERVER_URL", "http://127.0.0.1", tcp("127.0.0.1:7377")),
        ("PROFILE_RECORDER_SERVER_URL", "http://localhost:80/", tcp("127.0.0.1:80")),
        ("SWIPR_SAMPLING_SERVER_URL", "http://[::1]:0", tcp("[::1]:0")),
        ("SWIPR_SAMPLING_SERVER_URL", "http://[::1]", tcp("[::1]:7377")),
    ] {
        assert_eq!(main_place(&[(variable, value)]), expected, "{variable}={value}");
    }
}

/// Regression: `SWIPR_SOCKET=app.sock` was made in the root directory.
#[test]
fn a_relative_path_is_one_in_the_current_directory() {
    let expected = std::env::current_dir().unwrap().join("app.sock");
    assert_eq!(main_place(&[("SWIPR_SOCKET", "app.sock")]), path(expected.to_str().unwrap()));
}

#[test]
fn the_first_that_is_set_wins_and_an_empty_one_is_unset() {
    let all = [
        ("SWIPR_SOCKET", "/1"),
        ("SWIPR_SAMPLING_SERVER_URL", "unix:///2"),
        ("PROFILE_RECORDER_SERVER_URL", "unix:///3"),
        ("SWIPR_SAMPLING_SERVER_URL_PATTERN", "unix:///4"),
        ("PROFILE_RECORDER_SERVER_URL_PATTERN", "unix:///5"),
    ];
    for first in 0..all.len() {
        let mut variables = all;
        for (_, value) in &mut variables[..first] {
            *value = "";
        }
        let expected = path(&format!("/{}", first + 1));
        assert_eq!(main_place(&variables), expected);
    }
}

#[test]
fn listen_comes_on_top_of_the_socket() {
    let config = parse(&[("SWIPR_LISTEN", "127.0.0.1:1"), ("SWIPR_SOCKET", "/a")]).unwrap();
    assert_eq!(config.places, [path("/a"), tcp("127.0.0.1:1")]);
    let config = parse(&[("SWIPR_LISTEN", "@swipr-{PID}")]).unwrap();
    let Some(Place::Abstract(name)) = config.places.get(1) else {
        panic!("{:?}", config.places);
    };
    assert_eq!(name.expand(&identity()), b"swipr-42");
}

#[test]
fn placeholders_are_filled_in_and_cannot_choose_a_directory() {
    let pattern = Pattern::parse(b"/x/{PID}-{UUID}/{HOSTNAME}.{COMM}").unwrap();
    assert_eq!(pattern.expand(&identity()), b"/x/42-u-u/box.a_b");
}

#[test]
fn a_path_in_the_wrong_variable_is_told_the_right_one() {
    for path in ["/tmp/socket", "unix:///tmp/socket"] {
        let error = parse(&[("SWIPR_LISTEN", path)]).unwrap_err().to_string();
        assert!(error.contains("belongs in SWIPR_SOCKET"), "{error}");
    }
}

#[test]
fn more_than_loopback_needs_the_switch_and_a_token() {
    let listen = ("SWIPR_LISTEN", "0.0.0.0:7377");
    let any = ("SWIPR_LISTEN_ANY", "1");
    let token = ("SWIPR_TOKEN", "s3cret");
    assert!(parse(&[listen]).is_err());
    assert!(parse(&[listen, token]).is_err());
    assert!(parse(&[listen, any]).is_err());
    let config = parse(&[listen, any, token]).unwrap();
    assert_eq!(config.places.get(1), Some(&tcp("0.0.0.0:7377")));
    assert!(parse(&[("SWIPR_SAMPLING_SERVER_URL", "http://10.0.0.1")]).is_err());
}

#[test]
fn lists_and_choices_are_understood() {
    let config = parse(&[
        ("SWIPR_ALLOW_UID", "1000, 0,65534"),
        ("SWIPR_LOG", "stderr"),
        ("XDG_RUNTIME_DIR", "/run/user/7"),
    ])
    .unwrap();
    assert_eq!(config.allowed_uids, [1000, 0, 65534]);
    assert_eq!(config.log, Log::Stderr);
    assert_eq!(config.runtime_directory, Some(PathBuf::from("/run/user/7")));
}

#[test]
fn wrong_values_are_named_with_a_right_example_that_works() {
    for (variable, value) in [
        ("SWIPR_SOCKET", "@abstract"),
        ("SWIPR_SOCKET", "/tmp/{pid}"),
        ("SWIPR_SOCKET", "/tmp/{PID"),
        ("SWIPR_SAMPLING_SERVER_URL", "/tmp/x"),
        ("SWIPR_SAMPLING_SERVER_URL", "https://127.0.0.1"),
        ("SWIPR_SAMPLING_SERVER_URL", "unix://relative"),
        ("SWIPR_SAMPLING_SERVER_URL", "unix:///%zz"),
        ("SWIPR_SAMPLING_SERVER_URL", "unix:///%0"),
        ("SWIPR_SAMPLING_SERVER_URL", "unix:///a%00b"),
        ("SWIPR_SAMPLING_SERVER_URL_PATTERN", "unix:///{NAME}"),
        ("PROFILE_RECORDER_SERVER_URL", "http+unix://tmp"),
        ("PROFILE_RECORDER_SERVER_URL_PATTERN", "http://example.org"),
        ("SWIPR_LISTEN", "@"),
        ("SWIPR_LISTEN", "127.0.0.1:70000"),
        ("SWIPR_LISTEN", "127.0.0.1:http"),
        ("SWIPR_LISTEN", "127.0.0.1:+1"),
        ("SWIPR_LISTEN", "::1:80"),
        ("SWIPR_LISTEN_ANY", "yes"),
        ("SWIPR_TOKEN", "two words"),
        ("SWIPR_ALLOW_UID", "1000,bob"),
        ("SWIPR_ALLOW_UID", "-1"),
        ("SWIPR_ALLOW_UID", "+5"),
        ("SWIPR_LOG", "loud"),
        ("SWIPR_RUNTIMES", "python,cobol"),
    ] {
        let error = parse(&[(variable, value)]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("{variable}=")), "{text}");
        if variable != "SWIPR_TOKEN" {
            assert!(text.contains(value), "{text}");
        }
        assert!(parse(&[(variable, error.example)]).is_ok(), "{text}");
    }
}

#[test]
fn a_secret_is_not_repeated_in_an_error() {
    let error = parse(&[("SWIPR_TOKEN", "hush hush")]).unwrap_err();
    assert!(!error.to_string().contains("hush"));
}

#[test]
fn a_path_may_be_no_utf_8_but_a_url_must_be() {
    use std::os::unix::ffi::OsStringExt;
    let bad = || OsString::from_vec(b"/tmp/\xff".to_vec());
    let only = |wanted: &'static str| Config::parse(move |name| (name == wanted).then(bad));
    assert!(only("SWIPR_SOCKET").is_ok());
    assert!(only("SWIPR_LISTEN").is_err());
}

#[test]
fn the_table_in_the_documentation_is_the_list() {
    let mut table = String::from("| variable | default | meaning |\n|---|---|---|\n");
    for v in VARIABLES {
        table += &format!("| `{}` | {} | {} |\n", v.name, v.default, v.meaning);
    }
    crate::generated::assert_generated("docs/configuration.md", "variables: generated", &table);
}

/// Regression: the given place switched `SWIPR_LISTEN` off, and its errors named `SWIPR_SOCKET`.
#[test]
fn a_socket_given_by_the_program_goes_before_the_variables_but_for_listen() {
    let variables = [
        ("SWIPR_SOCKET", "/1"),
        ("PROFILE_RECORDER_SERVER_URL", "unix:///2"),
        ("SWIPR_LISTEN", "127.0.0.1:1"),
    ];
    let given = |socket| {
        Config::parse_with_socket(socket, &|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    };
    let places = |socket| given(Some(socket)).unwrap().places;
    let pattern = Pattern::parse(b"/given-{PID}").unwrap();
    assert_eq!(places("/given-{PID}"), [Place::Path(pattern), tcp("127.0.0.1:1")]);
    assert_eq!(places("unix:///given"), [path("/given"), tcp("127.0.0.1:1")]);
    assert_eq!(places("http://localhost:80"), [tcp("127.0.0.1:80"), tcp("127.0.0.1:1")]);
    assert_eq!(places(""), [path("/1"), tcp("127.0.0.1:1")]);
    assert_eq!(given(None), given(Some("")));
    for wrong in ["/tmp/{pid}", "http://1.2.3.4:80", "gopher://x", "@x"] {
        let text = given(Some(wrong)).unwrap_err().to_string();
        assert!(text.starts_with(&format!("cannot use options->socket={wrong}: ")), "{text}");
    }
}
