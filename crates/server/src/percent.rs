//! Percent-encoding and query strings (RFC 3986; `+` is a blank in queries).

/// `%41` becomes `A`. `None` where a `%` is not followed by two hexadecimal digits.
pub fn percent_decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'%' {
            let digit = |b: &u8| char::from(*b).to_digit(16);
            let high = bytes.next().and_then(digit)?;
            let low = bytes.next().and_then(digit)?;
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(*byte);
        }
    }
    Some(out)
}

/// Names and values of a query, decoded, in order; or the piece that is not UTF-8 or
/// not percent-encoded.
pub(crate) fn query(text: &str) -> Result<Vec<(String, String)>, String> {
    let piece = |text: &str| {
        let bytes: Vec<u8> = text.bytes().map(|b| if b == b'+' { b' ' } else { b }).collect();
        percent_decode(&bytes).and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| text.to_owned())
    };
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((piece(name)?, piece(value)?))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    #[test]
    fn queries_are_decoded() {
        let pairs = query("a=1&&b=x%20y+z&c&d=%3D").unwrap();
        let expected = [("a", "1"), ("b", "x y z"), ("c", ""), ("d", "=")];
        assert_eq!(pairs.len(), expected.len());
        for ((name, value), expected) in pairs.iter().zip(expected) {
            assert_eq!((name.as_str(), value.as_str()), expected);
        }
        for bad in ["a=%", "a=%4", "a=%zz", "a=%ff", "%=1"] {
            assert!(query(bad).is_err(), "{bad}");
        }
    }

    fn encoded(text: &str) -> String {
        text.bytes().map(|byte| format!("%{byte:02X}")).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn any_names_and_values_come_back(pairs in prop::collection::vec((any::<String>(), any::<String>()), 1..5)) {
            let text: Vec<String> = pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
            prop_assert_eq!(query(&text.join("&")), Ok(pairs));
        }

        #[test]
        fn what_needs_no_encoding_is_itself(text in "[a-zA-Z0-9._~/^$-]*") {
            prop_assert_eq!(percent_decode(text.as_bytes()), Some(text.into_bytes()));
        }
    }
}
