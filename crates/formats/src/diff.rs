//! Two recordings side by side: what takes more of the whole than before, and what less. As a flame
//! graph (page or picture) and as text.
//!
//! Recordings are read back from folded stacks. Both wholes count the same, however long each
//! recording was. Not here: other formats, which the command makes folded stacks of.

mod text;

use std::collections::BTreeMap;
use std::fmt;

use crate::Weight;
use crate::category::Class;
use crate::display::DisplayFrame;
use crate::json::{Members, string};
use crate::model::{Measure, State};
use crate::names;
use crate::page_data::{Columns, Numbers};
use crate::picture::{Baseline, Picture};
use crate::svg::{self, Palette, Texts};
use crate::template::Template;

/// Stacks and what they weigh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stacks {
    /// Outermost frame first; of formats that know threads, the thread's name comes before it.
    pub weights: BTreeMap<Vec<String>, u64>,
    /// What they count, where that is known: folded stacks do not say it.
    pub unit: Option<Weight>,
    /// Weights that are no time, where they are not samples.
    pub measure: Option<Measure>,
    /// How many samples of equal weight are as precise; 0: not known.
    pub samples: f64,
}

/// A line that is no folded stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError(String);

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no folded stacks: a line is \"{}\"", names::printable(&self.0))
    }
}

impl std::error::Error for ReadError {}

impl Stacks {
    /// Reads folded stacks: `a;b;c 12`, a line each.
    pub fn read(text: &str) -> Result<Stacks, ReadError> {
        let mut stacks = Stacks::default();
        for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("# "))
        {
            let unknown = || ReadError(line.chars().take(60).collect());
            let (stack, count) = line.rsplit_once(' ').ok_or_else(unknown)?;
            let count: u64 = count.parse().map_err(|_| unknown())?;
            let sum = stacks.weights.entry(stack.split(';').map(str::to_owned).collect()).or_default();
            *sum = sum.saturating_add(count);
        }
        Ok(stacks)
    }

    /// The sum.
    pub fn whole(&self) -> u64 {
        self.weights.values().fold(0, |sum, weight| sum.saturating_add(*weight))
    }

    /// The sum, for people.
    fn whole_text(&self) -> String {
        let time = |ns| format!("{:.3} s", ns as f64 / 1e9);
        match self.unit {
            Some(Weight::Nanoseconds) => names::amount(self.measure.as_ref(), self.whole(), time),
            Some(Weight::Samples) | None => format!("{} samples", self.whole()),
        }
    }
}

/// Two recordings.
#[derive(Clone, Debug)]
pub struct Diff {
    /// The earlier one.
    pub before: Stacks,
    /// The later one.
    pub after: Stacks,
    /// What to write above.
    pub title: String,
}

impl Diff {
    /// Functions by how much their share has changed, at most so many.
    pub fn text(&self, most: usize) -> String {
        text::table(self, most)
    }

    /// A flame graph of the later recording as a picture: red has grown, blue has shrunk.
    pub fn svg(&self) -> String {
        let [after, before] = [&self.after, &self.before].map(Stacks::whole_text);
        let about = format!("after, {after}, compared with {before} before");
        let unit = self.after.unit.unwrap_or(Weight::Samples);
        let texts = Texts {
            title: &self.title,
            about: &about,
            stats: "diff",
            unit,
            measure: self.after.measure.as_ref(),
        };
        svg::drawing(&self.picture(), &texts, Palette::Change)
    }

    /// The same as a page with search and zoom.
    pub fn html(&self) -> String {
        let picture = self.picture();
        let [after, before] = [&self.after, &self.before].map(Stacks::whole_text);
        let info = Members::object()
            .field("title", string(&names::printable(&self.title)))
            .field("still", "true")
            .field("whole", string(&after))
            .field("mode", string("wall"))
            .field("interval_ns", 1)
            .field("stride", 5)
            .field("labels", string(&format!("compared with {before} before")));
        let mut columns = Columns::new();
        let state = columns.state(State::Running) as u64;
        let [now, base] = [Baseline::Now, Baseline::Earlier].map(|side| {
            let mut numbers = Numbers::new();
            for (node, weight) in picture.weights(side) {
                numbers.extend([0, 0, u64::from(node), state, weight]);
            }
            numbers.end()
        });
        let all = crate::model::Thread { tid: 0, name: "all".to_owned() };
        let data = Members::object().field("info", info.end());
        let data =
            columns.add(data, &picture.tree, &[all.into()]).field("spans", now).field("base", base).end();
        Template::File.with(&names::printable(&self.title), &data)
    }

    fn picture(&self) -> Picture {
        let mut picture = Picture::new();
        for (stacks, side) in [(&self.after, Baseline::Now), (&self.before, Baseline::Earlier)] {
            for (stack, weight) in &stacks.weights {
                let frames: Vec<DisplayFrame> =
                    stack.iter().map(|name| DisplayFrame::note(name, class_of(name))).collect();
                picture.add(frames.iter(), *weight, side);
            }
        }
        picture
    }
}

/// Names are all that is known here.
fn class_of(name: &str) -> Class {
    match name {
        _ if name.starts_with("[blocked") || name.starts_with("[waiting") => Class::Waiting,
        _ if name.starts_with('[') => Class::Note,
        _ => Class::Native,
    }
}
