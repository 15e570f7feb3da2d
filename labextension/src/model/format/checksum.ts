/** The checksum that distinguishes versions of a cell: CRC-32, as the server's `code_checksum`. */

const TABLE = Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) {
    value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return value;
});

/** CRC-32 of a text in UTF-8, as eight hexadecimal digits. */
export function checksum(text: string): string {
  let value = -1;
  for (const byte of new TextEncoder().encode(text)) {
    value = TABLE[(value ^ byte) & 255] ^ (value >>> 8);
  }
  return (~value >>> 0).toString(16).padStart(8, '0');
}
