/** What can be connected: the platforms, the bases that a key can read, and the databases that customers host. */
import { isProblem } from "../../../core/check-result";
import { listSourceBases, readSelectableWith, selectableJson } from "../../../core/control/bases";
import { inspectDestination } from "../../../core/control/placement";
import { ofAccount, resource } from "../resource-kit/resource";
import {
  destinationCheck,
  destinationChecks,
  keyCheck,
  platformList,
  selectableTables,
  sourceBaseKey,
  sourceBases,
} from "../schemas";

export const sourcesResource = resource({ tag: "Sources", scope: ofAccount })
  .all({
    api: "GET /api/v1/platforms",
    summary: "Platforms that can be replicated",
    answer: platformList,
    run: async ({ platforms }) => platforms,
  })
  .all({
    api: "POST /api/v1/source-bases",
    summary: "Bases that an API key has access to",
    description: "An invalid key is answered with 422 and Airtable's message.",
    raises: ["source_key_refused", "source_forbidden"],
    body: keyCheck,
    answer: sourceBases,
    run: (ctx, _, body) => listSourceBases(ctx, body.platform, body.api_key),
  })
  .all({
    api: "POST /api/v1/source-tables",
    summary: "Tables, fields and views of a base before it is connected",
    description: "To choose what is copied when it is connected. Costs one call to Airtable.",
    raises: ["source_key_refused", "source_forbidden", "source_not_found"],
    body: sourceBaseKey,
    answer: selectableTables,
    run: async (ctx, _, { platform, base_id: sourceBaseId, api_key: apiKey }) =>
      selectableJson(await readSelectableWith(ctx, { platform, sourceBaseId, apiKey })),
  })
  .all({
    api: "POST /api/v1/destinations/check",
    summary: "Check a database that you host",
    description:
      "Connects in the same way as the service, and changes nothing. Checks the address, server and version, pooler, encryption, distance, rights and schema, and returns a remedy for each problem. Stops at the first problem.",
    raises: ["already_exists"],
    body: destinationCheck,
    answer: destinationChecks,
    async run(ctx, account, body) {
      const checks = await inspectDestination(ctx, account.id, { kind: "external", ...body });
      return {
        isUsable: checks.every((one) => !isProblem(one)),
        checks: checks.map(({ severity: status, remedy = null, ...check }) => ({ ...check, status, remedy })),
      };
    },
  });
