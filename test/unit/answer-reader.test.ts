/** One HTTP answer from the bytes of a connection: whatever the pieces, the same answer; whatever is not valid, none. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type AnswerHead, InvalidAnswer, readHead } from "../../core/http/connections/answer-head";
import { AnswerParser } from "../../core/http/connections/answer-parser";
import { AnswerReader, AnswerTooLarge } from "../../core/http/connections/answer-reader";

const MOST = 10_000;

/** Reads the bytes in pieces that end at these places. */
function read(bytes: Buffer, cuts: number[] = [], most = MOST): AnswerReader {
  const reader = new AnswerReader(most);
  const ends = [...new Set([...cuts.map((cut) => cut % bytes.length), bytes.length])].sort((a, b) => a - b);
  let from = 0;
  for (const end of ends) {
    reader.push(Buffer.from(bytes.subarray(from, end)));
    from = end;
  }
  return reader;
}

const text = (head: string, body = "") =>
  Buffer.from(`${head.replaceAll("\n", "\r\n")}\r\n\r\n${body}`, "latin1");

function chunked(pieces: Uint8Array[]): Buffer {
  const parts = pieces
    .filter((piece) => piece.length > 0)
    .flatMap((piece) => [Buffer.from(`${piece.length.toString(16)};x=1\r\n`), piece, Buffer.from("\r\n")]);
  return Buffer.concat([...parts, Buffer.from("0\r\nx-trailer: 1\r\n\r\n")]);
}

const someBytes = fc.uint8Array({ maxLength: 400 });
const cuts = fc.array(fc.nat(2000), { maxLength: 12 });

test("the answer does not depend on the pieces in which it arrives, nor on how its length is given", () => {
  fc.assert(
    fc.property(
      fc.array(someBytes, { maxLength: 4 }),
      fc.boolean(),
      fc.boolean(),
      cuts,
      (pieces, isChunked, isInterim, at) => {
        const body = Buffer.concat(pieces);
        const length = isChunked ? "Transfer-Encoding: chunked" : `content-length: ${body.length}`;
        const head = text(`HTTP/1.1 200 OK\nDate: today\n${length}\nretry-after: 1\nRetry-After:  2 `);
        const interim = isInterim ? text("HTTP/1.1 103 Early Hints\nlink: x") : Buffer.alloc(0);
        const reader = read(Buffer.concat([interim, head, isChunked ? chunked(pieces) : body]), at);
        expect(reader.answer).toMatchObject({ status: 200, body });
        expect([reader.answer!.headers.get("date"), reader.answer!.headers.get("retry-after")]).toEqual([
          "today",
          "1, 2",
        ]);
        expect(reader.keepsAlive).toBe(true);
      },
    ),
  );
});

test("a head is read as its lines are one by one", () => {
  const name = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\t\x20-\x7e\x80-\xff]*?)[\t ]*$/;
  const line = fc.oneof(
    fc.tuple(
      fc.constantFrom("Date", "X-A", "x-a", "Keep-Alive", "content-encoding", "retry-AFTER", "Connection"),
      fc.constantFrom(":", ": ", ":\t", " :", ""),
      fc.constantFrom("", "a", "b", " a b ", "date: x", "\xe9", "é".repeat(3), "\n", "\r", "\0", "\x7f"),
      fc.constantFrom("", " "),
    ),
    fc.tuple(fc.string({ minLength: 1, maxLength: 8 })),
  );
  fc.assert(
    fc.property(
      fc.array(
        line.map((parts) => parts.join("")),
        { maxLength: 5 },
      ),
      (lines) => {
        const expected: [string, string][] = [];
        let isValid = true;
        const head = Buffer.from(["HTTP/1.1 200", ...lines, "content-length: 0"].join("\r\n"), "latin1");
        for (const one of head.toString("latin1").split("\r\n").slice(1)) {
          const [, key, value = ""] = name.exec(one) ?? [];
          if (key === undefined) isValid = false;
          else if (key.toLowerCase() !== "content-encoding") expected.push([key, value]);
          else {
            const before = expected.find(([other]) => other.toLowerCase() === "content-encoding");
            if (!before) expected.push([key, value]);
            else if (before[1] !== value) isValid = false;
          }
        }
        let read: AnswerHead | undefined;
        const sink = {
          head(head: AnswerHead) {
            read = head;
          },
          body() {},
          end() {},
        };
        const push = () => new AnswerParser(sink).push(Buffer.concat([head, Buffer.from("\r\n\r\n")]));
        if (!isValid) {
          expect(push).toThrow(InvalidAnswer);
          return;
        }
        push();
        expect(read!.lines).toEqual(expected);
        for (const key of ["date", "keep-alive", "content-encoding", "retry-after", "connection"]) {
          const values = expected.filter(([other]) => other.toLowerCase() === key).map(([, value]) => value);
          expect(read!.headers.get(key)).toBe(values.length > 0 ? values.join(", ") : undefined);
        }
      },
    ),
  );
});

