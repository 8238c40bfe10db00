/**
 * Request smuggling: a request inside a request that its sender was not allowed to send, or whose answer goes to
 * another.
 */
import type { LogEntry } from "../../../apps/sandbox/request-log";
import { type Attack, paced, Tally } from "../attack";
import { sendBytes } from "../raw";

const PER_SECOND = 20;
const TIMEOUT_MS = 1500;

export const smuggling: Attack = {
  name: "smuggling",
  finding: "S1 (held)",
  async run(service, rounds, random) {
    const tally = new Tally();
    const own = await service.sourceBase("Own");
    const key = await service.key({ [own.id]: "create" });
    for (let round = 0; round < rounds; round++) {
      const mark = `smuggled${random.int(1, 1e9)}`;
      const path = `/api.airtable.com/v0/${own.id}`;
      const all = requests(path, key, mark);
      await paced(all, PER_SECOND, async ([, bytes]) => {
        await sendBytes(service.of("proxy")[random.int(0, 1)]!.port, bytes, TIMEOUT_MS);
      });
      const log = (await service.sandbox.call("GET", "log")) as LogEntry[];
      const arrived = log
        .filter(({ path: at }) => at.includes(mark))
        .map(({ path: at }) => at.split("?by=")[1]);
      for (const [name] of all) tally.add(arrived.includes(name) && `a request came through by ${name}`);
    }
    return tally;
  },
};

/** Requests with an ambiguous end, with an inner request that names the technique. */
function requests(path: string, key: string, mark: string): [name: string, bytes: string][] {
  const make = (name: string, headers: (inner: string) => string, body: (inner: string) => string) => {
    const inner = `GET ${path}/${mark}?by=${name} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
    const head = `POST ${path}/Tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
    return [name, `${head}${headers(inner)}\r\n${body(inner)}`] as [string, string];
  };
  const whole = (inner: string) => inner.length + 5;
  const ended = (inner: string) => `0\r\n\r\n${inner}`;
  const te = (value: string) => (inner: string) =>
    `Content-Length: ${whole(inner)}\r\nTransfer-Encoding${value}\r\n`;
  return [
    make("cl-te", te(": chunked"), ended),
    make("te-tab", te(":\tchunked"), ended),
    make("te-space", te(" : chunked"), ended),
    make("te-x", te(": xchunked"), ended),
    make("te-list", te(": identity, chunked"), ended),
    make("te-twice", te(": chunked\r\nTransfer-Encoding: identity"), ended),
    make(
      "te-cl",
      () => "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
      (inner) => `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`,
    ),
    make(
      "cl-list",
      (inner) => `Content-Length: 2, ${inner.length + 2}\r\n`,
      (inner) => `{}${inner}`,
    ),
    make(
      "cl-twice",
      (inner) => `Content-Length: ${inner.length + 2}\r\nContent-Length: 2\r\n`,
      (inner) => `{}${inner}`,
    ),
    make(
      "cl-plus",
      (inner) => `Content-Length: +${inner.length + 2}\r\n`,
      (inner) => `{}${inner}`,
    ),
    make(
      "cl-hex",
      (inner) => `Content-Length: 0x${(inner.length + 2).toString(16)}\r\n`,
      (inner) => `{}${inner}`,
    ),
    make(
      "cl-negative",
      () => "Content-Length: -1\r\n",
      (inner) => `{}${inner}`,
    ),
    make(
      "chunk-overflow",
      () => "Transfer-Encoding: chunked\r\n",
      (inner) => `fffffffffffffffff\r\n${inner}\r\n0\r\n\r\n`,
    ),
    make(
      "header-cr",
      (inner) => `X-A: a\r${inner}\r\nContent-Length: 2\r\n`,
      () => "{}",
    ),
    make(
      "header-nul",
      () => "X-A: a\0b\r\nContent-Length: 2\r\n",
      () => "{}",
    ),
    make(
      "escaped-crlf",
      () => "X-A: a%0d%0aX-B: b\r\nContent-Length: 2\r\n",
      () => "{}",
    ),
  ];
}
