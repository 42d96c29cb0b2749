//! Joins byte ranges that are close to each other, so that they are read together.

use std::ops::Range;

/// Joins `parts` that overlap or are at most `gap` bytes apart into ranges of at most `most` bytes. A longer
/// part is not divided. Empty parts are skipped.
pub fn join(parts: &[Range<u64>], gap: u64, most: u64) -> Vec<Range<u64>> {
    let mut sorted: Vec<Range<u64>> = parts.iter().filter(|p| p.start < p.end).cloned().collect();
    sorted.sort_unstable_by_key(|part| (part.start, part.end));
    let mut out: Vec<Range<u64>> = Vec::new();
    for part in sorted {
        if let Some(last) = out.last_mut() {
            let covered = part.end <= last.end;
            let near = part.start.saturating_sub(last.end) <= gap;
            if covered || (near && part.end - last.start <= most) {
                last.end = last.end.max(part.end);
                continue;
            }
        }
        out.push(part);
    }
    out
}

/// Cuts `range` into pieces of at most `most` bytes, as even as possible.
#[cfg(feature = "object-store")]
pub fn pieces(range: &Range<u64>, most: u64) -> impl Iterator<Item = Range<u64>> + use<> {
    let (start, len) = (range.start, range.end.saturating_sub(range.start));
    let count = len.div_ceil(most.max(1));
    let at = move |n: u64| start + (u128::from(len) * u128::from(n) / u128::from(count)) as u64;
    (0..count).map(move |n| at(n)..at(n + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_parts_are_joined_up_to_the_limit() {
        let parts = [20..30, 0..10, 12..14, 5..5, 100..400, 401..402, 101..102];
        assert_eq!(join(&parts, 2, 50), [0..14, 20..30, 100..400, 401..402]);
        assert_eq!(join(&parts, 6, 50), [0..30, 100..400, 401..402]);
        assert_eq!(join(&parts, 1, 500), [0..10, 12..14, 20..30, 100..402]);
        let all = join(&parts, u64::MAX, u64::MAX);
        assert_eq!((all.len(), &all[0]), (1, &(0..402)));
        assert!(join(&[], 9, 9).is_empty());
    }

    #[test]
    #[cfg(feature = "object-store")]
    fn pieces_cover_the_range_evenly() {
        assert_eq!(pieces(&(3..3), 10).count(), 0);
        assert!(pieces(&(3..13), 10).eq(std::iter::once(3..13)));
        assert_eq!(pieces(&(3..14), 10).collect::<Vec<_>>(), [3..8, 8..14]);
        let far = u64::MAX - 25..u64::MAX;
        let cut: Vec<_> = pieces(&far, 10).collect();
        assert_eq!(cut.len(), 3);
        assert!(cut.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(cut[0].start..cut[2].end, far);
    }
}
