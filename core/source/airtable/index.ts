/** The Airtable adapter: implements `Platform`. */
import { BasetideError } from "../../errors";
import type { Platform } from "../types";
import { createClient } from "./client";
import { AirtableConnection } from "./connection";
import { airtable } from "./facts";

/** The host under which `UPSTREAMS` configures the API's address. */
const API_HOST = "api.airtable.com";

/** @throws BasetideError `config_invalid` if `upstreams` has no address for `api.airtable.com` */
export function createAirtable(options: { upstreams: Record<string, string>; timeoutMs: number }): Platform {
  const address = options.upstreams[API_HOST];
  if (address === undefined) {
    throw new BasetideError("config_invalid", `UPSTREAMS has no entry for ${API_HOST} (host=address)`);
  }
  return {
    ...airtable,
    connect: (apiKey, clock) =>
      new AirtableConnection(createClient({ address, apiKey, timeoutMs: options.timeoutMs, clock })),
  };
}
