//! The header of a stream: four bytes that state how the rest is encoded (`docs/format.md`, 7.1).

use crate::domain::blocks;
use crate::entropy::bitio::Cursor;
use crate::entropy::rans;
use crate::entropy::token_groups::TokenCoder;
use crate::error::{Error, Result, corrupt};

/// The version of streams that this library writes and reads.
pub const VERSION: u8 = 1;

/// The layout of the values, without its lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrangement {
    /// An array of 1 to 4 dimensions.
    Array,
    /// Unit blocks of equal shape.
    Blocks,
    /// Leaf cells of a tree.
    Cells,
}

/// The source of the contexts of the entropy coder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contexts {
    /// The interpolation level. Tokens may be coded in groups.
    Level,
    /// Residuals nearby, up to the row before.
    #[default]
    Row,
    /// Residuals nearby, up to the plane before, so that all contexts of a batch of rows are known in advance.
    Plane,
}

/// How the values of a stream are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Differences, packed with the bit width of the widest of a group.
    BitPacked,
    /// Residuals of interpolation, entropy-coded.
    EntropyCoded(Coding),
}

/// The parameters of the entropy coder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coding {
    pub contexts: Contexts,
    /// Whether points in holes between blocks are predicted like other points, with residuals of 0.
    pub predicts_holes: bool,
    /// Tokens of a group; 1 if tokens are coded one by one.
    pub group_size: usize,
    pub coder: TokenCoder,
    /// Number of level packets, 1 to 4.
    pub packets: usize,
}

/// The kind of error bound of the coded values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundKind {
    Lossless,
    Absolute,
    /// Absolute for mapped values, which makes the bound of the values relative above a floor.
    Mapped,
}

/// The fixed part of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes of a value: 4 (float32) or 8 (float64).
    pub value_size: usize,
    pub arrangement: Arrangement,
    pub bound: BoundKind,
    /// Whether masks state which values equal a fill value.
    pub is_masked: bool,
    /// Whether a minimum is stored, which replaces smaller decoded values.
    pub is_clamped: bool,
    /// Whether the values are components, which are coded one after another.
    pub has_components: bool,
    pub mode: Mode,
}

const BOUND_SHIFT: u32 = 2;
const MASKED: u8 = 1 << 4;
const CLAMPED: u8 = 1 << 5;
const COMPONENTS: u8 = 1 << 6;

const PREDICTS_HOLES: u8 = 1 << 2;
const GROUP_SIZE_SHIFT: u32 = 3;
const WIDE: u8 = 1 << 5;
/// With contexts of rows or planes, which have no groups.
const ADAPTIVE: u8 = 1 << GROUP_SIZE_SHIFT;
const PACKETS_SHIFT: u32 = 6;

impl Header {
    /// The four bytes: version, value type, content and mode.
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
        let components = if self.has_components { COMPONENTS } else { 0 };
        let content = arrangement | bound << BOUND_SHIFT | masked | clamped | components;
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
    /// `UnsupportedVersion`; `ReservedBits` and `Corrupt` if a field has an undefined value, or if fields contradict
    /// each other.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let version = cursor.byte()?;
        if version != VERSION {
            return Err(Error::UnsupportedVersion {
                found: version,
                supported: VERSION,
            });
        }
        let value_size = match cursor.byte()? {
            1 => 4,
            2 => 8,
            found => {
                return Err(corrupt!(
                    "unknown value type {found}; expected 1 (float32) or 2 (float64)"
                ));
            }
        };
        let content = cursor.byte()?;
        if content >> 7 != 0 {
            return Err(reserved("content", content, 0b1000_0000));
        }
        let header = Self {
            value_size,
            arrangement: match content & 3 {
                0 => Arrangement::Array,
                1 => Arrangement::Blocks,
                2 => Arrangement::Cells,
                _ => {
                    return Err(corrupt!(
                        "unknown arrangement 3; expected 0 (array), 1 (blocks) or 2 (cells)"
                    ));
                }
            },
            bound: match content >> BOUND_SHIFT & 3 {
                0 => BoundKind::Lossless,
                1 => BoundKind::Absolute,
                2 => BoundKind::Mapped,
                kind => {
                    return Err(corrupt!(
                        "unknown kind of error bound {kind}; expected 0 (lossless), 1 (absolute) or 2 (mapped)"
                    ));
                }
            },
            is_masked: content & MASKED != 0,
            is_clamped: content & CLAMPED != 0,
            has_components: content & COMPONENTS != 0,
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
        if self.has_components && self.arrangement != Arrangement::Array {
            return Err(corrupt!(
                "a stream of components has the arrangement {:?}; expected an array",
                self.arrangement
            ));
        }
        let Mode::EntropyCoded(coding) = self.mode else {
            if self.arrangement == Arrangement::Array && !self.is_masked {
                return Ok(());
            }
            return Err(corrupt!(
                "a bit-packed stream has the arrangement {:?}, masked: {}; expected an array without a mask",
                self.arrangement,
                self.is_masked
            ));
        };
        if coding.contexts == Contexts::Plane && self.is_lossless() {
            return Err(corrupt!("plane contexts do not apply to a lossless stream"));
        }
        if coding.contexts != Contexts::Level && coding.group_size > 1 {
            return Err(corrupt!(
                "bits 3 to 5 of the mode are invalid with contexts of {:?}; expected rANS without groups, or adaptive tokens",
                coding.contexts
            ));
        }
        if self.arrangement == Arrangement::Cells && coding.packets > 1 {
            return Err(corrupt!(
                "a stream of cells has {} level packets; expected 1",
                coding.packets
            ));
        }
        if self.has_components && coding.packets > 1 {
            return Err(corrupt!(
                "a stream of components has {} level packets; expected 1",
                coding.packets
            ));
        }
        if coding.predicts_holes
            && (self.arrangement != Arrangement::Blocks
                || self.is_lossless()
                || self.is_masked
                || !coding.contexts.region_rules().can_predict_holes)
        {
            return Err(corrupt!(
                "hole prediction applies only to lossy streams of unmasked blocks with level or plane contexts; \
                 found {self:?}"
            ));
        }
        Ok(())
    }
}

