import { expect, test } from 'vitest';
import { checksum } from './checksum';

/** As Python writes them: f"{zlib.crc32(text.encode()):08x}". */
test.each([
  ['', '00000000'],
  ['a', 'e8b7be43'],
  ['print("hello")\n', '2996877c'],
  ['x = "\u00e9\u4e2d\u{1f600}"', '8f0f359a']
])('is the checksum of the server: %j', (text, expected) => {
  expect(checksum(text)).toBe(expected);
});
