//! Notes, of which one is the build id.

/// Note type of the build id, under the owner "GNU".
const NT_GNU_BUILD_ID: u32 = 3;

/// Reads the build id from the bytes of a note section or `PT_NOTE` segment.
pub fn build_id_of_notes(notes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = notes;
    loop {
        let (header, after) = rest.split_at_checked(12)?;
        let word = |at: usize| {
            let bytes = header.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let (name_bytes, value_bytes, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let (name, after) = split_padded(after, name_bytes)?;
        // The last value may lack its padding.
        let value = after.get(..value_bytes)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" && !value.is_empty() {
            return Some(value.to_vec());
        }
        rest = split_padded(after, value_bytes)?.1;
    }
}

fn split_padded(bytes: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    Some((bytes.get(..length)?, bytes.get(length.checked_next_multiple_of(4)?..)?))
}
