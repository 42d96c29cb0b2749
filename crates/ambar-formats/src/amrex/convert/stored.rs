//! What a store keeps of a plotfile besides its values: layout or run information, and file order.

use ambar::DataType;
use ambar::store::Store;
use ambar::{Error, Result};

use crate::amrex::layout::PlotfileLayout;

/// The array with the layout of a plotfile, as JSON text.
pub const LAYOUT: &str = "source/layout";

/// The array with the run information, as JSON text, if the store has no layout.
pub const RUN: &str = "source/run";

/// The attribute of a species that names the column with each particle's row in the files.
pub const ORDER: &str = "order";

/// Reads a text from an array with one string; `None` if the array does not exist.
///
/// # Errors
/// `Corrupt` for any other array, or invalid UTF-8; `Io`.
pub fn read_text(store: &Store, path: &str) -> Result<Option<String>> {
    if store.kind(path)?.is_none() {
        return Ok(None);
    }
    let array = store.array(path)?;
    let located = |message: &str| {
        Error::corrupt(message)
            .at_node(path)
            .in_file(store.location())
    };
    if *array.dtype() != DataType::String || array.shape() != [1] {
        return Err(located(
            "expected an array with one string, found another array; restore the file from a copy",
        ));
    }
    let texts = array.read_strings(&[(0..1).into()])?;
    let bytes = texts.get(0).unwrap_or_default().to_vec();
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| {
        located("expected UTF-8 text, found other bytes; restore the file from a copy")
    })
}

/// Reads a layout; `None` if the array does not exist.
///
/// # Errors
/// `Corrupt` for an invalid layout; `Io`.
pub fn read_layout(store: &Store, path: &str) -> Result<Option<PlotfileLayout>> {
    let text = read_text(store, path)?;
    let layout = text
        .map(|text| PlotfileLayout::from_json(&text))
        .transpose();
    layout.map_err(|error| error.at_node(path).in_file(store.location()))
}
