//! Arrow IPC: files and streams.
//!
//! The library allocates whatever a message says that it holds. So messages are looked at before: lengths beyond the file's are an error, and
//! so are those for which there is no memory.

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_ipc::{root_as_footer, root_as_message, Block, Message};

use super::collect;
use crate::{Error, Result, Table};

const MAGIC: &[u8] = b"ARROW1";
/// In front of a message's length.
const CONTINUATION: u32 = u32::MAX;

/// Whether it is a file, and not a stream.
pub fn is_file(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

fn cut_off() -> Error {
    Error::new("it is cut off")
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    let end = at.checked_add(4).ok_or_else(cut_off)?;
    let word = bytes.get(at..end).ok_or_else(cut_off)?;
    Ok(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

fn slice(bytes: &[u8], at: usize, count: usize) -> Result<&[u8]> {
    let end = at.checked_add(count).ok_or_else(cut_off)?;
    bytes.get(at..end).ok_or_else(cut_off)
}

/// A message at a place: itself, its body, and where the next one is. Nothing is the end of a stream.
fn message(bytes: &[u8], at: usize) -> Result<Option<(Message<'_>, &[u8], usize)>> {
    let first = word(bytes, at)?;
    let (length, start) = match first {
        CONTINUATION => (word(bytes, at + 4)?, at + 8),
        // As it was before Arrow 0.15.
        length => (length, at + 4),
    };
    if length == 0 {
        return Ok(None);
    }
    let head = slice(bytes, start, length as usize)?;
    let message = root_as_message(head).map_err(|e| Error::new(format!("a message: {e}")))?;
    let body = usize::try_from(message.bodyLength()).map_err(|_| cut_off())?;
    let start = start + length as usize;
    let body = slice(bytes, start, body)?;
    Ok(Some((message, body, start + body.len())))
}

/// Refuses a message whose buffers there is no memory for once they are decompressed.
fn check(message: &Message, body: &[u8]) -> Result<()> {
    let batch = message
        .header_as_record_batch()
        .or_else(|| message.header_as_dictionary_batch()?.data());
    let Some(batch) = batch.filter(|batch| batch.compression().is_some()) else {
        return Ok(());
    };
    let mut all = 0usize;
    for buffer in batch.buffers().into_iter().flatten() {
        let place = usize::try_from(buffer.offset()).map_err(|_| cut_off())?;
        let length = usize::try_from(buffer.length()).map_err(|_| cut_off())?;
        let buffer = slice(body, place, length)?;
        if let Some(bytes) = buffer.first_chunk::<8>() {
            // -1: it is not compressed.
            let bytes = i64::from_le_bytes(*bytes).max(0);
            all = all.saturating_add(bytes as usize);
        }
    }
    let mut room: Vec<u8> = Vec::new();
    room.try_reserve_exact(all)
        .map_err(|_| Error::new(format!("no memory for {all} bytes of a batch")))
}

pub fn read_stream(bytes: &[u8]) -> Result<Table> {
    let mut at = 0;
    while let Some((message, body, next)) = message(bytes, at)? {
        check(&message, body)?;
        at = next;
    }
    let reader = StreamReader::try_new(bytes, None).map_err(Error::new)?;
    Ok(collect(&reader.schema(), reader)?.into())
}

fn check_block(bytes: &[u8], block: &Block) -> Result<()> {
    let place = usize::try_from(block.offset()).map_err(|_| cut_off())?;
    let head = usize::try_from(block.metaDataLength()).map_err(|_| cut_off())?;
    let body = usize::try_from(block.bodyLength()).map_err(|_| cut_off())?;
    let body = slice(bytes, place.saturating_add(head), body)?;
    match message(bytes, place)? {
        Some((message, ..)) => check(&message, body),
        None => Err(cut_off()),
    }
}

pub fn read_file(bytes: &[u8]) -> Result<Table> {
    let end = bytes.strip_suffix(MAGIC).ok_or_else(cut_off)?;
    let at = end.len().checked_sub(4).ok_or_else(cut_off)?;
    let length = word(end, at)? as usize;
    let start = at.checked_sub(length).ok_or_else(cut_off)?;
    let footer = root_as_footer(&end[start..at]);
    let footer = footer.map_err(|e| Error::new(format!("its footer: {e}")))?;
    let blocks = footer.dictionaries().into_iter().flatten();
    for block in blocks.chain(footer.recordBatches().into_iter().flatten()) {
        check_block(bytes, block)?;
    }
    let reader = FileReader::try_new(Cursor::new(bytes), None).map_err(Error::new)?;
    let mut schema = (*reader.schema()).clone();
    schema.metadata.extend(reader.custom_metadata().clone());
    let batch = collect(&reader.schema(), reader)?;
    let batch = batch.with_schema(schema.into()).map_err(Error::new)?;
    Ok(batch.into())
}

pub fn write_stream(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).map_err(Error::new)?;
    writer.write(batch).map_err(Error::new)?;
    writer.into_inner().map_err(Error::new)
}

pub fn write_file(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).map_err(Error::new)?;
    writer.write(batch).map_err(Error::new)?;
    writer.into_inner().map_err(Error::new)
}
