/**
 * A base as a client with airtable.js has it, which also hears what that library keeps to itself: did the answer say
 * that SQL does not have the write yet?
 */
import Airtable from "airtable";

type RunAction = InstanceType<typeof Airtable.Base>["runAction"];

export class Client extends Airtable.Base {
  /** An answer has come before SQL had what was written. */
  isPending = false;

  /** By the library's other way to send a request: what it has of an answer here is without headers. */
  override runAction(...[method, path, qs, body, done]: Parameters<RunAction>): void {
    const request = { method, path, qs, ...(body === null ? {} : { body }) };
    this.makeRequest(request).then(({ headers, body }) => {
      if (headers.get("x-basetide-sql") === "pending") this.isPending = true;
      done(null, undefined, body);
    }, done);
  }
}
