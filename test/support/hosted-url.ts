/** The URL of a database that is on a cluster of ours: what tests open with a driver of their own. */
import type { ServerUrl } from "../../core/external";

export function hostedUrl(url: ServerUrl): string {
  if (typeof url !== "string") throw new Error("a customer hosts this database");
  return url;
}
