/** The body of an upstream's answer, as bytes or as a stream. */
import type { StreamedAnswer } from "../../core/http/connections";
import { type AnswerPlace, NoPlace } from "./answer-place";

/** Longest wait for the rest of a body before it is passed on as a stream, ms: the time between two packets. */
const GATHER_MS = 10;
/** Maximum number of bytes buffered for a client that reads more slowly than the source writes. */
const MAX_HELD_BYTES = 256 * 1024;

/**
 * Returns the whole body if it arrives at once, as most do: Bun then sends it with its length, and with less work than
 * a stream, which is always chunked. Otherwise a stream, which fails if the answer breaks off, and aborts the answer if
 * cancelled.
 *
 * @param place is left when the answer has ended
 * @throws the error that ended the connection; NoPlace
 */
export function firstOf(
  answer: StreamedAnswer,
  place: AnswerPlace,
): Promise<Uint8Array<ArrayBuffer> | ReadableStream> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let held = 0;
    let isSettled = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const settle = (how: () => void) => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      how();
    };
    const giveOn = () =>
      settle(() => {
        if (!place.take()) return reject(new NoPlace());
        resolve(streamOf(answer, pieces, place));
      });
    answer.receive({
      data(piece) {
        pieces.push(piece);
        held += piece.length;
        if (held > MAX_HELD_BYTES) giveOn();
      },
      end: () =>
        settle(() => {
          place.leave();
          resolve(joined(pieces));
        }),
      fail: (error) => settle(() => reject(error)),
    });
    if (!isSettled) timer = setTimeout(giveOn, GATHER_MS);
  });
}

/**
 * Returns a stream of the pieces and of the rest of `answer`. It holds a connection to the source for as long as its client
 * takes to read it.
 */
function streamOf(
  answer: StreamedAnswer,
  pieces: Uint8Array[],
  place: AnswerPlace,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const enqueue = (piece: Uint8Array) => {
          controller.enqueue(piece);
          if ((controller.desiredSize ?? 0) <= 0) answer.pause();
        };
        for (const piece of pieces) enqueue(piece);
        place.breakOff = () => {
          answer.destroy();
          controller.error(new NoPlace());
        };
        answer.receive({
          data: enqueue,
          end() {
            place.leave();
            controller.close();
          },
          fail(error) {
            place.leave();
            controller.error(error);
          },
        });
      },
      pull: () => answer.resume(),
      cancel() {
        place.leave();
        answer.destroy();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: MAX_HELD_BYTES }),
  );
}

function joined(pieces: Buffer[]): Uint8Array<ArrayBuffer> {
  return (pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)) as Buffer<ArrayBuffer>;
}
