/**
 * Decompresses gzip bodies at once, on this thread, into memory that each body uses again.
 *
 * A body of 17 kB has some 56 kB of text, and most texts are only hashed. The garbage collector counts the memory of each
 * text, even if it is freed early: with memory of their own, texts cause more than half of all collections. Handing bodies
 * to another thread and back costs several times as much as decompressing 10 kB.
 */
import { constants, createGunzip } from "node:zlib";

/** Larger bodies would delay other requests by milliseconds, bytes. */
const MOST_BODY_BYTES = 60 * 1024;
/** The memory for texts grows up to this size, bytes. */
const MOST_TEXT_BYTES = 1024 * 1024;
const FIRST_TEXT_BYTES = 128 * 1024;
/** Header and trailer of a gzip member, bytes. */
export const SHORTEST_GZIP = 18;

/**
 * What a stream of node:zlib writes with. No documented function decompresses into memory that is there already.
 * `test/unit/gunzip.test.ts` fails if a version of the runtime does not have it.
 */
interface Inflater {
  readonly _handle: {
    onerror: () => void;
    reset(): void;
    writeSync(
      flush: number,
      input: Uint8Array,
      inputAt: number,
      inputLength: number,
      output: Uint8Array,
      outputAt: number,
      outputLength: number,
    ): void;
  };
  /** After a write: the bytes of the output and of the input that are left. */
  readonly _writeState: Uint32Array;
}

let hasFailed = false;
const inflater = createGunzip() as unknown as Inflater;
inflater._handle.onerror = () => {
  hasFailed = true;
};
let memory = Buffer.allocUnsafeSlow(FIRST_TEXT_BYTES);

/**
 * Returns the text of a gzip body, in memory that the next call overwrites. Undefined for what a stream of zlib must
 * judge: large or invalid bodies, and those of several members.
 */
export function gunzipBriefly(bytes: Buffer): Buffer | undefined {
  if (bytes.length > MOST_BODY_BYTES || bytes.length < SHORTEST_GZIP) return undefined;
  // A body ends with the length of its text.
  const textBytes = bytes.readUInt32LE(bytes.length - 4);
  if (textBytes > MOST_TEXT_BYTES) return undefined;
  // One byte more shows that the text ends where it claims to.
  if (memory.length <= textBytes)
    memory = Buffer.allocUnsafeSlow(Math.min(2 * textBytes, MOST_TEXT_BYTES) + 1);
  const { _handle: handle, _writeState: left } = inflater;
  hasFailed = false;
  handle.reset();
  handle.writeSync(constants.Z_FINISH, bytes, 0, bytes.length, memory, 0, textBytes + 1);
  const isWhole = !hasFailed && left[0] === 1 && left[1] === 0;
  return isWhole ? memory.subarray(0, textBytes) : undefined;
}

/** The same, in memory of its own. */
export function gunzipAtOnce(bytes: Buffer): Buffer | undefined {
  const text = gunzipBriefly(bytes);
  return text && Buffer.from(text);
}

/**
 * Frees the memory of bytes that were received or decompressed, which become empty. If it waited for the garbage
 * collector, the next bytes would take new memory from the kernel, with a page fault for every 4 kB.
 */
export function freeNow(bytes: Buffer): void {
  const { buffer } = bytes;
  // A smaller buffer may be the pool that other bytes share.
  if (buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize) buffer.transfer(0);
}