test("no part of an answer is an answer", () => {
  for (const whole of [
    text("HTTP/1.1 200 OK\ncontent-length: 5", "hello"),
    Buffer.concat([text("HTTP/1.1 200 OK\ntransfer-encoding: chunked"), chunked([Buffer.from("hello")])]),
  ]) {
    for (let end = 1; end < whole.length; end++) {
      const reader = read(whole.subarray(0, end));
      expect([reader.answer, reader.close()]).toEqual([undefined, false]);
    }
  }
});

test("a body may have a hundred thousand chunks, and interim answers and trailers of any number, in one piece", () => {
  const times = 100_000;
  const interim = Buffer.concat(Array<Buffer>(times).fill(text("HTTP/1.1 102 Processing")));
  const chunks = Buffer.from(`${"7\r\nabcdefg\r\n".repeat(times)}0\r\n`);
  const trailers = Buffer.from(`${"x-trailer: 1\r\n".repeat(3000)}\r\n`);
  const head = text("HTTP/1.1 200 OK\ntransfer-encoding: chunked");
  const reader = read(Buffer.concat([interim, head, chunks, trailers]), [], 7 * times);
  expect([reader.answer?.body.equals(Buffer.from("abcdefg".repeat(times))), reader.keepsAlive]).toEqual([
    true,
    true,
  ]);
});

test("an answer without a length ends with the connection, which serves no other", () => {
  const reader = read(text("HTTP/1.1 200 OK", "some bytes"), [3, 25]);
  expect(reader.answer).toBeUndefined();
  expect(reader.close()).toBe(true);
  expect(reader.answer).toMatchObject({ body: Buffer.from("some bytes") });
  expect(reader.keepsAlive).toBe(false);
});

test.each([
  ["HTTP/1.1 200 OK\nconnection: close\ncontent-length: 0", ""],
  ["HTTP/1.0 200 OK\ncontent-length: 0", ""],
  ["HTTP/1.1 204 No Content", "x"],
  ["HTTP/1.1 200 OK\ncontent-length: 1", "xx"],
])("the connection is not used again after %j", (head, body) => {
  const reader = read(text(head, body));
  expect([reader.answer !== undefined, reader.keepsAlive]).toEqual([true, false]);
});

test.each([
  ["HTTP/2 200", ""],
  ["HTTP/1.1 600 x\ncontent-length: 0", ""],
  ["HTTP/1.1 101 Switching Protocols\nupgrade: x", ""],
  ["HTTP/1.1 200 OK\ncontent-length: 1\ncontent-length: 2", "xx"],
  ["HTTP/1.1 200 OK\ncontent-length: 1\ntransfer-encoding: chunked", "0\r\n\r\n"],
  ["HTTP/1.1 200 OK\ntransfer-encoding: gzip, chunked", "0\r\n\r\n"],
  ["HTTP/1.0 200 OK\ntransfer-encoding: chunked", "0\r\n\r\n"],
  ["HTTP/1.1 200 OK\ncontent-length: -1", ""],
  ["HTTP/1.1 200 OK\ncontent-length: 0x1", ""],
  ["HTTP/1.1 200 OK\ncontent-length : 1", "x"],
  ["HTTP/1.1 200 OK\nx: a\n b", ""],
  ["HTTP/1.1 200 OK\ntransfer-encoding: chunked", "1\r\nxx\r\n"],
  ["HTTP/1.1 200 OK\ntransfer-encoding: chunked", "g\r\n"],
  ["HTTP/1.1 200 OK\ntransfer-encoding: chunked", "-1\r\n"],
])("%j with the body %j is not read", (head, body) => {
  for (const at of [[], Array.from({ length: 200 }, (_, index) => index)]) {
    expect(() => read(text(head, body), at)).toThrow(InvalidAnswer);
  }
});

