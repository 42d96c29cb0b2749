//! The header of a stream: the fixed bytes that say how the rest is encoded (`docs/format.md`, 7.1).

use crate::entropy::bitio::Cursor;
use crate::entropy::rans;
use crate::error::{Corrupt, Error, Result, UnsupportedVersion};

/// The version of streams that this library writes and reads.
pub const VERSION: u8 = 1;

/// How the values of a stream are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrangement {
    /// An array of 1 to 4 dimensions.
    Array,
    /// Unit blocks of equal shape.
    Blocks,
    /// Leaf cells of a tree.
    Cells,
}

/// Where the contexts of the entropy coder come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contexts {
    /// The interpolation level alone. Tokens may be coded in groups.
    Level,
    /// The level, and residuals of the row before.
    #[default]
    Row,
    /// The level, and residuals of the plane before.
    Plane,
}

/// How the values of a stream are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Differences, packed with as many bits as the widest of a group has.
    BitPacked,
    /// Residuals of interpolation, entropy coded.
    EntropyCoded(Coding),
}

/// The settings of the entropy coder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coding {
    pub contexts: Contexts,
    /// Whether points in holes between blocks are predicted like all others, with a residual of 0.
    pub predicts_holes: bool,
    /// Tokens of a group: 1 where tokens are coded one by one.
    pub group_size: usize,
    /// Number of rANS states: 8 or 32.
    pub states: usize,
    /// Number of level packets, 1 to 4.
    pub packets: usize,
}

/// What kind of error bound the coded values have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundKind {
    Lossless,
    Absolute,
    /// Absolute, for values of a mapping that makes the bound relative above a floor.
    Mapped,
}

/// The fixed part of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes of a value: 4 (float32) or 8 (float64).
    pub value_size: usize,
    pub arrangement: Arrangement,
    pub bound: BoundKind,
    /// Whether masks say which values have the bits of a fill value.
    pub is_masked: bool,
    /// Whether a minimum is stored, which replaces decoded values below it.
    pub is_clamped: bool,
    pub mode: Mode,
}

const BOUND_SHIFT: u32 = 2;
const MASKED: u8 = 1 << 4;
const CLAMPED: u8 = 1 << 5;

const PREDICTS_HOLES: u8 = 1 << 2;
const GROUP_SIZE_SHIFT: u32 = 3;
const WIDE: u8 = 1 << 5;
const PACKETS_SHIFT: u32 = 6;

impl Header {
    /// The four bytes: version, type, arrangement and mode.
    pub(crate) fn to_bytes(self) -> [u8; 4] {
        let arrangement = match self.arrangement {
            Arrangement::Array => 0,
            Arrangement::Blocks => 1,
            Arrangement::Cells => 2,
        };
        let bound = match self.bound {
            BoundKind::Lossless => 0,
            BoundKind::Absolute => 1,
            BoundKind::Mapped => 2,
        };
        let masked = if self.is_masked { MASKED } else { 0 };
        let clamped = if self.is_clamped { CLAMPED } else { 0 };
        let content = arrangement | bound << BOUND_SHIFT | masked | clamped;
        let mode = match self.mode {
            Mode::BitPacked => 0,
            Mode::EntropyCoded(coding) => coding.to_byte(),
        };
        let value_type = if self.value_size == 4 { 1 } else { 2 };
        [VERSION, value_type, content, mode]
    }

