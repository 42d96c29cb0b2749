//! The memory of columns: one anonymous mapping for all columns of a read, advised to use huge pages.
//!
//! Page faults are the largest cost of a large read: copying 200 MB into fresh 4 KiB pages takes
//! about five times as long as into huge pages. All columns of one read share one mapping, so that
//! small columns get huge pages too. Released mappings are cached for the next read, up to
//! `CACHED_BYTES`: clearing new pages takes a quarter of the time of a warm read.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::limits::check_memory;

const ALIGNMENT: usize = 128;
const HUGE_PAGE: usize = 2 << 20;

/// Maximum size in bytes of the cached mappings.
const CACHED_BYTES: usize = 128 << 20;

/// Mappings that are cached for the next read, the oldest first.
static CACHE: Mutex<Vec<Mapping>> = Mutex::new(Vec::new());

/// An anonymous mapping; unmapped when dropped.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory that no thread owns.
unsafe impl Send for Mapping {}
// SAFETY: shared access to it is mediated by `Column`, whose methods follow borrow rules.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(len: usize) -> Result<Self> {
        // SAFETY: a new private anonymous mapping aliases nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let start = match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => start,
            _ => {
                return Err(Error::limit(format!(
                    "cannot allocate {len} bytes for columns; read fewer rows or columns"
                )));
            }
        };
        // SAFETY: start and len describe the mapping made above.
        advise_huge_pages(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) });
        Ok(Self { start, len })
    }
}

/// Advises Linux to use huge pages for `memory`, which is written next, if it is large.
#[cfg_attr(not(target_os = "linux"), expect(unused_variables))]
pub(crate) fn advise_huge_pages(memory: &[u8]) {
    #[cfg(target_os = "linux")]
    if let Some(inside) = memory.get(memory.as_ptr().align_offset(HUGE_PAGE)..)
        && inside.len() >= HUGE_PAGE
    {
        // SAFETY: the range is inside of `memory`; the advice changes no content.
        unsafe {
            libc::madvise(
                inside.as_ptr().cast_mut().cast(),
                inside.len(),
                libc::MADV_HUGEPAGE,
            );
        };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this start and length, and no reference to it exists.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A mapping in use. It is cached for the next read when dropped.
struct Block(Option<Mapping>);

impl Block {
    /// A block of at least `len` bytes of any content: a cached mapping that is at most a quarter larger, or a
    /// new one.
    fn new(len: usize) -> Result<Self> {
        let page = if len >= HUGE_PAGE { HUGE_PAGE } else { 4096 };
        let len = len.max(1).checked_next_multiple_of(page).ok_or_else(|| {
            Error::limit("the columns do not fit in memory; read fewer rows or columns")
        })?;
        // Never waits: in a child process that was forked while another thread held the lock, it stays locked.
        if let Ok(mut cache) = CACHE.try_lock() {
            let fits = |mapping: &Mapping| mapping.len >= len && mapping.len - len <= len / 4;
            if let Some(index) = cache.iter().rposition(fits) {
                return Ok(Self(Some(cache.remove(index))));
            }
        }
        Ok(Self(Some(Mapping::new(len)?)))
    }

    fn start(&self) -> NonNull<u8> {
        self.0
            .as_ref()
            .map_or(NonNull::dangling(), |mapping| mapping.start)
    }
}

/// Unmaps the cached mappings, after work that needs large ones for the last time.
pub(crate) fn release_cached() {
    if let Ok(mut cache) = CACHE.try_lock() {
        cache.clear();
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(mapping) = self
            .0
            .take()
            .filter(|mapping| mapping.len <= CACHED_BYTES / 2)
        else {
            return;
        };
        if let Ok(mut cache) = CACHE.try_lock() {
            cache.push(mapping);
            while cache.iter().map(|mapping| mapping.len).sum::<usize>() > CACHED_BYTES {
                cache.remove(0);
            }
        }
    }
}

/// A column of values: dtype, number of rows, and exclusive ownership of its part of a block.
///
/// Not clonable: any caller that has `&mut Column` may write. The initial content is arbitrary: a caller
/// fills all of it.
pub struct Column {
    dtype: DataType,
    rows: usize,
    start: NonNull<u8>,
    bytes: usize,
    _block: Arc<Block>,
}

// SAFETY: a column owns its part of the mapping; parts of different columns are disjoint.
unsafe impl Send for Column {}
// SAFETY: `&Column` gives only shared reads.
unsafe impl Sync for Column {}

impl Column {
    /// Columns of `rows` rows each, all in one mapping. Every dtype must have a fixed size.
    pub fn allocate(dtypes: &[DataType], rows: usize) -> Result<Vec<Self>> {
        let specs: Vec<_> = dtypes.iter().map(|dtype| (dtype.clone(), rows)).collect();
        Self::allocate_each(&specs)
    }

    /// Columns, each with its own dtype and number of rows, all in one mapping.
    pub fn allocate_each(specs: &[(DataType, usize)]) -> Result<Vec<Self>> {
        let too_much =
            || Error::limit("the columns do not fit in memory; read fewer rows or columns");
        let mut places = Vec::with_capacity(specs.len());
        let mut end = 0usize;
        for (dtype, rows) in specs {
            let size = dtype.size().ok_or_else(|| {
                Error::invalid(format!(
                    "expected a type of values of fixed size, found {dtype}"
                ))
            })?;
            let bytes = rows.checked_mul(size).ok_or_else(too_much)?;
            places.push((end, bytes));
            end = end
                .checked_add(bytes)
                .and_then(|end| end.checked_next_multiple_of(ALIGNMENT))
                .ok_or_else(too_much)?;
        }
        if end > isize::MAX as usize {
            return Err(too_much());
        }
        check_memory("the columns of a read", end as u64)?;
        let block = Arc::new(Block::new(end)?);
        let columns = specs
            .iter()
            .zip(places)
            .map(|((dtype, rows), (offset, bytes))| Self {
                dtype: dtype.clone(),
                rows: *rows,
                // SAFETY: offset + bytes <= end <= the block's length.
                start: unsafe { block.start().add(offset) },
                bytes,
                _block: Arc::clone(&block),
            });
        Ok(columns.collect())
    }

    /// The values' type.
    pub fn dtype(&self) -> &DataType {
        &self.dtype
    }

    /// The number of values.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values' bytes, native byte order.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the range is inside the block, initialised by the system and owned by this column.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The values' bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// The values as `T`. Panics if the size of `T` differs from that of the dtype (a programming error).
    pub fn values<T: bytemuck::AnyBitPattern>(&self) -> &[T] {
        self.check_size_of::<T>();
        bytemuck::cast_slice(self.bytes())
    }

    /// The values as `T`, to be written. Panics as `values` does.
    pub fn values_mut<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(&mut self) -> &mut [T] {
        self.check_size_of::<T>();
        bytemuck::cast_slice_mut(self.bytes_mut())
    }

    fn check_size_of<T>(&self) {
        assert!(
            self.dtype.size() == Some(size_of::<T>()),
            "a column of {} is read as values of {} bytes",
            self.dtype,
            size_of::<T>()
        );
    }

    /// Keeps the first `rows` rows. The memory after them is released with the mapping.
    pub fn truncate(&mut self, rows: usize) {
        if rows < self.rows {
            self.bytes = self.bytes / self.rows * rows;
            self.rows = rows;
        }
    }
}

impl std::fmt::Debug for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Column({}, {} rows)", self.dtype, self.rows)
    }
}

