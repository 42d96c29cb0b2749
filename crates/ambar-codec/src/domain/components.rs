//! Components: arrays whose last dimensions are short, or do not predict each other, are coded one component after another.

use crate::domain::regions::{Layout, is_box, volume_of};
use crate::element::Element;
use crate::error::{Result, invalid};
use std::borrow::Cow;

/// Maximum number of components that are coded one after another whatever their values: those of a tensor in three dimensions.
const MAX_COMPONENTS: usize = 9;
/// Another dimension has at least this many times as many points as the components.
const MIN_POINTS: usize = 4;
/// Maximum number of dimensions of a coded array.
const MAX_DIMENSIONS: usize = 4;

/// The arrangement in which an array is coded.
struct CodedShape {
    /// The coded shape, of 1 to 4 dimensions. Components are the first ones, or a factor of the first one.
    shape: Vec<usize>,
    /// The shape of the part that is not padding; `None` without padding, or if it is not a part of each dimension.
    held: Option<Vec<usize>>,
    /// The number of components, if they are coded one after another.
    components: Option<usize>,
}

impl CodedShape {
    /// The arrangement of an array of any number of dimensions, the slowest of which are merged if there are more than four.
    /// Besides short last dimensions, the `moved` dimensions before these become components.
    ///
    /// # Errors
    /// `Invalid` if there is no dimension.
    fn new(shape: &[usize], held: Option<&[usize]>, moved: usize) -> Result<Self> {
        if shape.is_empty() {
            return Err(invalid!("the array has 0 dimensions; expected at least 1"));
        }
        let (mut points, mut components) = (shape, 1);
        while let [outer @ .., last] = points {
            let longest = outer.iter().max().copied().unwrap_or(0);
            if !(2..=MAX_COMPONENTS).contains(last) || shape.contains(&0) {
                break;
            }
            let count = components * last;
            if count > MAX_COMPONENTS || longest < MIN_POINTS * count {
                break;
            }
            (points, components) = (outer, count);
        }
        let arranged = |lengths: &[usize]| {
            let mut all = lengths[..points.len()].to_vec();
            if components > 1 {
                all.insert(0, components);
            }
            all
        };
        let is_whole = |held: &&[usize]| held[points.len()..] == shape[points.len()..];
        let mut coded = arranged(shape);
        let mut held = held.filter(is_whole).map(arranged);
        let merged = coded.len().saturating_sub(MAX_DIMENSIONS);
        held = held.filter(|held| is_box(&coded[..=merged], held));
        let moved = match shape.contains(&0) {
            true => 0,
            false => moved.min(points.len() - 1).min(coded.len() - merged - 1),
        };
        for lengths in std::iter::once(&mut coded).chain(&mut held) {
            let first = lengths[..=merged]
                .iter()
                .fold(1usize, |product, n| product.saturating_mul(*n));
            lengths.splice(..=merged, [first]);
            lengths.rotate_right(moved);
        }
        components *= coded[..moved].iter().product::<usize>();
        Ok(Self {
            shape: coded,
            held,
            components: (components > 1).then_some(components),
        })
    }
}

/// Calls `code` with values in the order of coding, their layout, and the number of components that are coded one after another.
/// Besides short last dimensions of an array, the `moved` dimensions before these become components.
///
/// # Errors
/// `Invalid` if the layout does not fit the values; those of `code`.
pub(crate) fn with_coding_order<T: Element, R>(
    values: &[T],
    layout: &Layout<'_>,
    moved: usize,
    code: impl FnOnce(&[T], &Layout<'_>, Option<usize>) -> Result<R>,
) -> Result<R> {
    let Some((shape, held)) = layout.as_array() else {
        layout.check(values.len())?;
        return code(values, layout, None);
    };
    if held.is_some_and(|held| !is_part(held, shape)) {
        return Err(invalid!(
            "found {held:?} values without padding in an array of shape {shape:?}; expected at least 1 along each \
             dimension, and at most its length"
        ));
    }
    if volume_of(shape) != Some(values.len()) {
        return Err(invalid!(
            "found {} values for an array of shape {shape:?}",
            values.len()
        ));
    }
    let coded = CodedShape::new(shape, held, moved)?;
    let layout = Layout::array(&coded.shape, coded.held.as_deref());
    match coded.components {
        Some(components) => code(
            &separate_components(values, components),
            &layout,
            coded.components,
        ),
        None => code(values, &layout, None),
    }
}

/// Whether `held` are lengths of a part of an array that is not empty.
fn is_part(held: &[usize], shape: &[usize]) -> bool {
    let lengths = held.iter().zip(shape);
    held.len() == shape.len() && lengths.clone().all(|(held, n)| (1..=*n).contains(held))
}

/// An array with the last `count` dimensions first: its values and its shape.
pub(crate) fn with_moved_dimensions<'a, T: Element>(
    values: &'a [T],
    shape: &[usize],
    count: usize,
) -> (Cow<'a, [T]>, Vec<usize>) {
    let mut moved = shape.to_vec();
    moved.rotate_right(count);
    let components = moved[..count].iter().product();
    let values = if components > 1 {
        Cow::Owned(separate_components(values, components))
    } else {
        Cow::Borrowed(values)
    };
    (values, moved)
}

