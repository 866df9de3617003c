//! Pages and addresses, shown to the user by the browser that there is.

use std::process::{Command, Stdio};

/// By `$BROWSER`, or by what the desktop prefers. Where there is neither the address was printed.
pub fn open(url: &str) {
    let quiet = |program: &str| {
        Command::new(program)
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    };
    let wanted = std::env::var("BROWSER").unwrap_or_default();
    if wanted.split(':').filter(|program| !program.is_empty()).any(|program| quiet(program).is_ok()) {
        return;
    }
    let has_desktop = std::env::var_os("DISPLAY").is_some() || std::env::var_os("WAYLAND_DISPLAY").is_some();
    if has_desktop || cfg!(target_os = "macos") {
        let _ = ["xdg-open", "open"].iter().find(|program| quiet(program).is_ok());
    }
}