/// How blocks become regions.
#[derive(Clone, Copy)]
pub(crate) struct RegionRules {
    /// The part of a region of blocks that must be filled.
    pub min_fill: f64,
    /// Whether the points of holes between blocks can be predicted.
    pub can_predict_holes: bool,
}

impl RegionRules {
    /// Regions without holes, which wavelets require.
    pub(crate) const FILLED: Self = Self {
        min_fill: 1.0,
        can_predict_holes: false,
    };
}

impl Contexts {
    /// How blocks become regions. Holes cost less time with row contexts, because their points are not predicted.
    pub(crate) fn region_rules(self) -> RegionRules {
        RegionRules {
            min_fill: match self {
                Self::Row => blocks::MIN_FILL_ROW_CONTEXTS,
                Self::Level | Self::Plane => blocks::MIN_FILL,
            },
            can_predict_holes: self != Self::Row,
        }
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
        let coder = match self.coder {
            TokenCoder::Rans { states } if states == rans::WIDE_STATES => WIDE,
            TokenCoder::Rans { .. } => 0,
            TokenCoder::Adaptive => ADAPTIVE,
        };
        let group_size = (self.group_size as u8 - 1) << GROUP_SIZE_SHIFT;
        contexts | holes | group_size | coder | (self.packets as u8 - 1) << PACKETS_SHIFT
    }

    fn from_byte(byte: u8) -> Result<Self> {
        let contexts = match byte & 3 {
            1 => Contexts::Level,
            2 => Contexts::Row,
            3 => Contexts::Plane,
            _ => {
                return Err(reserved("mode", byte, PREDICTS_HOLES | !0b111));
            }
        };
        let group_size = usize::from(byte >> GROUP_SIZE_SHIFT & 3) + 1;
        let (coder, group_size) = match byte & WIDE {
            0 if contexts != Contexts::Level && group_size == 2 => (TokenCoder::Adaptive, 1),
            0 => (
                TokenCoder::Rans {
                    states: rans::STATES,
                },
                group_size,
            ),
            _ => (
                TokenCoder::Rans {
                    states: rans::WIDE_STATES,
                },
                group_size,
            ),
        };
        Ok(Self {
            contexts,
            predicts_holes: byte & PREDICTS_HOLES != 0,
            group_size,
            coder,
            packets: usize::from(byte >> PACKETS_SHIFT) + 1,
        })
    }
}

fn reserved(field: &'static str, found: u8, reserved: u8) -> Error {
    Error::ReservedBits {
        field,
        found,
        reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value of the bytes after the version is either refused, or parsed and written back unchanged.
    #[test]
    fn headers_round_trip() {
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
        // Two value types, clamped or not. Bit-packed arrays have three kinds of bounds, with or without components.
        // Entropy-coded: masked or not, cells and components with 1 packet, other arrays and blocks with 1 to 4; contexts of
        // levels have 8 variants, of rows 3, of planes 3 unless lossless.
        // Predicted holes: blocks that are neither lossless nor masked, with contexts of levels or planes.
        let packets = 1 + 1 + 4 + 4;
        let entropy_coded = packets * 2 * (3 * (8 + 3) + 2 * 3) + 2 * 4 * (8 + 3);
        assert_eq!(accepted, 2 * 2 * (2 * 3 + entropy_coded));
    }

    #[test]
    fn errors_name_unknown_versions_and_reserved_bits() {
        let error = Header::parse(&mut Cursor(&[7, 1, 0, 0])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "stream version 7 is not supported; this library reads version 1"
        );
        let error = Header::parse(&mut Cursor(&[1, 1, 0x90, 0])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "reserved bits are set in the content byte: 0b10010000; expected 0 in bits 0b10000000"
        );
    }
}
