import { expect, test } from "vitest";
import { answerHeaders, requestHeaders } from "../../apps/proxy/headers";

test("a request's own headers pass, and those of its connection do not", () => {
  const passed = requestHeaders(
    new Headers({
      Authorization: "Bearer pat",
      "Content-Type": "application/json",
      "X-Api-Version": "0.1.0",
      "Accept-Encoding": "gzip",
      Cookie: "a=b",
      Connection: "keep-alive, X-Mine, not a name",
      "X-Mine": "1",
      "Keep-Alive": "timeout=5",
      "Proxy-Authorization": "Basic x",
      "Proxy-Connection": "keep-alive",
      TE: "trailers",
      Trailer: "x",
      "Transfer-Encoding": "chunked",
      Upgrade: "websocket",
      Host: "proxy",
      "Content-Length": "5",
      Expect: "100-continue",
    }),
  );
  expect(Object.fromEntries(passed)).toEqual({
    authorization: "Bearer pat",
    "content-type": "application/json",
    "x-api-version": "0.1.0",
    "accept-encoding": "gzip",
    cookie: "a=b",
  });
});

test("an answer loses the headers of its connection and of the upstream's domain, and nothing else", () => {
  const headers = answerHeaders([
    ["Content-Type", "application/json"],
    ["Content-Encoding", "gzip"],
    ["Content-Length", "40"],
    ["ETag", 'W/"x"'],
    ["Retry-After", "30"],
    ["Access-Control-Allow-Origin", "*"],
    ["Set-Cookie", "a=b"],
    ["Set-Cookie", "c=d"],
    ["Strict-Transport-Security", "max-age=1"],
    ["Connection", "close, X-Mine"],
    ["X-Mine", "1"],
    ["Transfer-Encoding", "chunked"],
  ]);
  expect(Object.fromEntries(headers)).toEqual({
    "content-type": "application/json",
    "content-encoding": "gzip",
    "content-length": "40",
    etag: 'W/"x"',
    "retry-after": "30",
    "access-control-allow-origin": "*",
  });
});

test("several Connection headers name headers of the connection, and one that comes again is passed on as often", () => {
  const headers = answerHeaders([
    ["Connection", "X-One"],
    ["X-One", "1"],
    ["connection", "x-two, close"],
    ["X-Two", "2"],
    ["X-Three", "3"],
    ["x-three", "4"],
  ]);
  expect([...headers]).toEqual([["x-three", "3, 4"]]);
});
