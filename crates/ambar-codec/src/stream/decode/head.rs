//! The head of a stream: the number of values, the layout, the bound and the level options (`docs/format.md`, 7.1).

use crate::bound::ErrorBound;
use crate::domain::regions;
use crate::domain::tree::CodedTree;
use crate::element::Element;
use crate::entropy::bitio::Cursor;
use crate::error::{Error, Result, corrupt};
use crate::stream::header::{Arrangement, BoundKind, Coding, Contexts, Header};
use crate::stream::params::EncoderParams;
use crate::stream::prelude::Prelude;
use crate::wavelet::WaveletOptions;

/// The contents of a stream, as its header states.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// Bytes of a value: 4 (float32) or 8 (float64).
    pub value_size: usize,
    /// Number of values.
    pub values: usize,
    /// The error bound of this stream: lossless, absolute or relative.
    pub bound: ErrorBound,
    /// The smallest original value, below which no value is decoded, if it is stored.
    pub minimum: Option<f64>,
}

/// The coded values of a stream, and how values are computed from them.
pub(super) struct StreamContent<'a> {
    pub value_size: usize,
    pub values: usize,
    /// The absolute error bound; 0 where the coded values are lossless.
    pub bound: f64,
    pub prelude: Prelude<'a>,
}

impl StreamContent<'_> {
    pub(super) fn info(&self) -> Info {
        Info {
            value_size: self.value_size,
            values: self.values,
            bound: self.prelude.bound(self.bound),
            minimum: self.prelude.minimum_of(self.value_size),
        }
    }

    /// The error of an output that does not fit the stream, which has this number of values.
    #[cold]
    pub(super) fn differs_from<T: Element>(&self, values: usize, expected: usize) -> Error {
        corrupt!(
            "the stream holds {values} values of {} bytes; expected {expected} of {} bytes; inspect the stream first",
            self.value_size,
            T::SIZE
        )
    }
}

/// The parts of an entropy-coded stream up to the level options, and the rest.
pub(super) struct ParsedStream<'a> {
    pub info: StreamContent<'a>,
    pub layout: ParsedLayout<'a>,
    pub shift: u32,
    pub params: EncoderParams,
    /// The options of wavelets, if the stream holds coefficients.
    pub wavelet: Option<WaveletOptions>,
    pub coding: Coding,
    pub is_masked: bool,
    pub rest: Cursor<'a>,
}

/// The layout of a stream.
pub(super) enum ParsedLayout<'a> {
    Array {
        inner: [usize; 3],
        outer: usize,
    },
    Blocks {
        side: [usize; 3],
        count: usize,
        /// The encoded block keys.
        keys: &'a [u8],
    },
    Cells(CodedTree<'a>),
}

pub(super) fn parse_entropy_coded<'a>(
    header: &Header,
    mut cursor: Cursor<'a>,
    coding: Coding,
    most: usize,
) -> Result<ParsedStream<'a>> {
    let prelude = Prelude::parse(header, &mut cursor)?;
    let values = value_count(&prelude, &mut cursor, most)?;
    let layout = match header.arrangement {
        Arrangement::Array => array(&mut cursor, values)?,
        Arrangement::Blocks => blocks_layout(&mut cursor, values)?,
        Arrangement::Cells => ParsedLayout::Cells(CodedTree::parse(&mut cursor, values)?),
    };
    let bound = read_bound(header, &mut cursor)?;
    let shift = match header.is_lossless() {
        true => u32::from(cursor.byte()?),
        false => 0,
    };
    if shift >= 8 * header.value_size as u32 {
        return Err(corrupt!(
            "the shift is {shift}; expected less than the bits of a value, {}",
            8 * header.value_size
        ));
    }
    let allows_wavelets = coding.contexts == Contexts::Row
        && header.arrangement != Arrangement::Cells
        && coding.packets == 1
        && !header.is_lossless()
        && !header.is_masked
        && values > 0;
    let (params, wavelet) = EncoderParams::read(&mut cursor, coding.contexts, allows_wavelets)?;
    let is_uncorrected = wavelet.is_some_and(|options| options.coefficient_bound.is_none());
    if is_uncorrected && header.bound == BoundKind::Mapped {
        return Err(corrupt!(
            "the stream holds wavelet coefficients of mapped values without corrections; expected corrections, or an \
             absolute bound"
        ));
    }
    Ok(ParsedStream {
        info: StreamContent {
            value_size: header.value_size,
            values,
            bound,
            prelude,
        },
        layout,
        shift,
        params,
        wavelet,
        coding,
        is_masked: header.is_masked,
        rest: cursor,
    })
}