    /// Reads the four bytes.
    ///
    /// # Errors
    /// `UnsupportedVersion`; `ReservedBits` and `Corrupt` where a field has an undefined value, or where
    /// fields contradict each other.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let version = cursor.byte()?;
        if version != VERSION {
            return Err(UnsupportedVersion {
                found: version,
                supported: VERSION,
            });
        }
        let value_size = match cursor.byte()? {
            1 => 4,
            2 => 8,
            _ => {
                return Err(Corrupt(
                    "unknown value type; expected 1 (float32) or 2 (float64)",
                ));
            }
        };
        let content = cursor.byte()?;
        if content >> 6 != 0 {
            return Err(Error::ReservedBits("content", content));
        }
        let header = Self {
            value_size,
            arrangement: match content & 3 {
                0 => Arrangement::Array,
                1 => Arrangement::Blocks,
                2 => Arrangement::Cells,
                _ => {
                    return Err(Corrupt(
                        "unknown arrangement; expected 0 (array), 1 (blocks) or 2 (cells)",
                    ));
                }
            },
            bound: match content >> BOUND_SHIFT & 3 {
                0 => BoundKind::Lossless,
                1 => BoundKind::Absolute,
                2 => BoundKind::Mapped,
                _ => return Err(Error::ReservedBits("content", content)),
            },
            is_masked: content & MASKED != 0,
            is_clamped: content & CLAMPED != 0,
            mode: match cursor.byte()? {
                0 => Mode::BitPacked,
                byte => Mode::EntropyCoded(Coding::from_byte(byte)?),
            },
        };
        header.check()?;
        Ok(header)
    }

    /// Whether the coded values have no error.
    pub(crate) fn is_lossless(&self) -> bool {
        self.bound == BoundKind::Lossless
    }

    fn check(&self) -> Result<()> {
        let Mode::EntropyCoded(coding) = self.mode else {
            if self.arrangement == Arrangement::Array && !self.is_masked {
                return Ok(());
            }
            return Err(Corrupt(
                "a bit-packed stream must be an array without a mask",
            ));
        };
        if coding.contexts == Contexts::Plane && self.is_lossless() {
            return Err(Corrupt("plane contexts do not apply to a lossless stream"));
        }
        if coding.contexts != Contexts::Level && coding.group_size > 1 {
            return Err(Corrupt("token groups require level contexts"));
        }
        if self.arrangement == Arrangement::Cells && coding.packets > 1 {
            return Err(Corrupt("a stream of cells must have one packet"));
        }
        if coding.predicts_holes
            && (self.arrangement != Arrangement::Blocks
                || self.is_lossless()
                || self.is_masked
                || coding.contexts == Contexts::Row)
        {
            return Err(Corrupt(
                "hole prediction applies only to lossy streams of unmasked blocks with level or plane contexts",
            ));
        }
        Ok(())
    }
}

impl Coding {
    fn to_byte(self) -> u8 {
        let contexts = match self.contexts {
            Contexts::Level => 1,
            Contexts::Row => 2,
            Contexts::Plane => 3,
        };
        let holes = if self.predicts_holes {
            PREDICTS_HOLES
        } else {
            0
        };
        let wide = if self.states == rans::WIDE_STATES {
            WIDE
        } else {
            0
        };
        let group_size = (self.group_size as u8 - 1) << GROUP_SIZE_SHIFT;
        contexts | holes | group_size | wide | (self.packets as u8 - 1) << PACKETS_SHIFT
    }

    fn from_byte(byte: u8) -> Result<Self> {
        let contexts = match byte & 3 {
            1 => Contexts::Level,
            2 => Contexts::Row,
            3 => Contexts::Plane,
            _ => return Err(Error::ReservedBits("mode", byte)),
        };
        Ok(Self {
            contexts,
            predicts_holes: byte & PREDICTS_HOLES != 0,
            group_size: usize::from(byte >> GROUP_SIZE_SHIFT & 3) + 1,
            states: if byte & WIDE == 0 {
                rans::STATES
            } else {
                rans::WIDE_STATES
            },
            packets: usize::from(byte >> PACKETS_SHIFT) + 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value of the bytes after the version is refused, or read and written back unchanged.
    #[test]
    fn headers_come_back() {
        let mut accepted = 0;
        for value_type in 0..=3 {
            for (content, mode) in (0..=255).flat_map(|a| (0..=255).map(move |b| (a, b))) {
                let bytes = [VERSION, value_type, content, mode];
                if let Ok(header) = Header::parse(&mut Cursor(&bytes)) {
                    assert_eq!(header.to_bytes(), bytes);
                    accepted += 1;
                }
            }
        }
        // Two types, clamped or not; arrays of three kinds of bounds: 1 bit-packed each. With masks or not, of three
        // layouts, of which two have 1 to 4 packets: levels have 8 modes, rows 2, and planes 2 unless lossless.
        // Holes of bounded blocks without masks: levels 8 more, planes 2 more, with 1 to 4 packets.
        let packets = 1 + 4 + 4;
        let walked = packets * 2 * (3 * (8 + 2) + 2 * 2) + 2 * 4 * (8 + 2);
        assert_eq!(accepted, 2 * 2 * (3 + walked));
    }

    #[test]
    fn other_versions_are_named() {
        let error = Header::parse(&mut Cursor(&[7, 1, 0, 0])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "stream version 7 is not supported; this library reads version 1"
        );
        let error = Header::parse(&mut Cursor(&[1, 1, 0x90, 0])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "reserved bits are set in the header's content byte: 0b10010000"
        );
    }
}
