//! What a method's class is called.

use super::objects::{CLASS, MODULE, Object};
use super::{RubyWalk, functions::MAX_NAME};
use crate::content::Piece;
use crate::room::End;

/// Variables of a class that are looked through.
const MAX_VARIABLES: u64 = 512;
/// Where an object's flags have the number of its shape; that of no shape.
const SHAPE: u32 = 32;
const NO_SHAPE: u32 = u32::MAX;

/// The class before a method's name.
#[derive(Clone, Copy)]
pub(super) struct ClassName {
    /// The class, and what stands between it and the method.
    pub(super) pieces: [Piece; 2],
    /// It may get a name later.
    pub(super) is_anonymous: bool,
}

impl ClassName {
    pub(super) const NONE: ClassName =
        ClassName { pieces: [Piece::Text(b""), Piece::Text(b"")], is_anonymous: false };
}

impl RubyWalk<'_, '_, '_> {
    /// The class that has a method: `A#`, or `A.` if it is a method of the class itself.
    pub(super) fn class_of_method(&mut self, method: u64) -> Result<ClassName, End> {
        let owner = self.word(method, self.row.method_owner)?;
        let owner = self.object(owner)?;
        let is_class = |object: Object| matches!(object.kind(), CLASS | MODULE);
        if !is_class(owner) {
            return Err(End::Inconsistent);
        }
        let is_singleton = owner.kind() == CLASS && owner.flags & u64::from(self.row.flag_singleton) != 0;
        let (class, between): (Object, &[u8]) = match is_singleton {
            false => (owner, b"#"),
            true => {
                let attached = self.attached(owner)?;
                if attached & 7 != 0 || Self::is_none(attached) {
                    return Ok(ClassName::NONE);
                }
                (self.object(attached)?, b".")
            }
        };
        if !is_class(class) {
            return Ok(ClassName::NONE);
        }
        match self.class_path(class)? {
            path if Self::is_none(path) => Ok(ClassName { is_anonymous: true, ..ClassName::NONE }),
            path => {
                let pieces = [self.string(path, MAX_NAME)?, Piece::Text(between)];
                Ok(ClassName { pieces, is_anonymous: false })
            }
        }
    }

    pub(super) fn class_path(&mut self, class: Object) -> Result<u64, End> {
        match self.row.class_path {
            0 => self.class_variable(class, self.layout.id_class_path),
            at => self.word(class.at, at),
        }
    }

    /// What a singleton class is of.
    fn attached(&mut self, class: Object) -> Result<u64, End> {
        match self.row.class_attached {
            0 => self.class_variable(class, self.row.id_attached.into()),
            at => self.word(class.at, at),
        }
    }

    /// 0: there is none.
    pub(super) fn class_variable(&mut self, class: Object, id: u64) -> Result<u64, End> {
        let row = self.row;
        if row.shape_bytes != 0 {
            return self.variable_by_shape(class, id);
        }
        let extra = self.word(class.at, row.class_extra)?;
        let table = if extra == 0 { 0 } else { self.word(extra, row.class_variables)? };
        if table == 0 {
            return Ok(0);
        }
        let (start, end) = (self.word(table, row.table_start)?, self.word(table, row.table_end)?);
        let entries = self.word(table, row.table_entries)?;
        for number in start..end.min(start.saturating_add(MAX_VARIABLES)) {
            let entry = entries.wrapping_add(number.wrapping_mul(row.entry_bytes.into()));
            if self.word(entry, row.entry_key)? == id {
                return self.word(entry, row.entry_value);
            }
        }
        Ok(0)
    }

    /// The same, by the class's shape: each has one variable more than the one before it, its last.
    fn variable_by_shape(&mut self, class: Object, id: u64) -> Result<u64, End> {
        let row = self.row;
        let machine = self.word(self.layout.machine, 0)?;
        let shapes = self.word(machine, row.machine_shapes)?;
        let mut number = (class.flags >> SHAPE) as u32;
        for _ in 0..MAX_VARIABLES {
            if number == NO_SHAPE {
                break;
            }
            let shape = shapes.wrapping_add(u64::from(number) * u64::from(row.shape_bytes));
            if self.word(shape, row.shape_name)? == id {
                let count = self.half(shape, row.shape_count)?;
                let before = count.checked_sub(1).ok_or(End::Inconsistent)?;
                let variables = self.word(class.at, row.class_variables)?;
                return self.word(variables.wrapping_add(8 * u64::from(before)), 0);
            }
            number = self.half(shape, row.shape_parent)?;
        }
        Ok(0)
    }
}
