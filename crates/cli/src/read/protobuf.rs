//! Fields of a protobuf message, one after the other. Not here: what they mean.

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> u64 {
        match self {
            Value::Number(number) => number,
            Value::Bytes(_) => 0,
        }
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Value::Number(_) => &[],
            Value::Bytes(bytes) => bytes,
        }
    }

    /// The numbers of a repeated field, packed or one by one.
    pub(super) fn numbers(self, to: &mut Vec<u64>) -> Result<(), String> {
        match self {
            Value::Number(number) => to.push(number),
            Value::Bytes(mut bytes) => {
                while !bytes.is_empty() {
                    to.push(varint(&mut bytes)?);
                }
            }
        }
        Ok(())
    }
}

/// Calls `each` with every field's number and value.
pub(super) fn fields<'a>(
    mut bytes: &'a [u8],
    mut each: impl FnMut(u64, Value<'a>) -> Result<(), String>,
) -> Result<(), String> {
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)?),
            1 => Value::Bytes(take(&mut bytes, 8)?),
            2 => {
                let length = varint(&mut bytes)?;
                Value::Bytes(take(&mut bytes, usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => Value::Bytes(take(&mut bytes, 4)?),
            other => return Err(format!("it is no pprof profile (a field of wire type {other})")),
        };
        each(key >> 3, value)?;
    }
    Ok(())
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], String> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or("a field is longer than the file")?;
    *bytes = rest;
    Ok(taken)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&first, rest) = bytes.split_first().ok_or("it ends in the middle of a number")?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first < 0x80 {
            return Ok(number);
        }
    }
    Err("a number is too long".to_owned())
}
