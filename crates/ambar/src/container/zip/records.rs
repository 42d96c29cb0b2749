//! The records of ZIP files, in the layout of APPNOTE 6.3.10: little-endian, unaligned.

/// The key of the root's metadata, which every commit writes last.
pub const ROOT: &str = "zarr.json";

/// Whether the entry is a document of Zarr, the only entries that may be deflated.
pub fn is_document(key: &str) -> bool {
    key.rsplit('/').next() == Some(ROOT)
}

/// Identifier of ambar's own extra fields: the bytes `am`. APPNOTE 4.6.1 lists no other use of it.
pub const EXTRA_ID: u16 = 0x6d61;

/// Identifier of the ZIP64 extra field.
const ZIP64_ID: u16 = 0x0001;

/// General purpose bit 11: the name is UTF-8.
pub const FLAG_UTF8: u16 = 1 << 11;

/// Compression methods: none, and DEFLATE.
pub const STORED: u16 = 0;
pub const DEFLATED: u16 = 8;

/// Signature of a local header.
pub const LOCAL_SIGNATURE: u32 = 0x0403_4b50;

/// Signature of an entry of the central directory.
pub const DIRECTORY_SIGNATURE: u32 = 0x0201_4b50;

/// Signature of the end record.
pub const END_SIGNATURE: u32 = 0x0605_4b50;

const ZIP64_END_SIGNATURE: u32 = 0x0606_4b50;
const LOCATOR_SIGNATURE: u32 = 0x0706_4b50;

/// Length of the fixed part of a local header.
pub const LOCAL_LEN: usize = 30;

/// Length of the ZIP64 extra field of a local header.
const ZIP64_LOCAL_LEN: usize = 20;

/// Length of the fixed part of an entry of the central directory.
pub const DIRECTORY_LEN: usize = 46;

/// Length of the end record without its comment.
pub const PLAIN_END_LEN: usize = 22;

/// Length of the ZIP64 end record.
pub const ZIP64_END_LEN: usize = 56;

/// Length of the locator of the ZIP64 end record.
pub const LOCATOR_LEN: usize = 20;

/// Length of all three end records, without the comment.
pub const END_LEN: usize = ZIP64_END_LEN + LOCATOR_LEN + PLAIN_END_LEN;

/// Versions needed to extract: 2.0 for plain entries, 4.5 where ZIP64 sizes are used.
const VERSION: u16 = 20;
const VERSION_ZIP64: u16 = 45;

/// Made by version 4.5 on Unix, whose permissions are in the external attributes.
const MADE_BY: u16 = (3 << 8) | VERSION_ZIP64;

/// `-rw-r--r--`, a regular file.
const EXTERNAL_ATTRIBUTES: u32 = 0o100_644 << 16;

/// 1980-01-01, the zero of MS-DOS dates: stores of equal content have equal bytes.
const DATE: u16 = (1 << 5) | 1;

/// The value of a 32-bit field whose true value is in the ZIP64 extra field.
const IN_ZIP64: u32 = u32::MAX;

/// The local header of an entry.
pub struct LocalHeader<'a> {
    /// Key of the entry; at most 65,535 bytes.
    pub name: &'a str,
    /// Length of the content in bytes.
    pub len: u64,
    /// Bytes in the file of a deflated content; `None` if it is stored uncompressed.
    pub deflated: Option<u32>,
    /// CRC-32 of the content.
    pub crc32: u32,
}

