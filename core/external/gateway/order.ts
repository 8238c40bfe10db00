/**
 * Checks which messages a server may send next, based on the driver's requests: answers come in the order of the
 * requests.
 *
 * `asked` is called for the driver's messages, `answered` for the server's. The driver never requests COPY, so no COPY
 * message is allowed.
 */
import { RESULT_ROWS } from "../limits";
import { HEAD_BYTES as BODY } from "../messages";
import {
  type ColumnDescription,
  checkCommandTag,
  checkEmpty,
  checkParameterTypes,
  checkReady,
  checkRow,
  columnsOf,
  readError,
  wrongForm,
} from "./bodies";
import { Violation } from "./fault";

/** A prepared statement, or the current statement of a simple query. */
interface Statement {
  /** The columns of its result; undefined until the server has described it. */
  columns: ColumnDescription[] | undefined;
}

type Question =
  | { kind: "parse" | "bind" | "close" | "sync" }
  | { kind: "describe"; statement: Statement; isPortal: boolean; hasParameters: boolean }
  | { kind: "execute"; statement: Statement; hasLimit: boolean }
  | { kind: "query"; statement: Statement; hasFailed: boolean };

const UNKNOWN: Statement = { columns: undefined };

/** How a server's message is passed on: unchanged, or replaced by another. */
type Verdict = "forward" | Buffer;

export class Order {
  readonly #questions: Question[] = [];
  readonly #statements = new Map<string, Statement>();
  readonly #portals = new Map<string, Statement>();
  /** The server discards messages, without answering, until a Sync. */
  #isSkipping = false;
  #rows = 0;
  /** The server has announced that it ends the connection. */
  hasEnded = false;

  /** Does the server owe an answer? */
  get isBusy(): boolean {
    return this.#questions.length > 0;
  }

