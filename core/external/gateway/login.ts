/**
 * Logs in to a customer's server with the credentials of the URL; the driver behind the gateway never sees the
 * exchange.
 */
import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import { SCRAM_MECHANISM } from "../../scram";
import { LOGIN_MESSAGES } from "../limits";
import { HEAD_BYTES as BODY, message } from "../messages";
import type { ServerAddress } from "../server";
import { checkBackendKey, checkReady, isKnownParameter, readError } from "./bodies";
import { GatewayRefusal, Violation } from "./fault";
import type { Pull } from "./pull";
import { Scram } from "./scram";

/** Length of the kind of an authentication message. */
const KIND_BYTES = 4;

interface Login {
  socket: Socket;
  pull: Pull;
  server: ServerAddress;
  isEncrypted: boolean;
}

/**
 * @param startup the driver's startup message
 * @returns the server's messages after AuthenticationOk, up to and including ReadyForQuery, for the driver
 * @throws GatewayRefusal, Violation
 */
export async function logIn(login: Login, startup: Buffer): Promise<Buffer> {
  login.socket.write(startup);
  const answers: Buffer[] = [];
  let scram: Scram | undefined;
  let isIn = false;
  for (let count = 0; count < LOGIN_MESSAGES; count++) {
    const whole = await login.pull.message();
    const letter = String.fromCharCode(whole[0]!);
    if (letter === "E") throw refusalOf(whole);
    if (letter === "N") continue;
    if (letter === "R" && !isIn) {
      const kind = whole.length >= BODY + KIND_BYTES ? whole.readUInt32BE(BODY) : -1;
      if (kind === 0) {
        if (scram && !scram.isVerified) throw new Violation("login", "SCRAM ended too early");
        isIn = true;
      } else scram = await authenticate(login, kind, whole.subarray(BODY + KIND_BYTES), scram);
    } else if (letter === "S" && isIn) {
      if (isKnownParameter(whole)) answers.push(whole);
    } else if (letter === "K" && isIn) {
      checkBackendKey(whole);
      answers.push(whole);
    } else if (letter === "Z" && isIn) {
      checkReady(whole);
      return Buffer.concat([...answers, whole]);
    } else throw new Violation("login", "a message that does not belong to a login");
  }
  throw new Violation("login", `more than ${LOGIN_MESSAGES} messages before the login is complete`);
}

function refusalOf(whole: Buffer): GatewayRefusal {
  const { code, text } = readError(whole);
  return new GatewayRefusal(code, text);
}

async function authenticate(
  { socket, server, isEncrypted }: Login,
  kind: number,
  body: Buffer,
  scram: Scram | undefined,
): Promise<Scram | undefined> {
  const { user, password } = server;
  if (scram === undefined && kind === 3) {
    if (!isEncrypted) {
      throw new GatewayRefusal(
        "08001",
        "the server requests the password in plain text without TLS; add ?sslmode=require",
      );
    }
    socket.write(message("p", password, "\0"));
    return undefined;
  }
  if (scram === undefined && kind === 5 && body.length === 4) {
    const inner = md5(password, user);
    socket.write(message("p", `md5${md5(inner, body)}`, "\0"));
    return undefined;
  }
  if (scram === undefined && kind === 10) {
    if (!body.toString("latin1").split("\0").includes(SCRAM_MECHANISM)) {
      throw new GatewayRefusal("08001", `the server does not support ${SCRAM_MECHANISM}`);
    }
    const begun = new Scram();
    const first = Buffer.from(begun.first());
    const length = Buffer.alloc(4);
    length.writeUInt32BE(first.length);
    socket.write(message("p", SCRAM_MECHANISM, "\0", length, first));
    return begun;
  }
  if (scram && kind === 11 && !scram.hasAnswered) {
    socket.write(message("p", await scram.final(body.toString("latin1"), password)));
    return scram;
  }
  if (scram?.hasAnswered && kind === 12) {
    scram.verify(body.toString("latin1"));
    return scram;
  }
  throw new Violation("login", `unexpected authentication request of kind ${kind}`);
}

function md5(text: string, salt: string | Buffer): string {
  return createHash("md5").update(text).update(salt).digest("hex");
}
