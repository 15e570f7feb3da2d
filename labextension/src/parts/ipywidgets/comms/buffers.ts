/** Buffers of comms: base64 on the wire, because messages are JSON. */

export function decodeBuffers(buffers: readonly string[] = []): DataView[] {
  return buffers.map(text => {
    const bytes = Uint8Array.from(atob(text), char => char.charCodeAt(0));
    return new DataView(bytes.buffer);
  });
}

export function encodeBuffers(buffers: readonly (ArrayBuffer | ArrayBufferView)[] = []): string[] {
  return buffers.map(buffer => {
    const bytes = ArrayBuffer.isView(buffer)
      ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
      : new Uint8Array(buffer);
    let text = '';
    // In pieces: a call has a limited number of arguments.
    for (let at = 0; at < bytes.length; at += 0x8000) {
      text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    }
    return btoa(text);
  });
}