  /** Records a message of the driver. */
  asked(type: number, whole: Buffer): void {
    const question = this.#questionOf(String.fromCharCode(type), whole);
    if (!question || (this.#isSkipping && question.kind !== "sync")) return;
    this.#isSkipping = false;
    this.#questions.push(question);
  }

  #questionOf(type: string, whole: Buffer): Question | undefined {
    switch (type) {
      case "P":
        this.#statements.set(textAt(whole, BODY), { columns: undefined });
        return { kind: "parse" };
      case "B": {
        const portal = textAt(whole, BODY);
        const name = textAt(whole, BODY + Buffer.byteLength(portal) + 1);
        this.#portals.set(portal, this.#statements.get(name) ?? UNKNOWN);
        return { kind: "bind" };
      }
      case "D": {
        const isPortal = whole[BODY] === 0x50;
        const known = isPortal ? this.#portals : this.#statements;
        const statement = known.get(textAt(whole, BODY + 1)) ?? { columns: undefined };
        return { kind: "describe", statement, isPortal, hasParameters: false };
      }
      case "E": {
        const hasLimit = whole.readUInt32BE(whole.length - 4) > 0;
        return { kind: "execute", statement: this.#portals.get(textAt(whole, BODY)) ?? UNKNOWN, hasLimit };
      }
      case "C":
        return { kind: "close" };
      case "S":
        return { kind: "sync" };
      case "Q":
        return { kind: "query", statement: { columns: undefined }, hasFailed: false };
      default:
        return undefined;
    }
  }

  /** Checks a message of the server. @throws Violation if no Postgres server would send it */
  answered(type: number, whole: Buffer): Verdict {
    if (this.hasEnded) throw new Violation("order", "a message after the last one");
    const letter = String.fromCharCode(type);
    const question = this.#questions[0];
    if (letter === "E") return this.#failed(whole, question);
    if (question === undefined) throw new Violation("order", `${nameOf(type)} that was not requested`);
    if (!this.#answers(letter, whole, question)) {
      throw new Violation("order", `${nameOf(type)} in answer to ${question.kind}`);
    }
    return "forward";
  }

  /** @returns false if the message does not answer this question now */
  #answers(letter: string, whole: Buffer, question: Question): boolean {
    switch (question.kind) {
      case "parse":
        return this.#done(letter === "1", () => checkEmpty(whole));
      case "bind":
        return this.#done(letter === "2", () => checkEmpty(whole));
      case "close":
        return this.#done(letter === "3", () => checkEmpty(whole));
      case "sync":
        return this.#done(letter === "Z", () => this.#ready(whole));
      case "describe":
        return this.#describes(letter, whole, question);
      case "execute":
        if (letter === "D") return this.#row(whole, question.statement);
        if (letter === "s") return this.#done(question.hasLimit, () => this.#suspended(whole));
        return this.#done(letter === "C" || letter === "I", () => checkEnd(letter, whole));
      case "query":
        return this.#answersQuery(letter, whole, question);
    }
  }

  #describes(letter: string, whole: Buffer, question: Question & { kind: "describe" }): boolean {
    if (letter === "t") {
      if (question.isPortal || question.hasParameters) return false;
      checkParameterTypes(whole);
      question.hasParameters = true;
      return true;
    }
    if (!question.isPortal && !question.hasParameters) return false;
    return this.#done(letter === "T" || letter === "n", () => {
      if (letter === "n") checkEmpty(whole);
      question.statement.columns = letter === "T" ? columnsOf(whole) : [];
    });
  }

  /** A text may contain several statements: each has its description, its rows and its end. */
  #answersQuery(letter: string, whole: Buffer, question: Question & { kind: "query" }): boolean {
    if (letter === "Z") return this.#done(true, () => this.#ready(whole));
    if (question.hasFailed) return false;
    if (letter === "D") return this.#row(whole, question.statement);
    if (letter === "T") {
      if (question.statement.columns !== undefined) return false;
      question.statement.columns = columnsOf(whole);
      return true;
    }
    if (letter !== "C" && letter !== "I") return false;
    checkEnd(letter, whole);
    question.statement.columns = undefined;
    return true;
  }

  #row(whole: Buffer, { columns }: Statement): boolean {
    if (columns === undefined) return false;
    checkRow(whole, columns);
    this.#rows += 1;
    if (this.#rows > RESULT_ROWS) throw new Violation("size", `more than ${RESULT_ROWS} rows`);
    return true;
  }

  #ready(whole: Buffer): void {
    checkReady(whole);
    this.#rows = 0;
  }

  /** The driver reads a long result in parts. The relay limits the bytes of all of them. */
  #suspended(whole: Buffer): void {
    checkEmpty(whole);
    this.#rows = 0;
  }

  #done(isRight: boolean, check: () => void): boolean {
    if (!isRight) return false;
    check();
    this.#questions.shift();
    return true;
  }

  /** The server no longer answers requests up to the next Sync. */
  #failed(whole: Buffer, question: Question | undefined): Buffer {
    const error = readError(whole);
    if (error.isFatal) {
      this.hasEnded = true;
      return error.message;
    }
    if (!question) throw new Violation("order", "an ErrorResponse that was not requested");
    if (question.kind === "query") {
      if (question.hasFailed) throw new Violation("order", "two ErrorResponses to one query");
      question.hasFailed = true;
      return error.message;
    }
    if (question.kind === "sync") this.#failSync();
    while (this.#questions.length > 0 && this.#questions[0]!.kind !== "sync") this.#questions.shift();
    this.#isSkipping = this.#questions.length === 0;
    return error.message;
  }

  /** A commit may fail at the Sync, once. */
  #failSync(): void {
    if (this.#syncFailedFor === this.#questions[0]) {
      throw new Violation("order", "two ErrorResponses to one request");
    }
    this.#syncFailedFor = this.#questions[0];
  }

  #syncFailedFor: Question | undefined;
}

function checkEnd(letter: string, whole: Buffer): void {
  if (letter === "C") checkCommandTag(whole);
  else checkEmpty(whole);
}

/** Returns a NUL-terminated text of a driver's message. */
function textAt(whole: Buffer, at: number): string {
  const end = whole.indexOf(0, at);
  if (end === -1) throw wrongForm("a request");
  return whole.toString("utf8", at, end);
}

function nameOf(type: number): string {
  const letter = String.fromCharCode(type);
  return /[\w]/.test(letter) ? `a message of type ${letter}` : `a message of type ${type}`;
}