impl ParsedStream<'_> {
    /// The approximate part of the values that are in the levels coarser than the finest.
    pub(super) fn coarser_fraction(&self) -> f64 {
        match self.layout {
            ParsedLayout::Array { inner: shape, .. } | ParsedLayout::Blocks { side: shape, .. } => {
                let long = shape.iter().filter(|n| **n > 1).count();
                0.5f64.powi(long as i32)
            }
            ParsedLayout::Cells(_) => 0.125,
        }
    }
}

/// The number of values, at most `most`.
fn value_count(prelude: &Prelude<'_>, cursor: &mut Cursor<'_>, most: usize) -> Result<usize> {
    let values = cursor.number_to(most)?;
    match prelude.components {
        Some(components) if !values.is_multiple_of(components) => Err(corrupt!(
            "the stream has {values} values; expected a multiple of its {components} components"
        )),
        _ => Ok(values),
    }
}

/// The absolute error bound; 0 for a lossless stream.
fn read_bound(header: &Header, cursor: &mut Cursor<'_>) -> Result<f64> {
    if header.is_lossless() {
        return Ok(0.0);
    }
    let bound = f64::from_bits(cursor.word()?);
    if bound > 0.0 && bound.is_finite() {
        Ok(bound)
    } else {
        Err(corrupt!(
            "the error bound of the stream is {bound:e}; expected a finite number above 0"
        ))
    }
}

/// The shape of an array, of 1 to 4 dimensions.
fn shape(cursor: &mut Cursor<'_>, values: usize) -> Result<Vec<usize>> {
    let count = cursor.number_to(4)?;
    let mut shape = Vec::with_capacity(count);
    for _ in 0..count {
        shape.push(cursor.number_to(usize::MAX)?);
    }
    if shape.is_empty() {
        return Err(corrupt!("the array has 0 dimensions; expected 1 to 4"));
    }
    if regions::volume_of(&shape) != Some(values) {
        return Err(wrong_shape(&shape, values));
    }
    Ok(shape)
}

fn wrong_shape(shape: &[usize], values: usize) -> Error {
    corrupt!("the stream has {values} values, and the shape {shape:?}")
}

fn array<'a>(cursor: &mut Cursor<'_>, values: usize) -> Result<ParsedLayout<'a>> {
    let shape = shape(cursor, values)?;
    let (inner, outer) = regions::array_regions(&shape)?;
    if regions::volume(inner).and_then(|size| size.checked_mul(outer)) != Some(values) {
        return Err(wrong_shape(&shape, values));
    }
    Ok(ParsedLayout::Array { inner, outer })
}

/// The parts of a bit-packed stream before its blocks, and the rest.
pub(super) struct BitPacked<'a> {
    pub info: StreamContent<'a>,
    pub shape: Vec<usize>,
    pub rest: Cursor<'a>,
}

pub(super) fn parse_bit_packed<'a>(
    header: &Header,
    mut cursor: Cursor<'a>,
    most: usize,
) -> Result<BitPacked<'a>> {
    let prelude = Prelude::parse(header, &mut cursor)?;
    let values = value_count(&prelude, &mut cursor, most)?;
    let shape = shape(&mut cursor, values)?;
    let bound = read_bound(header, &mut cursor)?;
    Ok(BitPacked {
        info: StreamContent {
            value_size: header.value_size,
            values,
            bound,
            prelude,
        },
        shape,
        rest: cursor,
    })
}

fn blocks_layout<'a>(cursor: &mut Cursor<'a>, values: usize) -> Result<ParsedLayout<'a>> {
    let mut side = [0; 3];
    for n in &mut side {
        *n = cursor.number_to(usize::MAX)?;
    }
    let cells = regions::volume(side).unwrap_or(0);
    if cells == 0 || !values.is_multiple_of(cells) {
        return Err(corrupt!(
            "the stream has {values} values; expected a multiple of the cells of blocks with the sides {side:?}"
        ));
    }
    let length = cursor.number_to(cursor.0.len())?;
    Ok(ParsedLayout::Blocks {
        side,
        count: values / cells,
        keys: cursor.bytes(length)?,
    })
}
