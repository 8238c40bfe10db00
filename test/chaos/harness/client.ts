/**
 * A base accessed with airtable.js by a client that also reads a header that the library hides: whether SQL does not
 * have the write yet.
 */
import Airtable from "airtable";

type RunAction = InstanceType<typeof Airtable.Base>["runAction"];

export class Client extends Airtable.Base {
  /** An answer arrived before SQL had the write. */
  isPending = false;

  /** Uses the library's other function for requests: the result of this one has no headers. */
  override runAction(...[method, path, qs, body, done]: Parameters<RunAction>): void {
    const request = { method, path, qs, ...(body === null ? {} : { body }) };
    this.makeRequest(request).then(({ headers, body }) => {
      if (headers.get("x-basetide-sql") === "pending") this.isPending = true;
      done(null, undefined, body);
    }, done);
  }
}