test("a body, or a head, beyond the limit is not kept", () => {
  const large = "x".repeat(MOST + 1);
  expect(() => read(text(`HTTP/1.1 200 OK\ncontent-length: ${large.length}`, "x"))).toThrow(AnswerTooLarge);
  expect(() => read(text("HTTP/1.1 200 OK", large), [100, 5000])).toThrow(AnswerTooLarge);
  const chunk = `${large.length.toString(16)}\r\n${large}`;
  expect(() => read(text("HTTP/1.1 200 OK\ntransfer-encoding: chunked", chunk))).toThrow(AnswerTooLarge);
  const endless = Buffer.from(`HTTP/1.1 200 OK\r\nx: ${"x".repeat(70_000)}`);
  expect(() => read(endless, [1000, 30_000])).toThrow(InvalidAnswer);
});

/** The same as `readHead`, slower. */
function headByExpressions(text: string) {
  const TEXT = "[\\t\\x20-\\x7e\\x80-\\xff]*";
  const NAME = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
  const found = new RegExp(`^HTTP/1\\.([01]) (\\d{3})(?: (${TEXT}))?((?:\\r\\n${NAME}:${TEXT})*)$`).exec(
    text,
  );
  if (!found) return undefined;
  const [, minor, status, statusText = "", rest = ""] = found;
  const lines = [...rest.matchAll(new RegExp(`\\r\\n(${NAME}):[\\t ]*(${TEXT}?)[\\t ]*(?=\\r\\n|$)`, "g"))];
  const single = /^(content-length|transfer-encoding|content-encoding)$/i;
  const read =
    /^(connection|content-encoding|content-length|date|keep-alive|retry-after|transfer-encoding)$/i;
  const headers = new Map<string, string>();
  const kept: [string, string][] = [];
  for (const [, name = "", value = ""] of lines) {
    const key = name.toLowerCase();
    const before = kept.find(([other]) => other.toLowerCase() === key);
    if (before && single.test(key)) {
      if (before[1] !== value) return undefined;
      continue;
    }
    kept.push([name, value]);
    const known = headers.get(key);
    if (read.test(key)) headers.set(key, known === undefined ? value : `${known}, ${value}`);
  }
  return { isHttp10: minor === "0", status: Number(status), statusText, headers, lines: kept };
}

test("a head is read as regular expressions read it, and refused if they refuse it", () => {
  const names = fc.constantFrom(
    "Date",
    "date",
    "Content-Length",
    "content-length",
    "Content-Encoding",
    "X-a",
    "",
  );
  const names2 = fc.constantFrom(
    "Keep-Alive",
    "Connection",
    "cOnnectioM",
    "Retry-After",
    "Transfer-Encoding",
    "a b",
  );
  const values = fc.constantFrom(
    "",
    " 12",
    " 12",
    "\t13 ",
    " gzip",
    " a\tb ",
    "\xa0x\xa0",
    " \x7f",
    " a\rb",
    "\x00",
  );
  const line = fc.tuple(fc.oneof(names, names2), fc.constantFrom(":", ":", ":", ": ", ""), values);
  const first = fc.constantFrom(
    "HTTP/1.1 200 OK",
    "HTTP/1.0 404",
    "HTTP/1.1 204 ",
    "HTTP/1.2 200 OK",
    "http/1.1 200 OK",
    "HTTP/1.1 20 OK",
    "HTTP/1.1 2000",
    "HTTP/1.1  200",
    "HTTP/1.1 200 \x7f",
    "HTTP/1.1",
    "",
    "HTTP/1.1 200\tOK",
  );
  const ends = fc.constantFrom("\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "\r\r\n");
  let valid = 0;
  fc.assert(
    fc.property(
      fc.oneof({ weight: 3, arbitrary: fc.constant("HTTP/1.1 200 OK") }, { weight: 1, arbitrary: first }),
      fc.array(fc.tuple(ends, line), { maxLength: 5 }),
      fc.string({ maxLength: 6 }),
      (start, lines, behind) => {
        const text = start + lines.map(([end, parts]) => end + parts.join("")).join("");
        const bytes = Buffer.from(`${text}\r\n\r\n${behind}`, "latin1");
        const expected = headByExpressions(text);
        if (!expected) {
          expect(() => readHead(bytes, text.length)).toThrow(InvalidAnswer);
          return;
        }
        valid++;
        const { isHttp10, status, statusText, headers, lines: read } = readHead(bytes, text.length);
        expect({ isHttp10, status, statusText, headers, lines: read }).toEqual(expected);
      },
    ),
    { numRuns: 3000 },
  );
  expect(valid).toBeGreaterThan(100);
});
