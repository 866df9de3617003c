//! Environment variables of swipr's that are misspelt: an agent does not see them.

/// Those that there are; `docs/configuration.md` describes them, and `SWIPR_LIBRARY` is in
/// `docs/cli.md`.
const KNOWN: [&str; 19] = [
    "SWIPR_SOCKET",
    "SWIPR_SAMPLING_SERVER_URL",
    "SWIPR_SAMPLING_SERVER_URL_PATTERN",
    "SWIPR_LISTEN",
    "SWIPR_LISTEN_ANY",
    "SWIPR_TOKEN",
    "SWIPR_ALLOW_UID",
    "SWIPR_RUNTIMES",
    "SWIPR_FOLLOW",
    "SWIPR_ONLY",
    "SWIPR_SKIP",
    "SWIPR_CONTINUOUS",
    "SWIPR_OUTPUT",
    "SWIPR_RECORDER",
    "SWIPR_SYMBOL_MEMORY",
    "SWIPR_SYMBOL_SECONDS",
    "SWIPR_LOG",
    "SWIPR_AUTOSTART",
    "SWIPR_LIBRARY",
];
/// More different letters are another word: Kubernetes makes variables of its own for a service
/// whose name is swipr.
const MAX_DISTANCE: usize = 2;
/// What a misspelt name begins with: SWIFT_LOG is another program's.
const PREFIX: &str = "SWIP";

/// What to say of each variable whose name is nearly one of those that there are.
pub fn misspelt(names: impl Iterator<Item = String>) -> Vec<String> {
    let nearest = |name: &str| {
        let distances = KNOWN.iter().map(|known| (strsim::osa_distance(name, known), *known));
        distances.min().filter(|&(distance, _)| (1..=MAX_DISTANCE).contains(&distance))
    };
    names
        .filter(|name| name.starts_with(PREFIX))
        .filter_map(|name| Some(format!("there is no variable {name}: {} is", nearest(&name)?.1)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_told_and_others_are_left_alone() {
        let said = |name: &str| misspelt([name.to_owned()].into_iter());
        assert_eq!(said("SWIPR_CONTINOUS"), ["there is no variable SWIPR_CONTINOUS: SWIPR_CONTINUOUS is"]);
        assert_eq!(said("SWIPR_OUPTUT").len(), 1);
        for right in
            ["SWIPR_OUTPUT", "SWIPR_SERVICE_HOST", "SWIPR_PORT", "SWIPR_TEST_LIBRARY", "SWIFT_LOG", "PATH"]
        {
            assert!(said(right).is_empty(), "{right}");
        }
    }

    #[test]
    fn the_known_ones_are_those_of_the_documents() {
        let text = include_str!("../../../docs/configuration.md");
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let mut documented: Vec<&str> = rows.filter(|name| name.starts_with("SWIPR_")).collect();
        documented.push("SWIPR_LIBRARY");
        assert_eq!(KNOWN.to_vec(), documented);
    }
}
