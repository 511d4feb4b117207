// SPDX-License-Identifier: Apache-2.0

//! Arrow IPC: files and streams.
//!
//! The library allocates any length that a message claims. So messages are checked first: a length
//! beyond the file's is an error, and so is one that memory can't hold.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_ipc::{root_as_footer, root_as_message, Block, Endianness, Message};
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;

use super::{FileContent, OpenedFile, Reader};
use crate::input::Input;
use crate::{Error, Result};

const MAGIC: &[u8] = b"ARROW1";
/// Magic bytes of Feather V1.
pub const FEATHER_1: &[u8] = b"FEA1";
/// Precedes the length of a message.
const CONTINUATION: u32 = u32::MAX;

/// True for a file, false for a stream.
pub fn is_file(input: &Input) -> Result<bool> {
    begins(input, MAGIC)
}

fn begins(input: &Input, magic: &[u8]) -> Result<bool> {
    match input.read_at(0, magic.len()) {
        Ok(start) => Ok(start == magic),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Refuses Feather V1.
pub fn check_version(input: &Input) -> Result<()> {
    match begins(input, FEATHER_1)? {
        true => Err(Error::new(
            "it is Feather V1, which is not read: write it as Feather V2 (Arrow IPC)",
        )),
        false => Ok(()),
    }
}

/// Refuses big-endian numbers, which would be misread.
fn check_order(schema: Option<arrow_ipc::Schema>) -> Result<()> {
    match schema.map(|schema| schema.endianness()) {
        Some(Endianness::Big) => Err(Error::new(
            "it is big-endian: only files with little-endian numbers are read",
        )),
        _ => Ok(()),
    }
}

fn cut_off() -> Error {
    Error::new("it is cut off")
}

fn bytes(input: &Input, at: u64, count: usize) -> Result<Bytes> {
    input.read_at(at, count).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => cut_off(),
        _ => e.into(),
    })
}

