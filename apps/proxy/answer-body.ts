/** The body of an upstream's answer, as bytes or as a stream. */
import type { IncomingMessage } from "node:http";

/** Longest wait for the rest of a body before it is passed on as a stream, ms: the time between two packets. */
const GATHER_MS = 10;
/** Maximum number of bytes buffered for a client that reads more slowly than the source writes. */
const MAX_HELD_BYTES = 256 * 1024;

/** Returns the whole body. @throws the error that ended the connection */
export async function bytesOf(answer: IncomingMessage): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  for await (const piece of answer) pieces.push(piece);
  return joined(pieces);
}

/**
 * Returns the whole body if it arrives at once, as most do: Bun then sends it with its length, and with less work than
 * a stream, which is always chunked. Otherwise a stream, which fails if the answer breaks off, and aborts the answer if
 * cancelled.
 *
 * @throws the error that ended the connection
 */
export function firstOf(answer: IncomingMessage): Promise<Uint8Array<ArrayBuffer> | ReadableStream> {
  return new Promise((resolve, reject) => {
    if (answer.destroyed)
      return reject(answer.errored ?? new Error("the connection closed before the response was complete"));
    const pieces: Uint8Array[] = [];
    let held = 0;
    const timer = setTimeout(giveOn, GATHER_MS);
    answer.on("data", gather);
    answer.on("end", giveAll);
    answer.on("error", fail);
    function gather(piece: Uint8Array) {
      pieces.push(piece);
      held += piece.length;
      if (held > MAX_HELD_BYTES) giveOn();
    }
    function giveAll() {
      clearTimeout(timer);
      resolve(joined(pieces));
    }
    function fail(error: Error) {
      clearTimeout(timer);
      reject(error);
    }
    function giveOn() {
      clearTimeout(timer);
      answer.pause();
      answer.off("data", gather).off("end", giveAll).off("error", fail);
      resolve(streamOf(answer, pieces));
    }
  });
}

/** Returns a stream of the pieces and of the rest of `answer`. */
function streamOf(answer: IncomingMessage, pieces: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        for (const piece of pieces) controller.enqueue(piece);
        answer.on("data", (piece: Uint8Array) => {
          controller.enqueue(piece);
          if ((controller.desiredSize ?? 0) <= 0) answer.pause();
        });
        answer.on("end", () => controller.close());
        answer.on("error", (error) => controller.error(error));
      },
      pull: () => void answer.resume(),
      cancel: () => void answer.destroy(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: MAX_HELD_BYTES }),
  );
}

function joined(pieces: Uint8Array[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat(pieces));
}
