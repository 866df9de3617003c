//! Percentiles, spreads and tables in Markdown.

use std::fmt::Write;

/// Measured values of one kind.
#[derive(Clone, Debug, Default)]
pub struct Series {
    values: Vec<f64>,
}

impl Series {
    /// Adds a value; what is not a number is left out.
    pub fn push(&mut self, value: f64) {
        if !value.is_nan() {
            self.values.push(value);
        }
    }

    /// Takes over all values of `other`.
    pub fn extend(&mut self, other: &Series) {
        self.values.extend_from_slice(&other.values);
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value below which a `part` (0 to 1) of the others lies; not a number if there are none.
    pub fn percentile(&self, part: f64) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let at = (sorted.len().saturating_sub(1) as f64 * part).round() as usize;
        sorted.get(at).copied().unwrap_or(f64::NAN)
    }

    /// The middle value.
    pub fn median(&self) -> f64 {
        self.percentile(0.5)
    }

    /// Between which values the true median lies with 95 % confidence or more, by the order of the
    /// values alone. Fewer than six values do not allow so much: then all of them, which is less.
    pub fn median_interval(&self) -> (f64, f64) {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let outside = values_outside(sorted.len());
        let value = |at: Option<usize>| at.and_then(|at| sorted.get(at)).copied().unwrap_or(f64::NAN);
        (value(Some(outside)), value(sorted.len().checked_sub(1 + outside)))
    }

    /// [`Series::median_interval`] as text, with so many digits behind the point.
    pub fn interval(&self, digits: usize) -> String {
        let (low, high) = self.median_interval();
        format!("{low:.digits$}–{high:.digits$}")
    }

    /// `smallest–largest`, with so many digits behind the point.
    pub fn spread(&self, digits: usize) -> String {
        format!("{:.digits$}–{:.digits$}", self.percentile(0.0), self.percentile(1.0))
    }
}

/// How many of so many values to leave out on either side, so that the median of what they are
/// drawn from lies between the others with 95 % confidence: it is below the next one 1 time in 40
/// at the most, as often as a fair coin shows no more heads than were left out.
fn values_outside(count: usize) -> usize {
    let (mut heads, mut chance) = (0usize, 0.0);
    let mut exactly = -(count as f64) * std::f64::consts::LN_2;
    loop {
        chance += exactly.exp();
        if chance > 0.025 {
            return heads.saturating_sub(1);
        }
        exactly += ((count - heads) as f64).ln() - ((heads + 1) as f64).ln();
        heads += 1;
    }
}

impl FromIterator<f64> for Series {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Series {
        let mut series = Series::default();
        values.into_iter().for_each(|value| series.push(value));
        series
    }
}

/// A table in Markdown, its columns as wide as their widest cell.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Table {
        Table { rows: vec![headings.iter().map(|heading| heading.to_string()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The finished text.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            for (column, &width) in widths.iter().enumerate() {
                let _ = write!(text, "| {:width$} ", cell(row, column));
            }
            text.push_str("|\n");
            if number == 0 {
                widths.iter().for_each(|width| text.push_str(&format!("|{}", "-".repeat(width + 2))));
                text.push_str("|\n");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let series: Series = [5.0, 1.0, f64::NAN, 3.0, 2.0, 4.0].into_iter().collect();
        assert_eq!(series.len(), 5);
        assert_eq!((series.percentile(0.0), series.median(), series.percentile(1.0)), (1.0, 3.0, 5.0));
        assert_eq!(series.percentile(0.9), 5.0);
        assert_eq!(series.spread(1), "1.0–5.0");
        assert!(Series::default().median().is_nan());
    }

    #[test]
    fn a_percentile_is_between_its_neighbours_whatever_the_order() {
        let series: Series = (0..=200).rev().map(f64::from).collect();
        assert_eq!((series.percentile(0.99), series.percentile(0.5)), (198.0, 100.0));
        assert_eq!([7.0].into_iter().collect::<Series>().percentile(0.99), 7.0);
    }

    #[test]
    fn the_medians_interval_is_that_of_a_fair_coin() {
        let series = |count: u32| (1..=count).map(f64::from).collect::<Series>().median_interval();
        // As in tables of the sign test: with six values the least and the largest, with ten the
        // second of each side.
        assert_eq!((series(6), series(8), series(9)), ((1.0, 6.0), (1.0, 8.0), (2.0, 8.0)));
        assert_eq!((series(10), series(20), series(100)), ((2.0, 9.0), (6.0, 15.0), (40.0, 61.0)));
        // 1.96 standard deviations from the half, to one value.
        assert_eq!((series(2000), series(10_000)), ((956.0, 1045.0), (4902.0, 5099.0)));
    }

    #[test]
    fn few_values_have_an_interval_from_the_least_to_the_largest() {
        let series: Series = [3.0, 1.0, 2.0].into_iter().collect();
        assert_eq!((series.median_interval(), series.interval(1).as_str()), ((1.0, 3.0), "1.0–3.0"));
        assert!(Series::default().median_interval().0.is_nan());
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["what", "ns"]);
        table.row(vec!["bare signal".into(), "2193".into()]);
        table.row(vec!["–".into()]);
        assert_eq!(
            table.text(),
            "| what        | ns   |\n|-------------|------|\n| bare signal | 2193 |\n| –           |      |\n"
        );
    }
}