fn word(input: &Input, at: u64) -> Result<u32> {
    let word = bytes(input, at, 4)?;
    Ok(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// The message at an offset, and the offsets of its body and of the next message. `None`: end of
/// the stream.
fn message(input: &Input, at: u64) -> Result<Option<(Bytes, u64, u64)>> {
    let (length, start) = match word(input, at)? {
        CONTINUATION => (word(input, at + 4)?, at + 8),
        // The format before Arrow 0.15.
        length => (length, at + 4),
    };
    if length == 0 {
        return Ok(None);
    }
    let head = bytes(input, start, length as usize)?;
    let body = parsed(&head)?.bodyLength();
    let body = u64::try_from(body).map_err(|_| cut_off())?;
    let start = start + u64::from(length);
    let end = start.checked_add(body).filter(|&end| end <= input.bytes());
    Ok(Some((head, start, end.ok_or_else(cut_off)?)))
}

fn parsed(head: &[u8]) -> Result<Message<'_>> {
    root_as_message(head).map_err(|e| Error::new(format!("a message: {e}")))
}

/// Refuses a message whose decompressed buffers do not fit in memory.
fn check(input: &Input, head: &[u8], body: u64, end: u64) -> Result<()> {
    let message = parsed(head)?;
    let batch = message
        .header_as_record_batch()
        .or_else(|| message.header_as_dictionary_batch()?.data());
    let Some(batch) = batch.filter(|batch| batch.compression().is_some()) else {
        return Ok(());
    };
    let mut all = 0usize;
    for buffer in batch.buffers().into_iter().flatten() {
        let place = u64::try_from(buffer.offset()).map_err(|_| cut_off())?;
        let length = u64::try_from(buffer.length()).map_err(|_| cut_off())?;
        let place = body.checked_add(place).ok_or_else(cut_off)?;
        if place.checked_add(length).is_none_or(|stop| stop > end) {
            return Err(cut_off());
        }
        if length >= 8 {
            let size = bytes(input, place, 8)?;
            let size = size.first_chunk::<8>().ok_or_else(cut_off)?;
            // -1: the buffer is not compressed.
            let size = i64::from_le_bytes(*size).max(0);
            all = all.saturating_add(size as usize);
        }
    }
    let mut room: Vec<u8> = Vec::new();
    room.try_reserve_exact(all)
        .map_err(|_| Error::new(format!("no memory for {all} bytes of a batch")))
}

pub fn open_stream(input: Input) -> Result<OpenedFile> {
    let mut at = 0;
    while let Some((head, body, next)) = message(&input, at)? {
        check_order(parsed(&head)?.header_as_schema())?;
        check(&input, &head, body, next)?;
        at = next;
    }
    let reader = StreamReader::try_new(input.from(0), None)?;
    Ok(OpenedFile {
        schema: reader.schema(),
        metadata: Vec::new(),
        known: None,
        content: FileContent::ArrowStream(input),
    })
}

pub fn stream_batches(input: &Input, column: Option<usize>) -> Result<Reader> {
    let column = column.map(|column| vec![column]);
    let reader = StreamReader::try_new(input.from(0), column)?;
    Ok(Box::new(reader.map(|batch| batch.map_err(Error::from))))
}

fn check_block(input: &Input, block: &Block) -> Result<()> {
    let place = u64::try_from(block.offset()).map_err(|_| cut_off())?;
    let head = u64::try_from(block.metaDataLength()).map_err(|_| cut_off())?;
    let body = u64::try_from(block.bodyLength()).map_err(|_| cut_off())?;
    let start = place.checked_add(head).ok_or_else(cut_off)?;
    let end = start.checked_add(body).filter(|&end| end <= input.bytes());
    let end = end.ok_or_else(cut_off)?;
    match message(input, place)? {
        Some((head, ..)) => check(input, &head, start, end),
        None => Err(cut_off()),
    }
}

pub fn open_file(input: Input) -> Result<OpenedFile> {
    let magic = input.bytes().checked_sub(MAGIC.len() as u64);
    let at = magic.and_then(|at| at.checked_sub(4)).ok_or_else(cut_off)?;
    if bytes(&input, at + 4, MAGIC.len())? != MAGIC {
        return Err(cut_off());
    }
    let length = word(&input, at)?;
    let start = at.checked_sub(length.into()).ok_or_else(cut_off)?;
    let footer = bytes(&input, start, length as usize)?;
    let footer = root_as_footer(&footer);
    let footer = footer.map_err(|e| Error::new(format!("its footer: {e}")))?;
    check_order(footer.schema())?;
    let blocks = footer.dictionaries().into_iter().flatten();
    for block in blocks.chain(footer.recordBatches().into_iter().flatten()) {
        check_block(&input, block)?;
    }
    let reader = FileReader::try_new(input.from(0), None)?;
    let mut schema = Schema::clone(&reader.schema());
    schema.metadata.extend(reader.custom_metadata().clone());
    let schema = Arc::new(schema);
    Ok(OpenedFile {
        schema: schema.clone(),
        metadata: Vec::new(),
        known: None,
        content: FileContent::ArrowFile(input, schema),
    })
}

pub fn file_batches(input: &Input, schema: &SchemaRef, column: Option<usize>) -> Result<Reader> {
    let schema = column.is_none().then(|| schema.clone());
    let column = column.map(|column| vec![column]);
    let reader = FileReader::try_new(input.from(0), column)?;
    Ok(Box::new(reader.map(move |batch| {
        let batch = batch?;
        match &schema {
            Some(schema) => batch.with_schema(schema.clone()).map_err(Error::from),
            None => Ok(batch),
        }
    })))
}

/// Writes a file.
pub type File<W> = FileWriter<BufWriter<W>>;
/// Writes a stream.
pub type Stream<W> = StreamWriter<BufWriter<W>>;

pub fn stream<W: Write>(out: W, schema: &Schema) -> Result<Stream<W>> {
    StreamWriter::try_new(BufWriter::new(out), schema).map_err(Error::from)
}

pub fn file<W: Write>(out: W, schema: &Schema) -> Result<File<W>> {
    FileWriter::try_new(BufWriter::new(out), schema).map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use arrow_ipc::{
        FooterBuilder, Int, IntArgs, MessageBuilder, MessageHeader, MetadataVersion, SchemaBuilder,
        Type,
    };
    use flatbuffers::{FlatBufferBuilder, WIPOffset};

    use super::*;

    /// A schema with one column of numbers of this byte order.
    fn schema<'a>(
        out: &mut FlatBufferBuilder<'a>,
        order: Endianness,
    ) -> WIPOffset<arrow_ipc::Schema<'a>> {
        let name = out.create_string("a");
        let int = IntArgs {
            bitWidth: 32,
            is_signed: true,
        };
        let kind = Int::create(out, &int).as_union_value();
        let children = out.create_vector::<WIPOffset<arrow_ipc::Field>>(&[]);
        let mut field = arrow_ipc::FieldBuilder::new(out);
        field.add_name(name);
        field.add_type_type(Type::Int);
        field.add_type_(kind);
        field.add_children(children);
        let field = field.finish();
        let fields = out.create_vector(&[field]);
        let mut schema = SchemaBuilder::new(out);
        schema.add_endianness(order);
        schema.add_fields(fields);
        schema.finish()
    }

    fn stream_in(order: Endianness) -> Vec<u8> {
        let mut out = FlatBufferBuilder::new();
        let schema = schema(&mut out, order).as_union_value();
        let mut message = MessageBuilder::new(&mut out);
        message.add_version(MetadataVersion::V5);
        message.add_header_type(MessageHeader::Schema);
        message.add_header(schema);
        let message = message.finish();
        out.finish(message, None);
        let mut head = out.finished_data().to_vec();
        head.resize(head.len().next_multiple_of(8), 0);
        let length = (head.len() as u32).to_le_bytes();
        let end = [CONTINUATION.to_le_bytes(), [0; 4]].concat();
        [&CONTINUATION.to_le_bytes()[..], &length, &head, &end].concat()
    }

    fn file_in(order: Endianness) -> Vec<u8> {
        let mut out = FlatBufferBuilder::new();
        let schema = schema(&mut out, order);
        let blocks: [Block; 0] = [];
        let blocks = out.create_vector(&blocks);
        let mut footer = FooterBuilder::new(&mut out);
        footer.add_dictionaries(blocks);
        footer.add_recordBatches(blocks);
        footer.add_version(MetadataVersion::V5);
        footer.add_schema(schema);
        let footer = footer.finish();
        out.finish(footer, None);
        let footer = out.finished_data();
        let length = (footer.len() as u32).to_le_bytes();
        let begin = [MAGIC, &[0, 0], &stream_in(order)].concat();
        [&begin[..], footer, &length, MAGIC].concat()
    }

    #[test]
    fn ipc_rejects_big_endian_numbers() {
        assert_eq!(
            open_stream(stream_in(Endianness::Little).into())
                .unwrap()
                .schema
                .fields()
                .len(),
            1
        );
        assert_eq!(
            open_file(file_in(Endianness::Little).into())
                .unwrap()
                .schema
                .fields()
                .len(),
            1
        );
        let stream = open_stream(stream_in(Endianness::Big).into())
            .err()
            .unwrap();
        let file = open_file(file_in(Endianness::Big).into()).err().unwrap();
        for error in [stream, file] {
            assert!(error.to_string().starts_with("it is big-endian"), "{error}");
        }
    }
}
