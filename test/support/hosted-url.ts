/** The URL of a database on one of our clusters, for tests that open it with their own driver. */
import type { ServerUrl } from "../../core/external";

export function hostedUrl(url: ServerUrl): string {
  if (typeof url !== "string") throw new Error("a customer hosts this database");
  return url;
}
