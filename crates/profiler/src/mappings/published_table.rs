//! An unwind table at an address that handlers may keep until its owners were retired.

use std::ops::Range;
use swipr_symbols::table::OwnedTable;
use swipr_unwind::published::{self, Object};

/// An unwind table that handlers may read.
#[derive(Debug)]
pub struct PublishedTable {
    text: Range<u64>,
    frame_header: u64,
    table: *mut OwnedTable,
}

// SAFETY: an owned pointer to data that is only read.
unsafe impl Send for PublishedTable {}
// SAFETY: as above.
unsafe impl Sync for PublishedTable {}

impl PublishedTable {
    /// The table of the code in `text`; `frame_header` as in [`Object::frame_header`].
    pub fn new(table: OwnedTable, text: Range<u64>, frame_header: u64) -> PublishedTable {
        PublishedTable { text, frame_header, table: Box::into_raw(Box::new(table)) }
    }

    /// The code.
    pub fn text(&self) -> &Range<u64> {
        &self.text
    }

    /// Its rules.
    pub fn table(&self) -> &OwnedTable {
        // SAFETY: valid as long as `self`.
        unsafe { &*self.table }
    }

    /// For a snapshot, which keeps this table alive.
    pub fn published(&self) -> Object<'static> {
        // SAFETY: the table stays where it is until this is dropped; the snapshot that the object
        // goes into holds this.
        let table: &'static OwnedTable = unsafe { &*self.table };
        let text = published::Range { low: self.text.start, high: self.text.end };
        Object { text, table: table.view(), frame_header: self.frame_header }
    }
}

impl Drop for PublishedTable {
    fn drop(&mut self) {
        // SAFETY: made by Box::into_raw in `new`, freed once; `Publication` drops owners only
        // when no handler can read the table.
        drop(unsafe { Box::from_raw(self.table) });
    }
}