/// Bytes that several threads write, each a part of its own.
pub(crate) struct Shared<'a> {
    start: *mut u8,
    len: usize,
    _bytes: PhantomData<&'a mut [u8]>,
}

// SAFETY: `Shared::slice` states the rule for threads.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    /// Shares `bytes`.
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self {
            start: bytes.as_mut_ptr(),
            len: bytes.len(),
            _bytes: PhantomData,
        }
    }

    /// The bytes `range`.
    ///
    /// # Safety
    /// No other reference to these bytes may exist while the result lives.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slice(&self, range: Range<usize>) -> Result<&mut [u8]> {
        if range.start > range.end || range.end > self.len {
            return Err(Error::invalid(
                "a block is outside of the memory of its target",
            ));
        }
        // SAFETY: the range is inside of the memory that `start` and `len` describe, and the
        // caller guarantees that no other reference to it exists.
        Ok(unsafe {
            std::slice::from_raw_parts_mut(self.start.add(range.start), range.end - range.start)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_disjoint() {
        let mut columns =
            Column::allocate(&[DataType::Int8, DataType::Float64, DataType::Int32], 1001).unwrap();
        for column in &columns {
            assert_eq!(column.bytes().as_ptr() as usize % ALIGNMENT, 0);
        }
        for (value, column) in columns.iter_mut().enumerate() {
            column.bytes_mut().fill(value as u8 + 1);
        }
        for (value, column) in columns.iter().enumerate() {
            assert!(column.bytes().iter().all(|&byte| byte == value as u8 + 1));
        }
        assert_eq!(columns[1].values::<f64>().len(), 1001);
    }

    #[test]
    fn values_of_another_size_are_rejected() {
        // Ten values of four bytes used to be read as five of eight.
        let mut columns = Column::allocate(&[DataType::Int32], 10).unwrap();
        let mut column = columns.remove(0);
        let read = std::panic::AssertUnwindSafe(|| column.values::<f64>().len());
        assert!(std::panic::catch_unwind(read).is_err());
        let write = std::panic::AssertUnwindSafe(|| column.values_mut::<u8>().len());
        assert!(std::panic::catch_unwind(write).is_err());
        assert_eq!(column.values::<f32>().len(), 10);
    }

    #[test]
    fn truncated_columns_keep_their_first_rows() {
        let mut columns = Column::allocate(&[DataType::Int32], 10).unwrap();
        columns[0]
            .values_mut::<i32>()
            .copy_from_slice(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        columns[0].truncate(3);
        assert_eq!(columns[0].values::<i32>(), &[0, 1, 2]);
    }

    #[test]
    fn blocks_are_used_again() {
        // A size that no other test allocates.
        let rows = 3_333_333;
        let first = Column::allocate(&[DataType::Int64], rows).unwrap();
        let start = first[0].bytes().as_ptr();
        drop(first);
        let again = Column::allocate(&[DataType::Int64], rows).unwrap();
        assert_eq!(again[0].bytes().as_ptr(), start);
        assert_eq!(again[0].rows(), rows);
    }

    #[test]
    fn impossible_sizes_are_errors() {
        assert!(Column::allocate(&[DataType::Float64], usize::MAX / 4).is_err());
        assert!(Column::allocate(&[DataType::String], 3).is_err());
    }
}
