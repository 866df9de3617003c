//! The values of placeholders in this process, found without opening a file.

use nix::sys::prctl;
use nix::unistd::gethostname;

/// What placeholders represent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `{PID}`: as the process itself sees it.
    pub pid: u32,
    /// `{UUID}`: random, new for every process.
    pub uuid: String,
    /// `{HOSTNAME}`.
    pub hostname: String,
    /// `{COMM}`: the calling thread's name, which at start is the program's.
    pub comm: String,
}

impl Identity {
    /// This process's.
    pub fn of_this_process() -> Identity {
        let hostname = gethostname().unwrap_or_default().to_string_lossy().into_owned();
        let comm = prctl::get_name().unwrap_or_default().to_string_lossy().into_owned();
        Identity { pid: std::process::id(), uuid: uuid(), hostname, comm }
    }
}

/// A random UUID (RFC 9562, version 4).
fn uuid() -> String {
    let mut random = [0u8; 16];
    // SAFETY: getrandom(2) writes at most 16 bytes. GRND_NONBLOCK: early at boot it
    // may have nothing to give, and then we do not wait for it.
    unsafe { libc::getrandom(random.as_mut_ptr().cast(), 16, libc::GRND_NONBLOCK) };
    let mut bits = u128::from_be_bytes(random);
    if bits == 0 {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        bits = now.as_nanos() << 32 | u128::from(std::process::id());
    }
    bits = bits & !(0xf << 76) | 4 << 76;
    bits = bits & !(0b11 << 62) | 0b10 << 62;
    let hex = format!("{bits:032x}");
    let mut uuid = String::new();
    for (index, digit) in hex.chars().enumerate() {
        if [8, 12, 16, 20].contains(&index) {
            uuid.push('-');
        }
        uuid.push(digit);
    }
    uuid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_itself_and_its_uuid_is_new_each_time() {
        let one = Identity::of_this_process();
        assert_eq!(one.pid, std::process::id());
        assert!(!one.hostname.is_empty());
        assert!(!one.comm.is_empty());
        assert_eq!(one.uuid.len(), 36);
        assert_eq!(one.uuid.chars().nth(14), Some('4'));
        assert_ne!(one.uuid, Identity::of_this_process().uuid);
    }
}