impl LocalHeader<'_> {
    /// Whether the length needs ZIP64.
    fn is_zip64(&self) -> bool {
        self.len >= u64::from(IN_ZIP64)
    }

    /// The header's length in bytes.
    pub fn encoded_len(&self) -> usize {
        LOCAL_LEN + self.name.len() + if self.is_zip64() { ZIP64_LOCAL_LEN } else { 0 }
    }

    /// Appends the header's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let extra_len = if self.is_zip64() { ZIP64_LOCAL_LEN } else { 0 };
        self.encode_fixed(out, extra_len as u16);
        if self.is_zip64() {
            // APPNOTE 4.5.3: a local header must contain both sizes.
            put16(out, ZIP64_ID);
            put16(out, 16);
            put64(out, self.len);
            put64(out, self.len);
        }
    }

    /// The header's bytes with one extra field, `len` zeros, and no ZIP64 sizes.
    pub fn encode_with_extra(&self, id: u16, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(LOCAL_LEN + self.name.len() + 4 + len);
        self.encode_fixed(&mut out, (len + 4) as u16);
        put16(&mut out, id);
        put16(&mut out, len as u16);
        out.resize(out.len() + len, 0);
        out
    }

    fn encode_fixed(&self, out: &mut Vec<u8>, extra_len: u16) {
        put32(out, LOCAL_SIGNATURE);
        put16(
            out,
            if self.is_zip64() {
                VERSION_ZIP64
            } else {
                VERSION
            },
        );
        put_method(out, self.deflated, self.crc32, self.len);
        put16(out, self.name.len() as u16);
        put16(out, extra_len);
        out.extend_from_slice(self.name.as_bytes());
    }
}

/// An entry of the central directory.
pub struct DirectoryEntry<'a> {
    /// Key of the entry; at most 65,535 bytes.
    pub name: &'a str,
    /// Length of the content in bytes.
    pub len: u64,
    /// Bytes in the file of a deflated content; `None` if it is stored uncompressed.
    pub deflated: Option<u32>,
    /// CRC-32 of the content.
    pub crc32: u32,
    /// File offset of the local header.
    pub header_offset: u64,
    /// The entry's seal, if it has one.
    pub seal: Option<u32>,
}

impl DirectoryEntry<'_> {
    /// Appends the entry's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let long = self.len >= u64::from(IN_ZIP64);
        let far = self.header_offset >= u64::from(IN_ZIP64);
        // APPNOTE 4.5.3: only those fields whose 32-bit counterparts say so, in this order.
        let zip64_len = if long { 16 } else { 0 } + if far { 8 } else { 0 };
        let zip64_field = if zip64_len > 0 { 4 + zip64_len } else { 0 };
        put32(out, DIRECTORY_SIGNATURE);
        put16(out, MADE_BY);
        put16(
            out,
            if zip64_len > 0 {
                VERSION_ZIP64
            } else {
                VERSION
            },
        );
        put_method(out, self.deflated, self.crc32, self.len);
        put16(out, self.name.len() as u16);
        let own_field = if self.seal.is_some() { 8 } else { 0 };
        put16(out, zip64_field + own_field);
        put16(out, 0); // comment
        put16(out, 0); // disk
        put16(out, 0); // internal attributes
        put32(out, EXTERNAL_ATTRIBUTES);
        put32(out, saturated32(self.header_offset));
        out.extend_from_slice(self.name.as_bytes());
        if zip64_len > 0 {
            put16(out, ZIP64_ID);
            put16(out, zip64_len);
        }
        if long {
            put64(out, self.len);
            put64(out, self.len);
        }
        if far {
            put64(out, self.header_offset);
        }
        if let Some(seal) = self.seal {
            put16(out, EXTRA_ID);
            put16(out, 4);
            put32(out, seal);
        }
    }
}

