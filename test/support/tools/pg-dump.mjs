/**
 * Dumps a server with pg_dump 18, which npm has as WebAssembly for PGlite, a Postgres in the process: it sends and receives in
 * functions that must return at once, so a thread has the connection, and this one waits for it.
 *
 *   node pg-dump.mjs <url> [words of pg_dump]
 */
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { pgDump } from "@electric-sql/pglite-tools/pg_dump";

const CONNECTION = `
  const { workerData: { host, port, answers, answered } } = require("node:worker_threads");
  const socket = require("node:net").connect(port, host);
  const pass = (answer) => {
    answers.postMessage(answer);
    Atomics.add(answered, 0, 1);
    Atomics.notify(answered, 0);
  };
  answers.on("message", (bytes) => socket.write(bytes));
  socket.on("data", (data) => pass(data));
  socket.on("error", (error) => pass(error.message));
  socket.on("end", () => pass("the server has closed the connection"));`;

const [url, ...words] = process.argv.slice(2);
const { hostname: host, port, pathname, password } = new URL(url);
const answered = new Int32Array(new SharedArrayBuffer(4));
const { port1: thread, port2: answers } = new MessageChannel();
const connection = new Worker(CONNECTION, {
  eval: true,
  workerData: { host, port: Number(port), answers, answered },
  transferList: [answers],
});

/** @returns the next bytes of the server */
function receive() {
  for (;;) {
    const before = Atomics.load(answered, 0);
    const answer = receiveMessageOnPort(thread)?.message;
    if (typeof answer === "string") throw new Error(answer);
    if (answer) return Buffer.from(answer);
    Atomics.wait(answered, 0, before);
  }
}

let isStarted = false;
let isConnected = false;

/** Whether the client waits for an answer after what it has sent: a whole startup message, password, query or sync. */
function awaitsAnswer(sent) {
  for (let at = 0; at < sent.length; ) {
    const head = isStarted ? 1 : 0;
    const type = isStarted ? sent.toString("latin1", at, at + 1) : "startup";
    isStarted = true;
    at += head + sent.readUInt32BE(at + head);
    if (at === sent.length) return ["startup", "p", "Q", "S"].includes(type);
  }
  return false;
}

/** Whether the server now waits for the client: it is ready, asks for a password, or has refused the connection. */
function isComplete(received) {
  for (let at = 0; at + 5 <= received.length; ) {
    const type = received.toString("latin1", at, at + 1);
    const end = at + 1 + received.readUInt32BE(at + 1);
    if (end > received.length) return false;
    const asks = type === "R" && [3, 5, 10, 11].includes(received.readUInt32BE(at + 5));
    isConnected ||= type === "Z";
    if (end === received.length && (type === "Z" || asks || (type === "E" && !isConnected))) return true;
    at = end;
  }
  return false;
}

const server = {
  query: async () => ({ rows: [{ search_path: "public" }] }),
  exec: async () => {},
  execProtocolRawStream(bytes, { onRawData }) {
    const sent = Buffer.from(bytes);
    thread.postMessage(sent);
    if (!awaitsAnswer(sent)) return;
    let received = Buffer.alloc(0);
    while (!isComplete(received)) received = Buffer.concat([received, receive()]);
    onRawData(received);
  },
};

const database = `dbname=${pathname.slice(1)} password=${decodeURIComponent(password)}`;
const dump = await pgDump({ pg: server, args: [...words, "-d", database] });
process.stdout.write(await dump.text());
await connection.terminate();
