//! What handlers unwind an object's code with, at an address that they may keep until its owners
//! were retired.

use super::reader::UnwindSections;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use swipr_symbols::table::OwnedTable;
use swipr_unwind::published::{self, Object};
use swipr_unwind::sections::TableDemand;
use swipr_unwind::table::Table;

/// Reading one rule takes as long as building the table of so many functions: 1.5 to 3.4 µs, and
/// 0.5 to 0.7 µs a function.
const FUNCTIONS_A_READ: usize = 3;
/// After fewer reads no table is built: handlers get new ones with all others.
const FEW_READS: usize = 64;

/// An unwind table that handlers may read, or what they read as long as there is none.
#[derive(Debug)]
pub struct UnwindInfo {
    text: Range<u64>,
    frame_header: u64,
    /// Shared by the pieces of a table.
    content: Arc<Content>,
}

#[derive(Debug)]
enum Content {
    Table(OwnedTable),
    Sections { sections: UnwindSections, demand: TableDemand, any_wanted: Arc<AtomicBool> },
}

impl UnwindInfo {
    /// The table of the code in `text`; `frame_header` as in [`Object::frame_header`].
    pub fn new(table: OwnedTable, text: Range<u64>, frame_header: u64) -> UnwindInfo {
        UnwindInfo::with(Content::Table(table), text, frame_header)
    }

    /// The code in `text` has no table yet; `any_wanted` is set once it wants one.
    pub fn without_table(
        sections: UnwindSections,
        text: Range<u64>,
        frame_header: u64,
        any_wanted: &Arc<AtomicBool>,
    ) -> UnwindInfo {
        let table_cost = FEW_READS.max(sections.functions() / FUNCTIONS_A_READ);
        let demand = TableDemand::new(table_cost.try_into().unwrap_or(u32::MAX));
        let content = Content::Sections { sections, demand, any_wanted: any_wanted.clone() };
        UnwindInfo::with(content, text, frame_header)
    }

    fn with(content: Content, text: Range<u64>, frame_header: u64) -> UnwindInfo {
        UnwindInfo { text, frame_header, content: Arc::new(content) }
    }

    /// The same for a part of the code.
    pub fn piece(&self, text: Range<u64>) -> UnwindInfo {
        UnwindInfo { text, frame_header: self.frame_header, content: Arc::clone(&self.content) }
    }

    /// The code.
    pub fn text(&self) -> &Range<u64> {
        &self.text
    }

    /// The same for all pieces of a table.
    pub fn content_address(&self) -> usize {
        Arc::as_ptr(&self.content).addr()
    }

    fn content(&self) -> &Content {
        &self.content
    }

    /// Its rules, if there is a table.
    pub fn table(&self) -> Option<&OwnedTable> {
        match self.content() {
            Content::Table(table) => Some(table),
            Content::Sections { .. } => None,
        }
    }

    /// Whether it has no table and is to have one.
    pub fn wants_table(&self) -> bool {
        matches!(self.content(), Content::Sections { demand, .. } if demand.is_wanted())
    }

    /// Its memory.
    pub fn bytes(&self) -> usize {
        match self.content() {
            Content::Table(table) => table.bytes(),
            Content::Sections { sections, .. } => sections.bytes(),
        }
    }

    /// For a snapshot, which keeps this table alive.
    pub fn published(&self) -> Object<'static> {
        // SAFETY: the table stays where it is until this is dropped; the snapshot that the object
        // goes into holds this, until no handler can read it.
        let content: &'static Content = unsafe { &*Arc::as_ptr(&self.content) };
        let text = published::Range { low: self.text.start, high: self.text.end };
        let (table, sections) = match content {
            Content::Table(table) => (table.view(), None),
            Content::Sections { sections, demand, any_wanted } => {
                (Table::EMPTY, Some(sections.view(demand, any_wanted)))
            }
        };
        Object { text, table, sections, frame_header: self.frame_header }
    }
}