/// The ZIP64 end record, its locator and the end record, without the comment's `comment_len` bytes.
///
/// The plain record contains the true values if they fit, for readers without ZIP64.
pub fn end_records(entries: u64, len: u64, offset: u64, comment_len: u16) -> Vec<u8> {
    let mut out = Vec::with_capacity(END_LEN + usize::from(comment_len));
    put32(&mut out, ZIP64_END_SIGNATURE);
    put64(&mut out, ZIP64_END_LEN as u64 - 12);
    put16(&mut out, MADE_BY);
    put16(&mut out, VERSION_ZIP64);
    put32(&mut out, 0); // this disk
    put32(&mut out, 0); // the central directory's disk
    put64(&mut out, entries);
    put64(&mut out, entries);
    put64(&mut out, len);
    put64(&mut out, offset);

    put32(&mut out, LOCATOR_SIGNATURE);
    put32(&mut out, 0); // disk of the ZIP64 end record
    put64(&mut out, offset.saturating_add(len));
    put32(&mut out, 1); // disks

    put32(&mut out, END_SIGNATURE);
    put16(&mut out, 0); // this disk
    put16(&mut out, 0); // the central directory's disk
    let entries = u16::try_from(entries).unwrap_or(u16::MAX);
    put16(&mut out, entries);
    put16(&mut out, entries);
    put32(&mut out, saturated32(len));
    put32(&mut out, saturated32(offset));
    put16(&mut out, comment_len);
    out
}

/// The location of a central directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CentralDirectory {
    /// File offset.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// Number of entries.
    pub entries: u64,
}

/// Parses a ZIP64 end record.
pub fn parse_zip64_end(bytes: &[u8]) -> Option<CentralDirectory> {
    let is_record = bytes.len() >= ZIP64_END_LEN && u32_at(bytes, 0) == ZIP64_END_SIGNATURE;
    is_record.then(|| CentralDirectory {
        offset: u64_at(bytes, 48),
        len: u64_at(bytes, 40),
        entries: u64_at(bytes, 32),
    })
}

/// The file offset of the ZIP64 end record, from its locator.
pub fn parse_locator(bytes: &[u8]) -> Option<u64> {
    let is_record = bytes.len() >= LOCATOR_LEN && u32_at(bytes, 0) == LOCATOR_SIGNATURE;
    is_record.then(|| u64_at(bytes, 8))
}

/// The values of an entry's fixed fields and extra fields.
#[derive(Clone, Copy, Debug)]
pub struct ExtraFields {
    /// Length of the content, uncompressed.
    pub len: u64,
    /// Length of the content as stored.
    pub stored_len: u64,
    /// File offset of the local header.
    pub header_offset: u64,
    /// The entry's seal, if it has one.
    pub seal: Option<u32>,
}

impl ExtraFields {
    /// Completes the values of the 32-bit fields with the extra fields of a central directory entry;
    /// `None` if these are cut short.
    pub fn complete(mut self, mut extra: &[u8]) -> Option<Self> {
        // Some writers pad with fewer than four bytes after the last field.
        while extra.len() >= 4 {
            let (id, len) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
            let field = extra.get(4..4 + len)?;
            match id {
                ZIP64_ID => self.complete_zip64(field)?,
                EXTRA_ID => self.seal = Some(u32::from_le_bytes(field.try_into().ok()?)),
                _ => {}
            }
            extra = &extra[4 + len..];
        }
        Some(self)
    }

    fn complete_zip64(&mut self, mut field: &[u8]) -> Option<()> {
        for value in [&mut self.len, &mut self.stored_len, &mut self.header_offset] {
            if *value == u64::from(IN_ZIP64) {
                *value = u64_at(field.get(..8)?, 0);
                field = &field[8..];
            }
        }
        Some(())
    }
}

/// Appends the fields that local headers and entries of the central directory share, from flags to sizes.
fn put_method(out: &mut Vec<u8>, deflated: Option<u32>, crc32: u32, len: u64) {
    put16(out, FLAG_UTF8);
    put16(out, deflated.map_or(STORED, |_| DEFLATED));
    put16(out, 0); // time
    put16(out, DATE);
    put32(out, crc32);
    put32(out, deflated.unwrap_or(saturated32(len)));
    put32(out, saturated32(len));
}

fn saturated32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(IN_ZIP64)
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// The 16-bit word at `at`; the caller has checked the length.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The 32-bit word at `at`; the caller has checked the length.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

/// The 64-bit word at `at`; the caller has checked the length.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
