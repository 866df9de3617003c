//! The wire format of protocol buffers, as far as a writer needs it: pprof here, OTLP in the
//! command. Not here: which fields a message has.
//!
//! Encoding: a field is a key (number and wire type) and a value, as in the protocol
//! buffers documentation's page on encoding. Fields that are 0 or empty may be left out.

/// A message under construction.
#[derive(Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The message, encoded.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// An unsigned number; 0 is left out.
    pub fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.key(field, 0);
            varint(&mut self.bytes, value);
        }
    }

    /// A signed number of the kind that pprof uses (not zigzag); larger than `i64` is cut.
    pub fn signed(&mut self, field: u32, value: u64) {
        self.number(field, value.min(i64::MAX as u64));
    }

    /// A boolean; false is left out.
    pub fn flag(&mut self, field: u32, value: bool) {
        self.number(field, u64::from(value));
    }

    /// A number of eight bytes, also 0.
    pub fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Text, also when it is empty: an element of a list counts.
    pub fn text(&mut self, field: u32, value: &str) {
        self.block(field, value.as_bytes());
    }

    /// A message inside this one.
    pub fn message(&mut self, field: u32, value: Message) {
        self.block(field, &value.bytes);
    }

    /// A packed list of numbers, zeros included.
    pub fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut list = Vec::new();
        for value in values {
            varint(&mut list, value);
        }
        if !list.is_empty() {
            self.block(field, &list);
        }
    }

    /// Bytes, also none.
    pub fn block(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, 2);
        varint(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        varint(&mut self.bytes, u64::from(field << 3 | wire_type));
    }
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_groups_of_seven_bits() {
        let mut message = Message::new();
        message.number(1, 150);
        message.number(2, 0);
        message.number(16, u64::MAX);
        let mut expected = vec![0x08, 0x96, 0x01, 0x80, 0x01];
        expected.extend([0xff; 9]);
        expected.push(0x01);
        assert_eq!(message.into_bytes(), expected);
    }

    #[test]
    fn lists_and_messages_have_their_length() {
        let mut inner = Message::new();
        inner.packed(3, [3, 270, 0]);
        let mut outer = Message::new();
        outer.message(4, inner);
        outer.text(6, "");
        assert_eq!(outer.into_bytes(), [0x22, 6, 0x1a, 4, 3, 0x8e, 0x02, 0, 0x32, 0]);
    }
}
