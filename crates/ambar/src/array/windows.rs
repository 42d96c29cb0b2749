//! Writes arrays window by window along the first dimension: their values are read while they are written, so
//! that only one window has to be in memory.

use std::ops::Range;

use super::chunk_source::ChunkSource;
use super::spec::ArraySpec;
use super::validation::check_bools;
use super::write::{Observer, WriteBatch, WrittenArray};
use crate::codec;
use crate::container::ContainerWriter;
use crate::error::{Error, Result};
use crate::parallel;

/// An array to be written window by window.
pub(crate) struct WindowedArray<'a> {
    /// The node's path.
    pub path: &'a str,
    /// Its type, shape, division and codecs. Its chunks are set, and span all dimensions but the first.
    pub spec: &'a ArraySpec,
    /// The values of `sample_rows`, by which the codecs are chosen.
    pub samples: Vec<(Range<usize>, &'a [u8])>,
}

/// The rows whose values choose the codecs of an array with chunks of `chunk_rows`.
pub(crate) fn sample_rows(rows: usize, chunk_rows: usize) -> Vec<Range<usize>> {
    let samples = codec::samples(rows.div_ceil(chunk_rows.max(1)));
    let chunk = |index: usize| index * chunk_rows..((index + 1) * chunk_rows).min(rows);
    samples.into_iter().map(chunk).collect()
}

/// Writes the windows of some arrays.
pub(crate) struct WindowWriter<'a> {
    sources: Vec<ChunkSource<'a>>,
    written: Vec<WrittenArray>,
    container: &'a mut dyn ContainerWriter,
    observer: Option<&'a Observer>,
}

impl<'a> WindowWriter<'a> {
    /// Chooses the codecs of the arrays; paths have no leading `/`.
    ///
    /// # Errors
    /// `Invalid` if a spec is inconsistent.
    pub fn new(
        arrays: &'a [WindowedArray<'a>],
        container: &'a mut dyn ContainerWriter,
        observer: Option<&'a Observer>,
    ) -> Result<Self> {
        let sources = parallel::try_map(arrays.len(), |index| {
            let WindowedArray {
                path,
                spec,
                samples,
            } = &arrays[index];
            let samples: Vec<(usize, &[u8])> = samples
                .iter()
                .map(|(rows, values)| (rows.start, *values))
                .collect();
            ChunkSource::sampled(path, spec, &samples).map_err(|error| error.at_node(path))
        })?;
        let written = sources
            .iter()
            .map(WrittenArray::of)
            .collect::<Result<_>>()?;
        Ok(Self {
            sources,
            written,
            container,
            observer,
        })
    }

    /// Rows of the windows of an array: those of a shard.
    pub fn window_rows(&self, array: usize) -> usize {
        let grid = &self.sources[array].grid;
        let (chunks, rows) = (grid.per_shard(), &grid.chunk_shape);
        chunks
            .first()
            .zip(rows.first())
            .map_or(1, |(n, rows)| n * rows) as usize
    }

    /// Encodes and appends a window of an array. The windows of an array follow each other.
    ///
    /// # Errors
    /// `Invalid` if the window does not begin with a shard, or a codec does not support a chunk; `Io`.
    pub fn write(&mut self, array: usize, first: usize, values: &[u8]) -> Result<()> {
        let source = &self.sources[array];
        let rows = self.window_rows(array);
        if first != self.written[array].keys.len() * rows {
            return Err(Error::invalid(format!(
                "expected the window {} of {rows} rows, found one at row {first}",
                self.written[array].keys.len()
            ))
            .at_node(source.name));
        }
        check_bools(&source.metadata.dtype, values).map_err(|error| error.at_node(source.name))?;
        let window = WriteBatch::of(source.window(first as u64, values));
        for part in window.write(self.container, self.observer)? {
            self.written[array].keys.extend(part.keys);
        }
        Ok(())
    }

    /// The written arrays.
    ///
    /// # Errors
    /// `Invalid` if windows are missing.
    pub fn finish(self) -> Result<Vec<WrittenArray>> {
        for (source, written) in self.sources.iter().zip(&self.written) {
            let (expected, found) = (source.grid.shards().len(), written.keys.len());
            if expected != found {
                return Err(
                    Error::invalid(format!("expected {expected} windows, found {found}"))
                        .at_node(source.name),
                );
            }
        }
        Ok(self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ArrayData;
    use crate::container::CreateOptions;
    use crate::dtype::DataType;
    use crate::store::{Store, StoreWriter};
    use ambar_codec::ErrorBound;

    fn write(spec: &ArraySpec, windowed: bool) -> (u64, Vec<u8>) {
        let count = spec.shape.iter().product::<u64>() as usize;
        let values: Vec<f64> = (0..count).map(|i| (i as f64 / 300.0).sin()).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        let rows = spec.shape[0] as usize;
        let row = bytes.len() / rows;
        let [chunk, shard] = [&spec.chunk_shape, &spec.shard_shape]
            .map(|lengths| lengths.as_ref().unwrap()[0] as usize);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.ambar");
        let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
        if windowed {
            let samples = sample_rows(rows, chunk);
            let samples = samples.into_iter().map(|rows| {
                let values = &bytes[rows.start * row..rows.end * row];
                (rows, values)
            });
            let array = WindowedArray {
                path: "/a",
                spec,
                samples: samples.collect(),
            };
            let fill = |windows: &mut WindowWriter<'_>| {
                let rows = windows.window_rows(0);
                assert_eq!(rows, shard);
                assert!(windows.write(0, rows, &bytes[rows * row..]).is_err());
                let mut each = bytes.chunks(rows * row).enumerate();
                each.try_for_each(|(i, values)| windows.write(0, i * rows, values))
            };
            writer.write_windows(&[array], fill).unwrap();
        } else {
            let data = ArrayData::Fixed(bytes);
            writer.write_array("/a", spec, data).unwrap();
        }
        writer.commit().unwrap();
        let array = Store::open(&path).unwrap().array("/a").unwrap();
        let mut read = vec![0; bytes.len()];
        array.read_rows(0..rows as u64, &mut read).unwrap();
        (array.stored_bytes().unwrap(), read)
    }

    #[test]
    fn windows_make_the_same_array() {
        let column = ArraySpec::new(DataType::Float64, &[10_000])
            .chunks(&[700])
            .shards(&[2100]);
        let blocks = ArraySpec::new(DataType::Float64, &[200, 4, 4, 4])
            .chunks(&[7, 4, 4, 4])
            .shards(&[21, 4, 4, 4])
            .blocks((0..200).map(|i| [4 * i, 0, 0]).collect());
        for bound in [None, Some(ErrorBound::Absolute(1e-3))] {
            for spec in [&column, &blocks] {
                let spec = spec.clone().error_bound(bound);
                assert_eq!(write(&spec, true), write(&spec, false));
            }
        }
    }

    #[test]
    fn missing_windows_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.ambar");
        let mut writer = StoreWriter::create(&path, &CreateOptions::default()).unwrap();
        let spec = ArraySpec::new(DataType::UInt8, &[9]).chunks(&[9]);
        let array = WindowedArray {
            path: "/a",
            spec: &spec,
            samples: vec![(0..9, &[7; 9])],
        };
        assert!(writer.write_windows(&[array], |_| Ok(())).is_err());
        assert!(writer.commit().is_err());
    }
}
