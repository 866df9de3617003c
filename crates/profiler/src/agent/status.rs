//! `/status`: what the agent is doing, and what it lost, as one JSON object.

use super::figures::{FIGURES, Snapshot};
use serde_json::{Map, Value};

/// The whole object.
pub fn json(now: &Snapshot<'_>) -> Value {
    let mut status = Map::new();
    for figure in FIGURES {
        let value = (figure.value)(now);
        match figure.at.split_once('/') {
            None => _ = status.insert(figure.at.to_owned(), value),
            Some((group, name)) => {
                let group = status.entry(group).or_insert_with(|| Map::new().into());
                group.as_object_mut().and_then(|group| group.insert(name.to_owned(), value));
            }
        }
    }
    status.into()
}
