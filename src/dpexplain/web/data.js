// Reads the data a page carries: JSON whose long arrays are little-endian bytes in base64, exact to the last bit.

const ARRAYS = { f8: Float64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };

function bytesOf(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** {"f8": "…"} becomes a Float64Array, {"u1": "…"}, {"u2": "…"} and {"u4": "…"} unsigned integers, everything else stays as it is. */
export function unpack(value) {
  if (Array.isArray(value)) return value.map(unpack);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value);
  if (entries.length === 1 && entries[0][0] in ARRAYS) return new ARRAYS[entries[0][0]](bytesOf(entries[0][1]).buffer);
  return Object.fromEntries(entries.map(([key, entry]) => [key, unpack(entry)]));
}
