//! The lattice of a tree's cells: sizes, limits, and coordinates in code length.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::kinds::morton::MAX_BITS;
use crate::numbers::power_of_two;

/// The box, its root cells, and the finest level, whose cells are the unit of the lattice.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeShape {
    /// Dimensions, 1 to 3.
    pub ndim: usize,
    /// Root cells (level 0) per dimension; 1 in unused dimensions.
    pub root: [u64; 3],
    /// Size of the box in x, in code length; root cells are cubes.
    pub boxlen: f64,
    /// The finest level of the cells: the side of a root cell has `2^lattice_level` lattice units.
    pub lattice_level: u8,
}

impl TreeShape {
    /// Checks every property, so that no later arithmetic can overflow.
    ///
    /// # Errors
    /// `Invalid` with the invalid property.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| {
            Err(Error::invalid(format!(
                "a tree of cells cannot have {what}"
            )))
        };
        if !(1..=3).contains(&self.ndim) {
            return wrong(format!("{} dimensions; expected 1 to 3", self.ndim));
        }
        if !(self.boxlen > 0.0 && self.boxlen.is_finite()) {
            return wrong(format!(
                "a box of length {}; expected a finite number > 0",
                self.boxlen
            ));
        }
        let most = (1u64 << MAX_BITS).checked_shr(self.lattice_level.into());
        for (d, &cells) in self.root.iter().enumerate() {
            let most = if d < self.ndim { most.unwrap_or(0) } else { 1 };
            if cells == 0 || cells > most {
                return wrong(format!(
                    "{cells} root cells in dimension {d} at finest level {}; expected 1 to {most}",
                    self.lattice_level
                ));
            }
        }
        Ok(())
    }

    /// Side of a cell of `level`, in code length.
    pub fn cell_size(&self, level: u8) -> f64 {
        self.boxlen / self.root[0] as f64 * power_of_two(-i32::from(level))
    }

    /// Cells of `level` per dimension of the whole box; 1 in unused dimensions.
    pub fn cells_at(&self, level: u8) -> [u64; 3] {
        std::array::from_fn(|d| {
            if d < self.ndim {
                self.root[d] << level
            } else {
                1
            }
        })
    }

    /// Size of the box per dimension, in code length; 0 in unused dimensions.
    pub fn size(&self) -> [f64; 3] {
        let root = self.cell_size(0);
        std::array::from_fn(|d| {
            if d < self.ndim {
                self.root[d] as f64 * root
            } else {
                0.0
            }
        })
    }

    /// Lattice units per dimension.
    pub(crate) fn extent(&self) -> [u64; 3] {
        self.cells_at(self.lattice_level)
    }

    /// The key after the last one of the curve through the smallest cube of a power of two that contains the
    /// lattice.
    pub(crate) fn curve_end(&self) -> u128 {
        let longest = self.extent().into_iter().max().unwrap_or(1);
        1 << (longest.next_power_of_two().trailing_zeros() as usize * self.ndim)
    }

    /// Half a lattice unit in code length: the unit of `Centres`.
    pub(crate) fn half_unit(&self) -> f64 {
        self.cell_size(self.lattice_level) / 2.0
    }

    /// Checks that `level` exists on lattices of this root. Covering grids can be finer than the finest cell.
    pub(crate) fn check_level(&self, level: u8) -> Result<()> {
        let finest = (0..=MAX_BITS as u8)
            .rev()
            .find(|l| self.root.iter().all(|r| *r <= 1 << (MAX_BITS as u8 - l)));
        match finest {
            Some(finest) if level <= finest => Ok(()),
            _ => Err(Error::invalid(format!(
                "level {level} is too fine; the finest level of cells is {}, of grids {}",
                self.lattice_level,
                finest.unwrap_or(0)
            ))),
        }
    }

    /// Adds its properties to the attributes of a group.
    pub(crate) fn to_json(&self, attributes: &mut serde_json::Map<String, Value>) {
        attributes.insert("ndim".into(), json!(self.ndim));
        attributes.insert("root".into(), json!(&self.root[..self.ndim]));
        attributes.insert("lattice_level".into(), json!(self.lattice_level));
        attributes.insert("boxlen".into(), json!(self.boxlen));
    }

    /// The shape that the attributes of a group describe.
    pub(crate) fn from_json(attributes: &Value) -> Result<Self> {
        let missing = |what: &str| {
            Error::corrupt(format!(
                "the attribute {what:?} of the tree is missing or not a number in range; \
                 restore the file from a copy"
            ))
        };
        let number = |name: &str| attributes.get(name).and_then(Value::as_u64);
        let ndim = number("ndim").filter(|n| (1..=3).contains(n));
        let ndim = ndim.ok_or_else(|| missing("ndim"))? as usize;
        let level = number("lattice_level").and_then(|level| u8::try_from(level).ok());
        let cells = attributes.get("root").and_then(Value::as_array);
        let cells = cells.filter(|cells| cells.len() == ndim);
        let mut root = [1; 3];
        for (to, value) in root.iter_mut().zip(cells.ok_or_else(|| missing("root"))?) {
            *to = value.as_u64().ok_or_else(|| missing("root"))?;
        }
        let shape = Self {
            ndim,
            root,
            boxlen: attributes
                .get("boxlen")
                .and_then(Value::as_f64)
                .ok_or_else(|| missing("boxlen"))?,
            lattice_level: level.ok_or_else(|| missing("lattice_level"))?,
        };
        shape
            .check()
            .map_err(|error| Error::corrupt(error.message()))?;
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(ndim: usize, root: [u64; 3], lattice_level: u8) -> TreeShape {
        TreeShape {
            ndim,
            root,
            boxlen: 2.0,
            lattice_level,
        }
    }

    #[test]
    fn shapes_round_trip_through_attributes() {
        let shape = shape(2, [3, 5, 1], 30);
        let mut attributes = serde_json::Map::new();
        shape.to_json(&mut attributes);
        let json = Value::Object(attributes);
        assert_eq!(TreeShape::from_json(&json).unwrap(), shape);
        for name in ["ndim", "root", "lattice_level", "boxlen"] {
            let mut broken = json.clone();
            broken[name] = json!(-1);
            assert!(TreeShape::from_json(&broken).is_err(), "{name}");
        }
    }

    #[test]
    fn shapes_that_overflow_are_errors() {
        assert!(shape(3, [1; 3], 42).check().is_ok());
        assert!(shape(3, [2, 1, 1], 42).check().is_err());
        assert!(shape(3, [1; 3], 43).check().is_err());
        assert!(shape(1, [1; 3], 255).check().is_err());
        assert!(shape(3, [1, 0, 1], 3).check().is_err());
        assert!(shape(2, [1, 1, 2], 3).check().is_err());
        assert!(shape(0, [1; 3], 3).check().is_err());
        assert!(shape(4, [1; 3], 3).check().is_err());
        let mut flat = shape(1, [1; 3], 3);
        flat.boxlen = f64::NAN;
        assert!(flat.check().is_err());
        assert!(shape(1, [4, 1, 1], 3).check_level(40).is_ok());
        assert!(shape(1, [4, 1, 1], 3).check_level(41).is_err());
    }

    #[test]
    fn sizes_of_boxes_and_cells() {
        let shape = shape(2, [4, 2, 1], 3);
        assert_eq!(shape.cell_size(0), 0.5);
        assert_eq!(shape.cell_size(3), 0.0625);
        assert_eq!(shape.size(), [2.0, 1.0, 0.0]);
        assert_eq!(shape.cells_at(1), [8, 4, 1]);
        assert_eq!(shape.curve_end(), 32 * 32);
    }
}
