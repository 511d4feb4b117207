// SPDX-License-Identifier: Apache-2.0

//! Finds the page whose checksum is wrong, after the library has detected one.

use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::input::Input;

/// The library's error for a page whose bytes do not match the checksum of its header.
const MISMATCH: &str = "CRC checksum mismatch";

/// The text of an error. If a checksum is wrong, it names column, row group and page.
pub fn describe(input: &Input, error: &str) -> String {
    let place = error
        .contains(MISMATCH)
        .then(|| find_damaged_page(input))
        .flatten();
    place.unwrap_or_else(|| error.to_string())
}

fn find_damaged_page(input: &Input) -> Option<String> {
    let reader = SerializedFileReader::new(input.clone()).ok()?;
    for group in 0..reader.num_row_groups() {
        let row_group = reader.get_row_group(group).ok()?;
        for column in 0..row_group.num_columns() {
            let about = row_group.metadata().column(column);
            let mut dictionary = about.dictionary_page_offset().is_some();
            let mut pages = row_group.get_column_page_reader(column).ok()?;
            let mut data = 0;
            loop {
                let page = match dictionary {
                    true => "its dictionary page".to_string(),
                    false => format!("page {data}"),
                };
                match pages.get_next_page() {
                    Ok(None) => break,
                    Err(error) if error.to_string().contains(MISMATCH) => {
                        let name = about.column_path().string();
                        return Some(format!(
                            "column {name:?}, row group {group}, {page}: its checksum (CRC) is \
                                wrong, its bytes have changed"
                        ));
                    }
                    Ok(Some(_)) => {
                        data += usize::from(!dictionary);
                        dictionary = false;
                    }
                    Err(_) => break,
                }
            }
        }
    }
    None
}