/// The values in the order of coding: component by component.
fn separate_components<T: Element>(values: &[T], components: usize) -> Vec<T> {
    let points = values.len() / components;
    let mut out = vec![T::default(); values.len()];
    for (point, all) in values.chunks_exact(components).enumerate() {
        for (component, value) in all.iter().enumerate() {
            out[component * points + point] = *value;
        }
    }
    out
}

/// Undoes [`separate_components`].
pub(crate) fn interleave_components<T: Element>(values: &mut [T], components: usize) {
    let points = values.len() / components;
    let coded = values.to_vec();
    for (point, all) in values.chunks_exact_mut(components).enumerate() {
        for (component, value) in all.iter_mut().enumerate() {
            *value = coded[component * points + point];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_last_dimensions_are_components() {
        let coded = |shape: &[usize]| {
            let coded = CodedShape::new(shape, None, 0).unwrap();
            (coded.shape, coded.components)
        };
        assert_eq!(coded(&[100, 3]), (vec![3, 100], Some(3)));
        assert_eq!(coded(&[100, 3, 3]), (vec![9, 100], Some(9)));
        assert_eq!(coded(&[5, 40, 30, 3]), (vec![3, 5, 40, 30], Some(3)));
        assert_eq!(coded(&[7, 5, 40, 30, 3]), (vec![21, 5, 40, 30], Some(3)));
        assert_eq!(coded(&[0, 3]), (vec![0, 3], None));
        assert_eq!(coded(&[8, 8, 8]), (vec![8, 8, 8], None));
        assert_eq!(coded(&[100, 10]), (vec![100, 10], None));
        assert_eq!(coded(&[100, 1]), (vec![100, 1], None));
        assert_eq!(coded(&[3]), (vec![3], None));
        assert_eq!(coded(&[2, 3, 4, 50, 60]), (vec![6, 4, 50, 60], None));
        assert_eq!(coded(&[0, usize::MAX, 2]).1, None);
        assert_eq!(coded(&[usize::MAX, 0, 5, 3]).1, None);
        assert!(CodedShape::new(&[], None, 0).is_err());
    }

    #[test]
    fn other_last_dimensions_are_components_if_chosen() {
        let coded = |shape: &[usize], moved| {
            let coded = CodedShape::new(shape, None, moved).unwrap();
            (coded.shape, coded.components)
        };
        assert_eq!(coded(&[40, 30, 20], 1), (vec![20, 40, 30], Some(20)));
        assert_eq!(
            coded(&[40, 30, 20, 12], 2),
            (vec![20, 12, 40, 30], Some(240))
        );
        assert_eq!(coded(&[40, 30, 20, 3], 1), (vec![20, 3, 40, 30], Some(60)));
        assert_eq!(
            coded(&[2, 5, 40, 30, 20], 1),
            (vec![20, 10, 40, 30], Some(20))
        );
        // One dimension is left.
        assert_eq!(coded(&[40, 30], 2), (vec![30, 40], Some(30)));
        assert_eq!(coded(&[40], 1), (vec![40], None));
        assert_eq!(coded(&[40, 0, 30], 1), (vec![40, 0, 30], None));
        assert_eq!(coded(&[40, 1], 1), (vec![1, 40], None));
    }

    #[test]
    fn padding_follows_its_dimensions() {
        let held = |shape: &[usize], held: &[usize], moved| {
            CodedShape::new(shape, Some(held), moved).unwrap().held
        };
        assert_eq!(held(&[40, 30], &[40, 29], 0), Some(vec![40, 29]));
        assert_eq!(
            held(&[40, 30, 20], &[39, 30, 19], 1),
            Some(vec![19, 39, 30])
        );
        assert_eq!(held(&[100, 3], &[90, 3], 0), Some(vec![3, 90]));
        assert_eq!(
            held(&[2, 3, 4, 50, 60], &[1, 3, 4, 50, 60], 0),
            Some(vec![3, 4, 50, 60])
        );
        // Not the first values of each coded dimension.
        assert_eq!(held(&[100, 3], &[100, 2], 0), None);
        assert_eq!(held(&[2, 3, 4, 50, 60], &[2, 2, 4, 50, 60], 0), None);
    }

    #[test]
    fn components_are_separated_and_interleaved() {
        let values: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let mut coded = separate_components(&values, 3);
        assert_eq!(coded[..5], [0.0, 3.0, 6.0, 9.0, 1.0]);
        interleave_components(&mut coded, 3);
        assert_eq!(coded, values);
    }
}
